#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app-proxy/entities/config_repository.hpp"
#include "app-proxy/git/tree_path.hpp"

// The files that install Argo Rollouts in clusters, in the shared configuration repository. Pure.
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

// The changes of the commit that installs Argo Rollouts and makes what every runtime needs. An Application that is there
// for this cluster stays but for its destination's namespace; `conflict` when it is for another one.
std::vector<FileChange> changes_to_install_rollouts(const ConfigRepository& repository,
                                                    const RolloutsInstallation& wanted);

}  // namespace gitops::app_proxy
