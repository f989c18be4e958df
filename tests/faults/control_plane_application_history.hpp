#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "faults/application_history.hpp"
#include "faults/control_plane_history_faults.hpp"
#include "faults/control_plane_history_harness.hpp"

namespace gitops::test {

// A history of Applications and their resources that the real event-reporter reports to the real control plane. The model
// compares what the control plane stores with the true state of every object. Loop thread; call stop() first.
class ControlPlaneApplicationHistory : public ApplicationHistory {
 public:
  static constexpr const char* kRuntime = "prod";

  ControlPlaneApplicationHistory(const Executor& executor,
                                 ControlPlaneHistoryHarness& control_plane, std::uint64_t seed)
      : ApplicationHistory(executor, seed, 1), control_plane_(control_plane) {}

  // Injects these faults, at times two at once or with a kill -9 of the reporter, and checks after each.
  Task<> play(std::vector<ControlPlaneFault> faults);
  // Waits until the control plane has the true state of every object; false with a failure.
  Task<bool> stored();
  [[nodiscard]] std::string figures_text() const;

 protected:
  Task<> prepare() override;

 private:
  Task<> inject(std::vector<ControlPlaneFault> faults);
  Task<> kill_reporter();
  // Changes the objects until the control plane refuses events, at most for a while.
  Task<> fill_until_seen();
  // Returns a model that has taken the events by which the control plane's rows were written.
  [[nodiscard]] HistoryModel judged() const;

  ControlPlaneHistoryHarness& control_plane_;
  std::map<std::string, std::size_t> counts_;
  std::size_t pairs_ = 0;
  std::size_t checks_ = 0;
  std::size_t disks_seen_ = 0;
};

// Returns the event that tells the state in this row.
ReceivedEvent event_of_row(const ControlPlaneHistoryHarness::Row& row);

}  // namespace gitops::test
