#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "common/core/lru_cache.hpp"
#include "control-plane/storage/event_store.hpp"

namespace gitops::control_plane_server {

// Counts how often the storing of an event fails, to tell an event that can never be stored from an outage: a failure
// counts only when another event was stored since the last one. Remembers some thousand events. Pure; one thread.
class EventFailures {
 public:
  enum class Verdict {
    unknown,    // no other event was stored since its last failure: the database may be the cause
    of_event,   // other events are stored
    permanent,  // the event failed kMaxTries times while other events were stored
  };
  static constexpr int kMaxTries = 5;

  // Counts a failure of an event that was stored alone.
  Verdict add(const Incoming& incoming);
  // Notes that an event was stored.
  void add_stored(const Incoming& incoming);

 private:
  struct Failure {
    int tries = 1;
    std::uint64_t stored_before = 0;  // stored_ at the last failure
  };
  LruCache<Failure> failures_{std::size_t{1024} * 1024};
  std::uint64_t stored_ = 0;  // events so far
};

}  // namespace gitops::control_plane_server
