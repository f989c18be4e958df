#include "common/proxy/server.hpp"

#include <random>
#include <ranges>
#include <utility>

#include "common/core/log.hpp"
#include "common/net/address_list.hpp"
#include "common/net/idlest.hpp"
#include "common/net/tls_channel.hpp"

namespace gitops::proxy {
namespace {

const Log kLog("proxy");

}  // namespace

// Connection of one client, from its acceptance.
class Server::Connection {
 public:
  Connection(Server& server, std::unique_ptr<net::Channel> channel, PeerInfo peer)
      : server_(server),
        channel_(std::move(channel)),
        peer_(std::move(peer)),
        use_(peer_.use),
        place_(server.connections_.insert(server.connections_.end(), this)) {
    ++server_.options_.totals->connections;
    ++use_->connections;
  }
  ~Connection() {
    driver_.reset();
    server_.connections_.erase(place_);
    --server_.options_.totals->connections;
    --use_->connections;
    server_.ended_.notify_all();
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  Task<> run(bool handshake) {
    if (handshake && !co_await start_tls()) co_return;
    driver_.emplace(server_.context_, std::move(channel_), std::move(peer_));
    co_await driver_->run();
  }

  // Returns whether no request, part of its head, or TLS handshake is in flight.
  [[nodiscard]] bool waits() const {
    return driver_ ? driver_->waits() : channel_ && channel_->is_open();
  }
  [[nodiscard]] Clock::time_point waits_since() const {
    return driver_ ? driver_->waits_since() : accepted_;
  }
  void give_way() { driver_ ? driver_->close() : channel_->close(); }
  [[nodiscard]] const PeerUse* use() const { return use_.get(); }
  void close_if_idle() {
    if (channel_) channel_->close();
    if (driver_ && driver_->idle()) driver_->close();
  }

 private:
  Task<bool> start_tls() {
    auto context = server_.tls_->get(Clock::now());
    // listen() has validated the context; only valid ones replace it later.
    if (!context) co_return false;
    auto tls = std::make_unique<net::TlsChannel>(std::move(channel_), std::move(*context));
    auto& handshaking = *tls;
    channel_ = std::move(tls);
    channel_->set_deadline(server_.context_.reactor.now() + server_.options_.head_timeout);
    const bool done = (co_await handshaking.handshake_server()).has_value();
    channel_->set_deadline(kNever);
    co_return done;
  }

  Server& server_;
  std::unique_ptr<net::Channel> channel_;  // until the driver has it
  PeerInfo peer_;
  const std::shared_ptr<PeerUse> use_;
  std::optional<Driver> driver_;
  const Clock::time_point accepted_ = Clock::now();
  std::list<Connection*>::iterator place_;
};

Server::Server(const Executor& executor, ServerOptions options, Policy policy)
    : options_(std::move(options)),
      context_(net::Reactor::of(executor), std::move(policy)),
      listener_(executor),
      tasks_(executor),
      ended_(executor) {
  if (options_.tls) tls_.emplace(net::TlsContext::Role::server, *options_.tls);
  context_.idle_timeout = options_.idle_timeout;
  auto& transactions = context_.transactions;
  transactions.limits = options_.limits;
  transactions.head_timeout = options_.head_timeout;
  transactions.totals = options_.totals;
  context_.tracer = options_.tracer;
  std::random_device random;
  transactions.id_prefix = std::uint64_t{random()} << 32U | random();
}

Server::~Server() = default;

Result<void> Server::listen() {
  if (tls_) {
    if (auto context = tls_->get(Clock::now()); !context) {
      return std::unexpected(context.error());
    }
  }
  const auto port = listener_.listen(options_.listen);
  if (!port) return std::unexpected(port.error());
  port_ = *port;
  tasks_.spawn("accept", [this] {
    return listener_.run(
        [this](std::unique_ptr<net::Channel> channel, const asio::ip::address& address) {
          accepted(std::move(channel), address);
        });
  });
  return {};
}

void Server::accepted(std::unique_ptr<net::Channel> channel, const asio::ip::address& address) {
  PeerInfo peer;
  peer.address = net::plain_address(address);
  peer.text = peer.address.to_string();
  peer.tls = tls_.has_value();
  serve(std::move(channel), std::move(peer), tls_.has_value());
}

void Server::adopt(std::unique_ptr<net::Channel> channel, PeerInfo peer) {
  serve(std::move(channel), std::move(peer), false);
}

bool Server::make_room(const PeerUse& peer) {
  const auto& totals = *options_.totals;
  const auto& limits = totals.limits;
  const bool peer_is_full = peer.connections >= limits.max_connections_per_peer;
  if (!peer_is_full && totals.connections < limits.max_connections) return true;
  const auto limit = peer_is_full ? limits.max_connections_per_peer : limits.max_connections;
  const bool made = net::close_idlest(connections_, limit, [&](const Connection& connection) {
    return !peer_is_full || connection.use() == &peer;
  });
  if (const auto verdict = repeated_.check("limit", Clock::now()); verdict.pass) {
    kLog.warning(made ? "too many connections; idle ones are closed for new ones"
                      : "too many connections; new ones are closed",
                 {{"limit", std::uint64_t{limit}},
                  {"of", peer_is_full ? "one address" : "all clients"},
                  {"suppressed", verdict.suppressed}});
  }
  return made;
}

void Server::serve(std::unique_ptr<net::Channel> channel, PeerInfo peer, bool handshake) {
  if (!peer.use) peer.use = options_.totals->of(peer.address);
  if (!make_room(*peer.use)) return;
  auto connection = std::make_shared<Connection>(*this, std::move(channel), std::move(peer));
  tasks_.spawn("connection", [connection = std::move(connection), handshake] {
    return connection->run(handshake);
  });
}

void Server::drain() {
  wind_down();
  if (std::exchange(is_drained_, true)) return;
  const auto before = connections_.size();  // new ones are appended
  listener_.accept_waiting([this](auto channel, const asio::ip::address& address) {
    accepted(std::move(channel), address);
  });
  listener_.close();
  for (Connection* connection : connections_ | std::views::take(before)) {
    connection->close_if_idle();
  }
}

Task<> Server::stop(Deadline deadline) {
  drain();
  while (!connections_.empty() && Clock::now() < deadline) co_await ended_.wait(deadline);
  tasks_.cancel();
  co_await tasks_.join();
}

}  // namespace gitops::proxy
