#include "event-reporter/delivery/breaker.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace gitops::reporter {
namespace {

using namespace std::chrono_literals;
using State = Breaker::State;
using std::chrono::milliseconds;

constexpr Clock::time_point kStart{1h};

// A breaker with a clock of its own and the permits that it gave out.
struct Fixture {
  explicit Fixture(Breaker::Options options = {.max_permits = 16}, std::uint64_t seed = 1)
      : breaker(options, seed) {}

  bool acquire() {
    const auto permit = breaker.try_acquire(now);
    if (permit) out.push_back(*permit);
    return permit.has_value();
  }
  // All that it gives now.
  std::size_t acquire_all() {
    std::size_t count = 0;
    while (acquire()) ++count;
    return count;
  }
  Breaker::Permit take() {
    const auto permit = out.front();
    out.erase(out.begin());
    return permit;
  }
  void succeed() { breaker.succeeded(take()); }
  void fail(milliseconds pause = 0ms) { breaker.failed(take(), now, pause); }
  // Fails until it is open, with nothing left in flight.
  void open() {
    while (breaker.state() == State::closed && acquire()) fail();
  }
  void go_to_probe() { now = std::max(now, breaker.next_probe()); }
  // Through one probe that succeeds.
  void close() {
    go_to_probe();
    EXPECT_TRUE(acquire());
    succeed();
  }

  Breaker breaker;
  Clock::time_point now = kStart;
  std::vector<Breaker::Permit> out;
};

TEST(Breaker, BeginsClosedWithAllItsPermits) {
  Fixture bench;
  EXPECT_EQ(bench.breaker.state(), State::closed);
  EXPECT_TRUE(bench.breaker.lets_through(bench.now));
  EXPECT_EQ(bench.acquire_all(), 16U);
  EXPECT_EQ(bench.breaker.in_flight(), 16U);
  bench.succeed();
  EXPECT_EQ(bench.acquire_all(), 1U);
}

TEST(Breaker, OpensAfterFailuresInARow) {
  Fixture bench;
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(bench.acquire());
    bench.fail();
  }
  ASSERT_TRUE(bench.acquire());
  bench.succeed();  // the row begins over
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(bench.acquire());
    bench.fail();
    EXPECT_EQ(bench.breaker.state(), State::closed);
  }
  ASSERT_TRUE(bench.acquire());
  bench.fail();
  EXPECT_EQ(bench.breaker.state(), State::open);
  EXPECT_EQ(bench.breaker.permitted(), 0U);
}

TEST(Breaker, LetsOneProbeThroughWhenThePauseIsOver) {
  Fixture bench;
  bench.open();
  bench.now = bench.breaker.next_probe() - 1ns;
  EXPECT_FALSE(bench.breaker.lets_through(bench.now));
  EXPECT_FALSE(bench.acquire());
  bench.now += 1ns;
  EXPECT_TRUE(bench.breaker.lets_through(bench.now));
  EXPECT_EQ(bench.acquire_all(), 1U);
  EXPECT_EQ(bench.breaker.state(), State::probing);
  EXPECT_FALSE(bench.breaker.lets_through(bench.now + 24h));
  EXPECT_EQ(bench.breaker.permitted(), 1U);
}

TEST(Breaker, PausesGrowAndAreSpread) {
  std::vector<milliseconds> firsts;
  std::mt19937_64 seeds(1);
  for (int i = 0; i < 200; ++i) {
    Fixture bench({}, seeds());
    bench.open();
    milliseconds cap = 200ms;
    for (int probe = 0; probe < 12; ++probe) {
      const auto pause = bench.breaker.next_probe() - bench.now;
      EXPECT_GE(pause, 0ms);
      EXPECT_LE(pause, cap);
      if (probe == 0) firsts.push_back(std::chrono::duration_cast<milliseconds>(pause));
      cap = std::min<milliseconds>(cap * 2, 30s);
      bench.go_to_probe();
      ASSERT_TRUE(bench.acquire());
      bench.fail();
    }
  }
  // Full jitter: many daemons do not come back together.
  EXPECT_GT(std::ranges::count_if(firsts, [](auto pause) { return pause < 100ms; }), 60);
  EXPECT_GT(std::ranges::count_if(firsts, [](auto pause) { return pause > 100ms; }), 60);
}

TEST(Breaker, PausesBeginShortAgainAfterASuccess) {
  Fixture bench;
  bench.open();
  for (int probe = 0; probe < 20; ++probe) {
    bench.go_to_probe();
    ASSERT_TRUE(bench.acquire());
    bench.fail();
  }
  bench.close();
  bench.open();
  EXPECT_LE(bench.breaker.next_probe() - bench.now, 200ms);
}

TEST(Breaker, HonoursAnAskedPauseAtOnce) {
  Fixture bench;
  ASSERT_TRUE(bench.acquire());
  bench.fail(7s);
  EXPECT_EQ(bench.breaker.state(), State::open);
  EXPECT_GE(bench.breaker.next_probe() - bench.now, 7s);
  EXPECT_LE(bench.breaker.next_probe() - bench.now, 7700ms);
}

TEST(Breaker, CapsAnAskedPause) {
  for (const milliseconds asked : {milliseconds(6min), milliseconds(24h), milliseconds::max()}) {
    Fixture bench;
    ASSERT_TRUE(bench.acquire());
    bench.fail(asked);
    EXPECT_GE(bench.breaker.next_probe() - bench.now, 5min);
    EXPECT_LE(bench.breaker.next_probe() - bench.now, 5min + 30s);
  }
}

TEST(Breaker, RampsUpFromOneAndAtMostDoublesInARoundTrip) {
  Fixture bench({.max_permits = 20});
  bench.open();
  bench.close();
  std::vector<std::size_t> rounds;
  for (int round = 0; round < 6; ++round) {
    rounds.push_back(bench.acquire_all());
    while (!bench.out.empty()) bench.succeed();
  }
  EXPECT_EQ(rounds, (std::vector<std::size_t>{1, 2, 4, 8, 16, 20}));
}

TEST(Breaker, AFailureOnTheWayUpHalvesTheRamp) {
  Fixture bench;
  bench.open();
  bench.close();
  for (int i = 0; i < 9; ++i) {
    ASSERT_TRUE(bench.acquire());
    bench.succeed();
  }
  EXPECT_EQ(bench.breaker.permitted(), 10U);
  ASSERT_TRUE(bench.acquire());
  bench.fail();
  EXPECT_EQ(bench.breaker.permitted(), 5U);
  EXPECT_EQ(bench.breaker.state(), State::closed);
}

TEST(Breaker, ASingleFailureAtFullSpeedCostsNothing) {
  Fixture bench;
  ASSERT_TRUE(bench.acquire());
  bench.fail();
  EXPECT_EQ(bench.breaker.permitted(), 16U);
}

TEST(Breaker, OutcomesFromBeforeItOpenedHaveNoSay) {
  Fixture bench;
  EXPECT_EQ(bench.acquire_all(), 16U);
  for (int i = 0; i < 5; ++i) bench.fail();
  ASSERT_EQ(bench.breaker.state(), State::open);
  const auto next = bench.breaker.next_probe();
  bench.succeed();
  bench.fail();
  EXPECT_EQ(bench.breaker.state(), State::open);
  EXPECT_EQ(bench.breaker.next_probe(), next);
  bench.go_to_probe();
  ASSERT_TRUE(bench.acquire()) << "those that are still out do not hold up the probe";
  for (int i = 0; i < 9; ++i) bench.fail();
  EXPECT_EQ(bench.breaker.state(), State::probing);
  bench.succeed();
  EXPECT_EQ(bench.breaker.state(), State::closed);
  EXPECT_EQ(bench.breaker.in_flight(), 0U);
}

TEST(Breaker, ALatePauseIsHonouredToo) {
  Fixture bench;
  EXPECT_EQ(bench.acquire_all(), 16U);
  for (int i = 0; i < 5; ++i) bench.fail();
  bench.fail(20s);
  EXPECT_GE(bench.breaker.next_probe() - bench.now, 20s);
}

TEST(Breaker, AnAbandonedProbeMakesRoomForTheNextAtOnce) {
  Fixture bench;
  bench.open();
  bench.go_to_probe();
  ASSERT_TRUE(bench.acquire());
  bench.breaker.abandoned(bench.take(), bench.now);
  EXPECT_EQ(bench.breaker.state(), State::open);
  EXPECT_TRUE(bench.acquire());
  EXPECT_EQ(bench.breaker.state(), State::probing);
}

TEST(Breaker, AnAbandonedAttemptIsNoFailure) {
  Fixture bench;
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(bench.acquire());
    bench.breaker.abandoned(bench.take(), bench.now);
  }
  EXPECT_EQ(bench.breaker.state(), State::closed);
  EXPECT_EQ(bench.breaker.in_flight(), 0U);
}

TEST(Breaker, RefusalsInARowOpenIt) {
  Fixture bench;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 4; ++i) {
      ASSERT_TRUE(bench.acquire());
      bench.breaker.refused(bench.take(), bench.now);
    }
    EXPECT_EQ(bench.breaker.state(), State::closed);
    EXPECT_EQ(bench.breaker.permitted(), 16U) << "the peer answers";
    ASSERT_TRUE(bench.acquire());
    bench.succeed();
  }
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(bench.acquire());
    bench.breaker.refused(bench.take(), bench.now, 10s);
  }
  EXPECT_EQ(bench.breaker.state(), State::open);
  EXPECT_GE(bench.breaker.next_probe() - bench.now, 10s);
  bench.go_to_probe();
  ASSERT_TRUE(bench.acquire());
  bench.breaker.refused(bench.take(), bench.now);
  EXPECT_EQ(bench.breaker.state(), State::open) << "a refused probe";
}

TEST(Breaker, APauseCanBeEnded) {
  Fixture bench;
  ASSERT_TRUE(bench.acquire());
  bench.fail(4min);
  bench.now += 1s;
  EXPECT_FALSE(bench.acquire());
  bench.breaker.end_pause(bench.now);
  EXPECT_TRUE(bench.acquire());
}

// Whatever happened before: bounded, in order, and open again for a peer that is well.
TEST(Breaker, HoldsItsPromisesAfterAnyHistory) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    std::mt19937_64 random(seed);
    const auto roll = [&](std::uint64_t sides) { return random() % sides; };
    const Breaker::Options options{.failures = static_cast<unsigned>(1 + roll(6)),
                                   .max_permits = 1 + roll(20)};
    Fixture bench(options, seed);
    auto& breaker = bench.breaker;
    std::uint64_t badness = roll(101);  // of the peer, in percent
    for (int step = 0; step < 1500; ++step) {
      if (roll(100) == 0) badness = roll(101);
      if (roll(4) == 0) bench.now += milliseconds(roll(3000));
      if (roll(50) == 0) breaker.end_pause(bench.now);
      const auto before = breaker.state();
      const auto due = breaker.next_probe();
      if (roll(2) == 0) {
        const bool got = bench.acquire();
        if (before == State::probing) ASSERT_FALSE(got) << "a second probe";
        if (before == State::open) {
          ASSERT_EQ(got, bench.now >= due);
          ASSERT_EQ(got, breaker.state() == State::probing);
        }
      } else if (!bench.out.empty()) {
        std::swap(bench.out.front(), bench.out[roll(bench.out.size())]);
        if (roll(20) == 0) {
          breaker.abandoned(bench.take(), bench.now);
        } else if (roll(100) < badness) {
          bench.fail(roll(10) == 0 ? milliseconds(roll(1'000'000)) : 0ms);
        } else {
          bench.succeed();
        }
      }
      ASSERT_EQ(breaker.in_flight(), bench.out.size());
      ASSERT_LE(breaker.in_flight(), options.max_permits);
      ASSERT_LE(breaker.permitted(), options.max_permits);
      if (breaker.state() == State::closed) ASSERT_GE(breaker.permitted(), 1U);
      if (breaker.state() == State::open)
        ASSERT_LE(breaker.next_probe() - bench.now, 5min + 30s) << "stuck";
    }
    // The peer gets well.
    while (!bench.out.empty()) bench.succeed();
    std::size_t round_trips = 0;
    while (breaker.permitted() < options.max_permits || breaker.state() != State::closed) {
      ASSERT_LT(++round_trips, 100U) << "never recovers, seed " << seed;
      if (breaker.state() == State::open) bench.go_to_probe();
      bench.acquire_all();
      while (!bench.out.empty()) bench.succeed();
    }
    ASSERT_EQ(bench.acquire_all(), options.max_permits);
  }
}

}  // namespace
}  // namespace gitops::reporter
