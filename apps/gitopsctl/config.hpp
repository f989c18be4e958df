#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/cli/command.hpp"
#include "common/cli/loop_runner.hpp"
#include "common/cli/table.hpp"
#include "common/core/config_reader.hpp"
#include "common/core/secret.hpp"
#include "gitopsctl/permissions.hpp"
#include "k8s-client/config.hpp"

namespace gitops::ctl {

// Settings for a cluster and a namespace in it.
struct KubernetesSettings {
  std::string kubeconfig;
  std::string context;
  std::string ns;  // empty: that of the context
  // `context_flag` is another name where --context chooses a control plane.
  void add_to(ConfigReader& reader, std::string_view context_flag = "context");
  // Adds the setting for a namespace. Call it after add_to().
  void add_namespace_to(ConfigReader& reader);
};

// Finds the cluster as kubectl does: --kubeconfig > $KUBECONFIG > ~/.kube/config > the pod's
// service account. Exec plugins of the kubeconfig are run with the whole environment, because the
// kubeconfig and the environment belong to the user.
Result<k8s::ClusterConfig> find_cluster(const KubernetesSettings& settings,
                                        const cli::Environment& environment);

struct ArgoCdSettings {
  std::string server;  // empty: not given
  std::string root_path;
  Secret token;
  std::string ca_file;
  bool insecure = false;
  void add_to(ConfigReader& reader);
};

struct ControlPlaneSettings {
  std::string url;  // empty: not given
  Secret token;
  std::string ca_file;
  bool insecure = false;
  void add_to(ConfigReader& reader);
};

// Adds the chart values that the permissions depend on. Environment variables are the
// event-reporter's.
void add_installation(ConfigReader& reader, Installation& installation);

}  // namespace gitops::ctl
