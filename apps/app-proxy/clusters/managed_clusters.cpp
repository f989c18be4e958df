#include "app-proxy/clusters/managed_clusters.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <nlohmann/json.hpp>

#include "app-proxy/clusters/cluster_report.hpp"
#include "app-proxy/entities/config_files.hpp"
#include "app-proxy/entities/rollouts_installation.hpp"
#include "common/core/json_value.hpp"
#include "common/http/url.hpp"
#include "common/net/address_list.hpp"
#include "k8s-client/cluster_secret.hpp"
#include "k8s-client/resource.hpp"

namespace gitops::app_proxy {
namespace {

constexpr auto kLookup = std::chrono::seconds(5);

// Version of the Secret that was read. A deletion with it does not meet a cluster that was added
// again meanwhile.
std::string version_of(const KnownCluster& cluster) {
  return string_at(parse_json_object(cluster.object), {"metadata", "resourceVersion"});
}

// Annotation that makes the controller compare with Git at once (argo-cd.readthedocs.io).
constexpr const char* kRefresh =
    R"({"metadata":{"annotations":{"argocd.argoproj.io/refresh":"normal"}}})";

}  // namespace

ManagedClusters::ManagedClusters(const Executor& executor, k8s::Client& cluster,
                                 argo::ArgoCdClient* argocd, net::Resolver& names,
                                 Committer* committer, const RuntimeFiles& files,
                                 RuntimeGitToken& token, Options options)
    : cluster_(cluster),
      argocd_(argocd),
      names_(names),
      committer_(committer),
      files_(files),
      token_(token),
      changed_(executor),
      options_(std::move(options)) {}

bool ManagedClusters::has_files() const {
  return committer_ != nullptr && files_.repository() && token_.is_set();
}

Result<AddedCluster> ManagedClusters::parse(std::string_view body) const {
  auto added = parse_added_cluster(body, options_.special_addresses);
  if (!added) return added;
  if (k8s::is_own_cluster(added->server, cluster_.config().server)) {
    return fail(ErrorCode::invalid_argument, "the runtime's own cluster needs not be added");
  }
  if (const auto repository = files_.repository();
      repository && added->name == repository->runtime) {
    return fail(ErrorCode::invalid_argument,
                "name: the runtime itself has an Application " + added->name);
  }
  return added;
}

Task<Result<void>> ManagedClusters::check_addresses(std::string server) {
  const auto url = http::parse_url(server);
  if (!url) co_return std::unexpected(url.error());
  const auto found = co_await names_.resolve(url->host, url->port, deadline_after(kLookup));
  if (!found) co_return Result<void>();
  for (const auto& endpoint : *found) {
    if (net::is_special_address(endpoint.address()) &&
        !options_.special_addresses.contains(endpoint.address())) {
      co_return fail(ErrorCode::invalid_argument,
                     "kubeConfig: server: its host leads to an address where no cluster is");
    }
  }
  co_return Result<void>();
}

Task<Result<std::vector<KnownCluster>>> known_clusters(k8s::Client& cluster, std::string ns,
                                                       Deadline deadline) {
  std::vector<KnownCluster> all;
  const auto listed = co_await cluster.list_pages(
      k8s::resources::kSecrets, std::move(ns), {.label_selector = k8s::kClusterSecretSelector},
      deadline, [&](std::string_view page) -> Result<void> {
        auto known = parse_known_clusters(page);
        if (!known) return std::unexpected(std::move(known.error()));
        std::ranges::move(*known, std::back_inserter(all));
        return {};
      });
  if (!listed) co_return fail("Secrets of clusters", listed.error());
  co_return all;
}

// The commit comes first: if it refuses the name, nothing was changed. A request that ends between
// the commit and the Secret can be repeated.
Task<Result<void>> ManagedClusters::add(AddedCluster cluster, std::string requested_by,
                                        Deadline deadline) {
  if (auto checked = co_await check_addresses(cluster.server); !checked) co_return checked;
  const auto& ns = options_.own_namespace;
  const auto all = co_await known_clusters(cluster_, ns, deadline);
  if (!all) co_return std::unexpected(all.error());
  const auto before = replaced_by(cluster, *all);
  if (!before) co_return std::unexpected(before.error());
  if (*before && removing_.contains((*before)->secret)) {
    co_return fail(ErrorCode::conflict,
                   "cluster " + (*before)->name + " is being removed; add it when that has ended");
  }
  if (has_files()) {
    auto changes = changes_to_add_cluster(*files_.repository(), cluster.name, cluster.server);
    // A name that was not set by this class may not be valid as the name of a file.
    if (*before && (*before)->name != cluster.name && check_entity_name((*before)->name)) {
      auto more = changes_to_remove_cluster(*files_.repository(), (*before)->name);
      std::ranges::move(more, std::back_inserter(changes));
    }
    const auto done = co_await commit(std::move(changes), "Add cluster " + cluster.name,
                                      std::move(requested_by), deadline);
    if (!done) co_return fail("file of cluster " + cluster.name, done.error());
  }
  const Secret object =
      cluster_secret_object(ns, cluster, *before ? (*before)->object : std::string());
  auto stored = *before
                    ? co_await cluster_.update(k8s::resources::kSecrets, {ns, (*before)->secret},
                                               std::string(object.reveal()), deadline)
                    : co_await cluster_.create(k8s::resources::kSecrets, ns,
                                               std::string(object.reveal()), deadline);
  if (!stored) co_return fail("Secret of cluster " + cluster.name, std::move(stored.error()));
  log_.info("a cluster was added", {{"cluster", cluster.name}, {"server", cluster.server}});
  changed_.notify_all();
  co_return Result<void>();
}

Task<Result<void>> ManagedClusters::look_for(std::string server, Deadline deadline) {
  if (argocd_ == nullptr || k8s::is_own_cluster(server, cluster_.config().server)) {
    co_return Result<void>();
  }
  const auto has_it = [wanted = normal_server(server)](const auto& cluster) {
    return normal_server(cluster.server) == wanted;
  };
  const auto stored = co_await known_clusters(cluster_, options_.own_namespace, deadline);
  if (!stored || std::ranges::any_of(*stored, has_it)) co_return Result<void>();
  const auto list = co_await argocd_->clusters(deadline);
  if (!list) co_return Result<void>();
  const auto shown = parse_clusters(*list);
  // An empty list is that of an account which may get no cluster.
  if (!shown || shown->empty() || std::ranges::any_of(*shown, has_it)) co_return Result<void>();
  co_return fail(ErrorCode::not_found, "cluster \"" + server +
                                           "\" not found, or the runtime's Argo CD account may "
                                           "not get it; add the cluster first");
}

Task<Result<void>> ManagedClusters::remove(std::string server, std::string requested_by,
                                           Deadline deadline) {
  const auto all = co_await known_clusters(cluster_, options_.own_namespace, deadline);
  if (!all) co_return std::unexpected(all.error());
  const auto found = std::ranges::find(*all, normal_server(server), &KnownCluster::server);
  if (found == all->end()) {
    co_return fail(ErrorCode::not_found, "this runtime has no such cluster");
  }
  const struct Removing {
    ~Removing() { secrets.erase(entry); }
    std::multiset<std::string>& secrets;
    std::multiset<std::string>::iterator entry;
  } removing{removing_, removing_.insert(found->secret)};
  if (has_files()) {
    auto changes = changes_to_remove_rollouts(*files_.repository(), found->server);
    // A name that was not set by this class may not be valid as the name of a file.
    if (check_entity_name(found->name)) {
      auto more = changes_to_remove_cluster(*files_.repository(), found->name);
      std::ranges::move(more, std::back_inserter(changes));
    }
    const auto done = co_await commit(std::move(changes), "Remove cluster " + found->name,
                                      std::move(requested_by), deadline);
    if (!done) co_return fail("files of cluster " + found->name, done.error());
    co_await settle(found->name, found->server,
                    std::min(deadline, deadline_after(options_.settling)));
  }
  auto removed =
      co_await cluster_.remove(k8s::resources::kSecrets, {options_.own_namespace, found->secret},
                               deadline, {.resource_version = version_of(*found)});
  if (!removed && removed.error().code != ErrorCode::not_found) {
    co_return fail("Secret of cluster " + found->name, std::move(removed.error()));
  }
  log_.info("a cluster was removed", {{"cluster", found->name}, {"server", found->server}});
  changed_.notify_all();
  co_return Result<void>();
}

Task<Result<bool>> ManagedClusters::commit(std::vector<FileChange> changes, std::string message,
                                           std::string requested_by, Deadline deadline) {
  const auto repository = files_.repository();
  if (!repository) co_return std::unexpected(repository.error());
  CommitRequest request{.repository = repository->at.repository,
                        .branch = repository->at.ref,
                        .changes = std::move(changes),
                        .message = std::move(message) + " of runtime " + repository->runtime,
                        .description = std::move(requested_by),
                        .author = {.name = "GitOps runtime " + repository->runtime,
                                   .email = "gitops-runtime@noreply.invalid"},
                        .credential = token_.credential()};
  auto made = co_await committer_->commit(std::move(request), deadline);
  if (made) co_return true;
  if (made.error().subcode == kNothingToCommit) co_return false;
  co_return std::unexpected(std::move(made.error()));
}

// Makes Argo CD compare with Git, and waits until the Applications of the cluster and their objects
// are gone. A cluster that does not respond is removed without it.
Task<> ManagedClusters::settle(std::string name, std::string server, Deadline deadline) {
  const auto repository = files_.repository();
  if (!repository) co_return;
  const std::string ns = repository->runtime_namespace;
  const auto rollouts = rollouts_names(server);
  std::vector<std::string> left{rollouts.by_host, rollouts.by_url};
  if (check_entity_name(name)) left.push_back(name);
  const std::vector<std::string> parents{repository->runtime, std::string(kInClusterName)};
  // A read that fails for another reason proves nothing.
  const auto is_gone = [&](std::string application) -> Task<bool> {
    const auto there =
        co_await cluster_.get(k8s::resources::kApplications, {ns, application}, deadline);
    if (!there) co_return there.error().code == ErrorCode::not_found;
    // An installation with the name from the host may be that of another cluster.
    const auto at = string_at(parse_json_object(*there), {"spec", "destination", "server"});
    co_return application != name&& normal_server(at) != server;
  };
  for (bool is_refreshed = false;;) {
    while (!left.empty() && co_await is_gone(left.back())) left.pop_back();
    if (left.empty()) co_return;
    if (!std::exchange(is_refreshed, true)) {
      for (const std::string& parent : parents) {
        (void)co_await cluster_.patch(k8s::resources::kApplications, {ns, parent},
                                      k8s::PatchType::merge, kRefresh, deadline);
      }
    }
    if (Clock::now() >= deadline) break;
    co_await sleep_for(options_.poll);
  }
  log_.warning("Argo CD has not removed an Application of the cluster yet",
               {{"application", left.back()}});
}

}  // namespace gitops::app_proxy
