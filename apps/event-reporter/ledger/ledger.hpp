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

#include "common/core/async.hpp"
#include "common/core/backoff.hpp"
#include "common/core/log.hpp"
#include "common/core/metrics.hpp"
#include "common/core/task_group.hpp"
#include "common/core/worker_pool.hpp"
#include "event-reporter/ledger/ledger_entry.hpp"
#include "event-reporter/ledger/ledger_file.hpp"

namespace gitops::reporter {

// What the control plane has acknowledged, per application ("namespace/name"), kept through
// restarts. Loop thread only; the file is read and written on a thread of its own, so nothing here
// blocks the loop.
//
// store() and erase() count at once for everybody who asks this object; they reach the file with
// the next commit, and survive a kill of the process from then on (a loss of power may take the
// last seconds: what they told is then reported again). What can't be written now stays here, one
// entry per application, and is tried again: reporting goes on.
class Ledger {
 public:
  struct Options {
    std::string path;                                // empty: keep it in memory only
    std::chrono::milliseconds commit_interval{100};  // from the first change to its commit
    std::size_t commit_early = 500;                  // changes that do not wait that long
    Backoff::Options retry{.initial = std::chrono::milliseconds(200),
                           .max = std::chrono::seconds(10)};
  };
  Ledger(const Executor& executor, Options options, Metrics& metrics);
  // Blocks until a commit that is under way has ended, up to 2 s. What was not flushed is lost.
  ~Ledger() = default;
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  // Once, before everything else. An error ends the start: the file is in use by another process,
  // made by a newer version, not ours, or not to be read and written.
  Task<Result<void>> open();
  // Commits from now on, as a task of `group`.
  void start(TaskGroup& group);

  // Every application that this process reported, by its key.
  [[nodiscard]] const std::unordered_map<std::string, LedgerHead>& known() const { return known_; }
  // What it saw of those that others report, by inventory_row(). An entry of these is loaded, stored
  // and erased by that name.
  [[nodiscard]] const std::map<std::string, LedgerHead, std::less<>>& inventory() const {
    return inventory_;
  }
  // The entry as it was stored last; an empty one when there is none, or only a damaged one. An
  // error when the file can't be read now: try again later.
  Task<Result<LedgerEntry>> load(std::string key);
  void store(const std::string& key, const LedgerEntry& entry);
  // Stores the entry ahead of the events that it is about, and waits up to 2 s until it is in the
  // file. A file that cannot be written holds nothing up.
  Task<> write_ahead(const std::string& key, const LedgerEntry& entry);
  void erase(const std::string& key);

  // Small texts beside the entries, kept just as durably.
  [[nodiscard]] std::optional<std::string> note(const std::string& name) const;
  void set_note(const std::string& name, std::string value);

  // Waits until everything that was stored before is in the file, trying again until the deadline.
  // Needs the task of start().
  Task<Result<void>> flush(Deadline deadline);
  // Why nothing can be committed now; empty when all is well.
  [[nodiscard]] const std::string& trouble() const { return trouble_; }
  // Entries that are not in the file yet.
  [[nodiscard]] std::size_t pending() const;

 private:
  [[nodiscard]] bool has(const std::string& key) const;
  void put(const std::string& key, std::optional<std::string> encoded);
  void changed();
  // The entry that is on its way to the file; null when the file has what there is.
  [[nodiscard]] const std::optional<std::string>* on_its_way(const std::string& key) const;
  Task<> commit_loop();
  Task<bool> commit();
  void start_over(const std::string& why, const LedgerBatch& written);
  void count_failure(const sqlite::Fault& fault, std::string_view what);
  void update_gauges();

  Options options_;
  Metrics& metrics_;
  Log log_{"ledger"};
  RepeatFilter repeats_{std::chrono::minutes(1)};
  std::unordered_map<std::string, LedgerHead> known_;
  std::map<std::string, LedgerHead, std::less<>> inventory_;
  std::map<std::string, std::string> notes_;
  LedgerBatch waiting_;
  std::shared_ptr<LedgerBatch> in_commit_;  // what the file's thread writes now
  std::uint64_t changes_ = 0;               // stored, erased or noted
  std::uint64_t durable_ = 0;               // the first so many of them are in the file
  std::size_t flushing_ = 0;                // how many wait in flush()
  Event work_;                              // there is something to commit, or somebody flushes
  Event committed_;                         // an attempt has ended
  std::string trouble_;

  Gauge& rows_;
  Gauge& file_bytes_;
  Gauge& pending_;
  Histogram& commit_seconds_;
  Counter& rebuilt_;
  Counter& damaged_rows_;

  std::shared_ptr<LedgerFile> file_;  // its thread's alone
  WorkerPool pool_;                   // with one thread
};

}  // namespace gitops::reporter
