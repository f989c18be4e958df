#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <simdjson.h>

#include "common/core/error.hpp"
#include "common/core/json_text.hpp"
#include "common/core/time.hpp"
#include "event-reporter/ledger/resource_id.hpp"

namespace gitops::reporter {

// One Application: its JSON text, parsed once, and its fields. A field that is absent or of another
// type reads as empty, as does every field of a default-constructed one. Can be moved but not
// copied; views stay valid when it moves.
class AppView {
 public:
  // invalid_data when the text is no JSON object or names no application.
  static Result<AppView> parse(std::string text);

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] JsonView metadata() const { return root_["metadata"]; }
  [[nodiscard]] JsonView status() const { return root_["status"]; }
  // The resources that Argo CD counts to it.
  [[nodiscard]] std::vector<ResourceId> resource_ids() const;
  [[nodiscard]] JsonView operation_state() const { return status()["operationState"]; }
  [[nodiscard]] std::string_view name() const { return metadata()["name"].text(); }
  [[nodiscard]] std::string_view ns() const { return metadata()["namespace"].text(); }
  [[nodiscard]] std::string_view uid() const { return metadata()["uid"].text(); }
  [[nodiscard]] bool deleting() const { return metadata()["deletionTimestamp"].exists(); }
  [[nodiscard]] std::string_view project() const { return root_["spec"]["project"].text(); }
  [[nodiscard]] std::string_view cluster() const;

  // When its operation began and ended, as Go prints times; empty when it does not say.
  [[nodiscard]] std::string started_at() const;
  [[nodiscard]] std::string finished_at() const;

  // The entry of spec.sources, or spec.source when there are no several.
  [[nodiscard]] JsonView source(std::size_t index) const;
  // Of several sources the one that single-value fields speak of: the first that is not only a
  // reference for the others. 0 when there is one.
  [[nodiscard]] std::size_t main_source() const;

  // The sync operation that revisions are taken from: the last one, else the one that is asked for.
  [[nodiscard]] JsonView sync_operation() const;
  // Of the main source: the revision last deployed, else the one compared with; that of the last
  // or requested operation; and the repository that was compared with.
  [[nodiscard]] std::string_view latest_revision() const;
  [[nodiscard]] std::string_view operation_revision() const;
  // False while latest_revision() is the one before: Argo CD writes the history after it has
  // synced.
  [[nodiscard]] bool names_synced_revision() const;
  [[nodiscard]] std::string_view compared_repo_url() const;
  // The id of the last entry of its history; 0 without one.
  [[nodiscard]] std::int64_t history_id() const;

  // An error in rendering leaves no desired manifests: then a resource must not be called
  // superfluous.
  [[nodiscard]] bool manifests_rendered() const;

 private:
  [[nodiscard]] std::optional<JsonView> last_history() const;
  // `object`'s revision, or that of the main source when it has several.
  [[nodiscard]] std::string_view revision_in(JsonView object) const;

  std::string text_;
  std::unique_ptr<simdjson::dom::parser> parser_;  // owns what root_ refers to
  JsonView root_;
};

// What the last sync of an Application said of its resources, indexed by ResourceId::identity().
// Views into it live as long as the AppView does.
class SyncResults {
 public:
  void read(const AppView& app);

  // Absent when it did not sync such a resource.
  [[nodiscard]] JsonView find(const std::string& identity) const;

 private:
  std::unordered_map<std::string, JsonView> by_identity_;
};

// A time as Go prints metav1.Time: UTC, whole seconds. When it cannot be read: empty, or else
// `otherwise`.
std::string go_time(std::string_view text);
std::string go_time_or(std::string_view text, WallTime otherwise);

}  // namespace gitops::reporter
