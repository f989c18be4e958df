#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/store/connection.hpp"
#include "control-plane/projection/object.hpp"
#include "control-plane/views/entity_view.hpp"
#include "control-plane/views/image_view.hpp"
#include "control-plane/views/page.hpp"

// The timeline of Applications: one release for each id of Argo CD's history.
namespace gitops::control_plane_server {

enum class ReleaseOrder : std::uint8_t { created, health, history, sync };

struct ReleaseFilter {
  std::vector<std::string> runtimes = {};
  std::vector<std::string> names = {};
  std::vector<std::string> namespaces = {};
  std::optional<std::int64_t> history_id = {};
  Micros started_from = 0;
  Micros started_to = 0;
  // The rest needs annotations and bodies; the values of one condition are alternatives.
  std::vector<std::string> issues = {};
  std::vector<std::string> pull_requests = {};
  std::vector<std::string> committers = {};
  std::string group = {};        // of Applications
  bool has_issues_only = false;  // only releases with an issue

  [[nodiscard]] bool needs_facts() const;
};

// A row of the table `app_release` with its Application.
struct ReleaseRow {
  ObjectState application;
  Release release;
  // History id of the Application's newest release. Releases of a deleted Application of this name may have higher ones.
  std::int64_t newest = 0;
  std::optional<std::string> images_before = {};  // JSON; nothing: it is the first release
};
inline constexpr std::size_t kReleaseKeyNumbers = 3;
SortKey sort_key_of(const ReleaseRow& row, ReleaseOrder order);

// Returns at most window.limit rows, in the direction of `is_descending` and the window.
Result<std::vector<ReleaseRow>> list_releases(store::Connection& connection, std::int64_t account,
                                              const ReleaseFilter& filter, ReleaseOrder order,
                                              bool is_descending, const PageWindow& window);

// A workload of an Application in its current state.
struct ReleaseService {
  std::string name;
  std::vector<std::string> images = {};
  std::optional<std::int64_t> replicas = {};
  std::optional<std::int64_t> available_replicas = {};
};
ReleaseService release_service(const ObjectState& state, JsonView workload);

// The data of a release's view besides its row.
struct ReleaseFacts {
  std::vector<ReleaseService> services = {};  // current services of the Application
  std::vector<std::string> rollouts = {};     // current state, JSON of type ReleaseRolloutState
  std::map<std::string, ImageFacts, std::less<>> images = {};  // by full name
  // The child Applications that are shown, by name; nothing: all.
  std::optional<std::set<std::string, std::less<>>> children = {};
};

// Returns the images of a release by service. An image without a current workload counts as a service of its own, named
// like the image.
std::map<std::string, std::vector<std::string>> images_by_service(
    const std::vector<std::string>& images, const std::vector<ReleaseService>& services);
std::vector<std::string> images_of(std::string_view json);

// Appends the JSON of type GitopsRelease. `application` is the live Application, or nothing.
void append_release(std::string& out, const ReleaseRow& row, JsonView application,
                    const ReleaseFacts& facts, const ViewContext& context);
bool matches(const ReleaseFilter& filter, const ReleaseRow& row, JsonView application,
             const ReleaseFacts& facts);

struct ReleaseList {
  ReleaseFilter filter = {};
  ReleaseOrder order = ReleaseOrder::created;
  bool is_descending = true;
  PageWindow window = {};
  bool with_application = true;   // destination, sources, operationState, childApps
  bool with_services = true;      // fromState, toState, transition
  bool with_images = true;        // issues, prs, committers, builds and the authors of builds
  std::size_t max_read = 40'000;  // rows for one page when conditions are checked row by row
  // Condition on the Application, which the statement cannot check; without it every release counts.
  std::function<bool(const ObjectState&, JsonView application)> accepts = {};
};
Result<std::string> release_slice(store::Connection& connection, std::int64_t account,
                                  const ReleaseList& list, const ViewContext& context);

// Returns every statement of this file, for the test that prepares them.
std::span<const store::Statement> release_statements();

}  // namespace gitops::control_plane_server
