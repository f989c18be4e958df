#include "k8s-client/lease.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "doubles/fake_kube_api.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"

namespace gitops::k8s {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;
using Kind = LeaseSteps::Action::Kind;
using test::run_in_test_time;

const ObjectKey kKey{"default", "shard-0"};
constexpr Clock::time_point kNow(1s);
const WallTime kWall = *parse_rfc3339("2030-01-02T03:04:05Z");

// An API server with one Lease, and the candidates of a test. All times count from 0.
class Table {
 public:
  struct Candidate {
    LeaseSteps steps;
    Clock::time_point next{};
    bool cut_off = false;  // its requests fail

    explicit Candidate(const std::string& name)
        : steps({.key = kKey, .identity = name}, std::hash<std::string>()(name)) {}
  };

  Candidate& add(const std::string& name) {
    return *candidates.emplace_back(std::make_unique<Candidate>(name));
  }

  // Runs the candidates in the order of their times, up to `end`.
  void run_until(Clock::duration end) {
    while (true) {
      Candidate* first = nullptr;
      for (const auto& candidate : candidates) {
        if (first == nullptr || candidate->next < first->next) first = candidate.get();
      }
      if (first == nullptr || first->next > Clock::time_point(end)) break;
      now = std::max(now, first->next);
      step(*first);
      ASSERT_LE(leaders(), 1) << "at " << std::chrono::duration<double>(now.time_since_epoch());
    }
    now = Clock::time_point(end);
  }

  int leaders() const {
    int count = 0;
    for (const auto& candidate : candidates) count += candidate->steps.leading(now) ? 1 : 0;
    return count;
  }

  void step(Candidate& candidate) {
    const auto action = candidate.steps.next(
        now, kWall + std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()));
    if (action.kind == Kind::wait) {
      ASSERT_GT(action.until, now);
      candidate.next = action.until;
      return;
    }
    ++requests;
    candidate.steps.on_answer(
        candidate.cut_off ? fail(ErrorCode::unavailable, "no connection") : serve(action), now);
  }

  Result<std::string> serve(const LeaseSteps::Action& action) {
    if (action.kind == Kind::read) {
      if (lease.is_null()) return fail(ErrorCode::not_found, "no Lease");
      return lease.dump();
    }
    Json sent = Json::parse(action.object);
    const auto stored = lease.is_null() ? Json() : lease["metadata"]["resourceVersion"];
    const bool creates = action.kind == Kind::create;
    if (creates != lease.is_null()) return fail(ErrorCode::conflict, "");
    if (!creates && sent["metadata"].value("resourceVersion", Json()) != stored) {
      return fail(ErrorCode::conflict, "");
    }
    sent["metadata"]["resourceVersion"] = std::to_string(++version);
    lease = sent;
    return lease.dump();
  }

  const Json& spec() { return lease["spec"]; }

  std::vector<std::unique_ptr<Candidate>> candidates;
  Clock::time_point now{};
  Json lease;
  int version = 0;
  int requests = 0;
};

TEST(LeaseSteps, CreatesTheLeaseAndRenewsIt) {
  Table table;
  auto& a = table.add("a");
  table.run_until(0s);
  EXPECT_TRUE(a.steps.leading(table.now));
  EXPECT_EQ(table.spec(), Json::parse(R"({"holderIdentity":"a","leaseDurationSeconds":15,
    "acquireTime":"2030-01-02T03:04:05.000000Z","renewTime":"2030-01-02T03:04:05.000000Z",
    "leaseTransitions":0})"));
  table.run_until(60s);
  EXPECT_TRUE(a.steps.leading(table.now));
  EXPECT_EQ(table.spec()["acquireTime"], "2030-01-02T03:04:05.000000Z");
  EXPECT_EQ(table.spec()["renewTime"], "2030-01-02T03:05:05.000000Z");
  EXPECT_EQ(table.requests, 2 + 30) << "one update every two seconds";
}

TEST(LeaseSteps, AnotherWaitsWhileTheHolderRenews) {
  Table table;
  auto& a = table.add("a");
  auto& b = table.add("b");
  table.run_until(300s);
  EXPECT_TRUE(a.steps.leading(table.now));
  EXPECT_FALSE(b.steps.leading(table.now));
  EXPECT_EQ(b.steps.lease().record().holder, "a");
  EXPECT_EQ(table.spec()["leaseTransitions"], 0);
}

TEST(LeaseSteps, AnotherTakesOverFromADeadHolder) {
  Table table;
  table.add("a");
  auto& b = table.add("b");
  table.run_until(20s);
  table.candidates.erase(table.candidates.begin());
  table.run_until(33s);
  EXPECT_FALSE(b.steps.leading(table.now)) << "the record changed less than 15 s ago";
  table.run_until(45s);
  EXPECT_TRUE(b.steps.leading(table.now));
  EXPECT_EQ(table.spec()["holderIdentity"], "b");
  EXPECT_EQ(table.spec()["leaseTransitions"], 1);
}

TEST(LeaseSteps, ACutOffHolderStopsBeforeAnotherStarts) {
  Table table;
  auto& a = table.add("a");
  auto& b = table.add("b");
  table.run_until(20s);
  a.cut_off = true;
  table.run_until(31s);
  EXPECT_FALSE(a.steps.leading(table.now));
  EXPECT_FALSE(b.steps.leading(table.now));
  table.run_until(60s);  // run_until checks that there is never more than one
  EXPECT_TRUE(b.steps.leading(table.now));
  a.cut_off = false;
  table.run_until(120s);
  EXPECT_TRUE(b.steps.leading(table.now));
  EXPECT_EQ(a.steps.lease().record().holder, "b");
}

TEST(LeaseSteps, ASuspendedHolderDoesNotLeadWhenItWakes) {
  Table table;
  auto& a = table.add("a");
  table.run_until(1s);
  EXPECT_TRUE(a.steps.leading(Clock::time_point(9s)));
  EXPECT_FALSE(a.steps.leading(Clock::time_point(10s)));
}

// Sequences of events are drawn above the renewTime of the holder before.
TEST(LeaseView, RenewTimeNeverGoesBackWhateverTheSkewOfTheWriters) {
  LeaseView view(kKey);
  const auto renewed = [&view](const std::string& object) {
    view.see(object, kNow);
    return *parse_rfc3339(view.record().renewed);
  };
  const auto ahead = renewed(view.taken("ahead", 15s, kWall + 7h, kNow));
  EXPECT_EQ(ahead, kWall + 7h);
  const auto taken = renewed(view.taken("right", 15s, kWall, kNow));
  EXPECT_GT(taken, ahead);
  const auto again = renewed(view.taken("right", 15s, kWall + 2s, kNow));
  EXPECT_GT(again, taken);
  const auto freed = renewed(view.freed(kWall + 3s, kNow));
  EXPECT_GT(freed, again);
  EXPECT_EQ(renewed(view.taken("right", 15s, kWall + 8h, kNow)), kWall + 8h)
      << "else it is the clock";
}

// By a restore of the cluster, or by a deletion.
TEST(LeaseView, RenewTimeDoesNotGoBackWithTheLease) {
  LeaseView view(kKey);
  const auto renewed = [&view](const std::string& object) {
    view.see(object, kNow);
    return *parse_rfc3339(view.record().renewed);
  };
  const auto before = view.taken("right", 15s, kWall, kNow);
  EXPECT_EQ(renewed(before), kWall);
  EXPECT_EQ(renewed(view.taken("ahead", 15s, kWall + 7h, kNow)), kWall + 7h);
  EXPECT_EQ(renewed(before), kWall);
  EXPECT_EQ(view.newest_renewal(), kWall + 7h);
  EXPECT_GT(renewed(view.taken("right", 15s, kWall + 2s, kNow)), kWall + 7h);
  view.see_none(Clock::time_point(2s));
  EXPECT_GT(renewed(view.taken("right", 15s, kWall + 3s, kNow)), kWall + 7h);
  LeaseView next(kKey, {}, view.newest_renewal());
  next.see(before, Clock::time_point(3s));
  EXPECT_EQ(next.newest_renewal(), view.newest_renewal());
}

// A claim that a restore undid before others saw it: the next claim must not get the same time.
TEST(LeaseView, ARenewTimeAheadOfTheClocksMovesWithTime) {
  LeaseView first(kKey);
  const auto ahead = first.taken("ahead", 15s, kWall + 7h, kNow);
  first.see(ahead, kNow);
  auto second = first;
  const auto claim = [](LeaseView& view, std::chrono::seconds after) {
    const auto now = kNow + after;
    view.see(view.taken("right", 15s, kWall + after, now), now);
    return *parse_rfc3339(view.record().renewed);
  };
  EXPECT_EQ(claim(first, 16s), kWall + 7h + 8s);
  EXPECT_EQ(claim(first, 18s), kWall + 7h + 9s);
  EXPECT_EQ(claim(second, 20s), kWall + 7h + 10s);
  EXPECT_EQ(claim(second, 20s), kWall + 7h + 10s + LeaseView::kLeastStep);
  EXPECT_EQ(claim(second, 15h), kWall + 15h) << "the clocks have caught up";
}

TEST(LeaseSteps, NeverComparesClocksOfOthers) {
  Table table;
  table.lease = Json::parse(R"({"metadata":{"resourceVersion":"x"},"spec":{"holderIdentity":"other",
    "leaseDurationSeconds":15,"renewTime":"1999-01-01T00:00:00.000000Z"}})");
  auto& b = table.add("b");
  table.run_until(14s);
  EXPECT_FALSE(b.steps.leading(table.now)) << "ancient by its own words, but new to us";
  table.run_until(20s);
  EXPECT_TRUE(b.steps.leading(table.now));
}

TEST(LeaseSteps, HonoursTheDurationOfTheRecord) {
  Table table;
  table.lease = Json::parse(R"({"metadata":{},"spec":{"holderIdentity":"other",
    "leaseDurationSeconds":60}})");
  auto& b = table.add("b");
  table.run_until(59s);
  EXPECT_FALSE(b.steps.leading(table.now));
  table.run_until(66s);
  EXPECT_TRUE(b.steps.leading(table.now));
}

TEST(LeaseSteps, TakesOverAtOnceAfterARelease) {
  Table table;
  auto& a = table.add("a");
  auto& b = table.add("b");
  table.run_until(20s);
  EXPECT_TRUE(a.steps.stop(table.now));
  EXPECT_FALSE(a.steps.leading(table.now));
  ASSERT_TRUE(table.serve(
      {.kind = Kind::update, .object = a.steps.lease().freed(kWall, table.now), .until = {}}));
  EXPECT_EQ(table.spec()["holderIdentity"], "");
  EXPECT_EQ(table.spec()["leaseDurationSeconds"], 1);
  table.candidates.erase(table.candidates.begin());
  table.run_until(25s);
  EXPECT_TRUE(b.steps.leading(table.now));
}

TEST(LeaseSteps, HasNothingToGiveBackWhenItNeverHeldIt) {
  Table table;
  table.add("a");
  auto& b = table.add("b");
  table.run_until(20s);
  EXPECT_FALSE(b.steps.stop(table.now));
}

TEST(LeaseSteps, LooksAgainWhenItStopsBeforeAnAnswer) {
  Table table;
  auto& a = table.add("a");
  a.steps.on_answer(table.serve(a.steps.next(table.now, kWall)), table.now);
  const auto create = a.steps.next(table.now, kWall);
  ASSERT_EQ(create.kind, Kind::create);
  ASSERT_TRUE(table.serve(create));
  EXPECT_TRUE(a.steps.stop(table.now)) << "the answer never came, but the Lease is ours";
}

TEST(LeaseSteps, TheNextProcessOfTheSamePodTakesOverAtOnce) {
  Table table;
  table.add("pod-0");
  table.run_until(20s);
  table.candidates.clear();
  auto& next = table.add("pod-0");
  table.run_until(20s);
  EXPECT_TRUE(next.steps.leading(table.now));
  EXPECT_EQ(table.spec()["leaseTransitions"], 0);
}

TEST(LeaseSteps, KeepsWhatOthersWroteOnTheLease) {
  Table table;
  auto& a = table.add("a");
  table.run_until(1s);
  table.lease["metadata"]["labels"] = {{"team", "shop"}};
  table.lease["metadata"]["resourceVersion"] = "77";
  table.run_until(9s);
  EXPECT_TRUE(a.steps.leading(table.now));
  EXPECT_EQ(table.lease["metadata"]["labels"]["team"], "shop");
  EXPECT_EQ(table.spec()["renewTime"], "2030-01-02T03:04:13.000000Z");
}

TEST(LeaseSteps, RecreatesADeletedLease) {
  Table table;
  auto& a = table.add("a");
  table.run_until(5s);
  table.lease = nullptr;
  table.run_until(30s);
  EXPECT_TRUE(a.steps.leading(table.now));
  EXPECT_EQ(table.spec()["holderIdentity"], "a");
}

TEST(LeaseSteps, ADeletedLeaseIsNotFreeBeforeItsHoldersTimeIsOver) {
  Table table;
  table.add("a");
  auto& b = table.add("b");
  table.run_until(20s);
  table.candidates.erase(table.candidates.begin());
  table.lease = nullptr;
  table.run_until(30s);
  EXPECT_FALSE(b.steps.leading(table.now)) << "who held it may not know yet";
  table.run_until(45s);
  EXPECT_TRUE(b.steps.leading(table.now));
}

TEST(LeaseSteps, ACandidateAsksForNothing) {
  Table table;
  table.add("a");
  table.add("b");
  table.run_until(10s);
  EXPECT_FALSE(table.lease["metadata"].contains("annotations"));
}

TEST(LeaseSteps, AC24_NeitherWaitsForEverNorCutsTheHolderShort) {
  for (const auto& [duration, waits] : {std::pair{2147483647, 150s}, {0, 15s}, {1, 15s}}) {
    Table table;
    table.lease = {{"metadata", Json::object()},
                   {"spec", {{"holderIdentity", "other"}, {"leaseDurationSeconds", duration}}}};
    auto& b = table.add("b");
    table.run_until(waits - 1s);
    EXPECT_FALSE(b.steps.leading(table.now)) << duration;
    table.run_until(waits + 5s);
    EXPECT_TRUE(b.steps.leading(table.now)) << duration;
  }
}

TEST(LeaseSteps, AC24_CountsTransitionsWithinWhatTheServerTakes) {
  for (const std::int64_t count :
       {std::int64_t{2147483647}, std::int64_t{-1}, std::numeric_limits<std::int64_t>::max(),
        std::numeric_limits<std::int64_t>::min()}) {
    Table table;
    table.lease = {{"metadata", Json::object()}, {"spec", {{"leaseTransitions", count}}}};
    table.add("a");
    table.run_until(1s);
    EXPECT_EQ(table.spec()["holderIdentity"], "a");
    EXPECT_EQ(table.spec()["leaseTransitions"], 0) << count;
  }
}

TEST(LeaseSteps, OneOfManyWins) {
  Table table;
  for (int i = 0; i < 20; ++i) table.add("candidate-" + std::to_string(i));
  table.run_until(60s);
  EXPECT_EQ(table.leaders(), 1);
  EXPECT_EQ(table.spec()["leaseTransitions"], 0);
}

TEST(LeaseSteps, SurvivesALeaseThatIsNone) {
  for (const char* text : {"", "[]", "{}", R"({"metadata":{},"spec":5})",
                           R"({"metadata":{},"spec":{"holderIdentity":{},"leaseDurationSeconds":"x",
                              "leaseTransitions":-9e99}})"}) {
    LeaseSteps steps({.key = kKey, .identity = "a"}, 1);
    Clock::time_point now;
    for (int i = 0; i < 10; ++i) {
      const auto action = steps.next(now, kWall);
      if (action.kind == Kind::wait) {
        ASSERT_GT(action.until, now);
        now = action.until;
      } else {
        steps.on_answer(std::string(text), now);
      }
    }
  }
}

// Against a server: the driver.

struct Candidate {
  Candidate(const Executor& executor, const ClusterConfig& config, const std::string& name)
      : client(executor, resolver, config, {}, "test"),
        group(executor),
        election(client,
                 {.key = kKey,
                  .identity = name,
                  .lease_duration = 3s,
                  .renew_deadline = 2s,
                  .retry_period = 1s},
                 [this](bool leading) { told.push_back(leading); }) {
    election.start(group);
  }
  Task<> stop() {
    group.cancel();
    co_await group.join();
  }

  Metrics metrics;
  net::Resolver resolver{metrics};
  Client client;
  TaskGroup group;
  std::vector<bool> told;
  LeaseElection election;
};

TEST(LeaseElection, GivesTheLeaseBackWhenItStops) {
  run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    test::FakeKubeApi api(executor);
    CO_ASSERT_OK(api.start());
    Candidate a(executor, api.cluster_config(), "a");
    EXPECT_TRUE(co_await api.wait_until([&] { return a.election.leading(); }, deadline_after(3s)));
    Candidate b(executor, api.cluster_config(), "b");
    EXPECT_TRUE(
        co_await api.wait_until([&] { return b.election.holder() == "a"; }, deadline_after(3s)));

    co_await a.stop();
    EXPECT_FALSE(a.election.leading());
    EXPECT_EQ(a.told, (std::vector{true, false}));
    const auto lease = api.find(resources::kLeases, kKey);
    CO_ASSERT_TRUE(lease);
    EXPECT_EQ((*lease)["spec"]["holderIdentity"], "");
    EXPECT_TRUE(co_await api.wait_until([&] { return b.election.leading(); }, deadline_after(3s)));
    co_await b.stop();
    co_await api.stop();
  });
}

TEST(LeaseElection, StopsLeadingWhenTheServerStaysAway) {
  run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    test::FakeKubeApi api(executor);
    CO_ASSERT_OK(api.start());
    Candidate a(executor, api.cluster_config(), "a");
    EXPECT_TRUE(co_await api.wait_until([&] { return a.election.leading(); }, deadline_after(3s)));
    api.delay_answers(1h);
    EXPECT_TRUE(
        co_await test::eventually([&] { return a.told.size() >= 2; }, "the lost Lease", 4s));
    EXPECT_EQ(a.told, (std::vector{true, false}));
    co_await a.stop();
    co_await api.stop();
  });
}

}  // namespace
}  // namespace gitops::k8s
