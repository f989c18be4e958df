#include "request-router/webhook_journal.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <prometheus/counter.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"

namespace gitops::router {
namespace {

// Format: a file begins with kMagic. A record is the length of its text (4 bytes, big-endian), the
// first bytes of the text's SHA-256, and the text: a kind and an id (8 bytes). For a stored webhook
// follow the time (8 bytes, milliseconds since 1970) and four texts with their lengths (4 bytes
// each).
constexpr std::string_view kMagic = "gitops-webhooks-1\n";
constexpr std::size_t kSumSize = 8;
constexpr char kKept = 'K';
constexpr char kGone = 'G';
// Maximum size of a journal; no router writes a larger one.
constexpr std::uintmax_t kMaxFile = 1024ULL * 1024 * 1024;
constexpr std::string_view kPrefix = "webhooks-";
constexpr std::string_view kSuffix = ".journal";
// Error::subcode of a disk without room.
constexpr std::string_view kDiskFull = "disk-full";

const Log& log() {
  static const Log kLog("webhooks");
  return kLog;
}

void append_number(std::string& out, std::uint64_t value, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
    out += static_cast<char>(value >> shift & 0xffU);
  }
}

void append_text(std::string& out, std::string_view text) {
  append_number(out, text.size(), 4);
  out += text;
}

std::string sum_of(std::string_view text) {
  const auto sum = sha256(text);
  return {sum.begin(), sum.begin() + kSumSize};
}

void append_record(std::string& out, std::string_view text) {
  append_number(out, text.size(), 4);
  out += sum_of(text);
  out += text;
}

// Reads values from the front of a text. `ok` is false after a missing value.
struct Reader {
  std::string_view text;
  bool ok = true;

  std::uint64_t number(std::size_t bytes) {
    std::uint64_t value = 0;
    for (const char c : take(bytes)) value = value << 8U | static_cast<unsigned char>(c);
    return value;
  }
  std::string_view take(std::size_t size) {
    ok = ok && size <= text.size();
    if (!ok) return {};
    const auto part = text.substr(0, size);
    text.remove_prefix(size);
    return part;
  }
  std::string string() { return std::string(take(number(4))); }
};

Error system_error(std::string what) {
  const int number = errno;
  const bool is_full = number == ENOSPC || number == EDQUOT || number == EFBIG;
  return {.code = ErrorCode::unavailable,
          .message = std::move(what) + ": " + std::generic_category().message(number),
          .subcode = is_full ? kDiskFull : std::string_view()};
}

// Returns whether the file still has this name, so that no other process has taken it over.
bool is_at(int descriptor, const std::filesystem::path& path) {
  struct stat open = {};
  struct stat named = {};
  return ::fstat(descriptor, &open) == 0 && ::stat(path.c_str(), &named) == 0 &&
         open.st_ino == named.st_ino && open.st_dev == named.st_dev;
}

void sync_folder(const std::filesystem::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

Result<std::string> read_all(int descriptor) {
  struct stat file = {};
  if (::fstat(descriptor, &file) != 0) return std::unexpected(system_error("cannot be read"));
  if (static_cast<std::uintmax_t>(file.st_size) > kMaxFile) {
    return fail(ErrorCode::too_large, "is no journal: it is too large");
  }
  std::string text(static_cast<std::size_t>(file.st_size), '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const auto got =
        ::pread(descriptor, text.data() + size, text.size() - size, static_cast<off_t>(size));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::unexpected(system_error("cannot be read"));
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  text.resize(size);
  return text;
}

// Closes a descriptor, which releases its lock.
struct Descriptor {
  explicit Descriptor(int d) : value(d) {}
  ~Descriptor() {
    if (value >= 0) ::close(value);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int release() { return std::exchange(value, -1); }
  int value;
};

}  // namespace

// -- records --

void append_kept_record(std::string& out, const KeptWebhook& webhook, WallTime since) {
  std::string text(1, kKept);
  append_number(text, webhook.id, 8);
  append_number(text, static_cast<std::uint64_t>(since.time_since_epoch().count()), 8);
  append_text(text, webhook.source.ns);
  append_text(text, webhook.source.event_source);
  append_text(text, webhook.request_id);
  append_text(text, webhook.bytes);
  append_record(out, text);
}

void append_gone_record(std::string& out, std::uint64_t id) {
  std::string text(1, kGone);
  append_number(text, id, 8);
  append_record(out, text);
}

std::vector<RecoveredWebhook> replay(std::string_view journal) {
  std::map<std::uint64_t, RecoveredWebhook> kept;
  Reader reader{journal};
  if (reader.take(kMagic.size()) != kMagic) return {};
  while (!reader.text.empty()) {
    const auto size = reader.number(4);
    const auto sum = reader.take(kSumSize);
    const auto text = reader.take(size);
    if (!reader.ok || sum != sum_of(text)) break;
    Reader fields{text};
    const auto kind = fields.take(1);
    const auto id = fields.number(8);
    if (kind == std::string_view(&kGone, 1)) {
      kept.erase(id);
    } else if (kind == std::string_view(&kKept, 1)) {
      RecoveredWebhook found;
      found.webhook.id = id;
      found.since = WallTime(WallTime::duration(static_cast<WallTime::rep>(fields.number(8))));
      found.webhook.source.ns = fields.string();
      found.webhook.source.event_source = fields.string();
      found.webhook.request_id = fields.string();
      found.webhook.bytes = fields.string();
      if (fields.ok) kept.insert_or_assign(id, std::move(found));
    }
  }
  std::vector<RecoveredWebhook> all;
  for (auto& [id, found] : kept) all.push_back(std::move(found));
  return all;
}

// -- the file --

WebhookJournal::WebhookJournal(Options options, Recover recover, Counter& errors)
    : options_(std::move(options)), recover_(std::move(recover)), errors_(errors) {}

WebhookJournal::~WebhookJournal() {
  if (thread_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  if (file_.descriptor < 0 && !file_.is_damaged) return;  // it was not opened
  write_again();
  const auto lost = std::ranges::count_if(
      unwritten_, [](const auto& record) { return record.second != nullptr; });
  // While others' journals are not removed, they contain some of them.
  if (lost > 0) {
    log().error(recovered_.empty()
                    ? "webhooks are lost, since their journal took no records"
                    : "webhooks are lost, unless they stay in the journal of another process",
                {{"webhooks", lost}});
  }
  if (!live_.empty()) log().info("webhooks stay in the journal", {{"webhooks", live_.size()}});
  for (const auto& [path, descriptor] : recovered_) ::close(descriptor);
  if (file_.descriptor < 0) return;
  if (live_.empty()) {
    remove(file_);
  } else {
    ::close(file_.descriptor);
  }
}

Result<void> WebhookJournal::open() {
  std::error_code ec;
  std::filesystem::create_directories(options_.folder, ec);
  if (auto file = create()) {
    file_ = std::move(*file);
  } else if (file.error().subcode == kDiskFull) {
    // Goes on in memory: others' journals may be what fills the disk, until they are delivered.
    report(file.error());
    file_.is_damaged = true;
  } else {
    return std::unexpected(file.error());
  }
  look_for_others();
  thread_ = std::jthread([this] { run(); });
  return {};
}

void WebhookJournal::keep(Kept webhook, Durable durable) {
  const auto id = webhook->id;
  const std::lock_guard lock(mutex_);
  jobs_.push_back({.webhook = std::move(webhook), .id = id, .durable = std::move(durable)});
  changed_.notify_all();
}

void WebhookJournal::gone(std::uint64_t id) {
  Durable unneeded;
  {
    const std::lock_guard lock(mutex_);
    // A webhook without a record needs none. While the disk hangs, its bytes would stay in memory.
    const auto waiting = std::ranges::find_if(
        jobs_, [id](const Job& job) { return job.webhook != nullptr && job.id == id; });
    if (waiting == jobs_.end()) {
      jobs_.push_back({.webhook = nullptr, .id = id, .durable = {}});
      changed_.notify_all();
    } else {
      unneeded = std::move(waiting->durable);
      jobs_.erase(waiting);
    }
  }
  if (unneeded) unneeded(Result<void>());
}

void WebhookJournal::run() {
  auto look_at = std::chrono::steady_clock::now() + options_.look_interval;
  while (true) {
    std::deque<Job> jobs;
    {
      std::unique_lock lock(mutex_);
      changed_.wait_until(lock, look_at, [this] { return stopping_ || !jobs_.empty(); });
      if (stopping_ && jobs_.empty()) return;
      jobs.swap(jobs_);
    }
    write(std::move(jobs));
    if (file_.size > options_.compact_above && file_.size > 2 * live_bytes_) compact();
    if (std::chrono::steady_clock::now() < look_at) continue;
    write_again();
    look_for_others();
    look_at = std::chrono::steady_clock::now() + options_.look_interval;
  }
}

// Writes all queued jobs with one fdatasync.
void WebhookJournal::write(std::deque<Job> jobs) {
  Result<void> synced;
  bool has_kept = false;
  std::vector<std::pair<Durable, Result<void>>> written;
  for (auto& job : jobs) {
    if (job.webhook) {
      written.emplace_back(std::move(job.durable), append_kept(file_, job.webhook));
      if (!written.back().second) {
        unwritten_.emplace(job.id, job.webhook);
        continue;
      }
      has_kept = true;
      add_live(job.webhook);
    } else if (const auto known = live_.find(job.id); known != live_.end()) {
      live_bytes_ -= known->second->bytes.size();
      live_.erase(known);
      if (auto appended = append_gone(file_, job.id); !appended) {
        unwritten_.emplace(job.id, nullptr);
        report(appended.error());
      }
    } else {
      unwritten_.erase(job.id);
    }
  }
  if (has_kept) synced = sync(file_);
  for (auto& [durable, result] : written) {
    if (result && !synced) result = synced;
    if (!result) report(result.error());
    durable(result);
  }
}

// Writes the records that could not be written before, for example because the disk was full, and
// then removes the journals that have contained them until now.
void WebhookJournal::write_again() {
  // No webhook is left that another's journal would have to contain.
  if (unwritten_.empty() && live_.empty()) remove_recovered();
  if (unwritten_.empty() && recovered_.empty() && !file_.is_damaged) return;
  // A file of removed webhooks may be what fills the disk.
  if (live_.empty() && file_.size > kMagic.size()) {
    remove(file_);
    file_ = File();
    file_.is_damaged = true;
  }
  if (file_.is_damaged && !compact()) return;
  while (!unwritten_.empty()) {
    const auto [id, webhook] = *unwritten_.begin();
    const auto written = webhook ? append_kept(file_, webhook) : append_gone(file_, id);
    if (!written) return report(written.error());
    if (webhook) add_live(webhook);
    unwritten_.erase(unwritten_.begin());
  }
  if (auto synced = sync(file_); !synced) return report(synced.error());
  remove_recovered();
}

void WebhookJournal::add_live(const Kept& webhook) {
  live_bytes_ += webhook->bytes.size();
  live_.emplace(webhook->id, webhook);
}

Result<void> WebhookJournal::append_gone(File& file, std::uint64_t id) const {
  std::string record;
  append_gone_record(record, id);
  return append(file, record);
}

Result<void> WebhookJournal::append_kept(File& file, const Kept& webhook) const {
  std::string record;
  const auto age = std::chrono::duration_cast<WallTime::duration>(Clock::now() - webhook->since);
  append_kept_record(record, *webhook, wall_now() - age);
  return append(file, record);
}

// Appends a whole record or nothing, since records after a partial one would be unreadable.
Result<void> WebhookJournal::append(File& file, std::string_view record) const {
  if (file.is_damaged) {
    return fail(ErrorCode::unavailable, "the journal of webhooks is damaged and not replaced yet");
  }
  for (std::size_t size = 0; size < record.size();) {
    const auto wrote = ::write(file.descriptor, record.data() + size, record.size() - size);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) {
      auto error = system_error("the journal of webhooks cannot be written");
      if (::ftruncate(file.descriptor, static_cast<off_t>(file.size)) != 0) {
        error.message += ", nor shortened";
        file.is_damaged = true;
      }
      return std::unexpected(std::move(error));
    }
    size += static_cast<std::size_t>(wrote);
  }
  file.size += record.size();
  return {};
}

// After a failure the kernel may take the unwritten pages for clean, so that a second fdatasync
// would succeed without them.
Result<void> WebhookJournal::sync(File& file) const {
  if (::fdatasync(file.descriptor) == 0) return {};
  file.is_damaged = true;
  return std::unexpected(system_error("the journal of webhooks cannot be written to its disk"));
}

Result<WebhookJournal::File> WebhookJournal::create() const {
  constexpr int kAttempts = 10;  // another process may take the new file for an abandoned journal
  for (int i = 0; i < kAttempts; ++i) {
    File file;
    file.path = options_.folder /
                (std::string(kPrefix) + hex_encode(random_bytes(8)) + std::string(kSuffix));
    file.descriptor =
        ::open(file.path.c_str(), O_CREAT | O_EXCL | O_RDWR | O_APPEND | O_CLOEXEC, 0600);
    if (file.descriptor < 0) {
      return std::unexpected(
          system_error("no journal of webhooks can be made in " + options_.folder.string()));
    }
    const bool is_ours =
        ::flock(file.descriptor, LOCK_EX | LOCK_NB) == 0 && is_at(file.descriptor, file.path);
    if (!is_ours) {
      ::close(file.descriptor);
      continue;
    }
    if (auto written = append(file, kMagic); !written) {
      remove(file);
      return std::unexpected(written.error());
    }
    sync_folder(options_.folder);
    return file;
  }
  return fail(ErrorCode::unavailable,
              "no journal of webhooks can be locked in " + options_.folder.string());
}

void WebhookJournal::remove(File& file) const {
  if (file.descriptor < 0) return;
  std::error_code ec;
  std::filesystem::remove(file.path, ec);
  ::close(std::exchange(file.descriptor, -1));
}

// Rewrites the journal. Both files contain the webhooks for a moment; if both are recovered, a
// webhook is delivered twice. Returns whether the new file is in use.
bool WebhookJournal::compact() {
  auto next = create();
  if (!next) {
    report(next.error());
    return false;
  }
  Result<void> written;
  for (auto live = live_.begin(); written && live != live_.end(); ++live) {
    written = append_kept(*next, live->second);
  }
  if (written) written = sync(*next);
  if (!written) {
    report(written.error());
    remove(*next);
    return false;
  }
  remove(file_);
  file_ = std::move(*next);
  return true;
}

// -- journals of other processes --

void WebhookJournal::look_for_others() {
  std::error_code ec;
  std::vector<std::filesystem::path> found;
  for (auto entry = std::filesystem::directory_iterator(options_.folder, ec);
       !ec && entry != std::filesystem::directory_iterator(); entry.increment(ec)) {
    const auto name = entry->path().filename().string();
    const bool is_journal = name.starts_with(kPrefix) && name.ends_with(kSuffix);
    if (is_journal && entry->path() != file_.path) found.push_back(entry->path());
  }
  for (const auto& path : found) {
    if (!recovered_.contains(path)) take_over(path);
  }
}

void WebhookJournal::take_over(const std::filesystem::path& path) {
  Descriptor other(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (other.value < 0) return;
  // A running process holds the lock of its journal.
  if (::flock(other.value, LOCK_EX | LOCK_NB) != 0 || !is_at(other.value, path)) return;
  const auto text = read_all(other.value);
  if (!text) return report(text.error());
  auto webhooks = replay(*text);
  const auto count = webhooks.size();
  if (count > 0) {
    const auto taken = recover_(std::move(webhooks));
    if (!taken) {
      if (!reports_.check("no room", Clock::now()).pass) return;
      return log().warning("webhooks that another process kept wait until there is room for all",
                           {{"journal_file", path.filename().string()}, {"webhooks", count}});
    }
    for (const auto& webhook : *taken) unwritten_.emplace(webhook->id, webhook);
    log().info("took over the webhooks that another process kept",
               {{"journal_file", path.filename().string()}, {"webhooks", count}});
  }
  // Locked until it is removed: while the disk takes no records, another process would take over
  // the same webhooks.
  recovered_.emplace(path, other.release());
  write_again();
}

void WebhookJournal::remove_recovered() {
  for (auto it = recovered_.begin(); it != recovered_.end();) {
    std::error_code ec;
    std::filesystem::remove(it->first, ec);
    if (ec) {
      ++it;
      continue;
    }
    ::close(it->second);
    it = recovered_.erase(it);
  }
}

void WebhookJournal::report(const Error& error) {
  errors_.Increment();
  const auto verdict = reports_.check(error.message, Clock::now());
  if (!verdict.pass) return;
  log().error("the journal of webhooks fails; they are kept in memory only",
              {{"error", error.message}, {"suppressed", verdict.suppressed}});
}

}  // namespace gitops::router
