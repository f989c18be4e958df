#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "common/core/backoff.hpp"
#include "common/core/error.hpp"
#include "common/core/time.hpp"

namespace gitops::k8s {

// The number of attempts of a request that fails with a transient error. The default is one:
// callers with a loop or a queue have a backoff of their own, and nested retries would multiply the
// load of a failing server. Requests on behalf of a person use a few attempts.
struct RetryPolicy {
  unsigned attempts = 1;
  Backoff::Options backoff{.initial = std::chrono::milliseconds(200),
                           .max = std::chrono::milliseconds(5'000)};
};

// Decides, for one request, whether and when it is sent again. Pure. The rules:
//
// - 429: any request, since the server has not acted on it.
// - Nothing of the request was sent (no connection): any request.
// - A lost connection, 408 or a 5xx: only idempotent requests.
// - Never after any other failure, and never when the wait (at least Retry-After) would end after
//   the deadline: the caller gets the error before its deadline.
class Retry {
 public:
  Retry(const RetryPolicy& policy, bool idempotent, std::uint64_t seed)
      : attempts_left_(policy.attempts), idempotent_(idempotent), backoff_(policy.backoff, seed) {}

  enum class Sent { nothing, maybe };
  // Returns the wait after a failed attempt and before the next one; nullopt when there is none.
  std::optional<std::chrono::milliseconds> after(const Error& error, Sent sent,
                                                 Clock::time_point now, Deadline deadline);

 private:
  [[nodiscard]] bool may_repeat(const Error& error, Sent sent) const;

  unsigned attempts_left_;
  bool idempotent_;
  Backoff backoff_;
};

}  // namespace gitops::k8s
