#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app-proxy/git/git_url.hpp"

// The shared configuration repository of an account: what Argo CD is to apply to its clusters, in
// files that runtimes and people change by commits. Its layout is the one that the product documents.
// Pure.
namespace gitops::app_proxy {

// The Application of the runtime's own cluster, and the server of that cluster in Applications.
inline constexpr std::string_view kInClusterName = "in-cluster";
inline constexpr std::string_view kOwnClusterServer = "https://kubernetes.default.svc";
// Argo CD's project of all Git sources.
inline constexpr std::string_view kGitSourceProject = "cf-git-sources";

// The part of the repository that concerns one runtime.
struct ConfigRepository {
  RepositorySpecifier at;  // its folders "resources" and "runtimes" lie below at.path
  std::string runtime;
  std::string runtime_namespace;
  bool is_configuration_runtime = false;  // applies the folder "configurations"
  // An administrator has removed the runtime's files; they are not made again by themselves.
  bool is_removed = false;

  // The Applications of the runtime, one for each of its clusters, lie in this folder.
  [[nodiscard]] std::string clusters_folder() const;
  // The Application that applies the resources of the runtime's own cluster.
  [[nodiscard]] std::string in_cluster_file() const;
  // The one that applies the resources of every cluster to a managed cluster.
  [[nodiscard]] std::string cluster_file(std::string_view name) const;
  [[nodiscard]] std::string git_source_file(std::string_view name) const;
  // The project of Git sources, which all runtimes apply.
  [[nodiscard]] std::string project_file() const;
  // What the default Git source applies; it lies in the same repository.
  [[nodiscard]] std::string default_source_folder() const;
  // Resources for clusters of this runtime alone. They need no glob of their own.
  [[nodiscard]] std::string own_resources_folder() const;
  [[nodiscard]] std::string own_resource_file(std::string_view name) const;
  // All that lies in it is applied somewhere, by the globs of Applications.
  [[nodiscard]] std::string resources_folder() const;
  // Tells people what lies where.
  [[nodiscard]] std::string readme_file() const;
  // All that concerns only this runtime.
  [[nodiscard]] std::vector<std::string> own_folders() const;

 private:
  [[nodiscard]] std::string below(std::string_view path) const;
};

// The runtime, as far as its files are concerned.
struct RuntimeFiles {
  std::string runtime = {};
  std::string runtime_namespace = {};
  bool is_configuration_runtime = false;
  std::string chart_repository = {};  // Helm's, with the chart of Argo Rollouts
  Scheme scheme = Scheme::https_only;
  // The specifier of the account's repository; empty until it is known, or when there is none.
  std::function<std::string()> config_repository = [] { return std::string(); };
  // Set by removeRuntimeFromIscRepo, until a Git source is created or the process ends. Copies share it; loop thread.
  std::shared_ptr<bool> is_removed = std::make_shared<bool>(false);

  // unavailable while it is not known, or not usable.
  [[nodiscard]] Result<ConfigRepository> repository() const;
};

// The name of an object that a file of the repository holds: a DNS label, and not the name of an
// Application that the repository itself needs.
Result<void> check_entity_name(std::string_view name);

}  // namespace gitops::app_proxy
