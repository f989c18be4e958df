#include "chart/promtool.hpp"

#include <filesystem>
#include <stdexcept>
#include <utility>

#include "chart/helm.hpp"
#include "support/process.hpp"
#include "support/yaml_manifests.hpp"

namespace gitops::test {
namespace {

using Json = nlohmann::json;

constexpr const char* kEverything =
    "global.event-reporters.prometheusRule.enabled=true,"
    "internal-router.prometheusRule.enabled=true,"
    "app-proxy.enabled=true,app-proxy.prometheusRule.enabled=true,"
    "global.codefresh.accountId=acc,tunnel-client.prometheusRule.enabled=true,"
    "tunnel-server.enabled=true,tunnel-server.prometheusRule.enabled=true,"
    "tunnel-server.subdomainHost=example.test,tunnel-server.auth.token.secretKeyRef.name=t,"
    "tunnel-server.auth.token.secretKeyRef.key=t";

}  // namespace

std::map<std::string, Json> alert_groups() {
  std::map<std::string, Json> groups;
  const auto add = [&groups](const Json& objects) {
    for (const Json& rule : objects) {
      if (rule.value("kind", "") != "PrometheusRule") continue;
      for (const Json& group : rule.at("/spec/groups"_json_pointer)) {
        groups[group.at("name")] = group;
      }
    }
  };
  const Helm helm;
  add(helm.render({"-f", values_file("minimal.yaml"), "--api-versions", "monitoring.coreos.com/v1",
                   "--set", kEverything}));
  const auto chart = std::filesystem::path(GITOPS_SOURCE_DIR) / "charts/gitops-control-plane";
  const auto rendered =
      helm.run({"template", "cp", chart.string(), "--namespace", "gitops", "--api-versions",
                "monitoring.coreos.com/v1", "--set", "prometheusRule.enabled=true"});
  if (!rendered.ok()) throw std::runtime_error("helm template: " + rendered.err);
  add(parse_manifests(rendered.out).value());
  return groups;
}

std::optional<std::string> PromtoolCase::missing() {
  if (auto lacking = Helm::missing()) return lacking;
  if (!find_program("promtool")) return "promtool is not installed (Debian: prometheus)";
  return std::nullopt;
}

void PromtoolCase::add_series(const std::string& series, const std::string& values) {
  series_.push_back({{"series", series}, {"values", values}});
}

void PromtoolCase::expect(const std::string& expression, const std::string& at,
                          std::vector<double> values) {
  Json samples = Json::array();
  for (const double value : values) samples.push_back({{"labels", "{}"}, {"value", value}});
  expectations_.push_back({{"expr", expression}, {"eval_time", at}, {"exp_samples", samples}});
}

Json PromtoolCase::json() const {
  return {{"interval", std::to_string(interval_.count()) + "s"},
          {"input_series", series_},
          {"promql_expr_test", expectations_}};
}

std::string run_promtool(const std::vector<Json>& groups, const std::vector<PromtoolCase>& cases) {
  const TempDir folder("gitops-alerts");
  // JSON is YAML.
  write_file(folder / "rules.yaml", Json{{"groups", groups}}.dump());
  Json tests = Json::array();
  for (const auto& one : cases) tests.push_back(one.json());
  write_file(folder / "tests.yaml",
             Json{{"rule_files", {"rules.yaml"}}, {"evaluation_interval", "30s"}, {"tests", tests}}
                 .dump());
  const auto result = run_command({"promtool", "test", "rules", (folder / "tests.yaml").string()},
                                  {}, {}, std::chrono::minutes(3));
  return result.ok() ? std::string() : result.out + result.err;
}

}  // namespace gitops::test
