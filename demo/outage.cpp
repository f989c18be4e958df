// The part of the scene in which many changes happen while the control plane is away.
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
  auto seen = page_->rows().size();
  co_await push(settings(0, kSettings, "old"), std::to_string(kSettings) + " settings");
  co_await world_.sync(kAppName, last_revision_);
  // The commit at which the page shows each setting.
  std::map<std::string, std::string> revisions;
  const auto count_not_at = [&](const std::string& revision) {
    const auto& rows = page_->rows();
    for (; seen < rows.size(); ++seen) {
      if (rows[seen].name().starts_with("setting-")) {
        revisions[rows[seen].name()] = rows[seen].text("revision");
      }
    }
    return std::ranges::count_if(revisions,
                                 [&](const auto& entry) { return entry.second != revision; });
  };
  const auto old = last_revision_;
  co_await wait_for(seen, "every setting", [&](const Row&) {
    return count_not_at(old) == 0 && revisions.size() == kSettings;
  });
  narrator_.shown(Clock::now(), "all " + std::to_string(kSettings) + " settings");
  co_await plane_.wait_until_quiet();

  own_part_ = co_await own_part();
  const auto events_before = co_await plane_.events();
  check(events_before.repeated == 0, "an event came twice");
  stored_ = events_before.stored;

  const auto away = Clock::now();
  const auto rows_before = page_->rows().size();
  plane_.kill();
  narrator_.step("the control plane was killed (SIGKILL)");
  co_await change_while_away(away + kOutage);
  co_await plane_.start_again();
  const auto back = Clock::now();
  const auto seconds = [](Clock::duration time) {
    return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(time).count()) + " s";
  };
  narrator_.step("the control plane is back with its database, after " + seconds(back - away));

  const auto* last = co_await page_->wait_for(
      [&](const Row&) { return count_not_at(old) == kSettings; }, deadline_after(kTimeLimit), seen);
  check(last != nullptr, "only " + std::to_string(count_not_at(old)) + " of " +
                             std::to_string(kSettings) + " changes are shown");
  const auto* app = co_await wait_for_revision(rows_before, "Application", last_revision_);
  narrator_.shown(app->arrived, describe(*app));
  narrator_.shown(last->arrived, "all " + std::to_string(kSettings) + " changes, " +
                                     seconds(last->arrived - back) + " after its return");
  co_await plane_.wait_until_quiet();
  // One for each setting. The application has others: one for each deployment, and for its states.
  const auto events = co_await plane_.events();
  check(events.stored >= kSettings && events.stored <= kSettings + 2 * kCommits,
        std::to_string(events.stored) + " events came for the changes");
  check(events.repeated == 0, "an event came twice");

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
    co_await world_.sync(kAppName, last_revision_);
  }
  narrator_.step(std::to_string(kSettings) + " changes, of which nobody knows yet");
  if (Clock::now() < until) co_await sleep_for(until - Clock::now());
}

void Scene::kill_daemon() {
  daemon_->signal(SIGKILL);
  std::ignore = daemon_->wait(std::chrono::seconds(5));
  narrator_.step("event-reporter was killed (SIGKILL)");
}

}  // namespace gitops::demo
