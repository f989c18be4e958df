#include "app-proxy/git/clone_cache.hpp"

#include <algorithm>
#include <atomic>
#include <fstream>
#include <iterator>
#include <system_error>

#include <prometheus/counter.h>
#include <prometheus/gauge.h>

#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"
#include "common/core/log.hpp"

namespace gitops::app_proxy {
namespace {

namespace fs = std::filesystem;

const Log& log() {
  static const Log kLog("git_clones");
  return kLog;
}

constexpr std::string_view kUnfinished = "unfinished-";  // prefix while a clone is made or removed

constexpr std::size_t kMaxAhead = 100;

constexpr std::string_view kBootFile = "boot-id";  // names the boot of the clones

std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// Returns whether another credential may have more success. Hosts hide what they do not allow.
bool may_concern_credential(const Error& error) {
  return error.code == ErrorCode::unauthenticated || error.code == ErrorCode::forbidden ||
         error.code == ErrorCode::not_found;
}

// Returns the approximate bytes on disk below a folder; fewer when it is stopped.
std::uintmax_t size_of(const fs::path& folder, const std::stop_token& stop = {}) {
  std::uintmax_t total = 0;
  std::error_code ignored;
  for (fs::recursive_directory_iterator at(folder, ignored), end;
       !ignored && at != end && !stop.stop_requested(); at.increment(ignored)) {
    std::error_code not_a_file;
    const auto size = at->is_regular_file(not_a_file) ? at->file_size(not_a_file) : 0;
    // A small file takes a whole block.
    if (!not_a_file) total += (size + 4095) / 4096 * 4096;
  }
  return total;
}

// Returns "owner-name-0123456789abcdef.git": readable, and different for each repository.
std::string folder_name(const RepositoryUrl& url) {
  std::string name = url.name.substr(url.name.size() - std::min<std::size_t>(url.name.size(), 80));
  for (char& c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!plain) c = '-';
  }
  return name + "-" + hex_encode(bytes_of(sha256(url.key()))).substr(0, 16) + ".git";
}

// Renames a folder, so that a half-removed one is not taken for a clone. Returns its new path.
fs::path put_aside(const fs::path& folder) {
  fs::path aside = folder.parent_path() / (std::string(kUnfinished) + hex_encode(random_bytes(8)));
  std::error_code failed;
  fs::rename(folder, aside, failed);
  return failed ? folder : aside;
}

// Removes folders. Many files take long, so the pool removes them, in one job.
void remove_folders(WorkerPool& pool, std::vector<fs::path> folders) {
  const auto remove = [gone = std::move(folders)](const std::stop_token&) {
    std::error_code ignored;
    for (const auto& folder : gone) fs::remove_all(folder, ignored);
  };
  if (!pool.submit(std::stop_source(), remove)) remove(std::stop_token());
}

}  // namespace

struct CloneCache::Clone {
  explicit Clone(const Executor& executor) : changed(executor) {}

  std::string name;
  fs::path folder;
  enum class State : std::uint8_t { absent, making, ready } state = State::absent;
  bool discarded = false;  // to be removed once it is unused
  std::uintmax_t bytes = 0;
  std::uint64_t last_use = 0;
  std::size_t users = 0;
  Event changed;
  std::optional<Error> failure;  // of the last attempt to clone
  std::uint64_t attempts = 0;
  // Set while it is being made.
  std::string url;
  WallTime since;
  struct Shared {
    std::atomic<std::uint32_t> received{0};
    std::atomic<std::uint32_t> indexed{0};
    std::atomic<std::uint32_t> total{0};
    std::atomic<std::uint64_t> bytes{0};
  };
  std::shared_ptr<Shared> progress = std::make_shared<Shared>();
};

struct CloneCache::Lease::Use {
  explicit Use(std::shared_ptr<Clone> c) : clone(std::move(c)) { ++clone->users; }
  ~Use() {
    --clone->users;
    clone->changed.notify_all();
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  std::shared_ptr<Clone> clone;
};

const fs::path& CloneCache::Lease::folder() const {
  return use_->clone->folder;
}

const std::string& CloneCache::Lease::key() const {
  return use_->clone->name;
}

void CloneCache::Lease::discard() {
  use_->clone->discarded = true;
}

CloneCache::CloneCache(const Executor& executor, WorkerPool& pool, WorkerPool& cloning,
                       Metrics& metrics, Options options)
    : executor_(executor),
      pool_(pool),
      cloning_(cloning),
      options_(std::move(options)),
      made_one_(executor),
      tasks_(executor),
      bytes_gauge_(metrics.gauge("gitops_app_proxy_git_clone_bytes", "Disk space of all clones")),
      clones_gauge_(metrics.gauge("gitops_app_proxy_git_clones", "Clones on disk")),
      made_counter_(metrics.counter("gitops_app_proxy_git_clones_made_total", "Clones made",
                                    {{"result", "ok"}})),
      failed_counter_(metrics.counter("gitops_app_proxy_git_clones_made_total", "Clones made",
                                      {{"result", "failed"}})),
      evicted_counter_(metrics.counter("gitops_app_proxy_git_clones_evicted_total",
                                       "Clones removed to keep within the quota")) {
  find_clones();
}

CloneCache::~CloneCache() = default;

std::string CloneCache::this_boot() {
  std::string id = text_of("/proc/sys/kernel/random/boot_id");
  while (id.ends_with('\n')) id.pop_back();
  return id;
}

bool CloneCache::same_boot() const {
  return !options_.boot_id.empty() && text_of(options_.folder / kBootFile) == options_.boot_id;
}

// Records the boot of the clones. No file is synchronised: one that a loss of power truncated or
// lost no longer matches its id.
void CloneCache::remember_boot() const {
  std::ofstream(options_.folder / kBootFile, std::ios::binary | std::ios::trunc)
      << options_.boot_id;
}

void CloneCache::find_clones() {
  std::error_code ignored;
  fs::create_directories(options_.folder, ignored);
  const bool trusted = same_boot();
  std::vector<fs::path> leftovers;
  std::size_t dropped = 0;
  bool all_gone = true;
  std::vector<std::pair<fs::file_time_type, std::shared_ptr<Clone>>> found;
  // The folder is listed first, since folders that are renamed below would be listed again.
  std::vector<fs::directory_entry> entries;
  std::ranges::copy(fs::directory_iterator(options_.folder, ignored), std::back_inserter(entries));
  for (const auto& entry : entries) {
    const std::string name = entry.path().filename();
    std::error_code each;
    if (name.starts_with(kUnfinished)) {
      leftovers.push_back(entry.path());
    } else if (name.ends_with(".git") && !trusted) {
      leftovers.push_back(put_aside(entry.path()));
      all_gone = all_gone && leftovers.back() != entry.path();
      ++dropped;
    } else if (name.ends_with(".git") && entry.is_directory(each)) {
      auto clone = std::make_shared<Clone>(executor_);
      clone->name = name;
      clone->folder = entry.path();
      clone->state = Clone::State::ready;
      found.emplace_back(fs::last_write_time(entry.path() / "refs", each), std::move(clone));
    }
  }
  // Written after the clones were renamed: an interrupted start drops the rest next time.
  if (!trusted && all_gone && !options_.boot_id.empty()) remember_boot();
  if (dropped > 0) {
    log().info("dropped clones of another boot of the machine", {{"clones", dropped}});
  }
  std::ranges::sort(found, {}, [](const auto& pair) { return pair.first; });
  std::vector<std::shared_ptr<Clone>> unmeasured;
  for (auto& [time, clone] : found) {
    clone->last_use = ++uses_;
    clones_.emplace(clone->name, clone);
    unmeasured.push_back(clone);
  }
  if (!leftovers.empty()) remove_folders(pool_, std::move(leftovers));
  if (!unmeasured.empty()) {
    tasks_.spawn("measure clones", [this, unmeasured] { return measure_old(unmeasured); });
  }
  count();
}

// Measures clones of earlier processes one after another, so that commits find free threads.
Task<> CloneCache::measure_old(std::vector<std::shared_ptr<Clone>> clones) {
  for (const auto& clone : clones) {
    // Skips a clone that was removed, recreated or measured after a use meanwhile.
    const auto wanted = [&] {
      return clone->state == Clone::State::ready && clone->attempts == 0 && clone->bytes == 0;
    };
    while (wanted()) {
      const auto measured = co_await pool_.run(
          clone->name, kNever,
          [folder = clone->folder](const std::stop_token& stop) { return size_of(folder, stop); });
      if (measured && wanted()) clone->bytes = std::max<std::uintmax_t>(*measured, 1);
      if (measured) break;
      if (measured.error().code == ErrorCode::unavailable) co_return;  // the pool is stopping
      co_await sleep_for(std::chrono::seconds(1));                     // it is full
    }
  }
  evict(options_.quota);
}

void CloneCache::count() {
  bytes_gauge_.Set(static_cast<double>(bytes()));
  clones_gauge_.Set(static_cast<double>(std::ranges::count_if(
      clones_, [](const auto& entry) { return entry.second->state == Clone::State::ready; })));
}

std::uintmax_t CloneCache::bytes() const {
  std::uintmax_t total = 0;
  for (const auto& [name, clone] : clones_) total += clone->bytes;
  return total;
}

std::vector<CloneCache::InProgress> CloneCache::in_progress() const {
  std::vector<InProgress> result;
  for (const auto& [name, clone] : clones_) {
    if (clone->state != Clone::State::making) continue;
    const auto& progress = *clone->progress;
    result.push_back({.url = clone->url,
                      .progress = {.received_objects = progress.received,
                                   .indexed_objects = progress.indexed,
                                   .total_objects = progress.total,
                                   .bytes = progress.bytes},
                      .since = clone->since});
  }
  return result;
}

std::shared_ptr<CloneCache::Clone> CloneCache::clone_for(const RepositoryUrl& url) {
  const std::string name = folder_name(url);
  auto& clone = clones_[name];
  if (!clone) {
    clone = std::make_shared<Clone>(executor_);
    clone->name = name;
    clone->folder = options_.folder / name;
  }
  return clone;
}

CloneCache::Lease CloneCache::lease_of(const std::shared_ptr<Clone>& clone) {
  Lease lease;
  clone->last_use = ++uses_;
  lease.use_ = std::make_shared<Lease::Use>(clone);
  return lease;
}

void CloneCache::remove_now(Clone& clone) {
  remove_folders(pool_, {put_aside(clone.folder)});
  clone.state = Clone::State::absent;
  clone.discarded = false;
  clone.bytes = 0;
}

Task<Result<CloneCache::Lease>> CloneCache::get(RepositoryUrl url, GitCredential credential,
                                                http::Client& client, Deadline deadline) {
  const auto clone = clone_for(url);
  std::optional<std::uint64_t> begun;  // number of the attempt to wait for
  bool is_own = false;                 // whether that is an attempt with this caller's credential
  while (true) {
    if (clone->state == Clone::State::ready && clone->discarded && clone->users == 0) {
      log().warning("dropped a clone that cannot be used", {{"folder", clone->name}});
      remove_now(*clone);
      count();
    }
    if (clone->state == Clone::State::ready && !clone->discarded) co_return lease_of(clone);
    if (clone->state == Clone::State::absent) {
      // When another caller's credential was refused, this one's is tried.
      if (begun && clone->attempts >= *begun && clone->failure &&
          (is_own || !may_concern_credential(*clone->failure))) {
        co_return std::unexpected(*clone->failure);
      }
      begin(clone, url, credential, client);
      begun = clone->attempts;
      is_own = true;
    } else if (!begun && clone->state == Clone::State::making) {
      // Another caller's attempt. If it fails, the cause may be their credential; then this caller
      // tries.
      begun = clone->attempts + 1;
    }
    if (!co_await clone->changed.wait(deadline)) {
      co_return fail(ErrorCode::timeout, "the repository " + url.name + " is still being cloned");
    }
  }
}

void CloneCache::begin(const std::shared_ptr<Clone>& clone, const RepositoryUrl& url,
                       const GitCredential& credential, http::Client& client) {
  clone->state = Clone::State::making;
  clone->failure.reset();
  ++clone->attempts;
  clone->url = url.to_string();
  clone->since = wall_now();
  clone->progress = std::make_shared<Clone::Shared>();
  tasks_.spawn("clone " + clone->name, [this, clone, url, credential, &client]() -> Task<> {
    return make(clone, url, credential, client);
  });
}

void CloneCache::prepare(RepositoryUrl url, GitCredential credential, http::Client& client) {
  const auto clone = clone_for(url);
  if (clone->state != Clone::State::absent || ahead_.size() >= kMaxAhead ||
      std::ranges::find(ahead_, clone, &Ahead::clone) != ahead_.end()) {
    return;
  }
  ahead_.push_back({clone, std::move(url), std::move(credential), &client});
  if (!std::exchange(makes_ahead_, true)) {
    tasks_.spawn("clones made ahead", [this] { return make_ahead(); });
  }
}

Task<> CloneCache::make_ahead() {
  while (!ahead_.empty()) {
    // Clones for users have priority.
    while (!in_progress().empty()) co_await made_one_.wait();
    const Ahead next = std::move(ahead_.front());
    ahead_.pop_front();
    const auto& clone = next.clone;
    const auto repository = next.url.to_string();
    if (clone->state != Clone::State::absent) continue;
    if (bytes() >= options_.quota) {
      log().info("not cloned ahead: the clones have reached their quota",
                 {{"repository", repository}});
      continue;
    }
    log().info("cloning ahead", {{"repository", repository}});
    begin(clone, next.url, next.credential, *next.client);
    while (clone->state == Clone::State::making) {
      if (co_await clone->changed.wait(deadline_after(options_.report_period))) continue;
      log().info("still cloning", {{"repository", repository},
                                   {"objects", clone->progress->received.load()},
                                   {"objects_in_all", clone->progress->total.load()},
                                   {"bytes", clone->progress->bytes.load()}});
    }
    if (clone->state == Clone::State::absent && clone->failure) {
      log().warning("could not clone ahead; the first commit tries again",
                    {{"repository", repository}, {"error", clone->failure->message}});
    }
  }
  makes_ahead_ = false;
}

Task<> CloneCache::make(std::shared_ptr<Clone> clone, RepositoryUrl url, GitCredential credential,
                        http::Client& client) {
  struct Ending {
    ~Ending() {
      if (clone.state == Clone::State::making) clone.state = Clone::State::absent;
      if (place != nullptr) --*place;
      made_one.notify_all();
      clone.changed.notify_all();
    }
    Clone& clone;
    Event& made_one;
    std::size_t* place = nullptr;  // of its host
  };
  Ending ending{.clone = *clone, .made_one = made_one_};
  // No queue is used: a clone that waits for its host would block those of others.
  std::size_t& of_host = making_[url.http.host_header()];
  const auto all = [this] {
    std::size_t total = 0;
    for (const auto& [host, making] : making_) total += making;
    return total;
  };
  while (of_host >= options_.clones_at_a_time_per_host || all() >= options_.clones_at_a_time) {
    co_await made_one_.wait();
  }
  ++of_host;
  ending.place = &of_host;
  const auto begin = Clock::now();
  auto made = co_await make_on_pool(clone, url, credential, client);
  if (!made && made.error().subcode == kDiskFull && evict(0) > 0) {
    made = co_await make_on_pool(clone, url, credential, client);
  }
  if (!made) {
    failed_counter_.Increment();
    clone->failure = std::move(made.error());
    co_return;
  }
  made_counter_.Increment();
  clone->bytes = *made;
  clone->state = Clone::State::ready;
  clone->last_use = ++uses_;
  evict(options_.quota);
  count();
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
  log().info(
      "cloned a repository",
      {{"repository", url.to_string()}, {"bytes", clone->bytes}, {"duration_ms", took.count()}});
}

Task<Result<std::uintmax_t>> CloneCache::make_on_pool(std::shared_ptr<Clone> clone,
                                                      RepositoryUrl url, GitCredential credential,
                                                      http::Client& client) {
  const fs::path aside = options_.folder / (std::string(kUnfinished) + hex_encode(random_bytes(8)));
  WireLimits limits = options_.limits;
  limits.pack = std::min<std::uintmax_t>(limits.pack, options_.quota);
  const auto clone_it =
      [url, credential, limits, aside, folder = clone->folder, progress = clone->progress](
          HttpBridge& bridge, const std::stop_token& stop) -> Result<std::uintmax_t> {
    struct Unfinished {
      ~Unfinished() {
        std::error_code ignored;
        fs::remove_all(folder, ignored);
      }
      const fs::path& folder;
    };
    const Unfinished unfinished{aside};
    Wire wire(url, credential, WireCalls::over(bridge), stop, limits);
    {
      auto repository = BareRepository::create(aside);
      if (!repository) return std::unexpected(std::move(repository.error()));
      auto session = repository->connect(wire, BareRepository::Direction::fetch);
      if (!session) return std::unexpected(std::move(session.error()));
      // Fetches the default branch only; the first commit to another branch fetches it.
      if (const std::string branch = session->default_branch(); !session->tip(branch).empty()) {
        auto fetched = session->fetch(branch, [&](const FetchProgress& so_far) {
          progress->received = so_far.received_objects;
          progress->indexed = so_far.indexed_objects;
          progress->total = so_far.total_objects;
          progress->bytes = so_far.bytes;
        });
        if (!fetched) {
          // The clone is new, so an error is the server's and not one of a broken clone.
          Error error = std::move(fetched.error());
          if (error.subcode == kBrokenClone) error.code = ErrorCode::invalid_data;
          return std::unexpected(std::move(error));
        }
      }
    }
    std::error_code failed;
    fs::rename(aside, folder, failed);
    if (failed) {
      return fail(ErrorCode::unavailable, "the clone cannot be put in place: " + failed.message());
    }
    return size_of(folder);
  };
  co_return co_await run_with_http(cloning_, clone->name, client,
                                   deadline_after(options_.clone_timeout), options_.stall,
                                   clone_it);
}

// Removes clones that are not in use, the least recently used first, until at most `until` bytes
// are left.
std::size_t CloneCache::evict(std::uintmax_t until) {
  std::size_t removed = 0;
  while (bytes() > until) {
    std::shared_ptr<Clone> oldest;
    for (const auto& [name, clone] : clones_) {
      if (clone->state != Clone::State::ready || clone->users > 0) continue;
      if (!oldest || clone->last_use < oldest->last_use) oldest = clone;
    }
    // The newest clone stays, even if it is too large, since its user is about to use it.
    if (!oldest || (until > 0 && oldest->last_use == uses_)) break;
    log().info("removed a clone to keep within the quota",
               {{"folder", oldest->name}, {"bytes", oldest->bytes}});
    remove_now(*oldest);
    evicted_counter_.Increment();
    ++removed;
  }
  count();
  return removed;
}

Task<> CloneCache::settle(Lease lease) {
  const fs::path folder = lease.folder();
  auto measured = co_await pool_.run(lease.key(), deadline_after(std::chrono::minutes(1)),
                                     [folder](const std::stop_token&) -> Result<std::uintmax_t> {
                                       if (auto repository = BareRepository::open(folder)) {
                                         if (auto compacted = repository->compact(); !compacted) {
                                           return std::unexpected(std::move(compacted.error()));
                                         }
                                       }
                                       return size_of(folder);
                                     });
  if (!measured) co_return;
  lease.use_->clone->bytes = *measured;
  evict(options_.quota);
}

Task<std::size_t> CloneCache::make_room() {
  co_return evict(0);
}

Task<> CloneCache::stop() {
  tasks_.cancel();
  co_await tasks_.join();
}

}  // namespace gitops::app_proxy
