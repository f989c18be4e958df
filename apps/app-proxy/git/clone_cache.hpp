#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "app-proxy/git/git_url.hpp"
#include "app-proxy/git/repository.hpp"
#include "app-proxy/git/transport.hpp"
#include "common/core/async.hpp"
#include "common/core/metrics.hpp"
#include "common/core/task_group.hpp"
#include "common/core/worker_pool.hpp"
#include "common/http/client.hpp"

namespace gitops::app_proxy {

// The bare clones below one folder (REPOS_DIR), one for each repository, shared by all users. The
// server checks a user's permissions to read and push at each use. A clone is made on first use, or
// ahead of it by prepare(), in a temporary folder that is moved into place when it is complete. The
// least recently used clones are removed when the sum of sizes exceeds the quota. A broken clone is
// dropped and recreated by the next use. Loop thread; the clones are used on the pool, each by one
// job at a time.
class CloneCache {
 public:
  struct Options {
    std::filesystem::path folder;
    std::uintmax_t quota = std::uintmax_t{4} * 1024 * 1024 * 1024;  // bytes on disk
    std::size_t clones_at_a_time = 6;
    std::size_t clones_at_a_time_per_host = 4;                 // a slow host leaves room for others
    Clock::duration report_period = std::chrono::seconds(30);  // of progress in the log
    Clock::duration clone_timeout = std::chrono::minutes(30);
    Clock::duration stall = std::chrono::seconds(60);  // limit for a server that sends nothing
    WireLimits limits = {};
    // Present boot of the machine, see this_boot(). Clones of another boot are dropped, since a
    // loss of power may have truncated their files. Empty when unknown; then no old clone is kept.
    std::string boot_id = {};
  };
  // Returns /proc/sys/kernel/random/boot_id (random(4)); empty when it cannot be read.
  static std::string this_boot();

  // All arguments outlive this object. `cloning` makes the clones, so that slow servers take no
  // thread of `pool`, which does the other work. Finds the clones of an earlier process. The pool
  // measures them, so the quota holds once all are measured.
  CloneCache(const Executor& executor, WorkerPool& pool, WorkerPool& cloning, Metrics& metrics,
             Options options);
  CloneCache(const CloneCache&) = delete;
  CloneCache& operator=(const CloneCache&) = delete;
  ~CloneCache();

  // A clone in use. It is not removed meanwhile.
  class Lease {
   public:
    Lease() = default;
    [[nodiscard]] const std::filesystem::path& folder() const;
    // Key for jobs on the pool that use this clone.
    [[nodiscard]] const std::string& key() const;
    // Marks the clone as broken, or its repository as deleted: the next use recreates it.
    void discard();

   private:
    friend class CloneCache;
    struct Use;
    std::shared_ptr<Use> use_;
  };
  // Returns the clone of a repository. Makes it first when there is none, with the caller's
  // credential. Concurrent callers wait for the same clone, which continues when one of them
  // leaves.
  Task<Result<Lease>> get(RepositoryUrl url, GitCredential credential, http::Client& client,
                          Deadline deadline);
  // Makes a clone in the background for a repository that became known. One at a time, while no
  // other clone is being made and the quota has room. A concurrent get() waits for the same clone.
  // Failures only go to the log. At most 100 repositories wait; more are cloned by their first
  // commit.
  void prepare(RepositoryUrl url, GitCredential credential, http::Client& client);
  // Measures a clone that was used and removes others when the quota is exceeded.
  Task<> settle(Lease lease);
  // Removes all unused clones except these. For a disk that other programs have filled.
  Task<std::size_t> make_room();

  // Clones that are being made.
  struct InProgress {
    std::string url;
    FetchProgress progress;
    WallTime since;
  };
  [[nodiscard]] std::vector<InProgress> in_progress() const;
  // Number of clones that prepare() was asked for and that have not started.
  [[nodiscard]] std::size_t to_prepare() const { return ahead_.size(); }
  // Size of all clones that have been measured.
  [[nodiscard]] std::uintmax_t bytes() const;

  // Cancels clones that are being made.
  Task<> stop();

 private:
  struct Clone;
  // A clone that prepare() is to make.
  struct Ahead {
    std::shared_ptr<Clone> clone;
    RepositoryUrl url;
    GitCredential credential;
    http::Client* client;
  };
  Task<> make_ahead();
  void begin(const std::shared_ptr<Clone>& clone, const RepositoryUrl& url,
             const GitCredential& credential, http::Client& client);
  Task<> make(std::shared_ptr<Clone> clone, RepositoryUrl url, GitCredential credential,
              http::Client& client);
  Task<Result<std::uintmax_t>> make_on_pool(std::shared_ptr<Clone> clone, RepositoryUrl url,
                                            GitCredential credential, http::Client& client);
  std::shared_ptr<Clone> clone_for(const RepositoryUrl& url);
  void find_clones();
  Task<> measure_old(std::vector<std::shared_ptr<Clone>> clones);
  bool same_boot() const;
  void remember_boot() const;
  Lease lease_of(const std::shared_ptr<Clone>& clone);
  void remove_now(Clone& clone);
  std::size_t evict(std::uintmax_t until);
  void count();

  const Executor executor_;
  WorkerPool& pool_;
  WorkerPool& cloning_;
  const Options options_;
  std::map<std::string, std::shared_ptr<Clone>> clones_;  // by folder name
  Event made_one_;                                        // notified when a clone was made
  std::map<std::string, std::size_t> making_;             // by host
  std::deque<Ahead> ahead_;
  bool makes_ahead_ = false;
  std::uint64_t uses_ = 0;
  TaskGroup tasks_;
  Gauge& bytes_gauge_;
  Gauge& clones_gauge_;
  Counter& made_counter_;
  Counter& failed_counter_;
  Counter& evicted_counter_;
};

}  // namespace gitops::app_proxy
