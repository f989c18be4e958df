// The take-over of shards as a simulation without sockets: pods of a StatefulSet, an API server that
// has nothing but Leases, and a random order of requests, delays, losses, crashes and skewed clocks.
#include "event-reporter/shards/failover.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "event-reporter/shards/failover_fixture.hpp"

namespace gitops::reporter {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;

TEST(FailoverSteps, NobodyMovesWhileTheOwnersAreWell) {
  const auto fixture = settled(4);
  const auto claims = fixture->claims.size();
  const auto requests = fixture->requests;
  fixture->run_for(100s);
  EXPECT_EQ(fixture->claims.size(), claims);
  EXPECT_EQ(claims, 4U);
  EXPECT_NEAR(static_cast<double>(fixture->requests - requests), 4 * 100, 20)
      << "each renews and looks every two seconds";
}

TEST(FailoverSteps, TakesOverFromTheDeadWithinFifteenSeconds) {
  Seconds longest{0};
  int neighbours = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const auto fixture = settled(3, seed);
    const auto shard = fixture->rand(3);
    fixture->kill(shard);
    const auto took =
        fixture->run_until_true([&] { return fixture->holder(shard).has_value(); }, 20s);
    longest = std::max(longest, took);
    if (fixture->holder(shard) == (shard + 2) % 3) ++neighbours;
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  RecordProperty("longest_seconds", std::to_string(longest.count()));
  RecordProperty("by_the_next_neighbour_of_60", neighbours);
  EXPECT_LT(longest, 12s) << "8 s since the last renewal was seen, at most 2 s after it was made";
  EXPECT_GT(neighbours, 40);
}

TEST(FailoverSteps, TheOneAfterTheNextTakesOverFromTwo) {
  Seconds longest{0};
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto fixture = settled(3, seed);
    fixture->kill(2);
    fixture->kill(1);
    const auto took =
        fixture->run_until_true([&] { return fixture->holder(1) || fixture->holder(2); }, 20s);
    longest = std::max(longest, took);
    fixture->run_for(10s);
    ASSERT_EQ(fixture->pods.at(0)->held.size(), 2U) << "its own and one more";
  }
  EXPECT_LT(longest, 15s);
}

TEST(FailoverSteps, HandsBackWhenTheOwnerReturns) {
  Seconds longest{0};
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto fixture = settled(3, seed);
    fixture->kill(1);
    fixture->run_for(13s + fixture->rand_time(2s));
    ASSERT_TRUE(fixture->holder(1));
    fixture->start(1);
    longest =
        std::max(longest, fixture->run_until_true([&] { return fixture->holder(1) == 1; }, 20s));
    fixture->run_for(12s);
    EXPECT_TRUE(fixture->all_home());
    EXPECT_EQ(fixture->claims.size(), 5U) << "three at first, one dead, one back";
    const Json& lease = fixture->server.leases.at("shard-1");
    EXPECT_EQ(lease["metadata"].value("annotations", Json::object()), Json::object());
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  RecordProperty("longest_seconds", std::to_string(longest.count()));
  EXPECT_LT(longest, 5s);
}

TEST(FailoverSteps, KeepsTheLeaseWhileWorkEndsButNotForEver) {
  const auto fixture = settled(2);
  fixture->kill(1);
  fixture->run_for(30s);
  fixture->pods.at(0)->busy = true;
  fixture->start(1);
  fixture->run_until_true([&] { return !fixture->holder(1); }, 5s);
  const auto released = fixture->now;
  EXPECT_EQ(fixture->server.holder(1), "pod-0") << "no report begins, the Lease is still there";
  fixture->run_until_true([&] { return fixture->server.holder(1) != "pod-0"; }, 10s);
  EXPECT_GT(fixture->now - released, 3s);
  EXPECT_LE(fixture->now - released, 5s + 100ms);
  fixture->run_until_true([&] { return fixture->holder(1) == 1; }, 5s);
}

TEST(FailoverSteps, AnOrderlyRestartDoesNotMoveAShard) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const auto fixture = settled(3, seed);
    fixture->stop(1);
    EXPECT_EQ(fixture->server.holder(1), "");
    fixture->run_for(7s);
    EXPECT_FALSE(fixture->holder(1));
    fixture->start(1);
    fixture->run_for(20s);
    EXPECT_TRUE(fixture->all_home());
    EXPECT_EQ(fixture->claims.size(), 4U);
    EXPECT_EQ(fixture->claims.back().transitions, 1) << "nobody in between";
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

TEST(FailoverSteps, TakesWhatStaysFreeOrMissing) {
  const auto fixture = settled(2);
  fixture->stop(1);
  EXPECT_LT(fixture->run_until_true([&] { return fixture->holder(1) == 0; }, 15s), 11s);

  FailoverFixture begin(3);
  begin.start(0);
  EXPECT_GT(begin.run_until_true([&] { return begin.holder(1) == 0; }, 15s), 8s);
  EXPECT_FALSE(begin.server.leases.contains("shard-2")) << "one at a time";
}

TEST(FailoverSteps, StandsInForOneAtATime) {
  const auto fixture = settled(5);
  fixture->kill(1);
  fixture->kill(2);
  fixture->kill(3);
  fixture->run_for(60s);
  EXPECT_EQ(fixture->pods.at(0)->held.size(), 2U);
  EXPECT_EQ(fixture->pods.at(4)->held.size(), 2U);
  fixture->start(1);
  fixture->start(2);
  fixture->start(3);
  fixture->run_for(30s);
  EXPECT_TRUE(fixture->all_home());
}

TEST(FailoverSteps, AnApiServerThatWasAwayMovesNothing) {
  for (std::uint64_t seed = 0; seed < 15; ++seed) {
    const auto fixture = settled(3, seed);
    fixture->away = true;
    fixture->run_for(6s + 100ms);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_FALSE(fixture->holder(i)) << "renewal is overdue";
    fixture->run_for(fixture->rand_time(30s));
    fixture->away = false;
    fixture->run_for(15s);
    EXPECT_TRUE(fixture->all_home());
    EXPECT_EQ(fixture->claims.size(), 6U) << "each its own, twice";
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

TEST(FailoverSteps, ACutOffOwnerStopsBeforeAnotherStarts) {
  const auto fixture = settled(3);
  fixture->pods.at(1)->cut_off = true;
  fixture->run_for(30s);  // look() checks that there are never two
  EXPECT_TRUE(fixture->holder(1));
  EXPECT_NE(fixture->holder(1), 1U);
  fixture->pods.at(1)->cut_off = false;
  fixture->run_for(30s);
  EXPECT_TRUE(fixture->all_home());
}

TEST(FailoverSteps, ASuspendedHolderHoldsNothingWhenItWakes) {
  const auto fixture = settled(3);
  fixture->kill(1);
  fixture->run_for(30s);
  const auto first = fixture->holder(1);
  ASSERT_TRUE(first);
  fixture->pods.at(*first)->suspended = true;
  fixture->run_for(30s);
  EXPECT_NE(fixture->holder(1), first);
  EXPECT_TRUE(fixture->pods.at(*first)->held.empty());
  fixture->pods.at(*first)->suspended = false;
  fixture->start(1);
  fixture->run_for(40s);
  EXPECT_TRUE(fixture->all_home());
}

TEST(FailoverSteps, TheNextProcessOfAHoldersPodGoesOn) {
  const auto fixture = settled(2);
  fixture->kill(1);
  fixture->run_for(30s);
  fixture->kill(0);
  fixture->start(0);
  EXPECT_LT(fixture->run_until_true([&] { return fixture->holder(1) == 0; }, 10s), 1s);
  EXPECT_EQ(fixture->server.leases.at("shard-1")["spec"]["leaseTransitions"], 1);
}

// Everything at once: kills, restarts, cuts, suspensions, lost answers.
TEST(FailoverSteps, NeverHoldsWhatAnotherHolds) {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    FailoverFixture fixture(4, seed);
    fixture.start_all();
    fixture.latency = 1500ms;
    fixture.lost_answers = 5;
    for (int i = 0; i < 50; ++i) {
      const auto shard = fixture.rand(4);
      const auto found = fixture.pods.find(shard);
      switch (fixture.rand(6)) {
        case 0:
          if (found != fixture.pods.end()) fixture.kill(shard);
          break;
        case 1:
        case 2:
          if (found == fixture.pods.end()) fixture.start(shard);
          break;
        case 3:
          if (found != fixture.pods.end()) found->second->cut_off ^= true;
          break;
        case 4:
          if (found != fixture.pods.end()) found->second->suspended ^= true;
          break;
        default:
          fixture.away ^= true;
      }
      fixture.run_for(fixture.rand_time(8s));
      ASSERT_FALSE(HasFailure()) << "seed " << seed;
    }
    fixture.away = false;
    fixture.latency = 50ms;
    fixture.lost_answers = 0;
    for (std::size_t shard = 0; shard < 4; ++shard) {
      if (!fixture.pods.contains(shard)) fixture.start(shard);
      fixture.pods.at(shard)->cut_off = fixture.pods.at(shard)->suspended = false;
    }
    fixture.run_for(40s);
    EXPECT_TRUE(fixture.all_home()) << "seed " << seed;
  }
}

// Wrong types, absurd values: what a hand can write on a Lease of a double, and mostly on a real
// one.
TEST(FailoverSteps, ListsByLabelOnceAllLeasesHaveIt) {
  const auto fixture = settled(3);
  for (std::size_t shard = 0; shard < 3; ++shard) {
    EXPECT_TRUE(fixture->server.is_labelled(lease_name(shard)));
  }
  const auto whole = fixture->whole_lists;
  EXPECT_LE(whole, 6U);
  fixture->run_for(100s);
  EXPECT_EQ(fixture->whole_lists, whole);
  EXPECT_TRUE(fixture->all_home());
}

// The pods of a StatefulSet are replaced one by one, from the last to the first.
TEST(FailoverSteps, AnUpgradeFromLeasesWithoutLabelsMovesNothing) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto fixture = settled(3, seed, {});
    for (const std::size_t shard : {2U, 1U, 0U}) {
      fixture->stop(shard);
      fixture->run_for(1s + fixture->rand_time(3s));
      fixture->start(shard);
      fixture->run_for(6s + fixture->rand_time(2s));
      ASSERT_TRUE(fixture->all_home()) << "seed " << seed;
      for (std::size_t other = 0; other < 3; ++other) {
        EXPECT_TRUE(fixture->server.is_labelled(lease_name(other))) << "by the first new pod";
      }
    }
    EXPECT_EQ(fixture->claims.size(), 6U) << "three at first, three restarts";
    const auto whole = fixture->whole_lists;
    fixture->run_for(30s);
    EXPECT_EQ(fixture->whole_lists, whole);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

TEST(FailoverSteps, StandsInForAnOwnerWhoseLeaseHasNoLabels) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    // Made by an earlier version, after everybody has begun to list by label.
    const auto fixture = settled(3, seed);
    fixture->stop(1);
    fixture->server.leases.erase(lease_name(1));
    fixture->start(1, {});
    fixture->run_for(8s);
    ASSERT_TRUE(fixture->all_home()) << "seed " << seed;
    fixture->kill(1);
    fixture->run_until_true([&] { return fixture->holder(1).has_value(); }, 25s);
    EXPECT_TRUE(fixture->server.is_labelled(lease_name(1)));
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

TEST(FailoverSteps, LabelsThatWereTakenAwayComeBack) {
  for (const bool dead : {false, true}) {
    const auto fixture = settled(2);
    if (dead) {
      fixture->kill(1);
      fixture->run_for(30s);
    }
    fixture->server.edit(lease_name(1), [](Json& lease) { lease["metadata"].erase("labels"); });
    fixture->run_for(30s);
    EXPECT_EQ(fixture->holder(1), dead ? 0U : 1U);
    EXPECT_TRUE(fixture->server.is_labelled(lease_name(1)));
  }
}

TEST(FailoverSteps, AC24_ADamagedLeaseHealsAndCostsNothing) {
  const std::vector<std::function<void(Json&)>> damages = {
      [](Json& lease) { lease["spec"] = 5; },
      [](Json& lease) { lease["spec"] = Json::object(); },
      [](Json& lease) { lease.erase("spec"); },
      [](Json& lease) { lease["spec"]["holderIdentity"] = Json::array({1}); },
      [](Json& lease) { lease["spec"]["holderIdentity"] = nullptr; },
      [](Json& lease) { lease["spec"]["leaseDurationSeconds"] = "soon"; },
      [](Json& lease) { lease["spec"]["leaseDurationSeconds"] = -1; },
      [](Json& lease) { lease["spec"]["leaseDurationSeconds"] = 0; },
      [](Json& lease) { lease["spec"]["leaseDurationSeconds"] = 2147483647; },
      [](Json& lease) { lease["spec"]["leaseDurationSeconds"] = 1e300; },
      [](Json& lease) { lease["spec"]["leaseDurationSeconds"] = ~std::uint64_t{0}; },
      [](Json& lease) { lease["spec"]["leaseTransitions"] = 2147483647; },
      [](Json& lease) { lease["spec"]["leaseTransitions"] = -7; },
      [](Json& lease) { lease["spec"]["leaseTransitions"] = 9.5; },
      [](Json& lease) { lease["spec"]["renewTime"] = 12; },
      [](Json& lease) { lease["spec"]["acquireTime"] = "yesterday"; },
      [](Json& lease) { lease["metadata"]["annotations"] = "none"; },
      [](Json& lease) { lease["metadata"]["labels"] = 5; },
      [](Json& lease) { lease["metadata"]["annotations"] = {{kWantedBy, 5}}; },
      [](Json& lease) { lease["metadata"]["annotations"] = {{kWantedBy, "nobody"}}; },
      [](Json& lease) { lease["metadata"]["annotations"] = {{kWantedBy, "pod-0"}}; },
  };
  for (std::size_t i = 0; i < damages.size(); ++i) {
    // Held by its owner, and by a stand-in.
    for (const bool dead : {false, true}) {
      const auto fixture = settled(2, i);
      if (dead) {
        fixture->kill(1);
        fixture->run_for(13s);
      }
      fixture->server.edit("shard-1", damages[i]);
      const auto requests = fixture->requests;
      fixture->run_for(20s);
      EXPECT_EQ(fixture->holder(1), dead ? 0U : 1U) << "damage " << i;
      EXPECT_LT(fixture->requests - requests, 60U) << "damage " << i;
      // The owner dies in spite of the damage, and returns.
      if (!dead) fixture->kill(1);
      fixture->server.edit("shard-1", damages[i]);
      fixture->run_for(3s);  // a holder needs a look to see that it holds nothing any more
      fixture->run_until_true([&] { return fixture->holder(1) == 0; }, 95s);
      fixture->start(1);
      fixture->run_for(9s);
      EXPECT_TRUE(fixture->all_home()) << "damage " << i;
      const Json& spec = fixture->server.leases.at("shard-1")["spec"];
      EXPECT_EQ(spec["leaseDurationSeconds"], 8);
      EXPECT_TRUE(spec["leaseTransitions"].is_number_integer() && spec["leaseTransitions"] >= 0 &&
                  spec["leaseTransitions"] <= 2147483647)
          << spec;
    }
  }
}

TEST(FailoverSteps, AC24_ADeletedLeaseIsRecreated) {
  for (const bool dead : {false, true}) {
    const auto fixture = settled(2);
    if (dead) {
      fixture->kill(1);
      fixture->run_for(30s);
    }
    fixture->server.leases.erase("shard-1");
    fixture->run_for(30s);
    EXPECT_EQ(fixture->holder(1), dead ? 0U : 1U);
  }
}

TEST(FailoverSteps, AC24_ListsThatAreNoneChangeNothing) {
  FailoverSteps steps({.ns = "ns", .leases = {{"a"}, {"b"}}, .identity = "me"});
  Clock::time_point now;
  std::size_t writes = 0;
  const char* texts[] = {"", "5", "[]", "{}", R"({"items":{}})", R"({"items":"x"})"};
  for (int i = 0; i < 200; ++i) {
    const auto action = steps.next(now, kWall);
    if (action.kind == FailoverSteps::Action::Kind::wait) {
      ASSERT_GT(action.until, now);
      now = action.until;
    } else if (action.kind == FailoverSteps::Action::Kind::list) {
      steps.on_list(std::string(texts[i % 6]), now);
    } else {
      ++writes;
    }
  }
  EXPECT_EQ(writes, 0U);
  EXPECT_GT(now, Clock::time_point(60s));
}

TEST(FailoverSteps, AC24_ItemsThatAreNoLeasesDoNotHideTheOthers) {
  FailoverSteps steps({.ns = "ns", .leases = {{"a"}}, .identity = "me"});
  ASSERT_EQ(steps.next({}, kWall).kind, FailoverSteps::Action::Kind::list);
  steps.on_list(std::string(R"({"items":[5,null,{},{"metadata":7},{"metadata":{"name":[]}},
      {"metadata":{"name":"a","uid":"u"},"spec":{"holderIdentity":"x","leaseTransitions":3}}]})"),
                {});
  EXPECT_EQ(steps.lease(0).record().holder, "x");
  EXPECT_EQ(steps.lease(0).record().transitions, 3);
  EXPECT_EQ(steps.lease(0).uid(), "u");
}

}  // namespace
}  // namespace gitops::reporter
