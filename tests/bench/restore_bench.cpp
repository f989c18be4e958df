// A control plane whose database goes back in time, with the real event-reporter beside it: the time until the states of
// 1,000 Applications and 200 deletions, which the database had acknowledged and lost, are right again. Kubernetes and Argo
// CD are doubles in this process.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <nlohmann/json.hpp>

#include "bench/bench_row.hpp"
#include "bench/reporter_daemon.hpp"
#include "common/core/async.hpp"
#include "common/http/server.hpp"
#include "doubles/fake_kube_api.hpp"
#include "faults/control_plane_history_harness.hpp"

namespace gitops::test {
namespace {

using Json = nlohmann::json;
using Restore = ControlPlaneHistoryHarness::Restore;

constexpr int kApplications = 1'000;
constexpr int kDeleted = 200;
constexpr int kResources = 3;
constexpr auto kLimit = std::chrono::minutes(5);
constexpr auto kPoll = std::chrono::milliseconds(200);

// The Applications that exist, by name: uid and revision.
struct App {
  std::string uid;
  std::string revision;
};
using Apps = std::map<std::string, App>;

Json application_json(const std::string& name, const App& app) {
  Json resources = Json::array();
  for (int i = 0; i < kResources; ++i) {
    resources.push_back({{"kind", "ConfigMap"},
                         {"version", "v1"},
                         {"namespace", name},
                         {"name", "c-" + std::to_string(i)},
                         {"status", "Synced"}});
  }
  return {{"apiVersion", "argoproj.io/v1alpha1"},
          {"kind", "Application"},
          {"metadata", {{"name", name}, {"namespace", "argocd"}, {"uid", app.uid}}},
          {"spec",
           {{"project", "default"},
            {"source", {{"repoURL", "https://git.example.com/shop.git"}, {"path", "."}}},
            {"destination", {{"server", "https://kubernetes.default.svc"}, {"namespace", name}}}}},
          {"status",
           {{"sync", {{"status", "Synced"}, {"revision", app.revision}}},
            {"health", {{"status", "Healthy"}}},
            {"resources", std::move(resources)}}}};
}

// The answers of argocd-server about an Application's resources.
std::string argocd_answer(std::string_view path) {
  constexpr std::string_view kPrefix = "/api/v1/applications/";
  const auto begin = path.find(kPrefix);
  if (begin == std::string_view::npos) return R"({"Version":"v3.0.0"})";
  const auto rest = path.substr(begin + kPrefix.size());
  const std::string ns(rest.substr(0, rest.find('/')));
  Json list = Json::array();
  const bool is_tree = rest.ends_with("/resource-tree");
  for (int i = 0; i < kResources; ++i) {
    const auto name = "c-" + std::to_string(i);
    Json item{{"kind", "ConfigMap"}, {"namespace", ns}, {"name", name}};
    if (is_tree) {
      item["version"] = "v1";
      item["uid"] = ns + name;
    } else {
      const auto text = Json{
          {"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata", {{"name", name}, {"namespace", ns}}},
          {"data",
           {{"a", "b"}}}}.dump();
      for (const auto* state :
           {"targetState", "liveState", "normalizedLiveState", "predictedLiveState"}) {
        item[state] = text;
      }
    }
    list.push_back(std::move(item));
  }
  if (is_tree) return Json{{"nodes", std::move(list)}}.dump();
  if (rest.ends_with("/managed-resources")) return Json{{"items", std::move(list)}}.dump();
  return R"({"author":"A <a@example.com>","date":"2026-03-04T09:12:02Z","message":"m"})";
}

class Scene {
 public:
  Scene(const Executor& executor, store::Engine engine)
      : control_plane_(engine),
        kube_(executor),
        argocd_(executor, {}, [](http::Exchange& exchange) -> Task<> {
          std::ignore = co_await exchange.reply({.headers = {{"Content-Type", "application/json"}},
                                                 .body = argocd_answer(exchange.path())});
        }) {
    control_plane_.start();
    if (!kube_.start() || !argocd_.listen()) throw std::runtime_error("the doubles do not listen");
    for (int i = 0; i < kApplications; ++i) put("app-" + std::to_string(i), "r0");
    write_file(folder_ / "kubeconfig", kube_.kubeconfig());
    reporter_.emplace(
        bench::PeerAddresses{.kubeconfig = (folder_ / "kubeconfig").string(),
                             .argocd = "http://127.0.0.1:" + std::to_string(argocd_.port()),
                             .platform = control_plane_.url()},
        Environment{{"CODEFRESH_TOKEN", control_plane_.register_runtime("prod")},
                    {"LEDGER_FILE", (folder_ / "ledger").string()}});
  }

  // One round: a backup, changes and deletions, and the database before them. Returns the seconds until all is right.
  Task<double> round(Restore how, int number) {
    co_await until_right();
    control_plane_.back_up(how);
    const auto revision = "r" + std::to_string(number);
    for (int i = 0; i < kApplications; ++i) {
      const auto name = "app-" + std::to_string(i);
      if (i % (kApplications / kDeleted) == number % (kApplications / kDeleted)) {
        remove(name);
      } else {
        put(name, revision);
      }
    }
    co_await until_right();
    control_plane_.roll_back(how);
    const auto begin = Clock::now();
    // Any event tells the reporter.
    put(apps_.begin()->first, revision + "-later");
    co_await until_right();
    const auto seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    for (int i = 0; i < kApplications; ++i) put("app-" + std::to_string(i), revision);
    co_return seconds;
  }
  Task<> stop() {
    co_await reporter_->stop();
    co_await argocd_.stop(Clock::now());
    co_await kube_.stop();
    control_plane_.program().stop();
  }

 private:
  void put(const std::string& name, const std::string& revision) {
    auto& app = apps_[name];
    if (app.uid.empty()) app.uid = name + "-" + std::to_string(++uids_);
    app.revision = revision;
    kube_.put(k8s::resources::kApplications, application_json(name, app));
  }
  void remove(const std::string& name) {
    if (apps_.erase(name) > 0) kube_.remove(k8s::resources::kApplications, {"argocd", name});
  }

  // How many live objects of the database are wrong or lacking.
  [[nodiscard]] std::size_t wrong() const {
    std::size_t found = 0;
    std::size_t right = 0;
    std::set<std::string> uids;
    for (const auto& [name, app] : apps_) uids.insert(app.uid);
    for (const auto& row : control_plane_.rows()) {
      const auto& state = row.state;
      if (state.presence != control_plane_server::Presence::live) continue;
      const auto app = apps_.find(state.key.name);
      const bool is_application = state.key.kind == "Application";
      const bool is_right = is_application ? app != apps_.end() && app->second.uid == state.uid &&
                                                 app->second.revision == state.revision
                                           : uids.contains(state.key.owner_uid);
      ++(is_right ? right : found);
    }
    const auto all = apps_.size() * (1 + kResources);
    return found + (all - std::min(all, right));
  }
  Task<> until_right() {
    const auto give_up = deadline_after(kLimit);
    while (const auto left = wrong()) {
      if (Clock::now() > give_up) {
        throw std::runtime_error(std::to_string(left) + " objects are still wrong");
      }
      co_await sleep_for(kPoll);
    }
  }

  TempDir folder_;
  ControlPlaneHistoryHarness control_plane_;
  FakeKubeApi kube_;
  http::Server argocd_;
  Apps apps_;
  std::size_t uids_ = 0;
  std::optional<bench::ReporterDaemon> reporter_;
};

Task<> measure(int rounds) {
  const auto executor = co_await asio::this_coro::executor;
  for (const auto& [name, engine, how] :
       {std::tuple("backup restored, SQLite", store::Engine::sqlite, Restore::backup),
        std::tuple("volume rolled back, SQLite", store::Engine::sqlite, Restore::volume),
        std::tuple("volume rolled back, PostgreSQL", store::Engine::postgres, Restore::volume),
        std::tuple("recovery to a point in time, PostgreSQL", store::Engine::postgres,
                   Restore::recovery)}) {
    Scene scene(executor, engine);
    double longest = 0;
    for (int round = 1; round <= rounds; ++round) {
      const auto seconds = co_await scene.round(how, round);
      std::fprintf(stderr, "restore: %s: round %d right again after %.1f s\n", name, round,
                   seconds);
      longest = std::max(longest, seconds);
    }
    co_await scene.stop();
    bench::print_limit(std::string(name) + ": until 1,000 Applications and 200 deletions are right",
                       "s", longest, 60,
                       "longest of " + std::to_string(rounds) + " rounds, 0 wrong after each");
  }
}

}  // namespace
}  // namespace gitops::test

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 20;
  return gitops::bench::run("restore", [rounds] { return gitops::test::measure(rounds); });
}
