#include "app-proxy/git_parts.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

#include "app-proxy/providers/providers.hpp"
#include "app-proxy/resolvers/commits.hpp"

namespace gitops::app_proxy {
namespace {

// Numbers of threads for Git's blocking work, and for clones, each of which occupies one.
constexpr std::size_t kGitThreads = 4;
constexpr std::size_t kCloneThreads = 6;

// Returns the folder for clones. The one below the temporary folder must belong to this user:
// settings of a clone that another user put there could send a token elsewhere.
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

GitIntegrations::Options integration_options(const Config& config) {
  return {
      .skip_permissions_validation = config.skip_permissions_validation,
      .plain_http = config.git_insecure_http ? PlainHttp::insecure_allowed : PlainHttp::refused};
}

}  // namespace

GitParts::GitParts(const DaemonContext& context, const Config& config, net::Resolver& names,
                   const http::ProxySettings& proxy, ControlPlaneParts& control_plane,
                   ClusterParts& cluster)
    : context_(context),
      config_(config),
      control_plane_(control_plane),
      cluster_(cluster),
      own_token_(config.git_username, config.git_password_file.empty()
                                          ? Credential::fixed(config.git_password)
                                          : Credential::file(config.git_password_file)),
      client_(context.executor, names, client_options(config, proxy, false)),
      hosts_(context.executor, client_, context.metrics),
      store_(cluster.client, cluster.files.runtime_namespace),
      integrations_(store_, seal_, hosts_, integration_options(config)),
      oauth_(cluster.client, client_,
             {.own_namespace = cluster.files.runtime_namespace,
              .plain_http = integration_options(config).plain_http,
              .public_url = config.ingress_host}),
      validity_(integrations_, cluster.leadership, {.period = config.git_check_period}),
      tasks_(context.executor) {
  use_seal();
  integrations_.renew_with(oauth_, tasks_);
  tasks_.spawn("key of Git tokens", [this] { return follow_runtime_secret(); });
  tasks_.spawn("default Git integration", [this] { return keep_default_integration(); });
  validity_.start(tasks_);
  start_permissions();
  start_commits();
}

Task<> GitParts::stop() {
  tasks_.cancel();
  co_await tasks_.join();
  if (!committer_) co_return;
  co_await committer_->stop();
  co_await clones_->stop();
  clone_pool_->stop(std::chrono::seconds(2));
  pool_->stop(std::chrono::seconds(2));
}

void GitParts::use_seal() {
  const auto secret = control_plane_.identity.secret();
  seal_.use(secret.token, secret.iv);
}

// Follows both parts of the secret. Until there is a token, nothing can be sealed.
Task<> GitParts::follow_runtime_secret() {
  const bool is_from_files =
      !config_.runtime_token_file.empty() || !config_.runtime_store_iv_file.empty();
  while (true) {
    use_seal();
    // A replaced file is only found by reading it.
    const Clock::duration period = control_plane_.identity.token().empty()
                                       ? Clock::duration(std::chrono::milliseconds(200))
                                       : std::chrono::seconds(5);
    (void)co_await control_plane_.identity.changed().wait(is_from_files ? deadline_after(period)
                                                                        : kNever);
  }
}

// Creates the default integration as soon as the account has a Git host, and again when the host
// changes.
Task<> GitParts::keep_default_integration() {
  control_plane::Identity done;
  while (true) {
    const auto own = control_plane_.users.own();
    const bool is_new = own.account_id != done.account_id ||
                        own.git_provider != done.git_provider ||
                        own.git_api_url != done.git_api_url;
    if (!is_new || own.git_provider.empty()) {
      (void)co_await control_plane_.users.own_changed().wait();
    } else if (co_await integrations_.ensure_default(own.account_id, own.git_provider,
                                                     own.git_api_url,
                                                     deadline_after(std::chrono::seconds(10)))) {
      done = own;
    } else {
      (void)co_await control_plane_.users.own_changed().wait(
          deadline_after(std::chrono::seconds(1)));
    }
  }
}

std::optional<std::string> GitParts::config_repository_error() const {
  if (!config_repository_) return clones_error_;
  return config_repository_->last_error();
}

StatusReport GitParts::status() const {
  const auto missing = [](std::string name) {
    return StatusEntry{
        .name = std::move(name), .state = StatusState::unavailable, .message = "not available"};
  };
  auto report = status_of_commits();
  report.insert(report.begin(),
                permissions_ ? permissions_->status() : missing("Git permissions of users"));
  report.push_back(config_repository_ ? config_repository_->status()
                                      : missing("shared configuration repository"));
  return report;
}

StatusReport GitParts::status_of_commits() const {
  StatusEntry commits{.name = "commits"};
  if (!committer_) {
    commits.state = StatusState::unavailable;
    commits.message = "not available" + (clones_error_.empty() ? "" : ": " + clones_error_);
    return {std::move(commits)};
  }
  commits.add_count("waiting", committer_->waiting());
  const auto making = clones_->in_progress();
  StatusEntry clones{.name = "clones"};
  clones.add_count("bytes", clones_->bytes());
  clones.add_count("in_progress", making.size());
  clones.add_count("to_be_made_ahead", clones_->to_prepare());
  for (const auto& clone : making) {
    StatusEntry entry{.name = clone.url, .state = StatusState::pending, .since = clone.since};
    entry.add_count_of("objects", clone.progress.received_objects, clone.progress.total_objects);
    entry.add_count("bytes", clone.progress.bytes);
    clones.add_detail(std::move(entry));
  }
  return {std::move(commits), std::move(clones)};
}

void GitParts::start_permissions() {
  if (config_.runtime_name.empty()) return;
  GitPermissions::Options options;
  options.period = config_.git_check_period;
  options.tick = std::min(options.tick, options.period);
  permissions_.emplace(
      integrations_, cluster_.leadership,
      [this](Deadline deadline) {
        return control_plane_.client.filters_by_git_permissions(deadline);
      },
      [this](Deadline deadline) -> Task<Result<std::vector<KnownGitSource>>> {
        auto found = co_await control_plane_.client.git_sources(config_.runtime_name, deadline);
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
        co_return co_await control_plane_.client.set_permissions(sent, deadline);
      },
      options);
  permissions_->start(tasks_);
}

// Asks the account's Git host with the runtime's own token, which is sent to no other host.
Task<std::string> GitParts::default_branch_of(RepositoryUrl repository, GitCredential credential,
                                              Deadline deadline) {
  const auto account = control_plane_.users.own();
  auto root = make_api_root(account.git_provider, account.git_api_url,
                            integration_options(config_).plain_http);
  const auto name = parse_repository_name(repository.name);
  if (!root || !name || !clone_url_of(*root, repository.to_string())) co_return std::string();
  const auto provider = make_provider(hosts_, std::move(*root));
  const GitAccess access{.token = std::move(credential.password),
                         .username = std::move(credential.username)};
  const auto told = co_await provider->repository(access, *name, deadline);
  co_return told ? told->value.default_branch : std::string();
}

void GitParts::start_commits() {
  auto folder = clones_folder(config_);
  if (!folder) {
    clones_error_ = folder.error().message;
    log_.warning("commits are not available", {{"reason", clones_error_}});
    return;
  }
  pool_.emplace(WorkerPool::Options{.name = "git", .threads = kGitThreads}, context_.metrics);
  clone_pool_.emplace(WorkerPool::Options{.name = "git_clones", .threads = kCloneThreads},
                      context_.metrics);
  clones_.emplace(
      context_.executor, *pool_, *clone_pool_, context_.metrics,
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
  committer_.emplace(context_.executor, *pool_, *clones_, client_, context_.metrics,
                     std::move(options));
  ConfigRepositorySetup::Options setup;
  setup.default_branch = [this](RepositoryUrl repository, GitCredential credential,
                                Deadline deadline) {
    return default_branch_of(std::move(repository), std::move(credential), deadline);
  };
  config_repository_.emplace(*committer_, cluster_.client, cluster_.files, own_token_,
                             cluster_.leadership, std::move(setup));
  cluster_.files.publish = [this](bool is_removed, Deadline deadline) {
    return config_repository_->publish_removal(is_removed, deadline);
  };
  config_repository_->start(tasks_);
  reader_.emplace(*pool_, *clones_, client_);
  source_files_.emplace(SourceFiles::Dependencies{.reader = *reader_,
                                                  .token = own_token_,
                                                  .users = control_plane_.users,
                                                  .scheme = cluster_.files.scheme});
  promotions_.emplace(Promotions::Dependencies{
      .control_plane = control_plane_.client,
      .rules = control_plane_.rules,
      .reader = *reader_,
      .committer = *committer_,
      .hosts = hosts_,
      .token = own_token_,
      .users = control_plane_.users,
      .runtime = config_.runtime_name,
      .scheme = cluster_.files.scheme,
  });
}

}  // namespace gitops::app_proxy
