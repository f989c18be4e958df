#include "common/argo/argo_error.hpp"

#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/json_value.hpp"
#include "common/core/time.hpp"
#include "common/http/json_answer.hpp"

namespace gitops::argo {
namespace {

constexpr std::size_t kMaxErrorBody = 64 * 1024;
constexpr std::size_t kMaxMessage = 500;

}  // namespace

Error error_from_answer(const http::Response& response, const std::string& what) {
  Error error;
  error.code = error_code_of_status(response.status);
  error.http_status = response.status;
  error.message = what + ": " + std::to_string(response.status) + " " +
                  std::string(http::reason_phrase(response.status));
  if (const auto value = response.headers.find("Retry-After")) {
    error.retry_after = parse_retry_after(*value, wall_now());
  }
  const bool is_small = response.body.size() <= kMaxErrorBody;
  const auto json =
      parse_json_object(is_small ? std::string_view(response.body) : std::string_view("{}"));
  const bool is_page =
      http::is_page(response.headers) && response.status != 401 && response.status != 429;
  // An ingress without a backend and a service mesh say so in plain text.
  const bool is_verdict = response.status == 403 || response.status == 404;
  if (is_page || (is_verdict && !json.is_object())) {
    error.code = ErrorCode::unavailable;
    error.http_status = 0;
    error.message = what + ": " + http::not_json(response);
    return error;
  }
  const auto message = string_at(json, {"message"});
  if (!message.empty()) error.message += ": " + message.substr(0, kMaxMessage);
  return error;
}

Result<std::string> body_of(http::Response response, const std::string& what) {
  if (response.status != 200) return std::unexpected(error_from_answer(response, what));
  if (http::may_be_json(response)) return std::move(response.body);
  return fail(ErrorCode::unavailable, what + ": " + http::not_json(response));
}

}  // namespace gitops::argo
