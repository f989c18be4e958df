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

// Returns the commit of the main source that the application was synced to; absent when unknown.
std::optional<Commit> main_commit(const AppSnapshot& snapshot);

// Returns the Application's text with apiVersion and kind, and with its commits' metadata in labels
// and annotations. `commit` is its main_commit().
std::string annotated_application(const AppSnapshot& snapshot, const std::optional<Commit>& commit);

}  // namespace gitops::reporter
