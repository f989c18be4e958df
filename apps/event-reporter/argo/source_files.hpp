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

// Asks app-proxy for the files that applications' manifests come from, and keeps the answers: a commit
// never changes. No report fails for it, and one waits for `max_wait` at most. After an answer that came
// too late or failed, no report waits for `pause`; what is known by then is used all the same.
// Loop thread only; the arguments outlive it.
class SourceFiles {
 public:
  struct Options {
    http::Url app_proxy;  // its address in the cluster
    std::chrono::milliseconds max_wait{500};
    std::chrono::milliseconds pause{30'000};
    std::chrono::milliseconds timeout{55'000};      // of a request
    std::chrono::milliseconds retry{300'000};       // of what app-proxy could not read
    std::size_t at_a_time = 4;                      // requests; more are not made
    std::size_t max_bytes = std::size_t{16} << 20;  // of what is kept
  };
  // `token` is the runtime's token.
  SourceFiles(const Executor& executor, http::Client& http, Credential& token, Options options,
              Metrics& metrics);

  // Requests run as tasks of `group`, which is joined before this object ends. Before, none is made.
  void start(TaskGroup& group) { tasks_ = &group; }

  // Begins to ask unless the answer is known, or was asked for lately. Does not wait.
  void ask(const std::string& request);
  // The answer to source_files_request(); null when it is not known by `asked` plus `max_wait`.
  Task<std::shared_ptr<const GitFiles>> find(std::string request, Clock::time_point asked);

 private:
  struct Kept {
    std::shared_ptr<const GitFiles> files;  // null: app-proxy could not tell them
    Clock::time_point until = kNever;
  };
  Task<> fetch(std::string request);
  Task<Result<GitFiles>> exchange(const std::string& request);

  http::Client& http_;
  Credential& token_;
  Options options_;
  LruCache<Kept> kept_;
  std::unordered_set<std::string> asked_;  // requests under way
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
