#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app-proxy/entities/config_repository.hpp"
#include "app-proxy/entities/runtime_git_token.hpp"
#include "app-proxy/git/committer.hpp"
#include "app-proxy/git/tree_reader.hpp"
#include "app-proxy/identity/leadership.hpp"
#include "app-proxy/sealing/tool_integration.hpp"
#include "common/control_plane/graphql.hpp"
#include "common/core/log.hpp"
#include "common/core/status_report.hpp"
#include "common/core/task_group.hpp"
#include "k8s-client/client.hpp"

namespace gitops::app_proxy {

// A Secret with a key of the controller of Sealed Secrets.
struct SealingKeySecret {
  std::string name = {};
  std::string created = {};  // RFC 3339
  std::string id = {};       // at the control plane; empty: it is not shared
  std::string certificate = {};
  Secret private_key = {};  // PEM
};

// The keys that credentials in Git are sealed with. Each runtime has those of its own controller of Sealed Secrets, in
// Secrets of its namespace. When the account's runtimes share one, its private key is kept at the control plane and its
// certificate in the shared configuration repository; each runtime gets it as a further key of its controller. The
// first runtime that has a controller shares the newest key of it. Loop thread; its dependencies outlive it.
class SealingKeys {
 public:
  // The parts of the program that it works with.
  struct Dependencies {
    k8s::Client& cluster;
    control_plane::GraphqlClient& control_plane;
    Committer* committer = nullptr;  // null, as the reader: nothing can be shared
    TreeReader* reader = nullptr;
    const RuntimeFiles& files;
    RuntimeGitToken& token;
    Leadership& leadership;
  };
  struct Options {
    std::string own_namespace = {};
    bool is_shared = false;
    Clock::duration period = std::chrono::minutes(1);
    Clock::duration first_retry = std::chrono::seconds(2);  // doubles until the period
    Clock::duration timeout = std::chrono::minutes(1);
  };
  SealingKeys(Dependencies dependencies, Options options);

  // Runs until the group is cancelled; only when the key is shared.
  void start(TaskGroup& group);
  // One round. Fails with why this runtime does not have the account's key yet.
  Task<Result<void>> round();

  // The certificate to seal with: the shared key's, or without one, for this runtime alone, that of its own controller.
  // Reason kNoKey.
  Task<Result<std::string>> certificate(bool is_for_others, Deadline deadline);
  // Of a runtime of the account. not_found when there is no such runtime.
  Task<Result<std::string>> namespace_of(std::string runtime, Deadline deadline);
  // For /statusz.
  [[nodiscard]] StatusEntry status() const {
    return {.name = "sealing key", .state = state_, .message = status_};
  }

 private:
  Task<Result<std::vector<SealingKeySecret>>> keys(std::string selector, Deadline deadline);
  Task<Result<std::optional<SealingKeyFile>>> shared_key(const ConfigRepository& repository,
                                                         Deadline deadline);
  Task<Result<void>> take(const SealingKeyFile& key, const std::vector<SealingKeySecret>& present,
                          Deadline deadline);
  Task<Result<SealingKeyFile>> give(const std::vector<SealingKeySecret>& present,
                                    Deadline deadline);
  Task<Result<void>> store(const SealingKeyFile& key, const Secret& private_key, Deadline deadline);

  Dependencies dependencies_;
  Options options_;
  std::string status_ = "not shared";
  StatusState state_ = StatusState::unavailable;
  Log log_{"sealing-key"};
};

// Below: pure.

// The keys in a list of Secrets, the newest first; what is no key is left out.
std::vector<SealingKeySecret> sealing_keys_in(std::string_view list);
// The Secret of a shared key as JSON, which the controller takes for one of its own.
std::string sealing_key_object(std::string_view ns, const SealingKeyFile& key,
                               const Secret& private_key);

}  // namespace gitops::app_proxy
