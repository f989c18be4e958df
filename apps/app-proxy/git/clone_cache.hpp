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

// The bare clones below one folder (REPOS_DIR), one for each repository, shared by all users of it;
// what a user may read or push is asked of the server each time. A clone is made on first use, or
// ahead by prepare(), beside its place, and moved there when it is complete. The least recently used
// clones are removed when all of them need more than the quota. A broken one is dropped and made
// again by the next use. Loop thread; the clones are used on the pool, a clone by one job at a time.
class CloneCache {
 public:
  struct Options {
    std::filesystem::path folder;
    std::uintmax_t quota = std::uintmax_t{4} * 1024 * 1024 * 1024;  // bytes on disk
    std::size_t clones_at_a_time = 6;
    std::size_t clones_at_a_time_per_host = 4;  // a slow host leaves places for others
    Clock::duration report_period = std::chrono::seconds(30);  // of progress in the log
    Clock::duration clone_timeout = std::chrono::minutes(30);
    Clock::duration stall = std::chrono::seconds(60);  // a server that sends nothing
    WireLimits limits = {};
    // The present boot of the machine, see this_boot(). Clones of another one are dropped, since a
    // loss of power may have cut their files short. Empty: not known, so no old clone is kept.
    std::string boot_id = {};
  };
  // The value of /proc/sys/kernel/random/boot_id (random(4)); empty when it cannot be read.
  static std::string this_boot();

  // All outlive this object. `cloning` makes the clones, so that their servers, however slow, take no
  // thread of `pool`, which does the rest. Finds the clones of an earlier process; their sizes come
  // from the pool, so the quota holds for them once all are measured.
  CloneCache(const Executor& executor, WorkerPool& pool, WorkerPool& cloning, Metrics& metrics,
             Options options);
  CloneCache(const CloneCache&) = delete;
  CloneCache& operator=(const CloneCache&) = delete;
  ~CloneCache();

  // A clone in use, which is not removed meanwhile.
  class Lease {
   public:
    Lease() = default;
    [[nodiscard]] const std::filesystem::path& folder() const;
    // The key of jobs on the pool that use this clone.
    [[nodiscard]] const std::string& key() const;
    // It is broken or its repository was deleted: the next use recreates it.
    void discard();

   private:
    friend class CloneCache;
    struct Use;
    std::shared_ptr<Use> use_;
  };
  // The clone of a repository; made first when there is none, with the caller's credential. Callers
  // that come meanwhile wait for the same one, and one that leaves does not end it.
  Task<Result<Lease>> get(RepositoryUrl url, GitCredential credential, http::Client& client,
                          Deadline deadline);
  // Makes a clone in the background, for a repository that became known: one at a time, while no other
  // is being made and the quota has room. A user who comes meanwhile waits for the same one. Failures
  // are in the log alone. At most 100 wait; more are left to the first commit.
  void prepare(RepositoryUrl url, GitCredential credential, http::Client& client);
  // Measures a clone that was used and removes others when the quota is exceeded.
  Task<> settle(Lease lease);
  // Removes all clones that are not in use but these: for a disk that others filled.
  Task<std::size_t> make_room();

  // Clones that are being made.
  struct InProgress {
    std::string url;
    FetchProgress progress;
    WallTime since;
  };
  [[nodiscard]] std::vector<InProgress> in_progress() const;
  // Clones that prepare() was asked for and that are not begun.
  [[nodiscard]] std::size_t to_prepare() const { return ahead_.size(); }
  // Without those that are not measured yet.
  [[nodiscard]] std::uintmax_t bytes() const;

  // Ends clones that are being made.
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
  Event made_one_;                                        // wakes clones that wait to be made
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
