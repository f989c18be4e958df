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

// Reads the snapshot for one report: the Application, Argo CD's two answers about it, and the
// metadata of commits that are not in the cache. Also keeps Argo CD's own settings (ConfigMap
// argocd-cm, major version) up to date. Loop thread only; the arguments outlive it.
class Gatherer {
 public:
  Gatherer(const Executor& executor, k8s::Client& kubernetes, argo::ArgoCdClient& argocd,
           Credential& argocd_token, std::string argocd_namespace, Metrics& metrics);

  struct Gathered {
    Snapshot snapshot;
    TrackingSettings settings;
    // Why an answer is missing that may come later; empty when the snapshot is complete.
    std::string gap = {};
  };
  // `text` is the Application's JSON; when it is empty, it is read from the API server. Fails when a
  // peer is unreachable or refuses the request, and with not_found when there is no such
  // Application. An answer that Argo CD cannot give about this Application is a gap, not a failure.
  Task<Result<Gathered>> gather(k8s::ObjectKey key, std::string text);
  // The snapshot of a deleted Application, from its tombstone. Does not read from Argo CD.
  Task<Result<Gathered>> gather_gone(AppView app);
  // Argo CD's resource tree alone.
  Task<Result<std::string>> tree(k8s::ObjectKey key, std::string project);

  // Reads Argo CD's settings every 30 s, as a task of `group`, which also shows whether it answers.
  void start(TaskGroup& group);
  // Why the last request to Argo CD failed; empty when it succeeded. Not empty before the first one.
  [[nodiscard]] const std::string& argocd_trouble() const { return trouble_; }

 private:
  Task<Result<void>> load_settings();
  Task<> keep_settings();
  Task<Result<std::optional<std::vector<Revision>>>> revisions(
      argo::AppRef app, std::vector<ReadPlan::Commit> commits);
  Task<Result<std::string>> metadata_of(argo::AppRef app, ReadPlan::Commit commit);
  Task<Result<std::optional<AppSnapshot>>> read_parent(k8s::ObjectKey key, std::string& gap);
  // Makes and counts one call to Argo CD; repeats it once after a 401 when there is a newer token.
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
  std::set<std::string> asking_;  // commits whose metadata is being read
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
