#pragma once

#include <optional>
#include <string>
#include <vector>

#include "event-reporter/event/app_view.hpp"

namespace gitops::reporter {

// A revision that an application was synced to, and what Argo CD knows about it.
struct Revision {
  std::string revision;
  std::string metadata;  // JSON text of its RevisionMetadata; empty when it was not asked
};

// What was read about one application. An answer that could not be had is absent.
struct AppSnapshot {
  AppView app;
  std::optional<std::string> managed = {};  // answer of managed-resources
  std::optional<std::vector<Revision>> sync_revisions = {};
  std::optional<std::vector<Revision>> change_revisions = {};
};

// What the events of one application are made from.
struct Snapshot {
  AppSnapshot app;
  std::optional<std::string> tree = {};  // answer of resource-tree
  std::optional<AppSnapshot> parent = {};
  bool gone = false;  // the Application does not exist any more; `app` is its last known state
};

}  // namespace gitops::reporter
