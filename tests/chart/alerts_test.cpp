// The alerts of both charts, as Prometheus evaluates them: each fires on the fault that it is for, and none in a day of
// the demo's load. That day is simulated: what the programs serve is recorded for a minute or two under a load, with a
// burst, restarts of all programs, and an outage of the control plane, and played by a schedule of 24 hours.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <set>
#include <string>

#include <gmock/gmock.h>

#include "chart/day.hpp"
#include "chart/demo_load.hpp"
#include "chart/firing_cases.hpp"
#include "chart/promtool.hpp"
#include "support/play.hpp"
#include "support/run_coro.hpp"

namespace gitops::test {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

constexpr auto kInterval = seconds(30);  // that the charts set
constexpr const char* kFired =
    R"(count by (alertname, pod) (count_over_time(ALERTS{alertstate="firing"}[26h])))";

std::string firing(const std::string& alert) {
  return "count(ALERTS{alertstate=\"firing\", alertname=\"" + alert + "\"}) > bool 0";
}

// Labels as Prometheus adds them, but for those that are named already.
std::string scraped(const FiringCase& of, const std::string& metric) {
  const auto brace = metric.find('{');
  const auto labels =
      brace == metric.npos ? "" : metric.substr(brace + 1, metric.size() - brace - 2);
  auto text = metric.substr(0, brace) + "{";
  if (!labels.contains("namespace=")) text += "namespace=\"gitops\", ";
  if (!labels.contains("pod=")) text += "pod=\"" + of.group + "-0\"";
  if (!labels.contains("pod=") && !labels.empty()) text += ", ";
  return text + labels + "}";
}

TEST(Alerts, EachFiresOnTheFaultThatItIsFor) {
  if (const auto lacking = PromtoolCase::missing()) GTEST_SKIP() << "peers: " << *lacking;
  std::map<std::string, std::set<std::string>> cases;
  const auto groups = alert_groups();
  for (const auto& one : firing_cases()) {
    SCOPED_TRACE(one.group + ": " + one.alert);
    cases[one.group].insert(one.alert);
    PromtoolCase rules(kInterval);
    for (const auto& series : one.series) {
      rules.add_series(scraped(one, series.metric), series.values);
    }
    rules.expect(firing(one.alert), "30s", {});
    rules.expect(firing(one.alert), one.at, {1});
    EXPECT_EQ(run_promtool({groups.at(one.group)}, {rules}), "");
  }
  for (const auto& [name, group] : groups) {
    std::set<std::string> alerts;
    for (const auto& rule : group.at("rules")) alerts.insert(rule.at("alert"));
    EXPECT_EQ(cases[name], alerts)
        << name << ": an alert without a case, or a case without an alert";
  }
}

struct Recording {
  std::vector<Frame> work;
  std::vector<Frame> burst;
  std::vector<Frame> quiet;
  std::vector<Frame> restarts;
  std::vector<Frame> outage;
};

Recording record() {
  Recording recording;
  run_coro(
      [&]() -> Task<> {
        GitServer git;
        auto world = co_await demo::embedded_world(git);
        DemoLoad load(co_await asio::this_coro::executor, world, git);
        co_await play_in(load, [&](DemoLoad& recorded) -> Task<> {
          co_await recorded.start();
          if (testing::Test::HasFailure()) co_return;
          recording.work = co_await recorded.record({.commits = 1, .requests = 4}, 12);
          recording.burst = co_await recorded.record({.commits = 4, .requests = 25}, 4);
          recording.quiet = co_await recorded.record({}, 6);
          recording.restarts = co_await recorded.record_restarts({.commits = 1, .requests = 4});
          recording.outage = co_await recorded.record_outage({.commits = 1, .requests = 4});
        });
        co_await world.stop();
      },
      std::chrono::minutes(10));
  return recording;
}

void play_day(Day& day, const Recording& recording) {
  day.play_until(hours(6), recording.quiet);
  day.play_until(hours(9), recording.work);
  day.play_until(hours(9) + std::chrono::minutes(15), recording.burst);
  day.play_until(hours(11), recording.work);
  day.play(recording.restarts);
  day.play_until(hours(14), recording.work);
  day.play(recording.outage);
  day.play_until(hours(16), recording.work);
  day.play(recording.restarts);  // a new version
  day.play_until(hours(18), recording.work);
  day.play_until(hours(19), recording.quiet);
  day.play(recording.outage);  // with hardly any other traffic
  day.play_until(hours(24), recording.quiet);
}

// The samples that the rules ask for.
void add_series(PromtoolCase& rules, const Day& day, const std::string& expressions) {
  std::size_t used = 0;
  for (const auto& [series, values] : day.series()) {
    if (!expressions.contains(series.substr(0, series.find('{')))) continue;
    rules.add_series(series, values);
    ++used;
  }
  std::cout << used << " series of " << day.time().count() << " s\n";
  EXPECT_GT(used, 60U);
}

TEST(Alerts, NoneFiresInADayOfTheDemosLoad) {
  if (const auto lacking = PromtoolCase::missing()) GTEST_SKIP() << "peers: " << *lacking;
  const auto recording = record();
  ASSERT_FALSE(testing::Test::HasFailure());
  std::vector<nlohmann::json> groups;
  std::string expressions;
  for (const auto& [name, group] : alert_groups()) {
    groups.push_back(group);
    for (const auto& rule : group.at("rules")) expressions += rule.at("expr").get<std::string>();
  }

  Day day(kInterval, DemoLoad::programs());
  play_day(day, recording);
  PromtoolCase calm_day(kInterval);
  add_series(calm_day, day, expressions);
  calm_day.expect(kFired, "24h", {});
  // The rules see what they ask for.
  calm_day.expect("count(gitops_router_connections)", "12h", {1});
  calm_day.expect("count(gitops_event_reporter_queue_size)", "12h", {4});
  // Nothing is scraped any more.
  calm_day.expect(firing("RequestRouterMissing"), "25h", {1});
  calm_day.expect(firing("ControlPlaneMissing"), "25h", {1});
  calm_day.expect(firing("TunnelClientNotServing"), "25h", {1});
  EXPECT_EQ(run_promtool(groups, {calm_day}), "");
}

}  // namespace
}  // namespace gitops::test
