#pragma once

#include <chrono>
#include <string>

#include "common/core/async.hpp"
#include "gitopsctl/bundle.hpp"
#include "k8s-client/client.hpp"

namespace gitops::ctl {

// Limits of the reading of a cluster.
struct ClusterLimits {
  std::chrono::milliseconds time;  // for one request
  Deadline deadline;               // for all
};

// Adds what the cluster tells of a runtime in namespace `ns` to the bundle: its workloads, pods, ConfigMaps, Leases and
// events; names and keys of its Secrets, whose values the redactor hides from then on; and of each pod the pages
// /statusz and /metrics by the pod proxy, and the last log lines, those of the container before it included.
Task<> read_cluster(k8s::Client& client, const std::string& ns, ClusterLimits limits,
                    Bundle& bundle, Redactor& redactor);

}  // namespace gitops::ctl
