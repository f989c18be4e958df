#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app-proxy/entities/config_repository.hpp"
#include "app-proxy/entities/runtime_git_token.hpp"
#include "app-proxy/identity/leadership.hpp"
#include "app-proxy/identity/runtime_identity.hpp"
#include "app-proxy/runtime/owned_secrets.hpp"
#include "app-proxy/runtime/runtime_groups.hpp"
#include "common/argo/argocd_client.hpp"
#include "common/control_plane/graphql.hpp"
#include "common/core/credential.hpp"
#include "common/core/log.hpp"
#include "common/core/status_report.hpp"
#include "common/core/task_group.hpp"
#include "k8s-client/client.hpp"

namespace gitops::app_proxy {

// State of the runtime for reports; an empty text means no error.
struct RuntimeFacts {
  std::string argocd_error = {};
  std::string git_error = {};                               // of integrations
  std::optional<std::string> config_repository_error = "";  // unset: not checked yet
  bool has_argocd = false;
  bool has_git_token = false;  // of the runtime itself
  std::vector<RuntimeGroup> groups = {};
};

// Maintains the registration of the runtime: Secret codefresh-token, which other programs wait for;
// argocd-token, which event reporters use; and runtime-repo-creds-secret, with which Argo CD reads
// Git sources by the runtime's Git token. The first start registers the runtime with a user's
// token. A deleted Secret is recreated; a token that Argo CD refuses is replaced. Reports the
// runtime's status and its errors to the control plane when they change, and the status also at
// intervals. Only the leader of several replicas writes and reports. Loop thread; its dependencies
// outlive it.
class RuntimeRegistration {
 public:
  struct Options {
    std::string own_namespace = {};
    control_plane::RuntimeInstallation installation = {};
    std::string argocd_account = {};  // empty: no argocd-token is created
    Clock::duration period = std::chrono::seconds(5);
    Clock::duration retry = std::chrono::milliseconds(500);
    Clock::duration check_period = std::chrono::seconds(60);  // of checks that tokens are accepted
    Clock::duration heartbeat = std::chrono::seconds(60);
    // Delay of the first report of errors, for the first checks to complete.
    Clock::duration first_errors = std::chrono::seconds(20);
    Clock::duration timeout = std::chrono::seconds(15);
    int refusals = 3;  // failed checks in a row before the runtime is registered again
  };
  // Other parts that it uses.
  struct Dependencies {
    k8s::Client& cluster;
    control_plane::GraphqlClient& control_plane;
    RuntimeIdentity& identity;  // the registration writes into it
    Leadership& leadership;
    Credential& user_token;
    const RuntimeFiles& files;
    RuntimeGitToken& git_token;
    argo::ArgoCdClient* argocd = nullptr;  // null: Argo CD is not configured
    Credential* argocd_token = nullptr;    // token of that client; null: it cannot be renewed
  };
  // The configured secret is used until there is a Secret.
  RuntimeRegistration(const Executor& executor, Dependencies dependencies,
                      std::function<RuntimeFacts()> facts, Options options);

  // Runs until the group is cancelled. A change of the leader starts a round of each part at once.
  // Then everything is reported again, since another replica may have sent the last reports.
  void start(TaskGroup& group);
  // Each runs one round. The error names the missing part.
  Task<Result<void>> maintain_registration();
  Task<Result<void>> maintain_argocd_token();
  Task<Result<void>> maintain_repo_creds();
  Task<Result<void>> report_status();

  // Entries for /statusz.
  [[nodiscard]] StatusReport status() const;

 private:
  enum class Who { everyone, leader };
  using Round = Task<Result<void>> (RuntimeRegistration::*)();
  Task<> run(std::string name, Who who, Round round, std::optional<std::string>& error);
  // Number of changes of the leader and registrations.
  [[nodiscard]] std::uint64_t turn() const {
    return dependencies_.leadership.term() + registrations_;
  }
  [[nodiscard]] const RuntimeSecret& known() const { return dependencies_.identity.registered(); }
  // Returns the credential with which Argo CD reads Git sources: the runtime's Git token, for the
  // host of the shared configuration repository. Unset while one of them is unknown.
  [[nodiscard]] std::optional<RepoCreds> repo_creds() const;
  Task<Result<void>> enroll(std::string_view before, Deadline deadline);
  Task<Result<void>> store(std::string_view name, std::string object, bool exists,
                           Deadline deadline);
  Task<> check_token(Deadline deadline);
  [[nodiscard]] bool is_pending(const std::vector<RuntimeGroup>& groups) const;

  Dependencies dependencies_;
  Event changed_;
  std::function<RuntimeFacts()> facts_;
  Options options_;
  int refused_ = 0;
  Clock::time_point token_checked_{};
  Clock::time_point argocd_checked_{};
  bool has_argocd_token_ = false;
  // A new token that is not stored yet. While it cannot be stored, no further one is requested.
  std::optional<RuntimeSecret> enrolled_;
  Secret made_argocd_token_;
  bool are_repo_creds_others_ = false;
  // Unset before the end of the first round, and while another replica leads.
  std::optional<std::string> registration_error_;
  std::optional<std::string> argocd_error_;
  std::optional<std::string> repo_creds_error_;
  std::optional<std::string> status_error_;
  std::uint64_t registrations_ = 0;
  std::optional<std::uint64_t> reported_turn_;  // turn in which the reports below were sent
  Clock::time_point turn_began_{};
  std::vector<control_plane::RuntimeStatusItem> reported_;
  Clock::time_point reported_at_{};
  std::optional<std::vector<control_plane::RuntimeError>> reported_errors_;
  Log log_{"runtime"};
};

// Items of RuntimeStatus, with their errors. Pure.
struct KnownSecrets {
  bool has_runtime_secret = false;
  std::optional<std::string> argocd_token_error = {};  // unset: not checked yet
};
std::vector<control_plane::RuntimeStatusItem> status_items(const RuntimeFacts& facts,
                                                           const KnownSecrets& secrets);
std::vector<control_plane::RuntimeError> item_errors(
    const std::vector<control_plane::RuntimeStatusItem>& items);
// Returns the errors for people: those of the groups, and of the items without a group.
std::vector<control_plane::RuntimeError> errors_of(
    std::vector<control_plane::RuntimeStatusItem> items, const std::vector<RuntimeGroup>& groups);

}  // namespace gitops::app_proxy
