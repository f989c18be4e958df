#pragma once

#include <csignal>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <sys/resource.h>

#include "chart/helm.hpp"
#include "daemons/reporter_process.hpp"
#include "daemons/router_harness.hpp"
#include "daemons/served_metrics.hpp"
#include "daemons/tunnel_processes.hpp"
#include "doubles/fake_argocd.hpp"
#include "doubles/fake_kube_api.hpp"
#include "doubles/fake_platform.hpp"
#include "e2e/git_harness.hpp"
#include "support/play.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"

// The metrics that real daemons serve after they have met every kind of event.
namespace gitops::test {

inline constexpr const char* kPrefix = "gitops_event_reporter_";
inline constexpr auto kTimeLimit = std::chrono::seconds(20);

// An Application without resources; each content is another state of it.
inline nlohmann::json application(const std::string& name, int content) {
  return {{"apiVersion", "argoproj.io/v1alpha1"},
          {"kind", "Application"},
          {"metadata", {{"name", name}, {"namespace", "argocd"}, {"uid", "uid-" + name}}},
          {"spec", {{"project", "default"}}},
          {"status", {{"content", content}}}};
}

// The program among doubles that make every event with a metric happen.
class MonitoringHarness {
 public:
  explicit MonitoringHarness(const Executor& executor)
      : kube(executor), argocd(executor, kube), platform(executor) {}

  // With REPORTER_MODE=`mode`.
  Task<> start(std::string mode) {
    CO_ASSERT_OK(kube.start());
    CO_ASSERT_OK(argocd.start());
    CO_ASSERT_OK(platform.start());
    for (const auto* type : {&k8s::resources::kRollouts, &k8s::resources::kAnalysisRuns,
                             &k8s::resources::kWorkflows}) {
      kube.add_type(*type);
    }
    write_file(folder_ / "kubeconfig", kube.kubeconfig());
    const bool app = mode == "app";
    Environment environment{{"REPORTER_MODE", std::move(mode)},
                            {"POD_NAMESPACE", "argocd"},
                            {"KUBECONFIG", (folder_ / "kubeconfig").string()},
                            {"CODEFRESH_URL", platform.url().to_string()},
                            {"CODEFRESH_TOKEN", FakePlatform::Options().token}};
    if (app) {
      environment["ARGOCD_SERVER"] = argocd.url().to_string();
      environment["ARGOCD_TOKEN"] = FakeArgoCd::Options().token;
    } else {
      environment["REPORT_MANAGED_CLUSTERS"] = "true";
    }
    daemon.emplace(ReporterProcess::command(
                       {"--drain-timeout=1s", "--ledger-file=" + (folder_ / "ledger.db").string()}),
                   std::move(environment), kTimeLimit);
    CO_ASSERT_TRUE(co_await daemon->wait_for_readyz("ready\n"));
  }
  [[nodiscard]] std::string logs() const { return daemon ? daemon->report() : std::string(); }
  Task<> stop() {
    if (daemon && daemon->process().running()) co_await daemon->stop();
    co_await platform.stop();
    co_await argocd.stop();
    co_await kube.stop();
  }

  void put(const std::string& name) {
    argocd.set_tree(name, {{"nodes", nlohmann::json::array()}});
    argocd.set_managed_resources(name, nlohmann::json::array());
    kube.put(k8s::resources::kApplications, application(name, ++content_));
  }
  // A Rollout; each content is another state of it.
  void put_rollout(const std::string& name) {
    kube.put(k8s::resources::kRollouts, {{"apiVersion", k8s::resources::kRollouts.api_version()},
                                         {"kind", k8s::resources::kRollouts.kind},
                                         {"metadata", {{"name", name}, {"namespace", "shop"}}},
                                         {"status", {{"content", ++content_}}}});
  }
  // Makes writes to the program's files fail, as on a full disk.
  void fill_disk() {
    const auto pid = daemon->process().pid();
    rlimit files{};
    ASSERT_EQ(::prlimit(pid, RLIMIT_FSIZE, nullptr, &files), 0);
    files.rlim_cur = 0;
    ASSERT_EQ(::prlimit(pid, RLIMIT_FSIZE, &files, nullptr), 0);
  }
  Task<bool> wait_for_metric(std::string start_of_line) {
    co_return co_await eventually(
        [&] { return daemon->get("/metrics").body.contains("\n" + start_of_line); },
        "in /metrics: " + start_of_line);
  }

  FakeKubeApi kube;
  FakeArgoCd argocd;
  FakePlatform platform;
  std::optional<ReporterProcess> daemon;

 private:
  TempDir folder_;
  int content_ = 0;
};

// The text of /metrics after the script has ended.
inline std::string metrics_after(const std::function<Task<>(MonitoringHarness&)>& script) {
  std::string text;
  // The program inherits the ignored signal, so that its writes fail with an error.
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  run_coro(
      [&]() -> Task<> {
        MonitoringHarness harness(co_await asio::this_coro::executor);
        co_await play_in(harness, [&](MonitoringHarness&) -> Task<> {
          co_await script(harness);
          text = harness.daemon->get("/metrics").body;
        });
      },
      std::chrono::seconds(60));
  std::signal(SIGXFSZ, before);
  return text;
}

// Events, a dead letter, failures of each peer and of the disk.
inline std::string metrics_of_mode_app() {
  return metrics_after([](MonitoringHarness& harness) -> Task<> {
    co_await harness.start("app");
    const std::string prefix = kPrefix;
    harness.put("good");
    CO_ASSERT_TRUE(co_await harness.wait_for_metric(
        prefix + "reports_total{part=\"application\",result=\"acknowledged\"}"));
    harness.platform.refuse_events(
        [](const FakePlatform::Report& report) { return report.name() == "refused" ? 400 : 0; });
    harness.put("refused");
    CO_ASSERT_TRUE(co_await harness.wait_for_metric(prefix + "errors_total{code="));
    harness.put("another");
    CO_ASSERT_TRUE(co_await harness.wait_for_metric(prefix + "dead_letters_total{reason=\"400\"}"));
    harness.argocd.fail_next(1, 503, {}, "resource-tree");
    harness.put("unlucky");
    CO_ASSERT_TRUE(co_await harness.wait_for_metric(
        prefix + "errors_total{code=\"unavailable\",peer=\"argocd\"}"));
    harness.kube.fail_next(1, 500, {}, "applications");
    harness.kube.cut_watches();
    CO_ASSERT_TRUE(co_await harness.wait_for_metric(prefix + "watch_errors_total{"));
    harness.fill_disk();
    harness.put("unwritten");
    CO_ASSERT_TRUE(co_await harness.wait_for_metric(prefix + "ledger_failures_total{"));
  });
}

inline std::string metrics_of_mode_resource() {
  return metrics_after([](MonitoringHarness& harness) -> Task<> {
    co_await harness.start("resource");
    const std::string prefix = kPrefix;
    harness.put_rollout("good");
    CO_ASSERT_TRUE(co_await harness.wait_for_metric(prefix + "reports_total{"));
    harness.platform.refuse_events(
        [](const FakePlatform::Report& report) { return report.name() == "refused" ? 400 : 0; });
    harness.put_rollout("refused");
    CO_ASSERT_TRUE(co_await harness.wait_for_metric(prefix + "errors_total{code="));
    harness.put_rollout("another");
    CO_ASSERT_TRUE(co_await harness.wait_for_metric(prefix + "dead_letters_total{reason=\"400\"}"));
    harness.kube.fail_next(1, 500, {}, "rollouts");
    harness.kube.cut_watches();
    CO_ASSERT_TRUE(co_await harness.wait_for_metric(prefix + "watch_errors_total{"));
    harness.fill_disk();
    harness.put_rollout("unwritten");
    CO_ASSERT_TRUE(co_await harness.wait_for_metric(prefix + "ledger_failures_total{"));
  });
}

// The metrics of each reporter, by the name of its objects, and of both together.
class MonitoringTest : public testing::Test {
 protected:
  using Samples = std::map<std::string, std::string>;
  static void SetUpTestSuite() {
    served_["runtime-event-reporter"] = samples(metrics_of_mode_app());
    served_["cluster-event-reporter"] = samples(metrics_of_mode_resource());
    for (const auto& [name, lines] : served_["runtime-event-reporter"]) both_[name] += lines;
    for (const auto& [name, lines] : served_["cluster-event-reporter"]) both_[name] += lines;
  }

  static void expect_served(const std::string& where, const std::string& expression,
                            const Samples& served) {
    EXPECT_THAT(expression,
                testing::AnyOf(testing::HasSubstr(kPrefix), testing::HasSubstr("process_")))
        << where;
    EXPECT_THAT(mistakes(expression, served), testing::IsEmpty()) << where;
  }
  inline static std::map<std::string, Samples> served_;
  inline static Samples both_;
};

inline nlohmann::json dashboard() {
  return nlohmann::json::parse(
      read_file(chart_folder() / "files" / "event-reporter-dashboard.json"));
}

}  // namespace gitops::test
