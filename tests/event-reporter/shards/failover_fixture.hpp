#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "event-reporter/shards/failover.hpp"
#include "event-reporter/shards/lease_owner.hpp"

// Pods that hold and take over shards, on an API server in memory and a clock of the test.
namespace gitops::reporter {

using namespace std::chrono_literals;

using Json = nlohmann::json;
using Seconds = std::chrono::duration<double>;

inline const WallTime kWall = *parse_rfc3339("2030-01-02T03:04:05Z");

inline const k8s::Labels kLabels = {{"example.com/leases-of", "town"}, {"tier", "shards"}};

inline std::string lease_name(std::size_t shard) {
  return "shard-" + std::to_string(shard);
}

// An API server reduced to the Leases of one namespace.
class LeaseServer {
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
class FailoverFixture {
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

  explicit FailoverFixture(std::size_t size, std::uint64_t seed = 1)
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

  // The content of a Lease, without its times.
  [[nodiscard]] std::string describe(const std::string& name) const {
    const Json& lease = server.leases.at(name);
    std::string text = "holder=" + lease["spec"].value("holderIdentity", "") +
                       " transitions=" + lease["spec"].value("leaseTransitions", Json(0)).dump();
    const auto annotations = lease["metadata"].value("annotations", Json::object());
    if (annotations.contains(kWantedBy)) {
      text += " wanted-by=" + annotations[kWantedBy].get<std::string>();
    }
    return text;
  }

  LeaseServer server;
  std::map<std::size_t, std::shared_ptr<Pod>> pods;
  Clock::time_point now{};
  std::minstd_rand random;
  Clock::duration latency = 50ms;
  unsigned lost_answers = 0;  // of 100
  bool away = false;          // the API server
  std::vector<Claim> claims;
  std::size_t requests = 0;
  std::size_t whole_lists = 0;  // without selector
  // Receives claims, releases and writes that are more than renewals. May be empty.
  std::function<void(std::string)> trace;

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
  bool can_run(const PodPtr& pod, void (FailoverFixture::*step)(const PodPtr&)) {
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
    if (!can_run(pod, &FailoverFixture::step_own)) return;
    const auto action = pod->own.next(now, wall());
    if (action.kind == Kind::wait) {
      ASSERT_GT(action.until, now);
      return at(action.until, [this, pod] { step_own(pod); });
    }
    const auto name = lease_name(pod->shard);
    send(
        pod, action.until,
        [this, action, name, pod] {
          if (action.kind == Kind::read) return server.read(name);
          return write(*pod, name, action.kind == Kind::create, action.object);
        },
        [this, pod](Result<std::string> result) {
          if (pod->suspended) result = fail(ErrorCode::timeout, "asleep");
          pod->own.on_answer(result, now);
          step_own(pod);
        });
  }

  void step_others(const PodPtr& pod) {
    using Kind = FailoverSteps::Action::Kind;
    if (!can_run(pod, &FailoverFixture::step_others)) return;
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
        [this, action, name, pod, all = action.all || pod->lists_all] {
          if (action.kind == Kind::list) return server.list(all);
          return write(*pod, name, action.kind == Kind::create, action.object);
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

  // Writes a Lease on the server.
  Result<std::string> write(const Pod& pod, const std::string& name, bool create,
                            const std::string& object) {
    auto result = create ? server.create(name, object) : server.update(name, object);
    if (trace && !result) {
      trace(pod.name + " " + name + ": " + std::string(to_string(result.error().code)));
    } else if (trace) {
      note(pod, name, describe(name));
    }
    return result;
  }
  // Traces a write, unless it only renewed the Lease.
  void note(const Pod& pod, const std::string& name, const std::string& content) {
    if (std::exchange(noted_[name], content) != content) {
      trace(pod.name + " " + name + ": " + content);
    }
  }

  // What give_back() does.
  void give_back(std::size_t shard, const std::string& identity) {
    k8s::LeaseView view({"ns", lease_name(shard)}, {}, {}, kWantedBy);
    view.see(*server.read(lease_name(shard)), now);
    if (view.record().holder != identity) return;
    EXPECT_TRUE(server.update(lease_name(shard), view.freed(wall(), now)));
    if (trace) trace(identity + " gives back " + lease_name(shard));
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
      for (const auto shard : pod->held) {
        if (trace && !held.contains(shard)) trace(pod->name + " ends work on " + lease_name(shard));
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
    if (trace) trace(pod.name + " begins work on " + lease_name(shard));
  }

  std::size_t size_;
  std::multimap<Clock::time_point, std::function<void()>> events;
  std::map<std::string, std::string> noted_;  // content by Lease
};

// A town in which everybody has been at home for a while.
inline std::unique_ptr<FailoverFixture> settled(std::size_t size, std::uint64_t seed = 1,
                                                const k8s::Labels& labels = kLabels) {
  auto fixture = std::make_unique<FailoverFixture>(size, seed);
  for (std::size_t i = 0; i < size; ++i) {
    fixture->start(i, labels);
    fixture->run_for(fixture->rand_time(2s));
  }
  fixture->run_for(3s + fixture->rand_time(2s));
  EXPECT_TRUE(fixture->all_home());
  return fixture;
}

}  // namespace gitops::reporter
