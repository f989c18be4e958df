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

// The Git source that each runtime has.
inline constexpr std::string_view kDefaultGitSource = "default-git-source";

// Its names, addresses and limits; `invalid_argument` names the field.
Result<void> check_restricted(const RestrictedGitSource& source);

// The Application of a Git source as YAML.
std::string git_source_manifest(const ConfigRepository& repository, const GitSource& source);
// `api`: one of the two above.
std::string restricted_git_source_manifest(const ConfigRepository& repository,
                                           const RestrictedGitSource& source, std::string_view api);

// The changes of the commit that makes a Git source. They change nothing when it is there as wanted,
// and fail with `conflict` when there is another of that name, or a managed cluster, whose Application
// has that name. The in-cluster Application is made when there is none.
std::vector<FileChange> changes_to_create(const ConfigRepository& repository,
                                          const GitSource& source);
std::vector<FileChange> changes_to_create(const ConfigRepository& repository,
                                          const RestrictedGitSource& source, std::string_view api);
// Those that edit one in place, also one that has its source in a list; comments and other fields stay. Without a
// value, include or exclude stays as it is. not_found when there is no such Git source.
struct GitSourceEdit {
  std::string name;
  RepositorySpecifier source;
  std::optional<std::string> include = {};
  std::optional<std::string> exclude = {};
};
std::vector<FileChange> changes_to_edit(const ConfigRepository& repository,
                                        const GitSourceEdit& edit);
// The same of a restricted one. When its destinations or repositories change, the file is written
// again; otherwise its values are edited in place.
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
// Those that make what every runtime needs, the default Git source and its folder. One that was edited stays.
std::vector<FileChange> changes_to_bring_up(const ConfigRepository& repository);

}  // namespace gitops::app_proxy
