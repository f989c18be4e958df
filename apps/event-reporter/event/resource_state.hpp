#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "event-reporter/event/app_view.hpp"
#include "event-reporter/event/argo_answers.hpp"
#include "event-reporter/ledger/resource_id.hpp"

namespace gitops::reporter {

struct Health {
  std::string status;
  std::string message;
};
// Reads the members "status" and "message"; empty when they are absent.
Health read_health(JsonView health);

// The state of one resource as events show it. Manifests are JSON text, borrowed from the Application
// and from Argo CD's responses.
struct ResourceState {
  ResourceId id;
  std::string sync_status;
  std::optional<Health> health;
  std::string_view desired;  // empty: not in Git, or to be deleted
  std::string_view actual;   // empty: does not exist, or to be deleted
  std::string_view object;   // the live manifest, else the desired one, else its name; never empty
  // False when Argo CD does not report the resource's health, or could not read its live manifest.
  // No event is made for such a resource.
  bool known = true;
  // The file in Git that holds the desired manifest, from the root of its repository, and the file's
  // text; empty when they are not known.
  std::string_view path = {};
  std::string_view git_text = {};
  // A manifest that was made by this process. `actual` and `object` may borrow from it.
  std::shared_ptr<const std::string> made = {};

  // Stores the manifest in `made` and returns a view of it.
  std::string_view keep(std::string manifest);
};

// Returns the state of a resource. `status` is its entry in status.resources of `app`, `identity`
// its identity; `tree` is null when Argo CD did not provide it.
ResourceState resource_state(JsonView status, const std::string& identity, const AppView& app,
                             const ManagedView& managed, const TreeView* tree,
                             bool app_being_deleted);
// Returns the health; absent when Argo CD does not report it, and when the resource has none.
std::optional<Health> resource_health(JsonView status, const std::string& identity,
                                      const TreeView* tree);

}  // namespace gitops::reporter
