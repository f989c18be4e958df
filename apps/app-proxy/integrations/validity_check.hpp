#pragma once

#include <chrono>
#include <cstddef>
#include <random>

#include "app-proxy/identity/leadership.hpp"
#include "app-proxy/integrations/git_integrations.hpp"
#include "common/core/task_group.hpp"

namespace gitops::app_proxy {

// The pause before the next of `tokens` checks of a round that takes about `period`: between half and
// one and a half of an even share. Pure.
std::chrono::milliseconds pause_between_checks(std::chrono::milliseconds period, std::size_t tokens,
                                               std::minstd_rand& random);

// Asks Git hosts, one token after the other and spread over a period, whether they still accept the
// tokens of all integrations. Only the leader of several replicas asks; each transition is told once.
class ValidityCheck {
 public:
  struct Options {
    std::chrono::milliseconds period = std::chrono::hours(1);
    std::chrono::milliseconds timeout = std::chrono::seconds(20);  // for one token
  };
  ValidityCheck(GitIntegrations& integrations, Leadership& leadership, Options options);

  // Runs until the group is cancelled. A new leader begins a round at once.
  void start(TaskGroup& group);
  // One round; it ends early when this replica does not lead any more.
  Task<> round();

 private:
  GitIntegrations& integrations_;
  Leadership& leadership_;
  Options options_;
  Log log_{"git-integrations"};
  RepeatFilter failures_{std::chrono::minutes(10)};
  std::minstd_rand random_;
};

}  // namespace gitops::app_proxy
