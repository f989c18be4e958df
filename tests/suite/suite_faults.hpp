#pragma once

#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/core/async.hpp"
#include "suite/suite_bed.hpp"
#include "suite/suite_users.hpp"

namespace gitops::test {

// A fault that can go on beside another one.
struct SuiteFault {
  std::string kind;                   // such as "cut"
  std::string target;                 // a part, or a link by its name
  std::set<SuiteUsers::Kind> outage;  // of these requests (SuiteUsers)
  std::function<Task<>()> begin;
  std::function<Task<>()> end;

  [[nodiscard]] std::string name() const { return kind + " of " + target; }
};

// All faults of the suite: kill -9 of each part; each link cut, slow or silent; each peer that refuses by HTTP, with each
// of the statuses that its client has to live with; full disks of the event-reporter and of the control plane; a backup
// of the control plane that is restored; a jump of the event-reporter's clock.
//
// Left out: clocks of other programs, which read them for time stamps and ages alone; and an older release of a
// program, since there is none yet.
std::vector<SuiteFault> suite_faults(SuiteBed& bed);

// The order of faults, in pairs of different targets, which a seed determines. Every fault comes once before one comes
// again.
class SuiteSchedule {
 public:
  SuiteSchedule(std::vector<SuiteFault> faults, std::uint64_t seed);

  std::pair<const SuiteFault*, const SuiteFault*> next();
  // Same results on every machine, unlike the distributions of the standard library.
  std::size_t pick(std::size_t n) { return random_() % n; }

 private:
  std::vector<SuiteFault> faults_;
  std::mt19937_64 random_;
  std::vector<const SuiteFault*> left_;  // of this round, last first
};

}  // namespace gitops::test
