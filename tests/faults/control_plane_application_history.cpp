#include "faults/control_plane_application_history.hpp"

#include <algorithm>
#include <array>
#include <sstream>
#include <tuple>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "faults/history_events.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"

namespace gitops::test {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

constexpr int kFills = 50;
constexpr const char* kReporterKilled = "kill -9 of the reporter";

json parsed(const std::string& text, const json& otherwise) {
  auto value = json::parse(text, nullptr, false);
  return value.is_discarded() ? otherwise : value;
}

}  // namespace

ReceivedEvent event_of_row(const ControlPlaneHistoryHarness::Row& row) {
  using control_plane_server::Presence;
  const auto& state = row.state;
  const auto& key = state.key;
  FakePlatform::Report report;
  report.event_id = state.event_id;
  report.sequence = static_cast<std::uint64_t>(state.sequence);
  report.object = parsed(row.body.live, json::object());
  auto source = parsed(row.body.source, json::object());
  source["actualManifest"] = row.body.live;
  source["desiredManifest"] = row.body.desired.empty() ? row.body.live : row.body.desired;
  report.data = {{"source", std::move(source)}, {"errors", parsed(row.body.errors, json::array())}};
  auto event = read_application_event(report);
  // The texts of an object stay after its deletion; the row of an object that was never seen has none.
  event.object = identity_of(key.owner_uid.empty() ? state.uid : key.owner_uid, key.kind,
                             key.object_namespace, key.name);
  if (state.presence == Presence::gone) event.state.reset();
  return event;
}

Task<> ControlPlaneApplicationHistory::prepare() {
  co_await ApplicationHistory::prepare();
  pod().report_to(control_plane_.url(), control_plane_.register_runtime(kRuntime));
}

HistoryModel ControlPlaneApplicationHistory::judged() const {
  auto judge = model.without_events();
  for (const auto& row : control_plane_.rows()) judge.receive(event_of_row(row));
  return judge;
}

Task<bool> ControlPlaneApplicationHistory::stored() {
  if (!co_await pod().process().started()) {
    ADD_FAILURE() << "the reporter has not started: " << pod().process().report();
    co_return false;
  }
  TimeLimit time_limit(kSettle);
  while (true) {
    const auto begin = Clock::now();
    const auto judge = judged();
    if (judge.lost().empty()) {
      ++checks_;
      EXPECT_EQ(judge.wrong(), std::vector<std::string>());
      co_return !testing::Test::HasFailure();
    }
    if (time_limit.over()) {
      for (const auto& line : judge.lost()) ADD_FAILURE() << "lost: " << line << judge.trails(line);
      for (const auto& line : judge.wrong()) ADD_FAILURE() << "wrong: " << line;
      ADD_FAILURE() << "not settled: " << pod().process().status();
      co_return false;
    }
    // The doubles answer the reporter on this loop, which the reading has blocked.
    co_await sleep_for(milliseconds(50) + 2 * (Clock::now() - begin));
  }
}

Task<> ControlPlaneApplicationHistory::kill_reporter() {
  ++counts_[kReporterKilled];
  note(std::string(kReporterKilled) + "; ");
  kill(pod());
  co_await live(pick(3));
  start_pod(pod());
  // It may be killed again before its first list has ended.
  if (pick(3) > 0) std::ignore = co_await pod().process().started();
}

// PostgreSQL goes on until it needs a new page.
Task<> ControlPlaneApplicationHistory::fill_until_seen() {
  for (int times = 0; times < kFills && control_plane_.program().process().running(); ++times) {
    if (control_plane_.program().admin("/readyz").status != 200) {
      ++disks_seen_;
      co_return;
    }
    change_all();
    co_await sleep_for(milliseconds(100));
  }
}

Task<> ControlPlaneApplicationHistory::inject(std::vector<ControlPlaneFault> faults) {
  using Kind = ControlPlaneFault::Kind;
  co_await live(1 + pick(3));
  for (const auto& fault : faults) {
    ++counts_[fault.name];
    note(fault.name + "; ");
    fault.begin();
    co_await live(1 + pick(3));
    if (fault.kind == Kind::disk) co_await fill_until_seen();
  }
  if (pick(4) == 0) co_await kill_reporter();
  // The program starts after its database, and answers come after both.
  constexpr std::array kOrder{Kind::disk, Kind::database, Kind::program, Kind::answers};
  std::ranges::sort(faults, {}, [&](const ControlPlaneFault& fault) {
    return std::ranges::find(kOrder, fault.kind);
  });
  for (const auto& fault : faults) {
    // Only reports have answers.
    if (fault.kind == Kind::answers) change_all();
    co_await fault.end();
  }
  co_await live(1);
}

Task<> ControlPlaneApplicationHistory::play(std::vector<ControlPlaneFault> faults) {
  create_all();
  change_all();
  CO_ASSERT_TRUE(co_await stored());
  while (!faults.empty()) {
    std::vector<ControlPlaneFault> now{std::move(faults.back())};
    faults.pop_back();
    if (pick(3) == 0 && !faults.empty() && may_be_at_once(now.front(), faults.back())) {
      now.push_back(std::move(faults.back()));
      faults.pop_back();
      ++pairs_;
    }
    co_await inject(std::move(now));
    if (testing::Test::HasFailure()) co_return;
    if (pick(2) == 0) finish_deletions();
    CO_ASSERT_TRUE(co_await stored());
  }
}

std::string ControlPlaneApplicationHistory::figures_text() const {
  std::ostringstream out;
  const auto judge = judged();
  std::size_t live = 0;
  std::size_t gone = 0;
  for (const auto& row : control_plane_.rows()) {
    ++(row.state.presence == control_plane_server::Presence::gone ? gone : live);
  }
  out << "changes " << figures.changes << ", acknowledged " << control_plane_.acknowledgements()
      << ", checks " << checks_ << ", live objects " << live << ", deleted objects " << gone
      << ", lost " << judge.lost().size() << ", wrong " << judge.wrong().size() << ", lost answers "
      << control_plane_.lost_answers() << ", lost commits " << control_plane_.lost_commits()
      << ", full disks that refused events " << disks_seen_ << ", two faults at once " << pairs_
      << "\n";
  for (const auto& [name, count] : counts_) out << "  " << name << ": " << count << "\n";
  return out.str();
}

}  // namespace gitops::test
