#pragma once

#include <functional>
#include <memory>
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

// A Git source whose Applications lie in a namespace of their own and may deploy only where and from
// what it names. An operator makes its Application and two projects of it.
struct RestrictedGitSource {
  struct Destination {
    std::string name = {};  // of the cluster, or
    std::string server = {};
    std::string destination_namespace = {};

    bool operator==(const Destination&) const = default;
  };
  std::string name;
  RepositorySpecifier source;
  std::string source_namespace = {};  // begins with "cf-"
  std::vector<Destination> destinations = {};
  std::vector<std::string> source_repositories = {};  // URLs or globs
  std::string include = {};
  std::string exclude = {};
};
// "codefresh.io/v1beta1", that of the product's chart.
inline constexpr std::string_view kRestrictedGitSourceApi = "codefresh.io/v1beta1";
// The one of earlier releases.
inline constexpr std::string_view kOldRestrictedGitSourceApi = "csdp.codefresh.io/v1";

// The Application project of Git sources, and the Git source that each runtime has.
inline constexpr std::string_view kGitSourceProject = "cf-git-sources";
inline constexpr std::string_view kDefaultGitSource = "default-git-source";

// Values of Error::reason.
namespace git_source_errors {
inline constexpr std::string_view kExists = "GIT_SOURCE_EXISTS";
inline constexpr std::string_view kNameTaken = "NAME_TAKEN";
inline constexpr std::string_view kUnknown = "GIT_SOURCE_NOT_FOUND";
inline constexpr std::string_view kForm = "GIT_SOURCE_UNREADABLE";
}  // namespace git_source_errors

// The name of an object that a file of the repository holds: a DNS label, and not the name of an
// Application that the repository itself needs.
Result<void> check_entity_name(std::string_view name);
Result<void> check_restricted(const RestrictedGitSource& source);

// "{a,b}" as the globs a and b.
std::vector<std::string> parse_globs(std::string_view include);
std::string format_globs(const std::vector<std::string>& globs);

// The runtime's in-cluster Application as YAML, with the globs that every runtime has.
std::string in_cluster_manifest(const ConfigRepository& repository);
// The Application of a managed cluster as YAML. What is meant for one runtime alone stays in its own cluster: Applications
// lie there.
std::string cluster_manifest(const ConfigRepository& repository, std::string_view name,
                             std::string_view server);
// The runtime's Application as JSON: it applies those of clusters_folder().
std::string runtime_application(const ConfigRepository& repository);
// The Application of a Git source as YAML.
std::string git_source_manifest(const ConfigRepository& repository, const GitSource& source);
// `api`: one of the two above.
std::string restricted_git_source_manifest(const ConfigRepository& repository,
                                           const RestrictedGitSource& source, std::string_view api);
// The project of Git sources as YAML, without a namespace: that of each runtime which applies it. It
// allows everything; what a Git source may do is decided by who may commit one.
std::string git_source_project_manifest();
// An Application that installs Argo Rollouts by its Helm chart, as YAML. There is one for each cluster.
struct RolloutsInstallation {
  std::string name;  // of the Application
  std::string server;
  std::string destination_namespace;
  std::string chart_repository;
  std::string chart_version;
};
std::string rollouts_manifest(const ConfigRepository& repository,
                              const RolloutsInstallation& wanted);
// The names that it may have, of which its file has the same: by the host of the server, and with a digest of its URL,
// since several clusters may have one host.
struct RolloutsNames {
  std::string by_host;
  std::string by_url;
};
RolloutsNames rollouts_names(std::string_view server);
// The contents of the files of these names; nothing: there is none.
struct RolloutsFiles {
  std::optional<std::string> by_host = {};
  std::optional<std::string> by_url = {};
};
// The one that it has, or else is to get: by the host where the URL is a host alone and no other cluster has the name.
std::string rollouts_name(std::string_view server, const RolloutsFiles& files);

// The changes of the commit that makes a Git source. They change nothing when it is there as wanted,
// and fail with `conflict` when there is another of that name, or a managed cluster, whose Application
// has that name. The in-cluster Application is made when there is none.
std::vector<FileChange> changes_to_create(const ConfigRepository& repository,
                                          const GitSource& source);
std::vector<FileChange> changes_to_create(const ConfigRepository& repository,
                                          const RestrictedGitSource& source, std::string_view api);
// Those that edit one in place, also one that has its source in a list; comments and other fields stay. Without a value, include or exclude
// stays as it is. not_found when there is no such Git source.
struct GitSourceEdit {
  std::string name;
  RepositorySpecifier source;
  std::optional<std::string> include = {};
  std::optional<std::string> exclude = {};
};
std::vector<FileChange> changes_to_edit(const ConfigRepository& repository,
                                        const GitSourceEdit& edit);
// The same of a restricted one. When its destinations or repositories change, the file is written
// anew; otherwise its values are edited in place.
struct RestrictedGitSourceEdit {
  RestrictedGitSource wanted;  // without include and exclude
  std::optional<std::string> include = {};
  std::optional<std::string> exclude = {};
};
std::vector<FileChange> changes_to_edit(const ConfigRepository& repository,
                                        const RestrictedGitSourceEdit& edit);
// Those that remove one of either kind; they change nothing when there is none.
std::vector<FileChange> changes_to_remove(const ConfigRepository& repository,
                                          std::string_view name);
// Those that make what every runtime needs, where it is missing, and take the globs of the folder "configurations" from
// a runtime that is not the configuration runtime.
std::vector<FileChange> changes_to_prepare(const ConfigRepository& repository);
// The same, and those that make the default Git source and its folder. One that was edited stays.
std::vector<FileChange> changes_to_bring_up(const ConfigRepository& repository);
// Those that install Argo Rollouts, and make what every runtime needs. An Application that is there for this cluster stays
// but for its destination's namespace; `conflict` when it is for another one.
std::vector<FileChange> changes_to_install_rollouts(const ConfigRepository& repository,
                                                    const RolloutsInstallation& wanted);
// Those that make the Application of a managed cluster, or point the one that is there to `server`; what people changed
// in it otherwise stays. They fail with `conflict` when a Git source of this runtime has that name.
std::vector<FileChange> changes_to_add_cluster(const ConfigRepository& repository,
                                               std::string_view name, std::string_view server);
// They change nothing when there is none.
std::vector<FileChange> changes_to_remove_cluster(const ConfigRepository& repository,
                                                  std::string_view name);
std::vector<FileChange> changes_to_remove_runtime(const ConfigRepository& repository);

}  // namespace gitops::app_proxy
