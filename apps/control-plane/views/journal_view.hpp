#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "common/store/connection.hpp"
#include "control-plane/projection/object.hpp"
#include "control-plane/views/page.hpp"

// The journal of an Application: what is kept of the events that arrived about it and its resources.
namespace gitops::control_plane_server {

// The outcome of one delivery, as far as it is known. An event that is superseded by a later one of the same object leaves nothing, unless it
// was a milestone of the Application.
enum class DeliveryKind : std::uint8_t {
  milestone = 0,  // stored, and changed what users follow
  latest = 1,     // the last event of an object that was stored
  repeated = 2,   // arrived again after it was stored; dropped
  refused = 3     // quarantined; its reporter put the Application's uid into the event's id
};

inline constexpr std::size_t kDeliveryKeyNumbers = 3;

// Returns a slice of type ApplicationDeliverySlice, the newest delivery first.
Result<std::string> journal_slice(store::Connection& connection, std::int64_t account,
                                  const ObjectState& application, const PageWindow& window);

// Returns every statement of this file, for the test that prepares them.
std::span<const store::Statement> journal_statements();

}  // namespace gitops::control_plane_server
