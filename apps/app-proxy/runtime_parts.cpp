#include "app-proxy/runtime_parts.hpp"

#include <utility>

namespace gitops::app_proxy {
namespace {

PermissionSettings permission_settings(const DaemonContext& context, const ClusterParts& cluster,
                                       ArgoParts& argo) {
  return {.has_user_token = cluster.is_registering,
          // The chart sets it only for image reports.
          .has_image_reports = context.environment.contains("IRW_SERVICE_ACCOUNT"),
          .has_actions = argo.argocd() != nullptr || argo.workflows() != nullptr};
}

RuntimeRegistration::Options registration_options(const Config& config, const std::string& ns) {
  RuntimeRegistration::Options options{
      .own_namespace = ns,
      .installation = {.name = config.runtime_name,
                       .runtime_namespace = ns,
                       .chart_version = config.chart_version,
                       .runtime_version = config.runtime_version,
                       .cluster = config.cluster,
                       .ingress_class = config.ingress_class,
                       .ingress_controller = config.ingress_controller,
                       .ingress_host = config.ingress_host,
                       .installation_type = config.installation_type,
                       .is_managed = config.is_managed,
                       .has_external_argocd = config.has_external_argocd}};
  if (config.argocd_token.empty() && config.argocd_token_file.empty()) {
    options.argocd_account = config.argocd_username;
  }
  return options;
}

GroupReader::Dependencies reader_parts(ClusterParts& cluster, ArgoParts& argo, GitParts& git) {
  GroupReader::Dependencies parts{
      .cluster = cluster.client, .leadership = cluster.leadership, .git_token = git.own_token()};
  if (auto* argocd = argo.argocd()) {
    parts.argocd = [argocd](Deadline deadline) -> Task<Result<void>> {
      const auto version = co_await argocd->version(deadline);
      if (!version) co_return std::unexpected(version.error());
      co_return Result<void>();
    };
  }
  if (argo.workflows() != nullptr) {
    parts.workflows = [&argo](Deadline deadline) { return argo.reach_workflows(deadline); };
  }
  return parts;
}

}  // namespace

RuntimeParts::RuntimeParts(const DaemonContext& context, const Config& config,
                           ControlPlaneParts& control_plane, ClusterParts& cluster, ArgoParts& argo,
                           GitParts& git)
    : control_plane_(control_plane),
      cluster_(cluster),
      argo_(argo),
      git_(git),
      cluster_names_(context.metrics, {.name = "cluster-lookup", .threads = 1, .max_names = 100}),
      clusters_(context.executor, cluster.client, argo.argocd(), cluster_names_, git.committer(),
                cluster.files, git.own_token(),
                {.own_namespace = cluster.files.runtime_namespace,
                 .special_addresses = config.special_cluster_addresses}),
      sealing_keys_({.cluster = cluster.client,
                     .control_plane = control_plane.client,
                     .committer = git.committer(),
                     .reader = git.reader(),
                     .files = cluster.files,
                     .token = git.own_token(),
                     .leadership = cluster.leadership},
                    {.own_namespace = cluster.files.runtime_namespace,
                     .is_shared = config.share_sealing_key}),
      permission_check_(cluster.client, permission_settings(context, cluster, argo),
                        git.own_token(), {.own_namespace = cluster.files.runtime_namespace}),
      tasks_(context.executor) {
  sealing_keys_.start(tasks_);
  if (cluster.is_registering) start_registration(context, config);
  permission_check_.start(tasks_);
}

void RuntimeParts::start_registration(const DaemonContext& context, const Config& config) {
  const auto& ns = cluster_.files.runtime_namespace;
  group_reader_.emplace(reader_parts(cluster_, argo_, git_),
                        GroupReader::Options{.own_namespace = ns, .runtime = config.runtime_name});
  if (auto* argocd = argo_.argocd()) {
    cluster_reporter_.emplace(cluster_.client, *argocd, control_plane_.client, cluster_.leadership,
                              control_plane_.identity, clusters_.changed(),
                              ClusterReporter::Options{.own_namespace = ns,
                                                       .runtime = config.runtime_name,
                                                       .chunk_count = static_cast<std::size_t>(
                                                           config.cluster_chunk_size)});
  }
  life_.emplace(
      context.executor,
      RuntimeRegistration::Dependencies{.cluster = cluster_.client,
                                        .control_plane = control_plane_.client,
                                        .identity = control_plane_.identity,
                                        .leadership = cluster_.leadership,
                                        .user_token = control_plane_.user_token,
                                        .files = cluster_.files,
                                        .git_token = git_.own_token(),
                                        .argocd = argo_.argocd(),
                                        .argocd_token = argo_.argocd_token()},
      [this] {
        auto told = facts();
        told.groups = groups(told, {});
        told.groups.push_back(permission_check_.permissions());
        return told;
      },
      registration_options(config, ns));
  life_->start(tasks_);
  group_reader_->start(tasks_);
  if (cluster_reporter_) cluster_reporter_->start(tasks_);
}

Task<> RuntimeParts::stop() {
  tasks_.cancel();
  co_await tasks_.join();
}

RuntimeFacts RuntimeParts::facts() {
  RuntimeFacts facts{.config_repository_error = git_.config_repository_error(),
                     .has_git_token = git_.own_token().is_set()};
  if (auto* token = argo_.argocd_token()) {
    facts.has_argocd = true;
    facts.argocd_error = token->last_error();
  }
  return facts;
}

// Returns the groups. An unreachable control plane is not reported to itself.
std::vector<RuntimeGroup> RuntimeParts::groups(const RuntimeFacts& facts,
                                               std::string control_plane_error) {
  Connectivity servers{.control_plane = std::move(control_plane_error), .git = facts.git_error};
  if (facts.has_argocd) {
    servers.argocd =
        facts.argocd_error.empty() ? group_reader_->argocd_error() : facts.argocd_error;
  }
  if (argo_.workflows() != nullptr) servers.workflows = group_reader_->workflows_error();
  return {connectivity_group(servers), group_reader_->applications(), group_reader_->components(),
          git_sources_group(facts.has_git_token, facts.config_repository_error),
          cluster_reporter_
              ? clusters_group(cluster_reporter_->unreachable())
              : RuntimeGroup{.name = "clusters", .unknown = "no Argo CD is configured"}};
}

StatusReport RuntimeParts::status() {
  StatusReport rest{entry_of(permission_check_.permissions())};
  rest.push_back(cluster_reporter_ ? cluster_reporter_->status()
                                   : StatusEntry{.name = "report of clusters",
                                                 .state = StatusState::unavailable,
                                                 .message = "not available"});
  rest.push_back(sealing_keys_.status());
  return joined({life_ ? registration_status() : StatusReport(), std::move(rest)});
}

// Status of the registration, the leader, and the groups that the leader reads.
StatusReport RuntimeParts::registration_status() {
  auto report = life_->status();
  const bool leads = cluster_.leadership.leads();
  const auto& holder = cluster_.leadership.holder();
  report.push_back({.name = "leader",
                    .state = leads            ? StatusState::ok
                             : holder.empty() ? StatusState::pending
                                              : StatusState::standby,
                    .message = leads ? "this one" : holder});
  for (const auto& group : groups(facts(), control_plane_.rules_error())) {
    auto entry = entry_of(group);
    if (!leads && entry.state == StatusState::pending) entry.state = StatusState::standby;
    report.push_back(std::move(entry));
  }
  return report;
}

}  // namespace gitops::app_proxy
