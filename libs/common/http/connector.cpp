#include "common/http/connector.hpp"

#include <algorithm>

#include "common/http/wire_text.hpp"
#include "common/net/connector.hpp"
#include "common/net/tls_channel.hpp"

namespace gitops::http {
namespace {

constexpr std::size_t kReadBuffer = 16 * 1024;

// Returns the error for a proxy's response to CONNECT other than 2xx. It has no http_status, which
// would be taken for a response of the origin.
Error refused_tunnel(const std::string& origin, int status) {
  Error error{.code = ErrorCode::unavailable,
              .message = "refused to connect to " + origin + ": " + std::to_string(status) + " " +
                         std::string(reason_phrase(status))};
  if (status == 407) error.code = ErrorCode::unauthenticated;
  if (status == 403) error.code = ErrorCode::forbidden;
  return error;
}

// Returns the options for TLS with a proxy: the authorities of its origins, without their client
// certificate.
net::TlsOptions proxy_tls_options(net::TlsOptions options) {
  options.certificate_file.clear();
  options.certificate_pem.clear();
  options.key_file.clear();
  options.key_pem = {};
  options.server_name.clear();
  return options;
}

}  // namespace

void Connection::expect_answer(bool no_body) {
  parser.reset(no_body);
  answered = false;
}

Task<Result<ParseStep>> Connection::next() {
  while (true) {
    auto found = parser.next(in.bytes());
    if (!found || found->event != ParseStep::Event::more) co_return found;
    in.consume(found->consumed);
    const auto size = co_await channel->read_some(in.prepare(kReadBuffer));
    if (!size) co_return std::unexpected(size.error());
    if (*size == 0) {
      if (!answered && in.empty()) {
        co_return fail(ErrorCode::unavailable, "the connection was closed before an answer came");
      }
      if (!parser.next_eof()) co_return fail(ErrorCode::unavailable, "the answer is cut off");
      co_return ParseStep{.event = ParseStep::Event::end, .consumed = 0, .body = {}};
    }
    answered = true;
    in.commit(*size);
  }
}

Connector::Connector(net::Resolver& resolver, net::TlsOptions tls,
                     std::chrono::milliseconds timeout, std::size_t max_response_head)
    : resolver_(resolver),
      tls_(net::TlsContext::Role::client, tls),
      proxy_tls_(net::TlsContext::Role::client, proxy_tls_options(std::move(tls))),
      timeout_(timeout),
      max_response_head_(max_response_head) {}

Result<std::string> Connector::key_of(const Url& url, const Url* proxy) {
  if (url.is_tls()) {
    if (auto loaded = tls_.get(Clock::now()); !loaded) return std::unexpected(loaded.error());
  }
  if (proxy != nullptr && proxy->is_tls()) {
    if (auto loaded = proxy_tls_.get(Clock::now()); !loaded) {
      return std::unexpected(loaded.error());
    }
  }
  return current_key(url, proxy);
}

std::string Connector::current_key(const Url& url, const Url* proxy) const {
  std::string key = url.is_tls() ? "s" : "p";
  if (url.is_tls()) append_number(key, tls_.generation());
  // All origins of plain requests share the connections to an HTTP proxy.
  if (url.is_tls() || proxy == nullptr || proxy->is_socks()) key.append("|").append(host_port(url));
  if (proxy != nullptr) key.append("|").append(host_port(*proxy));
  if (proxy != nullptr && proxy->is_tls()) {
    key.append("|s");
    append_number(key, proxy_tls_.generation());
  }
  return key;
}

Task<Result<std::unique_ptr<Connection>>> Connector::connect(const Url& url, const Url* proxy,
                                                             Deadline deadline, bool switches) {
  const Deadline limit = std::min(deadline, deadline_after(timeout_));
  const Url& first = proxy == nullptr ? url : *proxy;
  const std::string first_name = (proxy == nullptr ? "" : "proxy ") + host_port(first);
  std::shared_ptr<asio::ssl::context> proxy_context;
  if (proxy != nullptr && proxy->is_tls()) {
    auto loaded = proxy_tls_.get(Clock::now());
    if (!loaded) co_return fail(first_name, loaded.error());
    proxy_context = std::move(*loaded);
  }
  std::shared_ptr<asio::ssl::context> context;
  if (url.is_tls()) {
    auto loaded = tls_.get(Clock::now());
    if (!loaded) co_return fail(host_port(url), loaded.error());
    context = std::move(*loaded);
  }
  // The key is computed first: certificates may be reloaded while connecting.
  std::string key = current_key(url, proxy);
  // A tunnel is no connection to the proxy, which other origins could share.
  if (switches && proxy != nullptr && context == nullptr) key.append("|").append(host_port(url));

  auto channel = co_await net::connect_host(resolver_, first.host, first.port, {}, limit);
  if (!channel) {
    auto error = channel.error();
    if (error.code == ErrorCode::not_found) error.code = ErrorCode::unavailable;
    co_return fail(first_name, std::move(error));
  }
  if (proxy_context != nullptr) {
    channel =
        co_await net::start_tls(std::move(*channel), std::move(proxy_context), first.host, limit);
    if (!channel) co_return fail(first_name, channel.error());
  }
  auto connection = std::make_unique<Connection>(std::move(*channel), max_response_head_);
  connection->key = std::move(key);
  if (proxy != nullptr) connection->channel->set_deadline(limit);
  if (proxy != nullptr && proxy->is_socks()) {
    if (auto opened = co_await open_socks(*connection->channel, url, *proxy); !opened) {
      co_return fail(first_name, opened.error());
    }
  } else if (proxy != nullptr && (context != nullptr || switches)) {
    if (auto opened = co_await open_tunnel(*connection, url, *proxy); !opened) {
      co_return fail(first_name, opened.error());
    }
  }
  if (context == nullptr) co_return connection;

  const std::string& name = tls_.options().server_name;
  auto secured = co_await net::start_tls(std::move(connection->channel), std::move(context),
                                         name.empty() ? url.host : name, limit);
  if (!secured) co_return fail(host_port(url), secured.error());
  connection->channel = std::move(*secured);
  co_return connection;
}

// Requests a connection to the origin from a SOCKS proxy, which resolves the name.
Task<Result<void>> Connector::open_socks(net::Channel& channel, const Url& url, const Url& proxy) {
  net::Socks5Request request{.host = url.host, .port = url.port};
  if (!proxy.userinfo.empty()) {
    auto credentials = split_userinfo(proxy.userinfo);
    if (!credentials) co_return std::unexpected(credentials.error());
    request.user = std::move(credentials->first);
    request.password = Secret(std::move(credentials->second));
  }
  co_return co_await net::connect_through_socks5(channel, std::move(request));
}

// Requests a connection to the origin from an HTTP proxy.
Task<Result<void>> Connector::open_tunnel(Connection& connection, const Url& url,
                                          const Url& proxy) {
  const std::string origin = host_port(url);
  std::string head = "CONNECT " + origin + " HTTP/1.1\r\n";
  append_field(head, "Host", origin);
  if (!proxy.userinfo.empty()) {
    auto credentials = basic_credentials(proxy.userinfo);
    if (!credentials) co_return std::unexpected(credentials.error());
    append_field(head, "Proxy-Authorization", *credentials);
  }
  head += "\r\n";
  if (auto sent = co_await connection.channel->write(head); !sent) co_return sent;

  int status = 0;
  while (status < 200) {
    connection.expect_answer(true);
    const auto found = co_await connection.next();
    if (!found) co_return std::unexpected(found.error());
    connection.in.consume(found->consumed);
    status = connection.parser.head().status;
  }
  if (status >= 300) co_return std::unexpected(refused_tunnel(origin, status));
  // The client begins, with TLS or a request: no bytes may follow yet.
  if (!connection.in.empty())
    co_return fail(ErrorCode::protocol, "sent data before the tunnel was used");
  co_return Result<void>{};
}

}  // namespace gitops::http
