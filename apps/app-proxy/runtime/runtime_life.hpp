#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app-proxy/runtime/owned_secrets.hpp"
#include "common/argo/argocd_client.hpp"
#include "common/control_plane/graphql.hpp"
#include "common/core/log.hpp"
#include "common/core/task_group.hpp"
#include "k8s-client/client.hpp"

namespace gitops::app_proxy {

// What the runtime knows of itself; empty texts: all is well.
struct RuntimeFacts {
  std::string argocd_trouble = {};
  std::string git_trouble = {};  // of integrations
  std::string config_repository_trouble = {};
  bool has_argocd = false;
  bool has_git_token = false;  // of the runtime itself
  std::string sync_mode = {};  // GITOPS or HELM; empty: not known
};

// Keeps what the runtime is registered by: Secret codefresh-token, which other programs wait for, and
// argocd-token, which event reporters use. The first start registers the runtime with a user's token; a
// Secret that vanished comes back; a token that Argo CD refuses is replaced. Tells the control plane the
// runtime's status and its errors, when they change and at intervals. Only the leader of several replicas
// writes and tells. Loop thread; its parts outlive it.
class RuntimeLife {
 public:
  struct Options {
    std::string own_namespace = {};
    control_plane::RuntimeInstallation installation = {};
    std::string argocd_account = {};  // empty: no argocd-token is made
    Clock::duration period = std::chrono::seconds(5);
    Clock::duration retry = std::chrono::milliseconds(500);
    Clock::duration check_period = std::chrono::seconds(60);  // whether tokens are accepted
    Clock::duration heartbeat = std::chrono::seconds(60);
    Clock::duration timeout = std::chrono::seconds(15);
    int refusals = 3;  // checks in a row, until the runtime is registered anew
  };
  // The parts of the program that it works with.
  struct Parts {
    k8s::Client& cluster;
    control_plane::GraphqlClient& control_plane;
    argo::ArgoCdClient* argocd = nullptr;             // null: no Argo CD is configured
    std::function<Task<bool>()> argocd_refused = {};  // it does not take the login's token
  };
  // What the process was started with counts until there is a Secret.
  RuntimeLife(const Executor& executor, Parts parts, std::function<Secret()> user_token,
              RuntimeSecret configured, std::function<bool()> is_leader,
              std::function<RuntimeFacts()> facts, Options options);

  // Runs until the group is cancelled.
  void start(TaskGroup& group);
  // Looks at once instead of at the end of its period: this replica leads now, or does not any more.
  void wake() { changed_.notify_all(); }
  // One round each. They fail with what is missing.
  Task<Result<void>> keep_registered();
  Task<Result<void>> keep_argocd_token();
  Task<Result<void>> tell_status();

  // The token and the IV to use now; empty until the runtime is registered.
  [[nodiscard]] const RuntimeSecret& secret() const { return known_; }
  // A line for people.
  [[nodiscard]] std::string status() const;

 private:
  Task<> run(std::string name, std::function<Task<Result<void>>()> round, std::string& trouble);
  Task<Result<void>> enroll(std::string_view before, Deadline deadline);
  Task<Result<void>> store(std::string_view name, std::string object, bool exists,
                           Deadline deadline);
  Task<> check_token(Deadline deadline);

  Parts parts_;
  Event changed_;
  std::function<Secret()> user_token_;
  RuntimeSecret known_;
  std::function<bool()> is_leader_;
  std::function<RuntimeFacts()> facts_;
  Options options_;
  int refused_ = 0;
  Clock::time_point token_checked_{};
  Clock::time_point argocd_checked_{};
  bool has_argocd_token_ = false;
  std::string registration_trouble_ = "not looked yet";
  std::string argocd_trouble_ = "not looked yet";
  std::string status_trouble_ = "not told yet";
  std::vector<control_plane::RuntimeStatusItem> told_;
  Clock::time_point told_at_{};
  Log log_{"runtime"};
};

// Pure. The items of RuntimeStatus, and what of them is an error.
struct KnownSecrets {
  bool has_runtime_secret = false;
  std::string argocd_token_trouble = {};
};
std::vector<control_plane::RuntimeStatusItem> status_items(const RuntimeFacts& facts,
                                                           const KnownSecrets& secrets);
std::vector<control_plane::RuntimeTrouble> troubles_of(
    const std::vector<control_plane::RuntimeStatusItem>& items);

}  // namespace gitops::app_proxy
