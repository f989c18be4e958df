// The intake of the real control plane through a history of faults that a seed determines, at times two at once: scripted
// runtimes post events, and whatever was acknowledged has to be stored. GITOPS_SEED replays a seed; GITOPS_LONG=1 takes
// 100 kills, 50 stops of PostgreSQL, 20 full disks and 50 lost answers.
#include <algorithm>
#include <iostream>

#include <gtest/gtest.h>

#include "common/store/databases.hpp"
#include "faults/control_plane_history_faults.hpp"
#include "faults/control_plane_history_runtimes.hpp"
#include "support/play.hpp"
#include "support/run_coro.hpp"

namespace gitops::test {
namespace {

using std::chrono::seconds;

class IntakeHistory {
 public:
  IntakeHistory(const Executor& executor, ControlPlaneHistoryHarness& control_plane,
                std::uint64_t seed)
      : control_plane_(control_plane), random_(seed), runtimes_(executor, control_plane, seed) {}

  Task<> play() {
    runtimes_.start();
    auto faults = control_plane_faults(control_plane_, fault_counts(), random_);
    while (!faults.empty() && !testing::Test::HasFailure()) {
      std::vector<ControlPlaneFault> now{std::move(faults.back())};
      faults.pop_back();
      if (random_() % 3 == 0 && !faults.empty() && may_be_at_once(now.front(), faults.back())) {
        now.push_back(std::move(faults.back()));
        faults.pop_back();
        ++pairs_;
      }
      co_await inject(std::move(now));
    }
    if (!testing::Test::HasFailure()) co_await finish();
  }
  Task<> stop() {
    control_plane_.end_faults();
    co_await runtimes_.stop();
  }
  [[nodiscard]] std::string logs() { return log_ + "\n" + control_plane_.end_of_log(); }

 private:
  Task<> inject(std::vector<ControlPlaneFault> faults) {
    CO_ASSERT_TRUE(co_await runtimes_.wait_for_acknowledgements(10 + random_() % 60));
    const auto has = [&](ControlPlaneFault::Kind kind) {
      return std::ranges::find(faults, kind, &ControlPlaneFault::kind) != faults.end();
    };
    runtimes_.set_large(has(ControlPlaneFault::Kind::disk));
    for (const auto& fault : faults) {
      fault.begin();
      ++counts_[fault.name];
      log_ += fault.name + "; ";
      CO_ASSERT_TRUE(co_await runtimes_.wait_for_attempts(5 + random_() % 30));
      // A disk that is full for nobody would be no fault.
      if (fault.kind != ControlPlaneFault::Kind::disk || has(ControlPlaneFault::Kind::program))
        continue;
      CO_ASSERT_TRUE(co_await runtimes_.wait_for_unavailable()) << log_;
    }
    // The program starts after its database, and answers come after both.
    constexpr std::array kOrder{ControlPlaneFault::Kind::disk, ControlPlaneFault::Kind::database,
                                ControlPlaneFault::Kind::program, ControlPlaneFault::Kind::answers};
    std::ranges::sort(faults, {}, [&](const ControlPlaneFault& fault) {
      return std::ranges::find(kOrder, fault.kind);
    });
    for (const auto& fault : faults) co_await fault.end();
    runtimes_.set_large(false);
    const auto ended = Clock::now();
    CO_ASSERT_TRUE(co_await runtimes_.wait_for_acknowledgements(1)) << log_;
    slowest_ = std::max(slowest_, Clock::now() - ended);
    co_await judge();
  }

  Task<> judge() {
    co_await runtimes_.pause();
    const auto stored = runtimes_.stored();
    const auto lost = runtimes_.model.lost(stored);
    const auto wrong = runtimes_.model.wrong(stored);
    lost_ += lost.size();
    wrong_ += wrong.size();
    EXPECT_EQ(lost, std::vector<std::string>()) << log_;
    EXPECT_EQ(wrong, std::vector<std::string>()) << log_;
    EXPECT_EQ(runtimes_.refusal, "") << log_;
    runtimes_.resume();
  }

  Task<> finish() {
    co_await runtimes_.pause();
    CO_ASSERT_TRUE(co_await runtimes_.post_newest());
    co_await judge();
    co_await runtimes_.pause();
    CO_ASSERT_TRUE(co_await runtimes_.post_newest());
    for (const auto& [runtime, names] : runtimes_.live_applications()) {
      EXPECT_EQ(control_plane_.applications_at_control_plane(runtime), names);
    }
    const std::chrono::duration<double> slowest = slowest_;
    const auto& model = runtimes_.model;
    std::cout << "events " << model.events() << ", attempts " << model.attempts()
              << ", acknowledged " << model.acknowledged() << ", lost " << lost_ << ", wrong "
              << wrong_ << ", lost answers " << control_plane_.lost_answers() << ", lost commits "
              << control_plane_.lost_commits() << ", two faults at once " << pairs_
              << ", slowest intake after a fault " << slowest.count() << " s\n";
    for (const auto& [name, count] : counts_) std::cout << "  " << name << ": " << count << "\n";
    for (const auto& [status, count] : runtimes_.statuses) {
      std::cout << "  status " << status << ": " << count << "\n";
    }
    EXPECT_GT(runtimes_.statuses[0], 0U);
  }

  ControlPlaneHistoryHarness& control_plane_;
  std::mt19937_64 random_;
  ScriptedRuntimes runtimes_;
  std::map<std::string, std::size_t> counts_;
  std::size_t pairs_ = 0;
  std::size_t lost_ = 0;
  std::size_t wrong_ = 0;
  Clock::duration slowest_{};
  std::string log_;
};

struct ControlPlaneIntakeHistory : testing::TestWithParam<store::Engine> {};

TEST_P(ControlPlaneIntakeHistory, NothingAcknowledgedIsLostWhateverFails) {
  const auto seed = take_history_seed();
  ControlPlaneHistoryHarness control_plane(GetParam());
  control_plane.start();
  run_coro(
      [&]() -> Task<> {
        IntakeHistory history(co_await asio::this_coro::executor, control_plane, seed);
        co_await play_in(history, [](IntakeHistory& h) { return h.play(); });
      },
      std::chrono::hours(2));
  EXPECT_EQ(control_plane.program().stop(), 0);
}

INSTANTIATE_TEST_SUITE_P(Engines, ControlPlaneIntakeHistory,
                         testing::Values(store::Engine::sqlite, store::Engine::postgres),
                         [](const auto& info) { return engine_name(info.param); });

// A connection that is lost while the program starts must not end it.
TEST(ControlPlaneStart, OutlivesACommitWithoutAnAnswer) {
  ControlPlaneHistoryHarness control_plane(store::Engine::postgres);
  control_plane.start();
  EXPECT_EQ(control_plane.program().stop(), 0);
  control_plane.lose_commits(1);
  control_plane.restart();
  EXPECT_EQ(control_plane.lost_commits(), 1U);
  EXPECT_EQ(control_plane.program().stop(), 0);
}

}  // namespace
}  // namespace gitops::test
