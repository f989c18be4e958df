#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/core/error.hpp"
#include "common/core/time.hpp"
#include "event-reporter/event/digest.hpp"
#include "event-reporter/event/material.hpp"
#include "event-reporter/event/questions.hpp"
#include "event-reporter/ledger/resource_id.hpp"

namespace gitops::reporter {

// All events of one application at one moment: from what was read about it to the bodies that are
// posted (docs/events.md). Pure: no clock, no I/O. Manifests travel as the text that was received;
// only Secret values are masked. Owns the texts that it was made from.
class Report {
 public:
  // Fails when the Application, or an answer of Argo CD, is not the JSON it should be.
  // `revision_counts`: a new revision makes every resource another one than before.
  static Result<Report> read(Material material, TrackingSettings settings,
                             bool revision_counts = false);
  ~Report();
  Report(Report&&) noexcept;
  Report& operator=(Report&&) noexcept;

  [[nodiscard]] std::string_view name() const;
  [[nodiscard]] std::string_view ns() const;
  [[nodiscard]] std::string_view uid() const;
  [[nodiscard]] std::string_view resource_version() const;
  // change_digest() of the Application's text.
  [[nodiscard]] const Digest& change() const;
  // The application itself as far as a receiver can see it, without times and commit details.
  [[nodiscard]] const Digest& application_digest() const;

  struct Resource {
    ResourceId id;
    Digest digest;  // of the resource's own content: without times and commit details
    // Set as long as a sync is under way whose revision is not in the history yet: then an event
    // names the revision before. `digest` is another than usual, so that what is reported now is
    // due once more afterwards; this is the usual one, and what was acknowledged with it is not
    // due.
    std::optional<Digest> settled_digest{};
  };
  // Its resources, child applications left out. `resources_known` is false when Argo CD did not
  // give the manifests: then there are none here, and none may be taken for gone.
  [[nodiscard]] std::span<const Resource> resources() const;
  [[nodiscard]] bool resources_known() const;

  // The bodies, {"data":{…}}. `now` is the event's timestamp.
  [[nodiscard]] std::string application_event(WallTime now) const;
  [[nodiscard]] std::string resource_event(std::size_t index, WallTime now) const;
  // A resource that the application had and has no more.
  [[nodiscard]] std::string gone_event(const ResourceId& id, WallTime now) const;

 private:
  struct State;
  explicit Report(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace gitops::reporter
