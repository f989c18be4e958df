#include "k8s-client/status.hpp"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/encoding.hpp"
#include "common/core/json_value.hpp"
#include "common/core/time.hpp"

namespace gitops::k8s {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxText = 64 * 1024;
constexpr std::size_t kMaxMessage = 500;
constexpr std::size_t kMaxCauses = 50;
constexpr std::int64_t kMaxRetryAfter = 300;  // seconds

Status status_of(const Json& json) {
  Status status;
  const std::int64_t code = integer_at(json, {"code"}).value_or(0);
  if (code >= 100 && code < 600) status.code = static_cast<int>(code);
  status.reason = string_at(json, {"reason"});
  status.message = string_at(json, {"message"});
  const Json& details = value_at(json, {"details"});
  status.name = string_at(details, {"name"});
  status.group = string_at(details, {"group"});
  status.kind = string_at(details, {"kind"});
  if (const Json& causes = value_at(details, {"causes"}); causes.is_array()) {
    for (const Json& cause : causes) {
      if (status.causes.size() == kMaxCauses) break;
      status.causes.push_back({.reason = string_at(cause, {"reason"}),
                               .field = string_at(cause, {"field"}),
                               .message = string_at(cause, {"message"})});
    }
  }
  const Json& seconds = value_at(details, {"retryAfterSeconds"});
  if (seconds.is_number_integer()) {
    // integer_at() fails for numbers beyond int64.
    const std::int64_t wait = integer_at(seconds, {}).value_or(kMaxRetryAfter);
    status.retry_after = std::chrono::seconds(std::clamp<std::int64_t>(wait, 0, kMaxRetryAfter));
  }
  return status;
}

Json parse(std::string_view text) {
  return text.size() <= kMaxText ? parse_json_object(text) : Json();
}

// Returns everything except the message.
Error error_without_message(const Status& status) {
  Error error;
  if (status.code >= 400) {
    error.http_status = status.code;
    error.code = error_code_of_status(status.code);
  } else {
    const bool gone = status.reason == reasons::kExpired || status.reason == "Gone";
    error.code = gone ? ErrorCode::gone : ErrorCode::unavailable;
  }
  error.reason = status.reason;
  if (!status.causes.empty()) error.cause = status.causes.front().reason;
  error.retry_after = status.retry_after;
  return error;
}

}  // namespace

Status parse_status(std::string_view text) {
  return status_of(parse(text));
}

Error error_of(const Status& status) {
  Error error = error_without_message(status);
  error.message = status.message.substr(0, kMaxMessage);
  if (error.message.empty()) error.message = status.reason;
  if (error.message.empty()) error.message = "error event without a reason";
  return error;
}

Error error_of(const http::Response& response, std::string_view what, Words words) {
  const Json json = parse(response.body);
  Status status;
  if (string_at(json, {"kind"}) == "Status") status = status_of(json);
  status.code = response.status;
  Error error = error_without_message(status);
  error.code = error_code_of_status(response.status);
  error.http_status = response.status;
  if (error.retry_after.count() == 0) {
    if (const auto value = response.headers.find("Retry-After")) {
      error.retry_after = parse_retry_after(*value, wall_now());
    }
  }
  error.message = std::string(what) + ": " + std::to_string(response.status) + " ";
  error.message += status.reason.empty() ? http::reason_phrase(response.status)
                                         : std::string_view(status.reason);
  if (words == Words::show && !status.message.empty()) {
    error.message += ": " + status.message.substr(0, kMaxMessage);
  }
  return error;
}

}  // namespace gitops::k8s
