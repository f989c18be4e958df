#include "event-reporter/argo/gather.hpp"

#include <charconv>
#include <utility>

#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <simdjson.h>

#include "common/core/backoff.hpp"
#include "common/core/json_text.hpp"

namespace gitops::reporter {
namespace {

constexpr auto kReadTimeout = std::chrono::seconds(30);
constexpr auto kSettingsPeriod = std::chrono::seconds(30);
constexpr std::size_t kCommits = 4096;

std::string commit_key(std::string_view repo_url, std::string_view revision) {
  std::string key(repo_url);
  key += '\n';
  key += revision;
  return key;
}

// Whether the error concerns the peer, and not only the one object of the request.
bool is_failure_of_peer(const Error& error) {
  switch (error.code) {
    case ErrorCode::timeout:
    case ErrorCode::tls:
    case ErrorCode::protocol:
    case ErrorCode::unauthenticated:
    case ErrorCode::too_many_requests:
      return true;
    case ErrorCode::unavailable:
      return error.http_status != 500;  // argocd-server's status for errors without one
    default:
      return false;
  }
}

void note_gap(std::string& gap, const Error& error) {
  if (gap.empty()) gap = error.message;
}

// "v2.13.9+abc" -> 2; 0 when it cannot be read.
int major_version(std::string_view answer) {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  if (parser.parse(answer.data(), answer.size()).get(root) != simdjson::SUCCESS) return 0;
  auto version = JsonView(root)["Version"].text();
  if (version.starts_with('v')) version.remove_prefix(1);
  int major = 0;
  std::from_chars(version.data(), version.data() + version.size(), major);
  return major;
}

}  // namespace

const std::string* RevisionCache::find(std::string_view repo_url, std::string_view revision) {
  const auto key = commit_key(repo_url, revision);
  const auto found = index_.find(key);
  if (found == index_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return &found->second->metadata;
}

void RevisionCache::put(std::string_view repo_url, std::string_view revision,
                        std::string metadata) {
  auto key = commit_key(repo_url, revision);
  if (const auto found = index_.find(key); found != index_.end()) {
    found->second->metadata = std::move(metadata);
    return;
  }
  if (entries_.size() >= capacity_) {
    index_.erase(entries_.back().key);
    entries_.pop_back();
  }
  entries_.push_front({std::move(key), std::move(metadata)});
  index_.emplace(entries_.front().key, entries_.begin());
}

Gatherer::Gatherer(const Executor& executor, k8s::Client& kubernetes, argo::ArgoCdClient& argocd,
                   Credential& argocd_token, std::string argocd_namespace, Metrics& metrics)
    : executor_(executor),
      kubernetes_(kubernetes),
      argocd_(argocd),
      token_(argocd_token),
      cache_(kCommits),
      asked_(executor),
      tree_reads_(metrics.counter("gitops_event_reporter_argocd_reads_total",
                                  "Requests to argocd-server", {{"call", "resource_tree"}})),
      managed_reads_(metrics.counter("gitops_event_reporter_argocd_reads_total",
                                     "Requests to argocd-server", {{"call", "managed_resources"}})),
      metadata_reads_(metrics.counter("gitops_event_reporter_argocd_reads_total",
                                      "Requests to argocd-server",
                                      {{"call", "revision_metadata"}})),
      version_reads_(metrics.counter("gitops_event_reporter_argocd_reads_total",
                                     "Requests to argocd-server", {{"call", "version"}})) {
  settings_.argocd_namespace = std::move(argocd_namespace);
}

Task<Result<std::string>> Gatherer::ask(Counter& counter,
                                        std::function<Task<Result<std::string>>()> call) {
  counter.Increment();
  auto answer = co_await call();
  if (!answer && answer.error().code == ErrorCode::unauthenticated) {
    if (co_await token_.refused()) {
      counter.Increment();
      answer = co_await call();
    } else if (!token_.trouble().empty()) {
      answer.error().message += " (" + token_.trouble() + ")";
    }
  }
  if (!answer && is_failure_of_peer(answer.error())) {
    trouble_ = answer.error().message;
  } else {
    trouble_.clear();
  }
  co_return std::move(answer);
}

Task<Result<void>> Gatherer::load_settings() {
  const auto version = co_await ask(
      version_reads_, [this] { return argocd_.version(deadline_after(kReadTimeout)); });
  if (!version) co_return std::unexpected(version.error());

  TrackingSettings settings;
  settings.argocd_namespace = settings_.argocd_namespace;
  // Since 3.0 annotations are the default.
  settings.method = major_version(*version) == 2 ? "label" : "annotation";
  const auto config = co_await kubernetes_.get(
      k8s::resources::kConfigMaps, {.ns = settings_.argocd_namespace, .name = "argocd-cm"},
      deadline_after(kReadTimeout));
  if (config) {
    simdjson::dom::parser parser;
    simdjson::dom::element root;
    if (parser.parse(*config).get(root) == simdjson::SUCCESS) {
      const auto data = JsonView(root)["data"];
      if (const auto method = data["application.resourceTrackingMethod"].text(); !method.empty()) {
        settings.method = method;
      }
      if (const auto label = data["application.instanceLabelKey"].text(); !label.empty()) {
        settings.instance_label_key = label;
      }
      settings.installation_id = data["installationID"].text();
    }
  } else if (config.error().code == ErrorCode::not_found ||
             config.error().code == ErrorCode::forbidden) {
    if (repeats_.check("argocd-cm", Clock::now()).pass) {
      log_.warning("Argo CD's settings cannot be read; assuming its defaults",
                   {{"reason", config.error().message}});
    }
  } else {
    co_return std::unexpected(config.error());
  }
  settings_ = std::move(settings);
  settings_known_ = true;
  co_return Result<void>();
}

void Gatherer::start(TaskGroup& group) {
  group.spawn("argocd-settings", [this] { return keep_settings(); });
}

Task<> Gatherer::keep_settings() {
  Backoff backoff({.initial = std::chrono::milliseconds(500), .max = std::chrono::seconds(10)},
                  random_seed());
  while (true) {
    const auto loaded = co_await load_settings();
    if (loaded) {
      backoff.reset();
      co_await sleep_for(kSettingsPeriod);
      continue;
    }
    const auto delay = backoff.next(loaded.error().retry_after);
    const auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(delay);
    log_.warning("Argo CD's version and settings could not be read",
                 {{"code", to_string(loaded.error().code)},
                  {"reason", loaded.error().message},
                  {"retry_in_ms", millis.count()}});
    co_await sleep_for(delay);
  }
}

Task<Result<std::string>> Gatherer::metadata_of(argo::AppRef app, ReadPlan::Commit commit) {
  const auto key = commit_key(commit.repo_url, commit.revision);
  while (true) {
    if (const auto* known = cache_.find(commit.repo_url, commit.revision)) co_return *known;
    if (!asking_.contains(key)) break;
    co_await asked_.wait();
  }
  // Of applications that move to the same commit together, only one reads its metadata.
  asking_.insert(key);
  struct Asked {
    Gatherer& gatherer;
    const std::string& key;
    ~Asked() {
      gatherer.asking_.erase(key);
      gatherer.asked_.notify_all();
    }
  } const done{*this, key};
  auto answer = co_await ask(metadata_reads_, [&] {
    return argocd_.revision_metadata(app, commit.revision, commit.source_index,
                                     deadline_after(kReadTimeout));
  });
  if (answer) cache_.put(commit.repo_url, commit.revision, *answer);
  co_return std::move(answer);
}

std::optional<std::vector<Revision>> Gatherer::known_revisions(
    const std::vector<ReadPlan::Commit>& commits) {
  if (commits.empty()) return std::nullopt;
  std::vector<Revision> revisions;
  for (const auto& commit : commits) {
    const auto* known = cache_.find(commit.repo_url, commit.revision);
    if (commit.has_metadata && known == nullptr) return std::nullopt;
    revisions.push_back({commit.revision, commit.has_metadata ? *known : std::string{}});
  }
  return revisions;
}

Task<Result<std::optional<std::vector<Revision>>>> Gatherer::revisions(
    argo::AppRef app, std::vector<ReadPlan::Commit> commits) {
  using Found = Result<std::optional<std::vector<Revision>>>;
  for (const auto& commit : commits) {
    if (!commit.has_metadata) continue;
    const auto metadata = co_await metadata_of(app, commit);
    if (!metadata) co_return std::unexpected(metadata.error());
  }
  co_return Found(known_revisions(commits));
}

Task<Result<std::optional<AppSnapshot>>> Gatherer::read_parent(k8s::ObjectKey key,
                                                               std::string& gap) {
  using Parent = Result<std::optional<AppSnapshot>>;
  auto text =
      co_await kubernetes_.get(k8s::resources::kApplications, key, deadline_after(kReadTimeout));
  if (!text) {
    // Without its parent, the application is reported as a root application.
    if (text.error().code == ErrorCode::not_found || text.error().code == ErrorCode::forbidden) {
      co_return Parent(std::nullopt);
    }
    co_return std::unexpected(text.error());
  }
  auto app = AppView::parse(std::move(*text));
  if (!app) co_return std::unexpected(app.error());
  AppSnapshot parent{.app = std::move(*app)};
  const auto plan = plan_reads(parent.app, settings_);
  auto managed = co_await ask(managed_reads_, [&] {
    return argocd_.managed_resources(plan.app, deadline_after(kReadTimeout));
  });
  if (managed) {
    parent.managed = std::move(*managed);
  } else if (is_failure_of_peer(managed.error())) {
    co_return std::unexpected(managed.error());
  } else {
    note_gap(gap, managed.error());
  }
  auto found = co_await revisions(plan.app, plan.sync_revisions);
  if (found) {
    parent.sync_revisions = std::move(*found);
  } else if (is_failure_of_peer(found.error())) {
    co_return std::unexpected(found.error());
  } else {
    note_gap(gap, found.error());
  }
  co_return Parent(std::move(parent));
}

Task<Result<Gatherer::Gathered>> Gatherer::gather(k8s::ObjectKey key, std::string text) {
  if (!settings_known_) {
    const auto loaded = co_await load_settings();
    if (!loaded) co_return std::unexpected(loaded.error());
  }
  if (text.empty()) {
    auto read = co_await kubernetes_.get(k8s::resources::kApplications, std::move(key),
                                         deadline_after(kReadTimeout));
    if (!read) co_return std::unexpected(read.error());
    text = std::move(*read);
  }
  auto app = AppView::parse(std::move(text));
  if (!app) co_return std::unexpected(app.error());
  Gathered gathered{.snapshot = {.app = {.app = std::move(*app)}}, .settings = settings_};
  auto& snapshot = gathered.snapshot;
  const auto plan = plan_reads(snapshot.app.app, settings_);

  const auto deadline = deadline_after(kReadTimeout);
  auto reads = asio::experimental::make_parallel_group(
      asio::co_spawn(executor_,
                     ask(tree_reads_, [&] { return argocd_.resource_tree(plan.app, deadline); }),
                     asio::deferred),
      asio::co_spawn(
          executor_,
          ask(managed_reads_, [&] { return argocd_.managed_resources(plan.app, deadline); }),
          asio::deferred));
  auto [order, tree_failure, tree, managed_failure, managed] =
      co_await reads.async_wait(asio::experimental::wait_for_all(), use_task);
  if (tree_failure) std::rethrow_exception(tree_failure);
  if (managed_failure) std::rethrow_exception(managed_failure);

  std::string gap;
  for (auto* answer : {&tree, &managed}) {
    if (*answer) continue;
    if (is_failure_of_peer(answer->error())) co_return std::unexpected(answer->error());
    note_gap(gap, answer->error());
  }
  if (tree) snapshot.tree = std::move(*tree);
  if (managed) snapshot.app.managed = std::move(*managed);

  for (auto [commits, target] :
       {std::pair{&plan.sync_revisions, &snapshot.app.sync_revisions},
        std::pair{&plan.change_revisions, &snapshot.app.change_revisions}}) {
    auto found = co_await revisions(plan.app, *commits);
    if (found) {
      *target = std::move(*found);
    } else if (is_failure_of_peer(found.error())) {
      co_return std::unexpected(found.error());
    } else {
      note_gap(gap, found.error());
    }
  }
  if (plan.parent) {
    auto parent = co_await read_parent(*plan.parent, gap);
    if (!parent) co_return std::unexpected(parent.error());
    snapshot.parent = std::move(*parent);
  }
  // While an application is being deleted, Argo CD may stop answering about it.
  if (!plan.being_deleted) gathered.gap = std::move(gap);
  co_return Result<Gathered>(std::move(gathered));
}

Task<Result<std::string>> Gatherer::tree(k8s::ObjectKey key, std::string project) {
  const argo::AppRef app{.name = key.name, .ns = key.ns, .project = std::move(project)};
  co_return co_await ask(tree_reads_,
                         [&] { return argocd_.resource_tree(app, deadline_after(kReadTimeout)); });
}

Task<Result<Gatherer::Gathered>> Gatherer::gather_gone(AppView app) {
  Gathered gathered{.snapshot = {.app = {.app = std::move(app)}, .gone = true},
                    .settings = settings_};
  auto& snapshot = gathered.snapshot;
  const auto plan = plan_reads(snapshot.app.app, settings_);
  snapshot.app.sync_revisions = known_revisions(plan.sync_revisions);
  snapshot.app.change_revisions = known_revisions(plan.change_revisions);
  if (plan.parent) {
    auto text_of_parent = co_await kubernetes_.get(k8s::resources::kApplications, *plan.parent,
                                                   deadline_after(kReadTimeout));
    if (text_of_parent) {
      if (auto parent = AppView::parse(std::move(*text_of_parent))) {
        const auto asked = plan_reads(*parent, settings_);
        snapshot.parent = {.app = std::move(*parent),
                           .sync_revisions = known_revisions(asked.sync_revisions)};
      }
    } else if (text_of_parent.error().code != ErrorCode::not_found &&
               text_of_parent.error().code != ErrorCode::forbidden) {
      co_return std::unexpected(text_of_parent.error());
    }
  }
  co_return Result<Gathered>(std::move(gathered));
}

}  // namespace gitops::reporter
