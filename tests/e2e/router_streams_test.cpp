#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "daemons/router_harness.hpp"
#include "support/test_certs.hpp"
#include "support/wait.hpp"

// Long-lived scenes: large bodies, pooled connections, reloads, the end of the daemon.
namespace gitops::test {
namespace {

using testing::HasSubstr;

constexpr std::size_t kHundredMegabytes = 100 * 1000 * 1000;

std::string request(const std::string& method, const std::string& target,
                    const std::string& more = {}, const std::string& body = {}) {
  return RouterHarness::request(method, target, more, body);
}

TEST(RouterStreams, HundredMegabytesUpAndDownWithFlatMemory) {
  const auto download = [](const RecordedRequest& seen, RawSocket& socket) {
    if (!seen.target().contains("down")) {
      return RecordingUpstream::reply(socket, std::to_string(seen.body.size()));
    }
    const bool chunked = seen.target().contains("chunked");
    socket.send("HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n" +
                (chunked ? std::string("Transfer-Encoding: chunked")
                         : "Content-Length: " + std::to_string(kHundredMegabytes)) +
                "\r\n\r\n");
    const std::string part(1'000'000, 'd');
    for (std::size_t sent = 0; sent < kHundredMegabytes; sent += part.size()) {
      if (!socket.send(chunked ? "f4240\r\n" + part + "\r\n" : part)) return false;
    }
    return !chunked || socket.send("0\r\n\r\n");
  };
  RouterHarness bed({.app_proxy = download});
  bed.get("/app-proxy/x");
  const auto before = bed.peak_memory();
  for (const auto* target : {"/app-proxy/down", "/app-proxy/down-chunked"}) {
    SCOPED_TRACE(target);
    RawSocket socket(bed.port());
    socket.send(request("GET", target, "Connection: close\r\n"));
    std::size_t received = 0;
    std::string tail;
    while (true) {
      const auto bytes = socket.read_some();
      if (bytes.empty()) break;
      received += bytes.size();
      tail = (tail + bytes)
                 .substr(tail.size() + bytes.size() > 5 ? tail.size() + bytes.size() - 5 : 0);
    }
    EXPECT_GE(received, kHundredMegabytes);
    EXPECT_EQ(tail, std::string(target).contains("chunked") ? "0\r\n\r\n" : "ddddd");
  }
  {
    RawSocket socket(bed.port());
    socket.send("POST /app-proxy/up HTTP/1.1\r\nHost: a\r\nContent-Length: " +
                std::to_string(kHundredMegabytes) + "\r\n\r\n");
    const std::string part(1'000'000, 'u');
    for (std::size_t sent = 0; sent < kHundredMegabytes; sent += part.size()) socket.send(part);
    EXPECT_EQ(socket.read_response().body, std::to_string(kHundredMegabytes));
  }
  EXPECT_LT(bed.peak_memory(), before + 8 * 1024);
}

TEST(RouterStreams, ConnectionsAreReusedAndReplacedWhenTheyAreDead) {
  RouterHarness bed;
  for (int i = 0; i < 5; ++i) EXPECT_EQ(bed.get("/app-proxy/x").status, 200);
  const auto first = bed.app_proxy().requests();
  EXPECT_TRUE(std::all_of(first.begin(), first.end(), [&](const auto& each) {
    return each.connection == first[0].connection;
  }));
  for (const auto* method : {"GET", "POST"}) {
    bed.app_proxy().cut();
    EXPECT_EQ(raw_call(bed.port(), request(method, "/app-proxy/x")).status, 200) << method;
  }
}

TEST(RouterStreams, OnlyIdempotentRequestsAreSentTwice) {
  // Closes after it has read the second request of a connection, like a peer that had started to
  // close before the request arrived.
  std::map<std::size_t, int> seen_on;
  std::mutex mutex;
  const auto answer = [&](const RecordedRequest& seen, RawSocket& socket) {
    const std::lock_guard lock(mutex);
    if (++seen_on[seen.connection] == 2) return false;
    return RecordingUpstream::reply(socket, "ok");
  };
  RouterHarness bed({.app_proxy = answer});
  // On one client connection, so that the pooled connection was used recently.
  RawSocket socket(bed.port());
  for (const auto& [method, status] :
       {std::pair{"POST", 200}, {"POST", 502}, {"POST", 200}, {"PUT", 200}}) {
    socket.send(request(method, "/app-proxy/x", "", "body"));
    EXPECT_EQ(socket.read_response().status, status) << method;
  }
}

TEST(RouterStreams, AClientThatLeavesEndsItsRequest) {
  std::atomic<bool> ended = false;
  const auto answer = [&ended](const RecordedRequest&, RawSocket& socket) {
    socket.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n");
    ended = socket.closed();
    return false;
  };
  RouterHarness bed({.app_proxy = answer});
  {
    RawSocket socket(bed.port());
    socket.send(request("GET", "/app-proxy/events"));
    socket.read_until("data: 1");
  }
  EXPECT_TRUE(wait_until([&] { return ended.load(); }, std::chrono::seconds(30),
                         "the upstream to see the client's end"));
}

TEST(RouterStreams, EarlyAnswersEndTheUpload) {
  const auto answer = [](const RecordedRequest& seen, RawSocket& socket) {
    RecordingUpstream::reply(socket, "no", "Connection: close\r\n", "403 Forbidden");
    return !seen.target().contains("early");
  };
  RouterHarness bed({.app_proxy = answer});
  bed.app_proxy().answer_early("/early");
  RawSocket socket(bed.port());
  socket.send("POST /app-proxy/early HTTP/1.1\r\nHost: a\r\nContent-Length: 50000000\r\n\r\n");
  socket.send(std::string(100'000, 'x'));
  const auto response = socket.read_response();
  EXPECT_EQ(response.status, 403);
  EXPECT_EQ(response.body, "no");
  EXPECT_TRUE(socket.closed());
  EXPECT_EQ(bed.get("/app-proxy/y").status, 403);
}

TEST(RouterStreams, RoutesChangeWithoutDroppingAConnection) {
  RecordingUpstream other("other");
  const TempDir folder;
  const auto file = folder / "routes.yaml";
  write_file(file, "webhook-namespaces: [argo]\n");
  RouterHarness bed({.environment = {{"ROUTES_FILE", file.string()}}});
  RawSocket kept(bed.port());
  kept.send(request("GET", "/app-proxy/x"));
  EXPECT_EQ(kept.read_response().body, "app-proxy");

  write_file(file, "app-proxy-url: nonsense\nwebhook-port: 99999\n");
  require_until([&] { return bed.log().contains("the routes in force stay"); },
                std::chrono::seconds(5), "the mistakes to be told");
  EXPECT_THAT(bed.log(), HasSubstr("webhook-port"));
  kept.send(request("GET", "/app-proxy/x"));
  EXPECT_EQ(kept.read_response().body, "app-proxy");

  write_file(file, "app-proxy-url: http://127.0.0.1:" + std::to_string(other.port()) + "\n");
  require_until([&] { return bed.log().contains("took over the routes file"); },
                std::chrono::seconds(5), "the routes to change");
  kept.send(request("GET", "/app-proxy/x"));
  EXPECT_EQ(kept.read_response().body, "other");
}

TEST(RouterStreams, SigtermLetsRequestsEnd) {
  std::mutex mutex;
  std::condition_variable changed;
  bool go = false;
  const auto answer = [&](const RecordedRequest&, RawSocket& socket) {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, std::chrono::seconds(10), [&] { return go; });
    return RecordingUpstream::reply(socket, "late");
  };
  RouterHarness bed({.app_proxy = answer});
  RawSocket idle(bed.port());
  RawSocket busy(bed.port());
  busy.send(request("GET", "/app-proxy/x"));
  require_until([&] { return bed.app_proxy().requests().size() == 1; }, std::chrono::seconds(30),
                "the request to be under way");
  bed.process().signal(SIGTERM);
  EXPECT_TRUE(idle.closed());
  {
    const std::lock_guard lock(mutex);
    go = true;
  }
  changed.notify_all();
  const auto response = busy.read_response();
  EXPECT_EQ(response.body, "late");
  EXPECT_EQ(response.header("Connection"), "close");
  EXPECT_EQ(bed.process().wait(std::chrono::seconds(10)), 0);
}

TEST(RouterStreams, AnOpenWebSocketDoesNotKeepTheDaemonForEver) {
  const auto answer = [](const RecordedRequest&, RawSocket& socket) {
    socket.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n");
    socket.closed();
    return false;
  };
  RouterHarness bed({.environment = {{"DRAIN_TIMEOUT", "300ms"}}, .app_proxy = answer});
  RawSocket socket(bed.port());
  socket.send(request("GET", "/app-proxy/x", "Connection: Upgrade\r\nUpgrade: websocket\r\n"));
  EXPECT_EQ(socket.read_response().status, 101);
  bed.process().signal(SIGTERM);
  EXPECT_TRUE(socket.closed());
  EXPECT_EQ(bed.process().wait(std::chrono::seconds(10)), 0);
}

TEST(RouterStreams, AC08_SpeaksTlsToClientsAndUpstreams) {
  CertificateAuthority authority;
  const auto certificate = authority.issue(
      {.common_name = "router", .organization = {}, .alt_names = {"127.0.0.1", "localhost"}});
  // An independent server that answers every request.
  const int tls_port = free_port();
  Process tls_server(
      {.argv = {"openssl", "s_server", "-quiet", "-www", "-accept",
                "127.0.0.1:" + std::to_string(tls_port), "-cert", certificate.cert_file.string(),
                "-key", certificate.key_file.string()}});
  const std::string big(300'000, 'b');
  RouterHarness bed(
      {.environment = {{"TLS_CERTIFICATE_FILE", certificate.cert_file.string()},
                       {"TLS_KEY_FILE", certificate.key_file.string()},
                       {"HEAD_TIMEOUT", "4s"},
                       {"WORKFLOWS_URL", "https://127.0.0.1:" + std::to_string(tls_port)},
                       {"WORKFLOWS_CA_FILE", authority.ca_file().string()}},
       .app_proxy = [&big](const RecordedRequest& seen, RawSocket& socket) {
         return RecordingUpstream::reply(socket, seen.body.empty() ? big : seen.body);
       }});
  const auto call = [&](const std::string& target, const std::string& body = {}) {
    return http_call({.method = body.empty() ? "GET" : "POST",
                      .url = "https://127.0.0.1:" + std::to_string(bed.port()) + target,
                      .body = body,
                      .ca_file = authority.ca_file()});
  };
  EXPECT_EQ(call("/app-proxy/x").body, big);
  EXPECT_EQ(call("/app-proxy/x", big).body, big);
  EXPECT_EQ(bed.app_proxy().requests().at(0).header("X-Forwarded-Proto"), "https");
  EXPECT_TRUE(wait_until([&] { return call("/workflows/x").status == 200; },
                         std::chrono::seconds(10), "the TLS upstream"));
  EXPECT_THAT(call("/workflows/x").body, HasSubstr("TLSv1.3"));

  // A handshake has a time limit (AC-07), and plain text is not read as a request.
  RawSocket silent(bed.port());
  RawSocket plain(bed.port());
  plain.send(request("GET", "/app-proxy/plain"));
  EXPECT_EQ(plain.read_response().status, 0);
  EXPECT_TRUE(plain.closed());
  for (const auto& seen : bed.app_proxy().requests()) EXPECT_EQ(seen.target(), "/app-proxy/x");

  EXPECT_TRUE(silent.closed());

  // The router sends nothing to an upstream with an untrusted certificate.
  RouterHarness strict(
      {.environment = {{"WORKFLOWS_URL", "https://127.0.0.1:" + std::to_string(tls_port)}}});
  EXPECT_EQ(strict.get("/workflows/x").status, 502);
  RouterHarness careless(
      {.environment = {{"WORKFLOWS_URL", "https://127.0.0.1:" + std::to_string(tls_port)},
                       {"WORKFLOWS_INSECURE", "true"}}});
  EXPECT_EQ(careless.get("/workflows/x").status, 200);
}

TEST(RouterStreams, RequestsLeaveNoDescriptorsBehind) {
  RouterHarness bed;
  bed.get("/app-proxy/x");
  const auto before = bed.descriptors();
  for (int i = 0; i < 300; ++i)
    bed.get(i % 3 == 0 ? "/app-proxy/x" : i % 3 == 1 ? "/nope" : "/workflows/a");
  EXPECT_TRUE(wait_until([&] { return bed.descriptors() <= before + 2; }, std::chrono::seconds(30),
                         "connections to be closed"));
}

}  // namespace
}  // namespace gitops::test
