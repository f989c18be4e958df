#include "tunnel-server/transport_handshake.hpp"

#include <array>
#include <utility>

#include "common/http/parser.hpp"
#include "common/http/websocket_channel.hpp"
#include "common/http/websocket_handshake.hpp"
#include "common/http/wire_text.hpp"
#include "common/net/replay_channel.hpp"
#include "common/net/tls_channel.hpp"
#include "common/tunnel/message.hpp"

namespace gitops::tunnel_server {
namespace {

namespace websocket = http::websocket;

// The first byte of each layer; docs/reference/tunnel/protocol.md, "Layers".
constexpr char kYamux = 0;
constexpr char kTlsMark = 0x17;  // frp's own byte, before TLS
constexpr char kTls = 0x16;
constexpr char kHttp = 'G';
// Returns whether the byte begins a message without yamux: the first one of a control stream or of
// a work connection.
bool begins_message(char byte) {
  return byte == tunnel::Login::kType || byte == tunnel::NewWorkConn::kType ||
         byte == tunnel::kWireMagic.front();
}

constexpr const char* kPath = "/~!frp";
constexpr std::size_t kMaxHead = 8 * 1024;

std::string head_of(const http::Response& response) {
  std::string out = "HTTP/1.1 ";
  http::append_number(out, static_cast<std::uint64_t>(response.status));
  out.append(" ").append(http::reason_phrase(response.status)).append("\r\n");
  for (const auto& [name, value] : response.headers) http::append_field(out, name, value);
  if (response.status != 101) {
    http::append_field(out, "Content-Length", response.body.size());
    http::append_field(out, "Connection", "close");
  }
  return out.append("\r\n").append(response.body);
}

// Returns the response to a request that is not a tunnel client's.
std::optional<http::Response> refusal(const http::Request& request) {
  const std::string_view target = request.target;
  const auto path = target.substr(0, target.find('?'));
  if (path != kPath || !websocket::is_upgrade(request)) {
    return http::Response{.status = path == kPath ? 400 : 404,
                          .headers = {{"Content-Type", "text/plain; charset=utf-8"}},
                          .body = "This port is for clients of the tunnel.\n"};
  }
  if (const auto offer = websocket::read_offer(request); !offer) {
    return websocket::refusal(offer.error());
  }
  return std::nullopt;
}

}  // namespace

TransportHandshake::TransportHandshake(Options options)
    : options_(std::move(options)), tls_(net::TlsContext::Role::server, options_.tls) {}

Result<void> TransportHandshake::check() {
  if (options_.tls.certificate_file.empty()) return {};
  if (auto context = tls_.get(Clock::now()); !context) return std::unexpected(context.error());
  return {};
}

Task<Result<TransportHandshake::Transport>> TransportHandshake::perform(
    std::unique_ptr<net::Channel> channel, Deadline deadline) {
  bool has_tls = false;
  bool has_websocket = false;
  bool is_marked = false;  // by frp's byte, which only TLS may follow
  while (true) {
    channel->set_deadline(deadline);
    std::array<char, 1> first{};
    const auto size = co_await channel->read_some(first);
    if (!size) co_return std::unexpected(size.error());
    if (*size == 0) co_return fail(ErrorCode::unavailable, "the client left");
    std::string received(first.data(), *size);
    Added added = fail(ErrorCode::protocol, "the client does not speak frp");
    if (is_marked && first[0] != kTls) co_return std::unexpected(added.error());
    if (first[0] == kYamux || begins_message(first[0])) {
      if (options_.require_tls && !has_tls) {
        co_return fail(ErrorCode::forbidden, "the client does not use TLS");
      }
      co_return Transport{
          .channel = std::make_unique<net::ReplayChannel>(std::move(channel), std::move(received)),
          .has_mux = first[0] == kYamux};
    }
    if (first[0] == kTlsMark && !has_tls) {
      is_marked = true;
      continue;
    }
    if (first[0] == kTls && !has_tls) {
      has_tls = true;
      added = co_await add_tls(std::move(channel), std::move(received), deadline);
    } else if (first[0] == kHttp && !has_websocket) {
      has_websocket = true;
      added = co_await add_websocket(std::move(channel), std::move(received));
    }
    if (!added) co_return std::unexpected(added.error());
    is_marked = false;
    channel = std::move(*added);
  }
}

Task<TransportHandshake::Added> TransportHandshake::add_tls(std::unique_ptr<net::Channel> channel,
                                                            std::string received,
                                                            Deadline deadline) {
  if (options_.tls.certificate_file.empty()) {
    co_return fail(ErrorCode::unsupported, "a client wants TLS; this server has no certificate");
  }
  auto context = tls_.get(Clock::now());
  if (!context) co_return std::unexpected(context.error());
  auto tls = std::make_unique<net::TlsChannel>(
      std::make_unique<net::ReplayChannel>(std::move(channel), std::move(received)), *context);
  tls->set_deadline(deadline);
  if (auto done = co_await tls->handshake_server(); !done) co_return std::unexpected(done.error());
  co_return std::move(tls);
}

Task<TransportHandshake::Added> TransportHandshake::add_websocket(
    std::unique_ptr<net::Channel> channel, std::string received) {
  http::RequestParser parser(kMaxHead);
  std::string_view unread = received;
  std::array<char, 4096> room;
  while (true) {
    const auto step = parser.next(unread);
    if (!step) {
      http::Response answer = websocket::refusal(step.error());
      (void)co_await channel->write(head_of(answer));
      co_await channel->close_gracefully();
      co_return fail("WebSocket", step.error());
    }
    unread.remove_prefix(step->consumed);
    if (step->event == http::ParseStep::Event::end) break;
    if (step->event != http::ParseStep::Event::more) continue;
    const auto size = co_await channel->read_some(room);
    if (!size) co_return std::unexpected(size.error());
    if (*size == 0) co_return fail(ErrorCode::unavailable, "the client left");
    std::string rest(unread);
    received = std::move(rest.append(room.data(), *size));
    unread = received;
  }
  const auto& request = parser.head();
  if (const auto answer = refusal(request)) {
    (void)co_await channel->write(head_of(*answer));
    co_await channel->close_gracefully();
    co_return fail(ErrorCode::protocol, "an HTTP request that is not for the tunnel");
  }
  // refusal() has validated the offer.
  const auto offer = websocket::read_offer(request);
  if (auto written = co_await channel->write(head_of(websocket::acceptance(*offer, {})));
      !written) {
    co_return std::unexpected(written.error());
  }
  co_return std::make_unique<http::WebSocketChannel>(
      http::Upgraded{.channel = std::move(channel), .received = std::string(unread)},
      http::WebSocketChannel::Options{.role = websocket::Role::server});
}

}  // namespace gitops::tunnel_server
