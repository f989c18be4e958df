#pragma once

#include <optional>
#include <string>

#include "common/core/time.hpp"
#include "event-reporter/event/app_view.hpp"
#include "event-reporter/event/snapshot.hpp"

namespace gitops::reporter {

struct Commit {
  std::string author;
  std::string message;
  std::optional<WallTime> date;
};

// The commit of the main source that the application was synced to; absent when it is not known.
std::optional<Commit> main_commit(const AppSnapshot& snapshot);

// The Application's text with its type, and with what is known of its commits in labels and
// annotations. `commit` is its main_commit().
std::string annotated_application(const AppSnapshot& snapshot, const std::optional<Commit>& commit);

}  // namespace gitops::reporter
