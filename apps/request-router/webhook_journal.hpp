#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "common/core/error.hpp"
#include "common/core/log.hpp"
#include "common/core/metrics.hpp"
#include "common/core/time.hpp"
#include "request-router/webhook_store.hpp"

namespace gitops::router {

// -- records of a journal --

// Append the record of a webhook that has been stored since `since`, and of a removed one.
void append_kept_record(std::string& out, const KeptWebhook& webhook, WallTime since);
void append_gone_record(std::string& out, std::uint64_t id);

struct RecoveredWebhook {
  KeptWebhook webhook;  // with the id of the process that stored it, without `since`
  WallTime since{};
};
// Returns the webhooks that remain after all records, oldest first. Ignores the rest from the first
// incomplete or damaged record on, such as one being written when the machine stopped.
std::vector<RecoveredWebhook> replay(std::string_view journal);

// -- the file --

// Stores webhooks in its own file, in a folder that several routers may share, so that they survive
// the process. A running process takes over the journal of one that has ended.
//
// Records are only appended, by the journal's thread, and are on the disk (fdatasync) when
// `durable` is called. A file that consists mostly of records of removed webhooks is rewritten. The
// files contain the senders' requests, including tokens; only their owner may read them.
class WebhookJournal {
 public:
  struct Options {
    std::filesystem::path folder;
    std::size_t compact_above = 128 * 1024 * 1024;    // bytes
    std::chrono::milliseconds look_interval{10'000};  // for journals without a process
  };
  // Takes over the webhooks of another process under new ids; returns nothing while there is no
  // room for them. Called on the thread of open(), then on the journal's thread.
  using Recover =
      std::function<std::optional<std::vector<Kept>>(std::vector<RecoveredWebhook> found)>;

  // `errors` counts failed writes; it must outlive the journal.
  WebhookJournal(Options options, Recover recover, Counter& errors);
  // Writes the queued records. Removes a journal without webhooks.
  ~WebhookJournal();
  WebhookJournal(const WebhookJournal&) = delete;
  WebhookJournal& operator=(const WebhookJournal&) = delete;

  // Creates the folder and the file, and takes over existing journals. On a full disk the webhooks
  // are only in memory until it has room. Blocks. Call it once.
  Result<void> open();

  // Queue records, which are written in the order of the calls. Any thread. `durable` is called on
  // the journal's thread, or by gone() if the record was still queued. Its error means that the
  // record could not be written and the webhook is only in memory; it is written at a later
  // look_interval, when the disk takes it again.
  using Durable = std::function<void(const Result<void>& written)>;
  void keep(Kept webhook, Durable durable);
  void gone(std::uint64_t id);

 private:
  struct Job {
    Kept webhook;  // null: removes `id`
    std::uint64_t id = 0;
    Durable durable;
  };
  struct File {
    std::filesystem::path path;
    int descriptor = -1;
    std::size_t size = 0;
    // After a failed write or fdatasync it is unknown what the disk contains, so nothing more is
    // appended. A new file replaces it.
    bool is_damaged = false;
  };

  void run();
  void write(std::deque<Job> jobs);
  void write_again();
  void add_live(const Kept& webhook);
  Result<void> append(File& file, std::string_view record) const;
  Result<void> append_kept(File& file, const Kept& webhook) const;
  Result<void> append_gone(File& file, std::uint64_t id) const;
  Result<void> sync(File& file) const;
  [[nodiscard]] Result<File> create() const;
  void remove(File& file) const;
  bool compact();
  void look_for_others();
  void take_over(const std::filesystem::path& path);
  void remove_recovered();
  void report(const Error& error);

  const Options options_;
  const Recover recover_;
  Counter& errors_;
  RepeatFilter reports_{std::chrono::minutes(1)};
  // State of the journal's thread, once it runs.
  File file_;
  std::map<std::uint64_t, Kept> live_;  // webhooks with records in the file
  std::size_t live_bytes_ = 0;
  // Records that could not be written: webhooks, and removed ones (null), by their ids.
  std::map<std::uint64_t, Kept> unwritten_;
  // Others' journals whose webhooks were taken over but are not all in the file yet, or that could
  // not be removed, and the descriptors that lock them against further processes.
  std::map<std::filesystem::path, int> recovered_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  bool stopping_ = false;
  std::jthread thread_;
};

}  // namespace gitops::router
