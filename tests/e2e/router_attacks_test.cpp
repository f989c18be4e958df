#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "daemons/router_harness.hpp"
#include "support/count_of.hpp"
#include "support/wait.hpp"

// Hostile input against the real daemon. The names carry the ids of the attack cases.
namespace gitops::test {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string request(const std::string& method, const std::string& target,
                    const std::string& more = {}, const std::string& body = {}) {
  return RouterHarness::request(method, target, more, body);
}

constexpr const char* kGithub = "github-eventsource-svc.argo.svc.cluster.local";

TEST(RouterAttacks, AC02_AddressesOfTheMachineAndOfMetadataAreRefused) {
  RouterHarness bed(
      {.environment = {{"UPSTREAM_ALLOWED_ADDRESSES", ""}, {"CONNECT_TIMEOUT", "500ms"}}});
  std::size_t number = 0;
  for (const auto* address :
       {"127.0.0.1", "127.9.9.9", "169.254.169.254", "0.0.0.0", "::1", "fe80::1",
        "::ffff:127.0.0.1", "fd00:ec2::254", "::", "224.0.0.1", "168.63.129.16", "100.100.100.200",
        "192.0.0.192", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1"}) {
    SCOPED_TRACE(address);
    // Each name is new, so that no cached answer is used.
    const auto name = "es" + std::to_string(++number);
    bed.set_hosts(std::string(address) + " " + name + "-eventsource-svc.argo.svc.cluster.local\n");
    const auto response = raw_call(bed.port(), request("POST", "/webhooks/argo/" + name));
    EXPECT_EQ(response.status, 502) << response.head;
    EXPECT_EQ(bed.events().connections(), 0U);
  }
  // Each for its address, not because its name was not found.
  require_until([&] { return count_of(bed.log(), R"("failure":"address_refused")") == number; },
                std::chrono::seconds(5), "the access log");
}

TEST(RouterAttacks, AC02_AC10_ANameIsOnlyAskedOncePerConnection) {
  // The router connects to the checked addresses; a later answer for the name
  // counts for the next lookup.
  RouterHarness bed;
  EXPECT_EQ(bed.get("/webhooks/argo/github/x").status, 200);
  bed.set_hosts(std::string("169.254.169.254 ") + kGithub + "\n");
  EXPECT_EQ(bed.get("/webhooks/argo/github/x").status, 200);  // the pooled connection
  bed.events().cut();
  EXPECT_EQ(bed.get("/webhooks/argo/github/x").status,
            200);  // the answer stays cached for a while
  // An address that refuses connections is forgotten, so that the next lookup is made at once. Its
  // answer is refused: nothing goes to the new address.
  bed.stop_events();
  EXPECT_EQ(bed.get("/webhooks/argo/github/x").status, 502);
  EXPECT_EQ(count_of(bed.log(), "address_refused"), 0U);
  EXPECT_EQ(bed.get("/webhooks/argo/github/x").status, 502);
  require_until([&] { return count_of(bed.log(), R"("failure":"address_refused")") == 1; },
                std::chrono::seconds(5), "the access log");
}

TEST(RouterAttacks, AC10_ManyAddressesFailOver) {
  RouterHarness bed;
  std::string hosts;
  for (int i = 2; i < 60; ++i) {
    hosts += "127.0.0." + std::to_string(i) + " many-eventsource-svc.argo.svc.cluster.local\n";
  }
  hosts += "127.0.0.1 many-eventsource-svc.argo.svc.cluster.local\n";
  bed.set_hosts(hosts);
  EXPECT_EQ(bed.get("/webhooks/argo/many").status, 200);
}

TEST(RouterAttacks, AC05_ConnectionHasNoPowerOverWhoTheClientIs) {
  RouterHarness bed;
  raw_call(bed.port(),
           request("GET", "/app-proxy/x",
                   "Connection: X-Forwarded-For, X-Forwarded-Proto, Authorization, Cookie, Host, "
                   "X-Request-Id, X-Custom, close\r\nX-Custom: dropped\r\nAuthorization: kept\r\n"
                   "Cookie: kept\r\nX-Forwarded-For: 1.1.1.1\r\nX_Forwarded_For: 2.2.2.2\r\n"
                   "X-Forwarded_For: 3.3.3.3\r\nx_real_ip: 4.4.4.4\r\nX-Request-Id: mine\r\n"
                   "Keep-Alive: timeout=5\r\nTE: trailers\r\nProxy-Authorization: p\r\n"
                   "Proxy-Connection: keep-alive\r\n"));
  const auto seen = bed.app_proxy().requests().at(0);
  EXPECT_EQ(seen.header("X-Custom"), std::nullopt);
  EXPECT_EQ(seen.header("Authorization"), "kept");
  EXPECT_EQ(seen.header("Cookie"), "kept");
  EXPECT_EQ(seen.header("X-Forwarded-For"), "127.0.0.1");
  EXPECT_THAT(seen.head, Not(HasSubstr("1.1.1.1")));
  EXPECT_THAT(seen.head, Not(HasSubstr("2.2.2.2")));
  EXPECT_THAT(seen.head, Not(HasSubstr("3.3.3.3")));
  EXPECT_THAT(seen.head, Not(HasSubstr("4.4.4.4")));
  EXPECT_THAT(seen.head, Not(HasSubstr("Keep-Alive")));
  EXPECT_EQ(seen.header("Proxy-Authorization"), std::nullopt);
  EXPECT_EQ(seen.header("TE"), std::nullopt);
  EXPECT_NE(seen.header("X-Request-Id"), "mine");
  EXPECT_EQ(seen.header("X-Request-Id").value_or("").size(), 32U);
}

TEST(RouterAttacks, AC06_AnswersNeverReachAnotherClient) {
  // An upstream that sends surplus bytes or switches protocols unasked loses its connection.
  std::atomic<int> mode = 0;
  const auto answer = [&mode](const RecordedRequest& seen, RawSocket& socket) {
    if (seen.target() == "/app-proxy/bad") {
      if (mode == 0)
        socket.send(
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n"
            "Content-Length: 6\r\n\r\npoison");
      if (mode == 1) socket.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\npoison");
      if (mode == 2) socket.send("HTTP/1.1 204 No Content\r\n\r\npoison");
      if (mode == 3) socket.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort");
      if (mode == 4)
        socket.send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx");
      if (mode == 5) socket.send("HTTP/1.1 200 OK\r\nX: a\nSet-Cookie: b\r\n\r\n");
      if (mode == 6)
        socket.send(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n");
      return mode != 3;
    }
    return RecordingUpstream::reply(socket, "good");
  };
  RouterHarness bed({.app_proxy = answer});
  for (mode = 0; mode < 7; ++mode) {
    SCOPED_TRACE(mode);
    const auto bad = bed.get("/app-proxy/bad");
    if (mode == 1 || mode > 3) EXPECT_EQ(bad.status, 502);
    if (mode == 3) EXPECT_FALSE(bad.complete);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(bed.get("/app-proxy/good").body, "good");
  }
  // After a client is cut off within its body, no other request uses its upstream connection.
  {
    RawSocket half(bed.port());
    half.send(
        "POST /app-proxy/x HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nGET /app-proxy/");
  }
  EXPECT_EQ(bed.get("/app-proxy/good").body, "good");
}

TEST(RouterAttacks, AC07_HeadsAndTrailersAreBounded) {
  const auto answer = [](const RecordedRequest& seen, RawSocket& socket) {
    if (seen.target() == "/app-proxy/head") {
      socket.send("HTTP/1.1 200 OK\r\n");
      while (socket.send("X-Filler: " + std::string(1000, 'x') + "\r\n")) {
      }
      return false;
    }
    if (seen.target() == "/app-proxy/interim") {
      while (socket.send("HTTP/1.1 102 Processing\r\n\r\n")) {
      }
      return false;
    }
    return RecordingUpstream::reply(socket, "ok");
  };
  RouterHarness bed({.app_proxy = answer});
  EXPECT_EQ(bed.get("/app-proxy/head").status, 502);
  EXPECT_EQ(bed.get("/app-proxy/interim").status, 502);
  // A client's trailers.
  RawSocket socket(bed.port());
  socket.send("POST /app-proxy/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n");
  for (int i = 0; i < 100; ++i) {
    if (!socket.send("X-" + std::to_string(i) + ": " + std::string(500, 'x') + "\r\n")) break;
  }
  EXPECT_EQ(socket.read_response().status, 431);
}

TEST(RouterAttacks, AC07_SlowClientsCostBoundedMemory) {
  RouterHarness bed({.environment = {{"HEAD_TIMEOUT", "2s"}, {"IDLE_TIMEOUT", "2s"}}});
  bed.get("/app-proxy/x");
  const auto memory = bed.memory();
  std::vector<RawSocket> slow;
  for (int i = 0; i < 300; ++i) {
    slow.emplace_back(bed.port());
    slow.back().send(i % 2 == 0 ? "GET /app-pro" : "");
  }
  EXPECT_EQ(bed.get("/app-proxy/x").status, 200);
  for (std::size_t i = 0; i < slow.size(); ++i) {
    if (i % 2 == 0) EXPECT_EQ(slow[i].read_response().status, 408);
    EXPECT_TRUE(slow[i].closed());
  }
  // At most 300 blocks of 32 KiB, plus memory that the sanitizer's allocator keeps.
  EXPECT_LT(bed.memory(), memory + 40 * 1024);
}

TEST(RouterAttacks, AC07_SlowReadersAreCutOff) {
  const std::string part(256 * 1024, 'x');
  std::atomic<int> parts = 0;
  const auto answer = [&](const RecordedRequest&, RawSocket& socket) {
    socket.send("HTTP/1.1 200 OK\r\n\r\n");
    for (; parts < 400; ++parts) {
      if (!socket.send(part)) break;
    }
    return false;
  };
  RouterHarness bed({.environment = {{"BODY_TIMEOUT", "500ms"}}, .app_proxy = answer});
  RawSocket socket(bed.port());
  socket.send(request("GET", "/app-proxy/x"));
  // Reads nothing: the router applies back-pressure to the upstream and gives up at the time limit.
  require_until([&] { return bed.log().contains("\"failure\":\"client_gone\""); },
                std::chrono::seconds(30), "the slow reader to be cut off");
  EXPECT_LT(parts, 100);
}

TEST(RouterAttacks, AC13_OnlySignedWebhooksReachTheirEventSource) {
  const TempDir folder;
  const auto secret = (folder / "secret").string();
  write_file(secret, "s3cret\n");
  RouterHarness bed({.environment = {{"WEBHOOK_SIGNATURES",
                                      "argo/github=github:" + secret + ",argo/gitlab=gitlab:" +
                                          secret + ",argo/bitbucket=bitbucket:" + secret +
                                          ",argo/none=github:/nonexistent"}}});
  bed.set_hosts(
      "127.0.0.1 github-eventsource-svc.argo.svc.cluster.local\n"
      "127.0.0.1 gitlab-eventsource-svc.argo.svc.cluster.local\n"
      "127.0.0.1 bitbucket-eventsource-svc.argo.svc.cluster.local\n"
      "127.0.0.1 none-eventsource-svc.argo.svc.cluster.local\n"
      "127.0.0.1 open-eventsource-svc.argo.svc.cluster.local\n");
  const std::string body = R"({"ref":"refs/heads/main"})" + std::string(100'000, ' ');
  const auto good = hmac_sha256("s3cret", body);
  const auto forged = hmac_sha256("other", body);
  const auto call = [&](const std::string& source, const std::string& fields,
                        const std::string& sent) {
    return raw_call(bed.port(), request("POST", "/webhooks/argo/" + source, fields, sent)).status;
  };
  const std::string github = "X-Hub-Signature-256: sha256=";
  EXPECT_EQ(call("github", github + good + "\r\n", body), 200);
  EXPECT_EQ(bed.events().requests().at(0).body, body);
  EXPECT_EQ(call("gitlab", "X-Gitlab-Token: s3cret\r\n", body), 200);
  EXPECT_EQ(call("bitbucket", "X-Hub-Signature: sha256=" + good + "\r\n", body), 200);
  EXPECT_EQ(call("open", "", body), 200);
  bed.forget();
  for (const auto& [source, fields] : std::vector<std::pair<std::string, std::string>>{
           {"github", ""},
           {"github", github + forged + "\r\n"},
           {"github", github + good.substr(0, 63) + "\r\n"},
           {"github", github + "\r\n"},
           {"github", "X-Hub-Signature-256: " + good + "\r\n"},
           {"github", "X-Hub-Signature-256: sha1=" + good + "\r\n"},
           {"github", "X-Hub-Signature: sha256=" + good + "\r\n"},
           {"github", github + good + "\r\n" + github + good + "\r\n"},
           {"gitlab", "X-Gitlab-Token: S3cret\r\n"},
           {"gitlab", ""},
           {"bitbucket", "X-Hub-Signature-256: sha256=" + good + "\r\n"},
           {"none", github + hmac_sha256("", body) + "\r\n"}}) {
    EXPECT_EQ(call(source, fields, body), 401) << source << " " << fields;
  }
  EXPECT_EQ(call("github", github + good + "\r\n", body + "x"), 401);
  EXPECT_EQ(bed.forwarded(), 0U);
  // The host's test of its connection is answered here.
  EXPECT_EQ(call("bitbucket", "X-Event-Key: diagnostics:ping\r\n", "{\"test\":true}"), 200);
  EXPECT_EQ(bed.forwarded(), 0U);
  // The secret rotates: first both are valid, then the new one.
  write_file(secret, "an0ther\ns3cret\n");
  const auto next = github + hmac_sha256("an0ther", body) + "\r\n";
  EXPECT_TRUE(wait_until([&] { return call("github", next, body) == 200; },
                         std::chrono::seconds(30), "the new secret to count"));
  EXPECT_EQ(call("github", github + good + "\r\n", body), 200);
  write_file(secret, "an0ther");
  EXPECT_TRUE(wait_until([&] { return call("github", github + good + "\r\n", body) == 401; },
                         std::chrono::seconds(5), "the old secret to be gone"));
  EXPECT_EQ(call("github", next, body), 200);
  EXPECT_THAT(bed.log(), Not(HasSubstr("s3cret")));
}

TEST(RouterAttacks, AC12_PayloadsAreNotRead) {
  RouterHarness bed;
  for (const std::string& body : {std::string("{"), std::string("\0\xff\xfe", 3),
                                  std::string(R"({"repository":{"url":"(a+)+$"}})"),
                                  std::string(100'000, '['), std::string("--boundary\r\n")}) {
    bed.forget();
    EXPECT_EQ(raw_call(bed.port(), request("POST", "/webhooks/argo/github",
                                           "Content-Type: application/json\r\n", body))
                  .status,
              200);
    EXPECT_EQ(bed.events().requests().at(0).body, body);
  }
}

TEST(RouterAttacks, AC14_FloodsOfOneEventSourceAreBounded) {
  RouterHarness bed({.environment = {{"WEBHOOK_RATE", "1"}}});
  bed.set_hosts(
      "127.0.0.1 github-eventsource-svc.argo.svc.cluster.local\n"
      "127.0.0.1 other-eventsource-svc.argo.svc.cluster.local\n");
  const auto begin = std::chrono::steady_clock::now();
  std::vector<RawSocket> flood;
  for (int i = 0; i < 40; ++i) {
    flood.emplace_back(bed.port());
    flood.back().send(request("POST", "/webhooks/argo/github", "", "{}"));
  }
  EXPECT_EQ(bed.get("/webhooks/argo/other").status, 200);
  EXPECT_EQ(bed.get("/app-proxy/x").status, 200);
  // They are kept, and go on at the rate of the event source.
  std::map<int, int> count;
  for (auto& socket : flood) ++count[socket.read_response().status];
  EXPECT_GE(count[200], 2);
  EXPECT_GE(count[202], 10);
  EXPECT_EQ(count[200] + count[202], 40);
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
  EXPECT_LE(bed.events().requests().size(), 3 + static_cast<std::size_t>(passed.count()) + 1);
}

TEST(RouterAttacks, AC14_AC11_OnlySoManyWebhooksAreUnderWay) {
  std::mutex mutex;
  std::condition_variable changed;
  bool go = false;
  const auto answer = [&](const RecordedRequest&, RawSocket& socket) {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, std::chrono::seconds(10), [&] { return go; });
    return RecordingUpstream::reply(socket, "done");
  };
  RouterHarness bed({.environment = {{"WEBHOOK_CONCURRENCY", "2"}}, .events = answer});
  RawSocket first(bed.port());
  RawSocket second(bed.port());
  first.send(request("POST", "/webhooks/argo/github", "", "{}"));
  second.send(request("POST", "/webhooks/argo/github", "", "{}"));
  require_until([&] { return bed.events().requests().size() == 2; }, std::chrono::seconds(30),
                "two webhooks to be under way");
  // What cannot be kept waits for a while, and is refused.
  const auto refused = bed.get("/webhooks/argo/github");
  EXPECT_EQ(refused.status, 429);
  EXPECT_TRUE(refused.header("Retry-After"));
  {
    const std::lock_guard lock(mutex);
    go = true;
  }
  changed.notify_all();
  EXPECT_EQ(first.read_response().status, 200);
  EXPECT_EQ(second.read_response().status, 200);
  EXPECT_EQ(bed.get("/webhooks/argo/github").status, 200);
}

TEST(RouterAttacks, AC13_AC14_QueriesAndCredentialsAreNotLogged) {
  RouterHarness bed;
  bed.get("/app-proxy/x?access_token=canary-token", "Authorization: canary-auth\r\n");
  bed.get("/webhooks/argo/github?secret=canary-token");
  bed.get("/nope?secret=canary-token");
  require_until([&] { return bed.log().contains("\"path\":\"/nope\""); }, std::chrono::seconds(30),
                "the access log");
  EXPECT_THAT(bed.log(), Not(HasSubstr("canary")));
}

TEST(RouterAttacks, AC09_EveryByteOfATargetIsSurvived) {
  RouterHarness bed;
  for (int byte = 0; byte < 256; ++byte) {
    for (const std::string prefix : {"/app-proxy/", "/workflows/", "/webhooks/argo/", "/"}) {
      RawSocket socket(bed.port());
      socket.send("GET " + prefix + static_cast<char>(byte) +
                  "/x HTTP/1.1\r\nHost: a\r\n"
                  "Connection: close\r\n\r\n");
      EXPECT_GT(socket.read_response().status, 0) << byte;
    }
  }
  EXPECT_TRUE(bed.process().running());
}

}  // namespace
}  // namespace gitops::test
