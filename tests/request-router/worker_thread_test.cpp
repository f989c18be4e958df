#include <algorithm>
#include <atomic>
#include <latch>
#include <list>
#include <set>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <prometheus/counter.h>
#include <unistd.h>

#include "common/daemon/loop_thread.hpp"
#include "request-router/worker.hpp"
#include "support/process.hpp"
#include "support/run_coro.hpp"
#include "test_http/raw_http.hpp"

namespace gitops::router {
namespace {

constexpr std::size_t kLoops = 3;
constexpr std::size_t kClients = 4;
constexpr std::size_t kCalls = 60;  // per client, each on a new connection

// Workers as the daemon has them, with a thread for each.
class Workers {
 public:
  Workers(const Config& config, int log, const net::Resolver::Options& names = {},
          const net::Resolver::Options& event_source_names = {})
      : names_(metrics_, names),
        event_source_names_(metrics_, event_source_names),
        writer_(log, dropped_),
        traffic_(metrics_),
        webhooks_(loop_.executor(), metrics_, {}),
        context_{.config = config,
                 .names = names_,
                 .event_source_names = event_source_names_,
                 .access_log = writer_,
                 .traffic = traffic_,
                 .webhooks = webhooks_,
                 .totals = std::make_shared<proxy::Totals>(),
                 .app_proxy_down = [] { return std::string{}; },
                 .fail = [](const std::string& why) { ADD_FAILURE() << why; }} {}

  Task<> start(const RouteSettings& settings) {
    const auto gates = std::make_shared<Gates>(GateLimits{});
    while (workers_.size() < kLoops) {
      workers_.emplace_back(loops_.emplace_back().executor(), port(), context_);
      Result<void> started;
      co_await run_on_loop(workers_.back().executor(), [&]() -> Task<> {
        started = workers_.back().start(settings, gates);
        co_return;
      });
      CO_ASSERT_OK(started);
    }
  }
  Task<> use(const RouteSettings& settings) {
    const auto gates = std::make_shared<Gates>(GateLimits{});
    for (auto& worker : workers_) {
      co_await run_on_loop(worker.executor(), [&]() -> Task<> {
        worker.use(settings, gates);
        co_return;
      });
    }
  }
  Task<> stop() {
    for (auto& worker : workers_) {
      co_await run_on_loop(worker.executor(), [&worker]() -> Task<> {
        worker.drain();
        return worker.stop(deadline_after(std::chrono::seconds(10)));
      });
    }
    for (auto& loop : loops_) loop.stop();
    EXPECT_TRUE(writer_.flush());
    EXPECT_EQ(context_.totals->connections, 0U);
  }
  [[nodiscard]] std::uint16_t port() const {
    return workers_.empty() ? std::uint16_t{0} : workers_.front().port();
  }

 private:
  Metrics metrics_;
  Counter dropped_;
  std::list<LoopThread> loops_;
  net::Resolver names_;
  net::Resolver event_source_names_;
  LineWriter writer_;
  Traffic traffic_;
  LoopThread loop_;
  Webhooks webhooks_;
  WorkerContext context_;
  std::list<Worker> workers_;
};

// Requests on new connections, which the kernel spreads over the loops, while the routes change.
TEST(WorkerThreads, LoopsServeTogetherWhileRoutesChange) {
  test::RecordingUpstream one("one");
  test::RecordingUpstream two("two");
  const auto url = [](const test::RecordingUpstream& upstream) {
    return http::Url{.scheme = "http", .host = "127.0.0.1", .port = upstream.port()};
  };
  Config config;
  config.listen_address = "127.0.0.1";
  config.port = 0;
  config.loops = kLoops;
  RouteSettings first;
  first.app_proxy = url(one);
  RouteSettings second;
  second.app_proxy = url(two);
  const test::TempDir folder;
  const int log = ::open((folder / "log").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  std::atomic<std::size_t> answered = 0;
  std::vector<std::set<std::string>> loops(kClients);
  {
    Workers workers(config, log);
    test::run_coro(
        [&]() -> Task<> {
          co_await workers.start(first);
          std::vector<std::jthread> clients;
          for (auto& seen : loops) {
            clients.emplace_back([&, port = workers.port()] {
              for (std::size_t i = 0; i < kCalls; ++i) {
                const auto answer =
                    test::raw_call(port, "GET /app-proxy/x HTTP/1.1\r\nHost: a\r\n\r\n");
                EXPECT_EQ(answer.status, 200);
                // The first half of an id is the loop's.
                seen.insert(answer.header("X-Request-Id").value_or("").substr(0, 16));
                ++answered;
              }
            });
          }
          while (answered < kClients * kCalls) {
            co_await workers.use(second);
            co_await workers.use(first);
          }
          clients.clear();
          co_await workers.use(second);
          EXPECT_EQ(
              test::raw_call(workers.port(), "GET /app-proxy/x HTTP/1.1\r\nHost: a\r\n\r\n").body,
              "two");
          co_await workers.stop();
        },
        std::chrono::seconds(60));
  }
  ::close(log);
  std::set<std::string> all;
  for (const auto& seen : loops) all.insert(seen.begin(), seen.end());
  EXPECT_EQ(all.size(), kLoops);
  const auto lines = test::read_file(folder / "log");
  EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(lines, '\n')), kClients * kCalls + 1);
}

// The sender of a webhook chooses the name of an event source. While the name servers are busy with
// such names, lookups of app-proxy still work, and surplus lookups are refused at once.
TEST(WorkerThreads, NamesOfUnknownEventSourcesKeepNobodyWaiting) {
  constexpr int kStrangers = 10;
  constexpr int kTaken = 4;  // two lookups run, two wait
  test::RecordingUpstream app_proxy("app-proxy");
  Config config;
  config.listen_address = "127.0.0.1";
  config.port = 0;
  config.loops = kLoops;
  RouteSettings settings;
  settings.app_proxy = {.scheme = "http", .host = "app-proxy.test", .port = app_proxy.port()};
  settings.own_namespace = "argo";
  settings.allowed_addresses = net::AddressList::parse({"127.0.0.0/8"}).value();
  settings.connect_timeout = std::chrono::minutes(1);
  std::latch silence(1);
  std::atomic<int> asked = 0;
  std::atomic<int> not_absolute = 0;
  const auto answer = [](const std::string&) -> Result<net::Addresses> {
    return net::Addresses{asio::ip::make_address("127.0.0.1")};
  };
  const auto keep_silent = [&](const std::string& host) -> Result<net::Addresses> {
    ++asked;
    // Without the dot, search lists would be tried as well.
    not_absolute += host.ends_with(".svc.cluster.local.") ? 0 : 1;
    silence.wait();
    return fail(ErrorCode::not_found, "no such host");
  };
  const int log = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  std::atomic<int> refused = 0;
  std::atomic<int> unknown = 0;
  {
    Workers workers(config, log, {.look_up = answer},
                    {.threads = 2, .max_queued = 2, .look_up = keep_silent});
    test::run_coro(
        [&]() -> Task<> {
          co_await workers.start(settings);
          std::vector<std::jthread> strangers;
          for (int i = 0; i < kStrangers; ++i) {
            strangers.emplace_back([&, i, port = workers.port()] {
              const auto reply =
                  test::raw_call(port, "POST /webhooks/argo/source-" + std::to_string(i) +
                                           " HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
              refused += reply.status == 503 ? 1 : 0;
              unknown += reply.status == 404 ? 1 : 0;
            });
          }
          while (asked < 2 || refused < kStrangers - kTaken) {
            co_await sleep_for(std::chrono::milliseconds(1));
          }
          const auto served =
              test::raw_call(workers.port(), "GET /app-proxy/x HTTP/1.1\r\nHost: a\r\n\r\n");
          EXPECT_EQ(served.status, 200);
          EXPECT_EQ(served.body, "app-proxy");
          EXPECT_EQ(asked, 2);
          silence.count_down();
          strangers.clear();
          co_await workers.stop();
        },
        std::chrono::seconds(60));
  }
  ::close(log);
  EXPECT_EQ(refused, kStrangers - kTaken);
  EXPECT_EQ(unknown, kTaken);
  EXPECT_EQ(not_absolute, 0);
}

}  // namespace
}  // namespace gitops::router
