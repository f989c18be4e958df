#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "daemons/tunnel_processes.hpp"
#include "peers/peer_frpc.hpp"
#include "peers/tunnel_bed.hpp"
#include "support/wait.hpp"

// Any server and any client of the tunnel, ours or of frp, joined in a pair.
namespace gitops::test {

enum class Maker : std::uint8_t { ours, frp_0_44, frp_0_70 };

struct Pair {
  Maker client;
  Maker server;
  const char* stack;
  const char* protocol;
  PeerFrpc::Tls tls;

  [[nodiscard]] bool is_main() const {
    return std::string_view(stack) == (client == Maker::frp_0_44 ? "WebSocketTls" : "Wss");
  }
};

inline const char* name_of(Maker maker) {
  return maker == Maker::ours ? "Ours" : maker == Maker::frp_0_44 ? "Frp044" : "Frp070";
}

inline std::vector<Pair> all_pairs() {
  using enum Maker;
  using Tls = PeerFrpc::Tls;
  std::vector<Pair> all;
  for (const auto [client, server] :
       std::initializer_list<std::pair<Maker, Maker>>{{ours, ours},
                                                      {ours, frp_0_44},
                                                      {ours, frp_0_70},
                                                      {frp_0_44, ours},
                                                      {frp_0_70, ours},
                                                      {frp_0_44, frp_0_44},
                                                      {frp_0_70, frp_0_70}}) {
    const auto add = [&](const char* name, const char* protocol, Tls tls) {
      all.push_back({client, server, name, protocol, tls});
    };
    add("Tcp", "tcp", Tls::none);
    add("TcpTls", "tcp", Tls::plain);
    if (client != ours && server == ours) add("TcpMarkedTls", "tcp", Tls::marked);
    add("WebSocket", "websocket", Tls::none);
    add("WebSocketTls", "websocket", client == frp_0_44 ? Tls::marked : Tls::plain);
    if (client != frp_0_44) add("Wss", "wss", Tls::plain);
  }
  return all;
}

inline void PrintTo(const Pair& pair, std::ostream* out) {
  *out << name_of(pair.client) << " to " << name_of(pair.server) << " over " << pair.stack;
}

// A server of either maker. Both know the token "s3cret".
class AnyServer {
 public:
  explicit AnyServer(Maker maker) {
    if (maker == Maker::ours) {
      own_.emplace();
    } else {
      frps_.emplace(maker == Maker::frp_0_44 ? PeerFrps::Version::v0_44 : PeerFrps::Version::v0_70,
                    "s3cret");
    }
  }
  [[nodiscard]] TunnelAddress address(std::string_view protocol) const {
    if (own_) return {.port = own_->tunnel_port, .ca_file = own_->ca_file()};
    return {.port = protocol == "wss" ? frps_->wss_port() : frps_->port(),
            .ca_file = frps_->ca_file()};
  }
  [[nodiscard]] std::uint16_t port() const {
    return static_cast<std::uint16_t>(own_ ? own_->port : frps_->vhost_port());
  }
  [[nodiscard]] RawResponse call(const std::string& method, const std::string& target,
                                 const std::string& body = {}) const {
    return own_ ? own_->call(method, target, body) : tunnel_call(*frps_, method, target, body);
  }
  void kill_and_start() {
    if (own_) {
      own_->process().kill();
      own_->start();
    } else {
      frps_->restart();
    }
  }
  [[nodiscard]] std::string log() const { return own_ ? own_->log() : frps_->log(); }
  // Null for frp's.
  [[nodiscard]] const OpenTunnelServer* own() const { return own_ ? &*own_ : nullptr; }

 private:
  std::optional<OpenTunnelServer> own_;
  std::optional<PeerFrps> frps_;
};

// A client of either maker, whose proxy offers the host acc-rt.
class AnyClient {
 public:
  struct Options {
    std::string token = "s3cret";
    std::string proxy = "acc-rt";  // its name; only frp's can have another one than its host
    int pool = 1;
  };
  // Of frpc, in seconds. It ends a session without a Pong for so long.
  static constexpr int kHeartbeatTimeout = 3;

  AnyClient(const Pair& pair, const AnyServer& server, int upstream, const Options& options) {
    const auto address = server.address(pair.protocol);
    if (pair.client == Maker::ours) {
      own_.emplace(
          address, upstream,
          TunnelOptions{
              .stack = {pair.stack, pair.protocol, pair.tls != PeerFrpc::Tls::none},
              .env = {{"TUNNEL_SERVER_TOKEN", options.token}, {"AUTHORIZATION", "runtime-token"}},
              .flags = {"--tunnel.pool-size=" + std::to_string(options.pool)}});
    } else {
      frpc_.emplace(PeerFrpc::Options{.version = pair.client == Maker::frp_0_44
                                                     ? PeerFrpc::Version::v0_44
                                                     : PeerFrpc::Version::v0_70,
                                      .protocol = pair.protocol,
                                      .tls = pair.tls,
                                      .server_port = address.port,
                                      .ca_file = address.ca_file,
                                      .token = options.token,
                                      .proxy = options.proxy,
                                      .subdomain = "acc-rt",
                                      .pool = options.pool,
                                      .local_port = upstream,
                                      .heartbeat = 1,
                                      .heartbeat_timeout = kHeartbeatTimeout});
    }
  }
  [[nodiscard]] std::string log() const { return own_ ? own_->log() : frpc_->log(); }
  // Times that it logged in.
  [[nodiscard]] int sessions() const {
    if (own_) return own_->sessions();
    const auto text = log();
    constexpr std::string_view kLine = "login to server success";
    int count = 0;
    for (auto at = text.find(kLine); at != std::string::npos; at = text.find(kLine, at + 1)) {
      ++count;
    }
    return count;
  }
  void stop() {
    if (own_) {
      own_->process().stop();
    } else {
      frpc_->stop();
    }
  }

 private:
  std::optional<TunnelClientProcess> own_;
  std::optional<PeerFrpc> frpc_;
};

// Text of which no part of a frame's or a block's size repeats.
inline const std::string& bulk(bool is_large) {
  static std::string large;
  static std::string small;
  auto& text = is_large ? large : small;
  if (text.empty()) {
    std::string part;
    while (part.size() < 1'000'003) part += std::to_string(part.size()) + ",";
    const std::size_t size = is_large ? 100'000'000 : 20'000'000;
    text.reserve(size + part.size());
    while (text.size() < size) text += part;
  }
  return text;
}

inline std::string request(std::string_view target, const std::string& fields) {
  return "GET " + std::string(target) + " HTTP/1.1\r\nHost: " + kTunnelHost + "\r\n" + fields +
         "\r\n";
}

struct PeerTunnelPair : testing::TestWithParam<Pair> {
  static constexpr int kUsers = 200;

  void SetUp() override {
    GITOPS_REQUIRE_PEER(PeerFrps);
    GITOPS_REQUIRE_PEER(PeerFrpc);
  }

  void expect_a_request() {
    upstream.forget();
    EXPECT_EQ(server->call("GET", "/app-proxy/api?x=1").body, "hello");
    ASSERT_EQ(upstream.requests().size(), 1U);
    const auto seen = upstream.requests()[0];
    EXPECT_EQ(seen.target(), "/app-proxy/api?x=1");
    EXPECT_EQ(seen.header("Host"), kTunnelHost);
    EXPECT_EQ(seen.header("X-Forwarded-For"), "127.0.0.1");
    if (GetParam().server != Maker::frp_0_44) {  // has none of them
      EXPECT_EQ(seen.header("X-Forwarded-Host"), kTunnelHost);
      EXPECT_EQ(seen.header("X-Forwarded-Proto"), "http");
    }
    if (const auto* own = server->own()) {
      const auto status = own->status();
      EXPECT_EQ(status.state("127.0.0.1"), "ok") << status;
      EXPECT_EQ(status.message("127.0.0.1"), "serving");
      EXPECT_EQ(status.text("127.0.0.1", "hosts"), "acc-rt.example.test");
      EXPECT_THAT(
          own->admin("/metrics").body,
          testing::HasSubstr(
              R"(gitops_tunnel_server_requests_total{code="2xx",host="acc-rt.example.test"})"));
    }
  }

  void expect_bulk_both_ways() {
    const auto& text = bulk(std::getenv("GITOPS_LONG") != nullptr || GetParam().is_main());
    RawSocket user(server->port(), std::chrono::seconds(60));
    EXPECT_TRUE(user.send(std::string("POST /bulk HTTP/1.1\r\nHost: ") + kTunnelHost +
                          "\r\nContent-Length: " + std::to_string(text.size()) + "\r\n\r\n"));
    EXPECT_TRUE(user.send(text));
    const auto answer = user.read_response();
    EXPECT_TRUE(answer.complete);
    EXPECT_TRUE(answer.body == text) << text.size() / 1'000'000 << " MB came back changed";
  }

  void expect_a_websocket() {
    RawSocket user(server->port());
    user.send(request("/ws",
                      "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                      "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"));
    // Ours passes on what a user sends before the answer.
    const std::string early = server->own() != nullptr ? "early" : "";
    user.send(early);
    EXPECT_THAT(user.read_until("\r\n\r\n"), testing::HasSubstr("101"));
    EXPECT_EQ(user.read_exactly(5 + early.size()), "first" + early);
    for (int i = 0; i < 20; ++i) {
      const auto text = "message " + std::to_string(i) + std::string(1'000, '\xff');
      ASSERT_TRUE(user.send(text));
      ASSERT_EQ(user.read_exactly(text.size()), text);
    }
    const std::string_view large = std::string_view(bulk(false)).substr(0, 1'000'000);
    const std::jthread sender([&] { user.send(large); });
    EXPECT_TRUE(user.read_exactly(large.size()) == large) << "1 MB came back changed";
  }

  // Each of them arrives before the next one is made.
  void expect_events() {
    wanted = 0;
    RawSocket user(server->port());
    user.send(request("/events", "Accept: text/event-stream\r\n"));
    for (int i = 1; i <= 5; ++i) {
      wanted = i;
      wanted.notify_all();
      const auto event = "data: " + std::to_string(i) + "\n\n";
      EXPECT_THAT(user.read_until(event), testing::HasSubstr(event));
    }
    if (server->own() != nullptr) {
      EXPECT_THAT(user.read_until("\r\n0\r\n\r\n"), testing::HasSubstr("\r\n0\r\n"));
    }
  }

  // All of them are at the upstream before any is answered.
  void expect_users_at_a_time() {
    there = 0;
    std::vector<int> statuses(kUsers);
    std::vector<std::jthread> users;
    for (auto& status : statuses) {
      users.emplace_back(
          [&] { status = server->call("POST", "/together", std::string(20'000, 'x')).status; });
    }
    users.clear();
    EXPECT_THAT(statuses, testing::Each(200));
  }

  bool answers(const RecordedRequest& asked, RawSocket& socket) {
    if (asked.target() == "/ws") {
      socket.send(
          "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
          "Connection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\nfirst");
      while (true) {
        const auto bytes = socket.read_some();
        if (bytes.empty()) return false;
        socket.send(bytes);
      }
    }
    if (asked.target() == "/events") {
      socket.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n");
      for (int i = 1; i <= 5; ++i) {
        for (int seen = wanted; seen < i; seen = wanted) wanted.wait(seen);
        if (!socket.send("data: " + std::to_string(i) + "\n\n")) break;
      }
      return false;
    }
    if (asked.target() == "/together") {
      ++there;
      there.notify_all();
      for (int seen = there; seen < kUsers; seen = there) there.wait(seen);
    }
    return tunnel_echo(asked, socket);
  }

  [[nodiscard]] bool serves() const { return server->call("GET", "/").status == 200; }
  void await_service(const AnyClient& client) const {
    ASSERT_TRUE(wait_until([&] { return serves(); }, std::chrono::seconds(30), "the tunnel"))
        << client.log() << server->log();
  }
  // A client that has no success.
  void expect_refusal(const AnyClient::Options& options,
                      const testing::Matcher<const std::string&>& reason) {
    const AnyClient client(GetParam(), *server, free_port(), options);
    EXPECT_TRUE(wait_until([&] { return testing::Value(client.log(), reason); },
                           std::chrono::seconds(20), "the refusal"))
        << client.log();
  }

  std::atomic<int> wanted = 0;
  std::atomic<int> there = 0;
  RecordingUpstream upstream{"router", [this](const RecordedRequest& asked, RawSocket& socket) {
                               return answers(asked, socket);
                             }};
  std::optional<AnyServer> server;
};

}  // namespace gitops::test
