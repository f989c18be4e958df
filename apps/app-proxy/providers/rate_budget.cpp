#include "app-proxy/providers/rate_budget.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace gitops::app_proxy {
namespace {

// Pause after a limit without a stated time, as GitHub recommends.
constexpr auto kDefaultWait = std::chrono::seconds(60);
// Longest pause of a token: GitHub's window is an hour.
constexpr auto kMaxWait = std::chrono::hours(1);
constexpr std::size_t kMaxResources = 16;

std::optional<std::int64_t> number(const http::Headers& headers, std::string_view name) {
  const auto text = headers.find(name);
  if (!text) return std::nullopt;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size() || value < 0) return std::nullopt;
  return value;
}

std::optional<std::int64_t> number(const http::Headers& headers, std::string_view name,
                                   std::string_view other) {
  const auto found = number(headers, name);
  return found ? found : number(headers, other);
}

}  // namespace

std::optional<Clock::duration> RateBudget::wait(std::string_view resource, Urgency urgency,
                                                Clock::time_point now) const {
  auto until = all_blocked_until_;
  if (const auto found = limits_.find(resource); found != limits_.end()) {
    const Limit& limit = found->second;
    until = std::max(until, limit.blocked_until);
    const auto kept = urgency == Urgency::background ? limit.limit.value_or(0) / 5 : 0;
    if (limit.remaining && *limit.remaining <= kept) until = std::max(until, limit.resets);
  }
  if (until <= now) return std::nullopt;
  return until - now;
}

void RateBudget::spend(std::string_view resource) {
  const auto found = limits_.find(resource);
  if (found != limits_.end() && found->second.remaining) {
    auto& left = *found->second.remaining;
    left = std::max<std::int64_t>(left - 1, 0);
  }
}

bool RateBudget::note(std::string_view resource, const http::Response& response,
                      Clock::time_point now, WallTime wall) {
  const auto& headers = response.headers;
  if (!limits_.contains(resource) && limits_.size() >= kMaxResources) limits_.clear();
  auto& limit = limits_[std::string(resource)];
  const auto remaining = number(headers, "X-RateLimit-Remaining", "RateLimit-Remaining");
  const auto reset = number(headers, "X-RateLimit-Reset", "RateLimit-Reset");
  if (remaining && reset) {
    const auto at = WallTime(std::chrono::seconds(std::min<std::int64_t>(*reset, 1LL << 33)));
    const auto wait =
        std::clamp<std::chrono::milliseconds>(at - wall, std::chrono::seconds(0), kMaxWait);
    limit.limit = number(headers, "X-RateLimit-Limit", "RateLimit-Limit");
    limit.remaining = remaining;
    limit.resets = now + wait;
  }
  const auto retry_after = headers.find("Retry-After");
  const bool is_throttled =
      response.status == 429 ||
      (response.status == 403 &&
       (retry_after || remaining == 0 || response.body.contains("secondary rate limit")));
  if (!is_throttled) return false;
  auto wait = std::chrono::milliseconds(kDefaultWait);
  if (retry_after) {
    wait = std::max<std::chrono::milliseconds>(parse_retry_after(*retry_after, wall),
                                               std::chrono::seconds(1));
  } else if (remaining == 0 && reset) {
    limit.blocked_until = std::max(limit.resets, now + std::chrono::seconds(1));
    return true;
  }
  // A secondary limit concerns all requests of the token.
  all_blocked_until_ = std::max(all_blocked_until_, now + wait);
  return true;
}

}  // namespace gitops::app_proxy
