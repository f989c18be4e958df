#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/json_text.hpp"
#include "control-plane/projection/object.hpp"
#include "control-plane/views/object_query.hpp"
#include "control-plane/views/view_json.hpp"

// Parts that the GraphQL types of all Kubernetes objects share. Pure.
namespace gitops::control_plane_server {

// The context of views besides an object's row and body.
struct ViewContext {
  std::string account = {};  // id
  Micros now = 0;
  // Runtimes with a reporter of Rollouts, sorted; see runtimes_with_resource_reporter().
  std::vector<std::string> rollout_runtimes = {};

  [[nodiscard]] bool reports_rollouts(std::string_view runtime) const {
    return std::ranges::binary_search(rollout_runtimes, runtime);
  }
};

// Writes the members of type ObjectMeta. Namespace and uid are texts even when they are empty: the public command line
// fails without them on Workflows and Pipelines. `metadata` is that of the live object, with labels and annotations.
void write_metadata(ObjectJson& out, const ObjectState& state, JsonView metadata,
                    const ViewContext& context);
std::string metadata_json(const ObjectState& state, JsonView metadata, const ViewContext& context);

// Writes syncStatus, healthStatus and healthMessage.
void write_states(ObjectJson& out, const ObjectState& state);
// Writes an enum of the schema: `word` when it is one of `known`, else null.
void write_enum(ObjectJson& out, std::string_view key, std::string_view word,
                std::initializer_list<std::string_view> known);

// Writes a member of type GitopsEntitySource.
void write_entity_source(ObjectJson& out, std::string_view key, const ParsedBody& body);

// An error of an entity: type SyncError or HealthError.
struct EntityError {
  bool is_sync = true;  // else an error of health
  bool is_warning = false;
  std::string_view title = {};
  std::string_view message = {};
  std::string_view suggestion = {};
  std::string_view code = "UNKNOWN";
  std::string_view last_seen = {};
};
void write_error(ArrayJson& out, const EntityError& error, Micros otherwise);
// Writes the `errors` of the object's event.
void write_reported_errors(ArrayJson& out, JsonView errors, Micros otherwise);

// Writes the member `projects`: values of the label codefresh.io/project, separated by commas.
void write_projects(ObjectJson& out, JsonView metadata);
bool has_project(JsonView metadata, std::string_view project);

// Returns the items of a text such as "a, b", without blanks and empty items.
std::vector<std::string_view> list_items(std::string_view text);
// Returns an annotation or a label of that name, the annotation first; empty when neither exists.
std::string_view annotation_or_label(JsonView metadata, std::string_view name);

// Returns the URL of a commit's page at the Git host; empty when the repository's URL or the revision is not
// sufficient.
std::string commit_url(std::string_view repository, std::string_view revision);
bool is_commit(std::string_view revision);

}  // namespace gitops::control_plane_server
