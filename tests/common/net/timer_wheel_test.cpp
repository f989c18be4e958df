#include "common/net/timer_wheel.hpp"

#include <memory>
#include <vector>

#include <gmock/gmock.h>

#include "support/run_coro.hpp"

namespace gitops::net {
namespace {

using std::chrono::milliseconds;

TEST(TimerWheel, FiresInOrderAndNotEarly) {
  test::run_coro([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    TimerWheel wheel(executor);
    Event fired(executor);
    std::vector<int> order;
    const auto begin = Clock::now();
    WheelTimer second(wheel, [&] {
      order.push_back(2);
      EXPECT_GE(Clock::now() - begin, milliseconds(300));
      fired.notify_all();
    });
    WheelTimer first(wheel, [&] { order.push_back(1); });
    WheelTimer moved(wheel, [&] { order.push_back(3); });
    WheelTimer never(wheel, [&] { order.push_back(4); });
    auto destroyed = std::make_unique<WheelTimer>(wheel, [&] { order.push_back(5); });
    second.expires_at(begin + milliseconds(300));
    first.expires_at(begin + milliseconds(50));
    moved.expires_at(begin + milliseconds(50));
    moved.expires_at(kNever);
    never.expires_at(kNever);
    destroyed->expires_at(begin + milliseconds(50));
    destroyed.reset();
    while (order.size() < 2) co_await fired.wait();
    EXPECT_THAT(order, testing::ElementsAre(1, 2));
  });
}

TEST(TimerWheel, TimersMayBeMovedAndDestroyedByWhatTheyCall) {
  test::run_coro([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    TimerWheel wheel(executor);
    Event fired(executor);
    int count = 0;
    std::unique_ptr<WheelTimer> other;
    WheelTimer again(wheel, [&] {
      other.reset();
      if (++count < 3) again.expires_at(Clock::now() + milliseconds(10));
      fired.notify_all();
    });
    other = std::make_unique<WheelTimer>(wheel, [&] { ADD_FAILURE(); });
    again.expires_at(Clock::now());
    other->expires_at(Clock::now() + milliseconds(500));
    other->expires_at(Clock::now() + milliseconds(400));
    while (count < 3) co_await fired.wait();
  });
}

TEST(TimerWheel, APassedDeadlineExpiresAlthoughItIsSetAgainBeforeEachTick) {
  test::run_coro([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    TimerWheel wheel(executor);
    bool expired = false;
    WheelTimer only(wheel, [&] { expired = true; });
    const auto begin = Clock::now();
    while (!expired && Clock::now() - begin < std::chrono::seconds(5)) {
      only.expires_at(begin + milliseconds(50));
      co_await sleep_for(milliseconds(10));
    }
    EXPECT_TRUE(expired);
  });
}

}  // namespace
}  // namespace gitops::net
