#include <algorithm>
#include <atomic>
#include <csignal>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "daemons/tunnel_processes.hpp"
#include "peers/peer_frpc.hpp"
#include "support/test_certs.hpp"
#include "support/wait.hpp"
#include "test_http/raw_http.hpp"

// What is not the same for every pair (tunnel_pairs_test.cpp): our tunnel-server and the real client of
// frp, each version.
namespace gitops::test {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;
using Tls = PeerFrpc::Tls;
using Version = PeerFrpc::Version;

constexpr const char* kHost = kRuntimeHost;

using Server = OpenTunnelServer;

// Waits until the host is served.
void await_host(const Server& server, const PeerFrpc& client, const std::string& host = kHost) {
  if (!wait_until([&] { return server.call("GET", "/", {}, host).status == 200; }, seconds(30),
                  host)) {
    throw std::runtime_error("no tunnel for " + host + "\n" + client.log() + "\n" + server.log());
  }
}

struct Stack {
  Version version;
  const char* protocol;
  Tls tls;
};

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

// -- what users do --

struct PeerServer : testing::TestWithParam<Version> {
  void SetUp() override { GITOPS_REQUIRE_PEER(PeerFrpc); }

  static Stack stack() {
    return GetParam() == Version::v0_44 ? Stack{Version::v0_44, "websocket", Tls::marked}
                                        : Stack{Version::v0_70, "wss", Tls::plain};
  }
};

TEST_P(PeerServer, AnUpstreamThatIsDownIsToldFromAHostThatIsUnknown) {
  Server server;
  auto upstream = std::make_optional<RecordingUpstream>("router");
  PeerFrpc client(client_of(server, stack(), upstream->port()));
  await_host(server, client);
  upstream.reset();
  // The connection that was kept for the next request has ended with it.
  EXPECT_EQ(server.call("GET", "/").status, 502);
  EXPECT_EQ(server.call("GET", "/", {}, "other.example.test").status, 404);
  EXPECT_EQ(server.call("GET", "/", {}, "example.test").status, 404);
}

// -- who may come --

TEST_P(PeerServer, ARuntimeNeedsItsToken) {
  TempDir folder;
  write_file(folder / "runtimes", "acc-rt token-a\nacc-b token-b\n");
  Server server({"--runtimes-file=" + (folder / "runtimes").string()});
  RecordingUpstream upstream("a");
  auto options = client_of(server, stack(), upstream.port());
  options.authorization = "token-b";
  {
    PeerFrpc thief(options);
    EXPECT_TRUE(wait_until([&] { return thief.log().contains("the token is not for this host"); },
                           seconds(20), "the refusal"))
        << thief.log();
  }
  options.authorization = "token-a";
  PeerFrpc client(options);
  await_host(server, client);
  // A second client of the same runtime takes over, and the first one again when that goes.
  RecordingUpstream newer("newer");
  auto young_options = options;
  young_options.local_port = newer.port();
  {
    PeerFrpc young(young_options);
    EXPECT_TRUE(wait_until([&] { return server.call("GET", "/").body == "newer"; }, seconds(20),
                           "the newer client"))
        << young.log();
    young.stop();
  }
  EXPECT_EQ(server.call("GET", "/").body, "a");
  EXPECT_THAT(server.log(), Not(HasSubstr("token-a")));
}

TEST_P(PeerServer, ThePluginDecides) {
  RecordingUpstream plugin("plugin", [](const RecordedRequest& request, RawSocket& socket) {
    const bool is_refused = request.body.contains(R"("Authorization":"bad")");
    return RecordingUpstream::reply(
        socket, is_refused ? R"({"reject":true,"reject_reason":"unknown account"})"
                           : R"({"reject":false,"unchange":true})");
  });
  Server server({"--plugin.url=http://127.0.0.1:" + std::to_string(plugin.port()) + "/newProxy",
                 "--plugin.operations=Login,NewProxy,NewWorkConn,Ping"});
  RecordingUpstream upstream("a");
  auto options = client_of(server, stack(), upstream.port());
  options.authorization = "bad";
  {
    PeerFrpc client(options);
    EXPECT_TRUE(wait_until([&] { return client.log().contains("unknown account"); }, seconds(20),
                           "the plugin's reason"))
        << client.log();
  }
  options.authorization = "good";
  options.heartbeat = 1;
  PeerFrpc client(options);
  await_host(server, client);
  const auto asked_about = [&] {
    std::vector<std::string> targets;
    for (const auto& request : plugin.requests()) targets.push_back(request.target());
    return targets;
  };
  constexpr const char* kPing = "/newProxy?version=0.1.0&op=Ping";
  EXPECT_TRUE(wait_until([&] { return std::ranges::count(asked_about(), kPing) > 1; }, seconds(20),
                         "questions about Pings"));
  const auto targets = asked_about();
  EXPECT_THAT(targets, testing::Contains("/newProxy?version=0.1.0&op=Login"));
  EXPECT_THAT(targets, testing::Contains("/newProxy?version=0.1.0&op=NewProxy"));
  EXPECT_THAT(targets, testing::Contains("/newProxy?version=0.1.0&op=NewWorkConn"));
}

// -- what a client may ask for --

TEST_P(PeerServer, WorkConnectionsMayBeConnectionsOfTheirOwn) {
  for (const char* protocol : {"tcp", "websocket"}) {
    Server server;
    RecordingUpstream upstream("router", echo);
    auto options = client_of(server, {GetParam(), protocol, Tls::plain}, upstream.port());
    options.tcp_mux = false;
    options.signs_all = true;
    options.pool = 2;
    PeerFrpc client(options);
    await_host(server, client);
    const auto text = text_of(20'000'000);
    EXPECT_TRUE(server.call("POST", "/", text).body == text) << "20 MB came back changed";
    std::vector<int> statuses(50);
    std::vector<std::jthread> users;
    for (auto& status : statuses) {
      users.emplace_back([&] { status = server.call("POST", "/", text_of(20'000)).status; });
    }
    users.clear();
    EXPECT_THAT(statuses, testing::Each(200)) << server.log();
    server.process().kill();
    server.start();
    await_host(server, client);
    client.stop();
    EXPECT_TRUE(wait_until([&] { return server.call("GET", "/").status == 404; }, seconds(10),
                           "the end of the host"));
  }
}

TEST_P(PeerServer, AC16_WorkConnectionsOfTheirOwnNeedMoreThanARunId) {
  Server server;
  RecordingUpstream upstream("router", echo);
  auto options = client_of(server, {GetParam(), "tcp", Tls::none}, upstream.port());
  options.tcp_mux = false;
  PeerFrpc client(options);
  EXPECT_TRUE(
      wait_until([&] { return client.log().contains("token in NewWorkConn doesn't match"); },
                 seconds(20), "the refusal"))
      << client.log();
}

TEST_P(PeerServer, PingsAndWorkConnectionsMayCarryTheToken) {
  Server server({"--auth-scopes=HeartBeats,NewWorkConns"});
  RecordingUpstream upstream("router", echo);
  auto options = client_of(server, stack(), upstream.port());
  options.heartbeat = 1;
  {
    PeerFrpc client(options);
    EXPECT_TRUE(
        wait_until([&] { return client.log().contains("token in heartbeat doesn't match"); },
                   seconds(20), "the refusal"))
        << client.log();
  }
  options.signs_all = true;
  PeerFrpc client(options);
  await_host(server, client);
  EXPECT_FALSE(wait_until([&] { return client.log().contains("doesn't match"); }, seconds(3),
                          "a refusal of one of a few Pings"))
      << client.log();
  EXPECT_EQ(server.call("POST", "/", "x").body, "x");
}

TEST_P(PeerServer, ProxiesMayBeEncryptedAndCompressed) {
  const auto text = text_of(10'000'000);
  for (const bool encryption : {false, true}) {
    for (const bool compression : {false, true}) {
      SCOPED_TRACE(std::string(encryption ? "encrypted " : "") + (compression ? "compressed" : ""));
      Server server;
      RecordingUpstream upstream("router", echo);
      auto options = client_of(server, stack(), upstream.port());
      options.use_encryption = encryption;
      options.use_compression = compression;
      PeerFrpc client(options);
      await_host(server, client);
      EXPECT_TRUE(server.call("POST", "/", text).body == text) << "10 MB came back changed";
      EXPECT_EQ(server.call("POST", "/", "x").body, "x");
    }
  }
}

// -- stops --

TEST_P(PeerServer, AStopLetsRequestsFinish) {
  Server server;
  std::atomic<bool> asked = false;
  std::atomic<bool> may_answer = false;
  RecordingUpstream upstream("router", [&](const RecordedRequest& request, RawSocket& socket) {
    if (request.target() == "/slow") {
      asked = true;
      may_answer.wait(false);
    }
    return RecordingUpstream::reply(socket, request.target());
  });
  PeerFrpc client(client_of(server, stack(), upstream.port()));
  await_host(server, client);
  RawResponse answer;
  std::jthread user([&] { answer = server.call("GET", "/slow"); });
  EXPECT_TRUE(wait_until([&] { return asked.load(); }, seconds(10), "the request"));
  server.process().signal(SIGTERM);
  EXPECT_TRUE(wait_until([&] { return !server.admin("/readyz").ok(); }, seconds(10), "the drain"));
  may_answer = true;
  may_answer.notify_all();
  user.join();
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "/slow");
  EXPECT_EQ(server.process().wait(seconds(10)), 0);
}

TEST(PeerServerWireV2, RequestsReachTheUpstream) {
  GITOPS_REQUIRE_PEER(PeerFrpc);
  for (const bool tcp_mux : {true, false}) {
    Server server;
    RecordingUpstream upstream("router", echo);
    auto options = client_of(server, {Version::v0_70, "websocket", Tls::plain}, upstream.port());
    options.wire_v2 = true;
    options.tcp_mux = tcp_mux;
    options.signs_all = true;
    options.heartbeat = 1;
    options.use_compression = options.use_encryption = tcp_mux;
    PeerFrpc client(options);
    await_host(server, client);
    const auto text = text_of(10'000'000);
    EXPECT_TRUE(server.call("POST", "/", text).body == text) << "10 MB came back changed";
    for (int i = 0; i < 20; ++i) EXPECT_EQ(server.call("POST", "/", "x").body, "x");
    options.token = "guess";
    options.proxy = "other";
    PeerFrpc stranger(options);
    EXPECT_TRUE(
        wait_until([&] { return stranger.log().contains("token in login doesn't match token"); },
                   seconds(20), "the refusal"))
        << stranger.log();
  }
}

INSTANTIATE_TEST_SUITE_P(All, PeerServer, testing::Values(Version::v0_44, Version::v0_70),
                         [](const auto& param) {
                           return param.param == Version::v0_44 ? std::string("Frp044")
                                                                : std::string("Frp070");
                         });

// -- behind a proxy that ends TLS --

// nginx, which ends TLS for clients and users alike and says who the user is.
class Nginx {
 public:
  Nginx(const Server& server, const Certificate& certificate) {
    const auto folder = programs_.folder().string();
    const auto place = [](const std::string& path, int to) {
      return "    location " + path +
             " {\n      proxy_pass http://127.0.0.1:" + std::to_string(to) +
             ";\n      proxy_http_version 1.1;\n      proxy_set_header Host $http_host;\n"
             "      proxy_set_header Upgrade $http_upgrade;\n"
             "      proxy_set_header Connection $http_connection;\n"
             "      proxy_set_header X-Forwarded-For 203.0.113.5;\n"
             "      proxy_set_header X-Forwarded-Proto https;\n    }\n";
    };
    std::string config = "daemon off;\nmaster_process off;\nerror_log stderr;\npid " + folder +
                         "/nginx.pid;\nevents {}\nhttp {\n  access_log off;\n";
    for (const char* name : {"client_body", "proxy", "fastcgi", "uwsgi", "scgi"}) {
      config += std::string("  ") + name + "_temp_path " + folder + "/" + name + ";\n";
    }
    config += "  server {\n    listen 127.0.0.1:" + std::to_string(port) +
              " ssl;\n    ssl_certificate " + certificate.cert_file.string() +
              ";\n    ssl_certificate_key " + certificate.key_file.string() + ";\n" +
              place("/~!frp", server.tunnel_port) + place("/", server.port) + "  }\n}\n";
    const auto file = programs_.folder() / "nginx.conf";
    write_file(file, config);
    programs_.start("nginx", {find_program("nginx")->string(), "-c", file.string(), "-p", folder});
    programs_.await("nginx", [this] {
      return http_call({.url = "http://127.0.0.1:" + std::to_string(port)}).status != 0;
    });
  }

  const int port = free_port();

 private:
  PeerPrograms programs_{"gitops-nginx"};
};

TEST(PeerServerBehindNginx, ClientsAndUsersComeThroughOneHost) {
  GITOPS_REQUIRE_PEER(PeerFrpc);
  if (!find_program("nginx")) GTEST_SKIP() << "peers: nginx is missing (Debian: nginx-light)";
  Server server({"--trusted-proxies=127.0.0.1"});
  CertificateAuthority authority;
  const auto certificate =
      authority.issue({.common_name = "nginx", .organization = {}, .alt_names = {"localhost"}});
  const Nginx nginx(server, certificate);
  RecordingUpstream upstream("router", echo);
  auto options = client_of(server, {Version::v0_70, "wss", Tls::plain}, upstream.port());
  options.server_port = nginx.port;
  options.ca_file = authority.ca_file();
  PeerFrpc client(options);
  await_host(server, client);
  upstream.forget();
  const auto text = text_of(500'000);
  const auto answer = http_call({.method = "POST",
                                 .url = "https://localhost:" + std::to_string(nginx.port) + "/x?y",
                                 .headers = {std::string("Host: ") + kHost},
                                 .body = text,
                                 .ca_file = authority.ca_file()});
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_TRUE(answer.body == text);
  ASSERT_EQ(upstream.requests().size(), 1u);
  const auto request = upstream.requests()[0];
  EXPECT_EQ(request.target(), "/x?y");
  EXPECT_EQ(request.header("Host"), kHost);
  EXPECT_EQ(request.header("X-Forwarded-Proto"), "https");
  EXPECT_EQ(request.header("X-Forwarded-For"), "203.0.113.5, 127.0.0.1");
}

}  // namespace
}  // namespace gitops::test
