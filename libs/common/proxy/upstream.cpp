#include "common/proxy/upstream.hpp"

#include <algorithm>
#include <limits>

#include "common/net/tls_channel.hpp"

namespace gitops::proxy {

namespace {

// Idle time after which the upstream may just be closing a connection.
constexpr auto kLongIdle = std::chrono::seconds(1);
// Generation of a connection that must not be used for a second request.
constexpr unsigned kOutdated = std::numeric_limits<unsigned>::max();

}  // namespace

Dialer tcp_dialer(net::Resolver& resolver, TcpDialerOptions options) {
  struct State {
    State(net::Resolver& r, TcpDialerOptions o) : resolver(r), options(std::move(o)) {
      if (options.tls) tls.emplace(net::TlsContext::Role::client, *options.tls);
    }
    Task<Result<std::unique_ptr<net::Channel>>> dial(Deadline deadline, net::LookupClient client) {
      std::shared_ptr<asio::ssl::context> context;
      if (tls) {
        auto loaded = tls->get(Clock::now());
        if (!loaded) co_return std::unexpected(loaded.error());
        context = std::move(*loaded);
      }
      auto channel = co_await net::connect_host(resolver, options.host, options.port,
                                                options.allowed, deadline, std::move(client));
      if (!channel || !context) co_return channel;
      const auto& name = options.tls->server_name;
      co_return co_await net::start_tls(std::move(*channel), std::move(context),
                                        name.empty() ? options.host : name, deadline);
    }
    net::Resolver& resolver;
    TcpDialerOptions options;
    std::optional<net::TlsContext> tls;
  };
  auto state = std::make_shared<State>(resolver, std::move(options));
  Dialer dialer;
  dialer.dial = [state](Deadline deadline, net::LookupClient client) {
    return state->dial(deadline, std::move(client));
  };
  if (state->tls) {
    dialer.generation = [state](Clock::time_point now) {
      (void)state->tls->get(now);  // detects rotated certificates
      return state->tls->generation();
    };
  }
  return dialer;
}

std::unique_ptr<UpstreamConnection> Upstream::take() {
  if (idle_.empty()) return nullptr;
  const auto now = idle_.back()->channel->reactor().now();
  const auto current = generation(now);
  while (!idle_.empty()) {
    auto connection = std::move(idle_.back());
    idle_.pop_back();
    if (now > connection->usable_until || connection->generation != current) continue;
    // Checks only likely candidates: reading from every connection before its use would cost a
    // twentieth of a request's CPU.
    const bool look = now - connection->idle_since >= kLongIdle || !connection->channel->is_quiet();
    if (look && connection->channel->is_stale()) continue;
    return connection;
  }
  return nullptr;
}

Task<Result<std::unique_ptr<UpstreamConnection>>> Upstream::connect(net::LookupClient client) {
  const auto before = generation(Clock::now());
  auto channel = co_await dialer_.dial(deadline_after(options_.connect_timeout), std::move(client));
  if (!channel) co_return std::unexpected(channel.error());
  auto connection = std::make_unique<UpstreamConnection>(std::move(*channel));
  // Certificates may have rotated meanwhile.
  const auto current = generation(Clock::now());
  connection->generation = current == before ? current : kOutdated;
  co_return connection;
}

Clock::duration Upstream::idle_time(const UpstreamConnection& connection) const {
  if (!connection.kept_for) return options_.idle_timeout;
  return std::min<Clock::duration>(*connection.kept_for - std::chrono::seconds(1),
                                   options_.max_idle_time);
}

void Upstream::put(std::unique_ptr<UpstreamConnection> connection) {
  if (options_.max_idle == 0 || !connection->channel->is_open()) return;
  const auto idle_time = this->idle_time(*connection);
  if (idle_time <= Clock::duration::zero()) return;
  if (idle_.size() >= options_.max_idle) idle_.pop_front();
  connection->channel->set_deadline(kNever);
  connection->in.release();
  connection->idle_since = connection->channel->reactor().now();
  if (connection->generation != generation(connection->idle_since)) return;
  connection->usable_until = connection->idle_since + idle_time;
  idle_.push_back(std::move(connection));
}

void Upstream::sweep(Clock::time_point now) {
  std::erase_if(idle_, [now](const auto& connection) { return now > connection->usable_until; });
}

}  // namespace gitops::proxy
