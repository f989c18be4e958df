#include "control-plane/intake/intake_queue.hpp"

#include <algorithm>

namespace gitops::control_plane_server {
namespace {

// Size of a batch that shows how many events the database can take.
constexpr std::size_t kFullBatch = 64;
constexpr double kNewest = 0.2;  // weight of the newest batch in the smoothed rate

}  // namespace

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

std::size_t IntakeQueue::events_before(const Account& account, std::size_t backlog) const {
  return std::min(size_, (backlog + 1) * account.runtimes.size() * accounts_.size());
}

std::optional<IntakeQueue::Refusal> IntakeQueue::refusal(std::int64_t account,
                                                         std::string_view runtime,
                                                         std::size_t bytes) const {
  const auto known = std::ranges::find(accounts_, account, &Account::number);
  if (known != accounts_.end()) {
    const auto own = std::ranges::find(known->runtimes, runtime, &Runtime::name);
    const auto backlog = own == known->runtimes.end() ? 0 : own->events.size();
    if (backlog >= limits_.max_events_per_runtime) return Refusal::runtime_is_full;
    const bool others_wait = accounts_.size() > 1;
    if (others_wait && known->bytes + bytes > limits_.max_bytes / 4) {
      return Refusal::account_is_full;
    }
    const auto most = rate_ * std::chrono::duration<double>(limits_.max_wait).count();
    if (rate_ > 0 && static_cast<double>(events_before(*known, backlog)) > most) {
      return Refusal::wait_is_long;
    }
  }
  if (size_ > 0 && bytes_ + bytes > limits_.max_bytes) return Refusal::queue_is_full;
  return std::nullopt;
}

void IntakeQueue::push(QueuedEvent event) {
  auto& account = account_of(event.incoming.account);
  auto& runtime = runtime_of(account, event.incoming.event.state.key.runtime);
  account.bytes += event.bytes;
  bytes_ += event.bytes;
  ++size_;
  runtime.events.push_back(std::move(event));
}

void IntakeQueue::note_stored(std::size_t events, std::chrono::nanoseconds time) {
  if (time.count() <= 0) return;
  const auto rate = static_cast<double>(events) / std::chrono::duration<double>(time).count();
  const bool shows_more = rate_ > 0 && rate > rate_;
  if (events < kFullBatch && !shows_more) return;
  rate_ = rate_ > 0 ? rate_ + (rate - rate_) * kNewest : rate;
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
