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
#include <string_view>
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
    std::chrono::milliseconds max_wait{700};  // expected, from note_stored()
  };
  explicit IntakeQueue(Limits limits) : limits_(limits) {}

  // The reason for which an event is refused now; the reporter sends it again.
  enum class Refusal { runtime_is_full, account_is_full, queue_is_full, wait_is_long };
  // Returns the reason for which an event of this runtime and size cannot be queued now. An account may use a quarter of
  // the bytes while other accounts have queued events, and all of them otherwise. An empty queue accepts an event of any
  // size. A runtime with a smaller backlog than others is refused later, since it waits less.
  [[nodiscard]] std::optional<Refusal> refusal(std::int64_t account, std::string_view runtime,
                                               std::size_t bytes) const;
  // Queues an event that refusal() does not refuse.
  void push(QueuedEvent event);
  // Removes and returns the queued events, up to the limits of a batch: one event of each runtime of each account in
  // turn. The events of one runtime stay in order.
  std::vector<QueuedEvent> take_batch();
  // Tells how long a batch took that was stored, from which the queue expects how long events wait. A small batch shows
  // less than the database can take, so it only raises the expected rate; else a slow time, in which few events are
  // queued, would never end.
  void note_stored(std::size_t events, std::chrono::nanoseconds time);

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
  // Returns the number of queued events that are stored before the next one of a runtime with this backlog, at most.
  [[nodiscard]] std::size_t events_before(const Account& account, std::size_t backlog) const;
  Account& account_of(std::int64_t number);
  static Runtime& runtime_of(Account& account, const std::string& name);

  Limits limits_;
  std::list<Account> accounts_;  // the next one first; none is empty
  std::size_t size_ = 0;
  std::size_t bytes_ = 0;
  double rate_ = 0;  // events per second that the database takes, smoothed; 0: not known
};

}  // namespace gitops::control_plane_server
