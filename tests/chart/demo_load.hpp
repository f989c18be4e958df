#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chart/day.hpp"
#include "common/core/async.hpp"
#include "daemons/reporter_process.hpp"
#include "demo/world.hpp"
#include "suite/suite_bed.hpp"
#include "suite/suite_users.hpp"
#include "support/git_server.hpp"

namespace gitops::test {

// All programs under a load like that of the demo, on doubles, and what they serve for Prometheus meanwhile. Main thread,
// which runs the loop; call stop() before the destructor.
class DemoLoad {
 public:
  DemoLoad(const Executor& executor, demo::World& world, GitServer& git);

  Task<> start();
  Task<> stop();
  [[nodiscard]] std::string logs() { return bed_.logs(); }

  // What happens in a second of a recording.
  struct Load {
    std::size_t commits = 0;
    std::size_t requests = 0;  // of users
  };
  // Records a frame each second.
  Task<std::vector<Frame>> record(Load load, std::size_t seconds);
  // Records a restart of one program after the other, by SIGTERM, under a load.
  Task<std::vector<Frame>> record_restarts(Load load);
  // Records a control plane that is down for 20 s, and the time after: the first two frames are 30 s apart.
  Task<std::vector<Frame>> record_outage(Load load);

  // The workloads of the charts, by the names of the frames.
  static std::map<std::string, Day::Program> programs();

 private:
  Task<> work(Load load);
  Task<Frame> scrape();
  Task<> commit();
  void start_resource_reporter();

  demo::World& world_;
  GitServer& git_;
  SuiteBed bed_;
  std::optional<SuiteUsers> users_;
  std::optional<ReporterProcess> resource_reporter_;
  std::size_t commits_ = 0;
  std::map<std::string, std::size_t> starts_;
};

}  // namespace gitops::test
