#include "event-reporter/shards/failover.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "event-reporter/shards/lease_owner.hpp"

namespace gitops::reporter {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;
using Seconds = std::chrono::duration<double>;

const WallTime kWall = *parse_rfc3339("2030-01-02T03:04:05Z");

const k8s::Labels kLabels = {{"example.com/leases-of", "town"}, {"tier", "shards"}};

std::string lease_name(std::size_t shard) {
  return "shard-" + std::to_string(shard);
}

// An API server reduced to the Leases of one namespace.
class Server {
 public:
  Result<std::string> list(bool all) const {
    std::string items;
    for (const auto& [name, lease] : leases) {
      if (all || is_labelled(name)) items.append(items.empty() ? "" : ",").append(texts.at(name));
    }
    return R"({"kind":"LeaseList","metadata":{},"items":[)" + items + "]}";
  }
  Result<std::string> read(const std::string& name) const {
    if (!leases.contains(name)) return fail(ErrorCode::not_found, "no Lease");
    return texts.at(name);
  }
  Result<std::string> create(const std::string& name, const std::string& object) {
    if (leases.contains(name)) return fail(ErrorCode::conflict, "exists");
    Json lease = Json::parse(object);
    lease["metadata"]["uid"] = "uid-" + std::to_string(version + 1);
    return store(name, std::move(lease));
  }
  Result<std::string> update(const std::string& name, const std::string& object) {
    const auto found = leases.find(name);
    if (found == leases.end()) return fail(ErrorCode::not_found, "no Lease");
    Json lease = Json::parse(object);
    if (lease["metadata"].value("resourceVersion", "") !=
        found->second["metadata"].value("resourceVersion", "")) {
      return fail(ErrorCode::conflict, "changed");
    }
    return store(name, std::move(lease));
  }
  // As kubectl edit does it.
  void edit(const std::string& name, const std::function<void(Json&)>& change) {
    Json lease = leases.at(name);
    change(lease);
    edited = true;
    store(name, std::move(lease));
  }
  bool is_labelled(const std::string& name) const {
    const Json& metadata = leases.at(name)["metadata"];
    const auto labels = metadata.value("labels", Json());
    return labels.is_object() && std::ranges::all_of(kLabels, [&](const auto& label) {
             return labels.value(label.first, Json()) == label.second;
           });
  }
  std::string holder(std::size_t shard) const {
    const auto found = leases.find(lease_name(shard));
    return found == leases.end() ? "" : found->second["spec"].value("holderIdentity", "");
  }

  std::map<std::string, Json> leases;
  std::uint64_t version = 0;
  bool edited = false;

 private:
  std::string store(const std::string& name, Json lease) {
    lease["metadata"]["resourceVersion"] = std::to_string(++version);
    texts[name] = lease.dump();
    leases[name] = std::move(lease);
    return texts[name];
  }
  std::map<std::string, std::string> texts;  // of the Leases
};

// Some processes, each the owner of one Lease and a stand-in for the others, in simulated time that
// starts at 0. Answers take up to `latency`. Checks at every step that nobody holds what another
// holds, and that counting transitions tells who held a shard in between.
class Town {
 public:
  struct Pod {
    std::size_t shard = 0;
    std::string name;
    LeaseOwnerSteps own;
    FailoverSteps others;
    bool lists_all = false;
    std::vector<std::size_t> neighbours;
    bool cut_off = false;    // nothing it sends arrives
    bool suspended = false;  // does nothing at all
    bool busy = false;       // work of what it is asked for back does not end
    std::set<std::size_t> held = {};
  };
  struct Claim {
    std::size_t pod = 0;
    std::size_t shard = 0;
    std::int64_t transitions = 0;
    Clock::time_point at;
  };

  explicit Town(std::size_t size, std::uint64_t seed = 1)
      : random(static_cast<std::minstd_rand::result_type>(seed + 1)), size_(size) {}

  std::size_t rand(std::size_t below) {
    return std::uniform_int_distribution<std::size_t>(0, below - 1)(random);
  }
  Clock::duration rand_time(Clock::duration below) {
    return std::chrono::milliseconds(
        rand(static_cast<std::size_t>(below / std::chrono::milliseconds(1)) + 1));
  }

  // Without labels: as an earlier version.
  void start(std::size_t shard, const k8s::Labels& labels = kLabels) {
    const auto name = "pod-" + std::to_string(shard);
    std::vector<std::size_t> neighbours;
    std::vector<FailoverOptions::Lease> leases;
    for (std::size_t i = 1; i < size_; ++i) {
      neighbours.push_back((shard + i) % size_);
      leases.push_back({lease_name(neighbours.back())});
    }
    pods[shard] = std::make_shared<Pod>(Pod{
        .shard = shard,
        .name = name,
        .own = LeaseOwnerSteps({.key = {"ns", lease_name(shard)},
                                .identity = name,
                                .labels = labels,
                                .lease_duration = 8s,
                                .renew_deadline = 6s,
                                .retry_period = 2s},
                               random()),
        .others = FailoverSteps({.ns = "ns", .leases = leases, .identity = name, .labels = labels}),
        .lists_all = labels.empty(),
        .neighbours = neighbours});
    at(now, [this, pod = pods[shard]] { step_own(pod); });
    at(now, [this, pod = pods[shard]] { step_others(pod); });
  }
  void start_all() {
    for (std::size_t i = 0; i < size_; ++i) start(i);
  }
  // As SIGKILL.
  void kill(std::size_t shard) {
    pods.erase(shard);
    look();
  }
  // As SIGTERM: what it holds is given back.
  void stop(std::size_t shard) {
    auto& pod = *pods.at(shard);
    if (pod.own.stop(now)) give_back(shard, pod.name);
    if (const auto other = pod.others.stop()) give_back(pod.neighbours[*other], pod.name);
    kill(shard);
  }

  void run_until(Clock::duration end) {
    while (!events.empty() && events.begin()->first <= Clock::time_point(end)) {
      const auto event = events.extract(events.begin());
      now = event.key();
      event.mapped()();
      look();
      if (testing::Test::HasFailure()) FAIL() << "at " << Seconds(now.time_since_epoch());
    }
    now = Clock::time_point(end);
    look();
  }
  void run_for(Clock::duration time) { run_until(now.time_since_epoch() + time); }
  // How long it took until the condition held.
  Seconds run_until_true(const std::function<bool()>& condition, Clock::duration limit) {
    const auto start = now;
    while (!condition() && now - start < limit) run_for(50ms);
    EXPECT_TRUE(condition()) << "not within " << Seconds(limit);
    return now - start;
  }

  // The pod that holds the shard.
  std::optional<std::size_t> holder(std::size_t shard) const {
    for (const auto& [ordinal, pod] : pods) {
      if (pod->held.contains(shard)) return ordinal;
    }
    return std::nullopt;
  }
  bool all_home() const {
    for (std::size_t i = 0; i < size_; ++i) {
      if (holder(i) != i) return false;
    }
    return true;
  }

  Server server;
  std::map<std::size_t, std::shared_ptr<Pod>> pods;
  Clock::time_point now{};
  std::minstd_rand random;
  Clock::duration latency = 50ms;
  unsigned lost_answers = 0;  // of 100
  bool away = false;          // the API server
  std::vector<Claim> claims;
  std::size_t requests = 0;
  std::size_t whole_lists = 0;  // without selector

 private:
  using PodPtr = std::shared_ptr<Pod>;

  void at(Clock::time_point when, std::function<void()> what) {
    events.emplace(when, std::move(what));
  }
  WallTime wall() const {
    return kWall + std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch());
  }
  bool alive(const PodPtr& pod) const {
    const auto found = pods.find(pod->shard);
    return found != pods.end() && found->second == pod;
  }
  // False when the pod is gone; one that is suspended comes back later.
  bool can_run(const PodPtr& pod, void (Town::*step)(const PodPtr&)) {
    if (!alive(pod)) return false;
    if (pod->suspended) at(now + 100ms, [this, pod, step] { (this->*step)(pod); });
    return !pod->suspended;
  }

  // Sends a request: it arrives after some time and its answer, or the lack of one, later.
  void send(const PodPtr& pod, Clock::time_point until, std::function<Result<std::string>()> serve,
            std::function<void(Result<std::string>)> answer) {
    ++requests;
    const auto arrives = now + rand_time(latency / 2);
    const auto returns = arrives + rand_time(latency / 2);
    if (pod->cut_off || away || returns > until) {
      if (!pod->cut_off && !away) at(arrives, [serve] { static_cast<void>(serve()); });
      const bool refused = away && rand(2) == 0;  // at once, or silence
      const auto when = refused ? now + 1ms : std::max(until, now);
      at(when, [answer] { answer(fail(ErrorCode::unavailable, "no answer")); });
      return;
    }
    const bool lost = rand(100) < lost_answers;
    at(arrives, [=, this] {
      auto result = serve();
      if (lost) result = fail(ErrorCode::timeout, "lost");
      at(lost ? until : returns, [answer, result] { answer(result); });
    });
  }

  void step_own(const PodPtr& pod) {
    using Kind = k8s::LeaseSteps::Action::Kind;
    if (!can_run(pod, &Town::step_own)) return;
    const auto action = pod->own.next(now, wall());
    if (action.kind == Kind::wait) {
      ASSERT_GT(action.until, now);
      return at(action.until, [this, pod] { step_own(pod); });
    }
    const auto name = lease_name(pod->shard);
    send(
        pod, action.until,
        [this, action, name] {
          if (action.kind == Kind::read) return server.read(name);
          if (action.kind == Kind::create) return server.create(name, action.object);
          return server.update(name, action.object);
        },
        [this, pod](Result<std::string> result) {
          if (pod->suspended) result = fail(ErrorCode::timeout, "asleep");
          pod->own.on_answer(result, now);
          step_own(pod);
        });
  }

  void step_others(const PodPtr& pod) {
    using Kind = FailoverSteps::Action::Kind;
    if (!can_run(pod, &Town::step_others)) return;
    const auto action = pod->others.next(now, wall());
    if (action.kind == Kind::wait) {
      ASSERT_GT(action.until, now);
      return at(action.until, [this, pod] { step_others(pod); });
    }
    if (action.kind == Kind::part) {
      ASSERT_GT(action.until, now);
      return at(pod->busy ? action.until : now + 20ms, [this, pod] {
        pod->others.on_parted();
        step_others(pod);
      });
    }
    if (action.kind == Kind::list && action.all) ++whole_lists;
    const auto name = lease_name(pod->neighbours[action.lease]);
    send(
        pod, action.until,
        [this, action, name, all = action.all || pod->lists_all] {
          if (action.kind == Kind::list) return server.list(all);
          if (action.kind == Kind::create) return server.create(name, action.object);
          return server.update(name, action.object);
        },
        [this, pod, action](Result<std::string> result) {
          if (pod->suspended) result = fail(ErrorCode::timeout, "asleep");
          if (action.kind == Kind::list) {
            pod->others.on_list(result, now);
          } else if (action.kind == Kind::label) {
            pod->others.on_labelled(action.lease, result, now);
          } else {
            pod->others.on_written(result, now);
          }
          step_others(pod);
        });
  }

  // What give_back() does.
  void give_back(std::size_t shard, const std::string& identity) {
    k8s::LeaseView view({"ns", lease_name(shard)}, {}, {}, kWantedBy);
    view.see(*server.read(lease_name(shard)), now);
    if (view.record().holder != identity) return;
    EXPECT_TRUE(server.update(lease_name(shard), view.freed(wall())));
  }

  // Notes who holds what now.
  void look() {
    std::map<std::size_t, std::size_t> holders;
    for (const auto& [ordinal, pod] : pods) {
      std::set<std::size_t> held;
      if (pod->own.leading(now)) held.insert(ordinal);
      if (const auto other = pod->others.held(now)) held.insert(pod->neighbours[*other]);
      for (const auto shard : held) {
        EXPECT_EQ(++holders[shard], 1U) << "shard " << shard << " is held twice";
        if (!pod->held.contains(shard)) note_claim(*pod, shard);
      }
      pod->held = held;
    }
  }
  void note_claim(const Pod& pod, std::size_t shard) {
    const auto index =
        std::ranges::find(pod.neighbours, shard) - pod.neighbours.begin();  // end: its own
    const auto transitions =
        shard == pod.shard ? pod.own.lease().record().transitions
                           : pod.others.lease(static_cast<std::size_t>(index)).record().transitions;
    bool others = false;
    for (auto claim = claims.rbegin(); claim != claims.rend(); ++claim) {
      if (claim->shard != shard) continue;
      if (claim->pod != pod.shard) {
        others = true;
        continue;
      }
      if (others && !server.edited) {
        EXPECT_GE(transitions - claim->transitions, 2) << "of shard " << shard;
      }
      break;
    }
    claims.push_back({pod.shard, shard, transitions, now});
  }

  std::size_t size_;
  std::multimap<Clock::time_point, std::function<void()>> events;
};

// A town in which everybody has been at home for a while.
std::unique_ptr<Town> settled(std::size_t size, std::uint64_t seed = 1,
                              const k8s::Labels& labels = kLabels) {
  auto town = std::make_unique<Town>(size, seed);
  for (std::size_t i = 0; i < size; ++i) {
    town->start(i, labels);
    town->run_for(town->rand_time(2s));
  }
  town->run_for(3s + town->rand_time(2s));
  EXPECT_TRUE(town->all_home());
  return town;
}

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

  Town begin(3);
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
    Town town(4, seed);
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
