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
  const auto town = settled(4);
  const auto claims = town->claims.size();
  const auto requests = town->requests;
  town->run_for(100s);
  EXPECT_EQ(town->claims.size(), claims);
  EXPECT_EQ(claims, 4U);
  EXPECT_NEAR(static_cast<double>(town->requests - requests), 4 * 100, 20)
      << "each renews and looks every two seconds";
}

TEST(FailoverSteps, TakesOverFromTheDeadWithinFifteenSeconds) {
  Seconds longest{0};
  int neighbours = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const auto town = settled(3, seed);
    const auto shard = town->rand(3);
    town->kill(shard);
    const auto took = town->run_until_true([&] { return town->holder(shard).has_value(); }, 20s);
    longest = std::max(longest, took);
    if (town->holder(shard) == (shard + 2) % 3) ++neighbours;
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
    const auto town = settled(3, seed);
    town->kill(2);
    town->kill(1);
    const auto took = town->run_until_true([&] { return town->holder(1) || town->holder(2); }, 20s);
    longest = std::max(longest, took);
    town->run_for(10s);
    ASSERT_EQ(town->pods.at(0)->held.size(), 2U) << "its own and one more";
  }
  EXPECT_LT(longest, 15s);
}

TEST(FailoverSteps, HandsBackWhenTheOwnerReturns) {
  Seconds longest{0};
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto town = settled(3, seed);
    town->kill(1);
    town->run_for(13s + town->rand_time(2s));
    ASSERT_TRUE(town->holder(1));
    town->start(1);
    longest = std::max(longest, town->run_until_true([&] { return town->holder(1) == 1; }, 20s));
    town->run_for(12s);
    EXPECT_TRUE(town->all_home());
    EXPECT_EQ(town->claims.size(), 5U) << "three at first, one dead, one back";
    const Json& lease = town->server.leases.at("shard-1");
    EXPECT_EQ(lease["metadata"].value("annotations", Json::object()), Json::object());
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  RecordProperty("longest_seconds", std::to_string(longest.count()));
  EXPECT_LT(longest, 5s);
}

TEST(FailoverSteps, KeepsTheLeaseWhileWorkEndsButNotForEver) {
  const auto town = settled(2);
  town->kill(1);
  town->run_for(30s);
  town->pods.at(0)->busy = true;
  town->start(1);
  town->run_until_true([&] { return !town->holder(1); }, 5s);
  const auto released = town->now;
  EXPECT_EQ(town->server.holder(1), "pod-0") << "no report begins, the Lease is still there";
  town->run_until_true([&] { return town->server.holder(1) != "pod-0"; }, 10s);
  EXPECT_GT(town->now - released, 3s);
  EXPECT_LE(town->now - released, 5s + 100ms);
  town->run_until_true([&] { return town->holder(1) == 1; }, 5s);
}

TEST(FailoverSteps, AnOrderlyRestartDoesNotMoveAShard) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const auto town = settled(3, seed);
    town->stop(1);
    EXPECT_EQ(town->server.holder(1), "");
    town->run_for(7s);
    EXPECT_FALSE(town->holder(1));
    town->start(1);
    town->run_for(20s);
    EXPECT_TRUE(town->all_home());
    EXPECT_EQ(town->claims.size(), 4U);
    EXPECT_EQ(town->claims.back().transitions, 1) << "nobody in between";
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

TEST(FailoverSteps, TakesWhatStaysFreeOrMissing) {
  const auto town = settled(2);
  town->stop(1);
  EXPECT_LT(town->run_until_true([&] { return town->holder(1) == 0; }, 15s), 11s);

  FailoverFixture begin(3);
  begin.start(0);
  EXPECT_GT(begin.run_until_true([&] { return begin.holder(1) == 0; }, 15s), 8s);
  EXPECT_FALSE(begin.server.leases.contains("shard-2")) << "one at a time";
}

TEST(FailoverSteps, StandsInForOneAtATime) {
  const auto town = settled(5);
  town->kill(1);
  town->kill(2);
  town->kill(3);
  town->run_for(60s);
  EXPECT_EQ(town->pods.at(0)->held.size(), 2U);
  EXPECT_EQ(town->pods.at(4)->held.size(), 2U);
  town->start(1);
  town->start(2);
  town->start(3);
  town->run_for(30s);
  EXPECT_TRUE(town->all_home());
}

TEST(FailoverSteps, AnApiServerThatWasAwayMovesNothing) {
  for (std::uint64_t seed = 0; seed < 15; ++seed) {
    const auto town = settled(3, seed);
    town->away = true;
    town->run_for(6s + 100ms);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_FALSE(town->holder(i)) << "renewal is overdue";
    town->run_for(town->rand_time(30s));
    town->away = false;
    town->run_for(15s);
    EXPECT_TRUE(town->all_home());
    EXPECT_EQ(town->claims.size(), 6U) << "each its own, twice";
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

TEST(FailoverSteps, ACutOffOwnerStopsBeforeAnotherStarts) {
  const auto town = settled(3);
  town->pods.at(1)->cut_off = true;
  town->run_for(30s);  // look() checks that there are never two
  EXPECT_TRUE(town->holder(1));
  EXPECT_NE(town->holder(1), 1U);
  town->pods.at(1)->cut_off = false;
  town->run_for(30s);
  EXPECT_TRUE(town->all_home());
}

TEST(FailoverSteps, ASuspendedHolderHoldsNothingWhenItWakes) {
  const auto town = settled(3);
  town->kill(1);
  town->run_for(30s);
  const auto first = town->holder(1);
  ASSERT_TRUE(first);
  town->pods.at(*first)->suspended = true;
  town->run_for(30s);
  EXPECT_NE(town->holder(1), first);
  EXPECT_TRUE(town->pods.at(*first)->held.empty());
  town->pods.at(*first)->suspended = false;
  town->start(1);
  town->run_for(40s);
  EXPECT_TRUE(town->all_home());
}

TEST(FailoverSteps, TheNextProcessOfAHoldersPodGoesOn) {
  const auto town = settled(2);
  town->kill(1);
  town->run_for(30s);
  town->kill(0);
  town->start(0);
  EXPECT_LT(town->run_until_true([&] { return town->holder(1) == 0; }, 10s), 1s);
  EXPECT_EQ(town->server.leases.at("shard-1")["spec"]["leaseTransitions"], 1);
}

// Everything at once: kills, restarts, cuts, suspensions, lost answers.
TEST(FailoverSteps, NeverHoldsWhatAnotherHolds) {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    FailoverFixture town(4, seed);
    town.start_all();
    town.latency = 1500ms;
    town.lost_answers = 5;
    for (int i = 0; i < 50; ++i) {
      const auto shard = town.rand(4);
      const auto found = town.pods.find(shard);
      switch (town.rand(6)) {
        case 0:
          if (found != town.pods.end()) town.kill(shard);
          break;
        case 1:
        case 2:
          if (found == town.pods.end()) town.start(shard);
          break;
        case 3:
          if (found != town.pods.end()) found->second->cut_off ^= true;
          break;
        case 4:
          if (found != town.pods.end()) found->second->suspended ^= true;
          break;
        default:
          town.away ^= true;
      }
      town.run_for(town.rand_time(8s));
      ASSERT_FALSE(HasFailure()) << "seed " << seed;
    }
    town.away = false;
    town.latency = 50ms;
    town.lost_answers = 0;
    for (std::size_t shard = 0; shard < 4; ++shard) {
      if (!town.pods.contains(shard)) town.start(shard);
      town.pods.at(shard)->cut_off = town.pods.at(shard)->suspended = false;
    }
    town.run_for(40s);
    EXPECT_TRUE(town.all_home()) << "seed " << seed;
  }
}

// Wrong types, absurd values: what a hand can write on a Lease of a double, and mostly on a real
// one.
TEST(FailoverSteps, ListsByLabelOnceAllLeasesHaveIt) {
  const auto town = settled(3);
  for (std::size_t shard = 0; shard < 3; ++shard) {
    EXPECT_TRUE(town->server.is_labelled(lease_name(shard)));
  }
  const auto whole = town->whole_lists;
  EXPECT_LE(whole, 6U);
  town->run_for(100s);
  EXPECT_EQ(town->whole_lists, whole);
  EXPECT_TRUE(town->all_home());
}

// The pods of a StatefulSet are replaced one by one, from the last to the first.
TEST(FailoverSteps, AnUpgradeFromLeasesWithoutLabelsMovesNothing) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto town = settled(3, seed, {});
    for (const std::size_t shard : {2U, 1U, 0U}) {
      town->stop(shard);
      town->run_for(1s + town->rand_time(3s));
      town->start(shard);
      town->run_for(6s + town->rand_time(2s));
      ASSERT_TRUE(town->all_home()) << "seed " << seed;
      for (std::size_t other = 0; other < 3; ++other) {
        EXPECT_TRUE(town->server.is_labelled(lease_name(other))) << "by the first new pod";
      }
    }
    EXPECT_EQ(town->claims.size(), 6U) << "three at first, three restarts";
    const auto whole = town->whole_lists;
    town->run_for(30s);
    EXPECT_EQ(town->whole_lists, whole);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

TEST(FailoverSteps, StandsInForAnOwnerWhoseLeaseHasNoLabels) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    // Made by an earlier version, after everybody has begun to list by label.
    const auto town = settled(3, seed);
    town->stop(1);
    town->server.leases.erase(lease_name(1));
    town->start(1, {});
    town->run_for(8s);
    ASSERT_TRUE(town->all_home()) << "seed " << seed;
    town->kill(1);
    town->run_until_true([&] { return town->holder(1).has_value(); }, 25s);
    EXPECT_TRUE(town->server.is_labelled(lease_name(1)));
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

TEST(FailoverSteps, LabelsThatWereTakenAwayComeBack) {
  for (const bool dead : {false, true}) {
    const auto town = settled(2);
    if (dead) {
      town->kill(1);
      town->run_for(30s);
    }
    town->server.edit(lease_name(1), [](Json& lease) { lease["metadata"].erase("labels"); });
    town->run_for(30s);
    EXPECT_EQ(town->holder(1), dead ? 0U : 1U);
    EXPECT_TRUE(town->server.is_labelled(lease_name(1)));
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
      const auto town = settled(2, i);
      if (dead) {
        town->kill(1);
        town->run_for(13s);
      }
      town->server.edit("shard-1", damages[i]);
      const auto requests = town->requests;
      town->run_for(20s);
      EXPECT_EQ(town->holder(1), dead ? 0U : 1U) << "damage " << i;
      EXPECT_LT(town->requests - requests, 60U) << "damage " << i;
      // The owner dies in spite of the damage, and returns.
      if (!dead) town->kill(1);
      town->server.edit("shard-1", damages[i]);
      town->run_for(3s);  // a holder needs a look to see that it holds nothing any more
      town->run_until_true([&] { return town->holder(1) == 0; }, 95s);
      town->start(1);
      town->run_for(9s);
      EXPECT_TRUE(town->all_home()) << "damage " << i;
      const Json& spec = town->server.leases.at("shard-1")["spec"];
      EXPECT_EQ(spec["leaseDurationSeconds"], 8);
      EXPECT_TRUE(spec["leaseTransitions"].is_number_integer() && spec["leaseTransitions"] >= 0 &&
                  spec["leaseTransitions"] <= 2147483647)
          << spec;
    }
  }
}

TEST(FailoverSteps, AC24_ADeletedLeaseIsRecreated) {
  for (const bool dead : {false, true}) {
    const auto town = settled(2);
    if (dead) {
      town->kill(1);
      town->run_for(30s);
    }
    town->server.leases.erase("shard-1");
    town->run_for(30s);
    EXPECT_EQ(town->holder(1), dead ? 0U : 1U);
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
