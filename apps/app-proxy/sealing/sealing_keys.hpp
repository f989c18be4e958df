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
  std::string id = {};       // at the control plane; empty: not shared
  std::string certificate = {};
  Secret private_key = {};  // PEM
};

// Keys that seal credentials in Git. Each runtime has the keys of its own controller of Sealed
// Secrets, in Secrets of its namespace. When the account's runtimes share a key, its private key is
// stored at the control plane and its certificate in the shared configuration repository. Each
// runtime adds it to the keys of its controller. The first runtime with a controller shares its
// newest key. Loop thread; its dependencies outlive it.
class SealingKeys {
 public:
  // Other parts that it uses.
  struct Dependencies {
    k8s::Client& cluster;
    control_plane::GraphqlClient& control_plane;
    Committer* committer = nullptr;  // null, as the reader: no key can be shared
    TreeReader* reader = nullptr;
    const RuntimeFiles& files;
    RuntimeGitToken& token;
    Leadership& leadership;
  };
  struct Options {
    std::string own_namespace = {};
    bool is_shared = false;
    Clock::duration period = std::chrono::minutes(1);
    Clock::duration first_retry = std::chrono::seconds(2);  // doubles up to the period
    Clock::duration timeout = std::chrono::minutes(1);
  };
  SealingKeys(Dependencies dependencies, Options options);

  // Runs until the group is cancelled, if the key is shared.
  void start(TaskGroup& group);
  // Runs one round. The error is the reason why this runtime lacks the account's key.
  Task<Result<void>> round();

  // Returns the certificate to seal with: that of the shared key or, without one and only for this
  // runtime, that of its own controller. Fails with reason kNoKey.
  Task<Result<std::string>> certificate(bool is_for_others, Deadline deadline);
  // Returns the namespace of a runtime of the account. `not_found` when there is no such runtime.
  Task<Result<std::string>> namespace_of(std::string runtime, Deadline deadline);
  // Entry for /statusz.
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
  std::optional<SealingKeyFile> given_;  // at the control plane, and not in a Secret yet
  std::string status_ = "not shared";
  StatusState state_ = StatusState::unavailable;
  Log log_{"sealing-key"};
};

// Pure functions.

// Returns the keys in a list of Secrets, the newest first; other Secrets are left out.
std::vector<SealingKeySecret> sealing_keys_in(std::string_view list);
// Returns the Secret of a shared key as JSON, in the form of the controller's own ones.
std::string sealing_key_object(std::string_view ns, const SealingKeyFile& key,
                               const Secret& private_key);

}  // namespace gitops::app_proxy
