// The dashboard and the alerts ask for metrics that the real event-reporter serves.

#include <csignal>
#include <iostream>
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
#include "support/fake_argocd.hpp"
#include "support/fake_kube_api.hpp"
#include "support/fake_platform.hpp"
#include "support/reporter_process.hpp"
#include "support/run_coro.hpp"

namespace gitops::test {
namespace {

using nlohmann::json;
using testing::AnyOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr const char* kPrefix = "gitops_event_reporter_";
constexpr auto kPatience = std::chrono::seconds(20);

// An Application without resources; each content is another state of it.
json application(const std::string& name, int content) {
  return {{"apiVersion", "argoproj.io/v1alpha1"},
          {"kind", "Application"},
          {"metadata", {{"name", name}, {"namespace", "argocd"}, {"uid", "uid-" + name}}},
          {"spec", {{"project", "default"}}},
          {"status", {{"content", content}}}};
}

// The program in a world in which everything that has a metric happens.
class World {
 public:
  explicit World(const Executor& executor)
      : kube(executor), argocd(executor, kube), platform(executor) {}

  Task<> start() {
    CO_ASSERT_OK(kube.start());
    CO_ASSERT_OK(argocd.start());
    CO_ASSERT_OK(platform.start());
    write_file(folder_ / "kubeconfig", kube.kubeconfig());
    daemon.emplace(
        std::vector<std::string>{std::string(GITOPS_BIN_DIR) + "/event-reporter", "--port=0",
                                 "--listen-address=127.0.0.1", "--admin-port=0",
                                 "--admin-address=127.0.0.1", "--drain-timeout=1s",
                                 "--ledger-file=" + (folder_ / "ledger.db").string()},
        Environment{{"POD_NAMESPACE", "argocd"},
                    {"KUBECONFIG", (folder_ / "kubeconfig").string()},
                    {"ARGOCD_SERVER", argocd.url().to_string()},
                    {"ARGOCD_TOKEN", FakeArgoCd::Options().token},
                    {"CODEFRESH_URL", platform.url().to_string()},
                    {"CODEFRESH_TOKEN", FakePlatform::Options().token}},
        kPatience);
    CO_ASSERT_TRUE(co_await daemon->wait_for_readyz("ready\n"));
  }
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
  Task<bool> wait_for_metric(const std::string& start_of_line) {
    const auto deadline = deadline_after(kPatience);
    while (daemon->get("/metrics").body.find("\n" + start_of_line) == std::string::npos) {
      if (Clock::now() > deadline) co_return false;
      co_await sleep_for(std::chrono::milliseconds(50));
    }
    co_return true;
  }

  FakeKubeApi kube;
  FakeArgoCd argocd;
  FakePlatform platform;
  std::optional<ReporterProcess> daemon;

 private:
  TempDir folder_;
  int content_ = 0;
};

// What /metrics says after events, a dead letter, failures of each peer and of the disk.
std::string eventful_metrics() {
  std::string text;
  // The program inherits that; it gets an error then, like that of a full disk.
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  run_coro(
      [&]() -> Task<> {
        World world(co_await asio::this_coro::executor);
        const auto script = [&]() -> Task<> {
          co_await world.start();
          const std::string prefix = kPrefix;
          world.put("good");
          CO_ASSERT_TRUE(co_await world.wait_for_metric(
              prefix + "reports_total{part=\"application\",result=\"acknowledged\"}"));
          world.platform.fail_next(1, 400, {}, "/events");
          world.put("refused");
          CO_ASSERT_TRUE(
              co_await world.wait_for_metric(prefix + "dead_letters_total{reason=\"400\"}"));
          world.argocd.fail_next(1, 503, {}, "resource-tree");
          world.put("unlucky");
          CO_ASSERT_TRUE(co_await world.wait_for_metric(
              prefix + "errors_total{code=\"unavailable\",peer=\"argocd\"}"));
          world.kube.fail_next(1, 500, {}, "applications");
          world.kube.cut_watches();
          CO_ASSERT_TRUE(co_await world.wait_for_metric(prefix + "watch_errors_total{"));
          const auto pid = world.daemon->process().pid();
          rlimit files{};
          CO_ASSERT_EQ(::prlimit(pid, RLIMIT_FSIZE, nullptr, &files), 0);
          files.rlim_cur = 0;
          CO_ASSERT_EQ(::prlimit(pid, RLIMIT_FSIZE, &files, nullptr), 0);
          world.put("unwritten");
          CO_ASSERT_TRUE(co_await world.wait_for_metric(prefix + "ledger_failures_total{"));
          text = world.daemon->get("/metrics").body;
        };
        std::exception_ptr failure;
        try {
          co_await script();
        } catch (...) {
          failure = std::current_exception();
        }
        if (testing::Test::HasFailure() && world.daemon) std::cerr << world.daemon->log();
        co_await world.stop();
        if (failure) std::rethrow_exception(failure);
      },
      std::chrono::seconds(60));
  std::signal(SIGXFSZ, before);
  return text;
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

// What is wrong with the metrics that a PromQL expression names: those that are not served, and
// labels that they do not have. namespace, pod and service are Prometheus's own.
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

class MonitoringTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { served_ = samples(eventful_metrics()); }

  static void expect_served(const std::string& where, const std::string& expression) {
    EXPECT_THAT(expression, AnyOf(HasSubstr(kPrefix), HasSubstr("process_"))) << where;
    EXPECT_THAT(mistakes(expression, served_), IsEmpty()) << where;
  }
  static std::map<std::string, std::string> served_;
};

std::map<std::string, std::string> MonitoringTest::served_;

json dashboard() {
  return json::parse(read_file(chart_folder() / "files" / "event-reporter-dashboard.json"));
}

TEST_F(MonitoringTest, TheDashboardAsksForMetricsThatAreServed) {
  std::set<int> ids;
  for (const auto& panel : dashboard().at("panels")) {
    EXPECT_TRUE(ids.insert(panel.at("id").get<int>()).second) << panel.at("id");
    for (const auto& target : panel.at("targets")) {
      expect_served(panel.at("title"), target.at("expr"));
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
  const auto& rules =
      object(objects, "PrometheusRule", "event-reporter").at("/spec/groups/0/rules"_json_pointer);
  EXPECT_GE(rules.size(), 10U);
  for (const auto& rule : rules) {
    const std::string name = rule.at("alert");
    expect_served(name, rule.at("expr"));
    EXPECT_THAT(rule.at("expr"), HasSubstr("namespace=\"gitops\"")) << name;
    EXPECT_THAT(operations, HasSubstr("`" + name + "`"));
  }
}

TEST_F(MonitoringTest, EveryMetricIsExplained) {
  const auto operations =
      read_file(std::filesystem::path(GITOPS_SOURCE_DIR) / "docs/operations.md");
  int own = 0;
  for (const auto& [sample, lines] : served_) {
    if (!sample.starts_with(kPrefix)) continue;
    ++own;
    const auto name =
        std::regex_replace(sample, std::regex("_seconds_(bucket|count|sum)$"), "_seconds");
    EXPECT_THAT(operations, HasSubstr("`" + name.substr(std::string(kPrefix).size()) + "`"));
  }
  EXPECT_GE(own, 25);
}

TEST_F(MonitoringTest, AMetricOrLabelThatIsNotServedIsFound) {
  const std::string name = kPrefix;
  EXPECT_THAT(mistakes("rate(" + name + "queue_size[5m])", served_), IsEmpty());
  EXPECT_THAT(mistakes("rate(" + name + "queue_sizes[5m])", served_), SizeIs(1));
  EXPECT_THAT(mistakes(name + "errors_total{peer=\"nobody\", namespace=\"x\"}", served_),
              SizeIs(1));
  EXPECT_THAT(mistakes(name + "errors_total{colour!=\"x\"}", served_), SizeIs(1));
}

}  // namespace
}  // namespace gitops::test
