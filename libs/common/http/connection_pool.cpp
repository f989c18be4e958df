#include "common/http/connection_pool.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/core/backoff.hpp"

namespace gitops::http {
namespace {

constexpr std::size_t kKeepOutput = 16 * 1024;  // capacity an idle connection may keep

}  // namespace

ConnectionPool::ConnectionPool(const Executor& executor, std::chrono::milliseconds idle_timeout,
                               std::chrono::milliseconds max_age, std::size_t max_idle_per_key)
    : idle_timeout_(idle_timeout),
      max_age_(max_age),
      max_idle_per_key_(max_idle_per_key),
      sweeper_(executor),
      random_(static_cast<std::minstd_rand::result_type>(random_seed() % 2147483646 + 1)) {}

Clock::duration ConnectionPool::random_age() {
  return std::chrono::milliseconds(std::uniform_int_distribution<std::chrono::milliseconds::rep>(
      max_age_.count() / 2, max_age_.count())(random_));
}

std::unique_ptr<Connection> ConnectionPool::take(const std::string& key) {
  const auto found = idle_.find(key);
  if (found == idle_.end()) return nullptr;
  const auto now = Clock::now();
  std::unique_ptr<Connection> connection;
  auto& queue = found->second;
  while (!queue.empty() && !connection) {
    Idle last = std::move(queue.back());
    queue.pop_back();
    const bool fresh = last.expires > now && last.connection->retire > now;
    if (fresh && !last.connection->channel->is_stale()) {
      connection = std::move(last.connection);
    } else {
      last.connection->channel->close();
    }
  }
  if (queue.empty()) idle_.erase(found);
  return connection;
}

void ConnectionPool::put(std::unique_ptr<Connection> connection) {
  const auto now = Clock::now();
  if (connection->retire == Clock::time_point())
    connection->retire = connection->made + random_age();
  connection->channel->set_deadline(kNever);
  Clock::duration idle_time = idle_timeout_;
  // Ends before the server closes the connection: a request on its way would be lost.
  if (const auto kept_for = connection->kept_for) {
    idle_time = std::min<Clock::duration>(idle_time, *kept_for - std::chrono::seconds(1));
  }
  const bool is_kept =
      max_idle_per_key_ > 0 && connection->retire > now && idle_time > Clock::duration::zero();
  if (!is_kept) return connection->channel->close();
  connection->in.release();
  if (connection->out.capacity() > kKeepOutput) connection->out = {};
  auto& queue = idle_[connection->key];
  if (queue.size() >= max_idle_per_key_) {
    queue.front().connection->channel->close();
    queue.pop_front();
  }
  queue.push_back({std::move(connection), now + idle_time});
  arm_sweeper();
}

void ConnectionPool::close_all() {
  for (auto& [key, queue] : idle_) {
    for (Idle& entry : queue) entry.connection->channel->close();
  }
  idle_.clear();
  sweeper_.cancel();
}

std::size_t ConnectionPool::size() const {
  std::size_t count = 0;
  for (const auto& [key, queue] : idle_) count += queue.size();
  return count;
}

void ConnectionPool::sweep(Clock::time_point now) {
  for (auto item = idle_.begin(); item != idle_.end();) {
    auto& queue = item->second;
    std::erase_if(queue, [now](const Idle& entry) {
      if (entry.expires > now) return false;
      entry.connection->channel->close();
      return true;
    });
    item = queue.empty() ? idle_.erase(item) : std::next(item);
  }
}

void ConnectionPool::arm_sweeper() {
  if (sweeping_ || idle_.empty()) return;
  sweeping_ = true;
  sweeper_.expires_after(idle_timeout_);
  sweeper_.async_wait([weak = weak_from_this()](const boost::system::error_code& ec) {
    const auto self = weak.lock();
    if (!self) return;
    self->sweeping_ = false;
    if (ec) return;
    self->sweep(Clock::now());
    self->arm_sweeper();
  });
}

}  // namespace gitops::http
