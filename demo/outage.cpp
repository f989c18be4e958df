// The part of the scene in which many changes happen while the control plane is down.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <map>
#include <string>
#include <tuple>

#include <nlohmann/json.hpp>

#include "scene.hpp"

namespace gitops::demo {
namespace {

constexpr int kSettings = 200;
constexpr int kCommits = 10;
constexpr auto kOutage = std::chrono::seconds(20);
constexpr auto kTimeLimit = std::chrono::seconds(60);

std::string name_of(int number) {
  return "setting-" + std::to_string(number);
}

std::string config_map(int number, const std::string& value) {
  return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name_of(number) +
         "\ndata:\n  value: " + value + "\n";
}

// Returns files of the settings from number `first`, all with the same value.
test::FileChanges settings(int first, int count, const std::string& value) {
  test::FileChanges changes;
  for (int number = first; number < first + count; ++number) {
    changes[name_of(number) + ".yaml"] = config_map(number, value);
  }
  return changes;
}

}  // namespace

Task<> Scene::outage() {
  const auto reads_before = co_await world_.reads();
  const auto commits_before = commits_;
  auto seen = platform_.reports().size();
  co_await push(settings(0, kSettings, "old"), std::to_string(kSettings) + " settings");
  co_await world_.sync(last_revision_);
  // The last acknowledged value of each setting.
  std::map<std::string, std::string> values;
  const auto count_of = [&](const std::string& value) {
    for (; seen < platform_.reports().size(); ++seen) {
      const auto& report = platform_.reports()[seen];
      if (report.kind() != "ConfigMap" || !report.name().starts_with("setting-")) continue;
      values[report.name()] = report.object.value("/data/value"_json_pointer, "");
    }
    return std::ranges::count(values, value, [](const auto& entry) { return entry.second; });
  };
  const auto all_are = [&](const char* value) {
    return [&, value](const Report&) { return count_of(value) == kSettings; };
  };
  co_await wait_for(seen, "every setting", all_are("old"));
  narrator_.step("all " + std::to_string(kSettings) + " settings were reported");
  co_await wait_until_quiet();

  own_part_ = co_await own_part();

  const auto away = Clock::now();
  const auto reports_before = platform_.reports().size();
  co_await platform_.stop();
  narrator_.step("the control plane refuses connections");
  co_await change_while_away(away + kOutage);
  check(platform_.reports().size() == reports_before, "an event arrived during the outage");
  if (const auto started = platform_.start(); !started) throw Failure(started.error().message);
  const auto back = Clock::now();
  const auto seconds = [](Clock::duration time) {
    return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(time).count()) + " s";
  };
  narrator_.step("the control plane is back, after " + seconds(back - away));

  const auto* last = co_await platform_.wait_for(all_are("new"), deadline_after(kTimeLimit), seen);
  check(last != nullptr, "only " + std::to_string(count_of("new")) + " of " +
                             std::to_string(kSettings) + " final states arrived");
  const auto* root = co_await wait_for(
      reports_before, "the application at its last revision", [&](const Report& candidate) {
        return candidate.kind() == "Application" && candidate.source("syncStatus") == "Synced" &&
               candidate.object.value("/status/sync/revision"_json_pointer, "") == last_revision_;
      });
  narrator_.received(root->arrived, "Application " + root->name() + ", Synced, revision " +
                                        last_revision_.substr(0, 7));
  narrator_.received(last->arrived, "all " + std::to_string(kSettings) + " final states, " +
                                        seconds(last->arrived - back) + " after its return");
  co_await wait_until_quiet();
  std::map<std::string, int> times;
  for (std::size_t i = reports_before; i < platform_.reports().size(); ++i) {
    const auto& report = platform_.reports()[i];
    if (report.kind() == "ConfigMap") ++times[report.name()];
  }
  check(std::ranges::all_of(times, [](const auto& entry) { return entry.second == 1; }),
        "a setting was reported more than once after the outage");
  check(times.size() == kSettings, "something was reported that did not change");

  const auto reads = co_await world_.reads();
  outage_reads_ = {.trees = reads.trees - reads_before.trees,
                   .managed = reads.managed - reads_before.managed,
                   .revisions = reads.revisions - reads_before.revisions};
  outage_commits_ = commits_ - commits_before;
}

// Commits and syncs, kills the daemon in between, and waits until the outage may end.
Task<> Scene::change_while_away(Clock::time_point until) {
  constexpr int kEach = kSettings / kCommits;
  for (int commit = 0; commit < kCommits; ++commit) {
    if (commit == kCommits / 2) kill_daemon();
    if (commit == kCommits / 2 + 2) co_await start_daemon("/healthz");
    co_await push(settings(commit * kEach, kEach, "new"), std::to_string(kEach) + " new settings");
    co_await world_.sync(last_revision_);
  }
  narrator_.step(std::to_string(kSettings) + " changes, none of them reported yet");
  if (Clock::now() < until) co_await sleep_for(until - Clock::now());
}

void Scene::kill_daemon() {
  daemon_->signal(SIGKILL);
  std::ignore = daemon_->wait(std::chrono::seconds(5));
  narrator_.step("event-reporter was killed (SIGKILL)");
}

}  // namespace gitops::demo
