#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/cli/command.hpp"
#include "common/cli/loop_runner.hpp"
#include "common/cli/table.hpp"
#include "common/core/config_reader.hpp"
#include "common/core/secret.hpp"
#include "gitopsctl/rights.hpp"
#include "k8s-client/config.hpp"

namespace gitops::ctl {

// How to reach the cluster.
struct KubernetesSettings {
  std::string kubeconfig;
  std::string context;
  std::string ns;  // empty: the context's
  void add_to(ConfigReader& reader);
};

// Finds the cluster as kubectl does: --kubeconfig > $KUBECONFIG > ~/.kube/config > the pod's
// service account. Programs that the kubeconfig names may run: it is the person's own.
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

// What the runtime's chart was installed with; names as the event-reporter's.
void add_installation(ConfigReader& reader, Installation& installation);

}  // namespace gitops::ctl
