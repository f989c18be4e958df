#include "event-reporter/application_mode.hpp"

#include <utility>

#include "event-reporter/argo/argocd_token.hpp"
#include "event-reporter/shards/app_distribution.hpp"

namespace gitops::reporter {
namespace {

constexpr auto kLoginTimeout = std::chrono::seconds(10);

Credential argocd_credential(const Environment& environment, k8s::Client& kubernetes,
                             Credential::Fetch log_in) {
  const auto& config = environment.config;
  if (!config.argocd_password.empty() || !config.argocd_password_file.empty()) {
    return session_credential(std::move(log_in), environment.shard.replicas);
  }
  if (!config.argocd_token_secret.empty()) {
    return secret_credential(kubernetes,
                             {.ns = environment.own_namespace, .name = config.argocd_token_secret},
                             config.argocd_token_key);
  }
  return file_or_value(config.argocd_token_file, config.argocd_token);
}

// Returns Argo CD's namespace, which need not be that of the runtime.
std::string namespace_of_argocd(const Environment& environment) {
  const auto& named = environment.config.argocd_namespace;
  return named.empty() ? environment.own_namespace : named;
}

http::ClientOptions argocd_options(const Environment& environment) {
  const auto& config = environment.config;
  auto options = client_options(environment, config.argocd_ca_file, config.argocd_insecure);
  // Each worker makes two reads at a time. A connection above this number serves one read.
  options.max_idle_per_host = 2 * static_cast<std::size_t>(config.workers);
  return options;
}

Reporter::Options reporter_options(const Environment& environment, Tracer& tracer) {
  const auto& config = environment.config;
  Reporter::Options options;
  // Applications belong to an Argo CD by its namespace.
  options.own_namespace = namespace_of_argocd(environment);
  options.application_namespaces = config.application_namespaces;
  options.changes.replicas = environment.shard.replicas;
  options.queue.capacity = static_cast<std::size_t>(config.queue_size);
  options.queue.workers = static_cast<std::size_t>(config.workers);
  options.queue.heartbeat = config.heartbeat;
  options.queue.tracer = &tracer;
  options.sweep = config.sweep;
  options.reconcile = config.reconcile;
  options.application.resource_workers = static_cast<std::size_t>(config.resource_workers);
  options.application.wait_limits.failures = static_cast<unsigned>(config.max_retries);
  options.application.resend_on_revision = config.resend_on_revision;
  return options;
}

}  // namespace

ApplicationMode::ApplicationMode(const DaemonContext& context, SharedParts& shared)
    : environment_(shared.environment),
      argocd_http_(context.executor, shared.resolver, argocd_options(environment_)),
      argocd_password_(file_or_value(environment_.config.argocd_password_file,
                                     environment_.config.argocd_password)),
      argocd_token_(
          argocd_credential(environment_, shared.kubernetes, [this] { return log_in(); })),
      argocd_(argocd_http_,
              {.server = argo::parse_server(environment_.config.argocd_server).value(),
               .root_path = environment_.config.argocd_root_path},
              [this] { return argocd_token_.current(); }),
      gatherer_(context.executor, shared.kubernetes, argocd_, argocd_token_,
                namespace_of_argocd(environment_), context.metrics),
      reporter_(context.executor, shared.kubernetes, gatherer_, shared.ledger, shared.delivery,
                reporter_options(environment_, context.tracer), context.metrics) {
  const auto& app_proxy = environment_.config.app_proxy_url;
  if (app_proxy.empty()) return;
  app_proxy_http_.emplace(
      context.executor, shared.resolver,
      client_options(environment_, environment_.config.platform_ca_file, false));
  source_files_.emplace(context.executor, *app_proxy_http_, shared.platform_token,
                        SourceFiles::Options{.app_proxy = http::parse_url(app_proxy).value()},
                        context.metrics);
  gatherer_.use(*source_files_);
}

void ApplicationMode::start(TaskGroup& group) {
  argocd_token_.start(group);
  if (source_files_) source_files_->start(group);
  reporter_.start(group);
}

Task<Result<Secret>> ApplicationMode::log_in() {
  Secret password = argocd_password_.current();
  // An empty one would be refused, and the pause after a refusal is long.
  if (password.empty()) {
    co_return fail(ErrorCode::unavailable, argocd_password_.last_error().empty()
                                               ? "the password for Argo CD is empty"
                                               : argocd_password_.last_error());
  }
  co_return co_await argocd_.log_in(environment_.config.argocd_username, std::move(password),
                                    deadline_after(kLoginTimeout));
}

std::vector<http::Route> ApplicationMode::routes() const {
  return {{"GET", "/app-distribution", http::open_to_all(),
           http::answer_with([this](const http::Exchange& exchange, const auto&) {
             return distribution(exchange.query());
           })}};
}

http::Response ApplicationMode::distribution(std::string_view query) const {
  const auto keys = reporter_.applications();
  std::vector<AppName> apps;
  apps.reserve(keys.size());
  for (const auto& key : keys) apps.push_back({.ns = key.ns, .name = key.name});
  auto json = app_distribution(apps, environment_.shard.replicas,
                               http::query_parameter(query, "shardings"));
  if (!json) return http::text_response(400, json.error().message + "\n");
  auto response = http::text_response(200, std::move(*json));
  response.headers.set("Content-Type", "application/json");
  return response;
}

}  // namespace gitops::reporter
