#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "app-proxy/git/clone_cache.hpp"
#include "app-proxy/git/commit_signer.hpp"
#include "app-proxy/git/failure_codes.hpp"
#include "app-proxy/git/push_plan.hpp"
#include "app-proxy/git/repository.hpp"
#include "common/core/async.hpp"
#include "common/core/metrics.hpp"
#include "common/core/task_group.hpp"
#include "common/core/trace.hpp"
#include "common/core/worker_pool.hpp"
#include "common/http/client.hpp"

namespace gitops::app_proxy {

// A commit for a branch, requested by a user or by the runtime.
struct CommitRequest {
  RepositoryUrl repository;
  std::string branch = {};  // empty or "HEAD": the default branch
  // Start of a branch that does not exist yet; empty: such a branch is an error. A repository
  // without branches gets its first commit in either case.
  std::string new_branch_from = {};
  // Default branch according to the host, for a Git server that does not report it. May be empty.
  std::string default_branch = {};
  // Whether the first commit of a repository is refused with kDefaultBranchUnknown when nobody tells
  // its default branch. Otherwise the branch is "main".
  bool needs_default_branch = false;
  std::vector<FileChange> changes = {};
  std::string message = {};
  std::string description = {};  // follows the message after an empty line
  GitAuthor author = {};
  GitCredential credential = {};
  bool allow_empty = false;
  bool force = false;
  SpanContext trace = {};  // the work that the commit is part of
};

struct CommitResult {
  std::string sha = {};      // as pushed
  std::string branch = {};   // short name
  std::string message = {};  // with the description
  WallTime time = {};
};

// Puts commits into branches of repositories, with one queue for each branch. Each request becomes
// a commit of its own author on top of the branch as the server has it; every commit asks the
// server. Waiting requests with the same credential are pushed together, so no commit is pushed
// with another user's permissions. The credential that has waited longest is next. When somebody
// else pushes first, the changes are applied again to the new state (push_rules.hpp).
//
// A request that is cancelled or reaches its deadline before its push does not start. If its push
// is in flight, the error says so. Loop thread; the blocking parts run on the pool.
class Committer {
 public:
  struct Options {
    std::size_t max_waiting = 1'000;  // in all queues
    std::size_t max_waiting_per_branch = 200;
    std::size_t max_batch = 100;    // commits in one push
    std::size_t jobs_per_host = 3;  // a slow server leaves threads for others
    Clock::duration stall = std::chrono::seconds(30);
    Clock::duration first_pause = std::chrono::milliseconds(50);  // between rounds; grows
    Clock::duration longest_pause = std::chrono::seconds(3);
    Clock::duration refused_pause = std::chrono::milliseconds(1'500);  // of connections
    WireLimits limits = {};
    // Returns the signer of each request's commit; an error fails the request. Without it, commits
    // are not signed.
    std::function<Result<std::shared_ptr<const CommitSigner>>()> signer = {};
  };
  // All arguments outlive this object.
  Committer(const Executor& executor, WorkerPool& pool, CloneCache& clones, http::Client& client,
            Metrics& metrics, Options options);
  Committer(const Committer&) = delete;
  Committer& operator=(const Committer&) = delete;
  ~Committer();

  // Commits and pushes. Errors besides those of BareRepository::commit: `conflict` (the branch
  // changed too often, or the revision differs), `unauthenticated`, `forbidden` (the server
  // refuses, with its reason), `not_found`, `too_many_requests` (the queue is full), `timeout` (the
  // message says when the commit may have been pushed), `unavailable`.
  Task<Result<CommitResult>> commit(CommitRequest request, Deadline deadline);

  // Makes the clone of a repository that may soon get a commit, see CloneCache::prepare().
  void prepare(RepositoryUrl repository, GitCredential credential) {
    clones_.prepare(std::move(repository), std::move(credential), client_);
  }

  [[nodiscard]] std::size_t waiting() const { return waiting_; }
  // Ends all work; requests fail with `unavailable`.
  Task<> stop();

 private:
  struct Item;
  struct BranchQueue;
  struct Batch;
  struct PushAttempt;
  class PushWorker;
  struct HostSlots;

  Task<Result<CommitResult>> enqueue(CommitRequest request, Deadline deadline);
  Task<> work(std::shared_ptr<BranchQueue> queue);
  Task<> push_batch(BranchQueue& queue, std::vector<std::shared_ptr<Item>> items);
  Task<PushEnd> push_items(BranchQueue& queue, Batch& batch);
  PushPlan::Next note_round(Batch& batch, PushAttempt round);
  Task<Result<PushAttempt>> run_attempt(BranchQueue& queue, Batch& batch);
  static Result<PushAttempt> attempt_on_pool(HttpBridge& bridge, const std::stop_token& stop,
                                             const Batch& batch,
                                             const std::filesystem::path& folder,
                                             const WireLimits& limits);
  std::vector<std::shared_ptr<Item>> take_batch(BranchQueue& queue);
  static void complete(Item& item, Result<CommitResult> result);
  static Result<CommitResult> result_of(const Batch& batch, std::size_t index, const PushEnd& end);

  const Executor executor_;
  WorkerPool& pool_;
  CloneCache& clones_;
  http::Client& client_;
  const Options options_;
  std::map<std::string, std::shared_ptr<BranchQueue>> queues_;  // by repository and branch
  std::map<std::string, std::shared_ptr<HostSlots>> hosts_;
  std::size_t waiting_ = 0;
  std::uint64_t rounds_ = 0;
  TaskGroup tasks_;
  Counter& pushed_;
  Counter& failed_;
  Counter& conflicts_;
  Counter& lost_answers_;
  Histogram& batch_size_;
};

}  // namespace gitops::app_proxy
