#include "event-reporter/ledger/ledger.hpp"

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <utility>
#include <vector>

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>

namespace gitops::reporter {
namespace {

constexpr auto kWriteAheadTimeout = std::chrono::seconds(2);
// Time within which callers of flush() share a commit.
constexpr auto kFlushPeriod = std::chrono::milliseconds(10);
// Distance of a mark above the sequence that needs it, in microseconds, so that it is written at
// most once a second. Less than the margin between the sequences of two holders of a shard
// (ShardLeases).
constexpr Sequence kMarkAhead = 1'000'000;
// Longest pause after a failed commit while a caller waits in flush().
constexpr auto kFlushRetry = std::chrono::milliseconds(200);
// Limit of the rows that are kept in memory, in bytes: those of 10,000 applications with 20 resources each. A read of
// the file costs two switches of threads, and an application changes many times during a sync.
constexpr std::size_t kKeptBytes = std::size_t{8} << 20;
constexpr std::size_t kMaxReads = 1'000;  // that wait for the file; the default size of the queue
// The name of the note with Ledger::floor() as a decimal number; followed by the name of a group, the
// note of the group's floor.
constexpr const char* kFloorNote = "sequence floor";
constexpr std::string_view kGroupFloorNote = "sequence floor of ";

// Counts the callers of a function.
struct Counted {
  explicit Counted(std::size_t& c) : count(c) { ++count; }
  ~Counted() { --count; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  std::size_t& count;
};

Sequence read_floor(const std::optional<std::string>& note) {
  Sequence floor = 0;
  if (note) std::from_chars(note->data(), note->data() + note->size(), floor);
  return floor;
}

}  // namespace

Ledger::Ledger(const Executor& executor, Options options, Metrics& metrics, GroupOf group_of)
    : options_(std::move(options)),
      group_of_(std::move(group_of)),
      metrics_(metrics),
      kept_(kKeptBytes),
      work_(executor),
      committed_(executor),
      rows_(metrics.gauge("gitops_event_reporter_ledger_rows",
                          "Entries of the ledger: objects that this process reported")),
      refused_events_(metrics.gauge("gitops_event_reporter_refused_events",
                                    "Events that the control plane refused for good, and that are "
                                    "not sent again while their content stays the same")),
      file_bytes_(metrics.gauge("gitops_event_reporter_ledger_file_bytes",
                                "Size of the ledger's file, including its write-ahead log")),
      pending_(metrics.gauge("gitops_event_reporter_ledger_pending_rows",
                             "Entries of the ledger that are not in its file yet")),
      commit_seconds_(metrics.histogram("gitops_event_reporter_ledger_commit_seconds",
                                        "Duration of a commit of the ledger",
                                        {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5})),
      rebuilt_(metrics.counter("gitops_event_reporter_ledger_rebuilt_total",
                               "Damaged ledger files that were set aside and replaced")),
      damaged_rows_(metrics.counter("gitops_event_reporter_ledger_damaged_rows_total",
                                    "Damaged entries of the ledger that were dropped")),
      file_(std::make_shared<LedgerFile>(options_.path)),
      pool_({.name = "ledger", .threads = 1, .max_queued = kMaxReads}, metrics) {}

Task<Result<void>> Ledger::open() {
  auto opened = co_await pool_.run(kNever, [file = file_](const std::stop_token&) {
    auto contents = file->open();
    return std::pair(std::move(contents), file->bytes());
  });
  if (!opened) co_return std::unexpected(opened.error());
  auto& [contents, bytes] = *opened;
  if (!contents) co_return std::unexpected(contents.error());
  for (auto& [row, head] : contents->heads) {
    refused_ += head.refused.size();
    highest_ = std::max(highest_, head.sequence);
    if (is_inventory_row(row)) inventory_.emplace(row, std::move(head));
  }
  known_ = std::move(contents->heads);
  std::erase_if(known_, [](const auto& row) { return is_inventory_row(row.first); });
  notes_ = std::move(contents->notes);
  floor_ = read_floor(note(kFloorNote));
  for (const auto& [name, value] : notes_) {
    if (!name.starts_with(kGroupFloorNote)) continue;
    group_floors_.emplace(name.substr(kGroupFloorNote.size()), read_floor(value));
  }
  file_bytes_.Set(static_cast<double>(bytes));
  update_gauges();
  if (!contents->rebuilt.empty()) {
    rebuilt_.Increment();
    log_.error("the ledger was damaged, was set aside and recreated: everything is reported again",
               {{"reason", contents->rebuilt}});
  }
  if (contents->damaged_rows > 0) {
    rise_above_all();
    damaged_rows_.Increment(static_cast<double>(contents->damaged_rows));
    log_.error("damaged entries of the ledger were dropped: their applications are reported again",
               {{"entries", contents->damaged_rows}});
  }
  if (contents->lacks_below > 0) co_await distrust_all(contents->lacks_below);
  co_return Result<void>();
}

// Makes everything due. The previous process sent events that the file lacks: of objects that may
// have returned to the state of their entries since, or that may have been deleted.
Task<> Ledger::distrust_all(Sequence lacks_below) {
  log_.error(
      "the ledger lacks events that were sent while it could not be written: everything is "
      "reported again",
      {{"entries", known_.size()}});
  floor_ = std::max(floor_, lacks_below);
  set_note(kFloorNote, std::to_string(floor_));
  std::vector<std::string> keys;
  for (const auto& [key, head] : known_) keys.push_back(key);
  for (const auto& key : keys) {
    auto entry = co_await load(key);
    // The first commit finds that an unreadable file is damaged.
    if (!entry) continue;
    entry->distrust();
    store(key, *entry);
  }
  may_be_marked_ = true;
}

void Ledger::start(TaskGroup& group) {
  group.spawn("ledger", [this] { return commit_loop(); });
}

Task<Result<LedgerEntry>> Ledger::load(std::string key) {
  const auto* newest = on_its_way(key);
  std::expected<LedgerFile::Read, sqlite::Fault> read = LedgerFile::Read{};
  if (newest == nullptr) {
    if (!has(key)) co_return LedgerEntry{};
    if (const auto* row = kept_.find(key)) co_return decode_entry(*row);
    auto done = co_await pool_.run(
        kNever, [file = file_, key](const std::stop_token&) { return file->read(key); });
    if (!done) co_return std::unexpected(done.error());
    read = std::move(*done);
    newest = on_its_way(key);  // it may have been stored during the read
  }
  if (newest != nullptr) {
    if (!*newest) co_return LedgerEntry{};
    co_return decode_entry(**newest);
  }
  if (!read) {
    count_failure(read.error(), "the ledger can't be read");
    // The next commit replaces the damaged file.
    if (read.error().kind == sqlite::Fault::Kind::damaged) changed();
    co_return fail(ErrorCode::unavailable, read.error().message);
  }
  if (read->damaged) {
    rise_above_all();
    damaged_rows_.Increment();
    log_.error("a damaged entry of the ledger was dropped: its application is reported again",
               {{"application", key}});
    erase(key);
  }
  co_return std::move(read->entry).value_or(LedgerEntry{});
}

void Ledger::store(const std::string& key, const LedgerEntry& entry) {
  auto bytes = encode(entry);
  if (bytes.size() > kMaxEntryBytes) {
    log_.error("an application is too large for the ledger: each change reports all of it",
               {{"application", key}, {"bytes", bytes.size()}});
    erase(key);
    rise_above(key, entry.sequence);
    return;
  }
  auto& head = is_inventory_row(key) ? inventory_[key] : known_[key];
  refused_ -= head.refused.size();
  head = head_of(entry);
  refused_ += head.refused.size();
  highest_ = std::max(highest_, entry.sequence);
  put(key, std::move(bytes));
}

Task<Result<void>> Ledger::write_ahead(const std::string& key, const LedgerEntry& entry) {
  const auto sequence = entry.sequence;
  store(key, entry);
  if (last_error_.empty() && co_await flush(deadline_after(kWriteAheadTimeout))) {
    co_return Result<void>();
  }
  co_return co_await mark(sequence);
}

// Marks the file as one that lacks an event with this sequence.
Task<Result<void>> Ledger::mark(Sequence sequence) {
  if (sequence < marked_below_) co_return Result<void>();
  const Counted marking(marking_);
  may_be_marked_ = true;
  const auto below = std::max(highest_, sequence) + kMarkAhead;
  auto done = co_await pool_.run(
      deadline_after(kWriteAheadTimeout),
      [file = file_, below](const std::stop_token&) { return file->set_lacks_below(below); });
  work_.notify_all();
  if (done && *done) {
    marked_below_ = std::max(marked_below_, below);
    holds_events_.clear();
    co_return Result<void>();
  }
  auto why = done ? done->error() : sqlite::Fault{.message = done.error().message};
  holds_events_ = why.message;
  count_failure(why, "the ledger can neither be written nor marked: events wait");
  co_return fail(ErrorCode::unavailable, std::move(why.message));
}

// Removes the mark; returns false when it is still there.
Task<bool> Ledger::end_mark() {
  marked_below_ = 0;
  may_be_marked_ = false;
  auto done = co_await pool_.run(
      kNever, [file = file_](const std::stop_token&) { return file->set_lacks_below(0); });
  if (done && *done) co_return true;
  may_be_marked_ = true;
  co_return false;
}

void Ledger::erase(const std::string& key) {
  if (!has(key)) return;
  const auto& head = is_inventory_row(key) ? inventory_.at(key) : known_.at(key);
  refused_ -= head.refused.size();
  rise_above(key, head.sequence);
  known_.erase(key);
  inventory_.erase(key);
  put(key, std::nullopt);
}

Sequence Ledger::floor(std::string_view key) const {
  if (!group_of_ || group_floors_.empty()) return 0;
  const auto found = group_floors_.find(group_of_(key_of_row(key)));
  return found == group_floors_.end() ? 0 : found->second;
}

// Raises the floor above all sequences, since unknown rows were lost.
void Ledger::rise_above_all() {
  if (highest_ < floor_) return;
  floor_ = highest_ + 1;
  set_note(kFloorNote, std::to_string(floor_));
}

// Raises the floor above the sequence of an object that no longer has an entry.
void Ledger::rise_above(std::string_view row, Sequence sequence) {
  rise_above_in_group(row, sequence);
  if (sequence < floor_) return;
  floor_ = sequence + 1;
  set_note(kFloorNote, std::to_string(floor_));
}

void Ledger::rise_above_in_group(std::string_view row, Sequence sequence) {
  if (!group_of_ || sequence == 0) return;
  auto group = group_of_(key_of_row(row));
  auto& floor = group_floors_[group];
  if (sequence < floor) return;
  floor = sequence + 1;
  set_note(std::string(kGroupFloorNote) + group, std::to_string(floor));
}

bool Ledger::has(const std::string& key) const {
  return is_inventory_row(key) ? inventory_.contains(key) : known_.contains(key);
}

void Ledger::put(const std::string& key, std::optional<std::string> encoded) {
  kept_.erase(key);
  waiting_.rows.insert_or_assign(key, std::move(encoded));
  changed();
}

std::optional<std::string> Ledger::note(const std::string& name) const {
  const auto found = notes_.find(name);
  return found == notes_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<std::string> Ledger::note_names(std::string_view prefix) const {
  std::vector<std::string> names;
  for (const auto& [name, value] : notes_) {
    if (name.starts_with(prefix)) names.push_back(name);
  }
  return names;
}

void Ledger::set_note(const std::string& name, std::string value) {
  notes_.insert_or_assign(name, value);
  waiting_.notes.insert_or_assign(name, std::move(value));
  changed();
}

void Ledger::changed() {
  ++changes_;
  update_gauges();
  // The first change starts the interval; commit_early changes end it.
  if (changes_ == durable_ + 1 || waiting_.rows.size() == options_.commit_early) work_.notify_all();
}

const std::optional<std::string>* Ledger::on_its_way(const std::string& key) const {
  for (const auto* batch : std::initializer_list<const LedgerBatch*>{&waiting_, in_commit_.get()}) {
    if (batch == nullptr) continue;
    const auto found = batch->rows.find(key);
    if (found != batch->rows.end()) return &found->second;
  }
  return nullptr;
}

std::size_t Ledger::pending() const {
  return waiting_.rows.size() + (in_commit_ ? in_commit_->rows.size() : 0);
}

Task<Result<void>> Ledger::flush(Deadline deadline) {
  const auto wanted = changes_;
  const Counted flushing(flushing_);
  work_.notify_all();
  while (durable_ < wanted) {
    if (!co_await committed_.wait(deadline)) {
      co_return fail(ErrorCode::timeout,
                     last_error_.empty() ? "the ledger's file is slow" : last_error_);
    }
  }
  co_return Result<void>();
}

Task<> Ledger::commit_loop() {
  Backoff backoff(options_.retry, random_seed());
  while (true) {
    while (durable_ == changes_) {
      if (!may_end_mark()) {
        co_await work_.wait();
      } else if (!co_await end_mark()) {
        co_await work_.wait(deadline_after(options_.retry.max));
      }
    }
    const auto due = deadline_after(options_.commit_interval);
    while (flushing_ == 0 && waiting_.rows.size() < options_.commit_early && Clock::now() < due) {
      co_await work_.wait(due);
    }
    if (flushing_ > 0) co_await sleep_for(kFlushPeriod);
    while (!co_await commit()) {
      const auto begin = Clock::now();
      const auto delay = backoff.next();
      const auto left = [&] {
        return begin + (flushing_ > 0 ? std::min(delay, kFlushRetry) : delay);
      };
      while (Clock::now() < left()) co_await work_.wait(left());
    }
    backoff.reset();
  }
}

// Commits a batch; returns false when it could not be written. Its changes then wait for the next
// commit.
Task<bool> Ledger::commit() {
  const auto upto = changes_;
  const auto batch = std::make_shared<LedgerBatch>(std::exchange(waiting_, {}));
  in_commit_ = batch;
  auto done = co_await pool_.run(
      kNever, [file = file_, batch](const std::stop_token&) { return file->write(*batch); });
  in_commit_.reset();
  auto written = done ? std::move(*done)
                      : std::unexpected(sqlite::Fault{.message = std::move(done.error().message)});
  if (written) {
    durable_ = upto;
    commit_seconds_.Observe(written->took.count());
    file_bytes_.Set(static_cast<double>(written->file_bytes));
    if (!last_error_.empty()) log_.info("the ledger can be written again");
    last_error_.clear();
    holds_events_.clear();
    if (!written->rebuilt.empty()) start_over(written->rebuilt, *batch);
    keep(*batch);
  } else {
    // Changes made during the commit are newer and stay.
    waiting_.rows.merge(batch->rows);
    waiting_.notes.merge(batch->notes);
    last_error_ = written.error().message;
    count_failure(written.error(),
                  "the ledger can't be written: reporting goes on, but a restart "
                  "would report everything again");
  }
  update_gauges();
  committed_.notify_all();
  co_return written.has_value();
}

void Ledger::keep(LedgerBatch& written) {
  for (auto& [key, row] : written.rows) {
    if (!row || waiting_.rows.contains(key)) continue;
    row->shrink_to_fit();
    const auto bytes = row->size();
    kept_.put(key, std::move(*row), bytes);
  }
}

// Starts over after the file was replaced by a new one that contains only `written`.
void Ledger::start_over(const std::string& why, const LedgerBatch& written) {
  rebuilt_.Increment();
  log_.error(
      "the ledger was damaged, was set aside and recreated: everything is reported again, and "
      "deletions that were not acknowledged yet may be lost",
      {{"reason", why}});
  const auto is_lost = [&](const auto& row) {
    const bool lost = !written.rows.contains(row.first) && !waiting_.rows.contains(row.first);
    if (lost) {
      rise_above_in_group(row.first, row.second.sequence);
      kept_.erase(row.first);
    }
    return lost;
  };
  std::erase_if(known_, is_lost);
  std::erase_if(inventory_, is_lost);
  refused_ = 0;
  for (const auto& [row, head] : known_) refused_ += head.refused.size();
  for (const auto& [row, head] : inventory_) refused_ += head.refused.size();
  rise_above_all();
  for (const auto& [name, value] : notes_) {
    if (!written.notes.contains(name)) set_note(name, std::string(value));
  }
  if (on_rebuilt_) on_rebuilt_();
}

void Ledger::count_failure(const sqlite::Fault& fault, std::string_view what) {
  metrics_
      .counter("gitops_event_reporter_ledger_failures_total",
               "Failed attempts to read or write the ledger, by reason",
               {{"reason", std::string(to_string(fault.kind))}})
      .Increment();
  const auto verdict = repeats_.check(std::string(what) + fault.message, Clock::now());
  if (!verdict.pass) return;
  log_.error(what, {{"reason", fault.message},
                    {"waiting_entries", pending()},
                    {"suppressed", verdict.suppressed}});
}

void Ledger::update_gauges() {
  rows_.Set(static_cast<double>(known_.size()));
  refused_events_.Set(static_cast<double>(refused_));
  pending_.Set(static_cast<double>(pending()));
}

}  // namespace gitops::reporter
