#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control-plane/storage/event_store.hpp"

namespace gitops::control_plane_server {

struct PendingEvent;

// An event that waits to be written.
struct QueuedEvent {
  Incoming incoming;
  std::size_t bytes = 0;                      // size that the queue counts
  std::shared_ptr<PendingEvent> waiter = {};  // the waiting request; null in tests of the queue
};

// The queue of events between the requests and the writer. It is bounded, and fair by account, then by runtime, so that
// the backlog of one runtime does not delay the others. Pure: no clock and no I/O. Loop thread only.
class IntakeQueue {
 public:
  struct Limits {
    std::size_t max_bytes = 64UL * 1024 * 1024;
    std::size_t max_events_per_runtime = 256;
    std::size_t max_batch_events = 512;
    std::size_t max_batch_bytes = 4UL * 1024 * 1024;
  };
  explicit IntakeQueue(Limits limits) : limits_(limits) {}

  // The reason for which an event is refused now; the reporter sends it again.
  enum class Refusal { runtime_is_full, account_is_full, queue_is_full };
  // Queues an event, or returns the reason for its refusal. An account may use a quarter of the bytes while other
  // accounts have queued events, and all of them otherwise. An empty queue accepts an event of any size.
  std::optional<Refusal> push(QueuedEvent event);
  // Removes and returns the queued events, up to the limits of a batch: one event of each runtime of each account in
  // turn. The events of one runtime stay in order.
  std::vector<QueuedEvent> take_batch();

  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  struct Runtime {
    std::string name;
    std::deque<QueuedEvent> events = {};
  };
  struct Account {
    std::int64_t number = 0;
    std::size_t bytes = 0;
    std::list<Runtime> runtimes = {};  // the next one first
  };
  Account& account_of(std::int64_t number);
  static Runtime& runtime_of(Account& account, const std::string& name);

  Limits limits_;
  std::list<Account> accounts_;  // the next one first; none is empty
  std::size_t size_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace gitops::control_plane_server
