#include "app-proxy/api_parts.hpp"

#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>

#include "app-proxy/http/cluster_routes.hpp"
#include "app-proxy/http/source_files.hpp"
#include "common/core/process.hpp"

namespace gitops::app_proxy {
namespace {

// Version number in the paths of the control plane's API.
constexpr const char* kPlatformVersion = "2.0";

http::ServerOptions server_options(const Config& config) {
  http::ServerOptions options;
  options.address = config.listen_address;
  options.port = static_cast<std::uint16_t>(config.port);
  options.max_connections = static_cast<std::size_t>(config.max_connections);
  return options;
}

RequestGate::Options gate_options(const Config& config, Tracer& tracer) {
  RequestGate::Options options;
  options.cors_origins = config.cors_origins;
  options.trusted_proxies = config.trusted_proxies;
  options.max_operations = static_cast<std::size_t>(config.max_operations_per_user);
  options.playground = config.playground;
  options.tracer = &tracer;
  return options;
}

ResolverDependencies resolver_parts(const Config& config, const VersionInfo& version,
                                    ControlPlaneParts& control_plane, ArgoParts& argo,
                                    LogStreams& logs, const ApiParts::InCluster& in_cluster) {
  ResolverDependencies parts{.version = version,
                             .applications = argo.applications(),
                             .workflows = argo.workflows(),
                             .rollouts = argo.rollouts(),
                             .logs = &logs};
  if (!in_cluster.cluster) {
    parts.files = runtime_files(config, control_plane.users);
    return parts;
  }
  GitParts& git = *in_cluster.git;
  parts.git_integrations = &git.integrations();
  parts.committer = git.committer();
  parts.reader = git.reader();
  parts.cluster = &in_cluster.cluster->client;
  parts.files = in_cluster.cluster->files;
  parts.clusters = &in_cluster.runtime->clusters();
  parts.sealing_keys = &in_cluster.runtime->sealing_keys();
  parts.identity = &control_plane.identity;
  return parts;
}

// Creates the engine. The schema and the table are compiled in, so an error in them is a bug.
std::unique_ptr<graphql::Engine> engine_of(const std::vector<FieldRow>& rows, Audit& audit) {
  auto engine = graphql::Engine::make(std::string(schema_text()), resolvers(rows, audit),
                                      {.hides_values = true, .plain_variable_errors = true});
  if (!engine) throw std::logic_error("schema: " + engine.error().message);
  return std::move(*engine);
}

std::optional<ReportGitHosts> git_hosts_of(const Config& config, ControlPlaneParts& control_plane,
                                           GitParts* git) {
  if (!git) return std::nullopt;
  return ReportGitHosts(ReportGitHosts::Dependencies{
      .integrations = git->integrations(),
      .own_token = git->own_token(),
      .users = control_plane.users,
      .plain_http = config.git_insecure_http ? PlainHttp::insecure_allowed : PlainHttp::refused});
}

ImageReportOptions image_options(const Config& config, std::string own_namespace,
                                 std::string control_plane_url) {
  ImageReportOptions options;
  options.own_namespace = std::move(own_namespace);
  options.control_plane_url = std::move(control_plane_url);
  options.service_account = config.image_service_account;
  options.semaphore_config_map = config.image_semaphore_config_map;
  options.semaphore_key = config.image_semaphore_key;
  options.pod_gc = config.image_pod_gc;
  options.kept_after_completion = std::chrono::seconds(config.image_kept);
  options.longest = std::chrono::seconds(config.image_longest);
  options.heartbeat = std::chrono::seconds(config.image_heartbeat);
  if (!config.image_report_task.empty()) options.report_image = config.image_report_task;
  if (!config.image_git_task.empty()) options.git_image = config.image_git_task;
  if (!config.image_jira_task.empty()) options.jira_image = config.image_jira_task;
  return options;
}

GitLoginRoutes::Dependencies login_parts(RequestGate& gate, Audit& audit, GitParts* git,
                                         const RuntimeFiles& files) {
  GitLoginRoutes::Dependencies parts{.gate = gate, .audit = audit, .files = files};
  if (!git) return parts;
  parts.git = &git->integrations();
  parts.oauth = &git->oauth();
  parts.seal = &git->seal();
  parts.committer = git->committer();
  return parts;
}

}  // namespace

ApiParts::ApiParts(const DaemonContext& context, const Config& config, Audit& audit,
                   ControlPlaneParts& control_plane, ArgoParts& argo, LogStreams& logs,
                   InCluster in_cluster)
    : config_(config),
      audit_(audit),
      in_cluster_(in_cluster),
      version_{.version = std::string(version()),
               .platform_host = control_plane.url,
               .platform_version = kPlatformVersion},
      parts_(resolver_parts(config, version_, control_plane, argo, logs, in_cluster)),
      rows_(table(parts_)),
      engine_(engine_of(rows_, audit)),
      gate_(*engine_, rows_, control_plane.users, context.metrics,
            gate_options(config, context.tracer)),
      log_routes_(gate_, logs,
                  {.runtime = config.runtime_name, .anonymous_archive = config.logs_without_login}),
      git_hosts_(git_hosts_of(config, control_plane, in_cluster.git)),
      image_routes_({.gate = gate_,
                     .audit = audit,
                     .logs = logs,
                     .cluster = in_cluster.cluster ? &in_cluster.cluster->client : nullptr,
                     .git_hosts = git_hosts_ ? &*git_hosts_ : nullptr},
                    image_options(config, parts_.files.runtime_namespace, control_plane.url)),
      git_logins_(login_parts(gate_, audit, in_cluster.git, parts_.files)),
      router_(make_routes(), rest_error),
      server_(context.executor, server_options(config),
              [this](http::Exchange& exchange) { return serve(exchange); }) {}

std::vector<http::Route> ApiParts::make_routes() {
  const auto promotion = [this](PromotionKind kind) {
    return [this, kind](http::Exchange& exchange, const auto&) {
      return serve_promotion(exchange, kind, gate_, audit_,
                             in_cluster_.git ? in_cluster_.git->promotions() : nullptr);
    };
  };
  return routes(
      {.graphql = [this](http::Exchange& exchange,
                         const auto&) { return gate_.serve_post(exchange); },
       .graphql_opened = [this](http::Exchange& exchange,
                                const auto&) { return gate_.serve_get(exchange); },
       .promotion_commit = promotion(PromotionKind::commit),
       .promotion_pull_request = promotion(PromotionKind::pull_request),
       .clusters =
           [this](http::Exchange& exchange, const auto&) {
             return serve_cluster(exchange, gate_, audit_,
                                  in_cluster_.runtime ? &in_cluster_.runtime->clusters() : nullptr,
                                  config_.runtime_name);
           },
       .image_report = [this](http::Exchange& exchange,
                              const auto&) { return image_routes_.serve(exchange); },
       .logs = [this](http::Exchange& exchange,
                      const auto&) { return log_routes_.serve(exchange); },
       .source_files =
           [this](http::Exchange& exchange, const auto&) {
             return serve_source_files(exchange, gate_,
                                       in_cluster_.git ? in_cluster_.git->source_files() : nullptr);
           },
       .git_login =
           [this](http::Exchange& exchange, const auto& parameters) {
             return git_logins_.serve_start(exchange, parameters.at("provider"));
           },
       .git_login_form =
           [this](http::Exchange& exchange, const auto& parameters) {
             return git_logins_.serve_form(exchange, parameters.at("provider"));
           },
       .git_login_callback =
           [this](http::Exchange& exchange, const auto& parameters) {
             return git_logins_.serve_callback(exchange, parameters.at("provider"));
           }});
}

Task<> ApiParts::serve(http::Exchange& exchange) {
  gate_.add_common_headers(exchange);
  const std::string path = canonical_path(exchange.path());
  co_await router_.serve(exchange, path);
}

}  // namespace gitops::app_proxy
