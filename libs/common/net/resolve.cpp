#include "common/net/resolve.hpp"

#include <cerrno>
#include <cstring>
#include <list>
#include <netdb.h>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <sys/socket.h>
#include <system_error>

namespace gitops::net {
namespace {

using Addresses = std::vector<asio::ip::address>;

constexpr auto kKeepAnswer = std::chrono::seconds(30);
constexpr auto kKeepFailure = std::chrono::seconds(2);
constexpr std::size_t kMaxHosts = 1'000;   // remembered; expired ones go first
constexpr std::size_t kMaxAddresses = 64;  // of one host

// Blocks; runs on the pool.
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

std::vector<asio::ip::tcp::endpoint> with_port(const Addresses& addresses, std::uint16_t port) {
  std::vector<asio::ip::tcp::endpoint> endpoints;
  endpoints.reserve(addresses.size());
  for (const auto& address : addresses) endpoints.emplace_back(address, port);
  return endpoints;
}

}  // namespace

struct Resolver::Entry {
  bool pending = false;
  Clock::time_point expires{};
  Result<Addresses> answer{};
  std::list<Timer*> waiters;
};

struct Resolver::State {
  Executor executor;
  asio::thread_pool& pool;
  // Shared, since a waiter may hold an entry that was forgotten.
  std::map<std::string, std::shared_ptr<Entry>> entries;

  void make_room(Clock::time_point now) {
    if (entries.size() < kMaxHosts) return;
    std::erase_if(entries, [&](const auto& item) {
      return !item.second->pending && item.second->expires <= now;
    });
    if (entries.size() >= kMaxHosts) {
      std::erase_if(entries, [](const auto& item) { return !item.second->pending; });
    }
  }

  static void start(const std::shared_ptr<State>& self, const std::string& host,
                    const std::shared_ptr<Entry>& entry) {
    entry->pending = true;
    asio::post(self->pool, [host, executor = self->executor, entry] {
      auto answer = look_up(host);
      asio::post(executor, [entry, answer = std::move(answer)]() mutable {
        entry->pending = false;
        entry->expires =
            Clock::now() + (answer ? Clock::duration(kKeepAnswer) : Clock::duration(kKeepFailure));
        entry->answer = std::move(answer);
        for (Timer* waiter : entry->waiters) waiter->cancel();
      });
    });
  }
};

Resolver::Resolver(const Executor& executor, asio::thread_pool& pool)
    : state_(std::make_shared<State>(State{executor, pool, {}})) {}
Resolver::~Resolver() = default;

void Resolver::forget(const std::string& host) {
  state_->entries.erase(host);
}

Task<Result<std::vector<asio::ip::tcp::endpoint>>> Resolver::resolve(std::string host,
                                                                     std::uint16_t port,
                                                                     Deadline deadline) {
  boost::system::error_code ec;
  if (const auto address = asio::ip::make_address(host, ec); !ec) {
    co_return with_port({address}, port);
  }
  const auto now = Clock::now();
  const auto known = state_->entries.find(host);
  std::shared_ptr<Entry> entry = known == state_->entries.end() ? nullptr : known->second;
  if (!entry || (!entry->pending && entry->expires <= now)) {
    state_->make_room(now);
    entry = std::make_shared<Entry>();
    state_->entries[host] = entry;
    State::start(state_, host, entry);
  }
  if (entry->pending) {
    Timer timer(state_->executor, deadline);
    const auto place = entry->waiters.insert(entry->waiters.end(), &timer);
    struct Leave {
      Entry& entry;
      std::list<Timer*>::iterator place;
      ~Leave() { entry.waiters.erase(place); }
    } leave{*entry, place};
    co_await timer.async_wait(asio::redirect_error(use_task, ec));
    if ((co_await asio::this_coro::cancellation_state).cancelled() !=
        asio::cancellation_type::none) {
      throw boost::system::system_error(asio::error::operation_aborted);
    }
    if (entry->pending) {
      co_return fail(ErrorCode::timeout, "lookup of " + host + " took too long");
    }
  }
  if (!entry->answer) co_return std::unexpected(entry->answer.error());
  co_return with_port(*entry->answer, port);
}

}  // namespace gitops::net
