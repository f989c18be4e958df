#pragma once

#include <string>
#include <string_view>

#include "event-reporter/ledger/digest.hpp"
#include "event-reporter/ledger/resource_id.hpp"
#include "event-reporter/ledger/sequence.hpp"

namespace gitops::reporter {

// Returns the id of an event (docs/reference/events.md, "Ids"): "<uid>/<part>/<sequence>/<content>", where the
// content is the beginning of its digest, or "gone" for kGone. `uid` is that of the application
// (mode `resource`: of the object).
[[nodiscard]] std::string event_id(std::string_view uid, std::string_view part, Sequence sequence,
                                   const Digest& content);

// The part of the application itself.
inline constexpr std::string_view kApplicationPart = "application";
// Returns the part of a resource: "group:version:kind:namespace:name", percent-encoded, because
// names come from the cluster.
[[nodiscard]] std::string part_of(const ResourceId& id);

}  // namespace gitops::reporter
