#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "common/core/async.hpp"
#include "common/core/metrics.hpp"
#include "common/core/task_group.hpp"
#include "k8s-client/client.hpp"
#include "k8s-client/record.hpp"
#include "k8s-client/reflector.hpp"

namespace gitops::k8s {

// A change of the store, already applied.
struct Change {
  enum class Type { added, modified, deleted } type;
  const Record* before;  // null when added
  const Record* now;     // the last known state when deleted
  // The object's JSON as received, valid during the callback. Empty for a deletion that was found
  // by difference or whose object could not be read, and for objects that were in the store when
  // the subscriber came. To keep the text, include the field "".
  std::string_view text;
};

struct InformerOptions {
  Resource resource;
  std::string ns = {};  // empty: all namespaces
  std::string label_selector = {};
  std::string field_selector = {};
  FieldSet fields;
  ObjectDecoder::Keep keep = {};  // objects that it refuses are not stored
  ObjectLimits limits = {};
  Metrics::Labels metric_labels = {};  // besides "resource"; two informers need different ones
  Reflector::Options reflector = {};
  // Time limit for a page of a list, and for a streaming list as a whole.
  std::chrono::milliseconds list_timeout{60'000};
  // A watch is reopened when nothing arrives for its timeout plus `watch_grace` or, once the server
  // has sent a bookmark, for `bookmark_silence`. Bookmarks arrive about every minute.
  std::chrono::milliseconds watch_grace{30'000};
  std::chrono::milliseconds bookmark_silence{180'000};
};

// A live, trimmed copy of one resource type, kept current by a Reflector through one watch for any
// number of subscribers. Guarantees, as those of client-go's shared informer:
//
// - Callbacks run on the loop thread, one at a time, in the order of the API server's events;
//   subscribers are called in the order of their subscription. Within an epoch, a watch never
//   delivers an older version of an object.
// - The store already has the new state when the callback runs.
// - Changes may be merged: a list after a gap shows only the latest state. An object that was
//   deleted and created again is delivered as deleted, then added, even if both were missed.
// - Every object that exists when has_synced() becomes true has been delivered. An object that
//   disappeared while the watch was down is delivered as deleted once, after the next *complete*
//   list, never after an incomplete one.
// - An object with an unchanged resourceVersion is not delivered again, except after a restore.
// - When the API server was restored from a backup, a new epoch begins: every object is delivered
//   again, and versions may be older than before, or the same for another state.
// - A quarantined object is counted and logged, keeps its last good record, and is not taken for
//   deleted while its name can be read.
//
// Metrics, with the label resource and those of the options:
// gitops_<program>_watch_events_total{type}, …_relists_total{reason}, …_errors_total{code},
// …_quarantined_total, …_objects, …_last_event_timestamp_seconds.
//
// Runs as one task of a group until that is cancelled; outlives the task. A callback that throws
// ends the task as a failure. Loop thread only.
class Informer {
 public:
  using OnChange = std::function<void(const Change&)>;
  // The subscription ends with the last copy, which may be destroyed in a callback or after the
  // informer.
  using Subscription = std::shared_ptr<const void>;

  // `program` is a part of the metrics' names. `client` and `metrics` outlive the informer.
  Informer(const Executor& executor, Client& client, InformerOptions options, Metrics& metrics,
           const std::string& program);
  ~Informer();

  // Calls `on_change` for every change from now on, and, before it returns, for each object of the
  // store, as added.
  [[nodiscard]] Subscription subscribe(OnChange on_change);

  void start(TaskGroup& group);

  // Returns true after the first complete list.
  [[nodiscard]] bool has_synced() const;
  // Waits for has_synced(); false when the deadline passes first.
  Task<bool> wait_synced(Deadline deadline);
  // The last failure, because of which the copy may be stale; empty while list or watch work.
  [[nodiscard]] const std::string& last_error() const;
  // Number of detected restores of the API server from a backup. Incremented before the first
  // change of the new epoch is delivered.
  [[nodiscard]] std::uint64_t epoch() const;

  // Returns a record, or null; valid until the loop runs other work.
  [[nodiscard]] const Record* find(const ObjectKey& key) const;
  [[nodiscard]] std::size_t size() const;
  // Calls `visit`, which must not wait, for each record in no particular order.
  void for_each(const std::function<void(const Record&)>& visit) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Returns the resourceVersion that the API server has for the collection now. It lists one object
// without a version, which etcd serves by quorum. `client` and `resource` outlive the call.
Task<Result<std::string>> newest_version(Client& client, const Resource& resource, std::string ns,
                                         Deadline deadline);

}  // namespace gitops::k8s
