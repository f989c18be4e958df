#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <string>

#include <gmock/gmock.h>

#include "daemons/router_harness.hpp"
#include "support/browser.hpp"
#include "support/wait.hpp"

// WebSockets and event streams with clients and servers that share no code with the router.
namespace gitops::test {
namespace {

using testing::HasSubstr;

std::string url(const std::string& scheme, const RouterHarness& bed, const std::string& target) {
  return scheme + "://127.0.0.1:" + std::to_string(bed.port()) + target;
}

std::vector<std::string> websockets(const std::vector<std::string>& arguments) {
  std::vector<std::string> argv{
      "/usr/bin/python3",  // the Python that has Debian's modules
      (std::filesystem::path(GITOPS_SOURCE_DIR) / "tests/e2e/websocket_peers.py").string()};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return argv;
}

// The WebSocket server behind a router.
class EchoServer {
 public:
  EchoServer() : process_({.argv = websockets({"serve"}), .log_file = folder_ / "log"}) {
    require_until([this] { return log().ends_with('\n'); }, std::chrono::seconds(10),
                  "the WebSocket server to listen");
  }
  [[nodiscard]] std::string url() const {
    return "http://127.0.0.1:" + log().substr(0, log().find('\n'));
  }
  [[nodiscard]] std::string log() const { return read_file(folder_ / "log"); }

 private:
  TempDir folder_;
  Process process_;
};

TEST(RouterClients, WebSocketsOfAnotherMakeTalkThroughTheRouter) {
  EchoServer server;
  RouterHarness bed({.environment = {{"APP_PROXY_URL", server.url()}}});
  const auto client = run_command(websockets({"talk", url("ws", bed, "/app-proxy/graphql")}));
  EXPECT_TRUE(client.ok()) << client.err << server.log();
}

// WebSockets may be silent for longer than other requests: here for 4 s against 1.5 s.
TEST(RouterClients, WebSocketsMayBeSilentForAsLongAsTheLimitSays) {
  EchoServer server;
  RouterHarness bed({.environment = {{"APP_PROXY_URL", server.url()},
                                     {"WEBSOCKET_TIMEOUT", "4s"},
                                     {"HEAD_TIMEOUT", "1500ms"},
                                     {"IDLE_TIMEOUT", "1500ms"},
                                     {"ANSWER_TIMEOUT", "1500ms"},
                                     {"BODY_TIMEOUT", "1500ms"}}});
  const auto client = run_command(websockets({"idle", url("ws", bed, "/app-proxy/graphql"), "4"}));
  EXPECT_TRUE(client.ok()) << client.err << server.log();
}

// Delays each event until the reader has confirmed the last one.
class Confirmations {
 public:
  void add() {
    const std::lock_guard lock(mutex_);
    ++count_;
    changed_.notify_all();
  }
  bool wait_for(int count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(10), [&] { return count_ >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
};

constexpr const char* kEventStream = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";

TEST(RouterClients, CurlGetsEachEventAtOnce) {
  Confirmations confirmations;
  const auto answer = [&](const RecordedRequest&, RawSocket& socket) {
    socket.send(kEventStream);
    for (int event = 1; event <= 3; ++event) {
      socket.send("data: event " + std::to_string(event) + "\n\n");
      if (!confirmations.wait_for(event)) break;
    }
    return false;
  };
  RouterHarness bed({.workflows = answer});
  const auto received = bed.folder() / "received";
  Process curl(
      {.argv = {"curl", "--disable", "--silent", "--no-buffer", "--compressed", "--noproxy", "*",
                url("http", bed, "/workflows/api/v1/workflow-events/argo")},
       .log_file = received});
  for (int event = 1; event <= 3; ++event) {
    EXPECT_TRUE(wait_until(
        [&] { return read_file(received).contains("data: event " + std::to_string(event)); },
        std::chrono::seconds(30), "event " + std::to_string(event)));
    confirmations.add();
  }
  EXPECT_EQ(curl.wait(std::chrono::seconds(30)), 0);
}

constexpr const char* kPage = R"(<!doctype html>
<p id="seen"></p>
<script>
  const seen = document.getElementById('seen');
  const source = new EventSource('events');
  source.onmessage = (event) => {
    seen.textContent += `${event.lastEventId} ${event.data}, `;
    fetch('confirm', {method: 'POST', body: event.data});
    if (event.data == 'last') source.close();
  };
</script>)";

TEST(RouterClients, ABrowsersEventSourceGetsEachEventAtOnceAndComesBack) {
  if (const auto lacking = missing_browser()) GTEST_SKIP() << *lacking;
  Confirmations confirmations;
  const auto answer = [&](const RecordedRequest& seen, RawSocket& socket) {
    if (seen.target() == "/app-proxy/page") {
      return RecordingUpstream::reply(socket, kPage, "Content-Type: text/html\r\n");
    }
    if (seen.target() == "/app-proxy/confirm") {
      confirmations.add();
      return RecordingUpstream::reply(socket, "");
    }
    if (seen.target() != "/app-proxy/events")
      return RecordingUpstream::reply(socket, "", "", "404 Not Found");
    socket.send(kEventStream);
    if (seen.header("Last-Event-ID") == "2") {
      socket.send("id: 3\ndata: last\n\n");
      return false;
    }
    socket.send("retry: 10\nid: 1\ndata: first\n\n");
    if (!confirmations.wait_for(1)) return false;
    socket.send("id: 2\ndata: second\n\n");
    confirmations.wait_for(2);
    return false;
  };
  RouterHarness bed({.app_proxy = answer});
  EXPECT_THAT(browse(url("http", bed, "/app-proxy/page")),
              HasSubstr("1 first, 2 second, 3 last, "));
}

}  // namespace
}  // namespace gitops::test
