#include "k8s-client/token_source.hpp"

#include <algorithm>
#include <utility>

#include "common/core/encoding.hpp"
#include "common/core/race.hpp"
#include "common/core/small_file.hpp"
#include "common/core/text.hpp"
#include "common/http/message.hpp"

namespace gitops::k8s {
namespace {

constexpr std::chrono::minutes kReread{1};
// Shortest time between two runs of a plugin whose credential is refused.
constexpr std::chrono::seconds kPluginPause{10};

// Returns the time until a credential expires, at most a year.
std::chrono::milliseconds time_left(WallTime expires) {
  constexpr std::chrono::milliseconds kYear = std::chrono::hours(365 * 24);
  return std::clamp(expires - wall_now(), -kYear, kYear);
}

// Returns the time for which a credential is used before it is renewed: until a minute before its
// end, or half of a short time.
std::chrono::milliseconds time_of_use(std::chrono::milliseconds left) {
  return left > std::chrono::minutes(2) ? left - std::chrono::minutes(1) : left / 2;
}

Result<std::string> read_token(const std::string& path) {
  const auto text = read_small_file(path);
  if (!text) return text;
  std::string token(trimmed(*text));
  if (token.empty()) return fail(ErrorCode::invalid_data, "is empty");
  if (!http::is_field_value(token)) return fail(ErrorCode::invalid_data, "is not a token");
  return token;
}

}  // namespace

TokenSource::TokenSource(const Executor& executor, const ClusterConfig& config)
    : config_(config), finished_(executor) {}

Task<Result<Secret>> TokenSource::authorization(Deadline deadline) {
  if (!config_.token.empty()) co_return Secret("Bearer " + std::string(config_.token.reveal()));
  if (!config_.username.empty()) {
    co_return Secret(
        "Basic " + base64_encode(config_.username + ":" + std::string(config_.password.reveal())));
  }
  if (!config_.token_file.empty()) co_return read_token_file(Clock::now());
  if (!config_.exec) co_return Secret();

  bool waited = false;
  while (running_) {
    waited = true;
    if (!co_await finished_.wait(deadline)) {
      co_return fail(ErrorCode::timeout,
                     "exec plugin " + config_.exec->command + ": deadline passed");
    }
  }
  if (known_ && Clock::now() < expires_) co_return cached_;
  if (waited && plugin_failure_) co_return std::unexpected(*plugin_failure_);
  co_return co_await run_plugin(deadline);
}

bool TokenSource::invalidate(const Secret& refused) {
  if (!known_ || !config_.token.empty() || !config_.username.empty()) return false;
  if (!(cached_ == refused)) return true;
  if (!config_.token_file.empty()) {
    expires_ = {};
    const auto token = read_token_file(Clock::now());
    return token && !(*token == refused);
  }
  if (Clock::now() < obtained_ + kPluginPause) return false;
  known_ = false;
  return true;
}

Result<Secret> TokenSource::read_token_file(Clock::time_point now) {
  if (known_ && now < expires_) return cached_;
  expires_ = now + kReread;
  auto token = read_token(config_.token_file);
  if (token) {
    cached_ = Secret("Bearer " + *token);
    known_ = true;
  } else if (!known_) {
    return fail("token file " + config_.token_file, std::move(token.error()));
  }
  return cached_;
}

Task<Result<Secret>> TokenSource::run_plugin(Deadline deadline) {
  struct Running {
    explicit Running(TokenSource& source) : source(source) { source.running_ = true; }
    ~Running() {
      source.running_ = false;
      source.finished_.notify_all();
    }
    TokenSource& source;
  } running(*this);

  plugin_failure_.reset();
  auto credential = co_await run_exec_plugin(config_, deadline);
  const auto now = Clock::now();
  if (!credential) {
    if (known_ && now < ends_) {
      expires_ = std::min(ends_, now + kPluginPause);
      co_return cached_;
    }
    plugin_failure_ = credential.error();
    co_return std::unexpected(std::move(credential.error()));
  }
  const auto left = time_left(credential->expires);
  obtained_ = now;
  expires_ = now + time_of_use(left);
  ends_ = now + left;
  known_ = true;
  certificate_ = std::move(credential->certificate);
  cached_ = credential->token.empty() ? Secret()
                                      : Secret("Bearer " + std::string(credential->token.reveal()));
  co_return cached_;
}

}  // namespace gitops::k8s
