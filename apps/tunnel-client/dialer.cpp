#include "tunnel-client/dialer.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "common/core/crypto.hpp"
#include "common/http/websocket_channel.hpp"
#include "common/http/websocket_handshake.hpp"
#include "common/net/connector.hpp"
#include "common/net/tls_channel.hpp"
#include "common/tunnel/link.hpp"

namespace gitops::tunnel_client {
namespace {

namespace websocket = http::websocket;

constexpr const char* kPath = "/~!frp";

net::TlsOptions tls_options(const Config& config) {
  return {.ca_file = config.ca_file,
          .server_name = config.server_name,
          .insecure_skip_verify = config.insecure};
}

websocket::MaskKey random_mask() {
  const auto bytes = random_bytes(websocket::MaskKey{}.size());
  websocket::MaskKey key;
  std::ranges::copy(bytes, key.begin());
  return key;
}

}  // namespace

Dialer::Dialer(const Executor& executor, net::Resolver& resolver, const Config& config,
               Endpoint server, http::ProxySettings proxy)
    : config_(config),
      server_(std::move(server)),
      resolver_(resolver),
      tls_(net::TlsContext::Role::client, tls_options(config)),
      client_(executor, resolver,
              {.tls = tls_options(config),
               .proxy = std::move(proxy),
               .connect_timeout = config.connect_timeout}) {}

bool Dialer::has_tls() const {
  return config_.tls || config_.protocol == Protocol::wss;
}

std::string Dialer::server() const {
  const char* scheme = "tcp://";
  if (config_.protocol == Protocol::wss) scheme = "wss://";
  if (config_.protocol == Protocol::websocket) scheme = "ws://";
  const bool is_address = server_.host.contains(':');
  return scheme + (is_address ? "[" + server_.host + "]" : server_.host) + ":" +
         std::to_string(server_.port);
}

Task<Result<std::unique_ptr<net::Channel>>> Dialer::connect(Deadline deadline) {
  auto channel =
      config_.protocol == Protocol::tcp
          ? co_await net::connect_host(resolver_, server_.host, server_.port, {}, deadline)
          : co_await connect_websocket(deadline);
  if (channel) tunnel::hold_little(**channel);
  if (channel && config_.tls && config_.protocol != Protocol::wss) {
    auto context = tls_.get(Clock::now());
    if (!context) co_return std::unexpected(context.error());
    const auto& name = config_.server_name.empty() ? server_.host : config_.server_name;
    channel = co_await net::start_tls(std::move(*channel), *context, name, deadline);
  }
  if (!channel) co_return fail(server(), std::move(channel.error()));
  co_return std::move(*channel);
}

Task<Result<std::unique_ptr<net::Channel>>> Dialer::connect_websocket(Deadline deadline) {
  auto url = http::parse_url(server());
  if (!url) co_return std::unexpected(url.error());
  const auto nonce = random_bytes(16);
  const auto key = websocket::make_key(std::span(nonce).first<16>());
  auto request = websocket::upgrade_request(key, {});
  request.target = kPath;
  // frp's server responds 403 without Origin; it does not compare the value.
  request.headers.set("Origin", (url->is_tls() ? "https://" : "http://") + url->host_header());
  auto upgraded = co_await client_.upgrade(*url, std::move(request), deadline);
  if (!upgraded) co_return std::unexpected(upgraded.error());
  if (const auto accepted = websocket::read_acceptance(upgraded->head, key, {}); !accepted) {
    upgraded->channel->close();
    co_return std::unexpected(accepted.error());
  }
  tunnel::hold_little(*upgraded->channel);
  co_return std::make_unique<http::WebSocketChannel>(
      std::move(*upgraded),
      http::WebSocketChannel::Options{.role = websocket::Role::client, .draw_key = random_mask});
}

}  // namespace gitops::tunnel_client
