#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "chart/helm.hpp"
#include "common/core/task_group.hpp"
#include "daemons/reporter_process.hpp"
#include "daemons/router_harness.hpp"
#include "doubles/fake_platform.hpp"
#include "peers/peer_bed.hpp"
#include "peers/peer_rollouts.hpp"
#include "peers/peer_workflows.hpp"
#include "peers/rendered_workload.hpp"
#include "support/play.hpp"
#include "support/run_coro.hpp"
#include "support/run_on.hpp"

// The pods of both event-reporters under a stream of changes to objects.
namespace gitops::test {

using namespace nlohmann::literals;

inline constexpr auto kLimit = std::chrono::seconds(150);
inline constexpr auto kTimeLimit = std::chrono::seconds(40);
inline constexpr const char* kNamespace = PeerArgoCd::kNamespace;
inline constexpr const char* kShop = "upgraded-shop";

inline constexpr const char* kPlatformToken = "upgrade-platform-token";

// The known state of one object: the change in its label, or its deletion.
struct State {
  std::string what;  // kind and name
  int turn = 0;
  bool gone = false;
};

// A stream of objects that are created, changed a few times and deleted, one step of one kind at a
// time. Names are never reused within a kind. All calls block.
class Changes {
 public:
  explicit Changes(PeerBed& bed) : bed_(bed) {
    bed_.cluster().apply_crds("argo-rollouts");
    bed_.cluster().apply_crds("argo-workflows");
    bed_.cluster().create_namespace(kShop);
    repository_ = bed_.git().create_repository("upgraded");
    bed_.git().commit(
        "upgraded",
        {{"settings.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"}},
        "settings", {"Dana Levi", "dana@example.com"});
    bed_.argocd().add_repository(bed_.git(), "upgraded");
    kinds_ = kinds();
  }

  // Every fourth step creates an object; later every fourth step also deletes the oldest one.
  void step() {
    const auto number = steps_++;
    auto& kind = kinds_[number % kinds_.size()];
    const auto round = number / kinds_.size();
    if (round % 4 == 0 || kind.alive.empty()) {
      create(kind);
    } else if (round % 4 == 2 && kind.alive.size() > kAlive) {
      remove(kind);
    } else {
      change(kind, round);
    }
  }
  [[nodiscard]] std::size_t steps() const { return steps_; }
  // By uid.
  [[nodiscard]] const std::map<std::string, State>& expected() const { return expected_; }

 private:
  struct Kind {
    std::string name;
    std::string path;  // of its list in the namespace
    nlohmann::json object;
    std::vector<std::pair<std::string, std::string>> alive = {};  // name and uid
    int made = 0;
  };
  static constexpr std::size_t kAlive = 2;

  [[nodiscard]] std::vector<Kind> kinds() const {
    const auto path = [](const std::string& ns, const std::string& resource) {
      return "/apis/argoproj.io/v1alpha1/namespaces/" + ns + "/" + resource;
    };
    const nlohmann::json application = {
        {"project", "default"},
        {"destination", {{"server", "https://kubernetes.default.svc"}, {"namespace", kShop}}},
        {"source", {{"repoURL", repository_}, {"path", "."}, {"targetRevision", "main"}}}};
    return {
        {.name = "Application",
         .path = path(kNamespace, "applications"),
         .object = {{"spec", application}}},
        {.name = "Rollout",
         .path = path(kShop, "rollouts"),
         .object = nlohmann::json::parse(PeerRollouts::canary("x", "example.test/shop:1"))},
        {.name = "AnalysisRun",
         .path = path(kShop, "analysisruns"),
         .object = nlohmann::json::parse(PeerRollouts::job_analysis("x"))},
        {.name = "Workflow",
         .path = path(kNamespace, "workflows"),
         .object = {{"spec", nlohmann::json::parse(PeerWorkflows::one_wait())}}},
    };
  }
  nlohmann::json send(const std::string& method, const std::string& path,
                      const nlohmann::json& body,
                      const std::string& type = "application/json") const {
    const auto reply =
        bed_.cluster().request(method, path, body.is_null() ? "" : body.dump(), type);
    if (!reply.ok()) throw std::runtime_error(method + " " + path + ": " + reply.body);
    return nlohmann::json::parse(reply.body);
  }
  void create(Kind& kind) {
    const auto name = "turn-" + std::to_string(kind.made++);
    auto object = kind.object;
    object["apiVersion"] = "argoproj.io/v1alpha1";
    object["kind"] = kind.name;
    object["metadata"] = {{"name", name}, {"labels", {{"turn", "0"}}}};
    const std::string uid = send("POST", kind.path, object).at("/metadata/uid"_json_pointer);
    kind.alive.emplace_back(name, uid);
    expected_[uid] = {.what = kind.name + " " + name};
  }
  void change(Kind& kind, std::size_t round) {
    const auto& [name, uid] = kind.alive[round % kind.alive.size()];
    const auto turn = expected_[uid].turn + 1;
    send("PATCH", kind.path + "/" + name,
         {{"metadata", {{"labels", {{"turn", std::to_string(turn)}}}}}},
         "application/merge-patch+json");
    expected_[uid].turn = turn;
  }
  void remove(Kind& kind) {
    const auto [name, uid] = kind.alive.front();
    send("DELETE", kind.path + "/" + name, nullptr);
    kind.alive.erase(kind.alive.begin());
    expected_[uid].gone = true;
  }

  PeerBed& bed_;
  std::string repository_;
  std::size_t steps_ = 0;
  std::map<std::string, State> expected_;
  std::vector<Kind> kinds_;
};

class ChartUpgradeBed {
 public:
  ChartUpgradeBed(PeerBed& bed, const Executor& executor)
      : changes(bed),
        platform(executor, {.server = {}, .token = kPlatformToken}),
        bed_(bed),
        stream_(executor, [](const std::string&, const std::string& what) {
          ADD_FAILURE() << "the stream: " << what;
        }) {}

  // -- the cluster's part --

  // Volumes as an administrator would provide them, one for each claim.
  void provide_volumes(int count) {
    for (int i = 0; i < count; ++i) {
      const auto folder = volumes_ / ("ledger-" + std::to_string(i));
      std::filesystem::create_directories(folder);
      // The user of a pod is another one.
      for (const auto& path : {volumes_.path(), folder}) {
        std::filesystem::permissions(path, std::filesystem::perms::all);
      }
      bed_.cluster().apply(nlohmann::json{{"apiVersion", "v1"},
                                          {"kind", "PersistentVolume"},
                                          {"metadata", {{"name", "upgrade-" + std::to_string(i)}}},
                                          {"spec",
                                           {{"capacity", {{"storage", "1Gi"}}},
                                            {"accessModes", {"ReadWriteOnce"}},
                                            {"storageClassName", kStorageClass},
                                            {"hostPath", {{"path", folder.string()}}}}}}
                               .dump());
    }
  }
  void make_platform_secret() const {
    bed_.cluster().kubectl_ok({"-n", kNamespace, "create", "secret", "generic", "codefresh-token",
                               "--from-literal=token=" + std::string(kPlatformToken)});
  }
  // Without a Secret argocd-token the reporter logs in. The other values replace parts that differ
  // from a customer's cluster: the pods' network and the source of the volumes.
  void helm(int app_replicas, int threadiness) {
    const auto& argocd = bed_.argocd().url();
    const nlohmann::json values = {
        {"global",
         {{"codefresh", {{"url", platform.url().to_string()}}},
          {"runtime", {{"name", "upgrade"}}},
          {"integrations",
           {{"argo-cd",
             {{"server",
               {{"svc", "127.0.0.1"},
                {"port", std::stoi(argocd.substr(argocd.rfind(':') + 1))},
                {"auth",
                 {{"type", "password"},
                  {"passwordSecretKeyRef",
                   {{"name", "argocd-initial-admin-secret"}, {"key", "password"}}}}}}}}}}},
          {"event-reporters",
           {{"config",
             {{"listen.address", "127.0.0.1"},
              {"metrics.listen.address", "127.0.0.1"},
              {"threadiness", threadiness}}},
            {"env", {{"LISTEN_PORT", 0}, {"ADMIN_PORT", 0}}},
            // Argo CD keeps a read of a just deleted Application open for long.
            {"terminationGracePeriodSeconds", 15},
            {"persistence", {{"enabled", true}, {"storageClassName", kStorageClass}}},
            {"replicaCount", 2}}}}},
        {"event-reporters", {{"runtime-event-reporter", {{"replicaCount", app_replicas}}}}},
        {"argo-cd", {{"enabled", false}}}};
    write_file(folder_ / "values.json", values.dump());
    const auto done = helm_.run({"upgrade", "--install", "rt", chart_folder(), "-n", kNamespace,
                                 "-f", (folder_ / "values.json").string()},
                                bed_.cluster().kubeconfig());
    if (!done.ok()) throw std::runtime_error("helm: " + done.err);
  }
  // Sets the first pod that the StatefulSet's controller may replace by a new revision.
  void hold_pods_below(const std::string& set, int ordinal) const {
    const nlohmann::json patch = {
        {"spec",
         {{"updateStrategy",
           {{"type", "RollingUpdate"}, {"rollingUpdate", {{"partition", ordinal}}}}}}}};
    bed_.cluster().kubectl_ok(
        {"-n", kNamespace, "patch", "statefulset", set, "--type=merge", "-p", patch.dump()});
  }
  [[nodiscard]] nlohmann::json get(const std::string& kind, const std::string& name) const {
    return nlohmann::json::parse(
        bed_.cluster().kubectl_ok({"-n", kNamespace, "get", kind, name, "-o", "json"}));
  }

  // -- the node's part --

  struct Pod {
    std::unique_ptr<RenderedWorkload> workload;
    std::unique_ptr<ReporterProcess> process;
  };
  // Runs the program of a pod of the newest revision; waits for that pod.
  Task<> start(std::string set, int ordinal) {
    auto& pod = pods[set + "-" + std::to_string(ordinal)];
    pod.process.reset();
    pod.workload = co_await aside([&] {
      return std::make_unique<RenderedWorkload>(bed_.cluster(), kNamespace, set, ordinal);
    });
    auto argv = pod.workload->argv();
    argv[0] = std::string(GITOPS_BIN_DIR) + "/" + argv[0];
    auto environment = pod.workload->process_environment();
    environment["LD_PRELOAD"] = hosts_library();
    environment["NSS_WRAPPER_DISABLE_DEEPBIND"] = "1";  // which sanitizers refuse
    environment["NSS_WRAPPER_HOSTNAME"] = set + "-" + std::to_string(ordinal);
    pod.process =
        std::make_unique<ReporterProcess>(std::move(argv), std::move(environment), kTimeLimit);
  }
  Task<> ready(std::string set, int ordinal) {
    auto& process = *pods.at(set + "-" + std::to_string(ordinal)).process;
    if (!co_await process.wait_for_readyz("ready\n")) {
      throw std::runtime_error(set + " " + std::to_string(ordinal) + ": " + process.last_readyz());
    }
  }
  // Replaces a pod of an older revision, as the controller and the node do.
  Task<> replace(std::string set, int ordinal) {
    EXPECT_EQ(co_await pods.at(set + "-" + std::to_string(ordinal)).process->stop(), 0);
    co_await wait_for_steps(8);
    co_await aside([&] { hold_pods_below(set, ordinal); });
    co_await start(set, ordinal);
    co_await ready(set, ordinal);
  }

  // -- the stream --

  void start_stream() {
    stream_.spawn("stream", [this]() -> Task<> {
      while (!stopping_) {
        co_await run_on(stream_pool_, [this] { changes.step(); });
      }
    });
  }
  Task<> wait_for_steps(std::size_t more) {
    const auto wanted = changes.steps() + more;
    while (changes.steps() < wanted && stream_.size() > 0) {
      co_await sleep_for(std::chrono::milliseconds(20));
    }
  }
  Task<> stop_stream() {
    stopping_ = true;
    co_await stream_.join();
  }

  // -- what the control plane knows --

  // The state of every object by its last event, by uid.
  [[nodiscard]] std::map<std::string, State> acknowledged() const {
    std::map<std::string, State> known;
    for (const auto& report : platform.reports()) {
      const auto uid = report.object.value("/metadata/uid"_json_pointer, "");
      if (report.kind() == "ConfigMap" || uid.empty()) continue;
      auto& state = known[uid];
      state.what = report.kind() + " " + report.name();
      state.turn = std::max(
          state.turn, std::stoi(report.object.value("/metadata/labels/turn"_json_pointer, "0")));
      const bool gone = report.kind() == "Application" ? report.source("actualManifest").empty()
                                                       : report.data.value("deleted", false);
      state.gone = state.gone || gone;
    }
    return known;
  }
  // Changes that are not acknowledged. Objects that were created and deleted unseen do not count.
  [[nodiscard]] std::vector<std::string> lost() const {
    const auto known = acknowledged();
    std::vector<std::string> out;
    for (const auto& [uid, wanted] : changes.expected()) {
      const auto found = known.find(uid);
      if (found == known.end()) {
        if (!wanted.gone) out.push_back(wanted.what + " was never reported");
      } else if (wanted.gone && !found->second.gone) {
        out.push_back(wanted.what + " was not reported as gone");
      } else if (!wanted.gone && (found->second.turn != wanted.turn || found->second.gone)) {
        out.push_back(wanted.what + " was reported with change " +
                      std::to_string(found->second.turn) + ", not " + std::to_string(wanted.turn));
      }
    }
    return out;
  }
  Task<> wait_until_nothing_is_lost() {
    const auto deadline = deadline_after(kTimeLimit);
    while (!lost().empty() && Clock::now() < deadline) {
      co_await sleep_for(std::chrono::milliseconds(200));
    }
  }

  // Blocking work on a pool, while the loop serves the control plane.
  template <class Function>
  Task<std::invoke_result_t<Function>> aside(Function function) {
    return run_on(pool_, std::move(function));
  }
  [[nodiscard]] std::string logs() const {
    std::string out;
    for (const auto& [name, pod] : pods) {
      if (pod.process) out += "--- " + name + "\n" + pod.process->report();
    }
    return out;
  }
  // Leaves the objects in the cluster, which ends with this process.
  Task<> stop() {
    co_await stop_stream();
    for (auto& [name, pod] : pods) {
      if (pod.process && pod.process->process().running()) co_await pod.process->stop();
    }
    co_await platform.stop();
  }

  Changes changes;
  FakePlatform platform;
  std::map<std::string, Pod> pods;  // by name

 private:
  static constexpr const char* kStorageClass = "ledgers";

  PeerBed& bed_;
  TempDir folder_;
  TempDir volumes_;
  Helm helm_;
  asio::thread_pool pool_{1};
  asio::thread_pool stream_pool_{1};
  bool stopping_ = false;
  TaskGroup stream_;
};

inline void play(const std::function<Task<>(ChartUpgradeBed&)>& body) {
  auto& bed = peer_bed();
  run_coro(
      [&]() -> Task<> {
        ChartUpgradeBed chart_upgrade_bed(bed, co_await asio::this_coro::executor);
        co_await play_in(chart_upgrade_bed, body);
      },
      kLimit);
}

}  // namespace gitops::test
