#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app-proxy/entities/config_repository.hpp"
#include "app-proxy/git/tree_path.hpp"

// The files of Git sources in the shared configuration repository. Pure.
namespace gitops::app_proxy {

// An Application that applies a folder of a user's repository.
struct GitSource {
  std::string name;
  RepositorySpecifier source;
  std::string server;
  std::string destination_namespace = {};                        // empty: the runtime's
  std::vector<std::pair<std::string, std::string>> labels = {};  // in addition to ours
  std::string include = {};                                      // glob; empty: all files
  std::string exclude = {};
  bool is_internal = false;
};

// A Git source whose Applications are in a namespace of their own and may deploy only to its
// destinations and from its repositories. An operator creates its Application and two projects from
// it.
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
// API version of the product's chart.
inline constexpr std::string_view kRestrictedGitSourceApi = "codefresh.io/v1beta1";
// API version of earlier releases.
inline constexpr std::string_view kOldRestrictedGitSourceApi = "csdp.codefresh.io/v1";

// Name of the Git source that each runtime has.
inline constexpr std::string_view kDefaultGitSource = "default-git-source";

// Checks names, addresses and limits. `invalid_argument` names the field.
Result<void> check_restricted(const RestrictedGitSource& source);

// Returns the Application of a Git source as YAML.
std::string git_source_manifest(const ConfigRepository& repository, const GitSource& source);
// `api` is one of the two API versions above.
std::string restricted_git_source_manifest(const ConfigRepository& repository,
                                           const RestrictedGitSource& source, std::string_view api);

// Changes that create a Git source, and the in-cluster Application if it is missing. They have no
// effect when the Git source already is as wanted. The commit fails with `conflict` when another
// Git source or a managed cluster has that name.
std::vector<FileChange> changes_to_create(const ConfigRepository& repository,
                                          const GitSource& source);
std::vector<FileChange> changes_to_create(const ConfigRepository& repository,
                                          const RestrictedGitSource& source, std::string_view api);
// Edit of a Git source in place, also of one that has its source in a list; comments and other
// fields are kept. An unset include or exclude is kept as it is. `not_found` when there is no such
// Git source.
struct GitSourceEdit {
  std::string name;
  RepositorySpecifier source;
  std::optional<std::string> include = {};
  std::optional<std::string> exclude = {};
};
std::vector<FileChange> changes_to_edit(const ConfigRepository& repository,
                                        const GitSourceEdit& edit);
// Edit of a restricted Git source. New destinations or repositories replace the whole file;
// otherwise its values are edited in place.
struct RestrictedGitSourceEdit {
  RestrictedGitSource wanted;  // without include and exclude
  std::optional<std::string> include = {};
  std::optional<std::string> exclude = {};
};
std::vector<FileChange> changes_to_edit(const ConfigRepository& repository,
                                        const RestrictedGitSourceEdit& edit);
// Changes that remove a Git source of either kind. They have no effect when there is none.
std::vector<FileChange> changes_to_remove(const ConfigRepository& repository,
                                          std::string_view name);
// Changes that create the files which every runtime needs, the default Git source and its folder.
// An edited one is kept.
std::vector<FileChange> changes_to_bring_up(const ConfigRepository& repository);

}  // namespace gitops::app_proxy
