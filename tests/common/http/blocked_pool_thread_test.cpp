#include <atomic>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <tuple>

#include <gtest/gtest.h>

#include "common/core/task_group.hpp"
#include "common/core/worker_pool.hpp"
#include "common/http/client.hpp"
#include "common/http/server.hpp"
#include "support/run_coro.hpp"

namespace gitops::http {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kThreads = 8;
constexpr std::size_t kJobs = 64;

struct Blockade {
  std::atomic<std::size_t> inside = 0;
  std::latch open{1};
};

auto job(const std::shared_ptr<Blockade>& blockade) {
  return [blockade](const std::stop_token&) {
    ++blockade->inside;
    blockade->open.wait();
  };
}

// 64 jobs that neither end nor check their stop token. They affect nothing else, their waiters
// leave at their deadlines, and the pool stops within its grace period.
TEST(BlockedPool, HurtsNeitherLookupsNorRequestsNorTheEnd) {
  const auto blockade = std::make_shared<Blockade>();
  {
    Metrics metrics;
    net::Resolver resolver(metrics);
    WorkerPool pool({.name = "git", .threads = kThreads, .max_queued = kJobs - kThreads}, metrics);
    test::run_coro(
        [&]() -> Task<> {
          const auto executor = co_await asio::this_coro::executor;
          Server server(executor, {.address = "127.0.0.1", .port = 0},
                        [](Exchange& exchange) -> Task<> {
                          std::ignore = co_await exchange.reply({.status = 200});
                        });
          CO_ASSERT_OK(server.listen());
          Client client(executor, resolver, {});
          TaskGroup blocked(executor);
          for (std::size_t i = 0; i < kJobs; ++i) {
            blocked.spawn("waits", [&pool, blockade]() -> Task<> {
              (void)co_await pool.run(kNever, job(blockade));
            });
          }
          while (blockade->inside < kThreads ||
                 !metrics.expose().contains(R"(gitops_worker_pool_queued_jobs{pool="git"} 56)")) {
            co_await sleep_for(milliseconds(1));
          }

          const auto refused = co_await pool.run(kNever, job(blockade));
          CO_ASSERT_TRUE(!refused);
          EXPECT_EQ(refused.error().code, ErrorCode::too_many_requests);
          for (int i = 0; i < 20; ++i) {
            resolver.look_again("localhost");
            const Url url{.scheme = "http", .host = "localhost", .port = server.port()};
            const auto answer = co_await client.send(url, {}, deadline_after(seconds(20)));
            CO_ASSERT_OK(answer);
            EXPECT_EQ(answer->status, 200);
            client.close_idle();
          }

          blocked.cancel();
          co_await blocked.join();
          for (int i = 0; i < 5; ++i) {
            const auto late = co_await pool.run(deadline_after(milliseconds(5)), job(blockade));
            CO_ASSERT_TRUE(!late);
            EXPECT_EQ(late.error().code, ErrorCode::timeout);
          }
          EXPECT_EQ(blockade->inside, kThreads);
          co_await server.stop(deadline_after(seconds(5)));
        },
        seconds(60));
    EXPECT_EQ(pool.stop(milliseconds(50)), kThreads);
  }
  blockade->open.count_down();
  while (WorkerPool::left_behind() > 0) std::this_thread::yield();
}

}  // namespace
}  // namespace gitops::http
