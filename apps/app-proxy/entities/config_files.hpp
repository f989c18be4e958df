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

// The files that every runtime needs in the shared configuration repository and those of its clusters, and the parts
// that these and the files of entities are made of. Globs and labels are those that the product documents. Pure.
namespace gitops::app_proxy {

// The runtime's in-cluster Application as YAML, with the globs that every runtime has.
std::string in_cluster_manifest(const ConfigRepository& repository);
// The Application of a managed cluster as YAML, without the globs of single runtimes: their files hold Applications,
// which belong into a runtime's own cluster.
std::string cluster_manifest(const ConfigRepository& repository, std::string_view name,
                             std::string_view server);
// The runtime's Application as JSON: it applies those of clusters_folder().
std::string runtime_application(const ConfigRepository& repository);
// The project of Git sources as YAML, without a namespace: that of each runtime which applies it. It
// allows everything; what a Git source may do is decided by who may commit one.
std::string git_source_project_manifest();

// The changes of the commit that makes what every runtime needs, where it is missing.
std::vector<FileChange> changes_to_prepare(const ConfigRepository& repository);
// Those that make the Application of a managed cluster, or point the one that is there to `server`; what people changed
// in it otherwise stays. They fail with `conflict` when a Git source of this runtime has that name.
std::vector<FileChange> changes_to_add_cluster(const ConfigRepository& repository,
                                               std::string_view name, std::string_view server);
// Those that remove it; they change nothing when there is none.
std::vector<FileChange> changes_to_remove_cluster(const ConfigRepository& repository,
                                                  std::string_view name);
std::vector<FileChange> changes_to_remove_runtime(const ConfigRepository& repository);

// Parts of manifests.

// "{a,b}" as the globs a and b.
std::vector<std::string> parse_globs(std::string_view include);
std::string format_globs(const std::vector<std::string>& globs);

// Those of the folder "resources" that the runtime applies to its own cluster.
std::vector<std::string> runtime_globs(const ConfigRepository& repository);
// An Application in the runtime's namespace, and parts of it.
nlohmann::json argo_application(std::string_view name, const ConfigRepository& repository,
                                nlohmann::json labels, nlohmann::json source,
                                nlohmann::json destination);
nlohmann::json application_source(const RepositorySpecifier& at);
nlohmann::json application_sync_policy();
std::string to_yaml(const nlohmann::json& manifest);
// "spec.destination.server".
ManifestPath server_path();
// Sets these values in `text`. A value that is already there keeps its spelling.
using ManifestValues = std::vector<std::pair<ManifestPath, std::string>>;
Result<std::string> set_manifest_values(std::string text, const ManifestValues& values);

// Parts of commits.

// Puts all these globs into in-cluster.yaml, which is made when there is none. None is taken out: without the globs of
// `configurations`, Argo CD would prune every product of the account.
FileChange add_globs(const ConfigRepository& repository, std::vector<std::string> wanted);
FileChange remove_glob(const ConfigRepository& repository, std::string glob);
// A file that is left as it is when it is there.
FileChange ensure_file(std::string path, std::string otherwise);
// Argo CD refuses a path without files, so the folder "resources" must not become empty.
FileChange ensure_resources(const ConfigRepository& repository);
// Argo CD refuses an Application whose project is not there.
FileChange ensure_project(const ConfigRepository& repository);
// `conflict` with this message when the file is there: all Applications of a runtime lie in one namespace.
FileChange ensure_name_free(std::string path, std::string taken);

}  // namespace gitops::app_proxy
