#include "faults/resource_history.hpp"

#include <set>
#include <utility>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/core/encoding.hpp"
#include "faults/history_events.hpp"
#include "support/run_coro.hpp"

namespace gitops::test {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;
namespace r = k8s::resources;

constexpr const char* kManagedToken = "managed-token";
constexpr const char* kFinalizer = "example.com/hold";

}  // namespace

ResourceHistory::ResourceHistory(const Executor& executor, std::uint64_t seed, std::size_t replicas)
    : History(executor, seed, replicas, "resource",
              {{"REPORT_MANAGED_CLUSTERS", "true"}, {"WORKFLOW_NAMESPACES", "sh*"}}),
      managed(executor, {.token = kManagedToken}) {
  set_second(managed);
  for (const bool far : {false, true}) {
    for (const auto* kind : {&r::kRollouts, &r::kAnalysisRuns, &r::kReplicaSets}) {
      for (const auto* name : {"web", "api", "job"}) places_.push_back({far, kind, "shop", name});
    }
  }
  for (const auto* ns : {"argocd", "shop"}) {
    for (const auto* name : {"build", "test"}) places_.push_back({false, &r::kWorkflows, ns, name});
  }
  // Nobody wants to know of these.
  places_.push_back({false, &r::kWorkflows, "other", "build", false});
  places_.push_back({true, &r::kWorkflows, "shop", "build", false});
  places_.push_back({false, &r::kReplicaSets, "shop", "of-a-deployment", false});
}

Task<> ResourceHistory::prepare() {
  for (auto* api : {&kube, &managed}) {
    for (const auto* type : {&r::kRollouts, &r::kAnalysisRuns, &r::kWorkflows}) {
      api->add_type(*type);
    }
  }
  kube.put(r::kNamespaces, {{"metadata", {{"name", "argocd"}}}});
  put_managed_secret(false);
  co_return;
}

// All replicas reach it through the relay of the first one, since its URL identifies it.
std::string ResourceHistory::managed_server() {
  return "http://127.0.0.1:" + std::to_string(pod().relay(Peer::second).port());
}

void ResourceHistory::put_managed_secret(bool unusable) {
  const json config = unusable ? json{{"execProviderConfig", {{"command", "login"}}}}
                               : json{{"bearerToken", kManagedToken}};
  kube.put_secret({"argocd", "cluster-managed"},
                  {{"name", "managed"}, {"server", managed_server()}, {"config", config.dump()}},
                  {{"argocd.argoproj.io/secret-type", "cluster"}});
}

ReceivedEvent ResourceHistory::read(const FakePlatform::Report& report) const {
  return read_resource_event(report);
}

std::size_t ResourceHistory::events_of(std::size_t shard, std::size_t replicas) const {
  std::size_t events = 0;
  for (const auto& place : places_) {
    if (fnv1a_32(place.name) % replicas == shard) ++events;
  }
  return events;
}

// -- changes --

void ResourceHistory::change() {
  const auto place = pick(places_.size());
  if (places_[place].managed && !managed_is_known_) return;
  change(place);
}

void ResourceHistory::change(std::size_t place) {
  const auto found = objects_.find(place);
  if (found == objects_.end()) {
    create(place);
    return;
  }
  auto& object = found->second;
  if (object.deleting && pick(2) == 0) {
    end(place);
    return;
  }
  switch (pick(10)) {
    case 0:
      end(place);
      return;
    case 1:
      end(place);
      create(place);
      return;
    case 2:
      if (object.finalizer) break;
      object.finalizer = true;
      write(place);
      object.deleting = true;
      cluster(places_[place])
          .remove(*places_[place].kind, {places_[place].ns, places_[place].name});
      record(place);
      return;
    case 3:
      // Several phases in a row that end with the first one.
      for (const int phase : {object.phase + 1, object.phase + 2, object.phase}) {
        object.phase = phase;
        object.content = next_content();
        write(place);
      }
      return;
    case 4:
    case 5:
    case 6:
      break;
    default:
      object.phase = static_cast<int>(pick(5));
      break;
  }
  object.content = next_content();
  write(place);
}

void ResourceHistory::change_all() {
  for (auto& [place, object] : objects_) {
    ++figures.changes;
    object.content = next_content();
    write(place);
  }
}

void ResourceHistory::create_all() {
  for (std::size_t place = 0; place < places_.size(); ++place) {
    if (!objects_.contains(place)) create(place);
  }
}

// On the own cluster: nothing says whether the watches of a managed one are open.
void ResourceHistory::make_milestones() {
  for (int i = 0; i < 4; ++i) {
    const auto place = pick(places_.size());
    const auto found = objects_.find(place);
    if (found == objects_.end() || found->second.deleting || places_[place].managed) continue;
    ++found->second.phase;
    found->second.content = next_content();
    // It stays reported, since it was.
    if (pick(4) == 0) found->second.owned = false;
    write(place);
  }
}

void ResourceHistory::create(std::size_t place) {
  objects_[place] = {.uid = "uid-" + std::to_string(++incarnations_),
                     .content = next_content(),
                     .phase = static_cast<int>(pick(5))};
  write(place);
}

void ResourceHistory::end(std::size_t place) {
  figures.allowed.deleted += pods().size() - 1;
  const auto object = objects_.extract(place).mapped();
  const auto& where = places_[place];
  model.remove(object.uid);
  auto& api = cluster(where);
  const k8s::ObjectKey key{where.ns, where.name};
  if (object.finalizer) {
    auto held = api.find(*where.kind, key);
    (*held)["metadata"].erase("finalizers");
    api.put(*where.kind, std::move(*held));
  }
  api.remove(*where.kind, key);
}

void ResourceHistory::finish_deletions() {
  std::vector<std::size_t> held;
  for (const auto& [place, object] : objects_) {
    if (object.deleting) held.push_back(place);
  }
  for (const auto place : held) end(place);
}

void ResourceHistory::write(std::size_t place) {
  const auto& object = objects_.at(place);
  const auto& where = places_[place];
  auto& api = cluster(where);
  const k8s::ObjectKey key{where.ns, where.name};
  json metadata{{"name", where.name}, {"namespace", where.ns}, {"uid", object.uid}};
  if (object.finalizer) metadata["finalizers"] = {kFinalizer};
  if (object.deleting) {
    metadata["deletionTimestamp"] = (*api.find(*where.kind, key))["metadata"]["deletionTimestamp"];
  }
  if (where.kind == &r::kReplicaSets) {
    const bool rollout = where.reported && object.owned;
    json owner{{"apiVersion", rollout ? "argoproj.io/v1alpha1" : "apps/v1"},
               {"kind", rollout ? "Rollout" : "Deployment"},
               {"name", "web"}};
    metadata["ownerReferences"] = json::array({std::move(owner)});
  }
  api.put(*where.kind, {{"apiVersion", where.kind->api_version()},
                        {"kind", where.kind->kind},
                        {"metadata", std::move(metadata)},
                        {"spec", {{"content", object.content}}},
                        {"status",
                         {{"phase", "phase-" + std::to_string(object.phase)},
                          {"availableReplicas", object.phase}}}});
  record(place);
}

// -- the truth --

void ResourceHistory::record(std::size_t place) {
  const auto& object = objects_.at(place);
  const auto& where = places_[place];
  if (!where.reported) return;
  const auto phase = "phase-" + std::to_string(object.phase);
  model.set(object.uid, {.content = object.content,
                         .rest = (where.managed ? managed_server() : std::string("own")) + " " +
                                 where.kind->kind + " " + where.ns + "/" + where.name + " " +
                                 phase + (object.deleting ? " deleting" : ""),
                         .milestone = phase});
}

std::function<void()> ResourceHistory::back_up() {
  return back_up(false);
}

std::function<void()> ResourceHistory::back_up(bool of_managed) {
  return [this, of_managed, content = (of_managed ? managed : kube).store().back_up(),
          before = objects_] {
    const auto now = std::exchange(objects_, {});
    for (const auto& [place, object] : before) {
      if (places_[place].managed == of_managed) objects_.emplace(place, object);
    }
    for (const auto& [place, object] : now) {
      if (places_[place].managed != of_managed) {
        objects_.emplace(place, object);
        continue;
      }
      const auto found = objects_.find(place);
      if (found != objects_.end() && found->second.uid == object.uid) continue;
      figures.allowed.deleted += pods().size() - 1;
      model.remove(object.uid);
    }
    for (const auto& [place, object] : objects_) {
      if (places_[place].managed == of_managed) record(place);
    }
    (of_managed ? managed : kube).restore(content);
  };
}

// -- faults --

History::Kinds ResourceHistory::own_faults() {
  using enum FaultClass;
  return {{"etcd of the managed cluster restored", cluster, [this] { return managed_restored(); }},
          {"watches of the managed cluster", watches, [this] { return managed_watches(); }},
          {"watches of the managed cluster", watches, [this] { return managed_watches(); }},
          {"4xx of the managed cluster", peer, [this] { return managed_refused(); }},
          {"unusable Secret", peer, [this] { return secret_unusable(); }},
          {"removed Secret", cluster, [this] { return secret_removed(); }, true}};
}

void ResourceHistory::end_own_faults() {
  managed.stall_watches(false);
}

Task<> ResourceHistory::managed_restored() {
  const auto restore = back_up(true);
  write_other_objects(managed);
  co_await live(1 + pick(4));
  for (auto& each : pods()) allow_unanswered(each);
  restore();
  co_await live(2);
}

Task<> ResourceHistory::managed_watches() {
  managed.stall_watches(pick(2) == 0);
  co_await live(2);
  if (pick(2) == 0) managed.compact();
  if (pick(2) == 0) {
    managed.cut_watches();
  } else {
    managed.end_watches();
  }
  managed.stall_watches(false);
  co_await live(1);
}

Task<> ResourceHistory::managed_refused() {
  managed.fail_next(1 + pick(12), pick(2) == 0 ? 401 : 403);
  co_await live(3);
  managed.end_faults();
}

// Its objects count as unchanged meanwhile.
Task<> ResourceHistory::secret_unusable() {
  for (auto& each : pods()) allow_unanswered(each);
  put_managed_secret(true);
  co_await live(3);
  put_managed_secret(false);
  co_await live(1);
}

// Its objects are forgotten without an event, and reported again when it is back.
Task<> ResourceHistory::secret_removed() {
  CO_ASSERT_TRUE(co_await settled(kSettle));
  managed_is_known_ = false;
  kube.remove(r::kSecrets, {"argocd", "cluster-managed"});
  TimeLimit time_limit(std::chrono::minutes(5));
  for (std::size_t i = 0; i < replicas(); ++i) {
    auto& each = pods()[i];
    CO_ASSERT_TRUE(co_await each.process().started());
    const auto manages_none = [&each] {
      const auto status = each.process().status();
      return status.count("managed clusters", "secrets") == 0 &&
             status.count("managed clusters", "secrets_of") == 0;
    };
    while (!manages_none()) {
      CO_ASSERT_TRUE(!time_limit.over()) << each.host_name() << " still watches the cluster";
      co_await sleep_for(milliseconds(50));
    }
  }
  co_await live(2);
  // What is deleted before it is reported again is not told: nobody knows it.
  std::set<std::string> forgotten;
  for (const auto& [place, object] : objects_) {
    if (places_[place].managed && places_[place].reported) forgotten.insert(object.uid);
  }
  const auto first = platform.reports().size();
  put_managed_secret(false);
  if (!forgotten.empty()) {
    const FakePlatform::Report* last = nullptr;
    for (TimeLimit more(std::chrono::minutes(5)); last == nullptr && !more.over();) {
      last = co_await platform.wait_for(
          [&](const FakePlatform::Report& report) {
            forgotten.erase(read(report).object);
            return forgotten.empty();
          },
          deadline_after(seconds(1)), first);
    }
    CO_ASSERT_TRUE(last != nullptr) << forgotten.size() << " objects are not reported again";
  }
  managed_is_known_ = true;
  co_await live(1);
}

}  // namespace gitops::test
