#include "app-proxy/app.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "app-proxy/api_parts.hpp"
#include "app-proxy/argo_parts.hpp"
#include "app-proxy/cluster_parts.hpp"
#include "app-proxy/config.hpp"
#include "app-proxy/control_plane_parts.hpp"
#include "app-proxy/git_parts.hpp"
#include "app-proxy/logs/log_streams.hpp"
#include "app-proxy/runtime_parts.hpp"
#include "app-proxy/users/audit.hpp"
#include "common/core/log.hpp"
#include "common/http/client.hpp"
#include "common/net/resolve.hpp"
#include "k8s-client/client.hpp"

namespace gitops::app_proxy {
namespace {

// Owns all parts. Members are in order of dependence: each is created after the parts that it uses.
class App {
 public:
  App(const DaemonContext& context, const Config& config)
      : context_(context), config_(config), audit_(config.audit_file), names_(context.metrics) {}

  // The port opens last, so a request finds every part.
  Task<Result<void>> start() {
    if (auto opened = audit_.open(); !opened) co_return opened;
    const auto proxy = http::proxy_settings(context_.environment);
    control_plane_.emplace(context_, config_, names_, proxy);
    connect_cluster(proxy);
    argo_.emplace(context_, config_, names_, proxy, control_plane_->rules, cluster_client());
    if (cluster_) {
      git_.emplace(context_, config_, names_, proxy, *control_plane_, *cluster_);
      runtime_.emplace(context_, config_, *control_plane_, *cluster_, *argo_, *git_);
    }
    logs_.emplace(context_.executor, argo_->applications(), argo_->workflows(), cluster_client(),
                  LogStreams::Options{.own_namespace = cluster_ ? cluster_->files.runtime_namespace
                                                                : std::string()});
    api_.emplace(context_, config_, audit_, *control_plane_, *argo_, *logs_,
                 ApiParts::InCluster{.cluster = pointer_to(cluster_),
                                     .git = pointer_to(git_),
                                     .runtime = pointer_to(runtime_)});
    if (auto listening = api_->listen(); !listening) co_return listening;
    is_listening_ = true;
    log_.info("serving", {{"port", api_->port()}, {"control_plane", control_plane_->url}});
    co_return Result<void>{};
  }

  Task<> stop(Deadline deadline) {
    is_listening_ = false;
    if (runtime_) co_await runtime_->stop();
    if (cluster_) co_await cluster_->stop();
    if (api_) co_await api_->stop(deadline);
    if (logs_) co_await logs_->stop();
    if (git_) co_await git_->stop();
    if (argo_) co_await argo_->stop();
    if (control_plane_) co_await control_plane_->stop();
  }

  [[nodiscard]] std::string not_ready_because() const {
    return is_listening_ ? std::string() : "not listening";
  }

  [[nodiscard]] StatusReport status() {
    if (!api_) return {};
    StatusReport rest{status_count("logs being read", logs_->open()),
                      cluster_error_.empty()
                          ? status_entry("Git integrations", "", "available")
                          : unavailable_entry("Git integrations", cluster_error_)};
    return joined({control_plane_->status(), argo_->status(),
                   runtime_ ? runtime_->status()
                            : StatusReport{unavailable_entry("report of clusters"),
                                           unavailable_entry("sealing key")},
                   std::move(rest), git_ ? git_->status() : StatusReport()});
  }

 private:
  static StatusEntry unavailable_entry(std::string name, std::string why = "not available") {
    return {.name = std::move(name), .state = StatusState::unavailable, .message = std::move(why)};
  }
  template <class T>
  static T* pointer_to(std::optional<T>& part) {
    return part ? &*part : nullptr;
  }
  k8s::Client* cluster_client() { return cluster_ ? &cluster_->client : nullptr; }

  // Connects to the cluster. Without a cluster, the other parts serve.
  void connect_cluster(const http::ProxySettings& proxy) {
    auto cluster = k8s::load_cluster_config(config_.kubeconfig, config_.context,
                                            context_.environment, k8s::ExecPolicy::refuse);
    if (!cluster) {
      cluster_error_ = cluster.error().message;
      log_.warning("Git integrations are not available: the cluster is not configured",
                   {{"reason", cluster_error_}});
      return;
    }
    cluster_.emplace(context_, config_, names_, proxy, *control_plane_, std::move(*cluster));
  }

  Log log_{"app-proxy"};
  DaemonContext context_;
  const Config& config_;
  Audit audit_;
  net::Resolver names_;
  std::optional<ControlPlaneParts> control_plane_;
  std::optional<ClusterParts> cluster_;
  std::string cluster_error_;
  std::optional<ArgoParts> argo_;
  std::optional<GitParts> git_;
  std::optional<RuntimeParts> runtime_;
  std::optional<LogStreams> logs_;
  std::optional<ApiParts> api_;
  bool is_listening_ = false;
};

}  // namespace

DaemonSpec app_proxy() {
  return daemon_spec<Config>(
      "app-proxy", "Serves the runtime's GraphQL and REST API, commits to Git and changes state.",
      [](const DaemonContext& context, std::shared_ptr<Config> config) {
        const auto app = std::make_shared<App>(context, *config);
        auto frame = daemon_app(app, std::move(config));
        frame.ready_checks = {{"port", [app] { return app->not_ready_because(); }}};
        return frame;
      });
}

}  // namespace gitops::app_proxy
