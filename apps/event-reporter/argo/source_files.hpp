#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <unordered_set>

#include "common/core/async.hpp"
#include "common/core/credential.hpp"
#include "common/core/log.hpp"
#include "common/core/lru_cache.hpp"
#include "common/core/metrics.hpp"
#include "common/core/task_group.hpp"
#include "common/http/client.hpp"
#include "common/http/url.hpp"
#include "event-reporter/event/git_files.hpp"

namespace gitops::reporter {

// Requests from app-proxy the files that applications' manifests come from, and caches the responses: a
// commit never changes. A failure does not fail a report, and a report waits for `max_wait` at most.
// After a late or failed response no report waits for `pause`; files that are known by then are used all
// the same. Loop thread only; the arguments outlive it.
class SourceFiles {
 public:
  struct Options {
    http::Url app_proxy;  // its address in the cluster
    std::chrono::milliseconds max_wait{500};
    std::chrono::milliseconds pause{30'000};
    std::chrono::milliseconds timeout{55'000};      // time limit of a request
    std::chrono::milliseconds retry{300'000};       // pause before a failed request is repeated
    std::size_t at_a_time = 4;                      // requests; further ones are not made
    std::size_t max_bytes = std::size_t{16} << 20;  // limit of the cache
  };
  // `token` is the runtime's token.
  SourceFiles(const Executor& executor, http::Client& http, Credential& token, Options options,
              Metrics& metrics);

  // Starts requests as tasks of `group`, which is joined before this object ends. No request is made
  // before.
  void start(TaskGroup& group) { tasks_ = &group; }

  // Requests the files unless they are known, or were requested recently. Does not wait.
  void ask(const std::string& request);
  // Returns the response to source_files_request(); null when it is not known by `asked` plus
  // `max_wait`.
  Task<std::shared_ptr<const GitFiles>> find(std::string request, Clock::time_point asked);

 private:
  struct Kept {
    std::shared_ptr<const GitFiles> files;  // null: app-proxy could not provide them
    Clock::time_point until = kNever;
  };
  Task<> fetch(std::string request);
  Task<Result<GitFiles>> exchange(const std::string& request);

  http::Client& http_;
  Credential& token_;
  Options options_;
  LruCache<Kept> kept_;
  std::unordered_set<std::string> asked_;  // requests in flight
  Event answered_;
  Clock::time_point paused_until_{};
  Log log_{"source-files"};
  RepeatFilter repeats_{std::chrono::minutes(10)};
  Counter& requests_;
  Counter& failures_;
  Counter& late_;
  TaskGroup* tasks_ = nullptr;
};

}  // namespace gitops::reporter
