#include "e2e/router_cases.hpp"

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "daemons/router_harness.hpp"
#include "support/wait.hpp"

// The numbered router cases, each over a raw socket against the real daemon between recording
// upstreams.
namespace gitops::test {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string request(const std::string& method, const std::string& target,
                    const std::string& more = {}, const std::string& body = {}) {
  return RouterHarness::request(method, target, more, body);
}

const RecordingUpstream& upstream(RouterHarness& bed, const std::string& name) {
  return name == "app-proxy"   ? bed.app_proxy()
         : name == "workflows" ? bed.workflows()
                               : bed.events();
}

// Longer cases have their own tests below, named by their numbers.
const std::set<int> kOwnTests{11, 28, 29, 30, 31, 32, 33, 34, 35, 36, 39,
                              40, 41, 42, 43, 44, 45, 46, 47, 48, 55, 63};

TEST(RouterCases, EveryNumberIsCovered) {
  std::set<int> covered = kOwnTests;
  for (const auto& each : router_cases()) covered.insert(each.number);
  for (int number = 1; number <= 78; ++number) EXPECT_TRUE(covered.contains(number)) << number;
}

TEST(RouterCases, AC01_AC03_OneRequestOneOutcome) {
  RouterHarness bed;
  for (const auto& each : router_cases()) {
    SCOPED_TRACE("case " + std::to_string(each.number) + ": " +
                 each.bytes.substr(0, each.bytes.find("\r\n")));
    bed.forget();
    const auto response = raw_call(bed.port(), each.bytes);
    EXPECT_EQ(response.status, each.status) << response.head;
    EXPECT_TRUE(response.complete);
    EXPECT_EQ(bed.forwarded(), each.upstream.empty() ? 0U : 1U);
    if (each.upstream.empty()) continue;
    const auto seen = upstream(bed, each.upstream).requests();
    ASSERT_EQ(seen.size(), 1U);
    EXPECT_EQ(seen[0].target(), each.target);
    EXPECT_EQ(response.body, each.upstream);
  }
}

TEST(RouterCases, Case11_ForwardingFieldsComeFromTrustedPeersOnly) {
  const std::string claims =
      "X-Forwarded-For: 10.9.8.7\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: public\r\n"
      "Forwarded: for=10.9.8.7\r\nX-Real-IP: 10.9.8.7\r\n";
  RouterHarness bed;
  raw_call(bed.port(), request("POST", "/app-proxy/api/graphql", claims, "{}"));
  const auto seen = bed.app_proxy().requests().at(0);
  EXPECT_EQ(seen.header("X-Forwarded-For"), "127.0.0.1");
  EXPECT_EQ(seen.header("X-Forwarded-Proto"), "http");
  EXPECT_EQ(seen.header("X-Forwarded-Host"), "router.example");
  EXPECT_EQ(seen.header("Forwarded"), std::nullopt);
  EXPECT_EQ(seen.header("X-Real-IP"), std::nullopt);
  EXPECT_EQ(seen.header("Host"), "127.0.0.1:" + std::to_string(bed.app_proxy().port()));
  EXPECT_EQ(seen.body, "{}");

  RouterHarness trusting({.environment = {{"TRUSTED_PROXIES", "127.0.0.1"}}});
  raw_call(trusting.port(), request("POST", "/app-proxy/api/graphql", claims, "{}"));
  const auto told = trusting.app_proxy().requests().at(0);
  EXPECT_EQ(told.header("X-Forwarded-For"), "10.9.8.7, 127.0.0.1");
  EXPECT_EQ(told.header("X-Forwarded-Proto"), "https");
  EXPECT_EQ(told.header("X-Forwarded-Host"), "public");
}

// Their addresses follow the name; the answers of the name servers are read every two seconds.
TEST(RouterCases, TrustedPeersMayBeKnownByTheirName) {
  RouterHarness bed(
      {.environment = {{"TRUSTED_PROXY_NAMES", "tunnel-pods.argo.svc.cluster.local"}}});
  const auto user_seen = [&] {
    bed.forget();
    bed.get("/app-proxy/x", "X-Forwarded-For: 10.9.8.7\r\n");
    return bed.app_proxy().requests().at(0).header("X-Forwarded-For");
  };
  EXPECT_EQ(user_seen(), "127.0.0.1");
  bed.set_hosts("127.0.0.1 tunnel-pods.argo.svc.cluster.local\n");
  EXPECT_TRUE(wait_until([&] { return user_seen() == "10.9.8.7, 127.0.0.1"; },
                         std::chrono::seconds(10), "the pod to be known"));
  bed.set_hosts("127.0.0.9 tunnel-pods.argo.svc.cluster.local\n");
  EXPECT_TRUE(wait_until([&] { return user_seen() == "127.0.0.1"; }, std::chrono::seconds(10),
                         "the pod to be forgotten"));
}

TEST(RouterCases, Case28_LocationsKeepTheClientsScheme) {
  const auto answer = [](const RecordedRequest& seen, RawSocket& socket) {
    const auto where = "http://" + seen.header("Host").value_or("") + "/landed?x=1";
    return RecordingUpstream::reply(socket, "", "Location: " + where + "\r\n", "302 Found");
  };
  RouterHarness bed({.app_proxy = answer, .workflows = answer});
  EXPECT_EQ(bed.get("/app-proxy/redir").header("Location"), "/landed?x=1");
  EXPECT_EQ(bed.get("/workflows/redir").header("Location"), "/workflows/landed?x=1");
}

TEST(RouterCases, Case29_AnswersOfTheUpstreamPassAsTheyAre) {
  const auto answer = [](const RecordedRequest& seen, RawSocket& socket) {
    const bool bad = seen.target() == "/app-proxy/502";
    return RecordingUpstream::reply(socket, "own words", "", bad ? "502 Bad" : "404 Not Here");
  };
  RouterHarness bed({.app_proxy = answer});
  for (const auto& [target, status] : {std::pair{"/app-proxy/502", 502}, {"/app-proxy/404", 404}}) {
    const auto response = bed.get(target, "Origin: https://g.codefresh.io\r\n");
    EXPECT_EQ(response.status, status);
    EXPECT_EQ(response.body, "own words");
    EXPECT_EQ(response.header("Access-Control-Allow-Origin"), std::nullopt);
  }
}

TEST(RouterCases, Case30_Case31_FailuresCanBeReadByTheUi) {
  RouterHarness bed(
      {.environment = {{"CORS", "https://a.example, https://b.example/"}}, .app_proxy_down = true});
  for (const auto* method : {"GET", "POST", "HEAD"}) {
    SCOPED_TRACE(method);
    const auto response =
        raw_call(bed.port(), request(method, "/app-proxy/x", "Origin: https://b.example\r\n"));
    EXPECT_EQ(response.status, 502);
    EXPECT_EQ(response.header("Access-Control-Allow-Origin"), "https://b.example");
    EXPECT_EQ(response.header("Access-Control-Allow-Credentials"), "true");
    EXPECT_EQ(response.header("Vary"), "Origin");
    EXPECT_EQ(response.header("Retry-After"), "5");
    EXPECT_EQ(response.header("Content-Type"), "application/json");
  }
  const auto foreign = bed.get("/app-proxy/x", "Origin: https://evil.example\r\n");
  EXPECT_EQ(foreign.header("Access-Control-Allow-Origin"), std::nullopt);
  const auto page = bed.get("/app-proxy/x", "Accept: text/html,*/*\r\n");
  EXPECT_THAT(page.header("Content-Type").value_or(""), HasSubstr("text/html"));

  const auto preflight =
      raw_call(bed.port(), request("OPTIONS", "/app-proxy/x", "Origin: https://a.example\r\n"));
  EXPECT_EQ(preflight.status, 204);
  EXPECT_EQ(preflight.header("Access-Control-Allow-Origin"), "https://a.example");
  EXPECT_THAT(preflight.header("Access-Control-Allow-Headers").value_or(""),
              HasSubstr("x-access-token"));
  EXPECT_EQ(preflight.header("Content-Length"), std::nullopt);
  EXPECT_EQ(bed.get("/readyz").status, 503);
  EXPECT_EQ(bed.get("/healthz").status, 200);
}

// An upstream that takes a request and never answers.
bool never(const RecordedRequest&, RawSocket& socket) {
  socket.read_to_end();
  return false;
}

TEST(RouterCases, Case32_SlowAnswersEndWith504AndCors) {
  RouterHarness bed({.environment = {{"ANSWER_TIMEOUT", "300ms"}}, .app_proxy = never});
  const auto response = bed.get("/app-proxy/x", "Origin: https://g.codefresh.io\r\n");
  EXPECT_EQ(response.status, 504);
  EXPECT_EQ(response.header("Access-Control-Allow-Origin"), "https://g.codefresh.io");
}

TEST(RouterCases, Case33_StalledBodiesEndWith408) {
  RouterHarness bed({.environment = {{"BODY_TIMEOUT", "300ms"}}});
  RawSocket socket(bed.port());
  socket.send("POST /app-proxy/x HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345");
  EXPECT_EQ(socket.read_response().status, 408);
  EXPECT_TRUE(socket.closed());
}

TEST(RouterCases, Case34_AC11_BodiesAreLimited) {
  RouterHarness bed({.environment = {{"WEBHOOK_MAX_BODY", "1Mi"}, {"APP_PROXY_MAX_BODY", "2Mi"}}});
  const std::string most(1024 * 1024, 'x');
  EXPECT_EQ(raw_call(bed.port(), request("POST", "/webhooks/argo/github/x", "", most)).status, 200);
  EXPECT_EQ(bed.events().requests().at(0).body, most);
  bed.forget();
  EXPECT_EQ(raw_call(bed.port(),
                     "POST /webhooks/argo/github/x HTTP/1.1\r\nHost: a\r\n"
                     "Content-Length: 1048577\r\n\r\n")
                .status,
            413);
  EXPECT_EQ(bed.forwarded(), 0U);
  // A chunked body does not announce its length.
  RawSocket socket(bed.port());
  socket.send(
      "POST /webhooks/argo/github/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
  socket.send("100000\r\n" + most + "\r\n1\r\nx\r\n0\r\n\r\n");
  EXPECT_EQ(socket.read_response().status, 413);
  for (const auto& seen : bed.events().requests()) EXPECT_FALSE(seen.complete);
}

TEST(RouterCases, Case35_HeadsAreLimited) {
  RouterHarness bed;
  const auto with = [&bed](const std::string& more) {
    return bed.get("/app-proxy/x", more).status;
  };
  EXPECT_EQ(with("Cookie: " + std::string(8000, 'c') + "\r\n"), 200);
  EXPECT_EQ(with("Cookie: " + std::string(8300, 'c') + "\r\n"), 431);
  std::string many;
  for (int i = 0; i < 5; ++i)
    many += "X-" + std::to_string(i) + ": " + std::string(7000, 'x') + "\r\n";
  EXPECT_EQ(with(many), 431);
  EXPECT_EQ(bed.get("/app-proxy/" + std::string(8000, 'p')).status, 200);
  EXPECT_EQ(bed.get("/app-proxy/" + std::string(8300, 'p')).status, 414);
}

TEST(RouterCases, Case36_UnderscoresPass) {
  RouterHarness bed;
  bed.get("/app-proxy/x", "x_token: t\r\n");
  EXPECT_EQ(bed.app_proxy().requests().at(0).header("x_token"), "t");
}

TEST(RouterCases, Case39_ExpectIsAnsweredAndTheBodyForwarded) {
  RouterHarness bed;
  RawSocket socket(bed.port());
  socket.send(
      "POST /app-proxy/x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n"
      "Expect: 100-continue\r\n\r\n");
  EXPECT_EQ(socket.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  socket.send("12345");
  EXPECT_EQ(socket.read_response().status, 200);
  EXPECT_EQ(bed.app_proxy().requests().at(0).body, "12345");
  EXPECT_EQ(bed.app_proxy().requests().at(0).header("Expect"), std::nullopt);
}

TEST(RouterCases, Case40_ChunkedBodiesAreStreamed) {
  RouterHarness bed;
  const auto response =
      raw_call(bed.port(),
               "POST /app-proxy/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
               "3;ext=1\r\nabc\r\n4\r\ndefg\r\n0\r\nX-Trailer: t\r\n\r\n");
  EXPECT_EQ(response.status, 200);
  const auto seen = bed.app_proxy().requests().at(0);
  EXPECT_TRUE(seen.chunked);
  EXPECT_EQ(seen.body, "abcdefg");
  EXPECT_EQ(seen.header("Content-Length"), std::nullopt);
}

constexpr const char* kUpgrade =
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

// Switches protocols on request and echoes the bytes.
bool echo(const RecordedRequest& seen, RawSocket& socket) {
  if (!seen.header("Upgrade")) return RecordingUpstream::reply(socket, "plain");
  socket.send(
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      "Sec-WebSocket-Accept: x\r\n\r\nhello");
  while (true) {
    const auto bytes = socket.read_some();
    if (bytes.empty()) break;
    socket.send(bytes);
  }
  socket.send("bye");
  return false;
}

TEST(RouterCases, Case41_WebSocketsAreRelayedBothWays) {
  RouterHarness bed({.app_proxy = echo});
  RawSocket socket(bed.port());
  socket.send(request("GET", "/app-proxy/graphql", kUpgrade) + "early");
  const auto response = socket.read_response();
  EXPECT_EQ(response.status, 101);
  EXPECT_EQ(response.header("Sec-WebSocket-Accept"), "x");
  EXPECT_EQ(response.header("Upgrade"), "websocket");
  EXPECT_EQ(socket.read_exactly(10), "helloearly");
  socket.send(std::string(300'000, 'a'));
  EXPECT_EQ(socket.read_exactly(300'000), std::string(300'000, 'a'));
  socket.end_sending();  // half-closed: the other direction goes on
  EXPECT_EQ(socket.read_to_end(), "bye");
}

TEST(RouterCases, Case41_SilentWebSocketsEndAndLivelyOnesDoNot) {
  RouterHarness bed({.environment = {{"WEBSOCKET_TIMEOUT", "2s"},
                                     {"ANSWER_TIMEOUT", "1s"},
                                     {"BODY_TIMEOUT", "1s"}},
                     .app_proxy = echo});
  RawSocket socket(bed.port());
  socket.send(request("GET", "/app-proxy/graphql", kUpgrade));
  socket.read_response();
  socket.read_exactly(5);
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(3000)) {
    ASSERT_TRUE(socket.send("p"));
    ASSERT_EQ(socket.read_exactly(1), "p");
  }
  EXPECT_TRUE(socket.closed());  // the transfer has stalled
}

TEST(RouterCases, Case42_Case43_OnlyAppProxyAndOnlyWebSocketsAreUpgraded) {
  RouterHarness bed({.app_proxy = echo, .workflows = echo, .events = echo});
  EXPECT_EQ(bed.get("/workflows/x", kUpgrade).status, 200);
  EXPECT_EQ(bed.get("/webhooks/argo/github", kUpgrade).status, 200);
  EXPECT_EQ(
      bed.get("/app-proxy/x",
              "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAAA\r\n")
          .status,
      200);
  const auto seen = bed.app_proxy().requests().at(0);
  EXPECT_EQ(seen.header("Upgrade"), std::nullopt);
  EXPECT_EQ(seen.header("HTTP2-Settings"), std::nullopt);
  EXPECT_EQ(seen.header("Connection"), std::nullopt);
}

// Sends an event, and the next one only after the client has confirmed it by a separate request.
struct Events {
  std::mutex mutex;
  std::condition_variable changed;
  int confirmed = 0;
  void confirm() {
    const std::lock_guard lock(mutex);
    ++confirmed;
    changed.notify_all();
  }
  bool wait(int count) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(5), [&] { return confirmed >= count; });
  }
};

TEST(RouterCases, Case44_Case45_EventsComeAtOnce) {
  Events events;
  const auto answer = [&events](const RecordedRequest& seen, RawSocket& socket) {
    const bool chunked = seen.target().contains("chunked");
    socket.send(std::string("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n") +
                (chunked ? "Transfer-Encoding: chunked\r\n\r\n" : "\r\n"));
    for (int i = 1; i <= 3; ++i) {
      const std::string event = "data: " + std::to_string(i) + "\n\n";
      socket.send(chunked ? "9\r\n" + event + "\r\n" : event);
      if (!events.wait(i)) break;
    }
    if (chunked) socket.send("0\r\n\r\n");
    return chunked;
  };
  RouterHarness bed({.app_proxy = answer, .workflows = answer});
  for (const auto* target : {"/app-proxy/chunked", "/workflows/chunked", "/app-proxy/close"}) {
    SCOPED_TRACE(target);
    events.confirmed = 0;
    RawSocket socket(bed.port());
    socket.send(request("GET", target, "Accept-Encoding: gzip\r\n"));
    EXPECT_THAT(socket.read_until("\r\n\r\n"), HasSubstr("Transfer-Encoding: chunked\r\n"));
    for (int i = 1; i <= 3; ++i) {
      EXPECT_EQ(socket.read_until("\n\n\r\n"), "9\r\ndata: " + std::to_string(i) + "\n\n\r\n");
      events.confirm();
    }
    EXPECT_EQ(socket.read_exactly(5), "0\r\n\r\n");
  }
}

std::string gunzip(const std::string& bytes) {
  const auto result = run_command({"gzip", "-dc"}, {}, bytes);
  return result.ok() ? result.out : "not gzip: " + result.err;
}

TEST(RouterCases, Case46_Case47_JsonIsCompressed) {
  const std::string big = "[" + std::string(3000, '1') + "]";
  const auto answer = [&big](const RecordedRequest& seen, RawSocket& socket) {
    const auto target = seen.target();
    std::string fields = "Content-Type: application/json\r\nETag: \"v1\"\r\n";
    if (target.contains("svg")) fields = "Content-Type: image/svg+xml\r\n";
    if (target.contains("encoded")) fields += "Content-Encoding: br\r\n";
    return RecordingUpstream::reply(socket, target.contains("small") ? "[1]" : big, fields);
  };
  RouterHarness bed({.app_proxy = answer, .events = answer});
  const std::string accepts = "Accept-Encoding: gzip, deflate\r\n";
  for (const auto* target : {"/app-proxy/x", "/webhooks/argo/github/x"}) {
    for (const std::string via : {"", "Via: 1.1 other\r\n"}) {
      const auto response = bed.get(target, accepts + via);
      EXPECT_EQ(response.header("Content-Encoding"), "gzip");
      EXPECT_EQ(response.header("ETag"), "W/\"v1\"");
      EXPECT_EQ(response.header("Vary"), "Accept-Encoding");
      EXPECT_EQ(response.header("Content-Length"), std::nullopt);
      EXPECT_TRUE(response.chunked);
      EXPECT_EQ(gunzip(response.body), big);
    }
  }
  EXPECT_EQ(bed.get("/app-proxy/small", accepts).header("Content-Encoding"), std::nullopt);
  EXPECT_EQ(bed.get("/app-proxy/svg", accepts).header("Content-Encoding"), std::nullopt);
  EXPECT_EQ(bed.get("/app-proxy/encoded", accepts).header("Content-Encoding"), "br");
  EXPECT_EQ(bed.get("/app-proxy/x", "Accept-Encoding: gzip;q=0\r\n").header("Content-Encoding"),
            std::nullopt);
  const auto old =
      raw_call(bed.port(), "GET /app-proxy/x HTTP/1.0\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n");
  EXPECT_EQ(old.header("Content-Encoding"), std::nullopt);
  EXPECT_EQ(old.body, big);
}

TEST(RouterCases, Case48_TheRedirectIsRelative) {
  RouterHarness bed;
  const auto response = bed.get("/workflows");
  EXPECT_EQ(response.status, 301);
  EXPECT_EQ(response.header("Location"), "/workflows/");
}

TEST(RouterCases, Case55_WorkflowsDownIs502) {
  RouterHarness bed({.workflows_down = true});
  for (const auto* method : {"GET", "OPTIONS"}) {
    const auto response =
        raw_call(bed.port(), request(method, "/workflows/x", "Origin: https://g.codefresh.io\r\n"));
    EXPECT_EQ(response.status, 502);
    EXPECT_EQ(response.header("Access-Control-Allow-Origin"), std::nullopt);
  }
}

TEST(RouterCases, Case63_SilentNameServersAreNotWaitedForLong) {
  RouterHarness bed({.environment = {{"CONNECT_TIMEOUT", "500ms"}}});
  // The hosts file becomes a FIFO: a lookup waits until a writer opens it.
  const auto hosts = bed.folder() / "hosts";
  std::filesystem::remove(hosts);
  ASSERT_EQ(::mkfifo(hosts.c_str(), 0600), 0);
  const auto response = bed.get("/webhooks/argo/github/x");
  EXPECT_EQ(response.status, 502);
  EXPECT_EQ(bed.get("/healthz").status, 200);
}

}  // namespace
}  // namespace gitops::test
