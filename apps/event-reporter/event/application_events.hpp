#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"
#include "common/core/time.hpp"
#include "event-reporter/event/argo_answers.hpp"
#include "event-reporter/event/error_list.hpp"
#include "event-reporter/event/event_body.hpp"
#include "event-reporter/event/read_plan.hpp"
#include "event-reporter/event/resource_state.hpp"
#include "event-reporter/event/snapshot.hpp"
#include "event-reporter/ledger/resource_id.hpp"

namespace gitops::reporter {

// The events of one application and of its resources, as of one snapshot: the digests that show
// whether an event is due, and the bodies that are posted (docs/reference/events.md). Manifests keep the text
// that was received, except for masked Secret values. Pure: no clock, no I/O.
class ApplicationEvents {
 public:
  // Makes the events; invalid_data when a response of Argo CD is not a JSON object. `scope` is that
  // of the resources' digests; resource_and_revision makes each resource due again with a new
  // revision.
  static Result<ApplicationEvents> make(Snapshot snapshot, TrackingSettings settings,
                                        DigestScope scope = DigestScope::resource);

  [[nodiscard]] std::string_view name() const { return app().name(); }
  [[nodiscard]] std::string_view ns() const { return app().ns(); }
  [[nodiscard]] std::string_view uid() const { return app().uid(); }
  [[nodiscard]] std::string_view resource_version() const {
    return app().metadata()["resourceVersion"].text();
  }
  // Returns change_digest() of the Application's text.
  [[nodiscard]] const Digest& change() const { return change_; }
  // Returns the digest of the application's own event.
  [[nodiscard]] const Digest& application_digest() const { return application_digest_; }

  struct Resource {
    ResourceId id;
    Digest digest;  // digest of its event; provisional when final_digest is set
    // The digest that the event will have after the sync. Set while the revision of a sync is not in
    // the history yet, so that events name the previous one: an event with the provisional digest is
    // due once more when the revision is known, and a resource that was acknowledged with its final
    // digest is not due.
    std::optional<Digest> final_digest{};
    // False when its state is not known (ResourceState::known): none of its events is due.
    bool known = true;
  };
  // Returns its resources, without child applications. Empty when resources_known() is false: Argo
  // CD did not respond to managed-resources, so the state of no resource is known.
  [[nodiscard]] std::span<const Resource> resources() const { return resources_; }
  [[nodiscard]] bool resources_known() const { return managed_.has_value(); }
  // Return whether Argo CD responded to resource-tree, and about the application as a resource of its
  // parent.
  [[nodiscard]] bool tree_known() const { return tree_.has_value(); }
  [[nodiscard]] bool parent_known() const { return parent_managed_.has_value(); }
  // Returns whether a resource that resources() lacks is gone. False when a response of Argo CD is
  // missing or the comparison failed; the resource may then be one that could not be read.
  [[nodiscard]] bool lists_every_resource() const {
    return managed_ && tree_ && app().was_compared();
  }

  // Return the bodies, {"data":{…}}. `now` is the event's timestamp.
  [[nodiscard]] std::string application_event(WallTime now) const;
  [[nodiscard]] std::string resource_event(std::size_t index, WallTime now) const;
  // Returns the event of a resource that the application no longer has.
  [[nodiscard]] std::string gone_event(const ResourceId& id, WallTime now) const;

 private:
  // A resource in status.resources without child applications.
  struct Entry {
    ResourceId id;
    std::string identity;
    JsonView status;
  };

  ApplicationEvents(Snapshot snapshot, TrackingSettings settings);
  Result<void> read_answers();
  void list_entries();
  void list_resources(DigestScope scope);
  [[nodiscard]] Digest digest_of_application() const;

  [[nodiscard]] const AppView& app() const { return snapshot_.app.app; }
  [[nodiscard]] bool is_child() const { return snapshot_.parent.has_value(); }
  [[nodiscard]] bool being_deleted() const { return snapshot_.gone || app().deleting(); }
  [[nodiscard]] const TreeView* known_tree() const { return tree_ ? &*tree_ : nullptr; }
  [[nodiscard]] ResourceState state_of(std::size_t index) const;
  [[nodiscard]] ResourceState own_state() const;
  [[nodiscard]] ErrorList application_errors(WallTime now) const;
  [[nodiscard]] ErrorList resource_errors(std::size_t index, const ResourceState& resource,
                                          WallTime now) const;

  Snapshot snapshot_;
  TrackingSettings settings_;
  SyncResults synced_;
  SyncResults parent_synced_;
  std::optional<TreeView> tree_;
  std::optional<ManagedView> managed_;
  std::optional<ManagedView> parent_managed_;
  AppFields managing_fields_;  // for the events of its resources
  AppFields own_fields_;       // for its own event
  ResourceState own_state_;    // the application as the object of its own event
  std::vector<Entry> entries_;
  std::vector<Resource> resources_;  // with the same indices, or empty
  Digest change_;
  Digest application_digest_{};
};

}  // namespace gitops::reporter
