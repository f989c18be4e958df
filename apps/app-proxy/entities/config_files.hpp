#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "app-proxy/entities/config_repository.hpp"
#include "app-proxy/errors/client_codes.hpp"
#include "app-proxy/git/manifest_edit.hpp"
#include "app-proxy/git/tree_path.hpp"

// Files that every runtime needs in the shared configuration repository, files of its clusters, and
// the manifest and commit parts that these and the files of entities share. Globs and labels are
// those in the product's documentation. Pure.
namespace gitops::app_proxy {

// Returns the runtime's in-cluster Application as YAML, with the globs that every runtime has.
std::string in_cluster_manifest(const ConfigRepository& repository);
// Returns the Application of a managed cluster as YAML. It lacks the globs of single runtimes:
// their files hold Applications, which belong in a runtime's own cluster.
std::string cluster_manifest(const ConfigRepository& repository, std::string_view name,
                             std::string_view server);
// Returns the runtime's Application as JSON. It applies the Applications of clusters_folder().
std::string runtime_application(const ConfigRepository& repository);
// Returns the project of Git sources as YAML, without a namespace, so that each runtime applies it
// in its own. It allows everything: permission to commit a Git source decides what that source may
// do.
std::string git_source_project_manifest();

// Changes that create missing files which every runtime needs.
std::vector<FileChange> changes_to_prepare(const ConfigRepository& repository);
// Changes that create the Application of a managed cluster, or point the existing one to `server`;
// other edits in it are kept. The commit fails with `conflict` when a Git source of this runtime
// has that name.
std::vector<FileChange> changes_to_add_cluster(const ConfigRepository& repository,
                                               std::string_view name, std::string_view server);
// Changes that remove the Application of a managed cluster. They have no effect when there is none.
std::vector<FileChange> changes_to_remove_cluster(const ConfigRepository& repository,
                                                  std::string_view name);
std::vector<FileChange> changes_to_remove_runtime(const ConfigRepository& repository);

// Parts of manifests.

// Splits "{a,b}" into the globs a and b.
std::vector<std::string> parse_globs(std::string_view include);
std::string format_globs(const std::vector<std::string>& globs);

// Globs for the folder "resources" that the runtime applies to its own cluster.
std::vector<std::string> runtime_globs(const ConfigRepository& repository);
// Builds an Application in the runtime's namespace, and parts of it.
nlohmann::json argo_application(std::string_view name, const ConfigRepository& repository,
                                nlohmann::json labels, nlohmann::json source,
                                nlohmann::json destination);
nlohmann::json application_source(const RepositorySpecifier& at);
nlohmann::json application_sync_policy();
std::string to_yaml(const nlohmann::json& manifest);
// Path of "spec.destination.server".
ManifestPath server_path();
// Sets these values in `text`. An equal value keeps its spelling.
using ManifestValues = std::vector<std::pair<ManifestPath, std::string>>;
Result<std::string> set_manifest_values(std::string text, const ManifestValues& values);

// Parts of commits.

// Adds these globs to in-cluster.yaml, and creates the file when there is none. Removes none:
// without the globs of `configurations`, Argo CD would prune every product of the account.
FileChange add_globs(const ConfigRepository& repository, std::vector<std::string> wanted);
FileChange remove_glob(const ConfigRepository& repository, std::string glob);
// Creates a file; an existing one is left as it is.
FileChange ensure_file(std::string path, std::string otherwise);
// Keeps the folder "resources" from becoming empty, since Argo CD refuses a path without files.
FileChange ensure_resources(const ConfigRepository& repository);
// Creates the project of Git sources when it is missing, since Argo CD refuses an Application
// without its project.
FileChange ensure_project(const ConfigRepository& repository);
// Fails with `conflict` and this message when the file exists: all Applications of a runtime share
// one namespace.
FileChange ensure_name_free(std::string path, std::string taken);

}  // namespace gitops::app_proxy
