// Hostile clients and users against the real tunnel-server, while a client of a runtime serves. The
// names carry the ids of the attack cases.
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "common/net/connector.hpp"
#include "common/net/tls_channel.hpp"
#include "common/net/tls_context.hpp"
#include "common/tunnel/authentication.hpp"
#include "common/tunnel/yamux_frame.hpp"
#include "daemons/tunnel_processes.hpp"
#include "e2e/tunnel_attacks_harness.hpp"
#include "support/wait.hpp"
#include "tunnel-client/session.hpp"

namespace gitops::test {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;
using tunnel::NewProxy;
using tunnel::yamux::FrameHead;
using tunnel::yamux::FrameType;

TEST_F(TunnelAttacks, AC15_MalformedBytesBeforeTheLoginEndTheirConnectionOnly) {
  start();
  const std::string upgrade =
      "GET /~!frp HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n";
  const std::string mask(4, '\0');
  const auto raw = [](std::initializer_list<int> bytes) {
    std::string out;
    for (const int byte : bytes) out += static_cast<char>(byte);
    return out;
  };
  const std::vector<std::pair<const char*, std::string>> cases{
      {"a yamux version",
       raw({0, 0, 0, 0}) + std::string(8, '\0') + raw({9}) + std::string(11, 'x')},
      {"a yamux type", frame({.type = static_cast<FrameType>(9), .stream = 1})},
      {"4 GiB on a stream",
       frame({.type = FrameType::window_update, .flags = tunnel::yamux::kSyn, .stream = 1}) +
           frame({.stream = 1, .length = 0xffffffff}, "x")},
      {"4 GiB with SYN", frame({.flags = tunnel::yamux::kSyn, .stream = 1, .length = 0xffffffff})},
      {"a window that overflows",
       stream("o") + frame({.type = FrameType::window_update, .stream = 1, .length = 0xffffffff}) +
           frame({.type = FrameType::window_update, .stream = 1, .length = 0xffffffff})},
      {"a stream twice", stream("o") + stream("o")},
      {"a message of 8 EiB", stream(v1_head('o', 0x7fffffffffffffff))},
      {"a message of -1 bytes", stream(v1_head('o', ~0ULL))},
      {"a message of 10,241 bytes", stream(v1_head('o', 10'241))},
      {"an unknown message", stream(v1_head('Z', 2) + "{}")},
      {"JSON that is none", stream(v1_head('o', 5) + "{\"a\":")},
      {"JSON without end", stream(v1_head('o', 10'000) + std::string(10'000, '['))},
      {"a work connection", stream(v1_head('w', 2) + "{}")},
      {"a v2 frame of 4 GiB",
       stream(std::string(tunnel::kWireMagic) + raw({0, 1, 0, 0, 255, 255, 255, 255}))},
      {"a frame of 8 EiB",
       upgrade + raw({0x82, 0xff, 0x7f, 255, 255, 255, 255, 255, 255, 255}) + mask + "x"},
      {"a frame of -1 bytes",
       upgrade + raw({0x82, 0xff, 255, 255, 255, 255, 255, 255, 255, 255}) + mask + "x"},
      {"a ping in fragments", upgrade + raw({0x09, 0x80}) + mask},
      {"a close in fragments", upgrade + raw({0x08, 0x80}) + mask},
      {"a long ping", upgrade + raw({0x89, 0xfe, 0, 126}) + mask + std::string(126, 'x')},
      {"a frame without a mask", upgrade + raw({0x82, 0x01, 0})},
      {"reserved bits", upgrade + raw({0xf2, 0x81}) + mask + "x"},
      {"a reserved type", upgrade + raw({0x83, 0x81}) + mask + "x"},
      {"a head without end", "GET /~!frp HTTP/1.1\r\nX: " + std::string(20'000, 'x')},
      {"many fields", "GET /~!frp HTTP/1.1\r\n" +
                          [] {
                            std::string out;
                            for (int i = 0; i < 2'000; ++i) out += "a:b\r\n";
                            return out;
                          }()},
      {"a TLS record that is none", raw({0x16, 3, 1, 0xff, 0xff}) + std::string(20'000, 'x')},
      {"another protocol", "SSH-2.0-x\r\n"}};
  std::vector<RawSocket> strangers;
  for (const auto& [what, bytes] : cases) {
    strangers.emplace_back(static_cast<std::uint16_t>(server->tunnel_port)).send(bytes);
  }
  for (std::size_t i = 0; i < cases.size(); ++i) {
    EXPECT_TRUE(strangers[i].closed()) << cases[i].first;
  }
  EXPECT_TRUE(serves()) << server->log();
  EXPECT_THAT(server->log(), Not(HasSubstr("s3cret")));
  EXPECT_TRUE(wait_until(
      [&] { return server->admin("/metrics").body.contains("\ngitops_tunnel_server_clients 2\n"); },
      seconds(10), "the end of the others"))
      << server->status();
}

// Each of them announces much, sends what it may before a login, and stays.
TEST_F(TunnelAttacks, AC15_StrangersHoldLittleMemory) {
  start();
  constexpr std::size_t kStrangers = 300;
  const auto bytes = stream(v1_head('o', 10'000) + std::string(9'000, ' '));
  const auto before = memory();
  std::vector<RawSocket> strangers;
  for (std::size_t i = 0; i < kStrangers; ++i) {
    strangers.emplace_back(static_cast<std::uint16_t>(server->tunnel_port)).send(bytes);
  }
  EXPECT_TRUE(serves());
  const auto each = (memory() - std::min(before, memory())) / kStrangers;
  std::printf("%zu strangers: %zu KiB each\n", kStrangers, each / 1024);
  EXPECT_LT(each, 128U * 1024);
}

// No spelling of a host, and no other field that leads to it, makes it another runtime's.
TEST_F(TunnelAttacks, AC16_AnotherRuntimesHostIsNotToBeHad) {
  start();
  for (const char* name : {"acc-rt", "ACC-RT", "Acc-Rt", "acc-rt.", "acc-rt ", " acc-rt",
                           "acc-rt:80", "acc-rt/", "acc-rt.example.test",
                           "\xd0\xb0"
                           "cc-rt",
                           "xn--cc-rt-7ve", "*", "acc-rt,acc-b", "", ".", "acc-b.acc-rt"}) {
    EXPECT_NE(outcome(*server, proxy(name, "token-b")), "serving") << name;
  }
  const std::string host = kRuntimeHost;
  for (const std::string& domain :
       {host, std::string("ACC-RT.Example.Test"), host + ".", host + ":8080", std::string("*"),
        std::string("*.example.test"), std::string("example.test"), std::string("x.example.test"),
        "x." + host}) {
    auto wanted = proxy("", "token-b");
    wanted.proxy_name = "acc-b";
    wanted.custom_domains = {domain};
    EXPECT_NE(outcome(*server, wanted), "serving") << domain;
    wanted.subdomain = "acc-b";  // beside its own one
    EXPECT_NE(outcome(*server, wanted), "serving") << domain;
  }
  // A path of it, or users of one name, are the host's too.
  auto part = proxy("acc-rt", "token-b");
  part.locations = {"/app-proxy"};
  EXPECT_EQ(outcome(*server, part), "the token is not for this host");
  part.route_by_http_user = "ann";
  EXPECT_NE(outcome(*server, part), "serving");
  EXPECT_TRUE(serves()) << server->log();
  EXPECT_EQ(outcome(*server, proxy("acc-b", "token-b")), "serving");
}

TEST_F(TunnelAttacks, AC17_WhatStandsBehindALoginIsNoSecondMessage) {
  start();
  tunnel::Login login{.version = "0.70.0", .timestamp = 7};
  login.privilege_key = tunnel::privilege_key(Secret("s3cret"), login.timestamp);
  std::string bytes;
  EXPECT_TRUE(append_message(bytes, login));
  EXPECT_TRUE(append_message(bytes, proxy("acc-b", "token-b")));
  EXPECT_TRUE(is_closed_after(stream(bytes)));
  EXPECT_EQ(server->call("GET", "/", {}, "acc-b.example.test").status, 404);
  EXPECT_TRUE(serves());
}

// A certificate of a client says that somebody may come. Its names say nothing, so none of them can be
// used to be somebody else.
TEST_F(TunnelAttacks, AC18_ACertificateGivesNoHost) {
  CertificateAuthority clients;
  CertificateAuthority others;
  const auto issue = [](CertificateAuthority& authority, CertificateRequest request) {
    return authority.issue(request);
  };
  write_file(folder / "runtimes", "acc-rt token-a\nacc-b token-b\n");
  server.emplace(std::vector{flag("runtimes-file", folder / "runtimes"),
                             flag("tunnel.client-ca-file", clients.ca_file())});
  const auto own = issue(
      clients, {.common_name = "acc-b", .organization = {}, .alt_names = {"acc-b.example.test"}});
  EXPECT_EQ(outcome(*server, proxy("acc-b", "token-b"), own), "serving") << server->log();

  // Those that may not come.
  const auto refused = [&](const char* why, const std::optional<Certificate>& certificate) {
    EXPECT_THAT(outcome(*server, proxy("acc-b", "token-b"), certificate, /*has_tls=*/true),
                HasSubstr("ended: "));
    EXPECT_TRUE(wait_until([&] { return server->log().contains(why); }, seconds(30), why))
        << server->log();
  };
  refused("peer did not return a certificate", std::nullopt);
  refused("unsuitable certificate purpose", issue(clients, {.common_name = "acc-b",
                                                            .organization = {},
                                                            .alt_names = {"acc-b.example.test"},
                                                            .usages = "serverAuth"}));
  refused("unsuitable certificate purpose",
          issue(clients,
                {.common_name = {}, .organization = {}, .alt_names = {}, .usages = "codeSigning"}));
  refused("certificate has expired", issue(clients, {.common_name = "acc-b",
                                                     .organization = {},
                                                     .alt_names = {"acc-b.example.test"},
                                                     .days = 0}));
  refused("unable to get local issuer certificate",
          issue(others,
                {.common_name = "acc-b", .organization = {}, .alt_names = {"acc-b.example.test"}}));

  // Those that may, and ask for the host of somebody else.
  const std::vector<std::pair<const char*, CertificateRequest>> names{
      {"its own",
       {.common_name = "acc-b", .organization = {}, .alt_names = {"acc-b.example.test"}}},
      {"none", {.common_name = {}, .organization = {}, .alt_names = {}}},
      {"an empty subject", {.common_name = {}, .organization = {}, .alt_names = {kRuntimeHost}}},
      {"the other one's",
       {.common_name = "acc-rt", .organization = "acc-rt", .alt_names = {kRuntimeHost}}},
      {"every host's", {.common_name = "*", .organization = {}, .alt_names = {"*.example.test"}}},
      {"a part of the other one's",
       {.common_name = "acc-rt.evil.test", .organization = {}, .alt_names = {"acc-rt"}}},
      {"two", {.common_name = "acc-b", .organization = {}, .alt_names = {"acc-b", kRuntimeHost}}}};
  for (const auto& [name, request] : names) {
    const auto certificate = clients.issue(request);
    EXPECT_EQ(outcome(*server, proxy("acc-rt", "token-b"), certificate),
              "the token is not for this host")
        << name;
    EXPECT_EQ(outcome(*server, proxy("acc-rt", ""), certificate), "metas.Authorization is missing")
        << name;
    EXPECT_EQ(outcome(*server, proxy("acc-rt", "acc-rt"), certificate), "invalid token") << name;
  }
  EXPECT_EQ(server->call("GET", "/").status, 404);
  EXPECT_EQ(outcome(*server, proxy("acc-rt", "token-a"), own), "serving");
}

TEST_F(TunnelAttacks, AC23_OnlyTheTokenOfTheApiDisconnectsAndBans) {
  const int api = free_port();
  write_file(folder / "api-token", "of the operators");
  start({"--api.port=" + std::to_string(api), flag("api.token-file", folder / "api-token")});
  const auto call = [&](const std::string& method, const std::string& path,
                        const std::string& token) {
    return http_call({.method = method,
                      .url = "http://127.0.0.1:" + std::to_string(api) + path,
                      .headers = {"Authorization: Bearer " + token},
                      .body = method == "PUT" ? R"({"until":"2999-01-01T00:00:00Z"})" : ""})
        .status;
  };
  const auto sessions = [this] { return client->sum("gitops_tunnel_client_sessions_total"); };
  require_until([&] { return sessions() == 2; }, seconds(20), "both links");
  const std::string ban = std::string("/v1/bans/") + kRuntimeHost;
  for (const char* token : {"", "of the operator", "of the operators2", "s3cret", kRuntimeToken}) {
    EXPECT_EQ(call("GET", "/v1/clients", token), 401) << token;
    EXPECT_EQ(call("PUT", ban, token), 401) << token;
    EXPECT_EQ(call("DELETE", ban, token), 401) << token;
    for (int id = 0; id < 4; ++id) {
      EXPECT_EQ(call("POST", "/v1/clients/" + std::to_string(id) + "/disconnect", token), 401);
    }
  }
  EXPECT_TRUE(serves());
  EXPECT_EQ(sessions(), 2);
  EXPECT_EQ(call("PUT", ban, "of the operators"), 204);
  EXPECT_EQ(server->call("GET", "/").status, 404);
}

// Neither names nor cookies of users make the server keep anything.
TEST_F(TunnelAttacks, AC23_StrangersAmongUsersLeaveNothingBehind) {
  start();
  const auto ask = [&](int count) {
    RawSocket user(static_cast<std::uint16_t>(server->port));
    for (int i = 0; i < count; ++i) {
      user.send("GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: h" + std::to_string(i) +
                ".example.test\r\nCookie: session=" + std::to_string(i) + std::string(500, 'c') +
                "\r\n\r\n");
      EXPECT_EQ(user.read_response().status, 404);
      if (user.ended()) break;
    }
  };
  ask(2'000);
  const auto before = memory();
  ask(2'000);
  EXPECT_LT(memory(), before + 2U * 1024 * 1024);
  const auto text = server->admin("/metrics").body;
  // And those that came before the tunnel stood.
  EXPECT_THAT(text, HasSubstr(R"(code="4xx",host="none"} 40)"));
  EXPECT_THAT(text, Not(HasSubstr("h1.example.test")));
  EXPECT_TRUE(serves());
}

}  // namespace
}  // namespace gitops::test
