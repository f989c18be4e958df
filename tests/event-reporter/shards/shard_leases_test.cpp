// The Leases of shards with the double of an API server, in test time: who holds what while pods
// start, stop, die, lose their connection and change their number.
#include "event-reporter/shards/shard_leases.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "doubles/fake_kube_api.hpp"
#include "event-reporter/shards/shard_leases_fixture.hpp"
#include "support/log_capture.hpp"
#include "support/run_coro.hpp"
#include "support/status_page.hpp"
#include "support/tcp_relay.hpp"
#include "support/wait.hpp"

namespace gitops::reporter {
namespace {

using namespace std::chrono_literals;
using k8s::resources::kLeases;
using test::run_in_test_time;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

using Json = nlohmann::json;

TEST(ShardLeases, OneReplicaHasEverythingWithoutALease) {
  play(1, [](ShardLeasesFixture& fixture) -> Task<> {
    Pod& pod = *fixture.pods.at(0);
    EXPECT_THAT(pod.claimed, ElementsAre(0));
    EXPECT_THAT(pod.terms[0], ElementsAre(0));
    EXPECT_TRUE(pod.leases.holds(0));
    EXPECT_FALSE(pod.leases.holds(1));
    EXPECT_EQ(status_text(pod.leases.status()), "shards: all, no leases\n");
    EXPECT_EQ(pod.leases.status()[0].state, StatusState::ok);
    EXPECT_EQ(fixture.api.requests().size(), 1U) << "was there ever more than one?";
    EXPECT_EQ(fixture.layout(), Json());
    co_return;
  });
}

// Else the shards would stay where they are, whatever becomes of their replicas.
TEST(ShardLeases, AFailureEndsTheProgram) {
  struct Broken final : ShardObserver {
    void claimed(std::uint32_t /*shard*/, Term /*term*/, Sequence /*floor*/) override {
      throw std::runtime_error("broken");
    }
    void released(std::uint32_t /*shard*/) override {}
    [[nodiscard]] bool busy(std::uint32_t /*shard*/) const override { return false; }
  };
  const test::LogCapture quiet;
  run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    test::FakeKubeApi api(executor);
    CO_ASSERT_OK(api.start());
    api.put(k8s::resources::kNamespaces, {{"metadata", {{"name", "runtime"}}}});
    Metrics metrics;
    net::Resolver resolver(metrics);
    k8s::Client client(executor, resolver, api.cluster_config(), {}, "test");
    Broken observer;
    ShardLeases leases(client,
                       {.ns = "runtime",
                        .name = "reporter",
                        .identity = "reporter-0",
                        .own = {.replicas = 2, .ordinal = 0}},
                       observer);
    std::string failure;
    TaskGroup group(executor,
                    [&failure](const std::string&, const std::string& what) { failure = what; });
    leases.start(group);
    EXPECT_TRUE(co_await test::eventually([&] { return !failure.empty(); }, "the failure",
                                          std::chrono::minutes(5)));
    EXPECT_THAT(failure, testing::HasSubstr("broken"));
    group.cancel();
    co_await group.join();
    co_await api.stop();
  });
}

TEST(ShardLeases, OneReplicaThatMayNotSeeTheLayoutHasEverythingToo) {
  run_in_test_time([]() -> Task<> {
    ShardLeasesFixture fixture(co_await asio::this_coro::executor, 1);
    fixture.api.set_access([](const auto& access) { return access.resource != "leases"; });
    co_await fixture.begin();
    EXPECT_THAT(fixture.pods.at(0)->terms[0], ElementsAre(0));
    co_await fixture.end();
  });
}

// Nobody touches the Lease of a replica that is scaled away, and its own ledger may come back.
TEST(ShardLeases, ASmallerNumberOfReplicasInBetweenIsSeen) {
  for (const std::uint32_t fewer : {1U, 2U}) {
    play(3, [fewer](ShardLeasesFixture& fixture) -> Task<> {
      const Term before = fixture.pods.at(2)->terms[2].at(0);
      EXPECT_EQ(fixture.layout()["spec"]["holderIdentity"], "3 replicas");
      EXPECT_EQ(fixture.layout()["spec"]["leaseTransitions"], 0);
      co_await fixture.stop(2);
      {
        Pod other(co_await asio::this_coro::executor, fixture.api,
                  {.replicas = fewer, .ordinal = fewer - 1});
        co_await fixture.stop(fewer - 1);
        EXPECT_TRUE(co_await fixture.eventually([&] { return other.leases.holds(fewer - 1); },
                                                "the last shard at the other pod"));
        EXPECT_EQ(fixture.layout()["spec"]["leaseTransitions"], 1);
        co_await other.stop();
      }
      co_await fixture.start(fewer - 1);
      co_await fixture.start(2);
      EXPECT_TRUE(co_await fixture.eventually([&] { return fixture.all_home(); },
                                              "each pod with its own shard alone"));
      EXPECT_EQ(fixture.layout()["spec"]["leaseTransitions"], 2);
      EXPECT_FALSE(nobody_between(before, fixture.pods.at(2)->terms[2].at(0)));
    });
  }
}

TEST(ShardLeases, TheOnlyReplicaSeesThatThereWereMore) {
  play(2, [](ShardLeasesFixture& fixture) -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    const auto alone = [&]() -> Task<Term> {
      Pod pod(executor, fixture.api, {.replicas = 1, .ordinal = 0});
      EXPECT_TRUE(
          co_await fixture.eventually([&] { return pod.leases.holds(0); }, "shard 0 at the pod"));
      const Term term = pod.terms[0].at(0);
      co_await pod.stop();
      co_return term;
    };
    co_await fixture.stop(0);
    co_await fixture.stop(1);
    const Term first = co_await alone();
    EXPECT_TRUE(nobody_between(first, co_await alone()));
    co_await fixture.start(1);
    EXPECT_TRUE(co_await fixture.eventually([&] { return fixture.all_home(); },
                                            "each pod with its own shard alone"));
    EXPECT_FALSE(nobody_between(first, co_await alone()));
  });
}

// A runtime that shrinks to one replica and grows again.
TEST(ShardLeases, TheOnlyReplicaKeepsTheLayoutCurrent) {
  play(2, [](ShardLeasesFixture& fixture) -> Task<> {
    co_await fixture.stop(0);
    co_await fixture.stop(1);
    Pod alone(co_await asio::this_coro::executor, fixture.api, {.replicas = 1, .ordinal = 0});
    EXPECT_TRUE(
        co_await fixture.eventually([&] { return alone.leases.holds(0); }, "shard 0 at the pod"));
    co_await sleep_for(2min);
    const auto latest = alone.leases.latest(0);
    CO_ASSERT_TRUE(latest.has_value());
    EXPECT_GT(*latest, wall_now());
    EXPECT_LT(*latest, wall_now() + 20s);
    EXPECT_THAT(alone.terms[0], testing::SizeIs(1));
    co_await fixture.start(1);
    EXPECT_TRUE(co_await fixture.eventually([&] { return fixture.pods.at(1)->leases.holds(1); },
                                            "shard 1 at pod 1"));
    EXPECT_GT(fixture.pods.at(1)->floors[1].at(0), sequence_of(*latest));
    co_await alone.stop();
  });
}

// Its clock was set back, or that of another replica was ahead.
TEST(ShardLeases, TheTimeOfALayoutGoesOnWhateverTheClocksSay) {
  play(2, [](ShardLeasesFixture& fixture) -> Task<> {
    const auto ahead = wall_now() + 2h;
    Json layout = fixture.layout();
    layout["spec"]["renewTime"] = format_rfc3339_micros(ahead);
    fixture.api.put(kLeases, layout);
    EXPECT_TRUE(co_await fixture.eventually(
        [&] {
          return parse_rfc3339(fixture.layout()["spec"]["renewTime"].get<std::string>()).value() >
                 ahead + 15s;
        },
        "a later renewal of the layout", 1min));
    // The Lease of a shard follows the clock of its holder.
    EXPECT_LT(*fixture.pods.at(0)->leases.latest(0), wall_now() + 1min);
    co_await fixture.stop(1);
    co_await fixture.stop(0);
    Pod alone(co_await asio::this_coro::executor, fixture.api, {.replicas = 1, .ordinal = 0});
    EXPECT_TRUE(
        co_await fixture.eventually([&] { return alone.leases.holds(0); }, "shard 0 at the pod"));
    EXPECT_GT(alone.floors[0].at(0), sequence_of(ahead + 15s));
    co_await alone.stop();
  });
}

// As after a replica whose clock was ahead.
TEST(ShardLeases, EachHolderBeginsAboveTheOneBeforeAlsoWhenTheClocksAreBehindTheLayout) {
  play(2, [](ShardLeasesFixture& fixture) -> Task<> {
    co_await fixture.stop(1);
    co_await fixture.stop(0);
    Json layout = fixture.layout();
    layout["spec"]["renewTime"] = format_rfc3339_micros(wall_now() + 2h);
    fixture.api.put(kLeases, layout);
    co_await fixture.start(0);
    co_await fixture.start(1);
    EXPECT_TRUE(co_await fixture.eventually([&] { return fixture.all_home(); },
                                            "each pod with its own shard alone"));
    const auto first = fixture.pods.at(1)->floors[1].at(0);
    EXPECT_GT(first, sequence_of(wall_now() + 1h));
    co_await fixture.kill(1);
    EXPECT_TRUE(co_await fixture.eventually([&] { return fixture.has(0, {0, 1}); },
                                            "both shards at pod 0"));
    const auto second = fixture.pods.at(0)->floors[1].at(0);
    EXPECT_GE(second, first + 100'000);
    co_await fixture.start(1);
    EXPECT_TRUE(co_await fixture.eventually([&] { return fixture.all_home(); },
                                            "each pod with its own shard alone"));
    EXPECT_GE(fixture.pods.at(1)->floors[1].at(0), second + 100'000);
  });
}

// The API server is away while it is restored, so the replica loses the layout and joins it again.
TEST(ShardLeases, AReplicaBeginsAboveTheTimesItSawAlsoAfterARestoreOfTheCluster) {
  play(2, [](ShardLeasesFixture& fixture) -> Task<> {
    const auto backup = fixture.api.store().back_up();
    const auto ahead = wall_now() + 2h;
    for (const auto* name : {"reporter-1", "reporter-layout"}) {
      Json lease = *fixture.api.find(kLeases, {"runtime", name});
      lease["spec"]["renewTime"] = format_rfc3339_micros(ahead);
      fixture.api.put(kLeases, lease);
    }
    EXPECT_TRUE(co_await fixture.eventually([&] { return *fixture.renewed("reporter-1") > ahead; },
                                            "a later renewal of shard 1"));
    co_await sleep_for(1s);  // so that the other replica has seen it
    co_await fixture.kill(1);
    Pod& other = *fixture.pods.at(0);
    other.relay.close();
    EXPECT_TRUE(co_await fixture.eventually([&] { return other.leases.held().empty(); },
                                            "no shard at the other pod"));
    fixture.api.restore(backup);
    EXPECT_LT(*fixture.renewed("reporter-1"), ahead);
    other.relay.open();
    EXPECT_TRUE(co_await fixture.eventually([&] { return fixture.has(0, {0, 1}); },
                                            "both shards at pod 0"));
    EXPECT_GT(other.floors[1].back(), sequence_of(ahead + 2s));
    EXPECT_GE(*fixture.renewed("reporter-layout"), ahead) << "for a change of the layout";
    EXPECT_LT(other.floors[0].back(), sequence_of(ahead)) << "whose Lease was not ahead";
  });
}

// A rollout replaces one replica after the other. Objects are in other shards before and after it.
TEST(ShardLeases, ReplicasWithAnOldNumberStopBeforeThoseWithTheNewOneBegin) {
  play(3, [](ShardLeasesFixture& fixture) -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    co_await fixture.stop(2);
    co_await fixture.stop(1);
    const auto holds_any = [&](std::uint32_t ordinal) {
      return !fixture.pods.at(ordinal)->leases.held().empty();
    };
    Pod other(executor, fixture.api, {.replicas = 2, .ordinal = 1});
    bool both = false;
    const auto never_both = [&](const std::function<bool()>& condition) {
      return fixture.eventually(
          [&] {
            both = both || (holds_any(0) && !other.leases.held().empty());
            return condition();
          },
          "the condition");
    };
    EXPECT_TRUE(co_await never_both([&] { return other.leases.holds(0); })) << "stands in";
    EXPECT_EQ(fixture.layout()["spec"]["holderIdentity"], "2 replicas");
    EXPECT_EQ(fixture.pods.at(0)->leases.last_error(),
              "the Lease of the layout is that of 2 replicas");
    EXPECT_GT(other.floors[1].at(0), fixture.pods.at(0)->floors[0].at(0));

    // It crashes before the rollout comes to it.
    co_await fixture.kill(0);
    co_await fixture.start(0);
    EXPECT_TRUE(co_await never_both([&] { return fixture.pods.at(0)->leases.holds(0); }));
    EXPECT_EQ(fixture.layout()["spec"]["holderIdentity"], "3 replicas");
    EXPECT_GT(fixture.pods.at(0)->floors[0].at(0), other.floors[1].at(0));

    co_await fixture.stop(0);
    Pod last(executor, fixture.api, {.replicas = 2, .ordinal = 0});
    EXPECT_TRUE(co_await fixture.eventually(
        [&] { return last.leases.holds(0) && other.leases.held() == Shards{1}; },
        "each shard at the pod of the new number"));
    EXPECT_FALSE(nobody_between(other.terms[1].at(0), other.terms[1].back()));
    EXPECT_GT(other.floors[1].back(), other.floors[1].at(0));
    EXPECT_EQ(fixture.layout()["spec"]["leaseTransitions"], 3);
    EXPECT_FALSE(both);
    co_await other.stop();
    co_await last.stop();
  });
}

// There was no Lease of the layout before.
TEST(ShardLeases, TheOnlyReplicaStopsWhenThereAreSeveral) {
  play(1, [](ShardLeasesFixture& fixture) -> Task<> {
    Pod& old = *fixture.pods.at(0);
    Pod second(co_await asio::this_coro::executor, fixture.api, {.replicas = 2, .ordinal = 1});
    EXPECT_TRUE(
        co_await fixture.eventually([&] { return second.leases.holds(1) && !old.leases.holds(0); },
                                    "shard 1 at the second pod and none at the old one"));
    EXPECT_FALSE(co_await fixture.eventually([&] { return old.leases.holds(0); },
                                             "shard 0 at the old pod", 5s));
    EXPECT_EQ(fixture.layout()["spec"]["holderIdentity"], "2 replicas");
    co_await second.stop();
  });
}

// One that cannot see the change stops as well.
TEST(ShardLeases, AReplicaThatCannotSeeTheLayoutStopsInTime) {
  play(2, [](ShardLeasesFixture& fixture) -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    co_await fixture.stop(1);
    co_await fixture.stop(0);
    Pod old(executor, fixture.api, {.replicas = 1, .ordinal = 0});
    EXPECT_TRUE(
        co_await fixture.eventually([&] { return old.leases.holds(0); }, "shard 0 at the old pod"));
    old.relay.close();
    co_await fixture.start(1);
    bool both = false;
    EXPECT_TRUE(co_await fixture.eventually(
        [&] {
          const bool begun = !fixture.pods.at(1)->leases.held().empty();
          both = both || (begun && old.leases.holds(0));
          return begun;
        },
        "a shard at pod 1"));
    EXPECT_FALSE(both);
    EXPECT_THAT(old.claimed, IsEmpty());
    co_await old.stop();
  });
}

// As the chart grants it: a replica may only see the Leases of the shards that there are now.
TEST(ShardLeases, NoLeaseOfAShardThatIsGoneIsNeeded) {
  for (const std::uint32_t fewer : {1U, 2U}) {
    play(3, [fewer](ShardLeasesFixture& fixture) -> Task<> {
      for (const std::uint32_t ordinal : {2U, 1U, 0U}) co_await fixture.stop(ordinal);
      fixture.api.set_access([fewer](const auto& access) {
        return access.name.empty() || access.name == "reporter-layout" ||
               (fewer > 1 && (access.name == "reporter-0" || access.name == "reporter-1"));
      });
      Pod pod(co_await asio::this_coro::executor, fixture.api, {.replicas = fewer, .ordinal = 0});
      EXPECT_TRUE(
          co_await fixture.eventually([&] { return pod.leases.holds(0); }, "shard 0 at the pod"));
      EXPECT_EQ(fixture.layout()["spec"]["leaseTransitions"], 1);
      co_await pod.stop();
    });
  }
}

// Pods that start at the same moment write it once.
TEST(ShardLeases, NothingIsClaimedBeforeTheLayoutIsOnRecord) {
  run_in_test_time([]() -> Task<> {
    ShardLeasesFixture fixture(co_await asio::this_coro::executor, 2);
    fixture.api.set_access([](const auto& access) { return access.verb != "create"; });
    CO_ASSERT_OK(fixture.api.start());
    fixture.api.put(k8s::resources::kNamespaces, {{"metadata", {{"name", "runtime"}}}});
    co_await fixture.start(0);
    co_await fixture.start(1);
    const auto refused = [&] { return fixture.api.count("POST", "/leases") >= 4; };
    EXPECT_TRUE(co_await fixture.eventually(refused, "the refusal"));
    EXPECT_EQ(fixture.api.count("PUT", "leases/reporter-"), 0U);
    for (const auto& [ordinal, pod] : fixture.pods) EXPECT_THAT(pod->claimed, IsEmpty()) << ordinal;
    fixture.api.set_access({});
    EXPECT_TRUE(co_await fixture.eventually([&] { return fixture.all_home(); },
                                            "each pod with its own shard alone"));
    EXPECT_EQ(fixture.layout()["spec"]["leaseTransitions"], 0);
    co_await fixture.end();
  });
}

TEST(ShardLeases, ANeighbourTakesOverAndHandsBack) {
  play(2, [](ShardLeasesFixture& fixture) -> Task<> {
    Pod& first = *fixture.pods.at(0);
    const Term before = fixture.pods.at(1)->terms[1].at(0);
    co_await fixture.kill(1);
    EXPECT_EQ(fixture.lease(1)["spec"]["holderIdentity"], "reporter-1")
        << "it could not say goodbye";
    EXPECT_TRUE(co_await fixture.eventually([&] { return fixture.has(0, {0, 1}); },
                                            "both shards at pod 0"));
    EXPECT_THAT(first.claimed, ElementsAre(0, 1));
    const test::StatusPage taken(first.leases.status());
    EXPECT_EQ(taken.state("shard 1"), "ok") << taken;
    EXPECT_EQ(taken.message("shard 1"), "held by reporter-0");
    EXPECT_NE(taken.since("shard 1"), "");
    EXPECT_EQ(taken.text("shard 1", "role"), "this process as a stand-in");

    first.busy = true;
    co_await fixture.start(1);
    EXPECT_TRUE(
        co_await fixture.eventually([&] { return fixture.has(0, {0}); }, "shard 0 alone at pod 0"));
    EXPECT_EQ(fixture.lease(1)["spec"]["holderIdentity"], "reporter-0") << "reports are under way";
    EXPECT_TRUE(fixture.has(1, {}));
    first.busy = false;
    EXPECT_TRUE(
        co_await fixture.eventually([&] { return fixture.has(1, {1}); }, "shard 1 at pod 1"));
    EXPECT_EQ(fixture.lease(1)["metadata"].value("annotations", Json::object()), Json::object());

    Pod& second = *fixture.pods.at(1);
    EXPECT_GT(second.floors[1].at(0), first.floors[1].at(0)) << "for the sequences of its events";
    EXPECT_FALSE(nobody_between(before, second.terms[1].at(0)));
    EXPECT_TRUE(nobody_between(first.terms[0].at(0), first.terms[0].at(0)));
    EXPECT_THAT(first.terms[0], testing::SizeIs(1)) << "its own shard was never touched";
    const test::StatusPage given(second.leases.status());
    EXPECT_EQ(given.state("shard 1 (own)"), "ok") << given;
    EXPECT_EQ(given.message("shard 1 (own)"), "held by reporter-1");
    EXPECT_EQ(given.text("shard 1 (own)", "role"), "this process");
    EXPECT_EQ(given.state("shard 0"), "standby");
    EXPECT_EQ(given.message("shard 0"), "held by reporter-0");
    EXPECT_NE(given.since("shard 0"), "");
  });
}

TEST(ShardLeases, AnOrderlyRestartMovesNothing) {
  play(2, [](ShardLeasesFixture& fixture) -> Task<> {
    const Term before = fixture.pods.at(1)->terms[1].at(0);
    co_await fixture.stop(1);
    EXPECT_EQ(fixture.lease(1)["spec"]["holderIdentity"], "");
    EXPECT_THAT(fixture.pods.at(0)->leases.held(), ElementsAre(0));
    co_await fixture.start(1);
    EXPECT_TRUE(co_await fixture.eventually([&] { return fixture.all_home(); },
                                            "each pod with its own shard alone"));
    EXPECT_THAT(fixture.pods.at(0)->claimed, ElementsAre(0));
    EXPECT_EQ(fixture.pods.at(0)->terms.size(), 1U) << "was never told of another";
    EXPECT_TRUE(nobody_between(before, fixture.pods.at(1)->terms[1].at(0)));
  });
}

TEST(ShardLeases, ACrashOfTheOwnerAloneCountsAsNobodyBetween) {
  play(2, [](ShardLeasesFixture& fixture) -> Task<> {
    const Term before = fixture.pods.at(1)->terms[1].at(0);
    co_await fixture.kill(1);
    co_await fixture.start(1);
    EXPECT_TRUE(co_await fixture.eventually([&] { return fixture.all_home(); },
                                            "each pod with its own shard alone", 1500ms))
        << "need not wait";
    EXPECT_TRUE(nobody_between(before, fixture.pods.at(1)->terms[1].at(0)));
  });
}

TEST(ShardLeases, TakesOneMoreAndNotTwo) {
  play(3, [](ShardLeasesFixture& fixture) -> Task<> {
    co_await fixture.kill(1);
    co_await fixture.kill(2);
    EXPECT_TRUE(co_await fixture.eventually([&] { return fixture.pods.at(0)->claimed.size() > 1; },
                                            "a claim of another shard"));
    EXPECT_FALSE(co_await fixture.eventually([&] { return fixture.pods.at(0)->claimed.size() > 2; },
                                             "a second claim of another shard", 3s));
    co_await fixture.start(1);
    co_await fixture.start(2);
    EXPECT_TRUE(co_await fixture.eventually([&] { return fixture.all_home(); },
                                            "each pod with its own shard alone"));
  });
}

TEST(ShardLeases, AHolderThatStopsGivesBoth) {
  play(2, [](ShardLeasesFixture& fixture) -> Task<> {
    co_await fixture.kill(1);
    EXPECT_TRUE(co_await fixture.eventually([&] { return fixture.has(0, {0, 1}); },
                                            "both shards at pod 0"));
    co_await fixture.stop(0);
    EXPECT_EQ(fixture.lease(0)["spec"]["holderIdentity"], "");
    EXPECT_EQ(fixture.lease(1)["spec"]["holderIdentity"], "");
  });
}

TEST(ShardLeases, AnotherTakesOverFromADeadHolder) {
  play(3, [](ShardLeasesFixture& fixture) -> Task<> {
    co_await fixture.kill(1);
    const auto taken_over = [&]() -> std::optional<std::uint32_t> {
      for (const auto& [ordinal, pod] : fixture.pods) {
        if (pod->leases.holds(1)) return ordinal;
      }
      return std::nullopt;
    };
    EXPECT_TRUE(co_await fixture.eventually([&] { return taken_over().has_value(); },
                                            "a pod that stands in"));
    const auto first = taken_over();
    CO_ASSERT_TRUE(first);
    co_await fixture.kill(*first);
    EXPECT_TRUE(co_await fixture.eventually(
        [&] { return fixture.pods.begin()->second->claimed.size() == 2; },
        "a claim of both shards"));
    co_await fixture.start(*first);
    co_await fixture.start(1);
    EXPECT_TRUE(co_await fixture.eventually([&] { return fixture.all_home(); },
                                            "each pod with its own shard alone"));
  });
}

TEST(ShardLeases, ACutOffOwnerStopsBeforeAnotherStarts) {
  play(2, [](ShardLeasesFixture& fixture) -> Task<> {
    fixture.pods.at(1)->relay.close();
    // eventually() checks that nobody claims what another has.
    EXPECT_TRUE(co_await fixture.eventually([&] { return fixture.has(0, {0, 1}); },
                                            "both shards at pod 0"));
    EXPECT_THAT(fixture.pods.at(1)->claimed, IsEmpty());
    fixture.pods.at(1)->relay.open();
    EXPECT_TRUE(co_await fixture.eventually([&] { return fixture.all_home(); },
                                            "each pod with its own shard alone"));
    EXPECT_FALSE(
        nobody_between(fixture.pods.at(1)->terms[1].at(0), fixture.pods.at(1)->terms[1].at(1)));
  });
}

TEST(ShardLeases, AnApiServerThatWasAwayMovesNothing) {
  play(2, [](ShardLeasesFixture& fixture) -> Task<> {
    co_await fixture.api.stop();
    EXPECT_TRUE(co_await fixture.eventually(
        [&] { return fixture.has(0, {}) && fixture.has(1, {}); }, "no shard at either pod"));
    const test::StatusPage status(fixture.pods.at(0)->leases.status());
    EXPECT_EQ(status.state("shard 0 (own)"), "failed") << status;
    EXPECT_EQ(status.message("shard 0 (own)"), "held by reporter-0");
    EXPECT_EQ(status.text("shard 0 (own)", "lease"), "not renewed");
    CO_ASSERT_OK(fixture.api.start());
    EXPECT_TRUE(co_await fixture.eventually([&] { return fixture.all_home(); },
                                            "each pod with its own shard alone"));
    for (const auto& [ordinal, pod] : fixture.pods) {
      EXPECT_EQ(pod->terms.size(), 1U) << "had but its own";
      const auto& terms = pod->terms[ordinal];
      EXPECT_TRUE(nobody_between(terms.at(0), terms.at(1)));
    }
  });
}

TEST(ShardLeases, KeepsItsLeaseWhenOthersWriteOnIt) {
  play(2, [](ShardLeasesFixture& fixture) -> Task<> {
    for (int i = 0; i < 4; ++i) {
      Json lease = fixture.lease(1);
      lease["metadata"]["labels"] = {{"count", std::to_string(i)}};
      fixture.api.put(kLeases, lease);
      const auto written = lease["spec"]["renewTime"];
      EXPECT_TRUE(co_await fixture.eventually(
          [&] { return fixture.lease(1)["spec"]["renewTime"] != written; }, "a new renewTime"));
    }
    EXPECT_EQ(fixture.lease(1)["metadata"]["labels"]["count"], "3");
    EXPECT_EQ(fixture.pods.at(1)->terms[1].size(), 1U) << "held it all the time";
  });
}

TEST(ShardLeases, ListsItsOwnLeasesOnly) {
  play(2, [](ShardLeasesFixture& fixture) -> Task<> {
    EXPECT_EQ(fixture.lease(0)["metadata"]["labels"],
              (Json{{"gitops-runtime.io/leases-of", "reporter"}}));
    EXPECT_EQ(fixture.layout()["metadata"]["labels"], fixture.lease(0)["metadata"]["labels"]);
    co_await sleep_for(2s);
    fixture.api.forget_requests();
    co_await sleep_for(10s);
    EXPECT_GT(fixture.api.count("GET", "leases?"), 10U);
    EXPECT_EQ(fixture.api.count("GET", "leases?"), fixture.api.count("GET", "labelSelector="));
  });
}

TEST(ShardLeases, LabelsTheLeasesOfAnEarlierVersion) {
  run_in_test_time([]() -> Task<> {
    ShardLeasesFixture fixture(co_await asio::this_coro::executor, 2);
    fixture.api.put(k8s::resources::kNamespaces, {{"metadata", {{"name", "runtime"}}}});
    fixture.api.put(kLeases, {{"metadata", {{"namespace", "runtime"}, {"name", "reporter-1"}}},
                              {"spec",
                               {{"holderIdentity", "reporter-1"},
                                {"leaseDurationSeconds", 2},
                                {"leaseTransitions", 7}}}});
    CO_ASSERT_OK(fixture.api.start());
    co_await fixture.start(0);
    const auto labelled = [&] { return fixture.lease(1)["metadata"].contains("labels"); };
    EXPECT_TRUE(co_await fixture.eventually(labelled, "the label"));
    EXPECT_TRUE(co_await fixture.eventually([&] { return fixture.has(0, {0, 1}); },
                                            "both shards at pod 0"));
    EXPECT_EQ(fixture.lease(1)["spec"]["leaseTransitions"], 8);
    co_await fixture.end();
  });
}

TEST(ShardLeases, LeavesShardsAloneThatDoNotExist) {
  run_in_test_time([]() -> Task<> {
    ShardLeasesFixture fixture(co_await asio::this_coro::executor, 2);
    const Json foreign = {
        {"metadata", {{"namespace", "runtime"}, {"name", "reporter-2"}}},
        {"spec", {{"holderIdentity", "reporter-2"}, {"leaseDurationSeconds", 1}}}};
    fixture.api.put(k8s::resources::kNamespaces, {{"metadata", {{"name", "runtime"}}}});
    const Json before = fixture.api.put(kLeases, foreign);
    co_await fixture.begin();
    EXPECT_FALSE(co_await fixture.eventually([&] { return !fixture.all_home(); },
                                             "a pod without its own shard", 3500ms));
    EXPECT_EQ(fixture.lease(2), before);
    EXPECT_EQ(fixture.api.count("", "reporter-2"), 0U);
    co_await fixture.end();
  });
}

TEST(ShardLeases, AC24_ADamagedLeaseIsMended) {
  play(2, [](ShardLeasesFixture& fixture) -> Task<> {
    for (const Json& spec :
         {Json(5), Json::object(), Json{{"holderIdentity", {1}}},
          Json{{"holderIdentity", "some\nbody\x7f"},
               {"leaseDurationSeconds", 3},
               {"leaseTransitions", -1}},
          Json{{"holderIdentity", std::string(100'000, 'x')}, {"leaseDurationSeconds", "long"}}}) {
      Json lease = fixture.lease(1);
      lease["spec"] = spec;
      fixture.api.put(kLeases, lease);
      std::size_t longest = 0;
      EXPECT_TRUE(co_await fixture.eventually(
          [&] {
            const auto status = status_text(fixture.pods.at(0)->leases.status());
            longest = std::max(longest, status.size());
            EXPECT_EQ(std::ranges::count(status, '\n'), 2) << status;
            const Json now = fixture.lease(1)["spec"];
            return now != spec && now["holderIdentity"] == "reporter-1" && fixture.all_home();
          },
          "a renewal by the owner"));
      EXPECT_LT(longest, 1000U);
    }
  });
}

TEST(ShardLeases, AC24_AnAbsurdNumberOfReplicasCostsLittle) {
  run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    test::FakeKubeApi api(executor);
    CO_ASSERT_OK(api.start());
    Pod pod(executor, api, {.replicas = 2'147'483'647, .ordinal = 2'147'483'646});
    EXPECT_TRUE(co_await api.wait_until([&] { return api.count("GET") > 0; }, deadline_after(5s)));
    EXPECT_EQ(pod.leases.status().size(), 64U);
    const test::StatusPage status(pod.leases.status());
    EXPECT_TRUE(status.has("shard 2147483646 (own)"));
    EXPECT_TRUE(status.has("shard 0"));
    co_await pod.stop();
    co_await api.stop();
  });
}

TEST(ShardLeases, TermsOfOtherLeasesAndReplicasAreNotComparable) {
  play(2, [](ShardLeasesFixture& fixture) -> Task<> {
    const Term before = fixture.pods.at(1)->terms[1].at(0);
    co_await fixture.stop(1);
    EXPECT_TRUE(fixture.api.remove(kLeases, fixture.key(1)));
    co_await fixture.start(1);
    EXPECT_TRUE(co_await fixture.eventually([&] { return fixture.all_home(); },
                                            "each pod with its own shard alone"));
    EXPECT_FALSE(nobody_between(before, fixture.pods.at(1)->terms[1].at(0)));
    const Term second = fixture.pods.at(1)->terms[1].at(0);
    co_await fixture.stop(1);
    Pod other(co_await asio::this_coro::executor, fixture.api, {.replicas = 3, .ordinal = 1});
    EXPECT_TRUE(co_await fixture.eventually([&] { return other.leases.holds(1); },
                                            "shard 1 at the other pod"));
    EXPECT_FALSE(nobody_between(second, other.terms[1].at(0)));
    co_await other.stop();
  });
}

}  // namespace
}  // namespace gitops::reporter
