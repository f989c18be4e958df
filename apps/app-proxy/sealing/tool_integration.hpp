#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app-proxy/entities/config_repository.hpp"
#include "app-proxy/errors/client_codes.hpp"
#include "app-proxy/git/tree_path.hpp"
#include "app-proxy/sealing/sealed_secret.hpp"
#include "common/core/error.hpp"
#include "common/core/secret.hpp"

// Integrations with other tools, as Jira and registries of images: each is a ConfigMap, and a SealedSecret when it has
// credentials, in the shared configuration repository. Pure but for randomness.
namespace gitops::app_proxy {

// As clients send it.
struct SentIntegration {
  std::string name;
  std::string type;           // "issue.jira", "registry.ecr"
  std::string provider_info;  // a JSON object of what is no secret
  // One of what is; without a value the credentials stay as they are.
  std::optional<Secret> secure_data = {};
  std::vector<std::string> consumers = {};
  // Which runtimes have it; empty: all of the account.
  std::vector<std::string> runtimes = {};
};

struct ToolIntegration {
  std::string name;
  std::string type;
  std::vector<std::pair<std::string, std::string>> info;
  std::optional<std::vector<std::pair<std::string, Secret>>> credentials;
  std::vector<std::string> consumers;
  std::vector<std::string> runtimes;  // each once; empty: all
};
// invalid_argument for what makes no sense; no message has a value of `secure_data`.
Result<ToolIntegration> read_tool_integration(const SentIntegration& sent);

// Of the ConfigMap and of the Secret.
std::string integration_object_name(std::string_view name);

// Where the files of an integration lie; an empty runtime stands for all.
std::string integration_folder(const ConfigRepository& repository, std::string_view runtime,
                               std::string_view name);
// Whether a path below "resources" is a file of this integration, and what for.
struct IntegrationFile {
  std::string runtime;  // empty: all
  bool is_secret = false;

  bool operator==(const IntegrationFile&) const = default;
};
std::optional<IntegrationFile> integration_file_of(std::string_view path, std::string_view name);

// Runtimes that get it, with what its credentials are sealed for.
struct IntegrationPlace {
  std::string runtime;            // empty: all
  std::string runtime_namespace;  // empty for all
  std::string certificate;        // in PEM; may be empty when there are no credentials
};
struct IntegrationChange {
  enum class Operation { create, update, remove } operation = Operation::create;
  ToolIntegration integration;
  std::vector<IntegrationPlace> places;
  std::vector<IntegrationFile> present;  // its files in the repository
  // Lets the same credentials be recognised without being readable: a secret of this runtime.
  Secret digest_key;
};
// The changes of its commit. They change nothing when the integration is as wanted. They fail with `conflict` when one
// that is to be created is there with other values, with `not_found` when one that is to be changed is not there, and
// with `invalid_argument` when one gets to a runtime without credentials that it has elsewhere.
Result<std::vector<FileChange>> changes_to_apply(const ConfigRepository& repository,
                                                 const IntegrationChange& change);

// The account's sealing key in the shared configuration repository: a ConfigMap with its id at the control plane and
// its certificate. The private key is not in it.
struct SealingKeyFile {
  std::string id;
  std::string certificate;  // PEM

  bool operator==(const SealingKeyFile&) const = default;
};
std::string sealing_key_file(const ConfigRepository& repository);
std::string sealing_key_manifest(const SealingKeyFile& key);
Result<SealingKeyFile> read_sealing_key(std::string_view manifest);
// A key that is there stays.
std::vector<FileChange> changes_to_share_key(const ConfigRepository& repository,
                                             const SealingKeyFile& key);

}  // namespace gitops::app_proxy
