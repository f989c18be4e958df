#include "common/net/resolve.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <netdb.h>
#include <system_error>
#include <tuple>
#include <utility>

#include <sys/socket.h>

namespace gitops::net {
namespace {

constexpr auto kKeepAnswer = std::chrono::seconds(30);
constexpr auto kKeepFailure = std::chrono::seconds(2);
constexpr auto kServeOn = std::chrono::minutes(5);    // use of an old result
constexpr auto kTimeLimit = std::chrono::seconds(1);  // wait while there is an old result
constexpr std::size_t kMaxAddresses = 64;             // of one host
// Minimum time between two calls of look_again() that take effect at once. A busy program tries a
// peer that is down a thousand times a second.
constexpr auto kLookAgainInterval = std::chrono::seconds(1);

// Returns the number of a client's lanes; lookups of one lane run one at a time.
std::size_t lanes_per_client(const Resolver::Options& options) {
  return std::max<std::size_t>(1, options.threads / 2);
}

}  // namespace

Result<Addresses> look_up(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* list = nullptr;
  const int status = ::getaddrinfo(host.c_str(), nullptr, &hints, &list);
  if (status != 0) {
    const bool unknown = status == EAI_NONAME || status == EAI_NODATA;
    const std::string why =
        status == EAI_SYSTEM ? std::generic_category().message(errno) : gai_strerror(status);
    return fail(unknown ? ErrorCode::not_found : ErrorCode::unavailable,
                "lookup of " + host + " failed: " + (unknown ? "no such host" : why));
  }
  Addresses addresses;
  for (const addrinfo* entry = list; entry != nullptr && addresses.size() < kMaxAddresses;
       entry = entry->ai_next) {
    asio::ip::tcp::endpoint endpoint;
    if (entry->ai_addrlen > endpoint.capacity()) continue;
    std::memcpy(endpoint.data(), entry->ai_addr, entry->ai_addrlen);
    addresses.push_back(endpoint.address());
  }
  ::freeaddrinfo(list);
  if (addresses.empty())
    return fail(ErrorCode::unavailable, "lookup of " + host + " gave no address");
  return addresses;
}

// Cache entry of a host. Guarded by the state's mutex.
struct Resolver::Entry {
  Result<Addresses> answer = fail(ErrorCode::unavailable, "not looked up yet");
  Clock::time_point fresh_until{};
  Clock::time_point may_look_again_at{};
  Addresses good;  // last good result
  Clock::time_point good_until{};
  // State of the queued or running lookup.
  bool pending = false;
  bool begun = false;
  std::stop_source stop{std::nostopstate};
  // Clients with this name in their queues: a client must not wait for the names of another one.
  std::vector<LookupClient> queued_for;
  std::vector<std::shared_ptr<Wakeup>> waiters;

  [[nodiscard]] bool has_good(Clock::time_point now) const { return now < good_until; }
  [[nodiscard]] Clock::time_point useful_until() const { return std::max(fresh_until, good_until); }
  // Returns the best result. "No such host" is a result; any other failure has no information about
  // the host.
  [[nodiscard]] Result<Addresses> best(Clock::time_point now) const {
    const bool known = answer || answer.error().code == ErrorCode::not_found;
    if (known || !has_good(now)) return answer;
    return good;
  }
};

class Resolver::State {
 public:
  explicit State(Options options) : options_(std::move(options)) {}

  // Either a result, or an entry to wait for that contains the caller's wakeup.
  struct Found {
    std::optional<Result<Addresses>> answer;
    std::shared_ptr<Entry> entry;
    bool may_serve_on = false;
  };
  static Found find(const std::shared_ptr<State>& self, WorkerPool& pool, const std::string& host,
                    const LookupClient& client, const std::shared_ptr<Wakeup>& waiter);
  // Ends the caller's wait. Returns true if no caller is left, so that the lookup need not begin.
  bool leave(const std::string& host, const std::shared_ptr<Entry>& entry,
             const std::shared_ptr<Wakeup>& waiter);
  [[nodiscard]] Result<Addresses> best(const Entry& entry);
  void look_again(const std::string& host);
  void note(const Endpoint& endpoint, bool works);
  // Returns the endpoints of a result in the order of attempts.
  [[nodiscard]] Result<Endpoints> endpoints(const Result<Addresses>& answer, std::uint16_t port);

 private:
  static Result<void> start(const std::shared_ptr<State>& self, WorkerPool& pool,
                            const std::string& host, const std::shared_ptr<Entry>& entry,
                            const LookupClient& client);
  // Returns the lane of the lookup in the pool.
  [[nodiscard]] std::string lane(const std::string& host, const LookupClient& client) const;
  void look_up(const std::string& host, Entry& entry, const std::stop_token& stop);
  void make_room(Clock::time_point now);

  const Options options_;
  std::mutex mutex_;
  // Shared, since a waiter or a lookup may hold an entry that was evicted.
  std::map<std::string, std::shared_ptr<Entry>> entries_;
  FailedEndpoints failed_;
};

Resolver::State::Found Resolver::State::find(const std::shared_ptr<State>& self, WorkerPool& pool,
                                             const std::string& host, const LookupClient& client,
                                             const std::shared_ptr<Wakeup>& waiter) {
  const std::lock_guard lock(self->mutex_);
  const auto now = Clock::now();
  const auto known = self->entries_.find(host);
  if (known == self->entries_.end()) self->make_room(now);
  const auto entry = known == self->entries_.end() ? std::make_shared<Entry>() : known->second;
  if (!entry->pending) {
    if (now < entry->fresh_until) return Found{.answer = entry->best(now), .entry = {}};
    entry->pending = entry->begun = false;
    entry->stop = std::stop_source();
    entry->queued_for.clear();
    if (auto started = start(self, pool, host, entry, client); !started) {
      if (entry->has_good(now)) return Found{.answer = entry->good, .entry = {}};
      return Found{.answer = std::unexpected(std::move(started.error())), .entry = {}};
    }
    entry->pending = true;
    self->entries_[host] = entry;
  } else if (!entry->begun &&
             std::ranges::find(entry->queued_for, client) == entry->queued_for.end()) {
    // Otherwise the lookup waits for its turn in the queues of other clients.
    std::ignore = start(self, pool, host, entry, client);
  }
  entry->waiters.push_back(waiter);
  return {.answer = {}, .entry = entry, .may_serve_on = entry->has_good(now)};
}

std::string Resolver::State::lane(const std::string& host, const LookupClient& client) const {
  if (!client || options_.max_queued_per_client == 0) return {};
  const auto identity = reinterpret_cast<std::uintptr_t>(client.get());
  return std::to_string(identity) + "/" +
         std::to_string(std::hash<std::string>{}(host) % lanes_per_client(options_));
}

Result<void> Resolver::State::start(const std::shared_ptr<State>& self, WorkerPool& pool,
                                    const std::string& host, const std::shared_ptr<Entry>& entry,
                                    const LookupClient& client) {
  auto queued = pool.submit(
      entry->stop,
      // The client's address is unique while the job holds the client.
      [self, host, entry, client, hold = Clock::Hold()](const std::stop_token& asked_to_stop) {
        self->look_up(host, *entry, asked_to_stop);
      },
      self->lane(host, client));
  if (!queued) return fail("lookup of " + host, std::move(queued.error()));
  entry->queued_for.push_back(client);
  return {};
}

void Resolver::State::look_up(const std::string& host, Entry& entry, const std::stop_token& stop) {
  Result<Addresses> answer = fail(ErrorCode::unavailable, "lookup of " + host + " was given up");
  bool begins = false;
  {
    const std::lock_guard lock(mutex_);
    if (!entry.pending || entry.begun) return;  // it ran earlier, from another queue
    begins = entry.begun = !stop.stop_requested();
  }
  if (begins) answer = options_.look_up(host);

  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  entry.pending = false;
  if (answer) {
    entry.fresh_until = now + kKeepAnswer;
    entry.good = *answer;
    entry.good_until = now + kServeOn;
  } else {
    entry.fresh_until = begins ? now + kKeepFailure : now;
    if (answer.error().code == ErrorCode::not_found) entry.good_until = {};
  }
  entry.answer = std::move(answer);
  for (const auto& waiter : entry.waiters) waiter->ring();
}

bool Resolver::State::leave(const std::string& host, const std::shared_ptr<Entry>& entry,
                            const std::shared_ptr<Wakeup>& waiter) {
  const std::lock_guard lock(mutex_);
  std::erase(entry->waiters, waiter);
  if (!entry->waiters.empty() || !entry->pending || entry->begun) return false;
  entry->stop.request_stop();
  // Replaces the entry, so that later callers do not wait for this lookup.
  const auto known = entries_.find(host);
  if (known != entries_.end() && known->second == entry) {
    auto next = std::make_shared<Entry>();
    next->good = entry->good;
    next->good_until = entry->good_until;
    known->second = std::move(next);
  }
  return true;
}

Result<Addresses> Resolver::State::best(const Entry& entry) {
  const std::lock_guard lock(mutex_);
  return entry.best(Clock::now());
}

void Resolver::State::look_again(const std::string& host) {
  const std::lock_guard lock(mutex_);
  const auto known = entries_.find(host);
  if (known == entries_.end()) return;
  auto& entry = *known->second;
  const auto now = Clock::now();
  entry.fresh_until = std::min(entry.fresh_until, std::max(now, entry.may_look_again_at));
  if (entry.fresh_until <= now) entry.may_look_again_at = now + kLookAgainInterval;
}

void Resolver::State::note(const Endpoint& endpoint, bool works) {
  const std::lock_guard lock(mutex_);
  failed_.note(endpoint, works, Clock::now());
}

Result<Endpoints> Resolver::State::endpoints(const Result<Addresses>& answer, std::uint16_t port) {
  if (!answer) return std::unexpected(answer.error());
  Endpoints endpoints;
  endpoints.reserve(answer->size());
  for (const auto& address : *answer) endpoints.emplace_back(address, port);
  const std::lock_guard lock(mutex_);
  return attempt_order(std::move(endpoints), failed_, Clock::now());
}

void Resolver::State::make_room(Clock::time_point now) {
  if (entries_.size() < options_.max_names) return;
  const auto is_old = [now](const auto& item) {
    return !item.second->pending && item.second->useful_until() <= now;
  };
  if (std::erase_if(entries_, is_old) > 0) return;
  auto oldest = entries_.end();
  for (auto it = entries_.begin(); it != entries_.end(); ++it) {
    if (it->second->pending) continue;
    if (oldest == entries_.end() || it->second->useful_until() < oldest->second->useful_until()) {
      oldest = it;
    }
  }
  if (oldest != entries_.end()) entries_.erase(oldest);
}

Resolver::Resolver(Metrics& metrics, Options options)
    : state_(std::make_shared<State>(options)),
      pool_(std::make_shared<WorkerPool>(
          WorkerPool::Options{
              .name = options.name,
              .threads = options.threads,
              .max_queued = options.max_queued,
              .max_per_key = options.max_queued_per_client / lanes_per_client(options)},
          metrics)) {}

Resolver::~Resolver() = default;

void Resolver::look_again(const std::string& host) {
  state_->look_again(host);
}

void Resolver::note(const Endpoint& endpoint, bool works) {
  state_->note(endpoint, works);
}

Task<Result<Endpoints>> Resolver::resolve(std::string host, std::uint16_t port, Deadline deadline,
                                          LookupClient client) {
  boost::system::error_code error;
  if (const auto address = asio::ip::make_address(host, error); !error) {
    co_return Endpoints{Endpoint(address, port)};
  }
  const auto waiter = std::make_shared<Wakeup>(co_await asio::this_coro::executor);
  auto found = State::find(state_, *pool_, host, client, waiter);
  if (found.answer) co_return state_->endpoints(*found.answer, port);
  struct Leave {
    Leave(const Resolver& resolver, const std::string& h, std::shared_ptr<Entry> e,
          std::shared_ptr<Wakeup> w)
        : state(resolver.state_),
          pool(resolver.pool_),
          host(h),
          entry(std::move(e)),
          waiter(std::move(w)) {}
    ~Leave() {
      if (!state->leave(host, entry, waiter)) return;
      if (const auto still_there = pool.lock()) still_there->drop_stopped();
    }
    Leave(const Leave&) = delete;
    Leave& operator=(const Leave&) = delete;
    // The loop, and this object with it, may be destroyed after the resolver.
    std::shared_ptr<State> state;
    std::weak_ptr<WorkerPool> pool;
    const std::string& host;
    std::shared_ptr<Entry> entry;
    std::shared_ptr<Wakeup> waiter;
  };
  const Leave leave(*this, host, found.entry, waiter);
  const auto until = found.may_serve_on ? std::min(deadline, Clock::now() + kTimeLimit) : deadline;
  const bool answered = co_await waiter->wait(until);
  if (!answered && !found.may_serve_on) {
    co_return fail(ErrorCode::timeout, "lookup of " + host + " took too long");
  }
  co_return leave.state->endpoints(leave.state->best(*found.entry), port);
}

}  // namespace gitops::net
