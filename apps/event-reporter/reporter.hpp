#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/core/async.hpp"
#include "common/core/backoff.hpp"
#include "common/core/log.hpp"
#include "common/core/metrics.hpp"
#include "common/core/task_group.hpp"
#include "common/core/work_queue.hpp"
#include "common/daemon/daemon.hpp"
#include "common/platform/client.hpp"
#include "event-reporter/acknowledged.hpp"
#include "event-reporter/credential.hpp"
#include "event-reporter/gather.hpp"
#include "event-reporter/shard.hpp"
#include "k8s-client/informer.hpp"

namespace gitops::reporter {

// Reports every change of the applications of one shard to the control plane.
//
// The informer says that an application changed; its key becomes dirty, with the text that came
// with the change as long as there is room for texts. The queue holds keys only; a key that it
// refuses stays dirty and enters when there is room. A worker takes a key, gathers, and posts what
// differs from what the control plane has acknowledged: the application first, then its resources,
// some of them at a time. A failure puts the key back with a delay, whatever its reason: nothing is
// dropped. Two workers never hold the same application, so its reports leave in order.
//
// Loop thread only. Runs as tasks of the group given to start(); what is passed in outlives it.
class Reporter {
 public:
  struct Options {
    std::string own_namespace;
    std::vector<std::string> application_namespaces;  // patterns; empty: only the own namespace
    Shard shard;
    std::size_t queue_size = 1000;
    unsigned max_attempts = 5;  // to deliver one event before its application goes back
    std::size_t workers = 16;
    std::size_t resource_workers = 10;
    std::size_t kept_text = std::size_t{16} * 1024 * 1024;  // bytes, over all dirty keys
    Backoff::Options post_backoff{.initial = std::chrono::milliseconds(200),
                                  .max = std::chrono::seconds(5)};
    Backoff::Options key_backoff{.initial = std::chrono::milliseconds(500),
                                 .max = std::chrono::seconds(30)};
    // Between attempts to get what Argo CD keeps failing to say about one application.
    std::chrono::milliseconds gap_retry = std::chrono::minutes(5);
    k8s::Reflector::Options reflector;
  };
  Reporter(const Executor& executor, k8s::Client& kubernetes, Gatherer& gatherer,
           platform::Client& platform, Credential& platform_token, Options options,
           Metrics& metrics);

  void start(TaskGroup& group);
  // No further application is taken up; reports that are under way go on.
  void stop() { queue_.stop(); }
  // Applications that are being reported right now.
  [[nodiscard]] std::size_t in_work() const { return queue_.in_work(); }

  [[nodiscard]] std::vector<ReadyCheck> ready_checks();
  // For /statusz.
  [[nodiscard]] std::string status() const;

 private:
  // What is to be reported about one application.
  struct Dirty {
    Clock::time_point since;
    bool live = false;      // it exists, as far as we know
    std::string text;       // its last text, when kept
    std::string tombstone;  // the last text of one that was deleted; reported before the live one
  };
  // Where the time of a report went and how it ended is told by metrics and the log, not by this.
  using Outcome = Result<void>;

  void on_change(const k8s::Change& change);
  void mark(const std::string& key, Dirty& dirty);
  void keep_text(std::string& slot, std::string_view text);
  void drop_text(std::string& slot);
  void refill();
  [[nodiscard]] Dirty take(const std::string& key);
  void give_back(const std::string& key, Dirty dirty);

  Task<> work();
  Task<> tick();
  Task<Outcome> report(const std::string& key, Dirty& dirty);
  Task<Outcome> report_live(const std::string& key, std::string text);
  Task<Outcome> report_gone(const std::string& key, std::string text);
  Task<Outcome> post_resources(const std::string& key, const Report& report,
                               std::vector<std::size_t> changed, std::vector<ResourceId> gone,
                               WallTime now);
  // One event, with its retries. `part` names it in metrics.
  Task<Outcome> deliver(std::string_view part, std::string body, std::string event_id);
  [[nodiscard]] Backoff& backoff_of(const std::string& key);
  // The failure, with a long wait once the key has failed often: it is about this application.
  [[nodiscard]] Error lasting(const std::string& key, Error error);
  // A peer is of use again: nothing that waits for it needs to wait any longer.
  void bring_forward();
  void count_error(std::string_view peer, const Error& error);
  void log_failure(std::string_view key, const Error& error, Clock::duration delay);
  [[nodiscard]] Clock::duration oldest_dirty(Clock::time_point now) const;
  void give_memory_back();

  Executor executor_;
  Gatherer& gatherer_;
  platform::Client& platform_;
  Credential& platform_token_;
  Options options_;
  Metrics& metrics_;
  Log log_{"reporter"};
  RepeatFilter repeats_{std::chrono::seconds(5)};

  WorkQueue queue_;
  std::map<std::string, Dirty> dirty_;
  std::set<std::string> overdue_;  // dirty keys that the queue refused
  std::unordered_map<std::string, Clock::time_point>
      in_work_since_;  // dirty since, of keys in work
  std::size_t kept_bytes_ = 0;
  std::size_t reported_ = 0;                      // since memory was given back last
  std::unordered_map<std::string, Digest> seen_;  // change_digest of each application's last text
  std::unordered_map<std::string, Backoff> backoffs_;
  Acknowledged acknowledged_;
  k8s::Informer informer_;

  std::string platform_trouble_;
  bool argocd_well_ = true;  // as of the last tick
  std::optional<WallTime> last_acknowledgement_;
  std::map<std::string, std::string> last_errors_;  // by peer, with their time

  Gauge& queue_size_;
  Gauge& overdue_size_;
  Gauge& oldest_dirty_;
  Gauge& applications_;
  Counter& unchanged_;
  Histogram& report_seconds_;
};

}  // namespace gitops::reporter
