#include "faults/application_history.hpp"

#include <algorithm>

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

constexpr const char* kArgoCdToken = "argocd.double.token";
constexpr const char* kFinalizer = "resources-finalizer.argocd.argoproj.io";

std::string name_of(std::size_t number) {
  return "app-" + std::to_string(number);
}

}  // namespace

ApplicationHistory::ApplicationHistory(const Executor& executor, std::uint64_t seed,
                                       std::size_t replicas)
    : History(executor, seed, replicas, "app", {}), argocd(executor, kube) {
  set_second(argocd);
}

Task<> ApplicationHistory::prepare() {
  kube.put_secret({kNamespace, "argocd-token"}, {{"token", kArgoCdToken}});
  for (int revision = 0; revision < 10; ++revision) {
    argocd.set_revision("r" + std::to_string(revision),
                        {{"author", "a"}, {"date", "2026-03-04T09:12:02Z"}, {"message", "m"}});
  }
  co_return;
}

ReceivedEvent ApplicationHistory::read(const FakePlatform::Report& report) const {
  return read_application_event(report);
}

std::size_t ApplicationHistory::events_of(std::size_t shard, std::size_t replicas) const {
  std::size_t events = 0;
  for (std::size_t i = 0; i < kApplications; ++i) {
    if (fnv1a_32(name_of(i)) % replicas == shard) events += 1 + kResources;
  }
  return events;
}

// -- changes --

ApplicationHistory::Place ApplicationHistory::pick_place() {
  // Names repeat in the namespaces and in the applications.
  return {pick_from({"shop", "team"}), "c-" + std::to_string(pick(kResources / 2))};
}

void ApplicationHistory::change() {
  const auto name = name_of(pick(kApplications));
  const auto found = apps_.find(name);
  if (found == apps_.end()) {
    create(name);
    return;
  }
  auto& app = found->second;
  if (app.finalizer) {
    // Removes its resources one by one, then the application.
    if (!app.resources.empty() && pick(3) > 0) {
      app.resources.erase(app.resources.begin());
      write(app);
    } else {
      end(name);
    }
    return;
  }
  const auto place = pick_place();
  switch (pick(17)) {
    case 0:
      app.revision = "r" + std::to_string(pick(10));
      break;
    case 1:
      app.health = pick_from({"Healthy", "Degraded", "Progressing"});
      break;
    case 2:
      app.sync = pick_from({"Synced", "OutOfSync"});
      break;
    case 3:
    case 4:
      change_resource(app, place);
      break;
    case 5:
      // Argo CD does not write the Application for such a change.
      if (app.compared && app.resources.contains(place)) {
        auto& resource = app.resources[place];
        resource.health = pick_from({"Healthy", "Degraded", "Progressing"});
        resource.version = ++versions_;
        write_answers(app);
        record(app);
        return;
      }
      change_resource(app, place);
      break;
    case 6:
    case 7:
      if (app.resources.erase(place) == 0) change_resource(app, place);
      break;
    case 8:
      end(name);
      return;
    case 9:
      end(name);
      create(name);
      return;
    case 10:
      // Several states in a row that end with the first one.
      for (const auto* health : {"Degraded", "Progressing", "Healthy"}) {
        app.health = health;
        write(app);
      }
      break;
    case 11:
      remove_in_two_steps(app);
      return;
    case 12:
      turn(app);
      return;
    case 13:
      app.phase = pick_from({"Succeeded", "Failed", "Running"});
      break;
    case 14:
      app.condition = pick_from({"", "SyncError", "SharedResourceWarning"});
      break;
    case 15:
      app.parent = app.parent.empty() && name > name_of(kParents - 1) ? name_of(pick(kParents))
                                                                      : std::string();
      break;
    default:
      break;
  }
  app.content = next_content();
  write(app);
}

void ApplicationHistory::change_all() {
  for (auto& [name, app] : apps_) {
    if (app.deleting) continue;
    ++figures.changes;
    app.content = next_content();
    for (std::size_t i = 0; i < kResources; ++i) {
      change_resource(app, {i % 2 == 0 ? "shop" : "team", "c-" + std::to_string(i / 2)});
    }
    write(app);
  }
}

void ApplicationHistory::turn_all() {
  for (auto& [name, app] : apps_) turn(app);
}

void ApplicationHistory::create_all() {
  for (std::size_t i = 0; i < kApplications; ++i) {
    if (!apps_.contains(name_of(i))) create(name_of(i));
  }
}

void ApplicationHistory::make_milestones() {
  for (int i = 0; i < 4; ++i) {
    const auto found = apps_.find(name_of(pick(kApplications)));
    if (found == apps_.end() || found->second.finalizer || !found->second.compared) continue;
    auto& app = found->second;
    switch (pick(4)) {
      case 0:
        app.revision = "r" + std::to_string(pick(10));
        break;
      case 1:
        app.sync = app.sync == "Synced" ? "OutOfSync" : "Synced";
        break;
      case 2:
        app.health = app.health == "Healthy" ? "Degraded" : "Healthy";
        break;
      default:
        app.phase = app.phase == "Running" ? "Succeeded" : "Running";
        break;
    }
    app.content = next_content();
    write(app);
  }
}

void ApplicationHistory::turn(App& app) {
  app.sync = app.sync == "Synced" ? "OutOfSync" : "Synced";
  for (auto& [place, one] : app.resources) one.sync = app.sync;
  write(app);
}

void ApplicationHistory::create(const std::string& name) {
  auto& app = apps_[name];
  app = {.name = name,
         .uid = "uid-" + name + "-" + std::to_string(++incarnations_),
         .parent = {},
         .content = next_content()};
  if (name > name_of(kParents - 1) && pick(3) == 0) app.parent = name_of(pick(kParents));
  for (std::size_t i = pick(kResources); i > 0; --i) change_resource(app, pick_place());
  write(app);
  record_children(name);
}

void ApplicationHistory::remove_in_two_steps(App& app) {
  app.finalizer = true;
  write(app);
  app.deleting = true;
  kube.remove(k8s::resources::kApplications, {.ns = kNamespace, .name = app.name});
  record(app);
}

void ApplicationHistory::finish_deletions() {
  std::vector<std::string> held;
  for (const auto& [name, app] : apps_) {
    if (app.finalizer) held.push_back(name);
  }
  for (const auto& name : held) end(name);
}

void ApplicationHistory::end(const std::string& name) {
  figures.allowed.deleted += (pods().size() - 1) * (1 + kResources);
  const auto app = apps_.extract(name).mapped();
  model.remove(identity(app));
  for (const auto& [place, resource] : app.resources) model.remove(identity(app, place));
  const k8s::ObjectKey key{.ns = kNamespace, .name = name};
  if (app.finalizer) {
    auto object = kube.find(k8s::resources::kApplications, key);
    (*object)["metadata"].erase("finalizers");
    kube.put(k8s::resources::kApplications, std::move(*object));
  }
  kube.remove(k8s::resources::kApplications, key);
  record_children(name);
}

void ApplicationHistory::change_resource(App& app, const Place& place) {
  app.resources[place] = {.content = next_content(),
                          .sync = pick_from({"Synced", "OutOfSync"}),
                          .health = pick_from({"Healthy", "Degraded"}),
                          .version = ++versions_};
}

// -- writing --

void ApplicationHistory::write_answers(const App& app) {
  json nodes = json::array();
  json items = json::array();
  for (const auto& [place, resource] : app.resources) {
    if (!app.compared) break;
    const auto version = std::to_string(resource.version);
    const json id{{"kind", "ConfigMap"}, {"namespace", place.first}, {"name", place.second}};
    json node = id;
    node["version"] = "v1";
    node["uid"] = "uid-" + place.second;
    node["resourceVersion"] = version;
    node["health"] = {{"status", resource.health}, {"message", "as of " + version}};
    nodes.push_back(std::move(node));
    json manifest{{"apiVersion", "v1"},
                  {"kind", "ConfigMap"},
                  {"metadata", {{"name", place.second}, {"namespace", place.first}}},
                  {"data", {{"content", resource.content}}}};
    json item = id;
    item["targetState"] = manifest.dump();
    manifest["metadata"]["resourceVersion"] = version;
    item["liveState"] = manifest.dump();
    items.push_back(std::move(item));
  }
  argocd.set_tree(app.name, {{"nodes", std::move(nodes)}});
  argocd.set_managed_resources(app.name, std::move(items));
}

json ApplicationHistory::application(const App& app) const {
  json entries = json::array();
  for (const auto& [place, resource] : app.resources) {
    if (!app.compared) break;
    entries.push_back({{"kind", "ConfigMap"},
                       {"namespace", place.first},
                       {"name", place.second},
                       {"version", "v1"},
                       {"status", resource.sync}});
  }
  json conditions = json::array();
  if (!app.condition.empty()) {
    conditions.push_back({{"type", app.condition}, {"message", message(app)}});
  }
  if (!app.compared) {
    for (const auto* type : {"ComparisonError", "UnknownError"}) {
      conditions.push_back({{"type", type}, {"message", "no comparison"}});
    }
  }
  json metadata{{"name", app.name}, {"namespace", kNamespace}, {"uid", app.uid}};
  if (app.finalizer) metadata["finalizers"] = {kFinalizer};
  if (!app.parent.empty()) {
    metadata["annotations"] = {{"argocd.argoproj.io/tracking-id",
                                app.parent + ":argoproj.io/Application:argocd/" + app.name}};
  }
  return {{"apiVersion", "argoproj.io/v1alpha1"},
          {"kind", "Application"},
          {"metadata", std::move(metadata)},
          {"spec",
           {{"project", "default"},
            {"source", {{"repoURL", "https://git.example.com/x.git"}}},
            {"destination", {{"server", "https://kubernetes.default.svc"}}}}},
          {"status",
           {{"sync", {{"status", app.compared ? app.sync : "Unknown"}, {"revision", app.revision}}},
            {"health", {{"status", app.health}}},
            {"operationState",
             {{"phase", app.phase},
              {"message", "operation of " + app.content},
              {"startedAt", "2026-03-04T09:00:00Z"}}},
            {"conditions", std::move(conditions)},
            {"content", app.content},
            {"resources", std::move(entries)}}}};
}

void ApplicationHistory::write(App& app) {
  app.compared = true;
  write_answers(app);
  auto object = application(app);
  if (app.deleting) {
    const auto before =
        kube.find(k8s::resources::kApplications, {.ns = kNamespace, .name = app.name});
    object["metadata"]["deletionTimestamp"] = (*before)["metadata"]["deletionTimestamp"];
  }
  kube.put(k8s::resources::kApplications, std::move(object));
  record(app);
}

// -- the truth --

std::string ApplicationHistory::identity(const App& app) {
  return identity_of(app.uid, "Application", kNamespace, app.name);
}

std::string ApplicationHistory::identity(const App& app, const Place& place) {
  return identity_of(app.uid, "ConfigMap", place.first, place.second);
}

std::string ApplicationHistory::message(const App& app) const {
  return app.condition + " of " + app.name;
}

std::string ApplicationHistory::errors(const App& app) const {
  std::vector<std::string> errors;
  if (!app.condition.empty()) {
    const auto* level = app.condition.ends_with("Warning") ? "warning" : "error";
    errors.push_back(std::string("sync ") + level + ": " + message(app));
  }
  if (!app.compared) errors.insert(errors.end(), 2, "sync error: no comparison");
  if (apps_.contains(app.parent) && app.phase == "Failed") {
    errors.push_back("sync error: operation of " + app.content);
  }
  for (const auto& [place, resource] : app.resources) {
    if (!app.compared || resource.health != "Degraded") continue;
    errors.push_back("health error: as of " + std::to_string(resource.version) + " in " +
                     place.first + "/" + place.second);
  }
  return describe_errors(std::move(errors));
}

void ApplicationHistory::record(const App& app) {
  std::set<std::string> present;
  for (const auto& [place, resource] : app.resources) {
    present.insert(identity(app, place));
    record_resource(app, place);
  }
  // The others of its resources are gone.
  for (const auto* ns : {"shop", "team"}) {
    for (std::size_t i = 0; i < kResources / 2; ++i) {
      const auto gone = identity(app, {ns, "c-" + std::to_string(i)});
      if (present.contains(gone)) continue;
      model.remove(gone);
      // Argo CD tells no resources now, so the deletion may be told with the next comparison.
      if (!app.compared && !app.deleting) model.hide(gone);
    }
  }
  if (app.deleting) {
    model.remove(identity(app));
    return;
  }
  const auto parent = apps_.find(app.parent);
  const auto manager = parent == apps_.end()
                           ? describe_manager({}, {}, {})
                           : describe_manager(app.parent, kNamespace, parent->second.uid);
  auto milestone = app.revision + " " + (app.compared ? app.sync : "Unknown") + " " + app.health +
                   " " + app.phase;
  model.set(identity(app), {.content = app.content,
                            .rest = milestone + " " + manager + " " + errors(app),
                            .milestone = milestone});
}

void ApplicationHistory::record_resource(const App& app, const Place& place) {
  const auto& resource = app.resources.at(place);
  const auto object = identity(app, place);
  const auto version = std::to_string(resource.version);
  const auto order = HistoryModel::Order::mixed;
  if (app.deleting) {
    // It may be told as being deleted, or not.
    model.remove(object);
    model.hide(object);
    return;
  }
  std::vector<std::string> errors;
  if (resource.health == "Degraded") errors.push_back("health error: as of " + version);
  if (app.compared) {
    model.set(object,
              {.content = resource.content,
               .rest = resource.sync + " " + resource.health + " (as of " + version + ") " +
                       describe_manager(app.name, kNamespace, app.uid) + " " +
                       describe_errors(std::move(errors))},
              order);
  } else {
    model.hide(object);
  }
}

void ApplicationHistory::record_children(const std::string& parent) {
  for (const auto& [name, app] : apps_) {
    if (app.parent == parent) record(app);
  }
}

std::function<void()> ApplicationHistory::back_up() {
  return [this, cluster = kube.store().back_up(), before = apps_] {
    const auto now = std::exchange(apps_, before);
    for (const auto& [name, app] : now) {
      const auto found = apps_.find(name);
      if (found != apps_.end() && found->second.uid == app.uid) continue;
      figures.allowed.deleted += (pods().size() - 1) * (1 + kResources);
      model.remove(identity(app));
      for (const auto& [place, resource] : app.resources) model.remove(identity(app, place));
    }
    for (const auto& [name, app] : apps_) {
      write_answers(app);
      record(app);
    }
    kube.restore(cluster);
  };
}

// -- faults --

History::Kinds ApplicationHistory::own_faults() {
  using enum FaultClass;
  return {{"500 of Argo CD", peer, [this] { return argocd_burst(); }},
          {"404 of Argo CD", peer, [this] { return argocd_not_found(); }},
          {"404 of Argo CD", peer, [this] { return argocd_not_found(); }},
          {"ComparisonError", peer, [this] { return not_compared(); }},
          {"ComparisonError", peer, [this] { return not_compared(); }},
          {"gap in Argo CD's answers", peer, [this] { return gap(); }}};
}

// The answer of Argo CD for any error of one application.
Task<> ApplicationHistory::argocd_burst() {
  argocd.fail_next(1 + pick(12), 500);
  co_await live(3);
  argocd.end_faults();
}

Task<> ApplicationHistory::argocd_not_found() {
  argocd.fail_next(
      1 + pick(12), 404, {},
      pick_from({"", "/resource-tree", "/managed-resources", "/revisions/", "/api/version"}));
  co_await live(3);
  argocd.end_faults();
}

// Git and the cluster of some applications are away, so Argo CD knows none of their resources.
Task<> ApplicationHistory::not_compared() {
  std::vector<std::string> chosen;
  for (const auto& [name, app] : apps_) {
    if (!app.finalizer && pick(3) == 0) chosen.push_back(name);
  }
  for (const auto& name : chosen) {
    const auto found = apps_.find(name);
    if (found == apps_.end() || found->second.finalizer) continue;
    found->second.content = next_content();
    found->second.compared = false;
    // Argo CD's answers change first.
    write_answers(found->second);
    if (pick(2) == 0) co_await sleep_for(milliseconds(pick(30)));
    // Another fault may have changed it meanwhile.
    const auto now = apps_.find(name);
    if (now == apps_.end() || now->second.compared || now->second.finalizer) continue;
    kube.put(k8s::resources::kApplications, application(now->second));
    record(now->second);
  }
  co_await live(3);
  if (pick(2) == 0 && !process_is_taken()) {
    auto& pod = pick_pod();
    kill(pod);
    start_pod(pod);
    co_await live(2);
  }
  if (pick(4) == 0) co_return;  // stays so until its next change
  for (const auto& name : chosen) {
    const auto found = apps_.find(name);
    if (found != apps_.end() && !found->second.compared) write(found->second);
  }
  co_await live(1);
}

// Argo CD does not answer one question about an application, for longer than its event waits.
Task<> ApplicationHistory::gap() {
  const auto found = apps_.find(name_of(pick(kApplications)));
  if (found == apps_.end() || found->second.finalizer) co_return;
  const auto name = found->first;
  argocd.fail_next(
      100'000, pick(2) == 0 ? 500 : 404, {},
      "/applications/" + name + pick_from({"/resource-tree", "/managed-resources", "/"}));
  auto& app = found->second;
  app.content = next_content();
  write(app);
  const auto content = app.content;
  const auto own = identity(app);
  // By a change of another fault, or by a restore: it need not be told then.
  const auto is_superseded = [this, name, content] {
    const auto now = apps_.find(name);
    return now == apps_.end() || now->second.content != content;
  };
  const auto first = platform.reports().size();
  const FakePlatform::Report* told = nullptr;
  for (TimeLimit time_limit(kSettle); told == nullptr && !is_superseded() && !time_limit.over();) {
    told = co_await platform.wait_for(
        [this, content, own](const FakePlatform::Report& report) {
          const auto event = read(report);
          if (!event.state) return false;
          // A control plane that answers 413 gets the event without its content.
          return event.state->content == content ||
                 (event.state->content.empty() && event.object == own);
        },
        deadline_after(seconds(1)), first);
    // A fault of the control plane at the same time may have refused it for good.
    if (told == nullptr && may_be_refused() && !process_is_taken()) co_await retry_refused();
  }
  argocd.end_faults();
  if (is_superseded()) co_return;
  const auto states = told != nullptr ? std::string() : co_await states_of_replicas();
  CO_ASSERT_TRUE(told != nullptr) << name << ": its own event waits for Argo CD\n" << states;
  // The next attempt may be minutes away, unless it changes.
  const auto still = apps_.find(name);
  if (still == apps_.end() || still->second.finalizer) co_return;
  still->second.content = next_content();
  write(still->second);
}

}  // namespace gitops::test
