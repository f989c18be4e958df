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

// A change that the store has just taken in.
struct Change {
  enum class Type { added, modified, deleted } type;
  const Record* before;  // null when added
  const Record* now;     // the last known state when deleted
  // The object's JSON as received, valid during the callback. Empty when nothing was received: for
  // a deletion that was found by difference or whose object could not be read, and for what a
  // subscriber is told of the store when it arrives late. Ask for the field "" to keep the text.
  std::string_view text;
};

struct InformerOptions {
  Resource resource;
  std::string ns = {};  // empty: all namespaces
  std::string label_selector = {};
  std::string field_selector = {};
  FieldSet fields;
  ObjectDecoder::Keep keep = {};  // objects it refuses are never stored
  ObjectLimits limits = {};
  Metrics::Labels metric_labels = {};  // besides "resource"; two informers need different ones
  Reflector::Options reflector = {};
  // For a page of a list, and between two pieces of a streaming list.
  std::chrono::milliseconds list_timeout{60'000};
  // A watch is cut when it is silent for longer than its timeout by this much, or, once the server
  // has sent a bookmark, for `bookmark_silence`: bookmarks come about every minute.
  std::chrono::milliseconds watch_grace{30'000};
  std::chrono::milliseconds bookmark_silence{180'000};
};

// A live, trimmed copy of one resource type, kept current by a Reflector through one watch for any
// number of subscribers. Guarantees, as client-go's shared informer gives them:
//
// - Callbacks come on the loop thread, one at a time, in the order in which the API server sent the
//   changes; subscribers are called in the order in which they came. Within an epoch a watch never
//   brings an older version of an object.
// - The store already holds the new state when the callback runs.
// - Changes may be merged: a list after a gap shows only the latest state. An object that was
//   deleted and made anew arrives as deleted, then added, also when nobody saw it go.
// - Every object that exists when has_synced() turns true was delivered before. An object that
//   vanished while the watch was down is delivered as deleted, once, after the next *complete*
//   list, never on an incomplete one.
// - An object seen again with an unchanged resourceVersion is not delivered, except after a
// restore.
// - When the API server was restored from a backup, a new epoch begins: every object is delivered
//   again, and versions may be older than before, or the same for another state.
// - A quarantined object is counted and logged, keeps its last good record, and is never taken for
//   deleted while its name can be read.
//
// Metrics, with the label resource and those of the options:
// gitops_<program>_watch_events_total{type}, …_relists_total{reason}, …_errors_total{code},
// …_quarantined_total, …_objects, …_last_event_timestamp_seconds.
//
// Runs as one task of `group`; ends when that is cancelled, and outlives it. A callback that throws
// ends the task as a failure. Loop thread only.
class Informer {
 public:
  using OnChange = std::function<void(const Change&)>;
  // Ends with its last copy, which may go within a callback and after the informer.
  using Subscription = std::shared_ptr<const void>;

  // `program` as it stands in the metrics' names. `client` and `metrics` outlive the informer.
  Informer(const Executor& executor, Client& client, InformerOptions options, Metrics& metrics,
           const std::string& program);
  ~Informer();

  // Tells `on_change` every change from now on. What the store holds already is told within this
  // call, as added.
  [[nodiscard]] Subscription subscribe(OnChange on_change);

  void start(TaskGroup& group);

  // True from the first complete list on.
  [[nodiscard]] bool has_synced() const;
  // Waits for has_synced(), at most until the deadline.
  Task<bool> wait_synced(Deadline deadline);
  // Why the copy may be stale right now: the last failure, empty while list or watch work.
  [[nodiscard]] const std::string& trouble() const;
  // How often the API server was found to be restored from a backup. Has its new value when the
  // first change of the new epoch is delivered.
  [[nodiscard]] std::uint64_t epoch() const;

  // Valid until the loop runs other work.
  [[nodiscard]] const Record* find(const ObjectKey& key) const;
  [[nodiscard]] std::size_t size() const;
  // `visit` must not wait for anything. No order.
  void for_each(const std::function<void(const Record&)>& visit) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gitops::k8s
