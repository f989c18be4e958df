#pragma once

#include <functional>
#include <optional>
#include <string>

#include "app-proxy/entities/config_repository.hpp"
#include "app-proxy/entities/runtime_git_token.hpp"
#include "app-proxy/git/committer.hpp"
#include "app-proxy/identity/leadership.hpp"
#include "common/core/log.hpp"
#include "common/core/status_report.hpp"
#include "common/core/task_group.hpp"
#include "k8s-client/client.hpp"

namespace gitops::app_proxy {

// Maintains the shared configuration repository's setup for this runtime: the runtime's files in
// it, by the runtime's own Git token, and the runtime's Application in its cluster, which applies
// them. Missing ones are created and differing ones corrected; additions of people to the files are
// kept. Only the leader of several replicas does so. Creates nothing while the runtime is removed
// (ConfigRepository::is_removed), and deletes the Application then; does neither while the removal
// is under way. Loop thread; its dependencies outlive it.
class ConfigRepositorySetup {
 public:
  struct Options {
    Clock::duration period = std::chrono::minutes(1);       // between checks of the Application
    Clock::duration git_period = std::chrono::hours(1);     // between checks of the files
    Clock::duration first_retry = std::chrono::seconds(2);  // doubles up to the period
    Clock::duration timeout = std::chrono::minutes(2);
    // Returns the default branch that the host tells; empty: it is not known. Asked about a
    // repository without branches whose Git server does not tell it. Without it: "main".
    std::function<Task<std::string>(RepositoryUrl, GitCredential, Deadline)> default_branch = {};
  };
  // Does nothing without a token: then the first Git source creates the files.
  ConfigRepositorySetup(Committer& committer, k8s::Client& cluster, const RuntimeFiles& files,
                        RuntimeGitToken& token, Leadership& leadership, Options options);

  // Runs until the group is cancelled. A change of the leader starts a round at once.
  void start(TaskGroup& group);
  // Runs one round. The error names the part that is not as it should be.
  Task<Result<void>> round();
  // Reports to the other replicas that the runtime was removed, or is there again, by an annotation
  // of the Lease. Only a change that a process sees counts for it: a later one starts without the
  // removal.
  Task<Result<void>> publish_removal(bool is_removed, Deadline deadline);
  // Entry for /statusz.
  [[nodiscard]] StatusEntry status() const {
    return {.name = "shared configuration repository", .state = state_, .message = status_};
  }
  // The error of the last round; an empty text when there is none. Unset before the first round and
  // while another replica leads.
  [[nodiscard]] const std::optional<std::string>& last_error() const { return last_error_; }

 private:
  // Takes over what another replica has published.
  void follow_replicas();
  Task<Result<void>> put_files(const ConfigRepository& repository, GitCredential credential,
                               Deadline deadline);
  Task<Result<void>> put_application(const ConfigRepository& repository, Deadline deadline);
  Task<Result<void>> remove_application(const ConfigRepository& repository, Deadline deadline);

  Committer& committer_;
  k8s::Client& cluster_;
  const RuntimeFiles& files_;
  RuntimeGitToken& token_;
  Leadership& leadership_;
  Options options_;
  std::string replica_;                    // random name of this process in the annotation
  int published_ = 0;                      // makes each text of the annotation a new one
  std::optional<std::string> annotation_;  // as last seen; unset before the first look
  std::string files_put_for_;              // specifier; empty: none yet
  Clock::time_point files_put_at_{};
  std::string status_ = "not known yet";
  StatusState state_ = StatusState::pending;
  std::optional<std::string> last_error_;
  Log log_{"config-repository"};
};

}  // namespace gitops::app_proxy
