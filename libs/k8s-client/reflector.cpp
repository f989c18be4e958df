#include "k8s-client/reflector.hpp"

#include <algorithm>
#include <utility>

#include "k8s-client/status.hpp"

namespace gitops::k8s {

namespace {

using namespace std::chrono_literals;

constexpr auto kTooQuick = 1s;
constexpr auto kHealthy = 2min;
constexpr unsigned kUnfinishedMost = 2;
// Objects of a page below which its size is not the reason why it takes too long.
constexpr std::size_t kSmallPage = 50;

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

bool is_older_version(std::string_view version, std::string_view than) {
  if (!is_number(version) || !is_number(than)) return false;
  if (version.size() != than.size()) return version.size() < than.size();
  return version < than;
}

Reflector::Reflector(Options options, std::uint64_t seed)
    : options_(options),
      backoff_(options.backoff, seed),
      random_(static_cast<std::minstd_rand::result_type>(seed >> 32)) {
  page_limit_ = options_.page_limit = std::max<std::size_t>(options_.page_limit, 1);
  options_.watch_timeout_max = std::max(options_.watch_timeout_max, options_.watch_timeout_min);
}

Reflector::Action Reflector::next() {
  Action action;
  if (wait_) {
    action.delay = *std::exchange(wait_, std::nullopt);
    return action;
  }
  if (unverified_ && is_number(resource_version_)) {
    action.kind = Action::Kind::check;
    return action;
  }
  if (phase_ == Phase::list && !streams()) {
    action.kind = Action::Kind::list;
    action.continue_token = continue_token_;
    action.limit = unpaged_ ? 0 : page_limit_;
    return action;
  }
  action.kind = Action::Kind::watch;
  action.timeout = std::chrono::seconds(std::uniform_int_distribution<std::chrono::seconds::rep>(
      options_.watch_timeout_min.count(), options_.watch_timeout_max.count())(random_));
  action.send_initial_events = phase_ == Phase::list;
  if (phase_ == Phase::watch) action.resource_version = resource_version_;
  in_streaming_list_ = action.send_initial_events;
  opened_at_.reset();
  news_ = false;
  return action;
}

void Reflector::on_server_version(const std::string& resource_version) {
  unverified_ = false;
  if (!is_older_version(resource_version, resource_version_)) return;
  ++epoch_;
  resource_version_.clear();
  need_list("restored");
  if (++gone_in_a_row_ > 1) back_off();
}

void Reflector::on_check_error(const Error& error) {
  back_off(error.retry_after);
}

bool Reflector::on_list_page(const std::string& resource_version, std::string continue_token) {
  if (continue_token_.empty()) list_version_ = resource_version;
  continue_token_ = std::move(continue_token);
  if (!continue_token_.empty()) return false;
  complete_list(list_version_);
  return true;
}

void Reflector::on_list_error(const Error& error) {
  if (error.code == ErrorCode::too_large && !unpaged_ && page_limit_ > 1) {
    page_limit_ /= 2;
    return;
  }
  unverified_ = true;
  const bool was_paging = !continue_token_.empty();
  if (error.code == ErrorCode::gone) {
    on_gone();
    unpaged_ = was_paging;
    return;
  }
  const bool is_slow = error.code == ErrorCode::timeout;
  // A slow connection may not carry a large page in time, nor the whole list.
  if (is_slow && !unpaged_) {
    page_limit_ = std::max(page_limit_ / 2, std::min(page_limit_, kSmallPage));
  }
  if (!error.is_transient() || (is_slow && unpaged_)) need_list("failed");
  back_off(error.retry_after);
}

void Reflector::on_watch_open(Clock::time_point now) {
  opened_at_ = now;
}

void Reflector::on_event(const std::string& resource_version) {
  if (in_streaming_list_ || resource_version.empty() || resource_version == resource_version_)
    return;
  resource_version_ = resource_version;
  news_ = true;
  backoff_.reset();
  gone_in_a_row_ = 0;
}

void Reflector::on_bookmark(const std::string& resource_version) {
  if (in_streaming_list_) return;
  has_seen_bookmark_ = true;
  if (is_older_version(resource_version, resource_version_)) return;
  resource_version_ = resource_version;
}

void Reflector::on_initial_events_end(const std::string& resource_version) {
  if (!std::exchange(in_streaming_list_, false)) {
    on_bookmark(resource_version);
    return;
  }
  unfinished_streaming_ = 0;
  complete_list(resource_version);
}

void Reflector::complete_list(const std::string& version) {
  phase_ = Phase::watch;
  resource_version_ = version;
  pages_this_time_ = false;
  unpaged_ = false;
  page_limit_ = std::min(page_limit_ * 2, options_.page_limit);
}

void Reflector::on_watch_end(const Error* error, Clock::time_point now) {
  unverified_ = true;
  const auto lived = opened_at_ ? now - *opened_at_ : Clock::duration::zero();
  if (lived >= kHealthy) {
    backoff_.reset();
    gone_in_a_row_ = 0;
  }
  if (in_streaming_list_) {
    on_streaming_list_end(error);
    in_streaming_list_ = false;
    return;
  }
  if (error == nullptr) {
    if (lived < kTooQuick && !news_) back_off();
  } else if (error->code == ErrorCode::gone || error->cause == causes::kResourceVersionTooLarge) {
    on_gone();
  } else {
    // The server does not understand the version, so it cannot be used again.
    if (error->code == ErrorCode::invalid_argument) need_list("failed");
    back_off(error->retry_after);
  }
}

void Reflector::on_streaming_list_end(const Error* error) {
  if (error == nullptr) {
    if (++unfinished_streaming_ >= kUnfinishedMost) {
      list_in_pages("streaming_failed");
    } else {
      need_list("failed");
      back_off();
    }
  } else if (error->code == ErrorCode::invalid_argument) {
    options_.streaming_list = false;
    need_list("streaming_refused");
  } else if (error->code == ErrorCode::timeout && opened_at_) {
    list_in_pages("streaming_failed");
  } else if (error->code == ErrorCode::gone) {
    on_gone();
  } else if (opened_at_ && ++unfinished_streaming_ >= kUnfinishedMost) {
    // A proxy in between may limit the time of a response, and a page takes less.
    list_in_pages("streaming_failed");
    back_off(error->retry_after);
  } else {
    need_list("failed");
    back_off(error->retry_after);
  }
}

void Reflector::need_list(std::string_view reason) {
  phase_ = Phase::list;
  continue_token_.clear();
  unpaged_ = false;
  list_reason_ = reason;
}

void Reflector::list_in_pages(std::string_view reason) {
  pages_this_time_ = true;
  need_list(reason);
}

void Reflector::on_gone() {
  need_list("gone");
  if (++gone_in_a_row_ > 1) back_off();
}

}  // namespace gitops::k8s
