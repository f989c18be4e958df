// Clients of the tunnel-server with all that it has but its ports: logins and hosts, work
// connections, tokens that are withdrawn, clients that come back, several links of one client, and
// the end of the server. Clients and users are on connections in memory, in test time.
#include "tunnel-server/client_registry.hpp"

#include <cstdlib>
#include <optional>

#include <gmock/gmock.h>

#include "common/core/crypto.hpp"
#include "common/net/memory_channel.hpp"
#include "common/proxy/server.hpp"
#include "common/tunnel/authentication.hpp"
#include "common/tunnel/client_control.hpp"
#include "common/tunnel/control_coder.hpp"
#include "common/tunnel/work_channel.hpp"
#include "support/process.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"
#include "tunnel-server/clients_fixture.hpp"
#include "tunnel-server/scripted_client.hpp"
#include "tunnel-server/vhost_proxy.hpp"

namespace gitops::tunnel_server {
namespace {

using net::Channel;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using tunnel::ClientControl;
using tunnel::NewProxy;

TEST(TunnelServer, ARequestReachesTheClientOfItsHost) {
  run([](ClientsFixture& bed) -> Task<> {
    auto& client = bed.add("a");
    auto& other = bed.add("b", {.proxies = {proxy("acc-b")}});
    co_await client.serving();
    co_await other.serving();
    EXPECT_EQ(co_await bed.get(), "a");
    EXPECT_EQ(co_await bed.get("ACC-B.example.test:8080"), "b");
    EXPECT_EQ(co_await bed.get("acc-c.example.test"), "404 Not Found");
    EXPECT_EQ(co_await bed.get("example.test"), "404 Not Found");
    CO_ASSERT_EQ(client.requests.size(), 1u);
    EXPECT_THAT(client.requests[0], HasSubstr("\r\nHost: acc-rt.example.test\r\n"));
    EXPECT_THAT(other.requests[0], HasSubstr("\r\nHost: ACC-B.example.test:8080\r\n"));
  });
}

TEST(TunnelServer, RequestsWaitForWorkConnectionsWhereThereIsNoPool) {
  run([](ClientsFixture& bed) -> Task<> {
    auto& client = bed.add("a", {.pool = 0});
    co_await client.serving();
    EXPECT_EQ(client.asked, 0);
    EXPECT_EQ(co_await bed.get(), "a");
    EXPECT_EQ(client.asked, 1);
  });
}

TEST(TunnelServer, ThePoolIsFilledAgainAndBounded) {
  run([](ClientsFixture& bed) -> Task<> {
    auto& client = bed.add("a", {.pool = 1'000});
    co_await client.serving();
    const auto session = bed.clients.sessions()[0];
    CO_ASSERT_TRUE(co_await test::eventually([&] { return session->waiting() == 5; },
                                             "5 work connections that wait"));
    EXPECT_EQ(co_await bed.get(), "a");
    CO_ASSERT_TRUE(co_await test::eventually([&] { return session->waiting() == 5; },
                                             "5 work connections that wait"));
    EXPECT_EQ(client.asked, 6);
    EXPECT_EQ(session->carrying(), 1u);  // kept for the next request
    // Less than none is none.
    auto& other = bed.add("b", {.proxies = {proxy("acc-b")}, .pool = -1});
    co_await other.serving();
    EXPECT_EQ(co_await bed.get("acc-b.example.test"), "b");
    EXPECT_EQ(other.asked, 1);
  });
}

TEST(TunnelServer, ForwardingFieldsAreOurs) {
  run([](ClientsFixture& bed) -> Task<> {
    auto& client = bed.add("a");
    co_await client.serving();
    EXPECT_EQ(co_await bed.get("acc-rt.example.test"), "a");
    EXPECT_THAT(client.requests[0], HasSubstr("\r\nX-Forwarded-For: 203.0.113.9\r\n"));
    EXPECT_THAT(client.requests[0], HasSubstr("\r\nX-Forwarded-Host: acc-rt.example.test\r\n"));
    EXPECT_THAT(client.requests[0], HasSubstr("\r\nX-Forwarded-Proto: http\r\n"));
  });
}

TEST(TunnelServer, AC19_AUserCannotSayWhoItIs) {
  run([](ClientsFixture& bed) -> Task<> {
    auto& client = bed.add("a");
    co_await client.serving();
    const std::string forged =
        "X-Forwarded-For: 10.0.0.7\r\nX_Forwarded_For: 10.0.0.7\r\nForwarded: for=10.0.0.7\r\n"
        "X-Real-IP: 10.0.0.7\r\nX-Forwarded-Host: evil\r\nX-Forwarded-Proto: https\r\n";
    EXPECT_EQ(co_await bed.get("acc-rt.example.test", forged), "a");
    EXPECT_THAT(client.requests[0], testing::Not(HasSubstr("10.0.0.7")));
    EXPECT_THAT(client.requests[0], testing::Not(HasSubstr("evil")));
    // A proxy that is trusted may.
    auto proxied = bed.user(asio::ip::make_address("10.9.1.1"));
    CO_ASSERT_OK(co_await proxied->write(
        "GET / HTTP/1.1\r\nHost: acc-rt.example.test\r\nConnection: close\r\n"
        "X-Forwarded-For: 198.51.100.4\r\nX-Forwarded-Proto: https\r\n\r\n"));
    EXPECT_EQ(co_await ClientsFixture::answer(*proxied), "a");
    EXPECT_THAT(client.requests[1], HasSubstr("\r\nX-Forwarded-For: 198.51.100.4, 10.9.1.1\r\n"));
    EXPECT_THAT(client.requests[1], HasSubstr("\r\nX-Forwarded-Proto: https\r\n"));
  });
}

TEST(TunnelServer, AHostIsOpenToItsAllowedAddressesOnly) {
  run([](ClientsFixture& bed) -> Task<> {
    auto allowed = proxy("acc-rt");
    allowed.ips_allow_list = {"198.51.100.0/24"};
    auto& client = bed.add("a", {.proxies = {allowed}});
    co_await client.serving();
    EXPECT_EQ(co_await bed.get(), "403 Forbidden");
    // The first address can be forged; the last one, by a trusted proxy, counts.
    EXPECT_EQ(co_await bed.get("acc-rt.example.test", "X-Forwarded-For: 198.51.100.4\r\n"),
              "403 Forbidden");
    for (const auto& [hops, expected] : std::vector<std::pair<std::string, std::string>>{
             {"198.51.100.4", "a"}, {"198.51.100.4, 203.0.113.9", "403 Forbidden"}}) {
      auto proxied = bed.user(asio::ip::make_address("10.9.1.1"));
      CO_ASSERT_OK(co_await proxied->write(
          "GET / HTTP/1.1\r\nHost: acc-rt.example.test\r\nConnection: close\r\n"
          "X-Forwarded-For: " +
          hops + "\r\n\r\n"));
      EXPECT_EQ(co_await ClientsFixture::answer(*proxied), expected);
    }
  });
}

TEST(TunnelServer, AHostMayAskForAPassword) {
  run([](ClientsFixture& bed) -> Task<> {
    auto guarded = proxy("acc-rt");
    guarded.http_user = "ann";
    guarded.http_pwd = Secret("pass:word");
    guarded.host_header_rewrite = "internal";
    auto& client = bed.add("a", {.proxies = {guarded}});
    co_await client.serving();
    const std::string host = "acc-rt.example.test";
    EXPECT_EQ(co_await bed.get(host), "401 Unauthorized");
    EXPECT_EQ(co_await bed.get(host, "Authorization: Basic YW5uOnBhc3M=\r\n"), "401 Unauthorized");
    EXPECT_EQ(co_await bed.get(host, "Authorization: Bearer x\r\n"), "401 Unauthorized");
    EXPECT_EQ(co_await bed.get(host, "Authorization: basic YW5uOnBhc3M6d29yZA==\r\n"), "a");
    CO_ASSERT_EQ(client.requests.size(), 1u);
    EXPECT_THAT(client.requests[0], HasSubstr("\r\nHost: internal\r\n"));
  });
}

TEST(TunnelServer, AWrongTokenIsRefusedInTheWordsOfFrp) {
  run([](ClientsFixture& bed) -> Task<> {
    auto& client = bed.add("a", {.token = Secret("guess")});
    CO_ASSERT_TRUE(co_await test::eventually([&] { return client.control().failure().has_value(); },
                                             "a refused login"));
    EXPECT_THAT(client.refusal(),
                HasSubstr("token in login doesn't match token from configuration"));
    CO_ASSERT_TRUE(co_await test::eventually([&] { return bed.clients.size() == 0; },
                                             "the end of all clients"));
  });
}

TEST(TunnelServer, AC16_AHostIsNotTakenFromItsClient) {
  run([](ClientsFixture& bed) -> Task<> {
    auto& client = bed.add("a");
    co_await client.serving();
    auto& thief = bed.add("thief");
    CO_ASSERT_TRUE(
        co_await test::eventually([&] { return !thief.refusal().empty(); }, "a refusal"));
    EXPECT_EQ(thief.refusal(), "proxy name [acc-rt] is already in use");
    auto& variant = bed.add("variant", {.proxies = {proxy("ACC-RT")}});
    CO_ASSERT_TRUE(
        co_await test::eventually([&] { return !variant.refusal().empty(); }, "a refusal"));
    EXPECT_EQ(variant.refusal(), "router config conflict");
    EXPECT_EQ(co_await bed.get(), "a");
  });
}

TEST(TunnelServer, AC16_ATokenOfOneRuntimeGetsNoHostOfAnother) {
  run_with_runtimes([](ClientsFixture& bed) -> Task<> {
    auto& client = bed.add("a", {.proxies = {proxy("acc-rt", "token-a")}});
    co_await client.serving();
    // With the run id of the one that is to be robbed.
    auto& thief =
        bed.add("thief", {.proxies = {proxy("acc-rt", "token-b")}, .run_id = client.run_id()});
    CO_ASSERT_TRUE(
        co_await test::eventually([&] { return !thief.refusal().empty(); }, "a refusal"));
    EXPECT_EQ(thief.refusal(), "the token is not for this host");
    auto& stranger = bed.add("stranger", {.proxies = {proxy("acc-rt", "token-x")}});
    CO_ASSERT_TRUE(
        co_await test::eventually([&] { return !stranger.refusal().empty(); }, "a refusal"));
    EXPECT_EQ(stranger.refusal(), "invalid token");
    EXPECT_EQ(co_await bed.get(), "a");
    EXPECT_FALSE(client.ending);
  });
}

TEST(TunnelServer, AC16_ARuntimeThatIsTakenFromTheListLosesItsHost) {
  test::TempDir folder;
  const auto file = folder / "runtimes";
  test::write_file(file, "acc-rt token-a\nacc-b token-b\n");
  run_with(
      [&] {
        return Authorizer::Options{.token = Secret("s3cret"), .runtimes_file = file.string()};
      },
      {},
      [&](ClientsFixture& bed) -> Task<> {
        auto& client = bed.add("a", {.proxies = {proxy("acc-rt", "token-a")}});
        auto& other = bed.add("b", {.proxies = {proxy("acc-b", "token-b")}});
        co_await client.serving();
        co_await other.serving();
        bed.clients.check_again();
        test::write_file(file, "acc-b token-b\nacc-c token-c\nacc-d token-d\n");
        co_await sleep_for(seconds(2));
        bed.clients.check_again();
        EXPECT_EQ(co_await bed.get(), "404 Not Found");
        CO_ASSERT_TRUE(co_await test::eventually([&] { return client.ending.has_value(); },
                                                 "the end of the connection"));
        EXPECT_EQ(co_await bed.get("acc-b.example.test"), "b");
        EXPECT_FALSE(other.ending);
      });
}

// The new list is first read for another client, before the periodic check.
TEST(TunnelServer, AC16_ARuntimeThatIsTakenFromTheListLosesItsHostWhoeverNoticesIt) {
  test::TempDir folder;
  const auto file = folder / "runtimes";
  test::write_file(file, "acc-rt token-a\nacc-b token-b\n");
  run_with(
      [&] {
        return Authorizer::Options{.token = Secret("s3cret"), .runtimes_file = file.string()};
      },
      {},
      [&](ClientsFixture& bed) -> Task<> {
        auto& client = bed.add("a", {.proxies = {proxy("acc-rt", "token-a")}});
        co_await client.serving();
        bed.clients.check_again();
        test::write_file(file, "acc-b token-b\nacc-c token-c\nacc-d token-d\n");
        co_await sleep_for(seconds(2));
        auto& other = bed.add("c", {.proxies = {proxy("acc-c", "token-c")}});
        co_await other.serving();
        bed.clients.check_again();
        EXPECT_EQ(co_await bed.get(), "404 Not Found");
        CO_ASSERT_TRUE(co_await test::eventually([&] { return client.ending.has_value(); },
                                                 "the end of the connection"));
        EXPECT_EQ(co_await bed.get("acc-c.example.test"), "c");
        EXPECT_FALSE(other.ending);
      });
}

TEST(TunnelServer, AC16_ARunIdAloneBringsNoWorkConnection) {
  run([](ClientsFixture& bed) -> Task<> {
    auto& client = bed.add("a", {.pool = 0});
    auto& thief = bed.add("thief", {.proxies = {proxy("acc-b")}, .pool = 0});
    co_await client.serving();
    co_await thief.serving();
    auto stream = thief.link().open().value();
    std::string offer;
    EXPECT_TRUE(append_message(offer, tunnel::NewWorkConn{.run_id = client.run_id()}));
    CO_ASSERT_OK(co_await stream->write(offer));
    EXPECT_THAT(co_await read(*stream), HasSubstr("the run id is not that of this connection"));
    for (const auto& session : bed.clients.sessions()) EXPECT_EQ(session->waiting(), 0u);
  });
}

TEST(TunnelServer, AC23_AProxyIsClosedByItsOwnClientOnly) {
  run([](ClientsFixture& bed) -> Task<> {
    auto& client = bed.add("a");
    auto& other = bed.add("b", {.proxies = {proxy("acc-b")}});
    co_await client.serving();
    co_await other.serving();
    // A client that closes what it was refused.
    auto& thief = bed.add("thief");
    CO_ASSERT_TRUE(
        co_await test::eventually([&] { return !thief.refusal().empty(); }, "a refusal"));
    co_await thief.close_proxies();
    co_await other.close_proxies();
    CO_ASSERT_TRUE(
        co_await test::eventually([&] { return bed.table.size() == 1; }, "one host in the table"));
    EXPECT_EQ(co_await bed.get(), "a");
    EXPECT_EQ(co_await bed.get("acc-b.example.test"), "404 Not Found");
  });
}

TEST(TunnelServer, AC23_UnknownHostsCostNothing) {
  run([](ClientsFixture& bed) -> Task<> {
    for (int i = 0; i < 50; ++i) {
      EXPECT_EQ(co_await bed.get("h" + std::to_string(i) + ".example.test"), "404 Not Found");
    }
    const auto text = bed.metrics.expose();
    EXPECT_THAT(text,
                HasSubstr(R"(gitops_tunnel_server_requests_total{code="4xx",host="none"} 50)"));
    EXPECT_THAT(text, testing::Not(HasSubstr("h1.example.test")));
    EXPECT_EQ(bed.table.size(), 0u);
  });
}

// -- clients whose work connections are connections of their own --

TEST(TunnelServerWithoutMux, RequestsReachTheClient) {
  run([](ClientsFixture& bed) -> Task<> {
    auto& client = bed.add("a", {.pool = 2, .mux = false, .sign_work = true});
    co_await client.serving();
    const auto session = bed.clients.sessions()[0];
    CO_ASSERT_TRUE(co_await test::eventually([&] { return session->waiting() == 2; },
                                             "2 work connections that wait"));
    EXPECT_EQ(co_await bed.get(), "a");
    EXPECT_EQ(session->carrying(), 1u);  // kept for the next request
    CO_ASSERT_TRUE(co_await test::eventually([&] { return session->waiting() == 2; },
                                             "2 work connections that wait"));
    client.holds_answers = true;
    std::vector<std::unique_ptr<Channel>> users;
    for (int i = 0; i < 50; ++i) {
      CO_ASSERT_OK(co_await users.emplace_back(bed.user())
                       ->write("GET / HTTP/1.1\r\nHost: acc-rt.example.test\r\n\r\n"));
    }
    CO_ASSERT_TRUE(co_await test::eventually([&] { return client.requests.size() == 51; },
                                             "51 requests at the client"));
    EXPECT_EQ(bed.clients.size(), 1u);
    client.holds_answers = false;
    for (auto& user : users) EXPECT_THAT(co_await read(*user), HasSubstr("200 OK"));
  });
}

TEST(TunnelServerWithoutMux, AC16_ARunIdAloneBringsNoWorkConnection) {
  run([](ClientsFixture& bed) -> Task<> {
    auto& client = bed.add("a", {.pool = 0, .mux = false, .sign_work = true});
    co_await client.serving();
    EXPECT_EQ(client.run_id().size(), 32u);
    const auto answer_to = [&](tunnel::NewWorkConn work) -> Task<std::string> {
      auto connection = bed.connect();
      std::string bytes;
      EXPECT_TRUE(append_message(bytes, work));
      EXPECT_TRUE(co_await connection->write(bytes));
      co_return co_await read(*connection);
    };
    const auto session = bed.clients.sessions()[0];
    EXPECT_THAT(co_await answer_to({.run_id = client.run_id()}),
                HasSubstr("token in NewWorkConn doesn't match"));
    EXPECT_THAT(co_await answer_to({.run_id = client.run_id(),
                                    .privilege_key = tunnel::privilege_key(Secret("guess"), 7),
                                    .timestamp = 7}),
                HasSubstr("token in NewWorkConn doesn't match"));
    // The token alone does not do either.
    EXPECT_EQ(co_await answer_to({.run_id = "0123456789abcdef",
                                  .privilege_key = tunnel::privilege_key(Secret("s3cret"), 7),
                                  .timestamp = 7}),
              "(end)");
    EXPECT_EQ(session->waiting(), 0u);
    EXPECT_FALSE(client.ending);
  });
}

// A client chooses what its Login says, and must not thereby get the connections of another one.
TEST(TunnelServerWithoutMux, AC16_ALoginWithTheRunIdOfAnotherOneGetsNoneOfItsConnections) {
  run([](ClientsFixture& bed) -> Task<> {
    auto& client = bed.add("a", {.mux = false, .sign_work = true});
    co_await client.serving();
    auto& thief = bed.add("thief", {.proxies = {proxy("acc-b")},
                                    .run_id = client.run_id(),
                                    .pool = 0,
                                    .mux = false,
                                    .sign_work = true});
    co_await thief.serving();
    EXPECT_NE(thief.run_id(), client.run_id());
    auto& with_mux =
        bed.add("with mux", {.proxies = {proxy("acc-c")}, .run_id = client.run_id(), .pool = 0});
    co_await with_mux.serving();
    for (int i = 0; i < 3; ++i) EXPECT_EQ(co_await bed.get(), "a");
    EXPECT_EQ(co_await bed.get("acc-b.example.test"), "thief");
    EXPECT_EQ(co_await bed.get("acc-c.example.test"), "with mux");
  });
}

TEST(TunnelServerWithoutMux, AClientThatSignsNothingHearsWhatItNeeds) {
  run([](ClientsFixture& bed) -> Task<> {
    auto& client = bed.add("a", {.mux = false});
    CO_ASSERT_TRUE(co_await test::eventually([&] { return !client.work_error.empty(); },
                                             "a refused work connection"));
    EXPECT_THAT(client.work_error, HasSubstr("auth.additionalScopes"));
  });
}

TEST(TunnelServerWithoutMux, IsRefusedWhereThereIsNoToken) {
  run_with([] { return Authorizer::Options{}; }, {},
           [](ClientsFixture& bed) -> Task<> {
             auto& client = bed.add("a", {.token = {}, .mux = false, .sign_work = true});
             CO_ASSERT_TRUE(co_await test::eventually(
                 [&] { return client.control().failure().has_value(); }, "a refused login"));
             EXPECT_THAT(client.refusal(), HasSubstr("tcpMux = false needs a token"));
             auto& other = bed.add("b", {.token = {}});
             co_await other.serving();
           });
}

TEST(TunnelServerWithoutMux, AClientThatComesBackReplacesItself) {
  run([](ClientsFixture& bed) -> Task<> {
    const ScriptedClientOptions options{.mux = false, .sign_work = true};
    auto& before = bed.add("before", options);
    co_await before.serving();
    before.holds_answers = true;
    auto under_way = bed.user();
    CO_ASSERT_OK(co_await under_way->write(
        "GET / HTTP/1.1\r\nHost: acc-rt.example.test\r\nConnection: close\r\n\r\n"));
    CO_ASSERT_TRUE(co_await test::eventually([&] { return before.requests.size() == 1; },
                                             "a request at the client"));
    auto again = options;
    again.run_id = before.run_id();
    auto& after = bed.add("after", again);
    co_await after.serving();
    EXPECT_EQ(co_await bed.get(), "after");
    CO_ASSERT_TRUE(co_await test::eventually([&] { return bed.clients.size() == 1; },
                                             "the end of all clients but one"));
    before.holds_answers = false;
    EXPECT_EQ(co_await ClientsFixture::answer(*under_way), "before");
  });
}

TEST(TunnelServerWithoutMux, AC20_AClientThatFallsSilentIsGivenUp) {
  run([](ClientsFixture& bed) -> Task<> {
    auto& client =
        bed.add("a", {.mux = false, .sign_work = true, .ping_interval = std::chrono::hours(1)});
    co_await client.serving();
    const auto begin = Clock::now();
    CO_ASSERT_TRUE(co_await test::eventually([&] { return bed.clients.size() == 0; },
                                             "the end of all clients"));
    EXPECT_LE(Clock::now() - begin, seconds(91));
    auto& alive = bed.add("b", {.mux = false, .sign_work = true});
    co_await alive.serving();
    co_await sleep_for(std::chrono::minutes(10));
    EXPECT_EQ(co_await bed.get(), "b");
  });
}

TEST(TunnelServerWithoutMux, AC15_AStrangerHasOneMessage) {
  run([](ClientsFixture& bed) -> Task<> {
    for (const auto& bytes :
         {std::string("o\x7f\xff\xff\xff\xff\xff\xff\xff", 9),
          std::string("w\0\0\0\0\0\0\x28\x01", 9), std::string("w\0\0\0\0\0\0\0\2{}o", 12),
          std::string("o\0\0\0\0\0\0\0\2{}p", 12)}) {
      auto connection = bed.connect();
      CO_ASSERT_OK(co_await connection->write(bytes));
      EXPECT_THAT(co_await read(*connection), HasSubstr("("));
      CO_ASSERT_TRUE(co_await test::eventually([&] { return bed.clients.size() == 0; },
                                               "the end of all clients"));
    }
  });
}

// -- wire v2 --

TEST(TunnelServerWireV2, RequestsReachTheClientWithAndWithoutMux) {
  run([](ClientsFixture& bed) -> Task<> {
    auto& client = bed.add("a", {.pool = 2, .wire = tunnel::Wire::v2});
    auto& other = bed.add(
        "b",
        {.proxies = {proxy("acc-b")}, .mux = false, .sign_work = true, .wire = tunnel::Wire::v2});
    co_await client.serving();
    co_await other.serving();
    for (int i = 0; i < 5; ++i) {
      EXPECT_EQ(co_await bed.get(), "a");
      EXPECT_EQ(co_await bed.get("acc-b.example.test"), "b");
    }
    EXPECT_EQ((co_await bed.get("acc-rt.example.test", {}, "/large")).size(), 2'000'000u);
  });
}

TEST(TunnelServerWireV2, AWrongTokenIsRefusedInTheWordsOfFrp) {
  run([](ClientsFixture& bed) -> Task<> {
    auto& client = bed.add("a", {.token = Secret("guess"), .wire = tunnel::Wire::v2});
    CO_ASSERT_TRUE(co_await test::eventually([&] { return client.control().failure().has_value(); },
                                             "a refused login"));
    EXPECT_THAT(client.refusal(), HasSubstr("token in login doesn't match"));
  });
}

TEST(TunnelServerWireV2, AClientOfOtherCiphersHearsWhichThereIs) {
  run([](ClientsFixture& bed) -> Task<> {
    auto channel = bed.connect();
    tunnel::yamux::Session session({.role = tunnel::yamux::Role::client}, Clock::now());
    const auto stream = *session.open(Clock::now());
    auto hello = tunnel::ClientHello::make("tcp", true, true, std::string(32, 'r'));
    hello.payload.replace(hello.payload.find("aes-256-gcm"), 11, "xchacha20-p");
    std::string bytes;
    append_hello(bytes, hello);
    EXPECT_TRUE(append_message(bytes, tunnel::Login{.version = "0.70.0"}, tunnel::Wire::v2));
    session.write(stream, bytes);
    CO_ASSERT_OK(co_await channel->write(session.output()));
    std::string answer;
    while (!answer.contains("aes-256-gcm")) {
      const auto part = co_await read(*channel);
      CO_ASSERT_TRUE(!part.starts_with("("));
      answer += part;
    }
    EXPECT_THAT(answer, HasSubstr("wire v2 needs JSON and aes-256-gcm here"));
  });
}

// -- what else may carry the token --

TEST(TunnelServerScopes, PingsAndWorkConnectionsCarryTheToken) {
  ClientRegistry::Options options;
  options.session.auth_scopes = {.heart_beats = true, .new_work_conns = true};
  run(
      [](ClientsFixture& bed) -> Task<> {
        auto& client =
            bed.add("a", {.sign_pings = true, .sign_work = true, .ping_interval = seconds(1)});
        co_await client.serving();
        co_await sleep_for(seconds(20));
        EXPECT_FALSE(client.ending);
        EXPECT_EQ(co_await bed.get(), "a");
        auto& no_pings = bed.add(
            "b", {.proxies = {proxy("acc-b")}, .sign_work = true, .ping_interval = seconds(1)});
        CO_ASSERT_TRUE(co_await test::eventually(
            [&] { return no_pings.control().failure().has_value(); }, "a refused login"));
        EXPECT_THAT(no_pings.refusal(), HasSubstr("token in heartbeat doesn't match"));
        auto& no_work = bed.add("c", {.proxies = {proxy("acc-c")}, .sign_pings = true});
        CO_ASSERT_TRUE(co_await test::eventually([&] { return !no_work.work_error.empty(); },
                                                 "a refused work connection"));
        EXPECT_EQ(co_await bed.get("acc-c.example.test"), "504 Gateway Timeout");
      },
      options);
}

TEST(TunnelServer, ProxiesMayBeEncryptedAndCompressed) {
  run([](ClientsFixture& bed) -> Task<> {
    std::vector<NewProxy> proxies;
    for (const bool encryption : {false, true}) {
      for (const bool compression : {false, true}) {
        auto& asked = proxies.emplace_back(proxy("p-" + std::to_string(proxies.size())));
        asked.use_encryption = encryption;
        asked.use_compression = compression;
      }
    }
    auto& client = bed.add("a", {.proxies = proxies});
    co_await client.serving();
    for (const auto& asked : proxies) {
      const auto host = asked.subdomain + ".example.test";
      EXPECT_EQ(co_await bed.get(host), "a");
      EXPECT_EQ((co_await bed.get(host, {}, "/large")).size(), 2'000'000u);
    }
    EXPECT_EQ(client.requests.size(), 8u);
  });
}

TEST(TunnelServer, TheNewestClientServesWithoutAGap) {
  run_with_runtimes([](ClientsFixture& bed) -> Task<> {
    auto& old = bed.add("old", {.proxies = {proxy("acc-rt", "token-a")}});
    co_await old.serving();
    EXPECT_EQ(co_await bed.get(), "old");
    old.holds_answers = true;
    auto under_way = bed.user();
    CO_ASSERT_OK(co_await under_way->write(
        "GET / HTTP/1.1\r\nHost: acc-rt.example.test\r\nConnection: close\r\n\r\n"));
    CO_ASSERT_TRUE(co_await test::eventually([&] { return old.requests.size() == 2; },
                                             "2 requests at the client"));
    auto& young = bed.add("young", {.proxies = {proxy("acc-rt", "token-a2")}});
    co_await young.serving();
    EXPECT_EQ(co_await bed.get(), "young");
    old.holds_answers = false;
    EXPECT_EQ(co_await ClientsFixture::answer(*under_way), "old");
    EXPECT_EQ(co_await bed.get(), "young");
    // When it goes, the old one is still there.
    co_await young.stop();
    EXPECT_EQ(co_await bed.get(), "old");
  });
}

// -- several links of one client --

TEST(TunnelServerLinks, RequestsAreSpreadOverTheLinksOfTheNewestClient) {
  run_with_runtimes([](ClientsFixture& bed) -> Task<> {
    const auto link = [](std::string instance) {
      return ScriptedClientOptions{.proxies = {proxy("acc-rt", "token-a")},
                                   .instance = std::move(instance)};
    };
    auto& old = bed.add("old", link("old"));
    co_await old.serving();
    auto& first = bed.add("first", link("new"));
    auto& second = bed.add("second", link("new"));
    co_await first.serving();
    co_await second.serving();
    // Requests at a time go to the link with fewer of them.
    first.holds_answers = second.holds_answers = true;
    std::vector<std::unique_ptr<Channel>> users;
    for (int i = 0; i < 40; ++i) {
      CO_ASSERT_OK(co_await users.emplace_back(bed.user())
                       ->write("GET / HTTP/1.1\r\nHost: acc-rt.example.test\r\n\r\n"));
      CO_ASSERT_TRUE(co_await test::eventually(
          [&] { return first.requests.size() + second.requests.size() > users.size() - 1; },
          "the users' requests"));
    }
    EXPECT_EQ(first.requests.size(), 20u);
    EXPECT_EQ(second.requests.size(), 20u);
    first.holds_answers = second.holds_answers = false;
    for (auto& user : users) EXPECT_THAT(co_await read(*user), HasSubstr("200 OK"));
    users.clear();
    // One after the other they take turns.
    for (int i = 0; i < 20; ++i) (void)co_await bed.get();
    EXPECT_EQ(first.requests.size(), 30u);
    EXPECT_EQ(second.requests.size(), 30u);
    // Another link of an older client does not make it the newest.
    auto& late = bed.add("late", link("old"));
    co_await late.serving();
    for (int i = 0; i < 4; ++i) (void)co_await bed.get();
    EXPECT_EQ(first.requests.size() + second.requests.size(), 64u);
    EXPECT_TRUE(late.requests.empty() && old.requests.empty());
    // One link is enough, and then the older client.
    co_await first.stop();
    EXPECT_EQ(co_await bed.get(), "second");
    co_await second.stop();
    const auto answer = co_await bed.get();
    EXPECT_TRUE(answer == "old" || answer == "late") << answer;
  });
}

// Its packets are dropped from now on. It has work connections that wait, and one that was used.
TEST(TunnelServerLinks, AC20_ALinkThatIsHalfOpenCostsOneUserASecondAndAHalf) {
  for (const bool has_pool : {true, false}) {
    run_with_runtimes([has_pool](ClientsFixture& bed) -> Task<> {
      ClientsFixture::Cable cable(co_await asio::this_coro::executor);
      const ScriptedClientOptions options{
          .proxies = {proxy("acc-rt", "token-a")}, .pool = has_pool ? 5 : 0, .instance = "one"};
      auto& good = bed.add("good", options);
      co_await good.serving();
      auto& bad = bed.add_by(cable, "bad", options);
      co_await bad.serving();
      for (int i = 0; i < 10; ++i) (void)co_await bed.get();
      EXPECT_EQ(bad.requests.size(), 5u);
      co_await sleep_for(seconds(2));  // so that its connections are idle
      cable.is_cut = true;
      std::vector<Clock::duration> slow;
      const auto cut = Clock::now();
      for (int i = 0; i < 100; ++i) {
        const auto begin = Clock::now();
        EXPECT_EQ(co_await bed.get(), "good");
        if (Clock::now() - begin > milliseconds(100)) slow.push_back(Clock::now() - begin);
      }
      CO_ASSERT_EQ(slow.size(), 1u);
      EXPECT_LE(slow[0], milliseconds(1'600));
      CO_ASSERT_TRUE(co_await test::eventually([&] { return bed.clients.size() == 1; },
                                               "the end of all clients but one"));
      EXPECT_LE(Clock::now() - cut, seconds(6));
      cable.tasks.cancel();
      co_await cable.tasks.join();
    });
  }
}

TEST(TunnelServerLinks, AC20_TheOnlyLinkIsFoundDeadSoonerWhenSomebodyNeedsIt) {
  run([](ClientsFixture& bed) -> Task<> {
    ClientsFixture::Cable cable(co_await asio::this_coro::executor);
    auto& client = bed.add_by(cable, "a", {});
    co_await client.serving();
    EXPECT_EQ(co_await bed.get(), "a");
    co_await sleep_for(seconds(2));
    cable.is_cut = true;
    const auto begin = Clock::now();
    EXPECT_THAT(co_await bed.get(), HasSubstr("50"));
    EXPECT_LE(Clock::now() - begin, milliseconds(5'500));
    cable.tasks.cancel();
    co_await cable.tasks.join();
  });
}

TEST(TunnelServerLinks, AC20_AClientThatStopsWhileAUserWaitsIsFoundWithin5Seconds) {
  ClientRegistry::Options options;
  options.session.link.ping_timeout = milliseconds(4'666);  // as the program has it
  for (const bool has_pool : {true, false}) {
    const auto fixture = [has_pool](ClientsFixture& bed) -> Task<> {
      ClientsFixture::Cable cable(co_await asio::this_coro::executor);
      auto& client = bed.add_by(cable, "a", {.pool = has_pool ? 1 : 0});
      co_await client.serving();
      EXPECT_EQ(co_await bed.get(), "a");
      cable.is_cut = true;  // it was heard just now
      const auto begin = Clock::now();
      EXPECT_THAT(co_await bed.get(), HasSubstr("50"));
      EXPECT_LE(Clock::now() - begin, seconds(5));
      cable.tasks.cancel();
      co_await cable.tasks.join();
    };
    run(fixture, options);
  }
}

// As many as both sides allow, less those that wait for users.
TEST(TunnelServerLinks, AUserBeyondWhatALinkCarriesIsToldSoAtOnce) {
  for (const bool client_tells : {true, false}) {
    ClientRegistry::Options options;
    if (!client_tells) options.session.max_streams = 20;
    run(
        [client_tells](ClientsFixture& bed) -> Task<> {
          auto& client = bed.add("a", {.max_work = client_tells ? 19 : 0});
          co_await client.serving();
          EXPECT_EQ(client.control().max_work_conns(), 8);
          client.holds_answers = true;
          std::vector<std::unique_ptr<Channel>> users;
          for (int i = 0; i < 8; ++i) {
            users.push_back(bed.user());
            CO_ASSERT_OK(co_await users.back()->write(
                "GET / HTTP/1.1\r\nHost: acc-rt.example.test\r\nConnection: close\r\n\r\n"));
          }
          CO_ASSERT_TRUE(co_await test::eventually([&] { return client.requests.size() == 8; },
                                                   "8 requests at the client"));
          const auto begin = Clock::now();
          auto more = bed.user();
          CO_ASSERT_OK(co_await more->write("GET / HTTP/1.1\r\nHost: acc-rt.example.test\r\n\r\n"));
          const auto refused = co_await read(*more);
          EXPECT_THAT(refused, testing::StartsWith("HTTP/1.1 503 "));
          EXPECT_THAT(refused, HasSubstr("Retry-After: 1\r\n"));
          EXPECT_THAT(refused, HasSubstr("carries as much as it can"));
          EXPECT_LE(Clock::now() - begin, milliseconds(100));
          client.holds_answers = false;
          for (auto& user : users) EXPECT_EQ(co_await ClientsFixture::answer(*user), "a");
          EXPECT_EQ(co_await bed.get(), "a");
        },
        options);
  }
}

TEST(TunnelServerLinks, AFullLinkLeavesItsUsersToOthers) {
  run_with_runtimes([](ClientsFixture& bed) -> Task<> {
    ScriptedClientOptions options{
        .proxies = {proxy("acc-rt", "token-a")}, .instance = "one", .max_work = 13};
    auto& small = bed.add("small", options);
    co_await small.serving();
    options.max_work = 0;
    auto& large = bed.add("large", options);
    co_await large.serving();
    small.holds_answers = large.holds_answers = true;
    std::vector<std::unique_ptr<Channel>> users;
    for (int i = 0; i < 20; ++i) {
      users.push_back(bed.user());
      CO_ASSERT_OK(co_await users.back()->write(
          "GET / HTTP/1.1\r\nHost: acc-rt.example.test\r\nConnection: close\r\n\r\n"));
    }
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] { return small.requests.size() + large.requests.size() == 20; }, "all 20 requests"));
    EXPECT_EQ(small.requests.size(), 2u);
    small.holds_answers = large.holds_answers = false;
    for (auto& user : users)
      EXPECT_THAT(co_await ClientsFixture::answer(*user), testing::AnyOf("small", "large"));
  });
}

// Any byte is a sign of life, and yamux has pings of its own: frpc since 0.58 sends no Ping.
TEST(TunnelServer, AClientThatSendsNoPingStays) {
  run([](ClientsFixture& bed) -> Task<> {
    auto& client = bed.add("a", {.ping_interval = std::chrono::hours(24)});
    co_await client.serving();
    co_await sleep_for(seconds(85));  // its own time limit without a Pong is 90 s
    EXPECT_FALSE(client.ending);
    EXPECT_EQ(co_await bed.get(), "a");
  });
}

TEST(TunnelServer, AUserWhoLeavesFreesTheWorkConnection) {
  run([](ClientsFixture& bed) -> Task<> {
    auto& client = bed.add("a", {.pool = 0});
    co_await client.serving();
    const auto session = bed.clients.sessions()[0];
    for (int i = 0; i < 20; ++i) {
      auto user = bed.user();
      CO_ASSERT_OK(
          co_await user->write("GET /large HTTP/1.1\r\nHost: acc-rt.example.test\r\n\r\n"));
      EXPECT_THAT(co_await read(*user), HasSubstr("200 OK"));
      EXPECT_EQ(session->carrying(), 1u);
      user->abort();
      const auto begin = Clock::now();
      CO_ASSERT_TRUE(co_await test::eventually([&] { return session->carrying() == 0; },
                                               "the end of all requests"));
      EXPECT_LE(Clock::now() - begin, seconds(1));
    }
    EXPECT_EQ(co_await bed.get(), "a");
  });
}

TEST(TunnelServer, AClientThatComesBackReplacesItself) {
  run([](ClientsFixture& bed) -> Task<> {
    auto& before = bed.add("before");
    co_await before.serving();
    before.holds_answers = true;
    auto under_way = bed.user();
    CO_ASSERT_OK(co_await under_way->write(
        "GET / HTTP/1.1\r\nHost: acc-rt.example.test\r\nConnection: close\r\n\r\n"));
    CO_ASSERT_TRUE(co_await test::eventually([&] { return before.requests.size() == 1; },
                                             "a request at the client"));
    auto& after = bed.add("after", {.run_id = before.run_id()});
    co_await after.serving();
    EXPECT_EQ(after.run_id(), before.run_id());
    EXPECT_EQ(co_await bed.get(), "after");
    EXPECT_EQ(bed.clients.size(), 2u);  // somebody is there
    before.holds_answers = false;
    EXPECT_EQ(co_await ClientsFixture::answer(*under_way), "before");
    CO_ASSERT_TRUE(co_await test::eventually([&] { return bed.clients.size() == 1; },
                                             "the end of all clients but one"));
    EXPECT_EQ(co_await bed.get(), "after");
  });
}

TEST(TunnelServer, ADeadClientIsReplacedAtOnce) {
  run([](ClientsFixture& bed) -> Task<> {
    auto& before = bed.add("before");
    co_await before.serving();
    const auto run_id = before.run_id();
    co_await before.stop();  // and its connection stays half-open for the server's eyes
    auto& after = bed.add("after", {.run_id = run_id});
    const auto begin = Clock::now();
    co_await after.serving();
    EXPECT_LE(Clock::now() - begin, seconds(1));
    EXPECT_EQ(co_await bed.get(), "after");
  });
}

TEST(TunnelServer, AC20_AHalfOpenClientIsFoundIn15Seconds) {
  run([](ClientsFixture& bed) -> Task<> {
    // A client that logs in and is never heard of again.
    auto channel = bed.connect();
    tunnel::yamux::Session session({.role = tunnel::yamux::Role::client}, Clock::now());
    const auto stream = *session.open(Clock::now());
    ClientControl control({.login = {.version = "0.70.0"}, .token = Secret("s3cret")},
                          {.iv = std::string(16, 'i'), .seed = 1}, wall_now(), Clock::now());
    session.write(stream, control.output());
    CO_ASSERT_OK(co_await channel->write(session.output()));
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] {
          const auto all = bed.clients.sessions();
          return all.size() == 1 && all[0]->is_logged_in();
        },
        "a client that is logged in"));
    const auto begin = Clock::now();
    CO_ASSERT_TRUE(co_await test::eventually([&] { return bed.clients.size() == 0; },
                                             "the end of all clients"));
    EXPECT_LE(Clock::now() - begin, seconds(15));
  });
}

TEST(TunnelServer, AC20_AClientThatBringsNoWorkOccupiesAUserForTenSeconds) {
  run([](ClientsFixture& bed) -> Task<> {
    auto& client = bed.add("a", {.brings_work = false});
    co_await client.serving();
    const auto begin = Clock::now();
    EXPECT_EQ(co_await bed.get(), "504 Gateway Timeout");
    EXPECT_GE(Clock::now() - begin, milliseconds(9'900));
    EXPECT_LE(Clock::now() - begin, milliseconds(11'000));
  });
}

// Such as connections that were lost on their way. Requests for other users do not delay the next
// request in their place.
TEST(TunnelServer, WorkThatDidNotComeIsRequestedAgainWhileOthersAreRequested) {
  run([](ClientsFixture& bed) -> Task<> {
    auto& client = bed.add("a", {.pool = 0, .ignored_work = 3});
    co_await client.serving();
    TaskGroup others(co_await asio::this_coro::executor);
    for (int i = 0; i < 3; ++i) {
      others.spawn("user", [&bed]() -> Task<> { (void)co_await bed.get(); });
    }
    CO_ASSERT_TRUE(
        co_await test::eventually([&] { return client.asked == 3; }, "requests that are ignored"));
    co_await sleep_for(seconds(6));
    // The work connection that is requested for this user goes to the one who waits longest.
    EXPECT_EQ(co_await bed.get(), "a");
    co_await others.join();
  });
}

TEST(TunnelServer, AnotherClientOfTheHostIsAskedWhenTheNewestBringsNoWork) {
  run_with_runtimes([](ClientsFixture& bed) -> Task<> {
    auto& old = bed.add("old", {.proxies = {proxy("acc-rt", "token-a")}});
    co_await old.serving();
    auto& young = bed.add(
        "young", {.proxies = {proxy("acc-rt", "token-a")}, .pool = 0, .brings_work = false});
    co_await young.serving();
    const auto begin = Clock::now();
    EXPECT_EQ(co_await bed.get(), "old");
    EXPECT_LE(Clock::now() - begin, seconds(2));
  });
}

TEST(TunnelServer, AC21_AUserWhoDoesNotReadSlowsNoOther) {
  run([](ClientsFixture& bed) -> Task<> {
    auto& client = bed.add("a", {.pool = 5});
    co_await client.serving();
    std::vector<std::unique_ptr<Channel>> slow;
    for (int i = 0; i < 20; ++i) {
      auto& user = slow.emplace_back(bed.user());
      CO_ASSERT_OK(
          co_await user->write("GET /large HTTP/1.1\r\nHost: acc-rt.example.test\r\n\r\n"));
    }
    CO_ASSERT_TRUE(co_await test::eventually([&] { return client.requests.size() == 20; },
                                             "20 requests at the client"));
    const auto begin = Clock::now();
    EXPECT_EQ(co_await bed.get(), "a");
    EXPECT_LE(Clock::now() - begin, seconds(1));
    for (auto& user : slow) user->abort();
  });
}

TEST(TunnelServer, AHostHasItsShareOfRequests) {
  run([](ClientsFixture& bed) -> Task<> {
    auto& client = bed.add("a", {.pool = 5});
    auto& other = bed.add("b", {.proxies = {proxy("acc-b")}});
    co_await client.serving();
    co_await other.serving();
    client.holds_answers = true;
    std::vector<std::unique_ptr<Channel>> users;
    for (int i = 0; i < 300; ++i) {
      auto& user = users.emplace_back(bed.user());
      CO_ASSERT_OK(co_await user->write("GET / HTTP/1.1\r\nHost: acc-rt.example.test\r\n\r\n"));
    }
    CO_ASSERT_TRUE(co_await test::eventually([&] { return client.requests.size() == 300; },
                                             "300 requests at the client"));
    EXPECT_EQ(co_await bed.get(), "503 Service Unavailable");
    EXPECT_EQ(co_await bed.get("acc-b.example.test"), "b");
    client.holds_answers = false;
    for (auto& user : users) {
      EXPECT_THAT(co_await read(*user), HasSubstr("200 OK"));
      user->close();
    }
    EXPECT_EQ(co_await bed.get(), "a");
  });
}

TEST(TunnelServer, LinksAreOfferedWhereOwnersAreConfirmed) {
  const auto links = [](ClientsFixture& bed) -> Task<std::int64_t> {
    auto channel = bed.connect();
    tunnel::Link link(std::move(channel), {.role = tunnel::yamux::Role::client}, {});
    TaskGroup tasks(co_await asio::this_coro::executor);
    tasks.spawn("link", [&]() -> Task<> { co_await link.run(); });
    auto stream = link.open().value();
    ClientControl control({.login = {.version = "1.0.0"}, .token = Secret("s3cret")},
                          {.iv = std::string(16, 'i'), .seed = 1}, wall_now(), Clock::now());
    EXPECT_TRUE(co_await stream->write(control.output()));
    std::string received;
    std::optional<tunnel::Message> message;
    tunnel::MessageReader reader;
    while (!message) {
      received = co_await read(*stream);
      std::string_view bytes = received;
      message = reader.next(bytes).value();
    }
    link.close();
    co_await tasks.join();
    co_return std::get<tunnel::LoginResp>(*message).links;
  };
  ClientRegistry::Options options;
  options.links = 2;
  run([&](ClientsFixture& bed) -> Task<> { EXPECT_EQ(co_await links(bed), 0); }, options);
  test::TempDir folder;
  test::write_file(folder / "runtimes", "acc-rt token-a\n");
  run_with(
      [&] {
        return Authorizer::Options{.token = Secret("s3cret"),
                                   .runtimes_file = (folder / "runtimes").string()};
      },
      options, [&](ClientsFixture& bed) -> Task<> { EXPECT_EQ(co_await links(bed), 2); });
}

TEST(TunnelServer, AUserOfAnOpenConnectionHearsThatItEnds) {
  run([](ClientsFixture& bed) -> Task<> {
    auto& client = bed.add("a");
    co_await client.serving();
    auto user = bed.user();
    const std::string request = "GET / HTTP/1.1\r\nHost: acc-rt.example.test\r\n\r\n";
    CO_ASSERT_OK(co_await user->write(request));
    EXPECT_THAT(co_await read(*user), testing::Not(HasSubstr("Connection: close")));
    bed.users().wind_down();
    CO_ASSERT_OK(co_await user->write(request));
    EXPECT_THAT(co_await read(*user), HasSubstr("\r\nConnection: close\r\n"));
    EXPECT_EQ(co_await read(*user), "(end)");
    EXPECT_EQ(co_await bed.get(), "a");  // one who comes late
  });
}

// The head of an answer that is under way cannot tell it any more, and the next request may be on its
// way when the answer ends.
TEST(TunnelServer, AUserWhoCouldNotBeToldHasAnotherRequest) {
  run([](ClientsFixture& bed) -> Task<> {
    auto& client = bed.add("a");
    co_await client.serving();
    auto user = bed.user();
    CO_ASSERT_OK(co_await user->write("GET /large HTTP/1.1\r\nHost: acc-rt.example.test\r\n\r\n"));
    std::string received = co_await read(*user);
    EXPECT_THAT(received.substr(0, received.find("\r\n\r\n")),
                testing::Not(HasSubstr("Connection: close")));
    const auto whole = received.find("\r\n\r\n") + 4 + 2'000'000;
    bed.users().wind_down();
    bed.users().drain();
    while (received.size() < whole) received += co_await read(*user);
    CO_ASSERT_OK(co_await user->write("GET / HTTP/1.1\r\nHost: acc-rt.example.test\r\n\r\n"));
    EXPECT_THAT(co_await read(*user), HasSubstr("\r\nConnection: close\r\n"));
    EXPECT_EQ(co_await read(*user), "(end)");
  });
}

TEST(TunnelServer, AServerThatStopsSendsItsClientsElsewhere) {
  run([](ClientsFixture& bed) -> Task<> {
    auto& idle = bed.add("idle", {.proxies = {proxy("acc-b")}});
    auto& busy = bed.add("busy");
    co_await idle.serving();
    co_await busy.serving();
    EXPECT_EQ(co_await bed.get("acc-b.example.test"), "idle");  // its connection is kept
    busy.holds_answers = true;
    auto under_way = bed.user();
    CO_ASSERT_OK(co_await under_way->write(
        "GET / HTTP/1.1\r\nHost: acc-rt.example.test\r\nConnection: close\r\n\r\n"));
    CO_ASSERT_TRUE(co_await test::eventually([&] { return busy.requests.size() == 1; },
                                             "a request at the client"));
    bed.release_clients();
    bed.clients.drain_sessions();
    CO_ASSERT_TRUE(co_await test::eventually([&] { return idle.ending.has_value(); },
                                             "the end of the connection"));
    EXPECT_TRUE(busy.link().peer_is_draining());
    EXPECT_FALSE(busy.ending);
    busy.holds_answers = false;
    EXPECT_EQ(co_await ClientsFixture::answer(*under_way), "busy");
    CO_ASSERT_TRUE(co_await test::eventually([&] { return busy.ending.has_value(); },
                                             "the end of the connection"));
    CO_ASSERT_TRUE(co_await test::eventually([&] { return bed.clients.size() == 0; },
                                             "the end of all clients"));
  });
}

TEST(TunnelServer, AC15_AClientThatReadsNothingIsNotReadEither) {
  run([](ClientsFixture& bed) -> Task<> {
    tunnel::Link link(bed.connect(), {.role = tunnel::yamux::Role::client}, {});
    TaskGroup tasks(co_await asio::this_coro::executor);
    tasks.spawn("link", [&]() -> Task<> { (void)co_await link.run(); });
    auto stream = link.open().value();
    tunnel::Login login{.version = "0.70.0", .timestamp = 7};
    login.privilege_key = tunnel::privilege_key(Secret("s3cret"), 7);
    std::string bytes;
    CO_ASSERT_OK(append_message(bytes, login));
    CO_ASSERT_OK(co_await stream->write(bytes));
    EXPECT_THAT(co_await read(*stream), HasSubstr("run_id"));
    tunnel::ControlCoder coder(Secret("s3cret"), random_bytes(Aes128Cfb::kIvSize));
    stream->set_write_deadline(deadline_after(seconds(5)));
    std::size_t taken = 0;
    Result<void> written;
    while (written && taken < 3'000'000) {
      bytes.clear();
      for (int i = 0; i < 1'000; ++i) CO_ASSERT_OK(append_message(bytes, tunnel::Ping{}));
      coder.encrypt(bytes, 0);
      written = co_await stream->write(bytes);
      taken += bytes.size();
    }
    EXPECT_FALSE(written) << "each Ping has a Pong that is not read";
    EXPECT_LT(taken, 2'000'000U);
    link.close();
    co_await tasks.join();
  });
}

// -- before the login --

TEST(TunnelServer, AC15_AStrangerHasOneStreamAndOneMessage) {
  run([](ClientsFixture& bed) -> Task<> {
    auto channel = bed.connect();
    tunnel::Link link(std::move(channel), {.role = tunnel::yamux::Role::client}, {});
    TaskGroup tasks(co_await asio::this_coro::executor);
    std::optional<Error> ending;
    tasks.spawn("link", [&]() -> Task<> { ending = co_await link.run(); });
    auto first = link.open().value();
    auto second = link.open().value();
    CO_ASSERT_OK(co_await first->write("o"));
    CO_ASSERT_OK(co_await second->write("o"));
    EXPECT_THAT(co_await read(*second), HasSubstr("reset by the peer"));
    // A message of which the length is announced but that does not come costs nothing; a long one
    // ends the connection.
    first->set_write_deadline(deadline_after(seconds(60)));
    std::string bytes("\0\0\0\0\0\0\x27\x10{", 9);
    CO_ASSERT_OK(co_await first->write(bytes));
    Result<void> written;
    while (written) written = co_await first->write(std::string(1'000, ' '));
    EXPECT_EQ(written.error().code, ErrorCode::unavailable);
    link.close();
    co_await tasks.join();
    CO_ASSERT_TRUE(co_await test::eventually([&] { return bed.clients.size() == 0; },
                                             "the end of all clients"));
  });
}

TEST(TunnelServer, AC15_AHugeLengthEndsTheConnection) {
  run([](ClientsFixture& bed) -> Task<> {
    for (const auto& bytes :
         {std::string("o\x7f\xff\xff\xff\xff\xff\xff\xff", 9),
          std::string("o\xff\xff\xff\xff\xff\xff\xff\xff", 9),
          std::string("o\0\0\0\0\0\0\x28\x01", 9), std::string("Z\0\0\0\0\0\0\0\2{}", 11),
          std::string("w\0\0\0\0\0\0\0\2{}", 11), std::string("h\0\0\0\0\0\0\0\2{}", 11)}) {
      auto channel = bed.connect();
      tunnel::yamux::Session session({.role = tunnel::yamux::Role::client}, Clock::now());
      const auto stream = *session.open(Clock::now());
      session.write(stream, bytes);
      CO_ASSERT_OK(co_await channel->write(session.output()));
      const auto begin = Clock::now();
      CO_ASSERT_TRUE(co_await test::eventually([&] { return bed.clients.size() == 0; },
                                               "the end of all clients"));
      EXPECT_LE(Clock::now() - begin, seconds(3));
      EXPECT_EQ(bed.table.size(), 0u);
    }
  });
}

TEST(TunnelServer, AC15_AStrangerMustLogInInTime) {
  run([](ClientsFixture& bed) -> Task<> {
    auto silent = bed.connect();
    auto half = bed.connect();
    CO_ASSERT_OK(co_await half->write(tunnel::yamux::Session({}, Clock::now()).output()));
    CO_ASSERT_OK(co_await half->write(std::string("\0", 1)));
    const auto begin = Clock::now();
    EXPECT_THAT(co_await read(*silent), HasSubstr("("));
    std::string answer = co_await read(*half);  // a ping
    answer += co_await read(*half);
    EXPECT_THAT(answer, HasSubstr("("));
    EXPECT_LE(Clock::now() - begin, seconds(11));
    CO_ASSERT_TRUE(co_await test::eventually([&] { return bed.clients.size() == 0; },
                                             "the end of all clients"));
  });
}

TEST(TunnelServer, AC15_StrangersHaveALimit) {
  ClientRegistry::Options options;
  options.max_unauthenticated = 10;
  options.max_unauthenticated_per_address = 10;
  run(
      [](ClientsFixture& bed) -> Task<> {
        std::vector<std::unique_ptr<Channel>> strangers;
        for (int i = 0; i < 10; ++i) strangers.push_back(bed.connect());
        auto one_more = bed.connect();
        EXPECT_THAT(co_await read(*one_more), HasSubstr("("));
        for (auto& stranger : strangers) stranger->close();
        co_await sleep_for(milliseconds(100));
        // Those who have logged in do not count.
        for (int i = 0; i < 20; ++i) {
          auto& client = bed.add("c", {.proxies = {proxy("c-" + std::to_string(i))}});
          co_await client.serving();
        }
      },
      options);
}

// Silent ones, and those that have sent a part of their login, make room for new ones.
TEST(TunnelServer, AC15_SlowStrangersKeepNobodyOut) {
  ClientRegistry::Options options;
  options.max_unauthenticated = 10;
  options.max_unauthenticated_per_address = 10;
  run(
      [](ClientsFixture& bed) -> Task<> {
        std::vector<std::unique_ptr<Channel>> strangers;
        for (int i = 0; i < 10; ++i) {
          auto& stranger = strangers.emplace_back(bed.connect());
          if (i >= 5) continue;
          CO_ASSERT_OK(co_await stranger->write(tunnel::yamux::Session({}, Clock::now()).output()));
          CO_ASSERT_OK(co_await stranger->write(std::string("\0", 1)));
        }
        co_await sleep_for(seconds(3));
        for (int i = 0; i < 12; ++i) {
          auto& client = bed.add("c", {.proxies = {proxy("c-" + std::to_string(i))}});
          co_await client.serving();
        }
        const auto closed = std::ranges::count_if(
            strangers, [](const auto& stranger) { return stranger->peer_closed(); });
        EXPECT_EQ(closed, 1) << "one that was ended makes room for one after the other";
      },
      options);
}

TEST(TunnelServer, AC15_ANetworkOfOneStrangerIsOneAddress) {
  ClientRegistry::Options options;
  options.max_unauthenticated_per_address = 3;
  run(
      [](ClientsFixture& bed) -> Task<> {
        const auto executor = co_await asio::this_coro::executor;
        const auto connect = [&](const char* address) {
          auto [near, far] = net::MemoryChannel::pair(executor);
          bed.clients.adopt(std::move(far), asio::ip::make_address(address));
          return std::move(near);
        };
        const auto first = connect("2001:db8::1");
        const auto second = connect("2001:db8::2");
        const auto third = connect("2001:db8::ffff:0:0:3");
        const auto refused = connect("2001:db8::4");
        const auto other = connect("2001:db8:0:1::1");
        const auto mapped = connect("::ffff:10.0.0.2");
        co_await sleep_for(milliseconds(1));
        EXPECT_FALSE(first->peer_closed());
        EXPECT_FALSE(third->peer_closed());
        EXPECT_TRUE(refused->peer_closed());
        EXPECT_FALSE(other->peer_closed());
        EXPECT_FALSE(mapped->peer_closed());
        third->close();
        co_await sleep_for(milliseconds(1));
        const auto next = connect("2001:db8::5");
        co_await sleep_for(milliseconds(1));
        EXPECT_FALSE(next->peer_closed());
      },
      options);
}

// Without a token of the server, as with Codefresh's clients, a login proves nothing.
TEST(TunnelServer, AC15_ThoseWhoOfferNoHostMakeRoom) {
  ClientRegistry::Options options;
  options.max_clients = 4;
  run(
      [](ClientsFixture& bed) -> Task<> {
        auto& served = bed.add("a");
        co_await served.serving();
        std::vector<ScriptedClient*> idle;
        for (int i = 0; i < 3; ++i) idle.push_back(&bed.add("idle", {.proxies = {}}));
        const auto all_in = [&] {
          return std::ranges::all_of(idle,
                                     [](auto* client) { return client->control().is_logged_in(); });
        };
        CO_ASSERT_TRUE(co_await test::eventually(all_in, "the logins"));
        auto early = bed.connect();
        EXPECT_THAT(co_await read(*early), HasSubstr("(")) << "they may still offer one";
        co_await sleep_for(seconds(11));
        auto& late = bed.add("b", {.proxies = {proxy("acc-b")}});
        co_await late.serving();
        EXPECT_EQ(co_await bed.get(), "a");
        EXPECT_EQ(co_await bed.get("acc-b.example.test"), "b");
        EXPECT_EQ(bed.clients.size(), 4U);
      },
      options);
}

TEST(TunnelServer, AC17_NothingMayStandBehindALogin) {
  run([](ClientsFixture& bed) -> Task<> {
    auto channel = bed.connect();
    tunnel::yamux::Session session({.role = tunnel::yamux::Role::client}, Clock::now());
    const auto stream = *session.open(Clock::now());
    ClientControl control({.login = {.version = "0.70.0"}, .token = Secret("s3cret")},
                          {.iv = std::string(16, 'i'), .seed = 1}, wall_now(), Clock::now());
    std::string bytes = control.output();
    EXPECT_TRUE(append_message(bytes, proxy("acc-rt")));
    session.write(stream, bytes);
    CO_ASSERT_OK(co_await channel->write(session.output()));
    CO_ASSERT_TRUE(co_await test::eventually([&] { return bed.clients.size() == 0; },
                                             "the end of all clients"));
    EXPECT_EQ(bed.table.size(), 0u);
  });
}

// GITOPS_LONG: a thousand of them.
TEST(TunnelServer, AC22_ManyClientsComeBackAtOnce) {
  run([](ClientsFixture& bed) -> Task<> {
    const std::size_t count = std::getenv("GITOPS_LONG") != nullptr ? 1'000 : 150;
    std::vector<ScriptedClient*> clients;
    for (std::size_t i = 0; i < count; ++i) {
      clients.push_back(&bed.add("c", {.proxies = {proxy("c-" + std::to_string(i))}, .pool = 0}));
    }
    const auto begin = Clock::now();
    for (auto* client : clients) co_await client->serving();
    EXPECT_LE(Clock::now() - begin, seconds(10));
    EXPECT_EQ(bed.table.size(), count);
    EXPECT_EQ(co_await bed.get("c-77.example.test"), "c");
  });
}

TEST(TunnelServer, AC22_AWrongClockOfAClientDoesNotMatter) {
  run([](ClientsFixture& bed) -> Task<> {
    co_await sleep_for(std::chrono::hours(24 * 365));
    auto& client = bed.add("a");
    co_await client.serving();
    EXPECT_EQ(co_await bed.get(), "a");
  });
}

// -- the life of clients --

TEST(TunnelServer, AWorkConnectionThatDiedWhileItWaitedHarmsNobody) {
  run([](ClientsFixture& bed) -> Task<> {
    auto& client = bed.add("a", {.pool = 0});
    co_await client.serving();
    // Brought without being asked for, and given up at once.
    auto stream = client.link().open().value();
    std::string offer;
    EXPECT_TRUE(append_message(offer, tunnel::NewWorkConn{.run_id = client.run_id()}));
    CO_ASSERT_OK(co_await stream->write(offer));
    const auto session = bed.clients.sessions()[0];
    CO_ASSERT_TRUE(co_await test::eventually([&] { return session->waiting() == 1; },
                                             "a work connection that waits"));
    stream->close();
    co_await sleep_for(milliseconds(1));
    EXPECT_EQ(co_await bed.get(), "a");
  });
}

TEST(TunnelServer, ABannedHostServesNobodyUntilItsTime) {
  run([](ClientsFixture& bed) -> Task<> {
    auto& client = bed.add("a");
    co_await client.serving();
    bed.clients.ban("acc-rt.example.test",
                    {.until = wall_now() + std::chrono::minutes(10), .reason = "abuse"});
    EXPECT_EQ(co_await bed.get(), "404 Not Found");
    CO_ASSERT_TRUE(co_await test::eventually([&] { return bed.clients.size() == 0; },
                                             "the end of all clients"));
    auto& again = bed.add("again");
    CO_ASSERT_TRUE(
        co_await test::eventually([&] { return !again.refusal().empty(); }, "a refusal"));
    EXPECT_EQ(again.refusal(), "this host is banned: abuse");
    EXPECT_EQ(bed.clients.bans().size(), 1u);
    co_await sleep_for(std::chrono::minutes(11));
    EXPECT_TRUE(bed.clients.bans().empty());
    co_await again.serving();  // it asks again
    EXPECT_EQ(co_await bed.get(), "again");
  });
}

TEST(TunnelServer, TheEndOfTheControlStreamEndsTheOffersOnly) {
  run([](ClientsFixture& bed) -> Task<> {
    auto& client = bed.add("a");
    co_await client.serving();
    client.holds_answers = true;
    auto under_way = bed.user();
    CO_ASSERT_OK(co_await under_way->write(
        "GET / HTTP/1.1\r\nHost: acc-rt.example.test\r\nConnection: close\r\n\r\n"));
    CO_ASSERT_TRUE(co_await test::eventually([&] { return client.requests.size() == 1; },
                                             "a request at the client"));
    client.control_stream().shutdown_send();
    CO_ASSERT_TRUE(
        co_await test::eventually([&] { return bed.table.size() == 0; }, "an empty table"));
    EXPECT_EQ(co_await bed.get(), "404 Not Found");
    client.holds_answers = false;
    EXPECT_EQ(co_await ClientsFixture::answer(*under_way), "a");
    CO_ASSERT_TRUE(co_await test::eventually([&] { return bed.clients.size() == 0; },
                                             "the end of all clients"));
  });
}

}  // namespace
}  // namespace gitops::tunnel_server
