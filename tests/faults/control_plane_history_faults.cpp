#include "faults/control_plane_history_faults.hpp"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <utility>

#include <gtest/gtest.h>

#include "support/wait.hpp"

namespace gitops::test {
namespace {

using Kind = ControlPlaneFault::Kind;

ControlPlaneFault killed(ControlPlaneHistoryHarness& plane) {
  return {.kind = Kind::program,
          .name = "kill -9 of the control plane",
          .begin = [&plane] { plane.kill(); },
          .end = [&plane]() -> Task<> {
            plane.restart();
            co_return;
          }};
}

ControlPlaneFault stopped(ControlPlaneHistoryHarness& plane) {
  return {.kind = Kind::database,
          .name = "immediate stop of PostgreSQL",
          .begin = [&plane] { plane.stop_database(); },
          .end = [&plane]() -> Task<> {
            plane.start_database();
            co_return;
          }};
}

ControlPlaneFault process_killed(ControlPlaneHistoryHarness& plane, std::size_t which) {
  return {.kind = Kind::database,
          .name = "kill -9 of a process of PostgreSQL",
          .begin = [&plane, which] { plane.kill_database_process(which); },
          .end = []() -> Task<> { co_return; }};
}

ControlPlaneFault disk_filled(ControlPlaneHistoryHarness& plane, bool by_limit) {
  return {.kind = Kind::disk,
          .name = by_limit ? "failing writes" : "full disk",
          .begin = [&plane, by_limit] { by_limit ? plane.limit_files() : plane.fill_disk(); },
          .end = [&plane]() -> Task<> {
            plane.make_room();
            co_return;
          }};
}

// Ends when the answers were lost.
ControlPlaneFault answers_lost(ControlPlaneHistoryHarness& plane, bool is_commit,
                               std::size_t count) {
  const auto lost = [&plane, is_commit] {
    return is_commit ? plane.lost_commits() : plane.lost_answers();
  };
  const auto wanted = std::make_shared<std::size_t>();
  return {.kind = Kind::answers,
          .name = is_commit ? "cut after COMMIT" : "cut before the answer",
          .begin =
              [&plane, is_commit, count, lost, wanted] {
                *wanted = lost() + count;
                is_commit ? plane.lose_commits(count) : plane.lose_answers(count);
              },
          .end = [lost, wanted]() -> Task<> {
            EXPECT_TRUE(co_await eventually([&] { return lost() >= *wanted; }, "lost answers",
                                            std::chrono::minutes(3)));
          }};
}

}  // namespace

std::vector<ControlPlaneFault> control_plane_faults(ControlPlaneHistoryHarness& control_plane,
                                                    const FaultCounts& counts,
                                                    std::mt19937_64& random) {
  std::vector<ControlPlaneFault> faults;
  for (std::size_t i = 0; i < counts.kills; ++i) faults.push_back(killed(control_plane));
  for (std::size_t i = 0; control_plane.is_postgres() && i < counts.databases; ++i) {
    faults.push_back(i % 2 == 0 ? stopped(control_plane)
                                : process_killed(control_plane, random() % 64));
  }
  for (std::size_t i = 0; control_plane.has_disk() && i < counts.disks; ++i) {
    faults.push_back(disk_filled(control_plane, !control_plane.is_postgres() && i % 2 == 1));
  }
  for (std::size_t i = 0; i < counts.answers; ++i) {
    faults.push_back(
        answers_lost(control_plane, control_plane.is_postgres() && i % 2 == 0, 1 + random() % 4));
  }
  // Not std::shuffle, whose results differ between libraries.
  for (auto left = faults.size(); left > 1; --left) {
    std::swap(faults[left - 1], faults[random() % left]);
  }
  return faults;
}

bool may_be_at_once(const ControlPlaneFault& one, const ControlPlaneFault& other) {
  return one.kind != other.kind;
}

FaultCounts fault_counts() {
  const char* is_long = std::getenv("GITOPS_LONG");
  if (is_long == nullptr || std::string_view(is_long) != "1") {
    return {.kills = 3, .databases = 2, .disks = 2, .answers = 3};
  }
  return {.kills = 100, .databases = 50, .disks = 20, .answers = 50};
}

std::uint64_t take_history_seed() {
  const char* given = std::getenv("GITOPS_SEED");
  const auto seed = given != nullptr && *given != '\0' ? std::stoull(given)
                                                       : std::uint64_t{std::random_device{}()};
  std::cout << "GITOPS_SEED=" << seed << " replays this history" << std::endl;
  return seed;
}

}  // namespace gitops::test
