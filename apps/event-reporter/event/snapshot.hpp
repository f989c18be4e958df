#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "event-reporter/event/app_view.hpp"
#include "event-reporter/event/git_files.hpp"
#include "event-reporter/ledger/digest.hpp"

namespace gitops::reporter {

// A revision that an application was synced to, with Argo CD's metadata about it.
struct Revision {
  std::string revision;
  std::string metadata;  // JSON text of its RevisionMetadata; empty when there is none, or not read
  bool is_unknown = false;  // it is a commit whose metadata could not be read
};

// An application and Argo CD's responses about it. A response that could not be read is absent.
struct AppSnapshot {
  AppView app;
  std::optional<std::string> managed = {};  // response of managed-resources
  std::optional<std::vector<Revision>> sync_revisions = {};
  std::optional<std::vector<Revision>> change_revisions = {};
};

// All inputs of the events of one application.
struct Snapshot {
  AppSnapshot app;
  std::optional<std::string> tree = {};  // response of resource-tree
  std::optional<AppSnapshot> parent = {};
  std::optional<Digest> change =
      {};  // change_digest() of the Application's text; absent: not known
  std::shared_ptr<const GitFiles> git_files = {};  // files of its source; null: not known
  bool gone = false;           // the Application was deleted; `app` is its tombstone
  bool lacks_commits = false;  // the metadata of a commit could not be read
};

}  // namespace gitops::reporter
