#include "k8s-client/retry.hpp"

namespace gitops::k8s {

bool Retry::may_repeat(const Error& error, Sent sent) const {
  if (error.code == ErrorCode::too_many_requests) return true;
  if (error.code == ErrorCode::unavailable) return idempotent_ || sent == Sent::nothing;
  // Our own deadline has passed when there is no status.
  return error.code == ErrorCode::timeout && error.http_status != 0 && idempotent_;
}

std::optional<std::chrono::milliseconds> Retry::after(const Error& error, Sent sent,
                                                      Clock::time_point now, Deadline deadline) {
  if (attempts_left_ <= 1 || !may_repeat(error, sent)) return std::nullopt;
  const auto delay = backoff_.next(error.retry_after);
  if (deadline - now <= delay) return std::nullopt;
  --attempts_left_;
  return delay;
}

}  // namespace gitops::k8s
