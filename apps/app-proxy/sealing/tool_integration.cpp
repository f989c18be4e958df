#include "app-proxy/sealing/tool_integration.hpp"

#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include "app-proxy/entities/config_files.hpp"
#include "app-proxy/git/manifest_edit.hpp"
#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"
#include "common/core/json_value.hpp"
#include "common/core/yaml_text.hpp"

namespace gitops::app_proxy {
namespace {

using Json = nlohmann::json;
using Operation = IntegrationChange::Operation;

constexpr const char* kDigest = "codefresh.io/integration-digest";
constexpr std::string_view kConfigFile = "config.yaml";
constexpr std::string_view kSecretFile = "sealed-secret.yaml";
constexpr std::string_view kAll = "all-runtimes-all-clusters";
constexpr std::size_t kMaxValues = 50;
constexpr std::size_t kMaxRuntimes = 100;
constexpr std::size_t kMaxValueLength = std::size_t{64} * 1024;
constexpr std::size_t kMaxNameLength = 63;

std::unexpected<Error> mistake(std::string message) {
  return fail(ErrorCode::invalid_argument, std::move(message));
}

// Checks for words with dots between: "issue.jira". A single word is another kind of integration:
// "git".
bool is_type(std::string_view type) {
  const auto is_inner = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  };
  const auto is_edge = [](char c) { return c == '.' || c == '-'; };
  return !type.empty() && type.size() <= kMaxNameLength && std::ranges::all_of(type, is_inner) &&
         type.contains('.') && !type.contains("..") && !is_edge(type.front()) &&
         !is_edge(type.back());
}

// Checks a key of a ConfigMap or a Secret.
bool is_key(std::string_view key) {
  const auto is_inner = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  return !key.empty() && key.size() <= kMaxNameLength && key != "." && !key.starts_with("..") &&
         std::ranges::all_of(key, is_inner);
}

// Returns the members of a JSON object of texts, numbers and booleans. Messages contain no values.
Result<std::vector<std::pair<std::string, std::string>>> values_of(std::string_view text,
                                                                   std::string_view field) {
  const std::string name(field);
  const Json object = Json::parse(text, nullptr, false);
  if (!object.is_object()) return mistake(name + ": expected the text of a JSON object");
  if (object.size() > kMaxValues) return mistake(name + ": more than 50 values");
  std::vector<std::pair<std::string, std::string>> values;
  for (const auto& [key, value] : object.items()) {
    if (!is_key(key)) {
      return mistake(name + ": a key has other characters than letters, digits, '-', '_' and '.'");
    }
    if (value.is_null()) continue;
    if (!value.is_primitive()) return mistake(name + ": the value of " + key + " is not a string");
    auto plain = value.is_string() ? value.get<std::string>() : to_text(value);
    if (plain.size() > kMaxValueLength) {
      return mistake(name + ": the value of " + key + " has more than 64 KiB");
    }
    values.emplace_back(key, std::move(plain));
  }
  return values;
}

std::vector<std::pair<std::string, std::string>> labels_of(const ToolIntegration& integration) {
  return {{"io.codefresh.integration-name", integration.name},
          {"io.codefresh.integration-type", integration.type}};
}

std::string config_manifest(const ToolIntegration& integration, bool has_secret) {
  const std::string name = integration_object_name(integration.name);
  Json annotations = Json::object();
  if (has_secret) annotations["codefresh.io/integration-secret"] = name;
  std::string consumers;
  for (const auto& consumer : integration.consumers) {
    consumers += (consumers.empty() ? "" : ",") + consumer;
  }
  if (!consumers.empty()) annotations["codefresh.io/integration-consumers"] = consumers;
  Json labels = Json::object();
  for (const auto& [key, value] : labels_of(integration)) labels[key] = value;
  Json metadata{{"name", name}, {"labels", std::move(labels)}};
  if (!annotations.empty()) metadata["annotations"] = std::move(annotations);
  Json data = Json::object();
  for (const auto& [key, value] : integration.info) data[key] = value;
  return json_to_yaml(to_text(Json{{"apiVersion", "v1"},
                                   {"kind", "ConfigMap"},
                                   {"metadata", std::move(metadata)},
                                   {"data", std::move(data)}}))
      .value();
}

PlainSecret secret_of(const ToolIntegration& integration, const IntegrationPlace& place) {
  return {.name = integration_object_name(integration.name),
          .secret_namespace = place.runtime_namespace,
          .scope = place.runtime.empty() ? SealScope::cluster_wide : SealScope::strict,
          .labels = labels_of(integration),
          // The other objects of the folder are applied even where the kind is unknown.
          .annotations = {{"argocd.argoproj.io/sync-options", "SkipDryRunOnMissingResource=true"}},
          .values = *integration.credentials};
}

// Returns a digest that is equal for the same credentials, sealed for the same place with the same
// key.
std::string digest_of(const PlainSecret& secret, std::string_view certificate, const Secret& key) {
  HmacSha256 digest(key.reveal());
  const auto add = [&](std::string_view text) {
    digest.add(std::to_string(text.size()) + ":");
    digest.add(text);
  };
  add(certificate);
  add(secret.label());
  for (const auto& [name, value] : secret.labels) {
    add(name);
    add(value);
  }
  for (const auto& [name, value] : secret.values) {
    add(name);
    add(value.reveal());
  }
  constexpr std::size_t kBytes = 16;
  return hex_encode(bytes_of(digest.finish()).substr(0, kBytes));
}

Error exists(const ToolIntegration& integration) {
  return {.code = ErrorCode::conflict,
          .message = "there is another integration " + integration.name + "; update it instead",
          .subcode = tool_integration_errors::kExists};
}

Error unknown(const ToolIntegration& integration) {
  return {.code = ErrorCode::not_found,
          .message = "there is no integration " + integration.name,
          .subcode = tool_integration_errors::kUnknown};
}

FileChange config_change(std::string path, const ToolIntegration& integration, Operation operation,
                         bool has_secret) {
  return {.path = std::move(path),
          .kind = FileChange::Kind::edit,
          .edit = [wanted = config_manifest(integration, has_secret), operation,
                   refusal = exists(integration)](
                      std::optional<std::string_view> content) -> Result<std::string> {
            if (operation == Operation::create && content && *content != wanted) {
              return std::unexpected(refusal);
            }
            return wanted;
          }};
}

Result<FileChange> secret_change(std::string path, const IntegrationChange& change,
                                 const IntegrationPlace& place) {
  auto secret = secret_of(change.integration, place);
  auto digest = digest_of(secret, place.certificate, change.digest_key);
  secret.annotations.emplace_back(kDigest, digest);
  auto sealed = sealed_secret_manifest(place.certificate, secret);
  if (!sealed) return std::unexpected(std::move(sealed.error()));
  return FileChange{.path = std::move(path),
                    .kind = FileChange::Kind::edit,
                    .edit = [sealed = std::move(*sealed), digest = std::move(digest),
                             operation = change.operation, refusal = exists(change.integration)](
                                std::optional<std::string_view> content) -> Result<std::string> {
                      if (!content) return sealed;
                      const auto before =
                          read_manifest(*content, {"metadata", "annotations", kDigest});
                      if (before && *before == digest) return std::string(*content);
                      if (operation == Operation::create) return std::unexpected(refusal);
                      return sealed;
                    }};
}

// Returns the runtimes (empty: all) that have files of the integration.
std::set<std::string> runtimes_in(const std::vector<IntegrationFile>& files) {
  std::set<std::string> runtimes;
  for (const auto& file : files) runtimes.insert(file.runtime);
  return runtimes;
}

FileChange removal(const ConfigRepository& repository, std::string_view runtime,
                   std::string_view name) {
  return {.path = integration_folder(repository, runtime, name),
          .kind = FileChange::Kind::remove_folder};
}

}  // namespace

Result<ToolIntegration> read_tool_integration(const SentIntegration& sent) {
  if (!check_entity_name(sent.name)) {
    return mistake("metadata.name: expected a DNS label: a to z, 0 to 9 and '-', at most 63");
  }
  if (!is_type(sent.type)) {
    return mistake("metadata.type: expected a category and a tool, as issue.jira");
  }
  if (sent.runtimes.size() > kMaxRuntimes) return mistake("metadata.runtimes: more than 100");
  ToolIntegration out{.name = sent.name,
                      .type = sent.type,
                      .info = {},
                      .credentials = {},
                      .consumers = {},
                      .runtimes = {}};
  auto info = values_of(sent.provider_info, "providerInfo");
  if (!info) return std::unexpected(info.error());
  out.info = std::move(*info);
  if (sent.secure_data) {
    auto values = values_of(sent.secure_data->reveal(), "secureData");
    if (!values) return std::unexpected(values.error());
    out.credentials.emplace();
    for (auto& [key, value] : *values) out.credentials->emplace_back(key, Secret(std::move(value)));
  }
  const std::set<std::string> consumers(sent.consumers.begin(), sent.consumers.end());
  out.consumers.assign(consumers.begin(), consumers.end());
  const std::set<std::string> runtimes(sent.runtimes.begin(), sent.runtimes.end());
  for (const auto& runtime : runtimes) {
    if (!check_entity_name(runtime)) {
      return mistake("metadata.runtimes: expected names of runtimes");
    }
  }
  out.runtimes.assign(runtimes.begin(), runtimes.end());
  return out;
}

std::string integration_object_name(std::string_view name) {
  return "codefresh-integration-" + std::string(name);
}

std::string integration_folder(const ConfigRepository& repository, std::string_view runtime,
                               std::string_view name) {
  return repository.resources_folder() + "/" +
         (runtime.empty() ? std::string(kAll) : "runtimes/" + std::string(runtime)) +
         "/integrations/" + std::string(name);
}

std::optional<IntegrationFile> integration_file_of(std::string_view path, std::string_view name) {
  IntegrationFile file;
  if (path.starts_with("runtimes/")) {
    path.remove_prefix(std::string_view("runtimes/").size());
    const auto slash = path.find('/');
    if (slash == std::string_view::npos || slash == 0) return std::nullopt;
    file.runtime = path.substr(0, slash);
    path.remove_prefix(slash);
  } else if (path.starts_with(kAll)) {
    path.remove_prefix(kAll.size());
  } else {
    return std::nullopt;
  }
  const std::string folder = "/integrations/" + std::string(name) + "/";
  if (!path.starts_with(folder)) return std::nullopt;
  path.remove_prefix(folder.size());
  file.is_secret = path == kSecretFile;
  if (!file.is_secret && path != kConfigFile) return std::nullopt;
  return file;
}

Result<std::vector<FileChange>> changes_to_apply(const ConfigRepository& repository,
                                                 const IntegrationChange& change) {
  const auto& integration = change.integration;
  const auto before = runtimes_in(change.present);
  std::vector<FileChange> changes;
  if (change.operation == Operation::remove) {
    for (const auto& runtime : before) {
      changes.push_back(removal(repository, runtime, integration.name));
    }
    return changes;
  }
  if (change.operation == Operation::update && before.empty()) {
    return std::unexpected(unknown(integration));
  }
  std::set<std::string> wanted;
  for (const auto& place : change.places) wanted.insert(place.runtime);
  changes = changes_to_prepare(repository);
  if (change.operation == Operation::create && !before.empty() && before != wanted) {
    return std::unexpected(exists(integration));
  }
  const auto has_secret_at = [&](const std::string& runtime) {
    return std::ranges::find(change.present, IntegrationFile{runtime, true}) !=
           change.present.end();
  };
  const bool had_secret =
      std::ranges::any_of(change.present, [](const auto& file) { return file.is_secret; });
  for (const auto& place : change.places) {
    const auto folder = integration_folder(repository, place.runtime, integration.name) + "/";
    const bool keeps = !integration.credentials && change.operation == Operation::update;
    if (keeps && had_secret && !has_secret_at(place.runtime)) {
      return mistake("secureData: needed, since the integration comes to other runtimes");
    }
    const bool has_secret = keeps ? has_secret_at(place.runtime)
                                  : integration.credentials && !integration.credentials->empty();
    changes.push_back(config_change(folder + std::string(kConfigFile), integration,
                                    change.operation, has_secret));
    if (keeps) continue;
    if (has_secret) {
      auto sealed = secret_change(folder + std::string(kSecretFile), change, place);
      if (!sealed) return std::unexpected(std::move(sealed.error()));
      changes.push_back(std::move(*sealed));
    } else if (change.operation == Operation::create && has_secret_at(place.runtime)) {
      return std::unexpected(exists(integration));
    } else {
      changes.push_back(
          {.path = folder + std::string(kSecretFile), .kind = FileChange::Kind::remove_folder});
    }
  }
  for (const auto& runtime : before) {
    if (!wanted.contains(runtime)) {
      changes.push_back(removal(repository, runtime, integration.name));
    }
  }
  return changes;
}

std::string sealing_key_file(const ConfigRepository& repository) {
  // Integrations are folders, so none of them has this name.
  return repository.resources_folder() + "/" + std::string(kAll) + "/integrations/sealing-key.yaml";
}

std::string sealing_key_manifest(const SealingKeyFile& key) {
  return json_to_yaml(to_text(Json{{"apiVersion", "v1"},
                                   {"kind", "ConfigMap"},
                                   {"metadata",
                                    {{"name", "codefresh-sealing-key"},
                                     {"labels", {{"codefresh.io/sealing-key", "true"}}}}},
                                   {"data", {{"id", key.id}, {"tls.crt", key.certificate}}}}))
      .value();
}

Result<SealingKeyFile> read_sealing_key(std::string_view manifest) {
  auto id = read_manifest(manifest, {"data", "id"});
  if (!id) return fail("the sealing key's file", std::move(id.error()));
  auto certificate = read_manifest(manifest, {"data", "tls.crt"});
  if (!certificate) return fail("the sealing key's file", std::move(certificate.error()));
  const auto is_inner = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  };
  if (id->empty() || id->size() > kMaxNameLength || !std::ranges::all_of(*id, is_inner)) {
    return fail(ErrorCode::invalid_data, "the sealing key's file has no id of a key");
  }
  return SealingKeyFile{.id = std::move(*id), .certificate = std::move(*certificate)};
}

std::vector<FileChange> changes_to_share_key(const ConfigRepository& repository,
                                             const SealingKeyFile& key) {
  auto changes = changes_to_prepare(repository);
  changes.push_back({.path = sealing_key_file(repository),
                     .kind = FileChange::Kind::edit,
                     .edit = [manifest = sealing_key_manifest(key)](
                                 std::optional<std::string_view> content) -> Result<std::string> {
                       return content ? std::string(*content) : manifest;
                     }});
  return changes;
}

}  // namespace gitops::app_proxy
