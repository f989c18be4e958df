#include "faults/history.hpp"

#include <algorithm>
#include <csignal>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/core/encoding.hpp"
#include "support/run_coro.hpp"

namespace gitops::test {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

constexpr const char* kArgoCdToken = "argocd.double.token";
// Longer than an acknowledgement needs to reach the ledger's file, even on a busy machine.
constexpr auto kUncommitted = milliseconds(500);
constexpr const char* kFinalizer = "resources-finalizer.argocd.argoproj.io";

}  // namespace

History::History(const Executor& executor, std::uint64_t seed, std::size_t replicas)
    : kube(executor),
      argocd(executor, kube),
      platform(executor),
      replicas_(replicas),
      random_(seed),
      shard_faults_(seed) {
  // A limit on the file size plays a full disk; without SIGXFSZ a write beyond it is an error.
  std::signal(SIGXFSZ, SIG_IGN);
}

Task<> History::start() {
  CO_ASSERT_OK(kube.start());
  CO_ASSERT_OK(argocd.start());
  CO_ASSERT_OK(platform.start());
  kube.put_secret({"argocd", "argocd-token"}, {{"token", kArgoCdToken}});
  for (int revision = 0; revision < 10; ++revision) {
    argocd.set_revision("r" + std::to_string(revision),
                        {{"author", "a"}, {"date", "2026-03-04T09:12:02Z"}, {"message", "m"}});
  }
  const auto executor = co_await asio::this_coro::executor;
  const std::size_t most = replicas_ == 1 ? 1 : kMostReplicas;
  for (std::size_t i = 0; i < most; ++i) pods_.emplace_back(executor, i, kube, peers_);
  for (std::size_t i = 0; i < replicas_; ++i) start_pod(pods_[i]);
  for (std::size_t i = 0; i < replicas_; ++i) {
    CO_ASSERT_TRUE(co_await pods_[i].process().wait_for_readyz("ready\n"))
        << pods_[i].process().last_readyz();
  }
}

std::string History::logs() {
  std::string out = "faults: " + log_ + "\n";
  for (const auto& lines : {model.lost(), model.wrong()}) {
    for (const auto& line : lines) {
      out += line + "\n" + model.trail(line.substr(0, line.find_first_of(" :")));
    }
  }
  for (auto& pod : pods_) {
    if (!pod.runs()) continue;
    const auto log = pod.process().log();
    out += "the end of the last log of " + pod.host_name() + ":\n" +
           log.substr(log.size() - std::min<std::size_t>(log.size(), 20'000)) + "\n";
  }
  return out;
}

Task<> History::stop() {
  end_faults();
  for (auto& pod : pods_) co_await pod.stop();
  for (auto& pod : pods_) {
    for (const auto peer : kPeers) co_await pod.relay(peer).stop();
  }
  co_await platform.stop();
  co_await argocd.stop();
  co_await kube.stop();
}

Task<> History::restart_as(std::size_t replicas, const std::function<void()>& meanwhile) {
  for (auto& pod : pods_) {
    if (pod.runs()) co_await pod.stop();
  }
  meanwhile();
  replicas_ = replicas;
  for (std::size_t i = 0; i < replicas_; ++i) start_pod(pods_[i]);
}

// -- changes --

void History::change() {
  ++figures.changes;
  observe_leases();
  const auto name = "app-" + std::to_string(pick(kApplications));
  const auto found = applications_.find(name);
  if (found == applications_.end()) {
    create(name);
    return;
  }
  if (deleting_.contains(name)) {
    // Removes its resources one by one, then the application.
    auto& app = model.app(found->second);
    if (!app.resources.empty() && pick(3) > 0) {
      app.resources.erase(app.resources.begin());
      write(app);
    } else {
      end(name);
    }
    return;
  }
  auto& app = model.app(found->second);
  const auto resource = name + "-c" + std::to_string(pick(kResources));
  switch (pick(14)) {
    case 0:
      app.state.revision = "r" + std::to_string(pick(10));
      break;
    case 1:
      app.state.health = pick_from({"Healthy", "Degraded", "Progressing"});
      break;
    case 2:
      app.state.sync = pick_from({"Synced", "OutOfSync"});
      break;
    case 3:
    case 4:
      change_resource(app, resource);
      break;
    case 5:
      // Argo CD does not write the Application for such a change.
      if (app.resources.contains(resource)) {
        app.resources[resource].health = pick_from({"Healthy", "Degraded", "Progressing"});
        ++versions_[resource];
        write_answers(app);
        return;
      }
      change_resource(app, resource);
      break;
    case 6:
    case 7:
      if (app.resources.erase(resource) == 0) change_resource(app, resource);
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
        app.state.health = health;
        write(app);
      }
      break;
    case 11:
      remove_in_two_steps(name);
      return;
    case 12:
      turn(app);
      return;
    default:
      break;
  }
  app.state.content = next_content();
  write(app);
}

void History::change_all() {
  for (const auto& [name, uid] : applications_) {
    auto& app = model.app(uid);
    app.state.content = next_content();
    for (std::size_t i = 0; i < kResources; ++i) {
      change_resource(app, name + "-c" + std::to_string(i));
    }
    write(app);
  }
}

void History::turn_all() {
  for (const auto& [name, uid] : applications_) turn(model.app(uid));
}

void History::create_all() {
  for (std::size_t i = 0; i < kApplications; ++i) {
    const auto name = "app-" + std::to_string(i);
    if (!applications_.contains(name)) create(name);
  }
}

Task<> History::live(std::size_t changes) {
  for (std::size_t i = 0; i < changes; ++i) {
    for (auto more = 1 + pick(3); more > 0; --more) change();
    co_await sleep_for(milliseconds(pick(60)));
  }
}

// -- writing the truth --

// Alternates between two known states.
void History::turn(HistoryModel::App& app) {
  app.state.sync = app.state.sync == "Synced" ? "OutOfSync" : "Synced";
  for (auto& [id, one] : app.resources) one.sync = app.state.sync;
  write(app);
}

void History::create(const std::string& name) {
  const auto uid = "uid-" + name + "-" + std::to_string(++incarnations_);
  applications_[name] = uid;
  auto& app = model.add(uid, name);
  app.state = {.content = next_content(), .revision = "r0", .sync = "Synced", .health = "Healthy"};
  for (std::size_t i = pick(kResources); i > 0; --i) {
    change_resource(app, name + "-c" + std::to_string(i));
  }
  write(app);
}

void History::remove_in_two_steps(const std::string& name) {
  auto& app = model.app(applications_.at(name));
  deleting_.insert(name);
  write(app);  // with the finalizer
  app.deleting = true;
  kube.remove(k8s::resources::kApplications, {.ns = "argocd", .name = name});
}

void History::finish_deletions() {
  while (!deleting_.empty()) end(std::string(*deleting_.begin()));
}

// Removes the application, whatever held it.
void History::end(const std::string& name) {
  figures.allowed.deleted += (pods_.size() - 1) * (1 + kResources);
  model.remove(applications_.at(name));
  applications_.erase(name);
  const k8s::ObjectKey key{.ns = "argocd", .name = name};
  if (deleting_.erase(name) > 0) {
    auto object = kube.find(k8s::resources::kApplications, key);
    (*object)["metadata"].erase("finalizers");
    kube.put(k8s::resources::kApplications, std::move(*object));
  }
  kube.remove(k8s::resources::kApplications, key);
}

void History::change_resource(HistoryModel::App& app, const std::string& resource) {
  app.resources[resource] = {.content = next_content(),
                             .sync = pick_from({"Synced", "OutOfSync"}),
                             .health = pick_from({"Healthy", "Degraded"})};
  ++versions_[resource];
}

void History::write_answers(const HistoryModel::App& app) {
  json nodes = json::array();
  json items = json::array();
  for (const auto& [name, resource] : app.resources) {
    const auto version = std::to_string(versions_[name]);
    const json id{{"kind", "ConfigMap"}, {"namespace", "shop"}, {"name", name}};
    json node = id;
    node["version"] = "v1";
    node["uid"] = "uid-" + name;
    node["resourceVersion"] = version;
    node["health"] = {{"status", resource.health}};
    nodes.push_back(std::move(node));
    json manifest{{"apiVersion", "v1"},
                  {"kind", "ConfigMap"},
                  {"metadata", {{"name", name}, {"namespace", "shop"}}},
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

void History::write(const HistoryModel::App& app) {
  write_answers(app);
  json entries = json::array();
  for (const auto& [name, resource] : app.resources) {
    entries.push_back({{"kind", "ConfigMap"},
                       {"namespace", "shop"},
                       {"name", name},
                       {"version", "v1"},
                       {"status", resource.sync}});
  }
  json metadata{{"name", app.name}, {"namespace", "argocd"}, {"uid", applications_.at(app.name)}};
  const auto before = kube.find(k8s::resources::kApplications, {.ns = "argocd", .name = app.name});
  if (deleting_.contains(app.name)) metadata["finalizers"] = {kFinalizer};
  if (app.deleting && before) {
    metadata["deletionTimestamp"] = (*before)["metadata"]["deletionTimestamp"];
  }
  kube.put(k8s::resources::kApplications,
           {{"apiVersion", "argoproj.io/v1alpha1"},
            {"kind", "Application"},
            {"metadata", std::move(metadata)},
            {"spec",
             {{"project", "default"},
              {"source", {{"repoURL", "https://git.example.com/x.git"}}},
              {"destination", {{"server", "https://kubernetes.default.svc"}}}}},
            {"status",
             {{"sync", {{"status", app.state.sync}, {"revision", app.state.revision}}},
              {"health", {{"status", app.state.health}}},
              {"content", app.state.content},
              {"resources", std::move(entries)}}}});
}

// -- what may come twice --

// Each connection to the control plane may carry a post whose answer gets lost.
void History::allow_unanswered(ReporterPod& pod) {
  figures.allowed.unanswered += pod.relay(Peer::platform).connections();
}

void History::allow_uncommitted(ReporterPod& pod) {
  const auto since = Clock::now() - kUncommitted;
  const auto& reports = platform.reports();
  for (auto it = reports.rbegin(); it != reports.rend() && it->arrived > since; ++it) {
    const auto sender = it->headers.find("User-Agent").value_or("");
    if (sender.ends_with(pod.host_name())) ++figures.allowed.uncommitted;
  }
  allow_unanswered(pod);
}

void History::allow_all(std::size_t shard, std::size_t replicas) {
  ++figures.takings;
  for (std::size_t i = 0; i < kApplications; ++i) {
    if (fnv1a_32("app-" + std::to_string(i)) % replicas != shard) continue;
    figures.allowed.taken += 2 * (1 + kResources);
  }
}

// Each takeover of another holder's Lease increments the counter.
void History::observe_leases() {
  for (std::size_t shard = 0; replicas_ > 1 && shard < replicas_; ++shard) {
    const auto name = "event-reporter-app-" + std::to_string(shard);
    const auto lease = kube.find(k8s::resources::kLeases, {.ns = "argocd", .name = name});
    if (!lease) continue;
    const auto now = (*lease)["spec"].value("leaseTransitions", std::int64_t{0});
    for (auto& seen = transitions_[name]; seen < now; ++seen) allow_all(shard, replicas_);
  }
}

// -- what was received --

void History::receive() {
  for (; received_ < platform.reports().size(); ++received_) {
    model.receive(platform.reports()[received_]);
  }
  observe_leases();
}

Task<bool> History::settled(Clock::duration limit) {
  end_faults();
  if (pick(2) == 0) finish_deletions();
  const auto deadline = deadline_after(limit);
  while (true) {
    receive();
    if (model.lost().empty() && co_await platform.wait_until_quiet(milliseconds(500), deadline)) {
      receive();
      if (model.lost().empty()) co_return true;
    }
    if (Clock::now() >= deadline) co_return false;
    std::ignore = co_await platform.wait_for_count(
        received_ + 1, std::min(deadline, deadline_after(std::chrono::seconds(1))));
  }
}

}  // namespace gitops::test
