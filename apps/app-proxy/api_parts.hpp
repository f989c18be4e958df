#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "app-proxy/argo_parts.hpp"
#include "app-proxy/cluster_parts.hpp"
#include "app-proxy/config.hpp"
#include "app-proxy/control_plane_parts.hpp"
#include "app-proxy/git_parts.hpp"
#include "app-proxy/http/git_login_routes.hpp"
#include "app-proxy/http/image_routes.hpp"
#include "app-proxy/http/log_routes.hpp"
#include "app-proxy/http/promotion_routes.hpp"
#include "app-proxy/http/report_git_hosts.hpp"
#include "app-proxy/http/request_gate.hpp"
#include "app-proxy/http/routes.hpp"
#include "app-proxy/logs/log_streams.hpp"
#include "app-proxy/resolvers/table.hpp"
#include "app-proxy/runtime_parts.hpp"
#include "app-proxy/users/audit.hpp"
#include "common/daemon/daemon.hpp"
#include "common/graphql/engine.hpp"
#include "common/http/router.hpp"
#include "common/http/server.hpp"

namespace gitops::app_proxy {

// API of the program: GraphQL and the REST routes. Loop thread; the arguments outlive it.
class ApiParts {
 public:
  // Parts that need the runtime's cluster. Null while the runtime has no access to it.
  struct InCluster {
    ClusterParts* cluster = nullptr;
    GitParts* git = nullptr;
    RuntimeParts* runtime = nullptr;
  };
  ApiParts(const DaemonContext& context, const Config& config, Audit& audit,
           ControlPlaneParts& control_plane, ArgoParts& argo, LogStreams& logs,
           InCluster in_cluster);

  Result<void> listen() { return server_.listen(); }
  [[nodiscard]] std::uint16_t port() const { return server_.port(); }
  // Waits for requests in flight until the deadline.
  Task<> stop(Deadline deadline) { return server_.stop(deadline); }

 private:
  [[nodiscard]] std::vector<http::Route> make_routes();
  Task<> serve(http::Exchange& exchange);

  const Config& config_;
  Audit& audit_;
  InCluster in_cluster_;
  VersionInfo version_;
  ResolverDependencies parts_;
  std::vector<FieldRow> rows_;
  std::unique_ptr<graphql::Engine> engine_;
  RequestGate gate_;
  LogRoutes log_routes_;
  std::optional<ReportGitHosts> git_hosts_;
  ImageRoutes image_routes_;
  GitLoginRoutes git_logins_;
  http::Router router_;
  http::Server server_;
};

}  // namespace gitops::app_proxy
