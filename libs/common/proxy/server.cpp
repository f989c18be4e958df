#include "common/proxy/server.hpp"

#include <cerrno>
#include <random>

#include <boost/asio/redirect_error.hpp>
#include <sys/socket.h>
#include <system_error>
#include <unistd.h>

#include "common/core/log.hpp"
#include "common/proxy/connection.hpp"
#include "common/proxy/exchange.hpp"

namespace gitops::proxy {
namespace {

using boost::system::error_code;

const Log kLog("proxy");

constexpr auto kWatchPeriod = std::chrono::seconds(1);
constexpr int kMaxAccepts = 64;
constexpr std::size_t kSpareExchanges = 1024;

}  // namespace

std::string_view to_string(ProxyFailure failure) {
  switch (failure) {
    case ProxyFailure::none:
      return "none";
    case ProxyFailure::malformed_request:
      return "malformed_request";
    case ProxyFailure::head_timeout:
      return "head_timeout";
    case ProxyFailure::body_too_large:
      return "body_too_large";
    case ProxyFailure::body_timeout:
      return "body_timeout";
    case ProxyFailure::malformed_body:
      return "malformed_body";
    case ProxyFailure::too_much_held:
      return "too_much_held";
    case ProxyFailure::no_such_host:
      return "no_such_host";
    case ProxyFailure::address_refused:
      return "address_refused";
    case ProxyFailure::connect_failed:
      return "connect_failed";
    case ProxyFailure::connect_timeout:
      return "connect_timeout";
    case ProxyFailure::answer_timeout:
      return "answer_timeout";
    case ProxyFailure::upstream_lost:
      return "upstream_lost";
    case ProxyFailure::malformed_answer:
      return "malformed_answer";
    case ProxyFailure::client_gone:
      return "client_gone";
  }
  return "unknown";
}

ProxyServer::ProxyServer(ProxyLoop& loop, ProxyOptions options, ProxyPolicy policy)
    : loop_(loop),
      options_(std::move(options)),
      policy_(std::move(policy)),
      acceptor_(loop.executor),
      tasks_(loop.executor),
      ended_(loop.executor) {
  if (options_.tls) tls_.emplace(net::TlsContext::Role::server, *options_.tls);
  std::random_device random;
  id_prefix_ = std::uint64_t{random()} << 32U | random();
}

ProxyServer::~ProxyServer() = default;

Result<void> ProxyServer::listen() {
  if (tls_) {
    if (auto context = tls_->get(Clock::now()); !context) {
      return std::unexpected(context.error());
    }
  }
  const auto port = net::listen_on(
      acceptor_,
      {.address = options_.address, .port = options_.port, .shares_port = options_.shares_port});
  if (!port) return std::unexpected(port.error());
  port_ = *port;
  acceptor_.native_non_blocking(true);
  tasks_.spawn("accept", [this] { return accept_loop(); });
  tasks_.spawn("watch clients", [this] { return watch_clients(); });
  return {};
}

// Accepts what there is, at most so many at once that the connections get their turn.
Task<> ProxyServer::accept_loop() {
  while (acceptor_.is_open()) {
    error_code ec;
    co_await acceptor_.async_wait(net::Acceptor::wait_read, asio::redirect_error(use_task, ec));
    for (int i = 0; i < kMaxAccepts && acceptor_.is_open(); ++i) {
      asio::ip::tcp::endpoint client;
      auto size = static_cast<socklen_t>(client.capacity());
      const int descriptor =
          ::accept4(acceptor_.native_handle(), client.data(), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (descriptor >= 0) {
        client.resize(size);
        accepted(descriptor, client.address());
        continue;
      }
      const int number = errno;
      if (number == EAGAIN || number == EWOULDBLOCK) break;
      if (number == ECONNABORTED || number == EINTR) continue;
      // Out of descriptors or memory: wait instead of spinning.
      if (const auto verdict = repeated_.check("accept", Clock::now()); verdict.pass) {
        kLog.error("cannot accept connections", {{"error", std::generic_category().message(number)},
                                                 {"suppressed", verdict.suppressed}});
      }
      co_await sleep_for(std::chrono::milliseconds(100));
      break;
    }
  }
}

void ProxyServer::accepted(int descriptor, const asio::ip::address& client) {
  if (options_.totals->connections >= options_.max_connections) {
    ::close(descriptor);
    if (const auto verdict = repeated_.check("limit", Clock::now()); verdict.pass) {
      kLog.warning(
          "too many connections; further ones are closed",
          {{"limit", std::uint64_t{options_.max_connections}}, {"suppressed", verdict.suppressed}});
    }
    return;
  }
  auto connection = std::make_shared<ProxyConnection>(*this, descriptor, client);
  tasks_.spawn("connection", [connection = std::move(connection)] { return connection->run(); });
}

std::unique_ptr<ProxyExchange> ProxyServer::lend_exchange(ProxyConnection& connection) {
  std::unique_ptr<ProxyExchange> exchange;
  if (exchanges_.empty()) {
    exchange = std::make_unique<ProxyExchange>(*this);
  } else {
    exchange = std::move(exchanges_.back());
    exchanges_.pop_back();
  }
  exchange->begin(connection);
  return exchange;
}

void ProxyServer::take_back(std::unique_ptr<ProxyExchange> exchange) {
  exchange->end();
  if (exchanges_.size() < kSpareExchanges) exchanges_.push_back(std::move(exchange));
}

Task<> ProxyServer::watch_clients() {
  while (true) {
    co_await sleep_for(kWatchPeriod);
    for (ProxyConnection* connection : connections_) connection->check_client();
  }
}

void ProxyServer::drain() {
  draining_ = true;
  error_code ec;
  acceptor_.close(ec);
  for (ProxyConnection* connection : connections_) {
    if (connection->idle()) connection->close();
  }
}

Task<> ProxyServer::stop(Deadline deadline) {
  drain();
  while (!connections_.empty() && Clock::now() < deadline) co_await ended_.wait(deadline);
  tasks_.cancel();
  co_await tasks_.join();
}

}  // namespace gitops::proxy
