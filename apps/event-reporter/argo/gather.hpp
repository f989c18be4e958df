#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/argo/argocd_client.hpp"
#include "common/core/async.hpp"
#include "common/core/credential.hpp"
#include "common/core/log.hpp"
#include "common/core/metrics.hpp"
#include "common/core/task_group.hpp"
#include "event-reporter/event/read_plan.hpp"
#include "event-reporter/event/snapshot.hpp"
#include "k8s-client/client.hpp"

namespace gitops::reporter {

// Commit metadata by repository and revision; a commit never changes, so an entry is good for ever.
// The least recently used goes first.
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

// Reads what one report needs: the Application's text, Argo CD's two answers about it, and the
// metadata of commits not seen before. Also keeps Argo CD's own settings (ConfigMap argocd-cm,
// major version) up to date. Loop thread only; what is passed in outlives it.
class Gatherer {
 public:
  Gatherer(const Executor& executor, k8s::Client& kubernetes, argo::ArgoCdClient& argocd,
           Credential& argocd_token, std::string argocd_namespace, Metrics& metrics);

  struct Gathered {
    Snapshot snapshot;
    TrackingSettings settings;
    // Why something is missing that may come later; empty when everything is there.
    std::string gap = {};
  };
  // `text` is the Application's JSON when it is at hand, otherwise empty: then it is read from the
  // API server. Fails when the report has to be tried again as a whole: a peer is away or refuses
  // us, or the Application is not there (not_found). What Argo CD cannot say about this one
  // Application is a gap, not a failure.
  Task<Result<Gathered>> gather(k8s::ObjectKey key, std::string text);
  // The last state of an Application that does not exist any more; asks Argo CD nothing.
  Task<Result<Gathered>> gather_gone(AppView app);
  // Argo CD's resource tree alone.
  Task<Result<std::string>> tree(k8s::ObjectKey key, std::string project);

  // Watches over Argo CD: its settings every minute, and whether it answers.
  void start(TaskGroup& group);
  // Why Argo CD is of no use now; empty when its last answer was one. Never empty before the first.
  [[nodiscard]] const std::string& argocd_trouble() const { return trouble_; }

 private:
  Task<Result<void>> load_settings();
  Task<> keep_settings();
  Task<Result<std::optional<std::vector<Revision>>>> revisions(
      argo::AppRef app, std::vector<ReadPlan::Commit> commits);
  Task<Result<std::string>> metadata_of(argo::AppRef app, ReadPlan::Commit commit);
  Task<Result<std::optional<AppSnapshot>>> read_parent(k8s::ObjectKey key, std::string& gap);
  // One call to Argo CD, counted; a 401 is tried once more when a newer token is found.
  Task<Result<std::string>> ask(Counter& counter, std::function<Task<Result<std::string>>()> call);
  [[nodiscard]] std::optional<std::vector<Revision>> known_revisions(
      const std::vector<ReadPlan::Commit>& commits);

  Executor executor_;
  k8s::Client& kubernetes_;
  argo::ArgoCdClient& argocd_;
  Credential& token_;
  TrackingSettings settings_;
  bool settings_known_ = false;
  RevisionCache cache_;
  std::set<std::string> asking_;  // commits that are being asked for
  Event asked_;
  std::string trouble_ = "Argo CD was not asked yet";
  Log log_{"gather"};
  RepeatFilter repeats_{std::chrono::minutes(10)};
  Counter& tree_reads_;
  Counter& managed_reads_;
  Counter& metadata_reads_;
  Counter& version_reads_;
};

}  // namespace gitops::reporter
