#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/time.hpp"
#include "event-reporter/event/app_view.hpp"
#include "event-reporter/event/argo_answers.hpp"
#include "event-reporter/event/digest.hpp"
#include "event-reporter/ledger/resource_id.hpp"

namespace gitops::reporter {

// The errors that one event tells of, in the order in which they are added (docs/events.md). An
// error whose time is not known was last seen `now`.
class ErrorList {
 public:
  explicit ErrorList(WallTime now) : now_(now) {}

  // The last sync of `app` failed at a resource: what it said of it, if anything.
  void add_sync_result(const AppView& app, JsonView result);
  // The application's conditions that are errors or warnings. The one that says that tasks failed
  // stands for the failed tasks.
  void add_conditions(const AppView& app);
  // The application's last operation failed.
  void add_operation(const AppView& app);
  // Degraded nodes below the resource, or else the resource's own node. `source`: the resource is
  // named in the error.
  void add_health(const TreeView& tree, const ResourceId& id, bool name_source);

  [[nodiscard]] bool empty() const { return errors_.empty(); }
  // Appends them as a JSON array.
  void write(std::string& out) const;
  // Adds everything but the times.
  void add_to(Hasher& hasher) const;

 private:
  struct Entry {
    std::string_view type;
    std::string_view level;
    std::string message;
    std::string last_seen;
    std::optional<ResourceId> source{};
  };
  void add_failed_tasks(JsonView results);

  WallTime now_;
  std::vector<Entry> errors_;
};

}  // namespace gitops::reporter
