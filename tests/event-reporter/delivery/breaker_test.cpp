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
  Fixture fixture;
  EXPECT_EQ(fixture.breaker.state(), State::closed);
  EXPECT_TRUE(fixture.breaker.lets_through(fixture.now));
  EXPECT_EQ(fixture.acquire_all(), 16U);
  EXPECT_EQ(fixture.breaker.in_flight(), 16U);
  fixture.succeed();
  EXPECT_EQ(fixture.acquire_all(), 1U);
}

TEST(Breaker, OpensAfterFailuresInARow) {
  Fixture fixture;
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(fixture.acquire());
    fixture.fail();
  }
  ASSERT_TRUE(fixture.acquire());
  fixture.succeed();  // the row begins over
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(fixture.acquire());
    fixture.fail();
    EXPECT_EQ(fixture.breaker.state(), State::closed);
  }
  ASSERT_TRUE(fixture.acquire());
  fixture.fail();
  EXPECT_EQ(fixture.breaker.state(), State::open);
  EXPECT_EQ(fixture.breaker.permitted(), 0U);
}

TEST(Breaker, LetsOneProbeThroughWhenThePauseIsOver) {
  Fixture fixture;
  fixture.open();
  fixture.now = fixture.breaker.next_probe() - 1ns;
  EXPECT_FALSE(fixture.breaker.lets_through(fixture.now));
  EXPECT_FALSE(fixture.acquire());
  fixture.now += 1ns;
  EXPECT_TRUE(fixture.breaker.lets_through(fixture.now));
  EXPECT_EQ(fixture.acquire_all(), 1U);
  EXPECT_EQ(fixture.breaker.state(), State::probing);
  EXPECT_FALSE(fixture.breaker.lets_through(fixture.now + 24h));
  EXPECT_EQ(fixture.breaker.permitted(), 1U);
}

TEST(Breaker, PausesGrowAndAreSpread) {
  std::vector<milliseconds> firsts;
  std::mt19937_64 seeds(1);
  for (int i = 0; i < 200; ++i) {
    Fixture fixture({}, seeds());
    fixture.open();
    milliseconds cap = 200ms;
    for (int probe = 0; probe < 12; ++probe) {
      const auto pause = fixture.breaker.next_probe() - fixture.now;
      EXPECT_GE(pause, 0ms);
      EXPECT_LE(pause, cap);
      if (probe == 0) firsts.push_back(std::chrono::duration_cast<milliseconds>(pause));
      cap = std::min<milliseconds>(cap * 2, 30s);
      fixture.go_to_probe();
      ASSERT_TRUE(fixture.acquire());
      fixture.fail();
    }
  }
  // Full jitter: many daemons do not come back together.
  EXPECT_GT(std::ranges::count_if(firsts, [](auto pause) { return pause < 100ms; }), 60);
  EXPECT_GT(std::ranges::count_if(firsts, [](auto pause) { return pause > 100ms; }), 60);
}

TEST(Breaker, PausesBeginShortAgainAfterASuccess) {
  Fixture fixture;
  fixture.open();
  for (int probe = 0; probe < 20; ++probe) {
    fixture.go_to_probe();
    ASSERT_TRUE(fixture.acquire());
    fixture.fail();
  }
  fixture.close();
  fixture.open();
  EXPECT_LE(fixture.breaker.next_probe() - fixture.now, 200ms);
}

TEST(Breaker, HonoursAnAskedPauseAtOnce) {
  Fixture fixture;
  ASSERT_TRUE(fixture.acquire());
  fixture.fail(7s);
  EXPECT_EQ(fixture.breaker.state(), State::open);
  EXPECT_GE(fixture.breaker.next_probe() - fixture.now, 7s);
  EXPECT_LE(fixture.breaker.next_probe() - fixture.now, 7700ms);
}

TEST(Breaker, CapsAnAskedPause) {
  for (const milliseconds asked : {milliseconds(6min), milliseconds(24h), milliseconds::max()}) {
    Fixture fixture;
    ASSERT_TRUE(fixture.acquire());
    fixture.fail(asked);
    EXPECT_GE(fixture.breaker.next_probe() - fixture.now, 5min);
    EXPECT_LE(fixture.breaker.next_probe() - fixture.now, 5min + 30s);
  }
}

TEST(Breaker, RampsUpFromOneAndAtMostDoublesInARoundTrip) {
  Fixture fixture({.max_permits = 20});
  fixture.open();
  fixture.close();
  std::vector<std::size_t> rounds;
  for (int round = 0; round < 6; ++round) {
    rounds.push_back(fixture.acquire_all());
    while (!fixture.out.empty()) fixture.succeed();
  }
  EXPECT_EQ(rounds, (std::vector<std::size_t>{1, 2, 4, 8, 16, 20}));
}

TEST(Breaker, AFailureOnTheWayUpHalvesTheRamp) {
  Fixture fixture;
  fixture.open();
  fixture.close();
  for (int i = 0; i < 9; ++i) {
    ASSERT_TRUE(fixture.acquire());
    fixture.succeed();
  }
  EXPECT_EQ(fixture.breaker.permitted(), 10U);
  ASSERT_TRUE(fixture.acquire());
  fixture.fail();
  EXPECT_EQ(fixture.breaker.permitted(), 5U);
  EXPECT_EQ(fixture.breaker.state(), State::closed);
}

TEST(Breaker, ASingleFailureAtFullSpeedCostsNothing) {
  Fixture fixture;
  ASSERT_TRUE(fixture.acquire());
  fixture.fail();
  EXPECT_EQ(fixture.breaker.permitted(), 16U);
}

TEST(Breaker, OutcomesFromBeforeItOpenedHaveNoSay) {
  Fixture fixture;
  EXPECT_EQ(fixture.acquire_all(), 16U);
  for (int i = 0; i < 5; ++i) fixture.fail();
  ASSERT_EQ(fixture.breaker.state(), State::open);
  const auto next = fixture.breaker.next_probe();
  fixture.succeed();
  fixture.fail();
  EXPECT_EQ(fixture.breaker.state(), State::open);
  EXPECT_EQ(fixture.breaker.next_probe(), next);
  fixture.go_to_probe();
  ASSERT_TRUE(fixture.acquire()) << "those that are still out do not hold up the probe";
  for (int i = 0; i < 9; ++i) fixture.fail();
  EXPECT_EQ(fixture.breaker.state(), State::probing);
  fixture.succeed();
  EXPECT_EQ(fixture.breaker.state(), State::closed);
  EXPECT_EQ(fixture.breaker.in_flight(), 0U);
}

TEST(Breaker, ALatePauseIsHonouredToo) {
  Fixture fixture;
  EXPECT_EQ(fixture.acquire_all(), 16U);
  for (int i = 0; i < 5; ++i) fixture.fail();
  fixture.fail(20s);
  EXPECT_GE(fixture.breaker.next_probe() - fixture.now, 20s);
}

TEST(Breaker, AnAbandonedProbeMakesRoomForTheNextAtOnce) {
  Fixture fixture;
  fixture.open();
  fixture.go_to_probe();
  ASSERT_TRUE(fixture.acquire());
  fixture.breaker.abandoned(fixture.take(), fixture.now);
  EXPECT_EQ(fixture.breaker.state(), State::open);
  EXPECT_TRUE(fixture.acquire());
  EXPECT_EQ(fixture.breaker.state(), State::probing);
}

TEST(Breaker, AnAbandonedAttemptIsNoFailure) {
  Fixture fixture;
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(fixture.acquire());
    fixture.breaker.abandoned(fixture.take(), fixture.now);
  }
  EXPECT_EQ(fixture.breaker.state(), State::closed);
  EXPECT_EQ(fixture.breaker.in_flight(), 0U);
}

TEST(Breaker, RefusalsInARowOpenIt) {
  Fixture fixture;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 4; ++i) {
      ASSERT_TRUE(fixture.acquire());
      fixture.breaker.refused(fixture.take(), fixture.now);
    }
    EXPECT_EQ(fixture.breaker.state(), State::closed);
    EXPECT_EQ(fixture.breaker.permitted(), 16U) << "the peer answers";
    ASSERT_TRUE(fixture.acquire());
    fixture.succeed();
  }
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(fixture.acquire());
    fixture.breaker.refused(fixture.take(), fixture.now, 10s);
  }
  EXPECT_EQ(fixture.breaker.state(), State::open);
  EXPECT_GE(fixture.breaker.next_probe() - fixture.now, 10s);
  fixture.go_to_probe();
  ASSERT_TRUE(fixture.acquire());
  fixture.breaker.refused(fixture.take(), fixture.now);
  EXPECT_EQ(fixture.breaker.state(), State::open) << "a refused probe";
}

TEST(Breaker, APauseCanBeEnded) {
  Fixture fixture;
  ASSERT_TRUE(fixture.acquire());
  fixture.fail(4min);
  fixture.now += 1s;
  EXPECT_FALSE(fixture.acquire());
  fixture.breaker.end_pause(fixture.now);
  EXPECT_TRUE(fixture.acquire());
}

// Whatever happened before: bounded, in order, and open again for a peer that is well.
TEST(Breaker, HoldsItsPromisesAfterAnyHistory) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    std::mt19937_64 random(seed);
    const auto roll = [&](std::uint64_t sides) { return random() % sides; };
    const Breaker::Options options{.failures = static_cast<unsigned>(1 + roll(6)),
                                   .max_permits = 1 + roll(20)};
    Fixture fixture(options, seed);
    auto& breaker = fixture.breaker;
    std::uint64_t badness = roll(101);  // of the peer, in percent
    for (int step = 0; step < 1500; ++step) {
      if (roll(100) == 0) badness = roll(101);
      if (roll(4) == 0) fixture.now += milliseconds(roll(3000));
      if (roll(50) == 0) breaker.end_pause(fixture.now);
      const auto before = breaker.state();
      const auto due = breaker.next_probe();
      if (roll(2) == 0) {
        const bool got = fixture.acquire();
        if (before == State::probing) ASSERT_FALSE(got) << "a second probe";
        if (before == State::open) {
          ASSERT_EQ(got, fixture.now >= due);
          ASSERT_EQ(got, breaker.state() == State::probing);
        }
      } else if (!fixture.out.empty()) {
        std::swap(fixture.out.front(), fixture.out[roll(fixture.out.size())]);
        if (roll(20) == 0) {
          breaker.abandoned(fixture.take(), fixture.now);
        } else if (roll(100) < badness) {
          fixture.fail(roll(10) == 0 ? milliseconds(roll(1'000'000)) : 0ms);
        } else {
          fixture.succeed();
        }
      }
      ASSERT_EQ(breaker.in_flight(), fixture.out.size());
      ASSERT_LE(breaker.in_flight(), options.max_permits);
      ASSERT_LE(breaker.permitted(), options.max_permits);
      if (breaker.state() == State::closed) ASSERT_GE(breaker.permitted(), 1U);
      if (breaker.state() == State::open)
        ASSERT_LE(breaker.next_probe() - fixture.now, 5min + 30s) << "stuck";
    }
    // The peer gets well.
    while (!fixture.out.empty()) fixture.succeed();
    std::size_t round_trips = 0;
    while (breaker.permitted() < options.max_permits || breaker.state() != State::closed) {
      ASSERT_LT(++round_trips, 100U) << "never recovers, seed " << seed;
      if (breaker.state() == State::open) fixture.go_to_probe();
      fixture.acquire_all();
      while (!fixture.out.empty()) fixture.succeed();
    }
    ASSERT_EQ(fixture.acquire_all(), options.max_permits);
  }
}

}  // namespace
}  // namespace gitops::reporter
