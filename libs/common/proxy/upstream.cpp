#include "common/proxy/upstream.hpp"

#include <algorithm>
#include <cerrno>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <system_error>

namespace gitops::proxy {

Upstream::Upstream(ProxyLoop& loop, UpstreamOptions options)
    : loop_(loop), options_(std::move(options)) {
  if (options_.tls) tls_.emplace(net::TlsContext::Role::client, *options_.tls);
}

std::shared_ptr<UpstreamConnection> Upstream::take() {
  if (idle_.empty()) return nullptr;
  const auto now = loop_.poller.now();
  if (tls_) (void)tls_->get(now);  // notices rotated certificates
  while (!idle_.empty()) {
    auto connection = std::move(idle_.back());
    idle_.pop_back();
    const auto idle = now - connection->idle_since;
    if (idle > options_.idle_timeout) continue;
    if (tls_ && connection->tls_generation != tls_->generation()) continue;
    if (connection->wire.is_stale()) continue;
    return connection;
  }
  return nullptr;
}

Task<Result<std::shared_ptr<UpstreamConnection>>> Upstream::connect() {
  const auto deadline = deadline_after(options_.connect_timeout);
  std::shared_ptr<asio::ssl::context> context;
  if (tls_) {
    auto loaded = tls_->get(Clock::now());
    if (!loaded) co_return std::unexpected(loaded.error());
    context = std::move(*loaded);
  }
  auto endpoints = co_await loop_.resolver.resolve(options_.host, options_.port, deadline);
  if (!endpoints) co_return std::unexpected(endpoints.error());
  if (options_.allowed) {
    std::erase_if(*endpoints,
                  [this](const auto& endpoint) { return !options_.allowed(endpoint.address()); });
    if (endpoints->empty()) {
      co_return fail(ErrorCode::forbidden,
                     options_.host + " has no address that may be connected to");
    }
  }
  auto connected = co_await connect_one_of(*endpoints, deadline);
  if (!connected) {
    loop_.resolver.forget(options_.host);
    co_return connected;
  }
  auto connection = std::move(*connected);
  if (context) {
    connection->tls_generation = tls_->generation();
    connection->wire.set_read_deadline(deadline);
    const auto& name = options_.tls->server_name;
    auto done = co_await connection->wire.handshake_client(std::move(context),
                                                           name.empty() ? options_.host : name);
    if (!done) co_return std::unexpected(done.error());
  }
  co_return connection;
}

// One after the other, each with its part of the time that is left.
Task<Result<std::shared_ptr<UpstreamConnection>>> Upstream::connect_one_of(
    std::span<const asio::ip::tcp::endpoint> endpoints, Deadline deadline) {
  Error last{.code = ErrorCode::unavailable, .message = "no address to connect to"};
  for (std::size_t i = 0; i < endpoints.size(); ++i) {
    const auto& endpoint = endpoints[i];
    const int descriptor = ::socket(endpoint.protocol().family(),
                                    SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
    if (descriptor < 0) {
      last.message = std::generic_category().message(errno);
      continue;
    }
    const int on = 1;
    ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    const bool at_once =
        ::connect(descriptor, endpoint.data(), static_cast<socklen_t>(endpoint.size())) == 0;
    const int number = at_once ? 0 : errno;
    auto connection = std::make_shared<UpstreamConnection>(descriptor, loop_);
    Result<void> connected;
    if (number == EINPROGRESS) {
      const auto now = Clock::now();
      connection->wire.set_write_deadline(now + (deadline - now) /
                                                    static_cast<Clock::rep>(endpoints.size() - i));
      connected = co_await connection->wire.finish_connect();
      connection->wire.set_write_deadline(kNever);
    } else if (!at_once) {
      connected = fail(ErrorCode::unavailable, std::generic_category().message(number));
    }
    if (connected) co_return connection;
    last = connected.error();
    if (last.code == ErrorCode::timeout) last.message = "connect timed out";
  }
  co_return std::unexpected(std::move(last));
}

void Upstream::put(std::shared_ptr<UpstreamConnection> connection) {
  if (options_.max_idle == 0) return;
  if (idle_.size() >= options_.max_idle) idle_.pop_front();
  connection->wire.set_read_deadline(kNever);
  connection->wire.set_write_deadline(kNever);
  connection->in.release();
  connection->idle_since = loop_.poller.now();
  idle_.push_back(std::move(connection));
}

void Upstream::sweep(Clock::time_point now) {
  const auto fresh = std::find_if(idle_.begin(), idle_.end(), [&](const auto& connection) {
    return now - connection->idle_since <= options_.idle_timeout;
  });
  idle_.erase(idle_.begin(), fresh);
}

}  // namespace gitops::proxy
