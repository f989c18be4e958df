#include "control-plane/intake/intake_queue.hpp"

#include <algorithm>

namespace gitops::control_plane_server {

IntakeQueue::Account& IntakeQueue::account_of(std::int64_t number) {
  const auto known = std::ranges::find(accounts_, number, &Account::number);
  if (known != accounts_.end()) return *known;
  return accounts_.emplace_back(Account{.number = number});
}

IntakeQueue::Runtime& IntakeQueue::runtime_of(Account& account, const std::string& name) {
  const auto known = std::ranges::find(account.runtimes, name, &Runtime::name);
  if (known != account.runtimes.end()) return *known;
  return account.runtimes.emplace_back(Runtime{.name = name});
}

std::optional<IntakeQueue::Refusal> IntakeQueue::push(QueuedEvent event) {
  const auto number = event.incoming.account;
  const auto& name = event.incoming.event.state.key.runtime;
  const auto known = std::ranges::find(accounts_, number, &Account::number);
  if (known != accounts_.end()) {
    const auto runtime = std::ranges::find(known->runtimes, name, &Runtime::name);
    if (runtime != known->runtimes.end() &&
        runtime->events.size() >= limits_.max_events_per_runtime) {
      return Refusal::runtime_is_full;
    }
    const bool others_wait = accounts_.size() > 1;
    if (others_wait && known->bytes + event.bytes > limits_.max_bytes / 4) {
      return Refusal::account_is_full;
    }
  }
  if (size_ > 0 && bytes_ + event.bytes > limits_.max_bytes) return Refusal::queue_is_full;
  auto& account = account_of(number);
  account.bytes += event.bytes;
  bytes_ += event.bytes;
  ++size_;
  runtime_of(account, name).events.push_back(std::move(event));
  return std::nullopt;
}

std::vector<QueuedEvent> IntakeQueue::take_batch() {
  std::vector<QueuedEvent> batch;
  std::size_t batch_bytes = 0;
  while (!accounts_.empty() && batch.size() < limits_.max_batch_events) {
    auto& account = accounts_.front();
    auto& runtime = account.runtimes.front();
    auto& event = runtime.events.front();
    if (!batch.empty() && batch_bytes + event.bytes > limits_.max_batch_bytes) break;
    batch_bytes += event.bytes;
    bytes_ -= event.bytes;
    account.bytes -= event.bytes;
    --size_;
    batch.push_back(std::move(event));
    runtime.events.pop_front();
    // The account and the runtime move to the end of their lists, or are removed when empty.
    auto& runtimes = account.runtimes;
    if (runtime.events.empty()) {
      runtimes.pop_front();
    } else {
      runtimes.splice(runtimes.end(), runtimes, runtimes.begin());
    }
    if (runtimes.empty()) {
      accounts_.pop_front();
    } else {
      accounts_.splice(accounts_.end(), accounts_, accounts_.begin());
    }
  }
  return batch;
}

}  // namespace gitops::control_plane_server
