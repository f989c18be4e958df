#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/argo/argocd_client.hpp"
#include "common/core/async.hpp"
#include "common/core/backoff.hpp"
#include "common/core/credential.hpp"
#include "common/core/log.hpp"
#include "common/core/metrics.hpp"
#include "common/core/task_group.hpp"
#include "event-reporter/argo/argocd_failure.hpp"
#include "event-reporter/argo/byte_budget.hpp"
#include "event-reporter/argo/source_files.hpp"
#include "event-reporter/event/read_plan.hpp"
#include "event-reporter/event/snapshot.hpp"
#include "k8s-client/client.hpp"

namespace gitops::reporter {

// Commit metadata by repository and revision. Entries never expire, since a commit never changes; a
// full cache evicts the least recently used one.
class RevisionCache {
 public:
  explicit RevisionCache(std::size_t capacity) : capacity_(capacity) {}

  [[nodiscard]] const std::string* find(std::string_view repo_url, std::string_view revision);
  void put(std::string_view repo_url, std::string_view revision, std::string metadata);
  [[nodiscard]] std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    std::string key;
    std::string metadata;
  };
  std::size_t capacity_;
  std::list<Entry> entries_;  // most recently used first
  std::unordered_map<std::string_view, std::list<Entry>::iterator> index_;  // keys of entries_
};

// The parts that a snapshot lacks.
struct MissingParts {
  bool tree = false;
  bool managed = false;     // managed resources
  bool commits = false;     // the metadata of a commit: Argo CD did not respond
  bool refused = false;     // the metadata of a commit: Argo CD has refused it recently
  bool parent = false;      // the parent Application's desired state of this one
  bool comparison = false;  // Argo CD could not compare the Application (AppView::was_compared())

  // Returns whether a later read may fill the gap. A comparison comes with another change of the
  // Application.
  [[nodiscard]] bool may_be_read() const { return outage() || refused; }
  // Returns whether more is missing than a commit that Argo CD refuses, which may be its intent.
  [[nodiscard]] bool outage() const { return tree || managed || commits || parent; }
  [[nodiscard]] bool any() const { return may_be_read() || comparison; }
};

// The result of a gathering.
struct Gathered {
  enum class Outcome {
    complete,
    partial,  // the parts in `missing` are not known
    gone,     // there is no such Application
    unknown,  // no statement is possible: the Application or Argo CD's settings could not be read
  };
  Outcome outcome = Outcome::unknown;
  Snapshot snapshot = {};  // of complete and partial, as are the settings
  TrackingSettings settings = {};
  MissingParts missing = {};
  bool in_deletion = false;  // the Application is being deleted, which is reported at once
  bool unreadable = false;   // unknown, because the Application's text is malformed
  bool too_large = false;    // the managed resources are missing because there are too many at once
  Error why = {};            // the reason for `unknown`, or the failure of the first missing part
  bool from_kubernetes = false;  // `why` is a failure of the API server, not of Argo CD
  std::size_t bytes = 0;         // size of the snapshot's texts

  [[nodiscard]] bool has_snapshot() const {
    return outcome == Outcome::complete || outcome == Outcome::partial;
  }
};

// Reads the snapshot for one report: the Application, Argo CD's two responses about it, and the
// metadata of commits that are not in the cache. Also keeps Argo CD's own settings (ConfigMap
// argocd-cm, major version) up to date.
//
// Required are the Application, its parent Application, if it has one, and the settings. The other
// reads are optional: they share one time limit, with a little more for commits, and failed ones are
// missing. Reports do not wait for a commit that Argo CD keeps refusing: its metadata is not known, as
// Snapshot::lacks_commits says. Loop thread only; the arguments outlive it.
class Gatherer {
 public:
  // Memory for the snapshots of all reports in work, in bytes.
  static constexpr std::size_t kMemory = std::size_t{128} << 20;
  Gatherer(const Executor& executor, k8s::Client& kubernetes, argo::ArgoCdClient& argocd,
           Credential& argocd_token, std::string argocd_namespace, Metrics& metrics,
           std::size_t memory = kMemory);

  enum class Reads {
    all,
    of_application,  // all reads for the application's own event
  };
  // Waits until there is memory for the responses about an application, as large as the last ones
  // were. The caller holds the share as long as the snapshot, and resizes it to the snapshot's size.
  Task<ByteBudget::Share> reserve(const std::string& key);
  // Gathers a snapshot. `text` is the Application's JSON; when it is empty, it is read from the API
  // server. `only` selects managed resources; those that it leaves out are not known. The reads are
  // spans of `trace`. `limit` is that of all optional reads together.
  static constexpr std::chrono::seconds kReadLimit{10};
  static constexpr std::chrono::seconds kLongReadLimit{60};
  Task<Gathered> gather(k8s::ObjectKey key, std::string text, Reads reads,
                        argo::ObjectFilter only = {}, SpanContext trace = {},
                        std::chrono::seconds limit = kReadLimit);
  // Makes the snapshot of a deleted Application from its tombstone, without reads from Argo CD.
  Task<Gathered> gather_gone(AppView app);
  // Reads Argo CD's resource tree alone.
  Task<Result<std::string>> tree(k8s::ObjectKey key, std::string project);

  // Adds the files in Git to later snapshots of whole applications. `files` outlives this object.
  void use(SourceFiles& files) { files_ = &files; }

  // Reads Argo CD's settings every 30 s, as a task of `group`; each read also checks that
  // argocd-server responds.
  void start(TaskGroup& group);
  // Returns Argo CD's settings; null before they were read.
  [[nodiscard]] const TrackingSettings* tracking() const {
    return settings_known_ ? &settings_ : nullptr;
  }
  // The reason why argocd-server does not respond; empty when it does. Not empty before the first
  // response.
  [[nodiscard]] const std::string& argocd_error() const { return failure_.text(); }

 private:
  using Revisions = std::optional<std::vector<Revision>>;
  // The metadata of a commit that has been requested without success so far.
  struct CommitRequest {
    Backoff pauses;
    bool reading = false;
    Error failure = {};        // failure of the last attempt
    Clock::time_point next{};  // earliest next attempt
    // Time of the first refusal in a row; absent: the last attempt was no refusal.
    std::optional<Clock::time_point> refused = {};

    void failed(const Error& error, Clock::time_point now);
    // Returns whether Argo CD keeps refusing it. An outage of Argo CD is not a refusal.
    [[nodiscard]] bool is_refused_for_good(Clock::time_point now) const;
  };
  // The commits and the parent that the Application's own text names.
  struct Named {
    Revisions sync_revisions = {};
    Revisions change_revisions = {};
    std::optional<AppSnapshot> parent = {};
    MissingParts missing = {};
    bool lacks_commits = false;  // the metadata of a commit is missing or refused
    Error why = {};
  };

  // Argo CD's responses about an application.
  struct Answers {
    Result<std::string> tree = {};
    std::optional<Result<std::string>> managed = {};  // absent: it was not requested
  };

  Task<Result<void>> require_settings();
  Task<Result<void>> load_settings();
  bool is_refused_for_long();
  Task<> refresh_settings();
  Task<Answers> read_answers(const std::string& name, const ReadPlan& plan, Reads reads,
                             const argo::ObjectFilter& only, Deadline deadline);
  static void fill(Gathered& gathered, Named named, Answers answers, bool in_deletion);
  Task<Result<Named>> read_named(ReadPlan plan, ResourceId self, Deadline deadline);
  [[nodiscard]] bool watches(std::string_view ns, std::string_view of_child) const;
  Task<Result<std::optional<AppSnapshot>>> read_parent(k8s::ObjectKey key, ResourceId child,
                                                       Deadline deadline, Named& named);
  Task<Revisions> revisions(argo::AppRef app, std::vector<ReadPlan::Commit> commits,
                            Deadline deadline, Named& named);
  Task<Result<void>> read_commit(argo::AppRef app, ReadPlan::Commit commit, Deadline deadline);
  CommitRequest& commit_request(const std::string& commit);
  // Makes and counts one call to Argo CD about `app` (empty: about none); repeats it once after a
  // 401 when there is a newer token.
  Task<Result<std::string>> ask(std::string app, Counter& counter,
                                std::function<Task<Result<std::string>>()> call);
  [[nodiscard]] Revisions known_revisions(const std::vector<ReadPlan::Commit>& commits);

  Executor executor_;
  k8s::Client& kubernetes_;
  argo::ArgoCdClient& argocd_;
  Credential& token_;
  SourceFiles* files_ = nullptr;
  TrackingSettings settings_;
  bool settings_known_ = false;
  bool config_was_read_ = false;  // the ConfigMap with the settings
  std::optional<Clock::time_point> config_refused_at_;
  RevisionCache cache_;
  std::unordered_map<std::string, CommitRequest> commit_requests_;  // by repository and revision
  Event read_ended_;
  ByteBudget memory_;
  std::unordered_map<std::string, std::size_t> large_;  // bytes of the last snapshot, if many
  ArgoCdFailure failure_;
  Log log_{"gather"};
  RepeatFilter repeats_{std::chrono::minutes(10)};
  Counter& tree_reads_;
  Counter& managed_reads_;
  Counter& metadata_reads_;
  Counter& version_reads_;
};

}  // namespace gitops::reporter
