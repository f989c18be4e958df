// The real event-reporter and the real control plane through a history of changes and faults that a seed determines, at
// times several at once. After each fault the control plane has the true state of every object, and no deleted one.
// GITOPS_SEED replays a seed; GITOPS_LONG=1 takes 100 kills of the control plane, 50 stops of PostgreSQL, 20 full disks and
// 50 lost answers.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <iterator>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/store/databases.hpp"
#include "faults/answer_proxy.hpp"
#include "faults/control_plane_application_history.hpp"
#include "support/play.hpp"
#include "support/process.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"

namespace gitops::test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

void play(store::Engine engine, std::chrono::seconds limit,
          const std::function<Task<>(ControlPlaneApplicationHistory&, ControlPlaneHistoryHarness&,
                                     std::mt19937_64&)>& body) {
  const auto seed = take_history_seed();
  std::mt19937_64 random(seed);
  ControlPlaneHistoryHarness control_plane(engine);
  control_plane.start();
  try {
    run_coro(
        [&]() -> Task<> {
          ControlPlaneApplicationHistory history(co_await asio::this_coro::executor, control_plane,
                                                 seed);
          co_await play_in(history, [&](ControlPlaneApplicationHistory&) -> Task<> {
            co_await history.start();
            if (!testing::Test::HasFailure()) co_await body(history, control_plane, random);
            control_plane.end_faults();
          });
        },
        limit);
  } catch (...) {
    std::cerr << control_plane.end_of_log();
    throw;
  }
  if (testing::Test::HasFailure()) std::cerr << control_plane.end_of_log();
  EXPECT_EQ(control_plane.program().stop(), 0);
}

struct ControlPlaneHistory : testing::TestWithParam<store::Engine> {};

TEST_P(ControlPlaneHistory, EveryStateAndDeletionArrivesWhateverFails) {
  play(GetParam(), std::chrono::hours(3),
       [](ControlPlaneApplicationHistory& history, ControlPlaneHistoryHarness& control_plane,
          std::mt19937_64& random) -> Task<> {
         co_await history.play(control_plane_faults(control_plane, fault_counts(), random));
         if (testing::Test::HasFailure()) co_return;
         std::vector<std::string> live;
         for (const auto& row : control_plane.rows()) {
           const bool is_live = row.state.presence == control_plane_server::Presence::live;
           if (row.state.key.kind == "Application" && is_live) {
             live.push_back(row.state.key.name);
           }
         }
         std::ranges::sort(live);
         EXPECT_EQ(control_plane.applications_at_control_plane(history.kRuntime), live);
         std::cout << history.figures_text();
       });
}

INSTANTIATE_TEST_SUITE_P(Engines, ControlPlaneHistory,
                         testing::Values(store::Engine::sqlite, store::Engine::postgres),
                         [](const auto& info) { return engine_name(info.param); });

using Restore = ControlPlaneHistoryHarness::Restore;
struct ControlPlaneRestore : testing::TestWithParam<std::pair<store::Engine, Restore>> {};

// The reporter notices with its next event that the database went back in time. What happened since then is right again,
// with the deletions that the control plane had acknowledged and lost.
TEST_P(ControlPlaneRestore, WhatHappenedSinceTheBackupIsReportedAgain) {
  const auto how = GetParam().second;
  play(GetParam().first, std::chrono::minutes(20),
       [how](ControlPlaneApplicationHistory& history, ControlPlaneHistoryHarness& control_plane,
             std::mt19937_64&) -> Task<> {
         history.create_all();
         history.change_all();
         CO_ASSERT_TRUE(co_await history.stored());
         const int rounds = std::getenv("GITOPS_LONG") != nullptr ? 20 : 2;
         for (int round = 0; round < rounds; ++round) {
           control_plane.back_up(how);
           co_await history.live(60);
           CO_ASSERT_TRUE(co_await history.stored());
           control_plane.roll_back(how);
           const auto begin = Clock::now();
           co_await history.live(3);
           CO_ASSERT_TRUE(co_await history.stored());
           std::cout << "right again after "
                     << std::chrono::duration<double>(Clock::now() - begin).count() << " s\n";
         }
       });
}

std::string restore_name(const testing::TestParamInfo<std::pair<store::Engine, Restore>>& info) {
  constexpr std::array kNames{"Backup", "Volume", "Recovery"};
  return engine_name(info.param.first) + kNames.at(static_cast<std::size_t>(info.param.second));
}

INSTANTIATE_TEST_SUITE_P(Kinds, ControlPlaneRestore,
                         testing::Values(std::pair(store::Engine::sqlite, Restore::backup),
                                         std::pair(store::Engine::sqlite, Restore::volume),
                                         std::pair(store::Engine::postgres, Restore::volume),
                                         std::pair(store::Engine::postgres, Restore::recovery)),
                         restore_name);

std::ptrdiff_t open_files() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                       std::filesystem::directory_iterator());
}

// A long history has many connections: a proxy without files left would refuse all of them.
TEST(AnswerProxy, KeepsNothingOfConnectionsThatHaveEnded) {
  // Without a server it ends each connection.
  const AnswerProxy server(std::uint16_t{0}, "never");
  AnswerProxy proxy(std::uint16_t{0}, "never");
  proxy.forward_to(server.port());
  const auto before = open_files();
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(http_call({.url = "http://127.0.0.1:" + std::to_string(proxy.port())}).status, 0);
  }
  require_until([&] { return open_files() <= before; }, std::chrono::seconds(30),
                "the end of all connections");
}

using Rows = std::vector<ControlPlaneHistoryHarness::Row>;

// What the model finds when the control plane has these rows.
std::vector<std::string> judge(const HistoryModel& truth, const Rows& rows) {
  auto model = truth.without_events();
  for (const auto& row : rows) model.receive(event_of_row(row));
  auto found = model.lost();
  found.insert(found.end(), model.wrong().begin(), model.wrong().end());
  return found;
}

// The oracle itself, on the rows of the real program.
TEST(ControlPlaneHistoryOracle, TheModelSeesEachKindOfFaultOfAControlPlane) {
  play(store::Engine::sqlite, std::chrono::seconds(120),
       [](ControlPlaneApplicationHistory& history, ControlPlaneHistoryHarness& control_plane,
          std::mt19937_64&) -> Task<> {
         history.create_all();
         history.change_all();
         CO_ASSERT_TRUE(co_await history.stored());
         const auto before = control_plane.rows();
         history.change_all();
         CO_ASSERT_TRUE(co_await history.stored());
         const auto after = control_plane.rows();
         EXPECT_THAT(judge(history.model, after), IsEmpty());
         EXPECT_THAT(judge(history.model, before), Contains(HasSubstr("was reported as")));

         auto lost = after;
         lost.pop_back();
         EXPECT_THAT(judge(history.model, lost), Contains(HasSubstr("was never reported")));
         auto outdated = after;
         outdated.front() = before.front();
         EXPECT_THAT(judge(history.model, outdated), Contains(HasSubstr("was reported as")));
         auto deleted = after;
         deleted.front().state.presence = control_plane_server::Presence::gone;
         EXPECT_THAT(judge(history.model, deleted), Contains(HasSubstr("was reported gone")));

         history.model.remove(event_of_row(after.front()).object);
         EXPECT_THAT(judge(history.model, after), Contains(HasSubstr("was not reported gone")));
         EXPECT_THAT(judge(history.model, deleted), IsEmpty());
       });
}

}  // namespace
}  // namespace gitops::test
