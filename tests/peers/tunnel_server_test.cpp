#include <atomic>
#include <csignal>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "peers/peer_frpc.hpp"
#include "support/test_certs.hpp"
#include "test_http/raw_http.hpp"

// Our tunnel-server and the real client of frp: each version, each stack of layers.
namespace gitops::test {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;
using Tls = PeerFrpc::Tls;
using Version = PeerFrpc::Version;

constexpr const char* kHost = "acc-rt.example.test";

// The tunnel-server as a child process. Its ports stay when it is restarted.
class Server {
 public:
  explicit Server(std::vector<std::string> arguments = {}, Environment environment = {})
      : environment_(std::move(environment)) {
    arguments_ = {std::string(GITOPS_BIN_DIR) + "/tunnel-server",
                  "--tunnel.listen-address=127.0.0.1",
                  "--tunnel.port=" + std::to_string(tunnel_port),
                  "--tunnel.tls-certificate-file=" + certificate_.cert_file.string(),
                  "--tunnel.tls-key-file=" + certificate_.key_file.string(),
                  "--listen-address=127.0.0.1",
                  "--port=" + std::to_string(port),
                  "--subdomain-host=example.test",
                  "--admin-address=127.0.0.1",
                  "--admin-port=" + std::to_string(admin_port)};
    std::ranges::move(arguments, std::back_inserter(arguments_));
    if (!environment_.contains("TUNNEL_SERVER_TOKEN")) {
      environment_["TUNNEL_SERVER_TOKEN"] = "s3cret";
    }
    start();
  }

  void start() {
    process_.emplace(
        ProcessOptions{.argv = arguments_, .env = environment_, .log_file = folder_ / "log"});
    require_until([this] { return admin("/readyz").ok(); }, seconds(20),
                  "the tunnel-server to start");
  }

  HttpReply admin(const std::string& path) const {
    return http_call({.url = "http://127.0.0.1:" + std::to_string(admin_port) + path});
  }
  RawResponse call(const std::string& method, const std::string& target,
                   const std::string& body = {}, const std::string& host = kHost) const {
    std::string request = method + " " + target + " HTTP/1.1\r\nHost: " + host + "\r\n";
    if (!body.empty()) request += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    return raw_call(static_cast<std::uint16_t>(port), request + "\r\n" + body);
  }
  // Waits until the host is served.
  void await_host(const PeerFrpc& client, const std::string& host = kHost) const {
    if (!wait_until([&] { return call("GET", "/", {}, host).status == 200; }, seconds(30), host)) {
      throw std::runtime_error("no tunnel for " + host + "\n" + client.log() + "\n" + log());
    }
  }
  std::string log() const { return read_file(folder_ / "log"); }
  Process& process() { return *process_; }
  const std::filesystem::path& ca_file() const { return authority_.ca_file(); }

  const int tunnel_port = free_port();
  const int port = free_port();
  const int admin_port = free_port();

 private:
  CertificateAuthority authority_;
  Certificate certificate_ =
      authority_.issue({.common_name = "tunnel", .organization = {}, .alt_names = {"localhost"}});
  TempDir folder_;
  std::vector<std::string> arguments_;
  Environment environment_;
  std::optional<Process> process_;
};

struct Stack {
  const char* name;
  Version version;
  const char* protocol;
  Tls tls;
};
constexpr Stack kStacks[] = {{"Tcp044", Version::v0_44, "tcp", Tls::none},
                             {"TcpTls044", Version::v0_44, "tcp", Tls::plain},
                             {"TcpMarkedTls044", Version::v0_44, "tcp", Tls::marked},
                             {"WebSocket044", Version::v0_44, "websocket", Tls::none},
                             {"WebSocketTls044", Version::v0_44, "websocket", Tls::marked},
                             {"Tcp070", Version::v0_70, "tcp", Tls::none},
                             {"TcpTls070", Version::v0_70, "tcp", Tls::plain},
                             {"TcpMarkedTls070", Version::v0_70, "tcp", Tls::marked},
                             {"WebSocket070", Version::v0_70, "websocket", Tls::none},
                             {"WebSocketTls070", Version::v0_70, "websocket", Tls::plain},
                             {"Wss070", Version::v0_70, "wss", Tls::plain}};

PeerFrpc::Options client_of(const Server& server, const Stack& stack, int local_port) {
  return {.version = stack.version,
          .protocol = stack.protocol,
          .tls = stack.tls,
          .server_port = server.tunnel_port,
          .ca_file = server.ca_file(),
          .token = "s3cret",
          .local_port = local_port};
}

bool echo(const RecordedRequest& request, RawSocket& socket) {
  return RecordingUpstream::reply(socket, request.body.empty() ? "hello" : request.body);
}

std::string text_of(std::size_t size) {
  std::string text;
  while (text.size() < size) text += std::to_string(text.size()) + ",";
  return text;
}

struct PeerServerStack : testing::TestWithParam<Stack> {
  void SetUp() override { GITOPS_REQUIRE_PEER(PeerFrpc); }
};

TEST_P(PeerServerStack, RequestsReachTheUpstream) {
  Server server;
  RecordingUpstream upstream("router", echo);
  PeerFrpc client(client_of(server, GetParam(), upstream.port()));
  server.await_host(client);
  upstream.forget();

  const auto answer = server.call("GET", "/app-proxy/api?x=1");
  EXPECT_EQ(answer.status, 200) << client.log();
  EXPECT_EQ(answer.body, "hello");
  ASSERT_EQ(upstream.requests().size(), 1u);
  const auto request = upstream.requests()[0];
  EXPECT_EQ(request.target(), "/app-proxy/api?x=1");
  EXPECT_EQ(request.header("Host"), kHost);
  EXPECT_EQ(request.header("X-Forwarded-For"), "127.0.0.1");
  EXPECT_EQ(request.header("X-Forwarded-Host"), kHost);
  EXPECT_EQ(request.header("X-Forwarded-Proto"), "http");

  const auto text = text_of(20'000'000);
  const auto echoed = server.call("POST", "/", text);
  EXPECT_EQ(echoed.status, 200);
  EXPECT_TRUE(echoed.body == text) << "20 MB came back changed";
  EXPECT_EQ(server.call("GET", "/", {}, "other.example.test").status, 404);
}

INSTANTIATE_TEST_SUITE_P(All, PeerServerStack, testing::ValuesIn(kStacks),
                         [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace gitops::test
