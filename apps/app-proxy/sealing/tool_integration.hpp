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

// Integrations with other tools, such as Jira and image registries. Each is a ConfigMap, and a
// SealedSecret if it has credentials, in the shared configuration repository. Pure except for
// randomness.
namespace gitops::app_proxy {

// An integration as clients send it.
struct SentIntegration {
  std::string name;
  std::string type;           // "issue.jira", "registry.ecr"
  std::string provider_info;  // a JSON object of values that are not secret
  // Credentials: one of the two fields is set. Without a value the stored credentials are kept.
  std::optional<Secret> secure_data = {};
  std::vector<std::string> consumers = {};
  // Runtimes that get it; empty: all of the account.
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
// Parses an integration; `invalid_argument` when it is malformed. Messages contain no value of
// `secure_data`.
Result<ToolIntegration> read_tool_integration(const SentIntegration& sent);

// Name of the ConfigMap and of the Secret.
std::string integration_object_name(std::string_view name);

// Folder for the files of an integration; an empty runtime means all.
std::string integration_folder(const ConfigRepository& repository, std::string_view runtime,
                               std::string_view name);
// Checks whether a path below "resources" is a file of this integration, and returns its meaning.
struct IntegrationFile {
  std::string runtime;  // empty: all
  bool is_secret = false;

  bool operator==(const IntegrationFile&) const = default;
};
std::optional<IntegrationFile> integration_file_of(std::string_view path, std::string_view name);

// Runtimes that get it, and the namespace and certificate for sealing its credentials.
struct IntegrationPlace {
  std::string runtime;            // empty: all
  std::string runtime_namespace;  // empty for all
  std::string certificate;        // PEM; may be empty when there are no credentials
};
struct IntegrationChange {
  enum class Operation { create, update, remove } operation = Operation::create;
  ToolIntegration integration;
  std::vector<IntegrationPlace> places;
  std::vector<IntegrationFile> present;  // its files in the repository
  // Key of the digest that recognises equal credentials without revealing them: a secret of this
  // runtime.
  Secret digest_key;
};
// Changes of the commit. They have no effect when the integration already is as wanted. Errors:
// `conflict` when the integration to be created exists with other values, `not_found` when the one
// to be changed does not exist, `invalid_argument` when a runtime would get it without the
// credentials that it has elsewhere.
Result<std::vector<FileChange>> changes_to_apply(const ConfigRepository& repository,
                                                 const IntegrationChange& change);

// The account's sealing key in the shared configuration repository: a ConfigMap with its id at the
// control plane and its certificate. It does not contain the private key.
struct SealingKeyFile {
  std::string id;
  std::string certificate;  // PEM

  bool operator==(const SealingKeyFile&) const = default;
};
std::string sealing_key_file(const ConfigRepository& repository);
std::string sealing_key_manifest(const SealingKeyFile& key);
Result<SealingKeyFile> read_sealing_key(std::string_view manifest);
// Changes that add the key. An existing key is kept.
std::vector<FileChange> changes_to_share_key(const ConfigRepository& repository,
                                             const SealingKeyFile& key);

}  // namespace gitops::app_proxy
