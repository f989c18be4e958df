#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "app-proxy/providers/git_types.hpp"
#include "common/core/time.hpp"
#include "common/http/message.hpp"

namespace gitops::app_proxy {

// Remaining requests of one token at its host, computed from its responses. Pure. Sources: GitHub's
// X-RateLimit-{Limit,Remaining,Reset,Resource} and its secondary limits (403 or 429 with
// Retry-After), GitLab's RateLimit-*, Retry-After of all others.
class RateBudget {
 public:
  // Returns the wait until a request may be sent; nullopt when it may be sent now. `resource` is
  // the host's name of the limit ("core", "search").
  [[nodiscard]] std::optional<Clock::duration> wait(std::string_view resource, Urgency urgency,
                                                    Clock::time_point now) const;
  // Counts a request that is sent now.
  void spend(std::string_view resource);
  // Reads the limits of a response. Returns true when the host refused the request because of a
  // limit.
  bool note(std::string_view resource, const http::Response& response, Clock::time_point now,
            WallTime wall);

 private:
  struct Limit {
    std::optional<std::int64_t> limit;
    std::optional<std::int64_t> remaining;
    Clock::time_point resets{};
    Clock::time_point blocked_until{};
  };
  std::map<std::string, Limit, std::less<>> limits_;
  Clock::time_point all_blocked_until_{};
};

}  // namespace gitops::app_proxy
