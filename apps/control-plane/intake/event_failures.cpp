#include "control-plane/intake/event_failures.hpp"

namespace gitops::control_plane_server {
namespace {

// Returns the name of an event: its id where its reporter sends one, else its object and content.
std::string name_of(const Incoming& incoming) {
  const auto& state = incoming.event.state;
  const auto& key = state.key;
  std::string name = std::to_string(incoming.account) + '\n' + key.runtime + '\n';
  if (!state.event_id.empty()) return name + state.event_id;
  for (const auto* part : {&key.owner_uid, &key.cluster, &key.group, &key.kind,
                           &key.object_namespace, &key.name, &state.body_digest}) {
    name += *part + '\n';
  }
  return name;
}

}  // namespace

EventFailures::Verdict EventFailures::add(const Incoming& incoming) {
  auto name = name_of(incoming);
  auto* const known = failures_.find(name);
  if (known == nullptr) {
    failures_.put(std::move(name), {.stored_before = stored_}, sizeof(Failure));
    return Verdict::unknown;
  }
  if (known->stored_before == stored_) return Verdict::unknown;
  known->stored_before = stored_;
  if (known->tries < kMaxTries) ++known->tries;
  return known->tries < kMaxTries ? Verdict::of_event : Verdict::permanent;
}

void EventFailures::add_stored(const Incoming& incoming) {
  ++stored_;
  if (failures_.size() > 0) failures_.erase(name_of(incoming));
}

}  // namespace gitops::control_plane_server
