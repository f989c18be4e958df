#include "app-proxy/entities/rollouts_installation.hpp"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "app-proxy/entities/config_files.hpp"
#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"
#include "common/http/url.hpp"

namespace gitops::app_proxy {
namespace {

using Json = nlohmann::json;

// Returns the URL in the form that Argo CD compares.
std::string_view without_slashes(std::string_view server) {
  while (server.ends_with('/')) server.remove_suffix(1);
  return server;
}

// Returns the part of a file's name for a cluster: "in-cluster" for
// "https://kubernetes.default.svc", otherwise the host.
std::string cluster_word(std::string_view server) {
  if (server == kOwnClusterServer) return std::string(kInClusterName);
  const auto url = http::parse_url(server);
  std::string word = url ? url->host : std::string();
  std::ranges::replace_if(
      word, [](char c) { return (c < 'a' || c > 'z') && (c < '0' || c > '9'); }, '-');
  constexpr std::size_t kMaxLength = 40;
  word.resize(std::min(word.size(), kMaxLength));
  while (word.ends_with('-')) word.pop_back();
  return word;
}

}  // namespace

std::string rollouts_manifest(const ConfigRepository& repository,
                              const RolloutsInstallation& wanted) {
  Json manifest = argo_application(
      wanted.name, repository,
      {{"codefresh.io/entity", "argo-rollouts"}, {"codefresh.io/internal", "true"}},
      {{"repoURL", wanted.chart_repository},
       {"chart", "argo-rollouts"},
       {"targetRevision", wanted.chart_version}},
      {{"namespace", wanted.destination_namespace}, {"server", wanted.server}});
  manifest["spec"]["syncPolicy"]["syncOptions"] =
      Json::array({"CreateNamespace=true", "ServerSideApply=true"});
  return to_yaml(manifest);
}

RolloutsNames rollouts_names(std::string_view server) {
  server = without_slashes(server);
  constexpr std::size_t kBytes = 4;
  std::string by_host = "argo-rollouts-" + cluster_word(server);
  std::string by_url = by_host + "-" + hex_encode(bytes_of(sha256(server)).substr(0, kBytes));
  return {.by_host = std::move(by_host), .by_url = std::move(by_url)};
}

std::string rollouts_name(std::string_view server, const RolloutsFiles& files) {
  server = without_slashes(server);
  auto names = rollouts_names(server);
  if (files.by_host) {
    const auto present = read_manifest(*files.by_host, server_path());
    return present && without_slashes(*present) == server ? names.by_host : names.by_url;
  }
  const auto url = http::parse_url(server);
  const bool is_host_alone = url && url->path.empty() && url->query.empty();
  return is_host_alone && !files.by_url ? names.by_host : names.by_url;
}

std::vector<FileChange> changes_to_install_rollouts(const ConfigRepository& repository,
                                                    const RolloutsInstallation& wanted) {
  auto changes = changes_to_prepare(repository);
  const auto path = repository.own_resource_file(wanted.name);
  changes.push_back({.path = path,
                     .kind = FileChange::Kind::edit,
                     .edit = [path, wanted, manifest = rollouts_manifest(repository, wanted)](
                                 std::optional<std::string_view> content) -> Result<std::string> {
                       if (!content) return manifest;
                       const auto server = read_manifest(*content, server_path());
                       if (!server || without_slashes(*server) != without_slashes(wanted.server)) {
                         return std::unexpected(
                             Error{.code = ErrorCode::conflict,
                                   .message = path + " is not for the cluster " + wanted.server +
                                              "; edit it in the shared configuration repository",
                                   .subcode = git_source_errors::kNameTaken});
                       }
                       return set_manifest_values(
                           std::string(*content),
                           {{{"spec", "destination", "namespace"}, wanted.destination_namespace}});
                     }});
  return changes;
}

std::vector<FileChange> changes_to_remove_rollouts(const ConfigRepository& repository,
                                                   std::string_view server) {
  std::vector<FileChange> changes{ensure_resources(repository)};
  const auto names = rollouts_names(server);
  for (const auto& name : {names.by_host, names.by_url}) {
    // The name from the host may be that of another cluster's installation.
    changes.push_back({.path = repository.own_resource_file(name),
                       .kind = FileChange::Kind::edit_or_remove,
                       .edit = [removed = std::string(without_slashes(server))](
                                   std::optional<std::string_view> content) -> Result<std::string> {
                         if (!content) return std::string();
                         const auto present = read_manifest(*content, server_path());
                         const bool is_its = present && without_slashes(*present) == removed;
                         return is_its ? std::string() : std::string(*content);
                       }});
  }
  return changes;
}

}  // namespace gitops::app_proxy
