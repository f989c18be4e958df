#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/async.hpp"
#include "common/core/log.hpp"
#include "common/core/metrics.hpp"
#include "common/core/status_report.hpp"
#include "common/core/task_group.hpp"
#include "k8s-client/client.hpp"
#include "k8s-client/informer.hpp"
#include "k8s-client/record.hpp"
#include "k8s-client/resource.hpp"

namespace gitops::k8s {

// A kind and the namespaces in which it is watched.
struct WatchedKind {
  std::string name;  // shown to people, and the caller's key
  Resource resource;
  FieldSet fields;  // fields kept of each object
  std::string ns;   // empty: all namespaces
  // Returns true for the namespaces to keep; empty: all of them.
  std::function<bool(std::string_view ns)> keep_namespace = {};

  [[nodiscard]] bool covers(std::string_view object_ns) const {
    return (ns.empty() || ns == object_ns) && (!keep_namespace || keep_namespace(object_ns));
  }
};

// Watches one kind on one cluster while the cluster serves it. Looks for a missing CRD at
// intervals, also after the CRD was deleted. Each time, the watch begins with a complete list. Loop
// thread only.
class KindWatch {
 public:
  struct Options {
    // Interval of discovery.
    std::chrono::milliseconds discovery = std::chrono::seconds(5);
    Reflector::Options reflector = {};
  };
  struct Callbacks {
    std::function<void(const Change&)> changed;
    // Called after the first complete list of each watch; cancelled when the watch ends.
    std::function<Task<>(const KindWatch& watch)> listed;
    // Called when the API server was restored from a backup, before the first change after that;
    // the versions of objects from before do not compare with those from now on. May be empty.
    std::function<void()> restored = {};
  };
  // `program` and `cluster` are labels of metrics. `client` and `metrics` outlive this.
  KindWatch(const Executor& executor, Client& client, WatchedKind what, Options options,
            Callbacks callbacks, Metrics& metrics, std::string program, std::string cluster);

  // Runs until it is cancelled; this object outlives the task.
  Task<> run();

  [[nodiscard]] const WatchedKind& what() const { return what_; }
  // Returns the record; null while the object is not known.
  [[nodiscard]] const Record* find(const ObjectKey& key) const;
  // Returns true when the cluster has reported that it does not serve the kind.
  [[nodiscard]] bool is_missing() const { return state_ == State::missing; }
  // Returns true while the watch knows the objects: its first list is complete.
  [[nodiscard]] bool is_listed() const { return informer_ && informer_->has_synced(); }
  // The reason why objects may be missing or stale now; empty also when the cluster does not serve
  // the kind.
  [[nodiscard]] std::string last_error() const;
  // Returns the entry of /statusz: "rollouts: 12 objects", "rollouts in argocd: not served".
  [[nodiscard]] StatusEntry status() const;

 private:
  enum class State { unknown, missing, served };
  Task<bool> look();
  Task<> watch();
  Task<> watch_for_end(TaskGroup& tasks);
  InformerOptions informer_options() const;

  Executor executor_;
  Client& client_;
  WatchedKind what_;
  Options options_;
  Callbacks callbacks_;
  Metrics& metrics_;
  std::string program_;
  std::string cluster_;
  Log log_{"kinds"};
  RepeatFilter repeats_{std::chrono::minutes(1)};
  State state_ = State::unknown;
  std::string last_error_;  // of discovery
  std::optional<Informer> informer_;
};

}  // namespace gitops::k8s
