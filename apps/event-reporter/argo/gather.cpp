#include "event-reporter/argo/gather.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <prometheus/counter.h>

#include "common/core/json_text.hpp"
#include "common/core/race.hpp"
#include "event-reporter/event/manifest.hpp"

namespace gitops::reporter {
namespace {

constexpr auto kReadTimeout = std::chrono::seconds(30);
// Least time for the reads that follow when Argo CD has answered about the application, however late.
// Without it the commits of an application that is slow each time would never be read.
constexpr auto kLastReads = std::chrono::seconds(5);
constexpr auto kSettingsPeriod = std::chrono::seconds(30);
// Time for which the read of Argo CD's settings is refused before its defaults are assumed. An API server that starts
// refuses for seconds what it allows later.
constexpr auto kRefusedSettings = std::chrono::seconds(30);
constexpr std::size_t kCommits = 4096;
// Pauses between attempts to read the metadata of one commit.
constexpr Backoff::Options kCommitPauses{.initial = std::chrono::seconds(1),
                                         .max = std::chrono::seconds(30)};
constexpr auto kLeastCommitPause = std::chrono::milliseconds(500);
// Shortest time for a read of a commit. With less time a read is not tried, since its failure would
// count for all that wait for the commit.
constexpr auto kLeastCommitRead = std::chrono::seconds(2);
// Time after which reports no longer wait for a commit that Argo CD refuses; it is requested again
// after growing pauses, at most this one.
constexpr auto kRefusedLong = std::chrono::seconds(10);
constexpr auto kRefusedPause = std::chrono::minutes(5);

// Share of memory for a snapshot of unknown size, and for a smaller one.
constexpr std::size_t kUsualSnapshot = std::size_t{256} << 10;

std::string commit_key(std::string_view repo_url, std::string_view revision) {
  std::string key(repo_url);
  key += '\n';
  key += revision;
  return key;
}

Gathered unknown(Error why) {
  return {.outcome = Gathered::Outcome::unknown, .why = std::move(why)};
}

// Returns the result after a failed read from the API server.
Gathered unknown_to_kubernetes(Error why) {
  auto gathered = unknown(std::move(why));
  gathered.from_kubernetes = true;
  return gathered;
}

std::size_t size_of(const Snapshot& snapshot) {
  const auto of_answer = [](const std::optional<std::string>& answer) {
    return answer ? answer->size() : 0;
  };
  auto bytes =
      snapshot.app.app.text().size() + of_answer(snapshot.app.managed) + of_answer(snapshot.tree);
  if (snapshot.parent) {
    bytes += snapshot.parent->app.text().size() + of_answer(snapshot.parent->managed);
  }
  return bytes;
}

// Returns whether the API server reports that there is no such Application, or that this account
// may not know of one. In a namespace that the account watches, a refusal is a passing failure, as of an
// API server that starts.
bool is_no_parent(const Error& error, bool in_watched_namespace) {
  return error.code == ErrorCode::not_found || error.code == ErrorCode::invalid_argument ||
         (error.code == ErrorCode::forbidden && !in_watched_namespace);
}

// Keeps the first reason.
void note(Error& why, const Error& error) {
  if (why.message.empty()) why = error;
}

// Returns whether a response begins and ends as an object does. It is parsed later.
bool looks_like_object(std::string_view answer) {
  const auto first = answer.find_first_not_of(" \t\r\n");
  const auto last = answer.find_last_not_of(" \t\r\n");
  return first != std::string_view::npos && answer[first] == '{' && answer[last] == '}';
}

// Returns the response, or an error when it is no JSON object.
Result<std::string> object_of(Result<std::string> answer, std::string_view what) {
  if (!answer || looks_like_object(*answer)) return answer;
  return fail(ErrorCode::invalid_data, std::string(what) + ": the answer is no JSON object");
}

bool is_revision_metadata(std::string_view answer) {
  JsonParser parser;
  const auto root = parser.parse_object(answer, "revision metadata");
  return root &&
         ((*root)["author"].is_text() || (*root)["date"].is_text() || (*root)["message"].is_text());
}

// Returns true for refusals of a name: Argo CD looks up commits alone, and always refuses other
// names.
bool is_about_name(const Error& error) {
  return error.message.contains(" must be resolved");
}

// Returns the major version of "v2.13.9+abc", 2; 0 when it cannot be read.
int major_version(std::string_view answer) {
  JsonParser parser;
  const auto root = parser.parse(answer, "version");
  if (!root) return 0;
  auto version = (*root)["Version"].text();
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
                   Credential& argocd_token, std::string argocd_namespace, Metrics& metrics,
                   std::size_t memory)
    : executor_(executor),
      kubernetes_(kubernetes),
      argocd_(argocd),
      token_(argocd_token),
      cache_(kCommits),
      read_ended_(executor),
      memory_(executor, memory),
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

Task<Result<std::string>> Gatherer::ask(std::string app, Counter& counter,
                                        std::function<Task<Result<std::string>>()> call) {
  counter.Increment();
  const Secret sent = token_.current();
  auto answer = co_await call();
  if (!answer && answer.error().code == ErrorCode::unauthenticated) {
    // Another read may have fetched the newer token already.
    if (!(token_.current() == sent) || co_await token_.refused()) {
      counter.Increment();
      answer = co_await call();
    } else if (!token_.last_error().empty()) {
      answer.error().message += " (" + token_.last_error() + ")";
    }
  }
  if (answer || (!app.empty() && !may_concern_server(answer.error()))) {
    failure_.answered();
  } else {
    failure_.failed(app, answer.error());
  }
  co_return std::move(answer);
}

// -- settings --

Task<Result<void>> Gatherer::require_settings() {
  if (settings_known_) co_return Result<void>();
  co_return co_await load_settings();
}

Task<Result<void>> Gatherer::load_settings() {
  const auto version = co_await ask(
      {}, version_reads_, [this] { return argocd_.version(deadline_after(kReadTimeout)); });
  if (!version) co_return std::unexpected(version.error());
  const int major = major_version(*version);
  if (major == 0) {
    const Error error{.code = ErrorCode::protocol,
                      .message = "the answer to the question for Argo CD's version has none"};
    failure_.failed({}, error);
    co_return std::unexpected(error);
  }

  TrackingSettings settings;
  settings.argocd_namespace = settings_.argocd_namespace;
  // Annotations are the default since 3.0.
  settings.method = major == 2 ? "label" : "annotation";
  const auto config = co_await kubernetes_.get(
      k8s::resources::kConfigMaps, {.ns = settings_.argocd_namespace, .name = "argocd-cm"},
      deadline_after(kReadTimeout));
  if (config) {
    JsonParser parser;
    const auto root = parser.parse_object(*config, "ConfigMap argocd-cm");
    if (!root) co_return std::unexpected(root.error());
    const auto data = (*root)["data"];
    if (const auto method = data["application.resourceTrackingMethod"].text(); !method.empty()) {
      settings.method = method;
    }
    if (const auto label = data["application.instanceLabelKey"].text(); !label.empty()) {
      settings.instance_label_key = label;
    }
    settings.installation_id = data["installationID"].text();
    config_was_read_ = true;
  } else if (config.error().code == ErrorCode::forbidden && config_was_read_) {
    // An API server that starts refuses what it allows later, so this says nothing about the settings.
    settings = settings_;
  } else if (config.error().code == ErrorCode::forbidden && !is_refused_for_long()) {
    co_return std::unexpected(config.error());
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

// Returns whether the first refusal of Argo CD's settings was long ago.
bool Gatherer::is_refused_for_long() {
  const auto now = Clock::now();
  if (!config_refused_at_) config_refused_at_ = now;
  return now - *config_refused_at_ >= kRefusedSettings;
}

void Gatherer::start(TaskGroup& group) {
  group.spawn("argocd-settings", [this] { return refresh_settings(); });
}

Task<> Gatherer::refresh_settings() {
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

// -- commits --

Gatherer::CommitRequest& Gatherer::commit_request(const std::string& commit) {
  if (commit_requests_.size() >= kCommits) {
    std::erase_if(commit_requests_, [now = Clock::now()](const auto& asked) {
      return !asked.second.reading && (asked.second.next <= now || asked.second.refused);
    });
  }
  return commit_requests_
      .try_emplace(commit, CommitRequest{.pauses = Backoff(kCommitPauses, random_seed())})
      .first->second;
}

// Reads the metadata of a commit. When several applications move to the same commit, one of them
// reads the metadata; the others wait and share the outcome, also a failure.
Task<Result<void>> Gatherer::read_commit(argo::AppRef app, ReadPlan::Commit commit,
                                         Deadline deadline) {
  const auto key = commit_key(commit.repo_url, commit.revision);
  while (cache_.find(commit.repo_url, commit.revision) == nullptr) {
    auto& asked = commit_request(key);
    if (asked.reading) {
      if (co_await read_ended_.wait(deadline)) continue;
      co_return fail(ErrorCode::timeout, "revision " + commit.revision + " is still being read");
    }
    if (Clock::now() < asked.next) co_return std::unexpected(asked.failure);
    if (deadline < Clock::now() + kLeastCommitRead) {
      co_return fail(ErrorCode::timeout, "no time is left to read revision " + commit.revision);
    }

    asked.reading = true;
    struct Reading {
      Gatherer& gatherer;
      const std::string& key;
      ~Reading() {
        gatherer.commit_requests_.at(key).reading = false;
        gatherer.read_ended_.notify_all();
      }
    };
    std::optional<Reading> reading(std::in_place, *this, key);
    auto answer = co_await ask(
        k8s::ObjectKey{.ns = app.ns, .name = app.name}.to_string(), metadata_reads_, [&] {
          return argocd_.revision_metadata(app, commit.revision, commit.source_index, deadline,
                                           commit.history_id);
        });
    if (answer && !is_revision_metadata(*answer)) {
      answer = fail(ErrorCode::invalid_data,
                    "the answer about revision " + commit.revision + " is no metadata of a commit");
    }
    reading.reset();
    if (answer) {
      cache_.put(commit.repo_url, commit.revision, std::move(*answer));
      commit_requests_.erase(key);
      break;
    }
    commit_requests_.at(key).failed(answer.error(), Clock::now());
    co_return std::unexpected(answer.error());
  }
  co_return Result<void>();
}

bool Gatherer::CommitRequest::is_refused_for_good(Clock::time_point now) const {
  return refused && (is_about_name(failure) || now - *refused >= kRefusedLong);
}

void Gatherer::CommitRequest::failed(const Error& error, Clock::time_point now) {
  failure = error;
  if (may_concern_server(error)) {
    refused.reset();
  } else if (!refused) {
    refused = now;
  }
  const auto pause =
      pauses.next(std::max<std::chrono::milliseconds>(kLeastCommitPause, error.retry_after));
  if (!is_refused_for_good(now)) {
    next = now + pause;
  } else if (is_about_name(failure)) {
    next = now + kRefusedPause;
  } else {
    // As long again as it has been refused, since most refusals end soon.
    next = now + std::min<Clock::duration>(now - *refused, kRefusedPause);
  }
}

Gatherer::Revisions Gatherer::known_revisions(const std::vector<ReadPlan::Commit>& commits) {
  if (commits.empty()) return std::nullopt;
  std::vector<Revision> revisions;
  for (const auto& commit : commits) {
    const auto* known =
        commit.has_metadata ? cache_.find(commit.repo_url, commit.revision) : nullptr;
    revisions.push_back({.revision = commit.revision,
                         .metadata = known != nullptr ? *known : std::string{},
                         .is_unknown = commit.has_metadata && known == nullptr});
  }
  return revisions;
}

// Reads the unknown metadata. A failed read does not stop the others.
Task<Gatherer::Revisions> Gatherer::revisions(argo::AppRef app,
                                              std::vector<ReadPlan::Commit> commits,
                                              Deadline deadline, Named& named) {
  for (const auto& commit : commits) {
    if (!commit.has_metadata) continue;
    const auto read = co_await read_commit(app, commit, deadline);
    if (read) continue;
    named.lacks_commits = true;
    const auto asked = commit_requests_.find(commit_key(commit.repo_url, commit.revision));
    const bool refused = asked != commit_requests_.end() && asked->second.refused;
    if (refused && asked->second.is_refused_for_good(Clock::now())) continue;
    (refused ? named.missing.refused : named.missing.commits) = true;
    note(named.why, read.error());
  }
  co_return known_revisions(commits);
}

// -- snapshots --

// Returns whether this process surely watches the namespace; `of_child` is that of an Application that it
// reports.
bool Gatherer::watches(std::string_view ns, std::string_view of_child) const {
  return ns == of_child || ns == settings_.argocd_namespace;
}

// Returns the parent Application; absent when there is none, and the application is then reported
// as a root application. Fails when it cannot be read. Only the name is known of a parent whose
// text is malformed.
Task<Result<std::optional<AppSnapshot>>> Gatherer::read_parent(k8s::ObjectKey key, ResourceId child,
                                                               Deadline deadline, Named& named) {
  using Parent = Result<std::optional<AppSnapshot>>;
  auto text =
      co_await kubernetes_.get(k8s::resources::kApplications, key, deadline_after(kReadTimeout));
  if (!text) {
    if (is_no_parent(text.error(), watches(key.ns, child.ns))) co_return Parent(std::nullopt);
    co_return std::unexpected(text.error());
  }
  auto app = AppView::parse(std::move(*text));
  if (!app) {
    if (repeats_.check("parent " + key.to_string(), Clock::now()).pass) {
      log_.warning("an Application cannot be read; events of its children have its name alone",
                   {{"application", key.to_string()}, {"reason", app.error().message}});
    }
    app = AppView::parse(application_stub(key, {}, {}));
  }
  if (!app) co_return std::unexpected(app.error());
  AppSnapshot parent{.app = std::move(*app)};
  const auto plan = plan_reads(parent.app, settings_);
  auto managed = co_await ask(key.to_string(), managed_reads_, [&] {
    return argocd_.managed_resources(
        plan.app, deadline,
        {.group = child.group, .kind = child.kind, .ns = child.ns, .name = child.name});
  });
  if (managed) {
    parent.managed = std::move(*managed);
  } else {
    named.missing.parent = true;
    note(named.why, managed.error());
  }
  parent.sync_revisions = co_await revisions(plan.app, plan.sync_revisions, deadline, named);
  co_return Parent(std::move(parent));
}

Task<Result<Gatherer::Named>> Gatherer::read_named(ReadPlan plan, ResourceId self,
                                                   Deadline deadline) {
  Named named;
  named.sync_revisions = co_await revisions(plan.app, plan.sync_revisions, deadline, named);
  named.change_revisions = co_await revisions(plan.app, plan.change_revisions, deadline, named);
  if (plan.parent) {
    auto parent = co_await read_parent(*plan.parent, std::move(self), deadline, named);
    if (!parent) co_return std::unexpected(parent.error());
    named.parent = std::move(*parent);
  }
  co_return Result<Named>(std::move(named));
}

Task<ByteBudget::Share> Gatherer::reserve(const std::string& key) {
  const auto found = large_.find(key);
  co_return co_await memory_.take(found == large_.end() ? kUsualSnapshot : found->second);
}

Task<Gathered> Gatherer::gather(k8s::ObjectKey key, std::string text, Reads reads,
                                argo::ObjectFilter only, SpanContext trace,
                                std::chrono::seconds limit) {
  if (const auto required = co_await require_settings(); !required) {
    co_return unknown(required.error());
  }
  const auto name = key.to_string();
  if (text.empty()) {
    auto read =
        co_await kubernetes_.get(k8s::resources::kApplications, key, deadline_after(kReadTimeout));
    if (!read && read.error().code == ErrorCode::not_found) {
      co_return Gathered{.outcome = Gathered::Outcome::gone};
    }
    if (!read) co_return unknown_to_kubernetes(read.error());
    text = std::move(*read);
  }
  auto app = AppView::parse(std::move(text));
  if (!app) {
    auto malformed = unknown(app.error());
    malformed.unreadable = true;
    co_return malformed;
  }
  Gathered gathered{.snapshot = {.app = {.app = std::move(*app)}}, .settings = settings_};
  auto& snapshot = gathered.snapshot;
  auto plan = plan_reads(snapshot.app.app, settings_);
  plan.app.trace = trace;

  const auto begin = Clock::now();
  const auto files = files_ && reads == Reads::all && !plan.being_deleted
                         ? source_files_request(snapshot.app.app)
                         : std::nullopt;
  if (files) files_->ask(*files);
  const auto deadline = deadline_after(limit);
  auto answers = co_await read_answers(name, plan, reads, only, deadline);
  // The commits are read last, so that an application about which Argo CD does not respond delays
  // no other one that waits for the same commit.
  const bool has_answered = answers.tree && (!answers.managed || *answers.managed);
  const auto until = has_answered ? std::max(deadline, deadline_after(kLastReads)) : deadline;
  auto named = co_await read_named(
      plan, application_id(snapshot.app.app.ns(), snapshot.app.app.name()), until);
  if (!named) co_return unknown_to_kubernetes(named.error());  // the parent could not be read
  fill(gathered, std::move(*named), std::move(answers), plan.being_deleted);
  if (files) snapshot.git_files = co_await files_->find(*files, begin);
  gathered.bytes = size_of(snapshot);
  if (gathered.bytes > kUsualSnapshot) {
    large_[name] = gathered.bytes;
  } else {
    large_.erase(name);
  }
  co_return std::move(gathered);
}

Task<Gatherer::Answers> Gatherer::read_answers(const std::string& name, const ReadPlan& plan,
                                               Reads reads, const argo::ObjectFilter& only,
                                               Deadline deadline) {
  const auto read_managed = [&]() -> Task<Result<std::string>> {
    if (reads == Reads::of_application) co_return Result<std::string>();
    co_return co_await ask(name, managed_reads_,
                           [&] { return argocd_.managed_resources(plan.app, deadline, only); });
  };
  auto group = asio::experimental::make_parallel_group(
      asio::co_spawn(executor_,
                     spawnable(ask(name, tree_reads_,
                                   [&] { return argocd_.resource_tree(plan.app, deadline); })),
                     asio::deferred),
      asio::co_spawn(executor_, spawnable(read_managed()), asio::deferred));
  auto [order, tree_failure, tree, managed_failure, managed] =
      co_await group.async_wait(asio::experimental::wait_for_all(), use_task);
  for (const auto& failure : {tree_failure, managed_failure}) {
    if (failure) std::rethrow_exception(failure);
  }
  Answers answers{.tree = object_of(std::move(tree), "Argo CD resource tree of " + name)};
  if (reads == Reads::all) {
    answers.managed = object_of(std::move(managed), "Argo CD managed resources of " + name);
  }
  co_return std::move(answers);
}

// Adds the results of the reads to the snapshot of an Application, and records the missing parts.
void Gatherer::fill(Gathered& gathered, Named named, Answers answers, bool in_deletion) {
  auto& snapshot = gathered.snapshot;
  auto& missing = gathered.missing;
  missing = named.missing;
  gathered.why = std::move(named.why);
  snapshot.app.sync_revisions = std::move(named.sync_revisions);
  snapshot.app.change_revisions = std::move(named.change_revisions);
  snapshot.parent = std::move(named.parent);
  const auto& tree = answers.tree;
  if (tree) {
    snapshot.tree = std::move(*answers.tree);
  } else {
    missing.tree = true;
    note(gathered.why, tree.error());
  }
  const bool managed_failed = answers.managed && !*answers.managed;
  if (managed_failed) {
    missing.managed = true;
    gathered.too_large = answers.managed->error().code == ErrorCode::too_large;
    note(gathered.why, answers.managed->error());
  } else if (answers.managed) {
    snapshot.app.managed = std::move(**answers.managed);
  }
  gathered.in_deletion = in_deletion;
  if (in_deletion) {
    missing.commits = missing.refused = missing.parent = false;
    named.lacks_commits = false;
    // Argo CD may no longer know the Application. After any other failure the response may show which
    // resources are left.
    const auto is_complete = [](const Error& error) {
      return error.code != ErrorCode::not_found && error.code != ErrorCode::forbidden;
    };
    missing.tree = !tree && is_complete(tree.error());
    missing.managed = managed_failed && is_complete(answers.managed->error());
  }
  snapshot.lacks_commits = named.lacks_commits;
  missing.comparison = !snapshot.app.app.was_compared();
  gathered.outcome = missing.any() ? Gathered::Outcome::partial : Gathered::Outcome::complete;
}

Task<Result<std::string>> Gatherer::tree(k8s::ObjectKey key, std::string project) {
  const argo::AppRef app{.name = key.name, .ns = key.ns, .project = std::move(project)};
  co_return co_await ask(key.to_string(), tree_reads_,
                         [&] { return argocd_.resource_tree(app, deadline_after(kReadTimeout)); });
}

Task<Gathered> Gatherer::gather_gone(AppView app) {
  large_.erase(
      k8s::ObjectKey{.ns = std::string(app.ns()), .name = std::string(app.name())}.to_string());
  if (const auto required = co_await require_settings(); !required) {
    co_return unknown(required.error());
  }
  Gathered gathered{.outcome = Gathered::Outcome::complete,
                    .snapshot = {.app = {.app = std::move(app)}, .gone = true},
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
    } else if (!is_no_parent(text_of_parent.error(),
                             watches(plan.parent->ns, snapshot.app.app.ns()))) {
      co_return unknown(text_of_parent.error());
    }
  }
  co_return std::move(gathered);
}

}  // namespace gitops::reporter
