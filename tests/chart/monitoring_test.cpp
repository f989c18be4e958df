// The dashboard and the alerts use only metrics that the real daemons serve.

#include <csignal>
#include <functional>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <sys/resource.h>

#include "chart/helm.hpp"
#include "daemons/reporter_process.hpp"
#include "daemons/router_harness.hpp"
#include "daemons/tunnel_processes.hpp"
#include "doubles/fake_argocd.hpp"
#include "doubles/fake_kube_api.hpp"
#include "doubles/fake_platform.hpp"
#include "e2e/git_harness.hpp"
#include "support/play.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"

namespace gitops::test {
namespace {

using nlohmann::json;
namespace r = k8s::resources;
using testing::AnyOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr const char* kPrefix = "gitops_event_reporter_";
constexpr auto kTimeLimit = std::chrono::seconds(20);

// An Application without resources; each content is another state of it.
json application(const std::string& name, int content) {
  return {{"apiVersion", "argoproj.io/v1alpha1"},
          {"kind", "Application"},
          {"metadata", {{"name", name}, {"namespace", "argocd"}, {"uid", "uid-" + name}}},
          {"spec", {{"project", "default"}}},
          {"status", {{"content", content}}}};
}

// The program among doubles that make every event with a metric happen.
class Harness {
 public:
  explicit Harness(const Executor& executor)
      : kube(executor), argocd(executor, kube), platform(executor) {}

  // With REPORTER_MODE=`mode`.
  Task<> start(std::string mode) {
    CO_ASSERT_OK(kube.start());
    CO_ASSERT_OK(argocd.start());
    CO_ASSERT_OK(platform.start());
    for (const auto* type : {&r::kRollouts, &r::kAnalysisRuns, &r::kWorkflows}) {
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
    argocd.set_tree(name, {{"nodes", json::array()}});
    argocd.set_managed_resources(name, json::array());
    kube.put(k8s::resources::kApplications, application(name, ++content_));
  }
  // A Rollout; each content is another state of it.
  void put_rollout(const std::string& name) {
    kube.put(r::kRollouts, {{"apiVersion", r::kRollouts.api_version()},
                            {"kind", r::kRollouts.kind},
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
std::string metrics_after(const std::function<Task<>(Harness&)>& script) {
  std::string text;
  // The program inherits the ignored signal, so that its writes fail with an error.
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  run_coro(
      [&]() -> Task<> {
        Harness world(co_await asio::this_coro::executor);
        co_await play_in(world, [&](Harness&) -> Task<> {
          co_await script(world);
          text = world.daemon->get("/metrics").body;
        });
      },
      std::chrono::seconds(60));
  std::signal(SIGXFSZ, before);
  return text;
}

// Events, a dead letter, failures of each peer and of the disk.
std::string metrics_of_mode_app() {
  return metrics_after([](Harness& world) -> Task<> {
    co_await world.start("app");
    const std::string prefix = kPrefix;
    world.put("good");
    CO_ASSERT_TRUE(co_await world.wait_for_metric(
        prefix + "reports_total{part=\"application\",result=\"acknowledged\"}"));
    world.platform.refuse_events(
        [](const FakePlatform::Report& report) { return report.name() == "refused" ? 400 : 0; });
    world.put("refused");
    CO_ASSERT_TRUE(co_await world.wait_for_metric(prefix + "errors_total{code="));
    world.put("another");
    CO_ASSERT_TRUE(co_await world.wait_for_metric(prefix + "dead_letters_total{reason=\"400\"}"));
    world.argocd.fail_next(1, 503, {}, "resource-tree");
    world.put("unlucky");
    CO_ASSERT_TRUE(co_await world.wait_for_metric(
        prefix + "errors_total{code=\"unavailable\",peer=\"argocd\"}"));
    world.kube.fail_next(1, 500, {}, "applications");
    world.kube.cut_watches();
    CO_ASSERT_TRUE(co_await world.wait_for_metric(prefix + "watch_errors_total{"));
    world.fill_disk();
    world.put("unwritten");
    CO_ASSERT_TRUE(co_await world.wait_for_metric(prefix + "ledger_failures_total{"));
  });
}

std::string metrics_of_mode_resource() {
  return metrics_after([](Harness& world) -> Task<> {
    co_await world.start("resource");
    const std::string prefix = kPrefix;
    world.put_rollout("good");
    CO_ASSERT_TRUE(co_await world.wait_for_metric(prefix + "reports_total{"));
    world.platform.refuse_events(
        [](const FakePlatform::Report& report) { return report.name() == "refused" ? 400 : 0; });
    world.put_rollout("refused");
    CO_ASSERT_TRUE(co_await world.wait_for_metric(prefix + "errors_total{code="));
    world.put_rollout("another");
    CO_ASSERT_TRUE(co_await world.wait_for_metric(prefix + "dead_letters_total{reason=\"400\"}"));
    world.kube.fail_next(1, 500, {}, "rollouts");
    world.kube.cut_watches();
    CO_ASSERT_TRUE(co_await world.wait_for_metric(prefix + "watch_errors_total{"));
    world.fill_disk();
    world.put_rollout("unwritten");
    CO_ASSERT_TRUE(co_await world.wait_for_metric(prefix + "ledger_failures_total{"));
  });
}

// The names of the samples of an exposition, each with its lines.
std::map<std::string, std::string> samples(const std::string& text) {
  std::map<std::string, std::string> found;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with('#')) found[line.substr(0, line.find_first_of("{ "))] += line + "\n";
  }
  return found;
}

// Mistakes in a PromQL expression: metrics that are not served, and labels that they do not have.
// Prometheus itself adds namespace, pod and service.
std::vector<std::string> mistakes(const std::string& expression,
                                  const std::map<std::string, std::string>& served) {
  static const std::regex metric(R"(\b((?:gitops|process)_\w+)(?:\{([^}]*)\})?)");
  static const std::regex matcher(R"re((\w+)(!?=~?)("[^"]*"))re");
  const std::set<std::string> target_labels{"namespace", "pod", "service"};
  std::vector<std::string> wrong;
  for (std::sregex_iterator it(expression.begin(), expression.end(), metric), end; it != end;
       ++it) {
    const auto sample = served.find((*it)[1]);
    if (sample == served.end()) {
      wrong.push_back("not served: " + it->str());
      continue;
    }
    const auto labels = (*it)[2].str();
    for (std::sregex_iterator one(labels.begin(), labels.end(), matcher); one != end; ++one) {
      const auto label = (*one)[1].str();
      if (target_labels.contains(label)) continue;
      const auto wanted = label + "=" + ((*one)[2] == "=" ? (*one)[3].str() : "\"");
      if (sample->second.find(wanted) == std::string::npos) {
        wrong.push_back("no " + wanted + ": " + it->str());
      }
    }
  }
  return wrong;
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
    EXPECT_THAT(expression, AnyOf(HasSubstr(kPrefix), HasSubstr("process_"))) << where;
    EXPECT_THAT(mistakes(expression, served), IsEmpty()) << where;
  }
  static std::map<std::string, Samples> served_;
  static Samples both_;
};

std::map<std::string, MonitoringTest::Samples> MonitoringTest::served_;
MonitoringTest::Samples MonitoringTest::both_;

json dashboard() {
  return json::parse(read_file(chart_folder() / "files" / "event-reporter-dashboard.json"));
}

TEST_F(MonitoringTest, TheDashboardAsksForMetricsThatAreServed) {
  std::set<int> ids;
  for (const auto& panel : dashboard().at("panels")) {
    EXPECT_TRUE(ids.insert(panel.at("id").get<int>()).second) << panel.at("id");
    for (const auto& target : panel.at("targets")) {
      expect_served(panel.at("title"), target.at("expr"), both_);
    }
  }
  EXPECT_GE(ids.size(), 15U);
}

TEST_F(MonitoringTest, TheAlertsAskForMetricsThatAreServed) {
  if (const auto lacking = Helm::missing()) GTEST_SKIP() << "peers: " << *lacking;
  const auto objects = Helm().render({"-f", values_file("minimal.yaml"), "--api-versions",
                                      "monitoring.coreos.com/v1", "--set",
                                      "global.event-reporters.prometheusRule.enabled=true"});
  const auto operations =
      read_file(std::filesystem::path(GITOPS_SOURCE_DIR) / "docs/operations.md");
  for (const auto& [reporter, served] : served_) {
    const auto& rules =
        object(objects, "PrometheusRule", reporter).at("/spec/groups/0/rules"_json_pointer);
    EXPECT_GE(rules.size(), 10U);
    for (const auto& rule : rules) {
      const std::string name = rule.at("alert");
      SCOPED_TRACE(reporter);
      expect_served(name, rule.at("expr"), served);
      EXPECT_THAT(rule.at("expr"),
                  HasSubstr("{namespace=\"gitops\", pod=~\"" + reporter + "-[0-9]+\""))
          << name;
      EXPECT_THAT(rule.dump(), Not(ContainsRegex("PODS|REPORTER|REPLICAS"))) << name;
      EXPECT_THAT(operations, HasSubstr("`" + name + "`"));
    }
  }
}

TEST_F(MonitoringTest, EveryMetricIsExplained) {
  const auto operations =
      read_file(std::filesystem::path(GITOPS_SOURCE_DIR) / "docs/operations.md");
  int own = 0;
  for (const auto& [sample, lines] : both_) {
    if (!sample.starts_with(kPrefix)) continue;
    ++own;
    const auto name = std::regex_replace(sample, std::regex("_(bucket|count|sum)$"), "");
    EXPECT_THAT(operations, HasSubstr("`" + name.substr(std::string(kPrefix).size()) + "`"));
  }
  EXPECT_GE(own, 25);
}

TEST(RouterMonitoring, TheAlertsAskForMetricsThatAreServedAndExplained) {
  if (const auto lacking = Helm::missing()) GTEST_SKIP() << "peers: " << *lacking;
  RouterHarness bed;
  EXPECT_EQ(bed.get("/app-proxy/x").status, 200);
  EXPECT_NE(bed.get("/webhooks/argo/nobody").status, 200);
  const auto url = "http://127.0.0.1:" + std::to_string(bed.admin_port()) + "/metrics";
  const auto served = samples(http_call({.url = url}).body);
  const auto objects = Helm().render({"-f", values_file("minimal.yaml"), "--api-versions",
                                      "monitoring.coreos.com/v1", "--set",
                                      "internal-router.prometheusRule.enabled=true"});
  const auto& rules =
      object(objects, "PrometheusRule", "internal-router").at("/spec/groups/0/rules"_json_pointer);
  const auto docs = std::filesystem::path(GITOPS_SOURCE_DIR) / "docs";
  EXPECT_GE(rules.size(), 4U);
  for (const auto& rule : rules) {
    const std::string name = rule.at("alert");
    EXPECT_THAT(mistakes(rule.at("expr"), served), IsEmpty()) << name;
    EXPECT_THAT(rule.at("expr"), HasSubstr("{namespace=\"gitops\", pod=~\"internal-router-.+\""));
    EXPECT_THAT(rule.dump(), Not(ContainsRegex("PODS|REPLICAS"))) << name;
    EXPECT_THAT(read_file(docs / "operations.md"), HasSubstr("`" + name + "`"));
  }
  const std::string prefix = "gitops_router_";
  for (const auto& [sample, lines] : served) {
    if (!sample.starts_with(prefix)) continue;
    const auto name = std::regex_replace(sample, std::regex("_(bucket|count|sum)$"), "");
    EXPECT_THAT(read_file(docs / "request-router.md"),
                HasSubstr("`" + name.substr(prefix.size()) + "`"));
  }
}

// Alerts of a daemon of the tunnel and its metrics, which are told of on `page`.
void expect_watched(const std::string& rule_name, const std::string& values,
                    const std::string& pods, const std::string& prefix, const std::string& page,
                    const std::string& metrics) {
  const auto served = samples(metrics);
  const auto objects = Helm().render({"-f", values_file("minimal.yaml"), "--api-versions",
                                      "monitoring.coreos.com/v1", "--set", values});
  const auto& rules =
      object(objects, "PrometheusRule", rule_name).at("/spec/groups/0/rules"_json_pointer);
  const auto docs = std::filesystem::path(GITOPS_SOURCE_DIR) / "docs";
  EXPECT_GE(rules.size(), 4U);
  for (const auto& rule : rules) {
    const std::string name = rule.at("alert");
    EXPECT_THAT(mistakes(rule.at("expr"), served), IsEmpty()) << name;
    EXPECT_THAT(rule.at("expr"), HasSubstr("{namespace=\"gitops\", pod=~\"" + pods + "\""));
    EXPECT_THAT(rule.dump(), Not(ContainsRegex("PODS|REPLICAS"))) << name;
    EXPECT_THAT(read_file(docs / "operations.md"), HasSubstr("`" + name + "`"));
  }
  int own = 0;
  for (const auto& [sample, lines] : served) {
    if (!sample.starts_with(prefix)) continue;
    ++own;
    const auto name = std::regex_replace(sample, std::regex("_(bucket|count|sum)$"), "");
    const auto end = name.substr(prefix.size() - 1);
    EXPECT_THAT(read_file(docs / page), ContainsRegex("`(" + name + "|" + end + ")[`{]")) << name;
  }
  EXPECT_GE(own, 6) << metrics;
}

TEST(TunnelMonitoring, TheAlertsAskForMetricsThatAreServedAndExplained) {
  if (const auto lacking = Helm::missing()) GTEST_SKIP() << "peers: " << *lacking;
  RecordingUpstream upstream("behind", [](const RecordedRequest&, RawSocket&) { return false; });
  CertificateAuthority authority;
  OwnTunnelServer server(authority);
  OwnTunnelClient client({server.tunnel_port}, authority.ca_file(), upstream.port());
  require_until([&] { return client.is_ready() && server.serves(); }, kTimeLimit, "the tunnel");
  const auto status = [&] {
    return http_call({.url = "https://localhost:" + std::to_string(server.port),
                      .headers = {std::string("Host: ") + kRuntimeHost},
                      .ca_file = authority.ca_file()})
        .status;
  };
  EXPECT_EQ(status(), 502);  // the upstream answers nothing
  // Strangers, who are refused.
  static_cast<void>(raw_call(server.tunnel_port, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"));

  expect_watched("tunnel-server",
                 "tunnel-server.enabled=true,tunnel-server.prometheusRule.enabled=true,"
                 "tunnel-server.subdomainHost=example.test,"
                 "tunnel-server.auth.token.secretKeyRef.name=t,"
                 "tunnel-server.auth.token.secretKeyRef.key=t",
                 "tunnel-server-[0-9]+", "gitops_tunnel_server_", "tunnel-server.md",
                 server.admin("/metrics").body);
  expect_watched("codefresh-tunnel-client",
                 "global.codefresh.accountId=acc,tunnel-client.prometheusRule.enabled=true",
                 "codefresh-tunnel-client-.+", "gitops_tunnel_client_", "tunnel.md",
                 client.admin("/metrics").body);
}

TEST(AppProxyMonitoring, TheAlertsAskForMetricsThatAreServedAndExplained) {
  if (const auto lacking = Helm::missing()) GTEST_SKIP() << "peers: " << *lacking;
  std::string metrics;
  in_git_harness([&](GitHarness& world) -> Task<> {
    world.start();
    co_await world.base.account_known();
    metrics = world.base.daemon->admin("/metrics").body;
  });
  expect_watched("cap-app-proxy", "app-proxy.enabled=true,app-proxy.prometheusRule.enabled=true",
                 "cap-app-proxy-.+", "gitops_app_proxy_", "app-proxy.md", metrics);
}

TEST_F(MonitoringTest, AMetricOrLabelThatIsNotServedIsFound) {
  const std::string name = kPrefix;
  EXPECT_THAT(mistakes("rate(" + name + "queue_size[5m])", both_), IsEmpty());
  EXPECT_THAT(mistakes("rate(" + name + "queue_sizes[5m])", both_), SizeIs(1));
  EXPECT_THAT(mistakes(name + "errors_total{peer=\"nobody\", namespace=\"x\"}", both_), SizeIs(1));
  EXPECT_THAT(mistakes(name + "errors_total{colour!=\"x\"}", both_), SizeIs(1));
}

}  // namespace
}  // namespace gitops::test
