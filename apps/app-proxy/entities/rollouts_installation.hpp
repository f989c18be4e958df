#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app-proxy/entities/config_repository.hpp"
#include "app-proxy/git/tree_path.hpp"

// Files of the shared configuration repository that install Argo Rollouts in clusters. Pure.
namespace gitops::app_proxy {

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
// Names that the installation and its file may have: from the host of the server, or with a digest
// of its URL, since several clusters may share a host.
struct RolloutsNames {
  std::string by_host;
  std::string by_url;
};
RolloutsNames rollouts_names(std::string_view server);
// Contents of the files of these names; unset when there is none.
struct RolloutsFiles {
  std::optional<std::string> by_host = {};
  std::optional<std::string> by_url = {};
};
// Returns the present name of the installation, or its future one: from the host, when the URL has
// nothing else and no other cluster has the name.
std::string rollouts_name(std::string_view server, const RolloutsFiles& files);

// Changes that install Argo Rollouts and create what every runtime needs. An existing Application
// for this cluster is kept, except for its destination's namespace; `conflict` when it is for
// another cluster.
std::vector<FileChange> changes_to_install_rollouts(const ConfigRepository& repository,
                                                    const RolloutsInstallation& wanted);
// Changes that remove the installation for the cluster with this URL of its API server. They have
// no effect when there is none.
std::vector<FileChange> changes_to_remove_rollouts(const ConfigRepository& repository,
                                                   std::string_view server);

}  // namespace gitops::app_proxy
