#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/core/async.hpp"
#include "common/core/error.hpp"
#include "common/core/secret.hpp"
#include "common/core/task_group.hpp"
#include "common/core/time.hpp"

namespace gitops {

// A token that may rotate while the daemon runs: a fixed value, a file that is read again when it
// changed, or the result of a function that is called periodically, after the peer refused the
// token, or both. The last token stays in use until a new one is found. Loop thread only.
class Credential {
 public:
  static Credential fixed(Secret token);
  static Credential file(std::string path);

  // Reads or makes a token. The error is the reason for a missing token; unless the peer refused to
  // give one, the next attempt follows soon.
  using Fetch = std::function<Task<Result<Secret>>()>;
  struct FetchOptions {
    std::string task;  // its name in the group of start()
    // The value of last_error() until the first attempt has ended: "not logged in yet".
    std::string not_yet;
    // Interval between calls; absent: after the first token, only when the peer refused it.
    std::optional<std::chrono::milliseconds> period = {};
    // Shortest time after a failure, and between two refusals that lead to a call.
    std::chrono::milliseconds retry = std::chrono::seconds(2);
    // Time to the next attempt after a refusal (unauthenticated, forbidden).
    std::chrono::milliseconds retry_lasting = std::chrono::seconds(2);
  };
  static Credential fetched(Fetch fetch, FetchOptions options);

  // Returns the token to send now; empty while there is none.
  [[nodiscard]] Secret current();
  // Reports that the peer refused the token. Returns true when a newer one was found, so that
  // another attempt makes sense. Waits for a call of the function that is in progress.
  Task<bool> refused();
  // The reason for a missing token; empty when there is one.
  [[nodiscard]] const std::string& last_error() const { return last_error_; }
  // Calls the function of fetched() until there is a token, and then periodically. The other kinds
  // need no task. The credential outlives the group's task.
  void start(TaskGroup& group);

 private:
  Credential() = default;
  void read_file();
  Task<> fetch();
  Task<> refresh_periodically();

  Secret token_;
  std::string last_error_;

  std::string path_;
  std::string fingerprint_;  // fingerprint of the file that was read
  Clock::time_point next_look_{};

  Fetch fetch_;
  FetchOptions options_;
  std::shared_ptr<Event> fetching_;  // set during a call, and notified at its end
  Clock::time_point next_try_{};     // earliest next call, even when the token is refused
};

}  // namespace gitops
