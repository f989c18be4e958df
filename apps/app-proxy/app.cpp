#include "app-proxy/app.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

#include "app-proxy/actions/applications.hpp"
#include "app-proxy/actions/rollouts.hpp"
#include "app-proxy/actions/workflows.hpp"
#include "app-proxy/config.hpp"
#include "app-proxy/door.hpp"
#include "app-proxy/git/clone_cache.hpp"
#include "app-proxy/git/committer.hpp"
#include "app-proxy/integrations/git_permissions.hpp"
#include "app-proxy/integrations/validity_check.hpp"
#include "app-proxy/log_routes.hpp"
#include "app-proxy/logs/log_streams.hpp"
#include "app-proxy/promotion_routes.hpp"
#include "app-proxy/resolvers/promotions.hpp"
#include "app-proxy/resolvers/table.hpp"
#include "app-proxy/routes.hpp"
#include "app-proxy/runtime/config_repository_setup.hpp"
#include "app-proxy/runtime/runtime_life.hpp"
#include "app-proxy/users/audit.hpp"
#include "app-proxy/users/directory.hpp"
#include "app-proxy/users/rules.hpp"
#include "common/argo/argocd_client.hpp"
#include "common/argo/workflows_client.hpp"
#include "common/core/credential.hpp"
#include "common/core/process.hpp"
#include "common/core/worker_pool.hpp"
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

// `insecure`: accepts any certificate.
http::ClientOptions client_options(const Config& config, http::ProxySettings proxy, bool insecure) {
  http::ClientOptions options;
  options.tls = {.ca_file = config.ca_file,
                 .extra_ca_file = config.extra_ca_file,
                 .insecure_skip_verify = insecure};
  options.proxy = std::move(proxy);
  options.user_agent = "gitops-app-proxy/" + std::string(version());
  return options;
}

UserDirectory::Options user_options(const Config& config) {
  UserDirectory::Options options;
  options.ttl = config.user_cache_ttl;
  options.outage = std::max(config.user_outage, config.user_cache_ttl);
  return options;
}

Door::Options door_options(const Config& config) {
  Door::Options options;
  options.cors_origins = config.cors_origins;
  // It was checked when it was read.
  if (auto list = net::AddressList::parse(config.trusted_proxies)) {
    options.trusted_proxies = std::move(*list);
  }
  options.max_operations = static_cast<std::size_t>(config.max_operations_per_user);
  options.playground = config.playground;
  return options;
}

// argocd-server refuses all logins to an account after five wrong ones within 300 s.
constexpr auto kWrongPassword = std::chrono::seconds(310);
constexpr const char* kServiceAccountToken = "/var/run/secrets/kubernetes.io/serviceaccount/token";

// Threads for Git's blocking work, and for clones, which take one each for their whole time.
constexpr std::size_t kGitThreads = 4;
constexpr std::size_t kCloneThreads = 6;

// The Lease of the replica that does what must be done once.
constexpr const char* kLease = "cap-app-proxy";

// Of this process among the replicas. A container that restarts keeps the name of its pod, and so the Lease.
std::string identity(const Config& config) {
  if (!config.leader_id.empty()) return config.leader_id;
  std::array<char, 256> host{};
  (void)::gethostname(host.data(), host.size() - 1);
  return host.data();
}

// The folder for clones. The one below the temporary folder must be ours alone: settings of a clone
// that somebody else put there could send a token elsewhere.
Result<std::filesystem::path> clones_folder(const Config& config) {
  if (!config.repos_dir.empty()) {
    std::error_code failed;
    std::filesystem::create_directories(config.repos_dir, failed);
    if (failed || ::access(config.repos_dir.c_str(), W_OK) != 0) {
      return fail(ErrorCode::unavailable, config.repos_dir + " cannot be written");
    }
    return config.repos_dir;
  }
  std::error_code failed;
  auto folder = std::filesystem::temp_directory_path(failed);
  if (failed) return fail(ErrorCode::unavailable, "there is no temporary folder; set REPOS_DIR");
  folder /= "gitops-app-proxy-" + std::to_string(::geteuid());
  (void)::mkdir(folder.c_str(), S_IRWXU);
  struct stat found{};
  if (::lstat(folder.c_str(), &found) != 0 || !S_ISDIR(found.st_mode) ||
      found.st_uid != ::geteuid() || (found.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return fail(ErrorCode::unavailable,
                folder.string() + " is not a folder of this process alone; set REPOS_DIR");
  }
  return folder;
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
        token_(config.runtime_token_file.empty() ? Credential::fixed(config.runtime_token)
                                                 : Credential::file(config.runtime_token_file)),
        store_iv_(config.runtime_store_iv_file.empty()
                      ? Credential::fixed(config.runtime_store_iv)
                      : Credential::file(config.runtime_store_iv_file)),
        git_password_(config.git_password_file.empty()
                          ? Credential::fixed(config.git_password)
                          : Credential::file(config.git_password_file)),
        user_token_(config.user_token_file.empty() ? Credential::fixed(config.user_token)
                                                   : Credential::file(config.user_token_file)),
        names_(context.metrics),
        argo_tasks_(context.executor),
        git_tasks_(context.executor),
        life_tasks_(context.executor) {}

  Task<Result<void>> start() {
    parts_.emplace(Parts{.version = version_});
    parts_->files = {
        .runtime = config_.runtime_name,
        .is_configuration_runtime = config_.is_configuration_runtime,
        .chart_repository = config_.helm_repository,
        .scheme = config_.git_insecure_http ? Scheme::http_too : Scheme::https_only,
        .config_repository = [this] { return users_->own().shared_config_repo; },
    };
    rows_ = table(*parts_);
    auto engine = graphql::Engine::make(std::string(schema_text()), resolvers(rows_, audit_),
                                        {.hides_values = true});
    if (!engine) co_return fail("schema", engine.error());
    engine_ = std::move(*engine);
    auto proxy = http::proxy_settings(context_.environment);
    if (!proxy) co_return std::unexpected(proxy.error());
    if (auto opened = audit_.open(); !opened) co_return opened;
    control_plane_http_.emplace(context_.executor, names_,
                                client_options(config_, *proxy, config_.control_plane_insecure));
    control_plane_.emplace(*control_plane_http_,
                           http::parse_url(without_slashes(config_.control_plane_url)).value(),
                           [this] { return runtime_secret().token; });
    users_.emplace(
        context_.executor, *control_plane_, [this] { return runtime_secret().token; },
        context_.metrics, user_options(config_));
    rules_.emplace(
        context_.executor, *control_plane_, [this] { return users_->own().account_id; },
        context_.metrics,
        Rules::Options{.refresh = config_.rules_refresh, .max_age = config_.rules_max_age});
    door_.emplace(*engine_, rows_, *users_, context_.metrics, door_options(config_));
    router_.emplace(
        routes({.graphql = [this](http::Exchange& exchange,
                                  const auto&) { return door_->serve_post(exchange); },
                .graphql_opened = [this](http::Exchange& exchange,
                                         const auto&) { return door_->serve_get(exchange); },
                .promotion_commit =
                    [this](http::Exchange& exchange, const auto&) {
                      return serve_promotion(exchange, PromotionKind::commit);
                    },
                .promotion_pull_request =
                    [this](http::Exchange& exchange, const auto&) {
                      return serve_promotion(exchange, PromotionKind::pull_request);
                    },
                .logs = [this](http::Exchange& exchange,
                               const auto&) { return log_routes_->serve(exchange); }}),
        rest_error);
    server_.emplace(context_.executor, server_options(config_),
                    [this](http::Exchange& exchange) { return serve(exchange); });
    if (auto listening = server_->listen(); !listening) co_return listening;
    is_listening_ = true;
    log_.info("serving", {{"port", server_->port()}, {"control_plane", version_.platform_host}});
    users_->start();
    rules_->start();
    start_argo(*proxy);
    start_git(*proxy);
    start_life();
    logs_.emplace(context_.executor, parts_->applications, parts_->workflows,
                  cluster_ ? &*cluster_ : nullptr,
                  LogStreams::Options{.own_namespace = parts_->files.runtime_namespace});
    parts_->logs = &*logs_;
    log_routes_.emplace(*door_, *logs_,
                        LogRoutes::Options{.runtime = config_.runtime_name,
                                           .anonymous_archive = config_.logs_without_login});
    co_return Result<void>{};
  }

  Task<> stop(Deadline deadline) {
    is_listening_ = false;
    for (TaskGroup* group : {&life_tasks_, &argo_tasks_, &git_tasks_}) {
      group->cancel();
      co_await group->join();
    }
    if (server_) co_await server_->stop(deadline);
    if (logs_) co_await logs_->stop();
    if (committer_) co_await committer_->stop();
    if (clones_) co_await clones_->stop();
    if (clone_pool_) clone_pool_->stop(std::chrono::seconds(2));
    if (git_pool_) git_pool_->stop(std::chrono::seconds(2));
    if (rules_) co_await rules_->stop();
    if (users_) co_await users_->stop();
  }

  [[nodiscard]] std::string not_ready_because() const {
    return is_listening_ ? std::string() : "not listening";
  }

  [[nodiscard]] std::string status() const {
    if (!users_) return {};
    const auto& own = users_->own();
    std::string text = "account: " + (own.account_id.empty() ? "not known yet" : own.account_id) +
                       "\nusers known: " + std::to_string(users_->known()) + "\n";
    for (const EntityType type : entity_types()) {
      const auto trouble = rules_->trouble(type);
      text += "rules for " + std::string(to_string(type)) + ": " +
              (trouble.empty() ? "fresh" : trouble) + "\n";
    }
    text += "Argo CD: " +
            (argocd_token_ ? config_.argocd_url + trouble_of(*argocd_token_)
                           : std::string("not configured")) +
            "\nArgo Workflows: " +
            (workflows_token_ ? config_.workflows_url + trouble_of(*workflows_token_)
                              : std::string("not configured")) +
            "\n";
    if (life_) {
      text += life_->status() +
              "leader: " + (election_->leading() ? "this one" : election_->holder()) + "\n";
    }
    text += "logs being read: " + std::to_string(logs_ ? logs_->open() : 0) + "\n";
    text += "Git integrations: " + (git_trouble_.empty() ? "available" : git_trouble_) + "\n";
    text += "Git permissions of users: " +
            (git_permissions_ ? git_permissions_->status() : "not available") + "\n";
    text += "commits: " + status_of_commits();
    text += "shared configuration repository: " +
            (config_repository_ ? config_repository_->status() : "not available") + "\n";
    return text;
  }

 private:
  static std::string trouble_of(const Credential& token) {
    return token.trouble().empty() ? std::string() : " (" + token.trouble() + ")";
  }

  [[nodiscard]] std::string status_of_commits() const {
    if (!committer_)
      return "not available" + (clones_trouble_.empty() ? "" : ": " + clones_trouble_) + "\n";
    const auto making = clones_->in_progress();
    std::string text = std::to_string(committer_->waiting()) +
                       " waiting; clones: " + std::to_string(clones_->bytes()) + " bytes, " +
                       std::to_string(making.size()) + " in progress, " +
                       std::to_string(clones_->to_prepare()) + " to be made ahead\n";
    for (const auto& clone : making) {
      text += "  " + clone.url + ": " + std::to_string(clone.progress.received_objects) + " of " +
              std::to_string(clone.progress.total_objects) + " objects, " +
              std::to_string(clone.progress.bytes) + " bytes, since " +
              format_rfc3339(clone.since) + "\n";
    }
    return text;
  }

  // The servers of the Argo projects that are configured.
  void start_argo(const http::ProxySettings& proxy) {
    if (!config_.argocd_url.empty()) {
      argocd_http_.emplace(context_.executor, names_,
                           client_options(config_, proxy, config_.argocd_insecure));
      argocd_.emplace(
          *argocd_http_,
          argo::ArgoCdClient::Options{.server = argo::parse_server(config_.argocd_url).value()},
          [this] { return argocd_token_->current(); });
      argocd_token_.emplace(argocd_credential());
      argocd_token_->start(argo_tasks_);
      applications_.emplace(*argocd_, *argocd_token_, *rules_, config_.runtime_name);
      parts_->applications = &*applications_;
    }
    if (!config_.workflows_url.empty()) {
      workflows_http_.emplace(context_.executor, names_,
                              client_options(config_, proxy, config_.workflows_insecure));
      workflows_token_.emplace(workflows_credential());
      workflows_client_.emplace(*workflows_http_,
                                argo::WorkflowsClient::Options{
                                    .server = argo::parse_server(config_.workflows_url).value()},
                                [this] { return workflows_token_->current(); });
      workflows_.emplace(*workflows_client_, *workflows_token_, *rules_, config_.runtime_name);
      parts_->workflows = &*workflows_;
    }
  }

  Credential argocd_credential() {
    if (!config_.argocd_token_file.empty()) return Credential::file(config_.argocd_token_file);
    if (config_.argocd_username.empty()) return Credential::fixed(config_.argocd_token);
    return Credential::fetched(
        [this]() -> Task<Result<Secret>> {
          // Read each time: it may have been changed with the account's password.
          auto password = config_.argocd_password_file.empty()
                              ? Credential::fixed(config_.argocd_password)
                              : Credential::file(config_.argocd_password_file);
          co_return co_await argocd_->log_in(config_.argocd_username, password.current(),
                                             deadline_after(std::chrono::seconds(10)));
        },
        {.task = "login", .not_yet = "not logged in yet", .retry_lasting = kWrongPassword});
  }

  Credential workflows_credential() const {
    if (!config_.workflows_token_file.empty())
      return Credential::file(config_.workflows_token_file);
    if (!config_.workflows_token.empty()) return Credential::fixed(config_.workflows_token);
    // A server in mode `server` asks for none.
    std::error_code missing;
    return std::filesystem::exists(kServiceAccountToken, missing)
               ? Credential::file(kServiceAccountToken)
               : Credential::fixed({});
  }

  // As it is registered now; before, as it was configured.
  RuntimeSecret runtime_secret() {
    if (life_ && !life_->secret().token.empty()) return life_->secret();
    return {.token = token_.current(), .iv = store_iv_.current()};
  }
  void use_seal() {
    const auto secret = runtime_secret();
    seal_.use(secret.token, secret.iv);
  }

  // With a user's token, the runtime registers itself.
  void start_life() {
    if (!cluster_ || user_token_.current().empty()) return;
    const auto& ns = parts_->files.runtime_namespace;
    election_.emplace(*cluster_,
                      k8s::LeaseOptions{.key = {ns, kLease}, .identity = identity(config_)},
                      [this](bool leads) {
                        log_.info("leader", {{"leads", leads}});
                        life_->wake();
                      });
    RuntimeLife::Options options{
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
    RuntimeLife::Parts parts{.cluster = *cluster_, .control_plane = *control_plane_};
    if (argocd_) {
      parts.argocd = &*argocd_;
      parts.argocd_refused = [this] { return argocd_token_->refused(); };
    }
    life_.emplace(
        context_.executor, std::move(parts), [this] { return user_token_.current(); },
        RuntimeSecret{.token = token_.current(), .iv = store_iv_.current()},
        [this] { return election_->leading(); }, [this] { return facts(); }, std::move(options));
    life_->start(life_tasks_);
    election_->start(life_tasks_);
  }

  [[nodiscard]] RuntimeFacts facts() {
    RuntimeFacts facts{.git_trouble = git_trouble_,
                       .has_argocd = argocd_token_.has_value(),
                       .has_git_token = !git_password_.current().empty()};
    if (argocd_token_) facts.argocd_trouble = argocd_token_->trouble();
    if (!config_repository_) {
      facts.config_repository_trouble = clones_trouble_;
    } else if (!config_repository_->status().starts_with("applied")) {
      facts.config_repository_trouble = config_repository_->status();
    }
    return facts;
  }

  // Git integrations lie in Secrets of the runtime's namespace. Without a cluster the rest serves.
  void start_git(const http::ProxySettings& proxy) {
    auto cluster = k8s::load_cluster_config(config_.kubeconfig, config_.context,
                                            context_.environment, k8s::ExecPolicy::refuse);
    if (!cluster) {
      git_trouble_ = cluster.error().message;
      log_.warning("Git integrations are not available: the cluster is not configured",
                   {{"reason", git_trouble_}});
      return;
    }
    const auto ns =
        config_.own_namespace.empty() ? cluster->default_namespace : config_.own_namespace;
    parts_->files.runtime_namespace = ns;
    cluster_.emplace(context_.executor, names_, std::move(*cluster), proxy,
                     "gitops-app-proxy/" + std::string(version()));
    parts_->cluster = &*cluster_;
    rollouts_.emplace(*cluster_, applications_ ? &*applications_ : nullptr);
    parts_->rollouts = &*rollouts_;
    git_http_.emplace(context_.executor, names_, client_options(config_, proxy, false));
    git_hosts_.emplace(context_.executor, *git_http_, context_.metrics);
    integrations_.emplace(*cluster_, ns);
    git_.emplace(*integrations_, seal_, *git_hosts_,
                 GitIntegrations::Options{
                     .skip_permissions_validation = config_.skip_permissions_validation,
                     .plain_http = config_.git_insecure_http ? PlainHttp::insecure_allowed
                                                             : PlainHttp::refused});
    validity_.emplace(*git_, ValidityCheck::Options{.period = config_.git_check_period});
    use_seal();
    // Either part may change; until there is a token, nothing can be sealed.
    git_tasks_.spawn("key of Git tokens", [this]() -> Task<> {
      while (true) {
        const bool is_registered = !runtime_secret().token.empty();
        co_await sleep_for(is_registered ? std::chrono::seconds(5)
                                         : std::chrono::milliseconds(200));
        use_seal();
      }
    });
    git_tasks_.spawn("default Git integration", [this]() -> Task<> {
      while (true) {
        const auto own = users_->own();
        const bool is_known = !own.account_id.empty();
        if (is_known && own.git_provider.empty()) co_return;
        if (is_known &&
            co_await git_->ensure_default(own.account_id, own.git_provider, own.git_api_url,
                                          deadline_after(std::chrono::seconds(10)))) {
          co_return;
        }
        co_await sleep_for(std::chrono::seconds(1));
      }
    });
    validity_->start(git_tasks_);
    start_git_permissions();
    parts_->git_integrations = &*git_;
    start_commits();
  }

  void start_git_permissions() {
    if (config_.runtime_name.empty()) return;
    GitPermissions::Options options;
    options.period = config_.git_check_period;
    options.tick = std::min(options.tick, options.period);
    git_permissions_.emplace(
        *git_,
        [this](Deadline deadline) -> Task<Result<std::vector<KnownGitSource>>> {
          auto found = co_await control_plane_->git_sources(config_.runtime_name, deadline);
          if (!found) co_return std::unexpected(std::move(found.error()));
          std::vector<KnownGitSource> known;
          for (auto& source : *found) {
            auto& one = known.emplace_back(
                KnownGitSource{.account_id = std::move(source.account_id),
                               .name = std::move(source.name),
                               .source_namespace = std::move(source.source_namespace),
                               .repository_url = std::move(source.repository_url),
                               .permissions = {}});
            for (auto& may : source.permissions) {
              one.permissions.push_back({std::move(may.user_id), may.read, may.write});
            }
          }
          co_return known;
        },
        [this](const KnownGitSource& source, Deadline deadline) -> Task<Result<void>> {
          control_plane::GitSource sent{.account_id = source.account_id,
                                        .name = source.name,
                                        .source_namespace = source.source_namespace,
                                        .repository_url = source.repository_url,
                                        .permissions = {}};
          for (const auto& may : source.permissions) {
            sent.permissions.push_back({may.user_id, may.read, may.write});
          }
          co_return co_await control_plane_->set_permissions(sent, deadline);
        },
        options);
    git_permissions_->start(git_tasks_);
  }

  void start_commits() {
    auto folder = clones_folder(config_);
    if (!folder) {
      clones_trouble_ = folder.error().message;
      log_.warning("commits are not available", {{"reason", clones_trouble_}});
      return;
    }
    git_pool_.emplace(WorkerPool::Options{.name = "git", .threads = kGitThreads}, context_.metrics);
    clone_pool_.emplace(WorkerPool::Options{.name = "git_clones", .threads = kCloneThreads},
                        context_.metrics);
    clones_.emplace(
        context_.executor, *git_pool_, *clone_pool_, context_.metrics,
        CloneCache::Options{.folder = std::move(*folder), .boot_id = CloneCache::this_boot()});
    Committer::Options options;
    if (!config_.commit_signing_key_file.empty()) {
      signing_key_.emplace(config_.commit_signing_key_file);
      options.signer = [this] { return signing_key_->current(); };
      if (const auto signer = signing_key_->current()) {
        log_.info("commits are signed", {{"public_key", (*signer)->public_key()}});
      } else {
        log_.error("commits cannot be signed", {{"error", signer.error().message}});
      }
    }
    committer_.emplace(context_.executor, *git_pool_, *clones_, *git_http_, context_.metrics,
                       std::move(options));
    parts_->committer = &*committer_;
    config_repository_.emplace(
        *committer_, *cluster_, [this] { return parts_->files.repository(); },
        [this] { return own_git_credential(); }, ConfigRepositorySetup::Options{});
    config_repository_->start(git_tasks_);
    tree_reader_.emplace(*git_pool_, *clones_, *git_http_);
    parts_->reader = &*tree_reader_;
    promotions_.emplace(Promotions::Parts{
        .control_plane = *control_plane_,
        .rules = *rules_,
        .reader = *tree_reader_,
        .committer = *committer_,
        .hosts = *git_hosts_,
        .credential = [this] { return own_git_credential(); },
        .account = [this] { return users_->own(); },
        .runtime = config_.runtime_name,
        .scheme = parts_->files.scheme,
    });
  }

  [[nodiscard]] GitCredential own_git_credential() {
    return {.username = config_.git_username, .password = git_password_.current()};
  }

  Task<> serve_promotion(http::Exchange& exchange, PromotionKind kind) {
    return app_proxy::serve_promotion(exchange, kind, *door_, audit_,
                                      promotions_ ? &*promotions_ : nullptr);
  }

  Task<> serve(http::Exchange& exchange) {
    door_->welcome(exchange);
    const std::string path = canonical_path(exchange.path());
    co_await router_->serve(exchange, path);
  }

  Log log_{"app-proxy"};
  DaemonContext context_;
  const Config& config_;
  VersionInfo version_;
  Audit audit_;
  std::optional<Parts> parts_;
  std::vector<FieldRow> rows_;
  std::unique_ptr<graphql::Engine> engine_;
  Credential token_;
  Credential store_iv_;
  Credential git_password_;
  Credential user_token_;
  net::Resolver names_;
  std::optional<http::Client> control_plane_http_;
  std::optional<control_plane::GraphqlClient> control_plane_;
  std::optional<UserDirectory> users_;
  std::optional<Rules> rules_;
  std::optional<http::Client> argocd_http_;
  std::optional<Credential> argocd_token_;
  std::optional<argo::ArgoCdClient> argocd_;
  std::optional<ApplicationActions> applications_;
  std::optional<http::Client> workflows_http_;
  std::optional<Credential> workflows_token_;
  std::optional<argo::WorkflowsClient> workflows_client_;
  std::optional<WorkflowActions> workflows_;
  TaskGroup argo_tasks_;
  std::optional<k8s::Client> cluster_;
  std::optional<RolloutActions> rollouts_;
  std::optional<http::Client> git_http_;
  std::optional<GitHostClient> git_hosts_;
  TokenSeal seal_;
  std::optional<IntegrationStore> integrations_;
  std::optional<GitIntegrations> git_;
  std::optional<ValidityCheck> validity_;
  std::optional<GitPermissions> git_permissions_;
  std::string git_trouble_;
  std::optional<WorkerPool> git_pool_;
  std::optional<WorkerPool> clone_pool_;
  std::optional<CloneCache> clones_;
  std::optional<SigningKey> signing_key_;
  std::optional<Committer> committer_;
  std::string clones_trouble_;
  std::optional<ConfigRepositorySetup> config_repository_;
  std::optional<TreeReader> tree_reader_;
  std::optional<Promotions> promotions_;
  TaskGroup git_tasks_;
  std::optional<k8s::LeaseElection> election_;
  std::optional<RuntimeLife> life_;
  TaskGroup life_tasks_;
  std::optional<LogStreams> logs_;
  std::optional<Door> door_;
  std::optional<LogRoutes> log_routes_;
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
