#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "event-reporter/event/application_events.hpp"
#include "event-reporter/ledger/ledger_entry.hpp"

namespace gitops::reporter {

// What differs from what is acknowledged: the work.
struct Difference {
  bool application = false;          // its own event is due
  std::vector<std::size_t> changed;  // indices of resources whose event is due
  std::vector<ResourceId> gone;      // acknowledged, and not among the resources any more
};
// An entry of another uid counts as empty. `resources` absent: they are not known now, so nothing
// about them is due. Pure.
[[nodiscard]] Difference diff(
    const LedgerEntry& entry, std::string_view uid, const Digest& application,
    const std::optional<std::span<const ApplicationEvents::Resource>>& resources);

}  // namespace gitops::reporter
