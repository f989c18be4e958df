#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "common/control_plane/access_rules.hpp"
#include "common/core/async.hpp"
#include "common/core/secret.hpp"
#include "common/http/client.hpp"

namespace gitops::control_plane {

// The owner of a credential.
struct Identity {
  std::string user_id;  // empty for the token of a runtime
  std::string
      runtime_name;  // set for the token of a runtime, and for one that a user has for one runtime alone
  std::string name;
  std::string email;
  std::string account_id;
  std::string account_name;
  bool is_account_admin = false;
  // Git provider of the account; may be empty.
  std::string git_provider = {};
  std::string git_api_url = {};
  std::string shared_config_repo = {};
};

// A credential as its owner sent it; requests to the control plane carry it in the same header.
struct SentCredential {
  std::string header;  // "Authorization", "x-access-token", "Cookie"
  Secret value;
};

// The control plane's record of a runtime.
struct RuntimeState {
  std::string account;
  std::string runtime_namespace;
  std::string installation_status;  // IN_PROGRESS, COMPLETED, FAILED
  std::string installation_type;
  std::string ingress_host;
  std::string version;
};

// An Application of one of the account's runtimes.
struct ApplicationId {
  std::string runtime;
  std::string application_namespace;
  std::string name;
};

// The data of a promotion from one Application to another.
struct PromotionData {
  struct Application {
    std::string name;
    std::string application_namespace;
    Entity entity;           // of the Application, as rules see it
    std::string repository;  // clone URL
    std::string revision;    // targetRevision; may be empty
    std::string path;
  };
  struct Rule {
    std::string glob;                     // of files below the source's path
    std::vector<std::string> json_paths;  // paths of the values to copy; empty: the whole file
  };
  Application source;
  Application destination;
  std::vector<Rule> rules;  // rules of the destination's promotion template; empty: everything
};

// A Git source of a runtime, with the users whose own tokens may read and write its repository.
struct GitSource {
  struct Permission {
    std::string user_id;
    bool read = false;
    bool write = false;
  };
  std::string account_id;
  std::string name;
  std::string source_namespace;
  std::string repository_url;
  std::vector<Permission> permissions;
};

// The public type InstallationType.
enum class InstallationType { helm, helm_hosted };

// A runtime as it registers itself.
struct RuntimeInstallation {
  std::string name;
  std::string runtime_namespace;
  std::string chart_version;
  std::string runtime_version;
  std::string cluster;  // URL of the API server
  std::string ingress_class;
  std::string ingress_controller;
  std::string ingress_host;
  InstallationType installation_type = InstallationType::helm;
  bool is_managed = false;
  bool has_external_argocd = false;
};

// One member of the public type RuntimeStatus. `syncMode` has its value, GITOPS or HELM, in the
// description.
struct RuntimeStatusItem {
  enum class State { unknown, successful, failed };
  std::string name;  // "gitSourceConfigured"
  State state = State::unknown;
  std::string description = {};

  bool operator==(const RuntimeStatusItem&) const = default;
};

// An error of a runtime that the control plane shows to people.
struct RuntimeError {
  enum class Level { warning, error } level = Level::error;
  std::string message;

  bool operator==(const RuntimeError&) const = default;
};

// ClusterState::message of a cluster that its runtime has removed; its status is Unknown. Clusters are told one by one,
// so nothing else says that one is gone.
inline constexpr std::string_view kClusterRemoved = "the cluster was removed from the runtime";

// A cluster that a runtime deploys to, as its Argo CD sees it. Times are Argo CD's texts.
struct ClusterState {
  std::string name;
  std::string server;
  std::string status;  // Failed, Successful, Unknown
  std::string message = {};
  std::string attempted_at = {};
  std::string server_version = {};
  std::int64_t resources = 0;
  std::int64_t apis = 0;
  std::string last_cache_sync = {};
  std::int64_t applications = 0;
  std::vector<std::string> api_versions = {};
  bool is_gone = false;  // the runtime no longer has it; not sent

  bool operator==(const ClusterState&) const = default;
};

// The control plane's GraphQL endpoint: POST <url>/2.0/api/graphql, raw token in Authorization. One
// attempt per call. Loop thread only. Errors: unauthenticated when the credential is refused;
// invalid_data and protocol for a malformed response.
class GraphqlClient {
 public:
  // `token` is called before each request; an empty token is not sent.
  GraphqlClient(http::Client& http, http::Url url, std::function<Secret()> token);

  // The query `me`: the name of the token's account, which may be empty. `unauthenticated` when the
  // token is refused.
  Task<Result<std::string>> account(Deadline deadline);
  // The query `me` with another credential: returns its owner.
  Task<Result<Identity>> me(const SentCredential& credential, Deadline deadline);
  // The query `me` with the own token, which is that of a runtime.
  Task<Result<Identity>> own_identity(Deadline deadline);
  // Returns the control plane's record of a runtime; `not_found` when there is none.
  Task<Result<RuntimeState>> runtime(const std::string& name, Deadline deadline);
  // The mutation createRuntime with a user's token: the new token of the runtime. An existing runtime of that name gets
  // a new token, too.
  Task<Result<Secret>> create_runtime(const RuntimeInstallation& installation,
                                      const Secret& user_token, Deadline deadline);
  // The mutation reportRuntimeErrors, as the public SDK sends it; an empty list clears what was reported.
  Task<Result<void>> report_errors(const std::string& runtime,
                                   const std::vector<RuntimeError>& failures, Deadline deadline);
  // The mutation updateRuntimeStatus: the type RuntimeStatus is public, the name of the mutation is
  // this project's.
  Task<Result<void>> report_status(const std::string& runtime,
                                   const std::vector<RuntimeStatusItem>& items, Deadline deadline);
  // The mutation updateRuntimeClusters: adds these clusters of the runtime, or replaces their earlier reports. Its
  // argument is the public type ClusterUpsertArgs.
  Task<Result<void>> report_clusters(const std::string& runtime,
                                     const std::vector<ClusterState>& clusters, Deadline deadline);
  // The mutation saveSealingKey: keeps an RSA private key in PEM for the runtimes of the account. Returns its id.
  Task<Result<std::string>> save_sealing_key(const Secret& private_key, Deadline deadline);
  // The query getSealingKey: returns a key of saveSealingKey.
  Task<Result<Secret>> sealing_key(const std::string& id, Deadline deadline);
  // Returns the rules of an account for one type of entity, as "gitopsApplications". The documents
  // are those of the public Terraform provider.
  Task<Result<std::vector<AbacRule>>> abac_rules(const std::string& account_id,
                                                 std::string_view entity_type, Deadline deadline);
  // Returns the data of a promotion; `not_found` when the control plane does not know one of the
  // Applications.
  Task<Result<PromotionData>> promotion_data(const ApplicationId& source,
                                             const ApplicationId& destination, Deadline deadline);
  // Returns the ids of each user's teams, by user id: GET <url>/api/team, as the public Terraform
  // provider reads it.
  Task<Result<std::map<std::string, std::vector<std::string>>>> teams(Deadline deadline);

  // Returns the Git sources of a runtime, at most 10,000.
  Task<Result<std::vector<GitSource>>> git_sources(const std::string& runtime, Deadline deadline);
  // Returns the feature csdpFilterAppsByGitPermissions of the own account: whether users see only
  // Applications that their own Git tokens may read. True when the account does not say.
  Task<Result<bool>> filters_by_git_permissions(Deadline deadline);
  // Replaces all users' permissions of a Git source.
  Task<Result<void>> set_permissions(const GitSource& source, Deadline deadline);

 private:
  [[nodiscard]] SentCredential own() const;
  Task<Result<nlohmann::json>> send(http::Request request, const SentCredential& credential,
                                    Deadline deadline);
  // Returns the `data` of a response without errors.
  Task<Result<nlohmann::json>> ask(std::string_view document, nlohmann::json variables,
                                   const SentCredential& credential, Deadline deadline);

  http::Client& http_;
  http::Url url_;
  std::function<Secret()> token_;
};

}  // namespace gitops::control_plane
