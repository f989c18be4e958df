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

// The errors of one event, in the order of the calls (docs/reference/events.md). `now` replaces an unknown
// time at which an error was last seen.
class ErrorList {
 public:
  explicit ErrorList(WallTime now) : now_(now) {}

  // Adds the result of a resource in the last sync of `app`, if it failed.
  void add_sync_result(const AppView& app, JsonView result);
  // Adds the application's conditions that are errors or warnings. A condition about failed tasks is
  // replaced by the failed tasks.
  void add_conditions(const AppView& app);
  // Adds the application's last operation, if it failed.
  void add_operation(const AppView& app);
  // Adds the degraded nodes below the resource, or else the resource's own node. With `name_source`
  // the errors name the resource.
  void add_health(const TreeView& tree, const ResourceId& id, bool name_source);

  [[nodiscard]] bool empty() const { return errors_.empty(); }
  // Appends the errors as a JSON array.
  void write(std::string& out) const;
  // Adds the errors without their times to a digest.
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
