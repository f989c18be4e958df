#include "event-reporter/report/resource_reporter.hpp"

#include <algorithm>
#include <functional>
#include <iostream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/control_plane/events.hpp"
#include "common/core/credential.hpp"
#include "common/net/resolve.hpp"
#include "doubles/fake_kube_api.hpp"
#include "doubles/fake_platform.hpp"
#include "event-reporter/report/managed_clusters.hpp"
#include "event-reporter/report/resync.hpp"
#include "support/log_capture.hpp"
#include "support/run_coro.hpp"
#include "support/status_page.hpp"
#include "support/wait.hpp"

namespace gitops::reporter {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
namespace r = k8s::resources;

// The reporter's parts with doubles around them, all on the loop of one test.
struct Parts {
  explicit Parts(const Executor& executor) : kube(executor), platform_double(executor) {
    kube.add_type(r::kRollouts);
  }
  // `prepare` runs before the reporter starts.
  Task<> start(ResourceReporter::Options options, std::function<void(Parts&)> prepare = {}) {
    CO_ASSERT_OK(kube.start());
    CO_ASSERT_OK(platform_double.start());
    const auto executor = co_await asio::this_coro::executor;
    client.emplace(executor, resolver, kube.cluster_config(), http::ProxySettings{}, "test");
    http.emplace(executor, resolver, http::ClientOptions{});
    token.emplace(Credential::fixed(Secret("platform-token")));
    platform.emplace(*http, platform_double.url(), [this] { return token->current(); });
    ledger.emplace(executor, Ledger::Options{}, metrics);
    Delivery::Options delivery_options;
    delivery_options.backoff = {.initial = milliseconds(5), .max = milliseconds(20)};
    delivery_options.breaker.pauses = {.initial = milliseconds(5), .max = milliseconds(50)};
    delivery.emplace(executor, *platform, *token, delivery_options, metrics);
    options.own_namespace = "argocd";
    options.kinds = {find_kind("rollouts")};
    if (options.reconcile == ResourceReporter::Options{}.reconcile) {
      options.reconcile = std::chrono::hours(24 * 30);
    }
    options.queue.backoff = {.initial = milliseconds(5), .max = milliseconds(50)};
    options.watch.reflector.backoff = {.initial = milliseconds(5), .max = milliseconds(50)};
    reporter.emplace(executor, *client, *ledger, *delivery, std::move(options), metrics);
    CO_ASSERT_OK(co_await ledger->open());
    ledger->start(tasks.emplace(executor));
    if (prepare) prepare(*this);
    reporter->start(*tasks);
    reporter->changes().claimed(0, 0);
    // Until the watch has caught up, the objects that it delivers are read.
    CO_ASSERT_TRUE(co_await test::eventually([this] { return !status().has("taken over"); },
                                             "the end of the take-over"));
  }
  [[nodiscard]] test::StatusPage status() const { return test::StatusPage(reporter->status()); }
  Task<> stop() {
    reporter->stop();
    tasks->cancel();
    co_await tasks->join();
    co_await platform_double.stop();
    co_await kube.stop();
  }

  void put(const std::string& uid, const std::string& phase, const std::string& name = "web") {
    kube.put(r::kRollouts, {{"metadata", {{"name", name}, {"namespace", "shop"}, {"uid", uid}}},
                            {"status", {{"phase", phase}}}});
  }
  bool remove(const std::string& name = "web") { return kube.remove(r::kRollouts, {"shop", name}); }
  // Answers 422 to the events of this uid.
  void refuse(const std::string& uid) {
    platform_double.refuse_events([uid](const test::FakePlatform::Report& report) {
      return report.event_id.starts_with(uid + "/") ? 422 : 0;
    });
  }
  [[nodiscard]] std::size_t refused() const {
    std::size_t marks = 0;
    for (const auto& [key, head] : ledger->known()) marks += head.refused.size();
    return marks;
  }
  Task<bool> is_quiet() {
    co_return co_await platform_double.wait_until_quiet(milliseconds(300),
                                                        deadline_after(seconds(10)));
  }
  // "uid phase" or "uid gone".
  [[nodiscard]] std::vector<std::string> events() const {
    std::vector<std::string> out;
    for (const auto& report : platform_double.reports()) {
      out.push_back(report.object["metadata"]["uid"].get<std::string>() + " " +
                    (report.data.value("deleted", false)
                         ? "gone"
                         : report.object["status"]["phase"].get<std::string>()));
    }
    return out;
  }
  Task<bool> wait_for(std::string event) {
    co_return co_await platform_double.wait_for(
        [&](const test::FakePlatform::Report&) { return events().back() == event; },
        deadline_after(seconds(10))) != nullptr;
  }

  Metrics metrics;
  test::FakeKubeApi kube;
  test::FakePlatform platform_double;
  net::Resolver resolver{metrics};
  std::optional<k8s::Client> client;
  std::optional<http::Client> http;
  std::optional<Credential> token;
  std::optional<control_plane::Client> platform;
  std::optional<Ledger> ledger;
  std::optional<Delivery> delivery;
  std::optional<ResourceReporter> reporter;
  std::optional<TaskGroup> tasks;
};

void play(ResourceReporter::Options options, const std::function<Task<>(Parts&)>& body,
          const std::function<void(Parts&)>& prepare = {}) {
  const test::LogCapture quiet;
  test::run_in_test_time(
      [&]() -> Task<> {
        Parts parts(co_await asio::this_coro::executor);
        co_await parts.start(options, prepare);
        co_await body(parts);
        co_await parts.stop();
        EXPECT_THAT(parts.platform_double.refused(), IsEmpty());
      },
      seconds(30));
  if (::testing::Test::HasFailure()) std::cerr << quiet.text() << "\n";
}

TEST(ResourceReporter, EveryPhaseIsReportedInOrder) {
  play({}, [](Parts& parts) -> Task<> {
    parts.put("u", "first");
    EXPECT_TRUE(co_await parts.wait_for("u first"));
    for (const auto* phase : {"one", "two", "three"}) parts.put("u", phase);
    EXPECT_TRUE(co_await parts.wait_for("u three"));
    EXPECT_THAT(parts.events(), ElementsAre("u first", "u one", "u two", "u three"));
  });
}

TEST(ResourceReporter, WhatWasReadBeforeTheWatchToldOfItIsNeitherOvertakenNorTakenForGone) {
  ResourceReporter::Options options;
  options.queue.dirty.bytes = 1;  // no text is kept: each is read when it is reported
  play(options, [](Parts& parts) -> Task<> {
    parts.put("old", "one");
    EXPECT_TRUE(co_await parts.wait_for("old one"));
    co_await parts.platform_double.stop();
    parts.put("old", "two");
    EXPECT_TRUE(co_await test::eventually([&] { return !parts.delivery->last_error().empty(); },
                                          "a failed delivery"));
    // While its report waits, it is recreated, and the watch is silent.
    parts.kube.stall_watches(true);
    EXPECT_TRUE(parts.kube.remove(r::kRollouts, {"shop", "web"}));
    parts.put("new", "three");
    parts.put("new", "four");
    // An attempt that began before is over.
    const auto reads = parts.kube.count("GET");
    EXPECT_TRUE(co_await test::eventually([&] { return parts.kube.count("GET") >= reads + 2; },
                                          "two more reads"));
    CO_ASSERT_OK(parts.platform_double.start());
    EXPECT_TRUE(co_await parts.wait_for("new four"));
    parts.kube.stall_watches(false);
    parts.put("new", "five");
    EXPECT_TRUE(co_await parts.wait_for("new five"));
    EXPECT_TRUE(co_await parts.platform_double.wait_until_quiet(milliseconds(200),
                                                                deadline_after(seconds(5))));
    EXPECT_THAT(parts.events(),
                ElementsAre("old one", "old gone", "new four", "old gone", "new five"));
  });
}

TEST(ResourceReporter, WhatCameAndWentBehindADeletionThatNobodySawIsReportedAsGoneWithIt) {
  play({}, [](Parts& parts) -> Task<> {
    parts.ledger->store("in-cluster/rollouts/shop/web", {.uid = "oldest"});
    co_await parts.platform_double.stop();
    parts.put("u", "one");
    EXPECT_TRUE(co_await test::eventually([&] { return !parts.delivery->last_error().empty(); },
                                          "a failed delivery"));
    EXPECT_TRUE(parts.kube.remove(r::kRollouts, {"shop", "web"}));
    while (parts.status().count("rollouts", "objects") != 0) {
      co_await sleep_for(milliseconds(5));
    }
    CO_ASSERT_OK(parts.platform_double.start());
    CO_ASSERT_TRUE(co_await test::eventually([&] { return parts.ledger->known().empty(); },
                                             "a ledger without objects"));
    EXPECT_TRUE(co_await parts.is_quiet());
    EXPECT_THAT(parts.events(), AnyOf(UnorderedElementsAre("oldest gone", "u gone"),
                                      ElementsAre("oldest gone", "u one", "u gone")));
  });
}

// As after a take-over: the watch lags, so the replica read and reported an object whose predecessor the watch
// still shows. Then another replica holds the shard, and one list shows that both are gone.
TEST(ResourceReporter, WhatWasReadAheadOfTheWatchIsReportedGoneAlsoWhenItHasASuccessor) {
  play({}, [](Parts& parts) -> Task<> {
    parts.put("u1", "one");
    CO_ASSERT_TRUE(co_await parts.wait_for("u1 one"));
    parts.kube.stall_watches(true);
    parts.remove();
    parts.put("u2", "two");
    parts.reporter->changes().claimed(0, 7);
    CO_ASSERT_TRUE(co_await parts.wait_for("u2 two"));
    EXPECT_TRUE(co_await parts.is_quiet());
    parts.reporter->changes().released(0);
    parts.remove();
    parts.put("u3", "three");
    parts.kube.compact();
    parts.kube.cut_watches();
    parts.kube.stall_watches(false);
    CO_ASSERT_TRUE(co_await parts.wait_for("u2 gone"));
    EXPECT_THAT(parts.events(), ElementsAre("u1 one", "u1 gone", "u2 two", "u2 gone"));
    EXPECT_TRUE(parts.ledger->known().empty());
  });
}

TEST(ResourceReporter, ASignOfLifeComesWhenThereIsNothingToReport) {
  ResourceReporter::Options options;
  options.queue.heartbeat = milliseconds(1500);
  play(options, [](Parts& parts) -> Task<> {
    parts.put("u", "one");
    EXPECT_TRUE(co_await parts.platform_double.wait_for_count(2, deadline_after(seconds(8))));
    EXPECT_THAT(parts.events(), ElementsAre("u one", "u one"));
  });
}

// By a replica that is no more.
TEST(ResourceReporter, WhatAnotherReplicaReportedIsReportedGone) {
  const auto row = [](const auto* uid) {
    return inventory_row("in-cluster/rollouts/shop/web", uid);
  };
  const auto prepare = [row](Parts& parts) { parts.ledger->store(row("other"), {.uid = "other"}); };
  const auto is_told = [](const Parts& parts) {
    return test::eventually([&parts] { return parts.ledger->inventory().empty(); },
                            "an empty inventory");
  };
  const auto alone = [is_told](Parts& parts) -> Task<> {
    EXPECT_TRUE(co_await is_told(parts));
    EXPECT_THAT(parts.events(), ElementsAre("other gone"));
  };
  const auto with_successor = [is_told](Parts& parts) -> Task<> {
    EXPECT_TRUE(co_await parts.wait_for("u one"));
    EXPECT_THAT(parts.events(), ElementsAre("other gone", "u one"));
    EXPECT_TRUE(co_await is_told(parts));
  };
  play({}, alone, prepare);
  play({}, with_successor, [&](Parts& parts) {
    prepare(parts);
    parts.put("u", "one");
  });
}

// The answer that the old object is gone comes late.
TEST(ResourceReporter, WhatIsRecreatedWhileAMissingObjectIsLookedForIsNotReportedGone) {
  const auto prepare = [](Parts& parts) {
    parts.ledger->store("in-cluster/rollouts/shop/web", {.uid = "old"});
    parts.kube.fail_next(1, 404, {}, "/rollouts/web");
    parts.kube.delay_answers(seconds(5), "/rollouts/web");
  };
  const auto body = [](Parts& parts) -> Task<> {
    CO_ASSERT_TRUE(co_await parts.kube.wait_until(
        [&] { return parts.kube.count("GET", "/rollouts/web") == 1; },
        deadline_after(seconds(10))));
    parts.put("new", "one");
    CO_ASSERT_TRUE(co_await parts.wait_for("new one"));
    co_await sleep_for(seconds(10));
    EXPECT_THAT(parts.events(), ElementsAre("old gone", "new one"));
    EXPECT_EQ(parts.ledger->known().at("in-cluster/rollouts/shop/web").uid, "new");
  };
  play({}, body, prepare);
}

// After a restart: the deletion of another object with the name was refused, and is retried before
// the first list.
TEST(ResourceReporter, ADeletionThatIsRetriedDoesNotTakeTheSuccessorWithIt) {
  play({}, [](Parts& parts) -> Task<> {
    const std::string key = "in-cluster/rollouts/shop/web";
    parts.kube.delay_answers(seconds(5));
    parts.put("new", "one");
    LedgerEntry old{.uid = "old"};
    old.announce(kGone, 7);
    old.refuse(400, wall_now(), "no");
    parts.ledger->store(inventory_row(key, "old"), old);
    LedgerEntry entry{.uid = "new"};
    entry.announce(Digest{1}, 7);
    parts.ledger->store(key, entry);
    EXPECT_EQ(parts.reporter->changes().retry_refused(), 1U);
    CO_ASSERT_TRUE(co_await parts.wait_for("old gone"));
    parts.kube.delay_answers(milliseconds(0));
    CO_ASSERT_TRUE(co_await parts.wait_for("new one"));
    EXPECT_TRUE(co_await parts.is_quiet());
    EXPECT_THAT(parts.events(), ElementsAre("old gone", "new one"));
    EXPECT_TRUE(parts.ledger->inventory().empty());
  });
}

// -- refused is not acknowledged --

// A proxy in the way that does not know where the events belong.
TEST(ResourceReporter, ATimeOfRefusalsLosesNeitherChangesNorDeletions) {
  play({}, [](Parts& parts) -> Task<> {
    for (const auto* name : {"a", "b", "c"}) parts.put(name, "one", name);
    CO_ASSERT_TRUE(co_await parts.platform_double.wait_for_count(3, deadline_after(seconds(10))));
    parts.platform_double.fail_next(1'000'000, 400);
    parts.put("a", "two", "a");
    parts.put("b", "two", "b");
    EXPECT_TRUE(parts.remove("c"));
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] {
          return !parts.delivery->last_error().empty() &&
                 parts.platform_double.requests().size() > 15;
        },
        "an error after more than 15 requests"));
    parts.platform_double.end_faults();
    CO_ASSERT_TRUE(co_await parts.platform_double.wait_for_count(6, deadline_after(seconds(20))));
    EXPECT_TRUE(co_await parts.is_quiet());
    auto events = parts.events();
    events.erase(events.begin(), events.begin() + 3);
    EXPECT_THAT(events, UnorderedElementsAre("a two", "b two", "c gone"));
    EXPECT_EQ(parts.refused(), 0U);
  });
}

TEST(ResourceReporter, ARefusedEventIsMarkedAndTriedOnceOnCommand) {
  play({}, [](Parts& parts) -> Task<> {
    parts.refuse("u");
    parts.put("u", "one");
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] { return !parts.platform_double.requests().empty(); }, "a request to the platform"));
    parts.put("o", "one", "other");
    CO_ASSERT_TRUE(
        co_await test::eventually([&] { return parts.refused() == 1; }, "one refused event"));
    EXPECT_TRUE(co_await parts.is_quiet());
    EXPECT_THAT(parts.events(), ElementsAre("o one"));
    CO_ASSERT_TRUE(co_await test::eventually([&] { return parts.delivery->last_error().empty(); },
                                             "a delivery without an error"));

    const auto posts = [&] { return parts.platform_double.count("POST"); };
    const auto before = posts();
    EXPECT_EQ(parts.reporter->changes().retry_refused(), 1U);
    CO_ASSERT_TRUE(
        co_await test::eventually([&] { return posts() == before + 1; }, "one more request"));
    EXPECT_TRUE(co_await parts.is_quiet());
    EXPECT_EQ(posts(), before + 1) << "once";
    EXPECT_EQ(parts.refused(), 1U);

    parts.platform_double.refuse_events(nullptr);
    EXPECT_EQ(parts.reporter->changes().retry_refused(), 1U);
    EXPECT_TRUE(co_await parts.wait_for("u one"));
    CO_ASSERT_TRUE(
        co_await test::eventually([&] { return parts.refused() == 0; }, "no refused event"));
  });
}

// The event was posted before the breaker opened, so its acknowledgement does not close the breaker.
TEST(ResourceReporter, ARefusedEventIsNoErrorWhenAnotherWasTakenSinceTheBreakerOpened) {
  play({}, [](Parts& parts) -> Task<> {
    parts.refuse("u");
    parts.platform_double.delay_answers(milliseconds(2000));
    parts.put("o", "one", "other");
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] { return !parts.platform_double.requests().empty(); }, "a request to the platform"));
    parts.platform_double.delay_answers(milliseconds(0));
    parts.put("u", "one");
    CO_ASSERT_TRUE(co_await test::eventually([&] { return !parts.delivery->last_error().empty(); },
                                             "an error of the delivery"));
    CO_ASSERT_TRUE(
        co_await test::eventually([&] { return parts.refused() == 1; }, "one refused event"));
    CO_ASSERT_TRUE(co_await test::eventually([&] { return parts.delivery->last_error().empty(); },
                                             "a delivery without an error"));
    EXPECT_THAT(parts.events(), ElementsAre("o one"));
  });
}

TEST(ResourceReporter, ANewStateOfARefusedObjectIsAnEventOfItsOwn) {
  play({}, [](Parts& parts) -> Task<> {
    parts.refuse("u");
    parts.put("u", "one");
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] { return !parts.platform_double.requests().empty(); }, "a request to the platform"));
    parts.put("o", "one", "other");
    CO_ASSERT_TRUE(
        co_await test::eventually([&] { return parts.refused() == 1; }, "one refused event"));
    parts.platform_double.refuse_events(nullptr);
    parts.put("u", "two");
    EXPECT_TRUE(co_await parts.wait_for("u two"));
    CO_ASSERT_TRUE(
        co_await test::eventually([&] { return parts.refused() == 0; }, "no refused event"));
    EXPECT_TRUE(co_await parts.is_quiet());
    EXPECT_THAT(parts.events(), ElementsAre("o one", "u two"));
  });
}

TEST(ResourceReporter, ARefusedDeletionStaysInTheLedger) {
  play({}, [](Parts& parts) -> Task<> {
    parts.put("u", "one");
    CO_ASSERT_TRUE(co_await parts.wait_for("u one"));
    parts.refuse("u");
    EXPECT_TRUE(parts.remove());
    parts.put("o", "one", "other");
    CO_ASSERT_TRUE(
        co_await test::eventually([&] { return parts.refused() == 1; }, "one refused event"));
    EXPECT_TRUE(parts.ledger->known().contains("in-cluster/rollouts/shop/web"));
    // Also when the object is recreated.
    parts.put("v", "one");
    CO_ASSERT_TRUE(co_await parts.wait_for("v one"));
    parts.platform_double.refuse_events(nullptr);
    EXPECT_EQ(parts.reporter->changes().retry_refused(), 1U);
    EXPECT_TRUE(co_await parts.wait_for("u gone"));
    EXPECT_TRUE(co_await parts.is_quiet());
    EXPECT_THAT(parts.events(), ElementsAre("u one", "o one", "v one", "u gone"));
    EXPECT_EQ(parts.refused(), 0U);
    EXPECT_TRUE(parts.ledger->inventory().empty());
  });
}

// -- fencing --

TEST(ResourceReporter, AReleaseEndsTheReportsOfItsShard) {
  play({}, [](Parts& parts) -> Task<> {
    parts.platform_double.delay_answers(std::chrono::hours(1));
    for (const auto* name : {"a", "b", "c"}) parts.put(name, "one", name);
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] { return !parts.platform_double.requests().empty(); }, "a request to the platform"));
    parts.reporter->changes().released(0);
    CO_ASSERT_TRUE(co_await test::eventually([&] { return !parts.reporter->changes().busy(0); },
                                             "the end of the work"));
    const auto requests = parts.platform_double.requests().size();
    parts.put("d", "one", "d");
    parts.platform_double.delay_answers(milliseconds(0));
    EXPECT_TRUE(co_await parts.is_quiet());
    EXPECT_EQ(parts.platform_double.requests().size(), requests) << "nothing after the release";
    EXPECT_TRUE(parts.events().empty());
  });
}

// The receiver takes the later sequence, whichever arrives last.
TEST(ResourceReporter, TheNextTermsEventsAreAboveTheFloor) {
  play({}, [](Parts& parts) -> Task<> {
    parts.put("u", "one");
    CO_ASSERT_TRUE(co_await parts.wait_for("u one"));
    const auto& reports = parts.platform_double.reports();
    const auto far = reports[0].sequence + 3'600'000'000ULL;
    parts.reporter->changes().released(0);
    parts.reporter->changes().claimed(0, 9, far);
    CO_ASSERT_TRUE(co_await parts.platform_double.wait_for_count(2, deadline_after(seconds(10))));
    EXPECT_EQ(reports[1].sequence, far);
    parts.reporter->changes().released(0);
    EXPECT_TRUE(parts.remove());
    CO_ASSERT_TRUE(co_await parts.wait_for("u gone"));
    EXPECT_EQ(reports[2].sequence, far + 1) << "no owner, so just above its last";
  });
}

// A start tells it before the shard is taken, and the last holder's events had higher sequences.
TEST(ResourceReporter, ADeletionThatWasToldWithoutTheShardIsToldOnceMoreWithIt) {
  play({}, [](Parts& parts) -> Task<> {
    parts.put("u", "one");
    CO_ASSERT_TRUE(co_await parts.wait_for("u one"));
    const auto& reports = parts.platform_double.reports();
    const auto far = reports[0].sequence + 3'600'000'000ULL;
    parts.reporter->changes().released(0);
    EXPECT_TRUE(parts.remove());
    CO_ASSERT_TRUE(co_await parts.wait_for("u gone"));
    EXPECT_TRUE(co_await parts.is_quiet());
    parts.reporter->changes().claimed(0, 9, far);
    CO_ASSERT_TRUE(co_await parts.platform_double.wait_for_count(3, deadline_after(seconds(10))));
    EXPECT_TRUE(co_await parts.is_quiet());
    EXPECT_THAT(parts.events(), ElementsAre("u one", "u gone", "u gone"));
    EXPECT_GE(reports[2].sequence, far);
    EXPECT_TRUE(parts.ledger->inventory().empty());
  });
}

// As in a cluster that is restored from a backup, while the machine's clock is set back: the ledger's
// floor decides, and it rises with the end of the entry.
TEST(ResourceReporter, ADeletedObjectThatIsBackUnderItsUidHasHigherSequences) {
  play({}, [](Parts& parts) -> Task<> {
    const auto far = sequence_of(wall_now()) + 3'600'000'000ULL;
    parts.ledger->store("in-cluster/rollouts/shop/before", {.uid = "before", .sequence = far});
    parts.ledger->erase("in-cluster/rollouts/shop/before");
    co_await parts.platform_double.stop();
    parts.put("u", "one");
    EXPECT_TRUE(co_await test::eventually([&] { return !parts.delivery->last_error().empty(); },
                                          "a failed delivery"));
    // One report tells both.
    EXPECT_TRUE(parts.remove());
    parts.put("u", "two");
    CO_ASSERT_OK(parts.platform_double.start());
    CO_ASSERT_TRUE(co_await parts.wait_for("u two"));
    EXPECT_THAT(parts.events(),
                AnyOf(ElementsAre("u gone", "u two"), ElementsAre("u one", "u gone", "u two")));
    auto last = far;
    for (const auto& report : parts.platform_double.reports()) {
      EXPECT_GT(report.sequence, last) << report.event_id;
      last = report.sequence;
    }
  });
}

// A read that is ahead of the watch tells the object that is back before the watch tells its deletion.
TEST(ResourceReporter, TheDeletionOfAnObjectThatIsBackUnderItsUidIsToldAlsoAfterARead) {
  play({}, [](Parts& parts) -> Task<> {
    parts.put("u", "one");
    CO_ASSERT_TRUE(co_await parts.wait_for("u one"));
    parts.kube.stall_watches(true);
    EXPECT_TRUE(parts.remove());
    parts.put("u", "two");
    // Reads the object.
    parts.reporter->changes().claimed(0, 9);
    CO_ASSERT_TRUE(co_await parts.wait_for("u two"));
    parts.kube.stall_watches(false);
    EXPECT_TRUE(
        co_await test::eventually([&] { return parts.events().size() == 4; }, "four events"));
    EXPECT_TRUE(co_await parts.is_quiet());
    EXPECT_THAT(parts.events(), ElementsAre("u one", "u two", "u gone", "u two"));
    const auto& reports = parts.platform_double.reports();
    EXPECT_EQ(std::ranges::adjacent_find(reports, std::greater_equal{},
                                         &test::FakePlatform::Report::sequence),
              reports.end());
  });
}

// Its answer comes when another term has begun and has distrusted the ledger.
TEST(ResourceReporter, ALateReportDoesNotTouchTheLedgerOfTheNextTerm) {
  play({}, [](Parts& parts) -> Task<> {
    parts.put("u", "one");
    CO_ASSERT_TRUE(co_await parts.wait_for("u one"));
    EXPECT_TRUE(co_await parts.is_quiet());
    parts.platform_double.delay_answers(milliseconds(50));
    parts.put("u", "two");
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] { return parts.platform_double.requests().size() == 2; }, "two requests"));
    parts.reporter->changes().released(0);
    parts.reporter->changes().claimed(0, 9);
    parts.platform_double.delay_answers(milliseconds(0));
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] {
          const auto known = parts.ledger->known().find("in-cluster/rollouts/shop/web");
          return known != parts.ledger->known().end() && known->second.change;
        },
        "the change in the ledger"));
    EXPECT_TRUE(co_await parts.is_quiet());
    // The new term reports all of it, above the event of the old one, which may arrive last.
    const auto& reports = parts.platform_double.reports();
    EXPECT_GE(parts.platform_double.requests().size(), 3U);
    const auto newest =
        std::ranges::max_element(reports, {}, &test::FakePlatform::Report::sequence);
    EXPECT_EQ(newest->object["status"]["phase"], "two");
    EXPECT_EQ(std::ranges::count(reports, newest->sequence, &test::FakePlatform::Report::sequence),
              1);
  });
}

// -- epochs --

// etcd from a backup: every resourceVersion is lower than before.
TEST(ResourceReporter, AfterARestoreOfTheClusterEverythingIsComparedAgain) {
  play({}, [](Parts& parts) -> Task<> {
    parts.put("u", "one");
    parts.put("o", "one", "other");
    CO_ASSERT_TRUE(co_await parts.platform_double.wait_for_count(2, deadline_after(seconds(10))));
    const auto backup = parts.kube.store().back_up();
    for (const auto* phase : {"two", "three", "four", "five"}) parts.put("u", phase);
    parts.put("later", "one", "later");
    EXPECT_TRUE(parts.remove("other"));
    CO_ASSERT_TRUE(co_await parts.platform_double.wait_for_count(8, deadline_after(seconds(10))));
    EXPECT_TRUE(co_await parts.is_quiet());
    const auto sequence = parts.platform_double.reports().back().sequence;
    parts.kube.restore(backup);
    CO_ASSERT_TRUE(co_await parts.platform_double.wait_for_count(11, deadline_after(seconds(20))));
    EXPECT_TRUE(co_await parts.is_quiet());
    auto events = parts.events();
    events.erase(events.begin(), events.begin() + 8);
    EXPECT_THAT(events, UnorderedElementsAre("u one", "o one", "later gone"));
    for (std::size_t i = 8; i < 11; ++i) {
      EXPECT_GT(parts.platform_double.reports()[i].sequence, sequence);
    }
    // Versions that were given out before are given out once more.
    for (const auto* phase : {"six", "seven"}) {
      parts.put("u", phase);
      EXPECT_TRUE(co_await parts.wait_for(std::string("u ") + phase));
    }
  });
}

// The control plane takes no events meanwhile. The object is back in the state that was told last.
TEST(ResourceReporter, WhatARestoreBringsBackBeforeItsDeletionIsToldStaysReported) {
  play({}, [](Parts& parts) -> Task<> {
    const auto sees = [&parts](std::int64_t count) {
      return test::eventually(
          [&parts, count] { return parts.status().count("rollouts", "objects") == count; },
          "the number of rollouts in the status");
    };
    parts.put("u", "one");
    CO_ASSERT_TRUE(co_await parts.wait_for("u one"));
    EXPECT_TRUE(co_await parts.is_quiet());
    const auto backup = parts.kube.store().back_up();
    co_await parts.platform_double.stop();
    EXPECT_TRUE(parts.remove());
    CO_ASSERT_TRUE(co_await sees(0));
    parts.kube.restore(backup);
    CO_ASSERT_TRUE(co_await sees(1));
    CO_ASSERT_OK(parts.platform_double.start());
    CO_ASSERT_TRUE(co_await parts.platform_double.wait_for_count(3, deadline_after(seconds(20))));
    EXPECT_TRUE(co_await parts.is_quiet());
    EXPECT_THAT(parts.events(), ElementsAre("u one", "u gone", "u one"));
  });
}

// See the case of Reporter with the same name.
TEST(ResourceReporter, ARestoreThatOnlyAReadCouldShowIsComparedAgain) {
  play({}, [](Parts& parts) -> Task<> {
    parts.put("u", "one");
    CO_ASSERT_TRUE(co_await parts.wait_for("u one"));
    const auto backup = parts.kube.store().back_up();
    parts.kube.stall_watches(true);
    parts.put("u", "two");
    parts.reporter->changes().compare_again("in-cluster/rollouts/shop/web");  // reads it
    CO_ASSERT_TRUE(co_await parts.wait_for("u two"));
    parts.kube.store().restore(backup);
    parts.kube.cut_watches();
    parts.kube.stall_watches(false);
    CO_ASSERT_TRUE(
        co_await parts.platform_double.wait_for_count(3, deadline_after(std::chrono::minutes(3))));
    EXPECT_TRUE(co_await parts.is_quiet());
    EXPECT_THAT(parts.events(), ElementsAre("u one", "u two", "u one"));
  });
}

TEST(ResourceReporter, ARestoreEndsTheReportsUnderWay) {
  play({}, [](Parts& parts) -> Task<> {
    parts.put("u", "one");
    CO_ASSERT_TRUE(co_await parts.wait_for("u one"));
    const auto backup = parts.kube.store().back_up();
    co_await parts.platform_double.stop();
    parts.put("u", "two");
    CO_ASSERT_TRUE(co_await test::eventually([&] { return !parts.delivery->last_error().empty(); },
                                             "an error of the delivery"));
    parts.kube.restore(backup);
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] {
          return parts.kube.open_watches() > 0 && parts.status().count("rollouts", "objects") == 1;
        },
        "a watch and the rollout in the status"));
    CO_ASSERT_OK(parts.platform_double.start());
    // It may have arrived, so the state from before is told once more.
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] {
          return parts.platform_double.reports().size() > 1 && parts.events().back() == "u one";
        },
        "the event of the new phase"));
    EXPECT_TRUE(co_await parts.is_quiet());
    EXPECT_EQ(parts.events().back(), "u one");
  });
}

// etcd was restored while the watch stayed open, so nothing shows that versions are given out again.
TEST(ResourceReporter, AStateThatLooksOlderThanOneThatWasReadIsNotLost) {
  play({}, [](Parts& parts) -> Task<> {
    const auto backup = parts.kube.store().back_up();
    parts.put("old", "one");
    CO_ASSERT_TRUE(co_await parts.wait_for("old one"));
    const auto old = *parts.kube.find(r::kRollouts, {"shop", "web"});
    parts.kube.stall_watches(true);
    EXPECT_TRUE(parts.remove());
    for (const auto* phase : {"one", "two", "three"}) parts.put("new", phase);
    // Reads the objects.
    parts.reporter->changes().claimed(0, 9);
    CO_ASSERT_TRUE(co_await parts.wait_for("new three"));

    parts.kube.store().restore(backup);
    parts.put("newest", "four");
    const auto newest = *parts.kube.find(r::kRollouts, {"shop", "web"});
    parts.kube.stall_watches(false);
    parts.kube.send_on_watches(r::kRollouts,
                               json{{"type", "DELETED"}, {"object", old}}.dump() + "\n" +
                                   json{{"type", "ADDED"}, {"object", newest}}.dump() + "\n");
    EXPECT_TRUE(co_await parts.wait_for("newest four"));
    EXPECT_TRUE(co_await parts.is_quiet());
    EXPECT_EQ(parts.events().back(), "newest four");
  });
}

// -- the full reconcile --

TEST(ResourceReporter, WhatTheLedgerDoesNotKnowHealsWithTheFullReconcile) {
  ResourceReporter::Options options;
  options.reconcile = std::chrono::minutes(10);
  play(options, [](Parts& parts) -> Task<> {
    parts.put("u", "one");
    CO_ASSERT_TRUE(co_await parts.wait_for("u one"));
    parts.platform_double.forget_every(1);
    parts.put("u", "two");
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] { return parts.platform_double.forgotten().size() == 1; }, "a forgotten object"));
    parts.platform_double.forget_every(0);
    CO_ASSERT_TRUE(
        co_await parts.platform_double.wait_for_count(2, deadline_after(std::chrono::minutes(11))));
    EXPECT_EQ(parts.events().back(), "u two");
  });
}

// Its API server does not answer any more, which is why somebody removes it.
TEST(ResourceReporter, AReportUnderWayEndsWithItsCluster) {
  play({}, [](Parts& parts) -> Task<> {
    const std::string server = "https://prod.example.com";
    const auto client =
        std::make_shared<k8s::Client>(co_await asio::this_coro::executor, parts.resolver,
                                      parts.kube.cluster_config(), http::ProxySettings{}, "test");
    parts.reporter->watch_cluster(
        {.server = server, .name = "prod", .client = client, .namespaces = {}});
    parts.put("u", "one");
    CO_ASSERT_TRUE(co_await parts.platform_double.wait_for_count(2, deadline_after(seconds(10))));
    EXPECT_TRUE(co_await parts.is_quiet());
    parts.kube.delay_answers(seconds(60), "/rollouts/web");
    const auto reads = parts.kube.count("GET", "/rollouts/web");
    parts.reporter->changes().report_all(
        [](std::string_view key) { return key.contains("prod.example.com"); });
    CO_ASSERT_TRUE(
        co_await test::eventually([&] { return parts.kube.count("GET", "/rollouts/web") > reads; },
                                  "a read from the managed cluster"));
    parts.reporter->forget_cluster(server);
    // Beyond the end of the read.
    co_await sleep_for(seconds(15));
    EXPECT_TRUE(parts.metrics.expose().contains("gitops_event_reporter_oldest_dirty_seconds 0\n"))
        << parts.metrics.expose();
    parts.kube.end_faults();
  });
}

// It has the URL of the one before. Its states would look older than what was read there, and those that wait
// together would not be reported one by one.
TEST(ResourceReporter, AClusterThatIsBuiltAgainIsNotComparedWithTheOneBefore) {
  play({}, [](Parts& parts) -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    const std::string server = "https://prod.example.com";
    test::FakeKubeApi before(executor);
    test::FakeKubeApi after(executor);
    const auto put = [](test::FakeKubeApi& kube, const std::string& uid, const std::string& phase) {
      kube.put(r::kRollouts, {{"metadata", {{"name", "web"}, {"namespace", "shop"}, {"uid", uid}}},
                              {"status", {{"phase", phase}}}});
    };
    const auto watch = [&](const test::FakeKubeApi& kube) {
      parts.reporter->watch_cluster(
          {.server = server,
           .name = "prod",
           .client = std::make_shared<k8s::Client>(executor, parts.resolver, kube.cluster_config(),
                                                   http::ProxySettings{}, "test"),
           .namespaces = {}});
    };
    for (auto* kube : {&before, &after}) {
      kube->add_type(r::kRollouts);
      CO_ASSERT_OK(kube->start());
    }
    for (int i = 0; i < 20; ++i) put(before, "old", std::to_string(i));
    watch(before);
    CO_ASSERT_TRUE(co_await parts.wait_for("old 19"));
    EXPECT_TRUE(co_await parts.is_quiet());
    parts.reporter->changes().report_all([](std::string_view) { return true; });
    CO_ASSERT_TRUE(co_await test::eventually(
        [&] { return before.count("GET", "/rollouts/web") > 0; }, "a read"));
    EXPECT_TRUE(co_await parts.is_quiet());
    parts.reporter->forget_cluster(server);
    put(after, "new", "one");
    watch(after);
    CO_ASSERT_TRUE(co_await parts.wait_for("new one"));
    EXPECT_EQ(after.count("GET", "/rollouts/web"), 0U);
    parts.reporter->unwatch_cluster(server);
    co_await before.stop();
    co_await after.stop();
  });
}

// As by `kubectl replace --force`. What is due would be forgotten with the cluster, deletions for good.
TEST(ManagedClusters, ASecretThatIsReplacedForgetsNothing) {
  play({}, [](Parts& parts) -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    const std::string server = "https://prod.example.com";
    const k8s::ObjectKey secret{"argocd", "cluster-prod"};
    const auto put_secret = [&] {
      parts.kube.put_secret(secret, {{"name", "prod"}, {"server", server}, {"config", "{}"}},
                            {{"argocd.argoproj.io/secret-type", "cluster"}});
    };
    TaskGroup group(executor);
    ManagedClusters clusters(
        executor, *parts.client, "argocd", {}, *parts.reporter,
        [&parts, executor](const k8s::ClusterConfig&) {
          return std::make_shared<k8s::Client>(
              executor, parts.resolver, parts.kube.cluster_config(), http::ProxySettings{}, "test");
        },
        parts.metrics);
    put_secret();
    clusters.start(group);
    parts.put("u", "one");
    CO_ASSERT_TRUE(co_await parts.platform_double.wait_for_count(2, deadline_after(seconds(10))));
    EXPECT_TRUE(co_await parts.is_quiet());
    EXPECT_TRUE(parts.kube.remove(r::kSecrets, secret));
    put_secret();
    co_await sleep_for(seconds(20));
    EXPECT_THAT(parts.events(), ElementsAre("u one", "u one"));
    const auto key =
        ResourceKey{.cluster = server, .kind = "rollouts", .object = {"shop", "web"}}.to_string();
    EXPECT_TRUE(parts.ledger->known().contains(key));
    EXPECT_TRUE(parts.kube.remove(r::kSecrets, secret));
    EXPECT_TRUE(co_await test::eventually([&] { return !parts.ledger->known().contains(key); },
                                          "the end of the cluster", seconds(20)));
    group.cancel();
    co_await group.join();
  });
}

// Its Secret became unusable. It would be due for as long as that lasts, and the alert tell of a
// control plane that is behind.
TEST(ResourceReporter, AnObjectOfAClusterThatIsNotWatchedIsNotReportedAgain) {
  play({}, [](Parts& parts) -> Task<> {
    const std::string server = "https://prod.example.com";
    const auto client =
        std::make_shared<k8s::Client>(co_await asio::this_coro::executor, parts.resolver,
                                      parts.kube.cluster_config(), http::ProxySettings{}, "test");
    parts.reporter->watch_cluster(
        {.server = server, .name = "prod", .client = client, .namespaces = {}});
    parts.put("u", "one");
    CO_ASSERT_TRUE(co_await parts.platform_double.wait_for_count(2, deadline_after(seconds(10))));
    EXPECT_TRUE(co_await parts.is_quiet());
    const auto key_in = [](const std::string& cluster) {
      return ResourceKey{.cluster = cluster, .kind = "rollouts", .object = {"shop", "web"}}
          .to_string();
    };
    auto& changes = parts.reporter->changes();
    EXPECT_TRUE(co_await changes.report_again(key_in(server)));
    CO_ASSERT_TRUE(co_await parts.platform_double.wait_for_count(3, deadline_after(seconds(10))));
    EXPECT_TRUE(co_await parts.is_quiet());
    parts.reporter->unwatch_cluster(server);
    EXPECT_FALSE(co_await changes.report_again(key_in(server)));
    EXPECT_TRUE(co_await changes.report_again(key_in(std::string(kOwnCluster))));
    CO_ASSERT_TRUE(co_await parts.platform_double.wait_for_count(4, deadline_after(seconds(10))));
  });
}

// It may be away for days, and what a restore brought back would stay on the pages of all clusters.
TEST(ResourceReporter, AnObjectOfAClusterThatIsAwayHoldsUpNoInventory) {
  ResourceReporter::Options options;
  options.queue.dirty.bytes = 1;  // no text is kept: each is read when it is reported
  play(options, [](Parts& parts) -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    const std::string server = "https://prod.example.com";
    test::FakeKubeApi prod(executor);
    prod.add_type(r::kRollouts);
    CO_ASSERT_OK(prod.start());
    prod.fail_next(1'000'000, 500, {}, "/rollouts/far");
    prod.put(r::kRollouts, {{"metadata", {{"name", "far"}, {"namespace", "shop"}, {"uid", "far"}}},
                            {"status", {{"phase", "one"}}}});
    const auto client = std::make_shared<k8s::Client>(
        executor, parts.resolver, prod.cluster_config(), http::ProxySettings{}, "test");
    parts.reporter->watch_cluster(
        {.server = server, .name = "prod", .client = client, .namespaces = {}});
    const auto key =
        ResourceKey{.cluster = server, .kind = "rollouts", .object = {"shop", "far"}}.to_string();
    CO_ASSERT_TRUE(co_await test::eventually([&] { return parts.reporter->changes().sees(key); },
                                             "the object of the managed cluster"));
    co_await prod.stop();
    parts.delivery->history().begin("resource/0/a", "", [](const std::string&) {});
    Resync resync(
        parts.reporter->changes(), *parts.ledger, *parts.delivery, *parts.platform,
        {.is_of_applications = false, .listed = [&parts] { return parts.reporter->listed(); }},
        parts.metrics);
    TaskGroup group(executor);
    group.spawn("resync", [&resync] { return resync.run(); });
    parts.platform_double.acknowledge_with("e:9", "e-9");
    parts.put("u", "one");
    const auto& inventories = parts.platform_double.inventories();
    CO_ASSERT_TRUE(co_await test::eventually([&] { return !inventories.empty(); }, "the inventory",
                                             std::chrono::minutes(4)));
    EXPECT_EQ(inventories.front()["listed"],
              json::array({json{{"cluster", ""}, {"kind", "Rollout"}}}));
    EXPECT_TRUE(inventories.front()["objects"].contains("u"));
    group.cancel();
    co_await group.join();
    parts.reporter->unwatch_cluster(server);
  });
}

// Its first report waits. The credentials in the cluster's Secret are rotated, so another watch begins, whose
// list does not have it.
TEST(ResourceReporter, WhatGoesBetweenTwoWatchesBeforeItsFirstReportIsNotReported) {
  ResourceReporter::Options options;
  options.queue.workers = 1;
  play(options, [](Parts& parts) -> Task<> {
    const std::string server = "https://prod.example.com";
    const auto client =
        std::make_shared<k8s::Client>(co_await asio::this_coro::executor, parts.resolver,
                                      parts.kube.cluster_config(), http::ProxySettings{}, "test");
    const ResourceReporter::ManagedCluster managed{
        .server = server, .name = "prod", .client = client, .namespaces = {}};
    parts.kube.refuse_streaming_lists(true);
    parts.reporter->watch_cluster(managed);
    parts.platform_double.delay_answers(std::chrono::hours(1));
    parts.put("u1", "one", "first");
    CO_ASSERT_TRUE(
        co_await test::eventually([&] { return parts.platform_double.requests().size() == 1; },
                                  "the first event, which holds the only worker"));
    parts.put("u2", "one", "second");
    const auto sees = [&](const char* name) {
      return parts.reporter->changes().sees(
          ResourceKey{.cluster = server, .kind = "rollouts", .object = {"shop", name}}.to_string());
    };
    CO_ASSERT_TRUE(co_await test::eventually([&] { return sees("first") && sees("second"); },
                                             "the objects of the managed cluster"));
    parts.kube.stall_watches(true);
    EXPECT_TRUE(parts.remove("second"));
    parts.reporter->watch_cluster(managed);
    EXPECT_TRUE(
        co_await test::eventually([&] { return !sees("second"); }, "the end of the object"));
    parts.kube.stall_watches(false);
    parts.platform_double.delay_answers(milliseconds(0));
    CO_ASSERT_OK(co_await parts.platform_double.restart());
    CO_ASSERT_TRUE(co_await parts.platform_double.wait_for_count(3, deadline_after(seconds(60))));
    EXPECT_TRUE(co_await parts.is_quiet());
    for (const auto& report : parts.platform_double.reports()) {
      if (report.data.value("cluster", "") != server) continue;
      EXPECT_EQ(report.object["metadata"]["uid"], "u1");
    }
  });
}

// Otherwise the watch of one namespace overwrites what that of another one shows.
TEST(ResourceReporter, EachNamespaceOfAManagedClusterHasMetricsOfItsOwn) {
  test::run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    Parts parts(executor);
    co_await parts.start({});
    const auto client = std::make_shared<k8s::Client>(
        executor, parts.resolver, parts.kube.cluster_config(), http::ProxySettings{}, "test");
    parts.reporter->watch_cluster({.server = "https://prod.example.com",
                                   .name = "prod",
                                   .client = client,
                                   .namespaces = {"shop", "team"}});
    parts.put("uid-1", "Healthy");
    const auto shows = [&](const std::string& label, int objects) {
      return parts.metrics.expose().contains("watch_objects{cluster=\"" + label +
                                             "\",resource=\"rollouts\"} " +
                                             std::to_string(objects));
    };
    EXPECT_TRUE(co_await test::eventually([&] { return shows("prod/shop", 1); },
                                          "the Rollout of the managed cluster", seconds(5)))
        << parts.metrics.expose();
    EXPECT_TRUE(shows("prod/team", 0));
    EXPECT_TRUE(shows("in-cluster", 1));
    co_await parts.stop();
  });
}

}  // namespace
}  // namespace gitops::reporter
