// The dashboard and the alerts use only metrics that the program serves, and docs/operations and
// docs/reference/metrics explain all of them.
#include <filesystem>
#include <regex>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "daemons/control_plane_process.hpp"
#include "daemons/served_metrics.hpp"

namespace gitops::test {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;
namespace fs = std::filesystem;

constexpr std::string_view kControlPlanePrefix = "gitops_control_plane_";

std::map<std::string, std::string> served_samples() {
  const TempDir folder;
  write_file(folder / "api", "api-token");
  ControlPlaneProcess program(
      {}, {"--tunnel.domain=tunnels.example", "--tunnel.api-urls=http://127.0.0.1:1",
           "--tunnel.api-token-file=" + (folder / "api").string()});
  program.start();
  return samples(program.admin("/metrics").body);
}

fs::path monitoring_file(const char* name) {
  return fs::path(GITOPS_SOURCE_DIR) / "apps/control-plane/monitoring" / name;
}

std::string docs_page(const char* name) {
  return read_file(fs::path(GITOPS_SOURCE_DIR) / "docs" / name);
}

TEST(ControlPlaneMonitoring, TheDashboardAsksForMetricsThatAreServed) {
  const auto served = served_samples();
  const auto dashboard = Json::parse(read_file(monitoring_file("dashboard.json")));
  std::set<int> ids;
  for (const auto& panel : dashboard.at("panels")) {
    EXPECT_TRUE(ids.insert(panel.at("id").get<int>()).second) << panel.at("id");
    for (const auto& target : panel.at("targets")) {
      const std::string expression = target.at("expr");
      EXPECT_THAT(mistakes(expression, served), IsEmpty()) << panel.at("title");
      EXPECT_THAT(expression, HasSubstr(R"({namespace="$namespace", pod=~"$pod")"))
          << panel.at("title");
    }
  }
  EXPECT_GE(ids.size(), 15U);
}

TEST(ControlPlaneMonitoring, ThePanelsOfTheSuiteAskForMetricsThatAreServed) {
  expect_suite_panels(std::string(kControlPlanePrefix), served_samples());
}

TEST(ControlPlaneMonitoring, TheAlertsAskForMetricsThatAreServedAndAreExplained) {
  const auto alerts = read_file(monitoring_file("alerts.yaml"));
  EXPECT_THAT(mistakes(alerts, served_samples()), IsEmpty());
  const auto page = docs_page("operations/control-plane.md");
  const std::regex name("alert: (\\w+)");
  int count = 0;
  for (std::sregex_iterator it(alerts.begin(), alerts.end(), name), end; it != end; ++it) {
    ++count;
    EXPECT_THAT(page, HasSubstr("`" + (*it)[1].str() + "`"));
  }
  EXPECT_GE(count, 6);
}

TEST(ControlPlaneMonitoring, EveryMetricIsExplained) {
  const auto page = docs_page("reference/metrics/control-plane.md");
  int own = 0;
  for (const auto& [sample, lines] : served_samples()) {
    if (!sample.starts_with(kControlPlanePrefix)) continue;
    ++own;
    const auto name = std::regex_replace(sample, std::regex("_(bucket|count|sum)$"), "");
    const auto row = "`" + name.substr(kControlPlanePrefix.size()) + "`";
    EXPECT_TRUE(page.contains(row)) << row;
  }
  EXPECT_GE(own, 15);
}

}  // namespace
}  // namespace gitops::test
