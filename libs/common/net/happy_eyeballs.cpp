#include "common/net/happy_eyeballs.hpp"

#include <algorithm>
#include <utility>

namespace gitops::net {
namespace {

using std::chrono::milliseconds;

constexpr auto kRemember = std::chrono::minutes(1);
constexpr std::size_t kMaxFailed = 1'000;
// Recommended and minimum delay between attempts (RFC 8305, section 8).
constexpr Clock::duration kDelay = milliseconds(250);
constexpr Clock::duration kLeastDelay = milliseconds(10);

// Appends the endpoints with alternating families, beginning with that of the first endpoint.
void append_alternating(Endpoints& out, const Endpoints& endpoints) {
  if (endpoints.empty()) return;
  Endpoints first;
  Endpoints second;
  for (const auto& endpoint : endpoints) {
    (endpoint.protocol() == endpoints.front().protocol() ? first : second).push_back(endpoint);
  }
  for (std::size_t i = 0; i < std::max(first.size(), second.size()); ++i) {
    if (i < first.size()) out.push_back(first[i]);
    if (i < second.size()) out.push_back(second[i]);
  }
}

}  // namespace

void FailedEndpoints::note(const Endpoint& endpoint, bool works, Clock::time_point now) {
  if (works) {
    until_.erase(endpoint);
    return;
  }
  if (until_.size() >= kMaxFailed && !until_.contains(endpoint)) {
    if (std::erase_if(until_, [now](const auto& item) { return item.second <= now; }) == 0) {
      until_.erase(
          std::ranges::min_element(until_, {}, [](const auto& item) { return item.second; }));
    }
  }
  until_[endpoint] = now + kRemember;
}

bool FailedEndpoints::contains(const Endpoint& endpoint, Clock::time_point now) const {
  const auto found = until_.find(endpoint);
  return found != until_.end() && now < found->second;
}

Endpoints attempt_order(Endpoints endpoints, const FailedEndpoints& failed, Clock::time_point now) {
  if (endpoints.size() < 2) return endpoints;
  Endpoints good;
  Endpoints bad;
  for (const auto& endpoint : endpoints) {
    (failed.contains(endpoint, now) ? bad : good).push_back(endpoint);
  }
  endpoints.clear();
  append_alternating(endpoints, good);
  append_alternating(endpoints, bad);
  return endpoints;
}

ConnectRace::ConnectRace(std::size_t endpoints, Clock::time_point now, Deadline deadline)
    : endpoints_(endpoints),
      deadline_(deadline),
      delay_(kDelay),
      due_(now),
      last_{.code = ErrorCode::unavailable, .message = "no address to connect to"} {
  if (endpoints == 0) return;
  const auto share = (deadline - now) / static_cast<Clock::rep>(endpoints);
  delay_ = std::clamp(share, kLeastDelay, kDelay);
}

std::optional<std::size_t> ConnectRace::begin(Clock::time_point now) {
  const bool none_left = attempts_.size() == endpoints_;
  if (none_left || now < due_ || now >= deadline_) return std::nullopt;
  attempts_.push_back({.begun = now});
  ++under_way_;
  due_ = now + delay_;
  return attempts_.size() - 1;
}

void ConnectRace::failed(std::size_t endpoint, Error error) {
  attempts_[endpoint].failed = true;
  --under_way_;
  last_ = std::move(error);
  due_ = Clock::time_point::min();
}

std::vector<std::size_t> ConnectRace::slow(Clock::time_point now) const {
  std::vector<std::size_t> slow;
  for (std::size_t i = 0; i < attempts_.size(); ++i) {
    if (!attempts_[i].failed && now - attempts_[i].begun >= delay_) slow.push_back(i);
  }
  return slow;
}

Deadline ConnectRace::next() const {
  return attempts_.size() < endpoints_ ? std::min(due_, deadline_) : deadline_;
}

std::optional<Error> ConnectRace::given_up(Clock::time_point now) const {
  if (under_way_ == 0 && attempts_.size() == endpoints_) return last_;
  if (now < deadline_) return std::nullopt;
  return Error{.code = ErrorCode::timeout, .message = "connect timed out"};
}

}  // namespace gitops::net
