#include "app-proxy/actions/answers.hpp"

#include <algorithm>
#include <utility>

#include "common/core/log.hpp"

namespace gitops::app_proxy {
namespace {

constexpr std::size_t kMaxName = 253;

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
}

}  // namespace

Error forbidden_action(std::string message) {
  return {.code = ErrorCode::forbidden, .message = std::move(message), .http_status = 403};
}

Result<void> check_object_name(std::string_view what, std::string_view name) {
  const bool is_name = !name.empty() && name.size() <= kMaxName &&
                       std::ranges::all_of(name, is_name_character) && name.front() != '.' &&
                       name.front() != '-' && name.back() != '.' && name.back() != '-' &&
                       !name.contains("..");
  if (is_name) return {};
  return fail(ErrorCode::invalid_argument,
              std::string(what) + ": not the name of a Kubernetes object");
}

Error public_action_error(Error error, std::string_view peer) {
  using enum ErrorCode;
  static const Log log("actions");
  const auto log_failure = [&] {
    log.warning("an action failed",
                {{"peer", peer}, {"code", to_string(error.code)}, {"error", error.message}});
  };
  switch (error.code) {
    case unauthenticated:
    case forbidden:
      log_failure();
      return {.code = unavailable,
              .message = std::string(peer) +
                         " does not let the runtime do this; see the log of the runtime",
              .subcode = action_errors::kNotAvailable};
    case unavailable:
    case tls:
    case protocol:
    case internal:
      log_failure();
      return {.code = unavailable,
              .message = std::string(peer) + " cannot be asked now; try again later",
              .subcode = action_errors::kNotAvailable};
    case timeout:
      log_failure();
      return {.code = timeout,
              .message = std::string(peer) +
                         " did not answer in time; look at the object before you repeat this"};
    case not_found:
      error.subcode = action_errors::kNotFound;
      return error;
    default:
      error.subcode = {};
      return error;
  }
}

}  // namespace gitops::app_proxy
