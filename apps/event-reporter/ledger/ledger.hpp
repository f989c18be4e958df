#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/core/async.hpp"
#include "common/core/backoff.hpp"
#include "common/core/log.hpp"
#include "common/core/lru_cache.hpp"
#include "common/core/metrics.hpp"
#include "common/core/task_group.hpp"
#include "common/core/worker_pool.hpp"
#include "event-reporter/ledger/ledger_entry.hpp"
#include "event-reporter/ledger/ledger_file.hpp"

namespace gitops::reporter {

// The state that the control plane has acknowledged, by key ("namespace/name" of an application, or a
// ResourceKey), kept through restarts. Loop thread only; a thread of its own reads and writes the file, so
// no call blocks the loop. The rows that were committed last stay in memory, within a limit.
//
// store() and erase() take effect at once in this object, and reach the file with the next commit. A
// committed change survives a kill of the process; a power failure may lose the last seconds, whose events
// are then sent again. While the file cannot be written, the newest entry of each key waits in memory and
// its write is retried. Reporting goes on when a mark beside the file can record that it lacks events: the
// next start then makes everything due, with sequences above all that may have been used.
class Ledger {
 public:
  struct Options {
    std::string path;                                // empty: keep it in memory only
    std::chrono::milliseconds commit_interval{100};  // time from the first change to its commit
    std::size_t commit_early = 500;                  // waiting changes that start a commit at once
    Backoff::Options retry{.initial = std::chrono::milliseconds(200),
                           .max = std::chrono::seconds(10)};
  };
  // Returns the group of a key, see floor(key). Empty: there are no groups.
  using GroupOf = std::function<std::string(std::string_view key)>;
  Ledger(const Executor& executor, Options options, Metrics& metrics, GroupOf group_of = {});
  // Blocks until a running commit has ended, up to 2 s. Unflushed changes are lost.
  ~Ledger() = default;
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  // Opens the file. Call it once, before anything else. Fails when another process uses the file,
  // when another program or a newer version made it, and when it cannot be read or written.
  Task<Result<void>> open();
  // Starts committing, as a task of `group`.
  void start(TaskGroup& group);

  // Returns the objects that this process reported, by key.
  [[nodiscard]] const std::unordered_map<std::string, LedgerHead>& known() const { return known_; }
  // Returns the objects that other replicas report (PeerInventory), by inventory_row(), which is
  // also the name for load(), store() and erase().
  [[nodiscard]] const std::map<std::string, LedgerHead, std::less<>>& inventory() const {
    return inventory_;
  }
  // Returns the entry as it was stored last; an empty one when it is missing or damaged. Fails
  // while the file cannot be read.
  Task<Result<LedgerEntry>> load(std::string key);
  void store(const std::string& key, const LedgerEntry& entry);
  // Stores the entry before its events are sent, and waits up to 2 s until it is in the file, or
  // else up to 2 s until the file is marked as one that lacks it. After an error the events must
  // not be sent: the next process would not know them.
  Task<Result<void>> write_ahead(const std::string& key, const LedgerEntry& entry);
  void erase(const std::string& key);

  // Returns a sequence above every known one of entries that were erased, or lost in a damaged file: an
  // object may come back under its uid. 0 while there was none.
  [[nodiscard]] Sequence floor() const { return floor_; }
  // Returns the floor of the entries of the key's group alone; it does not cover rows that could not
  // be read.
  [[nodiscard]] Sequence floor(std::string_view key) const;
  // Sets a callback for the loss of entries while running: the damaged file was set aside and
  // created again. known() and inventory() lack the lost entries by then.
  using OnRebuilt = std::function<void()>;
  void on_rebuilt(OnRebuilt rebuilt) { on_rebuilt_ = std::move(rebuilt); }

  // Returns a small text that is kept like the entries.
  [[nodiscard]] std::optional<std::string> note(const std::string& name) const;
  // Returns the names of the notes that begin with `prefix`.
  [[nodiscard]] std::vector<std::string> note_names(std::string_view prefix) const;
  void set_note(const std::string& name, std::string value);

  // Waits until everything that was stored before the call is in the file; retries until the
  // deadline. Requires start().
  Task<Result<void>> flush(Deadline deadline);
  // The reason why the last commit failed; empty when it did not.
  [[nodiscard]] const std::string& last_error() const { return last_error_; }
  // The reason why events wait for the file, which can neither be written nor marked; empty when
  // they do not.
  [[nodiscard]] const std::string& holds_events() const { return holds_events_; }
  // Number of entries that are not in the file yet.
  [[nodiscard]] std::size_t pending() const;

 private:
  [[nodiscard]] bool has(const std::string& key) const;
  void put(const std::string& key, std::optional<std::string> encoded);
  void changed();
  // Returns the entry that waits for a commit or is being committed; null when the file is up to
  // date.
  [[nodiscard]] const std::optional<std::string>* on_its_way(const std::string& key) const;
  // Moves the rows of a committed batch into memory.
  void keep(LedgerBatch& written);
  Task<Result<void>> mark(Sequence sequence);
  // Returns whether the file lacks nothing and may be marked.
  [[nodiscard]] bool may_end_mark() const {
    return may_be_marked_ && marking_ == 0 && durable_ == changes_;
  }
  Task<bool> end_mark();
  Task<> distrust_all(Sequence lacks_below);
  Task<> commit_loop();
  Task<bool> commit();
  void start_over(const std::string& why, const LedgerBatch& written);
  void rise_above_all();
  void rise_above(std::string_view row, Sequence sequence);
  void rise_above_in_group(std::string_view row, Sequence sequence);
  void count_failure(const sqlite::Fault& fault, std::string_view what);
  void update_gauges();

  Options options_;
  GroupOf group_of_;
  Metrics& metrics_;
  Log log_{"ledger"};
  RepeatFilter repeats_{std::chrono::minutes(1)};
  std::unordered_map<std::string, LedgerHead> known_;
  std::map<std::string, LedgerHead, std::less<>> inventory_;
  std::map<std::string, std::string> notes_;
  LedgerBatch waiting_;
  std::shared_ptr<LedgerBatch> in_commit_;  // being written by the file's thread
  LruCache<std::string> kept_;  // rows as the file has them; none that waits for a commit
  std::uint64_t changes_ = 0;   // calls of store(), erase() and set_note() so far
  std::uint64_t durable_ = 0;   // number of these changes that are in the file
  std::size_t flushing_ = 0;    // callers in flush()
  Event work_;                  // a change or a flush wants a commit
  Event committed_;             // a commit has succeeded or failed
  std::string last_error_;
  Sequence marked_below_ = 0;   // the file is marked as one that lacks events below this
  bool may_be_marked_ = false;  // also after a call of mark() that did not see its end
  std::size_t marking_ = 0;     // callers in mark()
  std::string holds_events_;

  std::size_t refused_ = 0;  // LedgerHead::refused of all rows
  Sequence highest_ = 0;     // LedgerEntry::sequence of all rows, also of removed ones
  Sequence floor_ = 0;
  std::map<std::string, Sequence, std::less<>> group_floors_;
  OnRebuilt on_rebuilt_;

  Gauge& rows_;
  Gauge& refused_events_;
  Gauge& file_bytes_;
  Gauge& pending_;
  Histogram& commit_seconds_;
  Counter& rebuilt_;
  Counter& damaged_rows_;

  std::shared_ptr<LedgerFile> file_;  // used by the pool's thread only
  WorkerPool pool_;                   // one thread
};

}  // namespace gitops::reporter
