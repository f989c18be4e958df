#include "app-proxy/cluster_parts.hpp"

#include <array>
#include <string>
#include <utility>

#include <unistd.h>

#include "common/core/process.hpp"

namespace gitops::app_proxy {
namespace {

// Lease of the replica that does work only one replica may do.
constexpr const char* kLease = "cap-app-proxy";

// Identity of this process among the replicas. A restarted container keeps the name of its pod, and
// therefore the Lease.
std::string replica_name(const Config& config) {
  if (!config.leader_id.empty()) return config.leader_id;
  std::array<char, 256> host{};
  (void)::gethostname(host.data(), host.size() - 1);
  return host.data();
}

RuntimeFiles files_in(const Config& config, const UserDirectory& users,
                      const k8s::ClusterConfig& cluster) {
  auto files = runtime_files(config, users);
  files.runtime_namespace =
      config.own_namespace.empty() ? cluster.default_namespace : config.own_namespace;
  return files;
}

Leadership leadership_of(const Executor& executor, const Config& config, k8s::Client& client,
                         const RuntimeFiles& files, bool has_lease) {
  if (!has_lease) return Leadership(executor);
  return Leadership(executor, client,
                    k8s::LeaseOptions{.key = {files.runtime_namespace, kLease},
                                      .identity = replica_name(config)});
}

}  // namespace

RuntimeFiles runtime_files(const Config& config, const UserDirectory& users) {
  return {
      .runtime = config.runtime_name,
      .is_configuration_runtime = config.is_configuration_runtime,
      .chart_repository = config.helm_repository,
      .scheme = config.git_insecure_http ? Scheme::http_too : Scheme::https_only,
      .config_repository = [&users] { return users.own().shared_config_repo; },
  };
}

ClusterParts::ClusterParts(const DaemonContext& context, const Config& config, net::Resolver& names,
                           const http::ProxySettings& proxy, ControlPlaneParts& control_plane,
                           k8s::ClusterConfig cluster)
    : files(files_in(config, control_plane.users, cluster)),
      client(context.executor, names, std::move(cluster), proxy,
             "gitops-app-proxy/" + std::string(version())),
      is_registering(!control_plane.user_token.current().empty()),
      leadership(leadership_of(context.executor, config, client, files, is_registering)),
      tasks(context.executor) {
  leadership.start(tasks);
}

Task<> ClusterParts::stop() {
  tasks.cancel();
  co_await tasks.join();
}

}  // namespace gitops::app_proxy
