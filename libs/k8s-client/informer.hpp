#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "common/core/async.hpp"
#include "common/core/log.hpp"
#include "common/core/metrics.hpp"
#include "common/core/task_group.hpp"
#include "k8s-client/client.hpp"
#include "k8s-client/reflector.hpp"
#include "k8s-client/watch.hpp"

namespace gitops::k8s {

// A change that the store has just taken in.
struct Change {
  enum class Type { added, modified, deleted } type;
  const Record* before;   // null when added
  const Record* now;      // the last known state when deleted
  // The object's JSON as received, valid during the callback; empty when a deletion was found by
  // difference (the object is gone, only `now` is left).
  std::string_view text;
};

struct InformerOptions {
  Resource resource;
  std::string ns;  // empty: all namespaces
  std::string label_selector;
  FieldSet fields;
  ObjectDecoder::Keep keep;  // objects it refuses are never stored
  ObjectLimits limits;
  Reflector::Options reflector;
  std::chrono::seconds initial_list_timeout{60};  // of a streaming list, between events
};

// A live, trimmed copy of one resource type, kept current by a Reflector. Guarantees, as client-go's
// shared informer gives them:
//
// - Callbacks come on the loop thread, one at a time, in the order in which the API server sent the
//   changes; per object versions never go back.
// - The store already holds the new state when the callback runs.
// - Changes may be merged (a re-list shows only the latest), an object that was deleted and made
//   anew between two lists arrives as `modified` with another uid... as deleted, then added.
// - Every object that exists when has_synced() turns true was delivered before; an object that
//   vanished while the watch was down is delivered as deleted, once, after the next *complete* list,
//   never on an incomplete one.
// - An object seen again with an unchanged resourceVersion is not delivered.
// - A quarantined object is counted and logged, keeps its last good record, and is never taken for
//   deleted while its name can be read.
//
// Runs as one task of `group`; ends when that is cancelled.
class Informer {
 public:
  using OnChange = std::function<void(const Change&)>;

  // `program` prefixes the metrics: gitops_<program>_watch_….
  Informer(const Executor& executor, Client& client, InformerOptions options, OnChange on_change,
           Metrics& metrics, const std::string& program);
  ~Informer();

  void start(TaskGroup& group);

  [[nodiscard]] bool has_synced() const;
  // Waits for has_synced(), at most until the deadline.
  Task<bool> wait_synced(Deadline deadline);
  // Why the copy may be stale right now: the last failure, empty while list or watch work.
  [[nodiscard]] const std::string& trouble() const { return trouble_; }

  [[nodiscard]] const Record* find(const ObjectKey& key) const;
  [[nodiscard]] std::size_t size() const;
  void for_each(const std::function<void(const Record&)>& visit) const;

 private:
  Task<> run();
  Task<> run_list(const Reflector::Action& action);
  Task<> run_watch(const Reflector::Action& action);
  void apply(Record&& record, std::string_view text);
  void remove(const ObjectKey& key, std::string_view text);
  void finish_list();
  void report_trouble(const Error& error, std::string_view doing);

  struct State;
  std::unique_ptr<State> state_;
  std::string trouble_;
};

}  // namespace gitops::k8s
