#pragma once

#include <functional>
#include <map>
#include <string>

#include "app-proxy/entities/runtime_git_token.hpp"
#include "app-proxy/identity/leadership.hpp"
#include "app-proxy/runtime/runtime_groups.hpp"
#include "common/core/task_group.hpp"
#include "k8s-client/client.hpp"

namespace gitops::app_proxy {

// Reads the state for the runtime's groups: its own Applications, if it has a Git token and
// therefore the permission to get them; the pods of its namespace; and whether its servers respond.
// Only the leader of several replicas reads. Loop thread; its dependencies outlive it.
class GroupReader {
 public:
  // Checks that a server responds; the content of the response is ignored.
  using Ask = std::function<Task<Result<void>>(Deadline)>;
  struct Dependencies {
    k8s::Client& cluster;
    Leadership& leadership;
    RuntimeGitToken& git_token;
    Ask argocd = {};  // empty, as the next one: not configured
    Ask workflows = {};
  };
  struct Options {
    std::string own_namespace = {};
    std::string runtime = {};
    Clock::duration period = std::chrono::seconds(30);
    Clock::duration timeout = std::chrono::seconds(15);
    Clock::duration answer_timeout = std::chrono::seconds(5);  // for the response of a server
  };
  GroupReader(Dependencies dependencies, Options options);

  // Runs until the group is cancelled. A change of the leader starts a round at once.
  void start(TaskGroup& group);
  // Runs one round.
  Task<> round();

  // State as of the last round.
  [[nodiscard]] const RuntimeGroup& applications() const { return applications_; }
  [[nodiscard]] const RuntimeGroup& components() const { return components_; }
  // Error of the last request to the server; empty when it responds.
  [[nodiscard]] const std::string& argocd_error() const { return argocd_error_; }
  [[nodiscard]] const std::string& workflows_error() const { return workflows_error_; }

 private:
  Task<> read_applications(Deadline deadline);
  Task<> read_components(Deadline deadline);
  Task<std::string> reach(const Ask& ask);

  Dependencies dependencies_;
  Options options_;
  RuntimeGroup applications_;
  RuntimeGroup components_;
  std::string argocd_error_;
  std::string workflows_error_;
  std::map<std::string, Clock::time_point> unsettled_since_;  // by the Application's name
};

}  // namespace gitops::app_proxy
