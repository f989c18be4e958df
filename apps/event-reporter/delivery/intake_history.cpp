#include "event-reporter/delivery/intake_history.hpp"

#include <utility>

#include "common/http/message.hpp"

namespace gitops::reporter {
namespace {

constexpr std::size_t kMaxHead = 200;  // bytes of a position and of a token

// Returns whether a head may be kept and sent again.
bool is_usable(const std::string& head) {
  return !head.empty() && head.size() <= kMaxHead && http::is_field_value(head);
}

}  // namespace

void IntakeHistory::begin(std::string reporter, std::string position, Keep keep) {
  reporter_ = std::move(reporter);
  position_ = is_usable(position) ? std::move(position) : std::string();
  keep_ = std::move(keep);
}

void IntakeHistory::acknowledged(const std::string& position, const std::string& resync) {
  if (reporter_.empty()) return;
  if (is_usable(position) && position != position_) {
    position_ = position;
    if (keep_) keep_(position_);
  }
  if (!is_usable(resync) || resync == ended_ || resync == resync_) return;
  resync_ = resync;
  asked_.notify_all();
}

Task<std::string> IntakeHistory::next_resync() {
  while (resync_.empty()) co_await asked_.wait();
  co_return resync_;
}

void IntakeHistory::end_resync(const std::string& token) {
  ended_ = token;
  if (resync_ == token) resync_.clear();
}

}  // namespace gitops::reporter
