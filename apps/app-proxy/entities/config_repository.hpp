#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app-proxy/git/git_url.hpp"
#include "common/core/async.hpp"

// The shared configuration repository of an account: files that Argo CD applies to the account's
// clusters and that runtimes and people change by commits. Its layout is that of the product's
// documentation. Pure.
namespace gitops::app_proxy {

// Name of the Application of the runtime's own cluster, and of that cluster's server in
// Applications.
inline constexpr std::string_view kInClusterName = "in-cluster";
inline constexpr std::string_view kOwnClusterServer = "https://kubernetes.default.svc";
// Argo CD's project of all Git sources.
inline constexpr std::string_view kGitSourceProject = "cf-git-sources";

// The part of the repository that concerns one runtime.
struct ConfigRepository {
  RepositorySpecifier at;  // the folders "resources" and "runtimes" are below at.path
  std::string runtime;
  std::string runtime_namespace;
  bool is_configuration_runtime = false;  // applies the folder "configurations"
  // An administrator has removed the runtime's files; they are not recreated automatically.
  bool is_removed = false;
  // The files are about to be removed. Until that is done, nothing is created and nothing deleted.
  bool is_being_removed = false;

  // Folder of the runtime's Applications, one for each of its clusters.
  [[nodiscard]] std::string clusters_folder() const;
  // File of the Application that applies the resources of the runtime's own cluster.
  [[nodiscard]] std::string in_cluster_file() const;
  // File of the Application that applies the resources of every cluster to a managed cluster.
  [[nodiscard]] std::string cluster_file(std::string_view name) const;
  [[nodiscard]] std::string git_source_file(std::string_view name) const;
  // File of the project of Git sources, which all runtimes apply.
  [[nodiscard]] std::string project_file() const;
  // Folder in the same repository that the default Git source applies.
  [[nodiscard]] std::string default_source_folder() const;
  // Folder of resources for clusters of this runtime alone. They need no glob of their own.
  [[nodiscard]] std::string own_resources_folder() const;
  [[nodiscard]] std::string own_resource_file(std::string_view name) const;
  // Folder whose files are applied by the globs of Applications.
  [[nodiscard]] std::string resources_folder() const;
  // README that describes the layout for people.
  [[nodiscard]] std::string readme_file() const;
  // Folders that concern only this runtime.
  [[nodiscard]] std::vector<std::string> own_folders() const;

 private:
  [[nodiscard]] std::string below(std::string_view path) const;
};

// Data about the runtime that its files depend on.
struct RuntimeFiles {
  std::string runtime = {};
  std::string runtime_namespace = {};
  bool is_configuration_runtime = false;
  std::string chart_repository = {};  // Helm repository with the chart of Argo Rollouts
  Scheme scheme = Scheme::https_only;
  // Returns the specifier of the account's repository; empty until it is known, or when there is
  // none.
  std::function<std::string()> config_repository = [] { return std::string(); };
  // Set by removeRuntimeFromIscRepo of any replica, until a Git source is created or the process
  // ends. Shared by copies; loop thread.
  std::shared_ptr<bool> is_removed = std::make_shared<bool>(false);
  // Number of calls of removeRuntimeFromIscRepo that have not ended. Shared by copies; loop thread.
  std::shared_ptr<int> removals = std::make_shared<int>(0);

  // Reports a change of is_removed to the other replicas of the runtime. Empty: there are none.
  std::function<Task<Result<void>>(bool is_removed, Deadline deadline)> publish = {};

  // Sets is_removed in all replicas.
  Task<Result<void>> set_removed(bool removed, Deadline deadline) const;
  // Returns the repository. `unavailable` while it is unknown or not usable.
  [[nodiscard]] Result<ConfigRepository> repository() const;
};

// Checks the name of an object in a file of the repository: a DNS label, and not the name of an
// Application that the repository itself needs.
Result<void> check_entity_name(std::string_view name);

// Check a key and a value of labels by Kubernetes' rules. An object with others in the repository
// fails the synchronization of all its objects.
bool is_label_key(std::string_view key);
bool is_label_value(std::string_view value);

}  // namespace gitops::app_proxy
