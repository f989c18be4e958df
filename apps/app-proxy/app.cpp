#include "app-proxy/app.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>

#include <unistd.h>

#include "app-proxy/actions/rollouts.hpp"
#include "app-proxy/argo_parts.hpp"
#include "app-proxy/cluster_routes.hpp"
#include "app-proxy/clusters/cluster_reporter.hpp"
#include "app-proxy/clusters/managed_clusters.hpp"
#include "app-proxy/config.hpp"
#include "app-proxy/git_login_routes.hpp"
#include "app-proxy/git_parts.hpp"
#include "app-proxy/identity/leadership.hpp"
#include "app-proxy/identity/runtime_identity.hpp"
#include "app-proxy/image_routes.hpp"
#include "app-proxy/log_routes.hpp"
#include "app-proxy/logs/log_streams.hpp"
#include "app-proxy/promotion_routes.hpp"
#include "app-proxy/request_gate.hpp"
#include "app-proxy/resolvers/git_sources.hpp"
#include "app-proxy/resolvers/table.hpp"
#include "app-proxy/routes.hpp"
#include "app-proxy/runtime/group_reader.hpp"
#include "app-proxy/runtime/permission_check.hpp"
#include "app-proxy/runtime/runtime_registration.hpp"
#include "app-proxy/sealing/sealing_keys.hpp"
#include "app-proxy/users/audit.hpp"
#include "app-proxy/users/directory.hpp"
#include "app-proxy/users/rules.hpp"
#include "common/core/credential.hpp"
#include "common/core/process.hpp"
#include "common/graphql/engine.hpp"
#include "common/http/client.hpp"
#include "common/net/resolve.hpp"
#include "k8s-client/client.hpp"
#include "k8s-client/lease.hpp"

namespace gitops::app_proxy {
namespace {

// The control plane's API has this number in its paths.
constexpr const char* kPlatformVersion = "2.0";

http::ServerOptions server_options(const Config& config) {
  http::ServerOptions options;
  options.address = config.listen_address;
  options.port = static_cast<std::uint16_t>(config.port);
  options.max_connections = static_cast<std::size_t>(config.max_connections);
  return options;
}

std::string without_slashes(std::string url) {
  while (url.ends_with('/')) url.pop_back();
  return url;
}

UserDirectory::Options user_options(const Config& config) {
  UserDirectory::Options options;
  options.ttl = config.user_cache_ttl;
  options.outage = std::max(config.user_outage, config.user_cache_ttl);
  return options;
}

RequestGate::Options gate_options(const Config& config) {
  RequestGate::Options options;
  options.cors_origins = config.cors_origins;
  // It was checked when it was read.
  if (auto list = net::AddressList::parse(config.trusted_proxies)) {
    options.trusted_proxies = std::move(*list);
  }
  options.max_operations = static_cast<std::size_t>(config.max_operations_per_user);
  options.playground = config.playground;
  return options;
}

// The Lease of the replica that does what must be done once.
constexpr const char* kLease = "cap-app-proxy";

// Of this process among the replicas. A container that restarts keeps the name of its pod, and so the Lease.
std::string replica_name(const Config& config) {
  if (!config.leader_id.empty()) return config.leader_id;
  std::array<char, 256> host{};
  (void)::gethostname(host.data(), host.size() - 1);
  return host.data();
}

// Owns and connects all parts. Members are in order of dependence: later ones use earlier ones.
class App {
 public:
  App(const DaemonContext& context, const Config& config)
      : context_(context),
        config_(config),
        version_{.version = std::string(version()),
                 .platform_host = without_slashes(config.control_plane_url),
                 .platform_version = kPlatformVersion},
        audit_(config.audit_file),
        identity_(context.executor,
                  config.runtime_token_file.empty() ? Credential::fixed(config.runtime_token)
                                                    : Credential::file(config.runtime_token_file),
                  config.runtime_store_iv_file.empty()
                      ? Credential::fixed(config.runtime_store_iv)
                      : Credential::file(config.runtime_store_iv_file)),
        user_token_(config.user_token_file.empty() ? Credential::fixed(config.user_token)
                                                   : Credential::file(config.user_token_file)),
        names_(context.metrics),
        cluster_names_(context.metrics, {.name = "cluster-lookup", .threads = 1, .max_names = 100}),
        life_tasks_(context.executor) {}

  Task<Result<void>> start() {
    dependencies_.emplace(ResolverDependencies{.version = version_});
    dependencies_->files = {
        .runtime = config_.runtime_name,
        .is_configuration_runtime = config_.is_configuration_runtime,
        .chart_repository = config_.helm_repository,
        .scheme = config_.git_insecure_http ? Scheme::http_too : Scheme::https_only,
        .config_repository = [this] { return users_->own().shared_config_repo; },
    };
    rows_ = table(*dependencies_);
    auto engine = graphql::Engine::make(std::string(schema_text()), resolvers(rows_, audit_),
                                        {.hides_values = true, .plain_variable_errors = true});
    if (!engine) co_return fail("schema", engine.error());
    engine_ = std::move(*engine);
    const auto proxy = http::proxy_settings(context_.environment);
    if (auto opened = audit_.open(); !opened) co_return opened;
    control_plane_http_.emplace(context_.executor, names_,
                                client_options(config_, proxy, config_.control_plane_insecure));
    control_plane_.emplace(*control_plane_http_,
                           http::parse_url(without_slashes(config_.control_plane_url)).value(),
                           [this] { return identity_.token(); });
    users_.emplace(context_.executor, *control_plane_, identity_, context_.metrics,
                   user_options(config_));
    rules_.emplace(
        context_.executor, *control_plane_, [this] { return users_->own().account_id; },
        context_.metrics,
        Rules::Options{.refresh = config_.rules_refresh, .max_age = config_.rules_max_age});
    gate_.emplace(*engine_, rows_, *users_, context_.metrics, gate_options(config_));
    router_.emplace(
        routes({.graphql = [this](http::Exchange& exchange,
                                  const auto&) { return gate_->serve_post(exchange); },
                .graphql_opened = [this](http::Exchange& exchange,
                                         const auto&) { return gate_->serve_get(exchange); },
                .promotion_commit =
                    [this](http::Exchange& exchange, const auto&) {
                      return serve_promotion(exchange, PromotionKind::commit);
                    },
                .promotion_pull_request =
                    [this](http::Exchange& exchange, const auto&) {
                      return serve_promotion(exchange, PromotionKind::pull_request);
                    },
                .clusters =
                    [this](http::Exchange& exchange, const auto&) {
                      return serve_cluster(exchange, *gate_, audit_, dependencies_->clusters,
                                           config_.runtime_name);
                    },
                .image_report = [this](http::Exchange& exchange,
                                       const auto&) { return image_routes_->serve(exchange); },
                .logs = [this](http::Exchange& exchange,
                               const auto&) { return log_routes_->serve(exchange); },
                .source_files =
                    [this](http::Exchange& exchange, const auto&) {
                      return serve_source_files(exchange, *gate_,
                                                git_ ? git_->source_files() : nullptr);
                    },
                .git_login =
                    [this](http::Exchange& exchange, const auto& parameters) {
                      return git_logins_->serve_start(exchange, parameters.at("provider"));
                    },
                .git_login_form =
                    [this](http::Exchange& exchange, const auto& parameters) {
                      return git_logins_->serve_form(exchange, parameters.at("provider"));
                    },
                .git_login_callback =
                    [this](http::Exchange& exchange, const auto& parameters) {
                      return git_logins_->serve_callback(exchange, parameters.at("provider"));
                    }}),
        rest_error);
    server_.emplace(context_.executor, server_options(config_),
                    [this](http::Exchange& exchange) { return serve(exchange); });
    if (auto listening = server_->listen(); !listening) co_return listening;
    is_listening_ = true;
    log_.info("serving", {{"port", server_->port()}, {"control_plane", version_.platform_host}});
    users_->start();
    rules_->start();
    argo_.emplace(context_, config_, names_, proxy, *rules_);
    dependencies_->applications = argo_->applications();
    dependencies_->workflows = argo_->workflows();
    start_cluster(proxy);
    start_life();
    start_permission_check();
    logs_.emplace(context_.executor, dependencies_->applications, dependencies_->workflows,
                  cluster_ ? &*cluster_ : nullptr,
                  LogStreams::Options{.own_namespace = dependencies_->files.runtime_namespace});
    dependencies_->logs = &*logs_;
    log_routes_.emplace(*gate_, *logs_,
                        LogRoutes::Options{.runtime = config_.runtime_name,
                                           .anonymous_archive = config_.logs_without_login});
    git_logins_.emplace(GitLoginRoutes::Dependencies{
        .gate = *gate_,
        .audit = audit_,
        .git = git_ ? &git_->integrations() : nullptr,
        .oauth = git_ ? &git_->oauth() : nullptr,
        .seal = git_ ? &git_->seal() : nullptr,
        .registered = [this](Actor actor, std::string integration, Deadline deadline) {
          return prepare_config_repository(git_->integrations(), git_->committer(),
                                           dependencies_->files, std::move(actor),
                                           std::move(integration), deadline);
        }});
    image_routes_.emplace(
        ImageRoutes::Dependencies{
            .gate = *gate_,
            .audit = audit_,
            .logs = *logs_,
            .cluster = cluster_ ? &*cluster_ : nullptr,
            .git_host =
                [this](const User& user, std::string integration, Deadline deadline) {
                  return git_host_for(user, std::move(integration), deadline);
                }},
        image_options());
    co_return Result<void>{};
  }

  Task<> stop(Deadline deadline) {
    is_listening_ = false;
    life_tasks_.cancel();
    co_await life_tasks_.join();
    if (server_) co_await server_->stop(deadline);
    if (logs_) co_await logs_->stop();
    if (git_) co_await git_->stop();
    if (argo_) co_await argo_->stop();
    if (rules_) co_await rules_->stop();
    if (users_) co_await users_->stop();
  }

  [[nodiscard]] std::string not_ready_because() const {
    return is_listening_ ? std::string() : "not listening";
  }

  [[nodiscard]] std::string status() {
    if (!users_) return {};
    const auto& own = users_->own();
    std::string text = "account: " + (own.account_id.empty() ? "not known yet" : own.account_id) +
                       "\nusers known: " + std::to_string(users_->known()) + "\n";
    for (const EntityType type : entity_types()) {
      const auto error = rules_->last_error(type);
      text += "rules for " + std::string(to_string(type)) + ": " +
              (error.empty() ? "fresh" : error) + "\n";
    }
    if (argo_) text += argo_->status();
    if (life_) {
      text += life_->status() +
              "leader: " + (leadership_->leads() ? "this one" : leadership_->holder()) + "\n";
      for (const auto& group : groups(facts(), rules_error())) text += line_of(group);
    }
    if (permission_check_) text += line_of(permission_check_->permissions());
    text += "report of clusters: " +
            (!cluster_reporter_                        ? std::string("not available")
             : cluster_reporter_->last_error().empty() ? std::string("ok")
                                                       : cluster_reporter_->last_error()) +
            "\n";
    text += "sealing key: " + (keys_ ? keys_->status() : "not available") + "\n";
    text += "logs being read: " + std::to_string(logs_ ? logs_->open() : 0) + "\n";
    text += "Git integrations: " + (cluster_error_.empty() ? "available" : cluster_error_) + "\n";
    if (git_) text += git_->status();
    return text;
  }

 private:
  // With a user's token, the runtime registers itself.
  void start_life() {
    if (!cluster_ || user_token_.current().empty()) return;
    const auto& ns = dependencies_->files.runtime_namespace;
    RuntimeRegistration::Options options{
        .own_namespace = ns,
        .installation = {.name = config_.runtime_name,
                         .runtime_namespace = ns,
                         .chart_version = config_.chart_version,
                         .runtime_version = config_.runtime_version,
                         .cluster = config_.cluster,
                         .ingress_class = config_.ingress_class,
                         .ingress_controller = config_.ingress_controller,
                         .ingress_host = config_.ingress_host,
                         .installation_type = config_.installation_type,
                         .is_managed = config_.is_managed,
                         .has_external_argocd = config_.has_external_argocd}};
    if (config_.argocd_token.empty() && config_.argocd_token_file.empty()) {
      options.argocd_account = config_.argocd_username;
    }
    RuntimeRegistration::Dependencies dependencies{.cluster = *cluster_,
                                                   .control_plane = *control_plane_,
                                                   .identity = identity_,
                                                   .leadership = *leadership_,
                                                   .user_token = user_token_,
                                                   .files = dependencies_->files,
                                                   .git_token = git_->own_token(),
                                                   .argocd = argo_->argocd(),
                                                   .argocd_token = argo_->argocd_token()};
    life_.emplace(
        context_.executor, dependencies,
        [this] {
          auto told = facts();
          told.groups = groups(told, {});
          told.groups.push_back(permission_check_->permissions());
          return told;
        },
        std::move(options));
    life_->start(life_tasks_);
    start_group_reader();
    start_cluster_reports();
    leadership_->start(life_tasks_);
  }

  void start_group_reader() {
    GroupReader::Dependencies dependencies{
        .cluster = *cluster_, .leadership = *leadership_, .git_token = git_->own_token()};
    if (auto* argocd = argo_->argocd()) {
      dependencies.argocd = [argocd](Deadline deadline) -> Task<Result<void>> {
        const auto version = co_await argocd->version(deadline);
        if (!version) co_return std::unexpected(version.error());
        co_return Result<void>();
      };
    }
    if (argo_->workflows() != nullptr) {
      dependencies.workflows = [this](Deadline deadline) {
        return argo_->reach_workflows(deadline);
      };
    }
    group_reader_.emplace(
        std::move(dependencies),
        GroupReader::Options{.own_namespace = dependencies_->files.runtime_namespace,
                             .runtime = config_.runtime_name});
    group_reader_->start(life_tasks_);
  }

  // Without a user's token, too.
  void start_permission_check() {
    if (!cluster_) return;
    permission_check_.emplace(
        *cluster_,
        PermissionSettings{
            .has_user_token = life_.has_value(),
            // The chart sets it for image reports only.
            .has_image_reports = context_.environment.contains("IRW_SERVICE_ACCOUNT"),
            .has_actions = argo_->argocd() != nullptr || argo_->workflows() != nullptr},
        git_->own_token(),
        PermissionCheck::Options{.own_namespace = dependencies_->files.runtime_namespace});
    permission_check_->start(life_tasks_);
  }

  void start_cluster_reports() {
    auto* argocd = argo_->argocd();
    if (argocd == nullptr) return;
    cluster_reporter_.emplace(
        *cluster_, *argocd, *control_plane_, *leadership_, identity_, clusters_->changed(),
        ClusterReporter::Options{
            .own_namespace = dependencies_->files.runtime_namespace,
            .runtime = config_.runtime_name,
            .chunk_count = static_cast<std::size_t>(config_.cluster_chunk_size)});
    cluster_reporter_->start(life_tasks_);
  }

  // Once there is a cluster.
  [[nodiscard]] RuntimeFacts facts() {
    RuntimeFacts facts{.git_error = cluster_error_,
                       .config_repository_error = git_->config_repository_error(),
                       .has_git_token = git_->own_token().is_set()};
    if (auto* token = argo_->argocd_token()) {
      facts.has_argocd = true;
      facts.argocd_error = token->last_error();
    }
    return facts;
  }

  // The state of the runtime. The control plane need not be told that it cannot be asked.
  std::vector<RuntimeGroup> groups(const RuntimeFacts& facts, std::string control_plane_error) {
    Connectivity servers{.control_plane = std::move(control_plane_error), .git = facts.git_error};
    if (facts.has_argocd) {
      servers.argocd =
          facts.argocd_error.empty() ? group_reader_->argocd_error() : facts.argocd_error;
    }
    if (argo_->workflows() != nullptr) servers.workflows = group_reader_->workflows_error();
    return {connectivity_group(servers), group_reader_->applications(), group_reader_->components(),
            git_sources_group(facts.has_git_token, facts.config_repository_error),
            cluster_reporter_
                ? clusters_group(cluster_reporter_->unreachable())
                : RuntimeGroup{.name = "clusters", .unknown = "no Argo CD is configured"}};
  }

  [[nodiscard]] std::string rules_error() const {
    for (const EntityType type : entity_types()) {
      if (auto error = rules_->last_error(type); !error.empty()) return error;
    }
    return {};
  }

  // Without a cluster the rest serves.
  void start_cluster(const http::ProxySettings& proxy) {
    auto cluster = k8s::load_cluster_config(config_.kubeconfig, config_.context,
                                            context_.environment, k8s::ExecPolicy::refuse);
    if (!cluster) {
      cluster_error_ = cluster.error().message;
      log_.warning("Git integrations are not available: the cluster is not configured",
                   {{"reason", cluster_error_}});
      return;
    }
    dependencies_->files.runtime_namespace =
        config_.own_namespace.empty() ? cluster->default_namespace : config_.own_namespace;
    cluster_.emplace(context_.executor, names_, std::move(*cluster), proxy,
                     "gitops-app-proxy/" + std::string(version()));
    dependencies_->cluster = &*cluster_;
    // Without a user's token the runtime does not register itself, and there is no Lease.
    if (user_token_.current().empty()) {
      leadership_.emplace(context_.executor);
    } else {
      leadership_.emplace(context_.executor, *cluster_,
                          k8s::LeaseOptions{.key = {dependencies_->files.runtime_namespace, kLease},
                                            .identity = replica_name(config_)});
    }
    if (auto* workflows = argo_->workflows()) workflows->name_users_in(*cluster_);
    rollouts_.emplace(*cluster_, argo_->applications());
    dependencies_->rollouts = &*rollouts_;
    git_.emplace(context_, config_,
                 GitParts::Dependencies{.names = names_,
                                        .proxy = proxy,
                                        .cluster = *cluster_,
                                        .users = *users_,
                                        .rules = *rules_,
                                        .control_plane = *control_plane_,
                                        .files = dependencies_->files,
                                        .identity = identity_,
                                        .leadership = *leadership_});
    dependencies_->git_integrations = &git_->integrations();
    dependencies_->committer = git_->committer();
    dependencies_->reader = git_->reader();
    // It was checked when it was read.
    auto special = net::AddressList::parse(config_.special_cluster_addresses);
    clusters_.emplace(context_.executor, *cluster_, cluster_names_, git_->committer(),
                      dependencies_->files, git_->own_token(),
                      ManagedClusters::Options{
                          .own_namespace = dependencies_->files.runtime_namespace,
                          .special_addresses = special ? std::move(*special) : net::AddressList()});
    dependencies_->clusters = &*clusters_;
    start_integrations();
  }

  // With other tools.
  void start_integrations() {
    keys_.emplace(SealingKeys::Dependencies{.cluster = *cluster_,
                                            .control_plane = *control_plane_,
                                            .committer = git_->committer(),
                                            .reader = git_->reader(),
                                            .files = dependencies_->files,
                                            .token = git_->own_token(),
                                            .leadership = *leadership_},
                  SealingKeys::Options{.own_namespace = dependencies_->files.runtime_namespace,
                                       .is_shared = config_.share_sealing_key});
    keys_->start(life_tasks_);
    dependencies_->tools = {.git = &git_->integrations(),
                            .committer = git_->committer(),
                            .reader = git_->reader(),
                            .keys = &*keys_,
                            .runtime = &identity_};
  }

  [[nodiscard]] ImageReportOptions image_options() const {
    ImageReportOptions options;
    options.own_namespace = dependencies_->files.runtime_namespace;
    options.control_plane_url = version_.platform_host;
    options.service_account = config_.image_service_account;
    options.semaphore_config_map = config_.image_semaphore_config_map;
    options.semaphore_key = config_.image_semaphore_key;
    options.pod_gc = config_.image_pod_gc;
    options.kept_after_completion = std::chrono::seconds(config_.image_kept);
    options.longest = std::chrono::seconds(config_.image_longest);
    options.heartbeat = std::chrono::seconds(config_.image_heartbeat);
    if (!config_.image_report_task.empty()) options.report_image = config_.image_report_task;
    if (!config_.image_git_task.empty()) options.git_image = config_.image_git_task;
    if (!config_.image_jira_task.empty()) options.jira_image = config_.image_jira_task;
    return options;
  }

  // For the tasks of image reports, once there is a cluster: the user's own token. Without one, and without a name,
  // administrators may use that of the runtime, which reads all that the runtime reads.
  Task<Result<GitHostAccess>> git_host_for(const User& user, std::string integration,
                                           Deadline deadline) {
    const bool is_named = !integration.empty();
    auto account = co_await git_->integrations().open(
        Actor{.user_id = user.id, .account_id = user.account_id, .is_admin = user.is_admin},
        std::move(integration), deadline);
    if (account) {
      co_return GitHostAccess{.provider = std::string(wire_name(account->root.kind)),
                              .api_url = account->root.text(),
                              .username = account->login,
                              .token = account->access.token};
    }
    const bool may_use_runtimes = (user.is_admin || user.is_runtime) && git_->own_token().is_set();
    if (is_named || !may_use_runtimes) co_return std::unexpected(std::move(account.error()));
    const auto& own = users_->own();
    const auto root =
        make_api_root(own.git_provider, own.git_api_url,
                      config_.git_insecure_http ? PlainHttp::insecure_allowed : PlainHttp::refused);
    if (!root) co_return std::unexpected(root.error());
    auto credential = git_->own_token().credential();
    co_return GitHostAccess{.provider = std::string(wire_name(root->kind)),
                            .api_url = root->text(),
                            .username = std::move(credential.username),
                            .token = std::move(credential.password)};
  }

  Task<> serve_promotion(http::Exchange& exchange, PromotionKind kind) {
    return app_proxy::serve_promotion(exchange, kind, *gate_, audit_,
                                      git_ ? git_->promotions() : nullptr);
  }

  Task<> serve(http::Exchange& exchange) {
    gate_->add_common_headers(exchange);
    const std::string path = canonical_path(exchange.path());
    co_await router_->serve(exchange, path);
  }

  Log log_{"app-proxy"};
  DaemonContext context_;
  const Config& config_;
  VersionInfo version_;
  Audit audit_;
  std::optional<ResolverDependencies> dependencies_;
  std::vector<FieldRow> rows_;
  std::unique_ptr<graphql::Engine> engine_;
  RuntimeIdentity identity_;
  Credential user_token_;
  net::Resolver names_;
  net::Resolver cluster_names_;  // of clusters that users add
  std::optional<http::Client> control_plane_http_;
  std::optional<control_plane::GraphqlClient> control_plane_;
  std::optional<UserDirectory> users_;
  std::optional<Rules> rules_;
  std::optional<ArgoParts> argo_;
  std::optional<k8s::Client> cluster_;
  std::string cluster_error_;
  std::optional<RolloutActions> rollouts_;
  std::optional<GitParts> git_;
  std::optional<ManagedClusters> clusters_;
  std::optional<SealingKeys> keys_;
  std::optional<Leadership> leadership_;
  std::optional<RuntimeRegistration> life_;
  std::optional<GroupReader> group_reader_;
  std::optional<ClusterReporter> cluster_reporter_;
  std::optional<PermissionCheck> permission_check_;
  TaskGroup life_tasks_;
  std::optional<LogStreams> logs_;
  std::optional<RequestGate> gate_;
  std::optional<LogRoutes> log_routes_;
  std::optional<ImageRoutes> image_routes_;
  std::optional<GitLoginRoutes> git_logins_;
  std::optional<http::Router> router_;
  std::optional<http::Server> server_;
  bool is_listening_ = false;
};

}  // namespace

DaemonSpec app_proxy() {
  const auto config = std::make_shared<Config>();
  DaemonSpec spec;
  spec.name = "app-proxy";
  spec.summary = "Serves the runtime's GraphQL and REST API, commits to Git and changes state.";
  spec.admin_address_env = "METRICS_LISTEN_ADDRESS";
  spec.bind = [config](ConfigReader& reader) { bind(reader, *config); };
  spec.make = [config](const DaemonContext& context) {
    const auto app = std::make_shared<App>(context, *config);
    DaemonApp frame;
    frame.start = [app, config] { return app->start(); };
    frame.stop = [app](Deadline deadline) { return app->stop(deadline); };
    frame.ready_checks = {{"port", [app] { return app->not_ready_because(); }}};
    frame.status = [app] { return app->status(); };
    return frame;
  };
  return spec;
}

}  // namespace gitops::app_proxy
