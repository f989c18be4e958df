#pragma once

#include <chrono>
#include <cstddef>
#include <random>

#include "app-proxy/identity/leadership.hpp"
#include "app-proxy/integrations/git_integrations.hpp"
#include "common/core/task_group.hpp"

namespace gitops::app_proxy {

// Returns the pause before the next of `tokens` checks in a round of about `period`: between half
// and one and a half of an even share. Pure.
std::chrono::milliseconds pause_between_checks(std::chrono::milliseconds period, std::size_t tokens,
                                               std::minstd_rand& random);

// Asks Git hosts whether they still accept the tokens of all integrations, one token after the
// other and spread over a period. Only the leader of several replicas asks. Each transition is
// reported once.
class ValidityCheck {
 public:
  struct Options {
    std::chrono::milliseconds period = std::chrono::hours(1);
    std::chrono::milliseconds timeout = std::chrono::seconds(20);  // per token
  };
  ValidityCheck(GitIntegrations& integrations, Leadership& leadership, Options options);

  // Runs until the group is cancelled. A new leader begins a round at once.
  void start(TaskGroup& group);
  // Runs one round. It ends early when this replica stops leading.
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
