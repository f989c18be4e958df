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

// What the runtime knows of itself; empty texts: all is well.
struct RuntimeFacts {
  std::string argocd_error = {};
  std::string git_error = {};                               // of integrations
  std::optional<std::string> config_repository_error = "";  // nothing: not looked at yet
  bool has_argocd = false;
  bool has_git_token = false;  // of the runtime itself
  std::vector<RuntimeGroup> groups = {};
};

// Keeps what the runtime is registered by: Secret codefresh-token, which other programs wait for, and
// argocd-token, which event reporters use; and runtime-repo-creds-secret, by which Argo CD reads Git sources
// with the runtime's Git token. The first start registers the runtime with a user's token; a Secret that
// vanished comes back; a token that Argo CD refuses is replaced. Tells the control plane the runtime's status
// and its errors, when they change, and the status also at intervals. Only the leader of several replicas
// writes and tells. Loop thread; its dependencies outlive it.
class RuntimeRegistration {
 public:
  struct Options {
    std::string own_namespace = {};
    control_plane::RuntimeInstallation installation = {};
    std::string argocd_account = {};  // empty: no argocd-token is made
    Clock::duration period = std::chrono::seconds(5);
    Clock::duration retry = std::chrono::milliseconds(500);
    Clock::duration check_period = std::chrono::seconds(60);  // whether tokens are accepted
    Clock::duration heartbeat = std::chrono::seconds(60);
    // How long the first errors wait for the first looks.
    Clock::duration first_errors = std::chrono::seconds(20);
    Clock::duration timeout = std::chrono::seconds(15);
    int refusals = 3;  // checks in a row, until the runtime is registered again
  };
  // The parts of the program that it works with.
  struct Dependencies {
    k8s::Client& cluster;
    control_plane::GraphqlClient& control_plane;
    RuntimeIdentity& identity;  // the registration writes into it
    Leadership& leadership;
    Credential& user_token;
    const RuntimeFiles& files;
    RuntimeGitToken& git_token;
    argo::ArgoCdClient* argocd = nullptr;  // null: no Argo CD is configured
    Credential* argocd_token = nullptr;    // of that client; null: it cannot be renewed
  };
  // What the process was started with counts until there is a Secret.
  RuntimeRegistration(const Executor& executor, Dependencies dependencies,
                      std::function<RuntimeFacts()> facts, Options options);

  // Runs until the group is cancelled. A change of the leader starts a round of each part at once. What the control
  // plane knows may be another one's then, so all of it is told again.
  void start(TaskGroup& group);
  // One round each. They fail with what is missing.
  Task<Result<void>> maintain_registration();
  Task<Result<void>> maintain_argocd_token();
  Task<Result<void>> maintain_repo_creds();
  Task<Result<void>> report_status();

  // For /statusz.
  [[nodiscard]] StatusReport status() const;

 private:
  enum class Who { everyone, leader };
  using Round = Task<Result<void>> (RuntimeRegistration::*)();
  Task<> run(std::string name, Who who, Round round, std::optional<std::string>& error);
  // Counts changes of the leader and registrations.
  [[nodiscard]] std::uint64_t turn() const {
    return dependencies_.leadership.term() + registrations_;
  }
  [[nodiscard]] const RuntimeSecret& known() const { return dependencies_.identity.registered(); }
  // What Argo CD is to read Git sources with: the runtime's Git token, for the host of the shared configuration
  // repository. Nothing while one of them is not known.
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
  // Made, and not stored yet. While they cannot be stored, no further ones are made.
  std::optional<RuntimeSecret> enrolled_;
  Secret made_argocd_token_;
  bool are_repo_creds_others_ = false;
  // Nothing: no round has ended, or another replica leads.
  std::optional<std::string> registration_error_;
  std::optional<std::string> argocd_error_;
  std::optional<std::string> repo_creds_error_;
  std::optional<std::string> status_error_;
  std::uint64_t registrations_ = 0;
  std::optional<std::uint64_t> reported_turn_;  // what follows was told in this turn
  Clock::time_point turn_began_{};
  std::vector<control_plane::RuntimeStatusItem> reported_;
  Clock::time_point reported_at_{};
  std::optional<std::vector<control_plane::RuntimeError>> reported_errors_;
  Log log_{"runtime"};
};

// Pure. The items of RuntimeStatus, and what of them is an error.
struct KnownSecrets {
  bool has_runtime_secret = false;
  std::optional<std::string> argocd_token_error = {};  // nothing: not looked at yet
};
std::vector<control_plane::RuntimeStatusItem> status_items(const RuntimeFacts& facts,
                                                           const KnownSecrets& secrets);
std::vector<control_plane::RuntimeError> item_errors(
    const std::vector<control_plane::RuntimeStatusItem>& items);
// The errors that people see: those of the groups, and of the items that no group is about.
std::vector<control_plane::RuntimeError> errors_of(
    std::vector<control_plane::RuntimeStatusItem> items, const std::vector<RuntimeGroup>& groups);

}  // namespace gitops::app_proxy
