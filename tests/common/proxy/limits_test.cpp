#include "common/proxy/limits.hpp"

#include <atomic>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "common/core/task_group.hpp"
#include "support/run_coro.hpp"

namespace gitops::proxy {
namespace {

using namespace std::chrono_literals;
using boost::asio::ip::make_address;

TEST(Totals, RoomGoesToThoseWhoHaveWaitedLongestAsFarAsItIsEnough) {
  test::run_in_test_time([]() -> Task<> {
    Totals totals({.max_held = 100, .max_held_per_peer = 60});
    const auto one = totals.of(make_address("192.0.2.1"));
    const auto other = totals.of(make_address("192.0.2.2"));
    EXPECT_TRUE(totals.hold(*one, 60));
    EXPECT_FALSE(totals.hold(*one, 1));
    EXPECT_TRUE(totals.hold(*other, 40));
    EXPECT_FALSE(totals.hold(*other, 1));
    std::string order;
    TaskGroup tasks(co_await asio::this_coro::executor);
    const auto wait = [&](const std::shared_ptr<PeerUse>& peer, std::size_t bytes, char name) {
      tasks.spawn("wait", [&, peer, bytes, name]() -> Task<> {
        const bool came = co_await totals.await_hold(peer, bytes, deadline_after(10s));
        order += came ? name : '-';
      });
    };
    wait(one, 50, 'a');
    wait(one, 10, 'b');
    wait(other, 20, 'c');
    EXPECT_FALSE(co_await totals.await_hold(other, 61, deadline_after(10s)))
        << "more than a peer may ever have";
    co_await sleep_for(1s);
    EXPECT_TRUE(totals.is_short_of_room());
    EXPECT_EQ(order, "");
    totals.release(*one, 20);  // enough for b and a half of c
    co_await sleep_for(1s);
    EXPECT_EQ(order, "b");
    totals.release(*one, 40);
    co_await sleep_for(1s);
    EXPECT_EQ(order, "ba") << "it waited longer than c";
    co_await sleep_for(10s);
    EXPECT_EQ(order, "ba-");
    EXPECT_EQ(totals.held, 100U);
    EXPECT_EQ(one->held, 60U);
    EXPECT_FALSE(totals.is_short_of_room());
    co_await tasks.join();
  });
}

// A waiting request that was refused by a mistake would wait until others release room again.
TEST(Totals, AnAttemptThatFailsOnAnotherLoopTakesNoRoom) {
  Totals totals({.max_held = 100, .max_held_per_peer = 100});
  const auto one = totals.of(make_address("192.0.2.1"));
  const auto other = totals.of(make_address("192.0.2.2"));
  EXPECT_TRUE(totals.hold(*one, 50));
  std::atomic<bool> is_done = false;
  std::jthread greedy([&] {
    while (!is_done) EXPECT_FALSE(totals.hold(*one, 60));
  });
  int refused = 0;
  for (int i = 0; i < 5'000; ++i) {
    if (totals.hold(*other, 50)) {
      totals.release(*other, 50);
    } else {
      ++refused;
    }
  }
  is_done = true;
  greedy.join();
  EXPECT_EQ(refused, 0);
}

TEST(Totals, AnAddressHasOneAccountWhileItIsUsed) {
  Totals totals;
  const auto first = totals.of(make_address("192.0.2.1"));
  EXPECT_EQ(totals.of(make_address("192.0.2.1")), first);
  EXPECT_NE(totals.of(make_address("192.0.2.2")), first);
  for (std::uint32_t i = 0; i < 5'000; ++i) {
    totals.of(boost::asio::ip::address_v4(0x0a000000U + i));
  }
  EXPECT_EQ(totals.of(make_address("192.0.2.1")), first);
  // Who has one IPv6 address has 2^64 of them.
  const auto six = totals.of(make_address("2001:db8:0:1::1"));
  EXPECT_EQ(totals.of(make_address("2001:db8:0:1:ffff::2")), six);
  EXPECT_NE(totals.of(make_address("2001:db8:0:2::1")), six);
}

TEST(Held, ChargesTheAddressAndAllTogetherOrNothing) {
  Totals totals({.max_held = 100, .max_held_per_peer = 60});
  const auto one = std::make_shared<PeerUse>();
  const auto two = std::make_shared<PeerUse>();
  {
    Held first(totals);
    Held second(totals);
    Held third(totals);
    EXPECT_TRUE(first.charge(one, 40));
    EXPECT_FALSE(second.charge(one, 30));  // the address has too much
    EXPECT_TRUE(second.charge(one, 20));
    EXPECT_TRUE(third.charge(two, 40));
    EXPECT_FALSE(third.charge(two, 1));  // all together have
    EXPECT_EQ(one->held, 60U);
    EXPECT_EQ(two->held, 40U);
    EXPECT_EQ(totals.held, 100U);
    first.release();
    EXPECT_TRUE(third.charge(two, 1));
  }
  EXPECT_EQ(one->held + two->held + totals.held, 0U);
}

TEST(DeflaterPlace, IsOneOfAFew) {
  Totals totals({.max_deflaters = 1});
  DeflaterPlace first(totals);
  DeflaterPlace second(totals);
  EXPECT_TRUE(first.take());
  EXPECT_TRUE(first.take());  // has it
  EXPECT_FALSE(second.take());
  first.release();
  EXPECT_TRUE(second.take());
}

}  // namespace
}  // namespace gitops::proxy
