// The dashboard and the alerts use only metrics that the real daemons serve.
#include <regex>
#include <set>
#include <string>

#include <gmock/gmock.h>

#include "chart/helm.hpp"
#include "chart/monitoring_harness.hpp"
#include "daemons/reporter_process.hpp"
#include "daemons/router_harness.hpp"
#include "daemons/tunnel_processes.hpp"
#include "doubles/fake_argocd.hpp"
#include "doubles/fake_kube_api.hpp"
#include "doubles/fake_platform.hpp"
#include "e2e/git_harness.hpp"
#include "support/play.hpp"
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

// Each program's test checks the panels that ask for its metrics.
TEST(SuiteMonitoring, EveryPanelIsOfAProgramWhoseTestChecksIt) {
  std::set<std::string> all;
  for (const auto& [title, expressions] : suite_expressions("")) all.insert(title);
  std::set<std::string> checked;
  for (const char* prefix : {kPrefix, "gitops_control_plane_", "gitops_router_",
                             "gitops_app_proxy_", "gitops_tunnel_client_", "gitops_tunnel_server_",
                             "gitops_worker_pool_", "gitops_log_", "gitops_build_info"}) {
    for (const auto& [title, expressions] : suite_expressions(prefix)) checked.insert(title);
  }
  EXPECT_EQ(checked, all);
  EXPECT_GE(all.size(), 20U);
}

TEST_F(MonitoringTest, ThePanelsOfTheSuiteAskForMetricsThatAreServed) {
  for (const char* prefix : {kPrefix, "gitops_worker_pool_", "gitops_log_", "gitops_build_info"}) {
    expect_suite_panels(prefix, both_);
  }
}

TEST_F(MonitoringTest, TheAlertsAskForMetricsThatAreServed) {
  if (const auto lacking = Helm::missing()) GTEST_SKIP() << "peers: " << *lacking;
  const auto objects = Helm().render({"-f", values_file("minimal.yaml"), "--api-versions",
                                      "monitoring.coreos.com/v1", "--set",
                                      "global.event-reporters.prometheusRule.enabled=true"});
  const auto operations =
      read_file(std::filesystem::path(GITOPS_SOURCE_DIR) / "docs/operations/event-reporter.md");
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
  const auto page = read_file(std::filesystem::path(GITOPS_SOURCE_DIR) /
                              "docs/reference/metrics/event-reporter.md");
  int own = 0;
  for (const auto& [sample, lines] : both_) {
    if (!sample.starts_with(kPrefix)) continue;
    ++own;
    const auto name = std::regex_replace(sample, std::regex("_(bucket|count|sum)$"), "");
    EXPECT_THAT(page, HasSubstr("`" + name.substr(std::string(kPrefix).size()) + "`"));
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
  expect_suite_panels("gitops_router_", served);
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
    EXPECT_THAT(read_file(docs / "operations/request-router.md"), HasSubstr("`" + name + "`"));
  }
  const std::string prefix = "gitops_router_";
  for (const auto& [sample, lines] : served) {
    if (!sample.starts_with(prefix)) continue;
    const auto name = std::regex_replace(sample, std::regex("_(bucket|count|sum)$"), "");
    EXPECT_THAT(read_file(docs / "reference/metrics/request-router.md"),
                HasSubstr("`" + name.substr(prefix.size()) + "`"));
  }
}

// Alerts of a daemon, which docs/operations has on `alerts`, and its metrics, which docs/reference/metrics
// has on `page`.
void expect_watched(const std::string& rule_name, const std::string& values,
                    const std::string& pods, const std::string& prefix, const std::string& alerts,
                    const std::string& page, const std::string& metrics) {
  const auto served = samples(metrics);
  expect_suite_panels(prefix, served);
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
    EXPECT_THAT(read_file(docs / "operations" / alerts), HasSubstr("`" + name + "`"));
  }
  int own = 0;
  for (const auto& [sample, lines] : served) {
    if (!sample.starts_with(prefix)) continue;
    ++own;
    const auto name = std::regex_replace(sample, std::regex("_(bucket|count|sum)$"), "");
    const auto end = name.substr(prefix.size() - 1);
    EXPECT_THAT(read_file(docs / "reference/metrics" / page),
                ContainsRegex("`(" + name + "|" + end + ")[`{]"))
        << name;
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
                 "tunnel-server-[0-9]+", "gitops_tunnel_server_", "tunnel.md", "tunnel-server.md",
                 server.admin("/metrics").body);
  expect_watched("codefresh-tunnel-client",
                 "global.codefresh.accountId=acc,tunnel-client.prometheusRule.enabled=true",
                 "codefresh-tunnel-client-.+", "gitops_tunnel_client_", "tunnel.md",
                 "tunnel-client.md", client.admin("/metrics").body);
}

TEST(AppProxyMonitoring, TheAlertsAskForMetricsThatAreServedAndExplained) {
  if (const auto lacking = Helm::missing()) GTEST_SKIP() << "peers: " << *lacking;
  std::string metrics;
  in_git_harness([&](GitHarness& harness) -> Task<> {
    harness.start();
    co_await harness.base.account_known();
    metrics = harness.base.daemon->admin("/metrics").body;
  });
  expect_watched("cap-app-proxy", "app-proxy.enabled=true,app-proxy.prometheusRule.enabled=true",
                 "cap-app-proxy-.+", "gitops_app_proxy_", "app-proxy.md", "app-proxy.md", metrics);
}

TEST_F(MonitoringTest, AMetricOrLabelThatIsNotServedIsFound) {
  const std::string name = kPrefix;
  EXPECT_THAT(mistakes("rate(" + name + "queue_size[5m])", both_), IsEmpty());
  EXPECT_THAT(mistakes("rate(" + name + "queue_sizes[5m])", both_), SizeIs(1));
  EXPECT_THAT(mistakes(name + "errors_total{peer=\"nobody\", namespace=\"x\"}", both_), SizeIs(1));
  EXPECT_THAT(mistakes(name + "errors_total{colour!=\"x\"}", both_), SizeIs(1));
  const auto errors = "(rate(" + name + "errors_total[5m]))";
  EXPECT_THAT(mistakes("sum by (pod, peer) " + errors, both_), IsEmpty());
  EXPECT_THAT(mistakes("sum by (pod, colour) " + errors, both_), SizeIs(1));
}

}  // namespace
}  // namespace gitops::test
