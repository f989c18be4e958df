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
#include <set>
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

// -- the bytes of a journal --

// Appends the record of a webhook that is kept since that time, or of one that need not be kept any more.
void append_kept_record(std::string& out, const KeptWebhook& webhook, WallTime since);
void append_gone_record(std::string& out, std::uint64_t id);

struct RecoveredWebhook {
  KeptWebhook webhook;  // with the id of the process that kept it, and without `since`
  WallTime since{};
};
// The webhooks that the records leave, oldest first. Whatever follows the first record that is incomplete
// or damaged, such as one that was being written when the machine stopped, is ignored.
std::vector<RecoveredWebhook> replay(std::string_view journal);

// -- the file --

// Keeps webhooks in a file of its own in a folder that several routers may share, so that they survive
// the process. The journal of a process that is gone is taken over by one that runs.
//
// Records are only appended, by a thread of its own, and are on the disk (fdatasync) when `durable` is
// called. A file that mostly holds records of webhooks that are gone is rewritten. The files hold
// what senders sent, tokens included; only their owner may read them.
class WebhookJournal {
 public:
  struct Options {
    std::filesystem::path folder;
    std::size_t compact_above = 128 * 1024 * 1024;    // bytes
    std::chrono::milliseconds look_interval{10'000};  // for journals that nobody has
  };
  // Takes over what another process left, under new ids; nothing when there is no room for it yet. On
  // the thread that calls open(), and then on the journal's.
  using Recover =
      std::function<std::optional<std::vector<Kept>>(std::vector<RecoveredWebhook> found)>;

  // `errors` counts failed writes; it outlives the journal.
  WebhookJournal(Options options, Recover recover, Counter& errors);
  // Writes what is queued. A journal without webhooks is removed.
  ~WebhookJournal();
  WebhookJournal(const WebhookJournal&) = delete;
  WebhookJournal& operator=(const WebhookJournal&) = delete;

  // Makes the folder and the file, and takes over journals that are there. Blocks. Once.
  Result<void> open();

  // Any thread; records are written in the order of the calls. `durable` is called on the journal's
  // thread: with an error when the disk does not take the record, which is then only in memory.
  using Durable = std::function<void(const Result<void>& written)>;
  void keep(Kept webhook, Durable durable);
  void gone(std::uint64_t id);

 private:
  struct Job {
    Kept webhook;  // null: `id` is gone
    std::uint64_t id = 0;
    Durable durable;
  };
  struct File {
    std::filesystem::path path;
    int descriptor = -1;
    std::size_t size = 0;
  };

  void run();
  void write(std::deque<Job> jobs);
  Result<void> append(File& file, std::string_view record) const;
  Result<void> append_kept(File& file, const Kept& webhook) const;
  Result<void> sync(const File& file) const;
  [[nodiscard]] Result<File> create() const;
  void remove(File& file) const;
  void compact();
  void look_for_others();
  void take_over(const std::filesystem::path& path);
  void report(const Error& error);

  const Options options_;
  const Recover recover_;
  Counter& errors_;
  RepeatFilter reports_{std::chrono::minutes(1)};
  // Of the journal's thread, once it runs.
  File file_;
  std::map<std::uint64_t, Kept> live_;  // whose records are in the file
  std::size_t live_bytes_ = 0;
  std::set<std::filesystem::path> recovered_;  // of others, that could not be removed

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  bool stopping_ = false;
  std::jthread thread_;
};

}  // namespace gitops::router
