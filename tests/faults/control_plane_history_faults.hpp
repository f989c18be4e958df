#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "common/core/async.hpp"
#include "faults/control_plane_history_harness.hpp"

namespace gitops::test {

// A fault of the control plane or of its database. `begin` starts it, `end` ends it and returns when all works again.
struct ControlPlaneFault {
  enum class Kind { program, database, disk, answers };
  Kind kind = Kind::program;
  std::string name = {};
  std::function<void()> begin = {};
  std::function<Task<>()> end = {};
};

// How many faults of each kind a history has.
struct FaultCounts {
  std::size_t kills = 0;      // kill -9 of the control plane
  std::size_t databases = 0;  // PostgreSQL stopped hard; none with SQLite
  std::size_t disks = 0;
  std::size_t answers = 0;
};

// Returns the faults of a history in a random order that `random` determines.
std::vector<ControlPlaneFault> control_plane_faults(ControlPlaneHistoryHarness& control_plane,
                                                    const FaultCounts& counts,
                                                    std::mt19937_64& random);

// Whether two faults may be under way at once.
bool may_be_at_once(const ControlPlaneFault& one, const ControlPlaneFault& other);

// Short or long, by GITOPS_LONG.
FaultCounts fault_counts();
// Chooses and prints the seed of a run; GITOPS_SEED replays one.
std::uint64_t take_history_seed();

}  // namespace gitops::test
