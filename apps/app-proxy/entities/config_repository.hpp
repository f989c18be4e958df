#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app-proxy/git/git_url.hpp"
#include "app-proxy/git/tree_path.hpp"

// The shared configuration repository of an account: what Argo CD is to apply to its clusters, in
// files that runtimes and people change by commits. Layout, globs and labels are those that the
// product documents. Pure.
namespace gitops::app_proxy {

// The part of the repository that concerns one runtime.
struct ConfigRepository {
  RepositorySpecifier at;  // its folders "resources" and "runtimes" lie below at.path
  std::string runtime;
  std::string runtime_namespace;
  bool is_configuration_runtime = false;  // applies the folder "configurations"

  // The Applications of the runtime, one for each of its clusters, lie in this folder.
  [[nodiscard]] std::string clusters_folder() const;
  // The Application that applies the resources of the runtime's own cluster.
  [[nodiscard]] std::string in_cluster_file() const;
  [[nodiscard]] std::string git_source_file(std::string_view name) const;
  // Resources for clusters of this runtime alone. They need no glob of their own.
  [[nodiscard]] std::string own_resource_file(std::string_view name) const;
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

  // unavailable while it is not known, or not usable.
  [[nodiscard]] Result<ConfigRepository> repository() const;
};

// An Application that applies a folder of a user's repository.
struct GitSource {
  std::string name;
  RepositorySpecifier source;
  std::string server;
  std::string destination_namespace = {};                        // empty: the runtime's
  std::vector<std::pair<std::string, std::string>> labels = {};  // besides ours
  std::string include = {};                                      // glob; empty: all files
  std::string exclude = {};
  bool is_internal = false;
};

// Values of Error::reason.
namespace git_source_errors {
inline constexpr std::string_view kExists = "GIT_SOURCE_EXISTS";
inline constexpr std::string_view kUnknown = "GIT_SOURCE_NOT_FOUND";
inline constexpr std::string_view kForm = "GIT_SOURCE_UNREADABLE";
}  // namespace git_source_errors

// The name of an object that a file of the repository holds: a DNS label, and not the name of an
// Application that the repository itself needs.
Result<void> check_entity_name(std::string_view name);

// "{a,b}" as the globs a and b.
std::vector<std::string> parse_globs(std::string_view include);
std::string format_globs(const std::vector<std::string>& globs);

// The runtime's in-cluster Application as YAML, with the globs that every runtime has.
std::string in_cluster_manifest(const ConfigRepository& repository);
// The runtime's Application as JSON: it applies those of clusters_folder().
std::string runtime_application(const ConfigRepository& repository);
// The Application of a Git source as YAML.
std::string git_source_manifest(const ConfigRepository& repository, const GitSource& source);
// An Application that installs Argo Rollouts by its Helm chart, as YAML.
struct RolloutsInstallation {
  std::string name;  // of the Application
  std::string server;
  std::string destination_namespace;
  std::string chart_repository;
  std::string chart_version;
};
std::string rollouts_manifest(const ConfigRepository& repository,
                              const RolloutsInstallation& wanted);

// The changes of the commit that makes a Git source. They change nothing when it is there as wanted,
// and fail with `conflict` when there is another of that name. The in-cluster Application is made
// when there is none.
std::vector<FileChange> changes_to_create(const ConfigRepository& repository,
                                          const GitSource& source);
// Those that edit one in place; comments and other fields stay. Without a value, include or exclude
// stays as it is. not_found when there is no such Git source.
struct GitSourceEdit {
  std::string name;
  RepositorySpecifier source;
  std::optional<std::string> include = {};
  std::optional<std::string> exclude = {};
};
std::vector<FileChange> changes_to_edit(const ConfigRepository& repository,
                                        const GitSourceEdit& edit);
// Those that remove one; they change nothing when there is none.
std::vector<FileChange> changes_to_remove(const ConfigRepository& repository,
                                          std::string_view name);
// Those that make what every runtime needs, where it is missing.
std::vector<FileChange> changes_to_prepare(const ConfigRepository& repository);
std::vector<FileChange> changes_to_remove_runtime(const ConfigRepository& repository);

}  // namespace gitops::app_proxy
