#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "event-reporter/event/application_events.hpp"
#include "event-reporter/ledger/ledger_entry.hpp"

namespace gitops::reporter {

// The events of an application that are due: its state differs from the acknowledged one.
struct Difference {
  bool application = false;          // its own event is due
  std::vector<std::size_t> changed;  // indices of resources whose event is due
  std::vector<ResourceId> gone;      // acknowledged resources that the application no longer has
};
// Selects whether events that were refused for good are due.
enum class Refused { wait, retry };
// Returns the difference between a state and the entry. An entry of another uid counts as empty.
// `resources` is absent while they are not known; then none of their events is due. Pure.
[[nodiscard]] Difference diff(
    const LedgerEntry& entry, std::string_view uid, const Digest& application,
    const std::optional<std::span<const ApplicationEvents::Resource>>& resources,
    Refused refused = Refused::wait);
// Returns the deletions that are due: of the application that the entry belongs to, and of its
// resources.
[[nodiscard]] Difference diff_gone(const LedgerEntry& entry, Refused refused = Refused::wait);

}  // namespace gitops::reporter
