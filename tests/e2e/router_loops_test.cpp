#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <iterator>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "daemons/router_harness.hpp"
#include "support/wait.hpp"

// Several loops in one router, and their shared state.
namespace gitops::test {
namespace {

using std::chrono::seconds;

constexpr std::size_t kConnections = 48;

std::string request(const std::string& method, const std::string& target,
                    const std::string& body = {}) {
  return RouterHarness::request(method, target, {}, body);
}

// Request ids begin with a part that identifies the loop.
std::string loop_of(const RawResponse& response) {
  return response.header("X-Request-Id").value_or("").substr(0, 16);
}

// Enough connections to reach every loop.
std::list<RawSocket> connect_often(const RouterHarness& bed) {
  std::list<RawSocket> sockets;
  while (sockets.size() < kConnections) sockets.emplace_back(bed.port());
  return sockets;
}

// Holds answers back until open().
class Barrier {
 public:
  void wait() {
    std::unique_lock lock(mutex_);
    opened_.wait_for(lock, seconds(20), [this] { return open_; });
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    opened_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable opened_;
  bool open_ = false;
};

TEST(RouterLoops, ConnectionsAreSpreadAndAllSeeTheNewRoutes) {
  RecordingUpstream other("other");
  const TempDir folder;
  write_file(folder / "routes.yaml", "webhook-namespaces: [argo]\n");
  RouterHarness bed({.environment = {{"LOOPS", "3"}, {"ROUTES_FILE", folder / "routes.yaml"}}});
  auto sockets = connect_often(bed);
  std::set<std::string> loops;
  for (auto& socket : sockets) {
    socket.send(request("GET", "/app-proxy/x"));
    const auto response = socket.read_response();
    EXPECT_EQ(response.body, "app-proxy");
    loops.insert(loop_of(response));
  }
  EXPECT_EQ(loops.size(), 3U);

  write_file(folder / "routes.yaml",
             "app-proxy-url: http://127.0.0.1:" + std::to_string(other.port()) + "\n");
  require_until([&] { return bed.log().contains("took over the routes file"); }, seconds(30),
                "the routes to change");
  for (auto& socket : sockets) {
    socket.send(request("GET", "/app-proxy/x"));
    EXPECT_EQ(socket.read_response().body, "other");
  }
}

TEST(RouterLoops, AC14_LimitsOfAnEventSourceHoldForAllLoopsTogether) {
  constexpr std::size_t kLimit = 5;
  Barrier barrier;
  const auto answer = [&barrier](const RecordedRequest&, RawSocket& socket) {
    barrier.wait();
    return RecordingUpstream::reply(socket, "done");
  };
  RouterHarness bed({.environment = {{"LOOPS", "3"},
                                     {"WEBHOOK_CONCURRENCY", std::to_string(kLimit)},
                                     {"WEBHOOK_RATE", "0"}},
                     .events = answer});
  const auto webhook = request("POST", "/webhooks/argo/github", "{}");
  const auto under_way = [&bed](std::size_t count) {
    return [&bed, count] { return bed.events().requests().size() == count; };
  };
  auto sockets = connect_often(bed);
  // Alone: see RouterProcess::set_hosts.
  sockets.front().send(webhook);
  require_until(under_way(1), seconds(10), "the first webhook to be under way");
  for (auto socket = std::next(sockets.begin()); socket != sockets.end(); ++socket) {
    socket->send(webhook);
  }
  require_until(under_way(kLimit), seconds(10), "webhooks to be under way");
  const auto kept = [&bed] {
    return http_call({.url = "http://127.0.0.1:" + std::to_string(bed.admin_port()) + "/metrics"})
        .body.contains("gitops_router_kept_webhooks_total " +
                       std::to_string(kConnections - kLimit) + "\n");
  };
  require_until(kept, seconds(10), "all others to be kept");
  EXPECT_EQ(bed.events().requests().size(), kLimit);
  barrier.open();
  std::map<int, std::size_t> count;
  std::set<std::string> loops;
  for (auto& socket : sockets) {
    const auto response = socket.read_response();
    ++count[response.status];
    loops.insert(loop_of(response));
  }
  EXPECT_GE(count[200], kLimit);
  EXPECT_EQ(count[200] + count[202], kConnections);
  EXPECT_EQ(loops.size(), 3U);
  require_until(under_way(kConnections), seconds(10), "all to be delivered");
}

TEST(RouterLoops, SigtermLetsRequestsOfEveryLoopEnd) {
  Barrier barrier;
  const auto answer = [&barrier](const RecordedRequest&, RawSocket& socket) {
    barrier.wait();
    return RecordingUpstream::reply(socket, "late");
  };
  RouterHarness bed({.environment = {{"LOOPS", "3"}}, .app_proxy = answer});
  auto idle = connect_often(bed);
  auto busy = connect_often(bed);
  for (auto& socket : busy) socket.send(request("GET", "/app-proxy/x"));
  require_until([&] { return bed.app_proxy().requests().size() == kConnections; }, seconds(10),
                "the requests to be under way");
  bed.process().signal(SIGTERM);
  for (auto& socket : idle) EXPECT_TRUE(socket.closed());
  EXPECT_THROW(RawSocket(bed.port()), std::runtime_error);
  barrier.open();
  for (auto& socket : busy) {
    const auto response = socket.read_response();
    EXPECT_EQ(response.body, "late");
    EXPECT_EQ(response.header("Connection"), "close");
  }
  EXPECT_EQ(bed.process().wait(seconds(10)), 0);
}

TEST(RouterLoops, AStandardOutputThatNobodyReadsStopsNoRequest) {
  constexpr int kRequests = 700;
  const TempDir folder;
  const auto pipe = folder / "stdout";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  RouterHarness bed({.standard_output = pipe});
  RawSocket socket(bed.port());
  const auto target = "/nope/" + std::string(1'000, 'x');
  for (int i = 0; i < kRequests; ++i) {
    socket.send(request("GET", target));
    ASSERT_EQ(socket.read_response().status, 404) << i;
  }
  const auto metrics =
      http_call({.url = "http://127.0.0.1:" + std::to_string(bed.admin_port()) + "/metrics"}).body;
  const std::string name = "\ngitops_router_access_log_dropped_total ";
  const int dropped = std::stoi(metrics.substr(metrics.find(name) + name.size()));
  EXPECT_GT(dropped, 0);
  EXPECT_LT(dropped, kRequests);

  // The kept lines arrive once the output is read again.
  std::string lines;
  const auto read = [&] {
    std::string block(65'536, '\0');
    const auto size = ::read(reader, block.data(), block.size());
    if (size > 0) lines.append(block, 0, static_cast<std::size_t>(size));
    return std::ranges::count(lines, '\n') == kRequests - dropped;
  };
  EXPECT_TRUE(wait_until(read, seconds(10), "the lines that were kept"));
  for (std::size_t at = 0; at < lines.size();) {
    const auto end = lines.find('\n', at);
    EXPECT_TRUE(nlohmann::json::accept(lines.substr(at, end - at)));
    at = end + 1;
  }
  bed.process().signal(SIGTERM);
  EXPECT_EQ(bed.process().wait(seconds(10)), 0);
  ::close(reader);
}

TEST(RouterLoops, AStandardErrorThatNobodyReadsStopsNoRequest) {
  constexpr int kRequests = 4'000;
  const TempDir folder;
  const auto file = folder / "routes.yaml";
  write_file(file, "webhook-concurrency: 2\n");
  LogReader reader;
  RouterHarness bed({.environment = {{"ROUTES_FILE", file.string()}}, .log_reader = &reader});
  reader.stop();
  RawSocket socket(bed.port());
  for (int i = 0; i < kRequests; ++i) {
    if (i == 1) write_file(file, "webhook-concurrency: 1\n");  // a line of each takeover
    socket.send(request("GET", "/app-proxy/x"));
    ASSERT_EQ(socket.read_response().status, 200) << i;
  }
  require_until(
      [&] {
        return http_call(
                   {.url = "http://127.0.0.1:" + std::to_string(bed.admin_port()) + "/metrics"})
            .body.contains("\ngitops_router_reloads_total 1\n");
      },
      seconds(10), "the takeover of the routes");
  socket.send(request("GET", "/app-proxy/x"));
  EXPECT_EQ(socket.read_response().status, 200);
  bed.process().signal(SIGTERM);
  EXPECT_EQ(bed.process().wait(seconds(10)), 0);
}

}  // namespace
}  // namespace gitops::test
