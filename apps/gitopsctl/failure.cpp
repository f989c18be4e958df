#include "gitopsctl/failure.hpp"

#include <utility>

#include <nlohmann/json.hpp>

#include "common/cli/command.hpp"
#include "common/cli/table.hpp"
#include "common/core/json_value.hpp"
#include "common/http/json_answer.hpp"

namespace gitops::ctl {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxMessage = 500;
constexpr std::size_t kMaxRequestId = 64;

std::string shortened(std::string_view text) {
  return cli::printable(text.substr(0, kMaxMessage));
}

// Returns the status that an entry of `errors` stands for; 0 when it does not tell.
int status_of(const Json& entry) {
  const Json& extensions = value_at(entry, {"extensions"});
  if (extensions.is_number_integer()) return extensions.get<int>();
  if (const auto status = integer_at(extensions, {"statusCode"})) return static_cast<int>(*status);
  const auto code = string_at(extensions, {"code"});
  if (code == "UNAUTHENTICATED") return 401;
  if (code == "FORBIDDEN") return 403;
  if (code.starts_with("NOT_FOUND")) return 404;
  return 0;
}

// Whether an app-proxy says by 503 that nothing was tried, or that Argo CD has refused it.
bool is_argo_refusal(const Json& entry) {
  const auto message = string_at(entry, {"message"});
  return string_at(entry, {"extensions", "code"}) == "ARGO_NOT_AVAILABLE" &&
         (message.contains("is not configured for") ||
          message.contains("does not let the runtime"));
}

Error error_of(const Json& entry) {
  if (is_argo_refusal(entry)) {
    return {.code = ErrorCode::unsupported, .message = shortened(string_at(entry, {"message"}))};
  }
  const int status = status_of(entry);
  return {.code = status >= 400 ? error_code_of_status(status) : ErrorCode::internal,
          .message = shortened(string_at(entry, {"message"})),
          .http_status = status};
}

// Returns the error of a response whose status is not 200.
Error error_of(const http::Response& response) {
  const Json body = http::may_be_json(response) ? parse_json_object(response.body) : Json();
  std::string said;
  const Json& errors = value_at(body, {"errors"});
  if (errors.is_array() && !errors.empty()) said = string_at(errors[0], {"message"});
  for (const char* member : {"message", "error"}) {
    if (said.empty()) said = string_at(body, {member});
  }
  Error error{.code = error_code_of_status(response.status),
              .message = std::to_string(response.status) + " " +
                         std::string(http::reason_phrase(response.status)),
              .http_status = response.status};
  if (!said.empty()) error.message = shortened(said);
  // A page in place of the API, such as that of an ingress.
  const bool is_foreign = said.empty() && error.code == ErrorCode::not_found;
  if (is_foreign) error.code = ErrorCode::protocol;
  if (response.status >= 300 && response.status < 400) {
    error.message += ": it sends elsewhere, so this is not the address of the API";
  }
  return error;
}

Result<Json> json_of(const http::Response& response) {
  if (response.status < 200 || response.status > 299) return std::unexpected(error_of(response));
  if (!http::may_be_json(response)) return fail(ErrorCode::protocol, http::not_json(response));
  Json body = Json::parse(response.body, nullptr, false);
  if (body.is_discarded()) return fail(ErrorCode::protocol, "the answer is not JSON");
  return body;
}

std::string_view reason_of(const Error& error) {
  switch (error.code) {
    case ErrorCode::timeout:
      return "Timeout";
    case ErrorCode::unavailable:
      return error.http_status == 500 ? "InternalError" : "ServiceUnavailable";
    case ErrorCode::unauthenticated:
      return "Unauthorized";
    case ErrorCode::forbidden:
      return "Forbidden";
    case ErrorCode::not_found:
    case ErrorCode::gone:
      return "NotFound";
    case ErrorCode::conflict:
      return "Conflict";
    case ErrorCode::too_large:
      return "RequestEntityTooLarge";
    case ErrorCode::too_many_requests:
      return "TooManyRequests";
    case ErrorCode::invalid_argument:
    case ErrorCode::invalid_data:
      return "Invalid";
    case ErrorCode::unsupported:
      return "NotSupported";
    case ErrorCode::protocol:
    case ErrorCode::tls:
    case ErrorCode::internal:
      return "Unexpected";
  }
  std::unreachable();
}

// Whether no answer of the server was understood.
bool is_lost(const Error& error) {
  if (error.http_status == 0) {
    if (error.code == ErrorCode::too_large) return true;  // it was not read to its end
    return error.code == ErrorCode::timeout || error.code == ErrorCode::unavailable ||
           error.code == ErrorCode::tls || error.code == ErrorCode::protocol;
  }
  return error.code == ErrorCode::protocol || error.http_status == 502 || error.http_status == 504;
}

std::string hint_for(const Error& error) {
  switch (error.code) {
    case ErrorCode::unauthenticated:
      return "log in again: gitopsctl login URL";
    case ErrorCode::forbidden:
      return "gitopsctl rule test shows what you may do, and by which rule";
    case ErrorCode::tls:
      return "gitopsctl login --ca-file names the certificate authority of the server";
    case ErrorCode::timeout:
      return "--timeout gives it more time";
    case ErrorCode::unavailable:
    case ErrorCode::too_many_requests:
      return "try again; gitopsctl context list shows the address";
    case ErrorCode::protocol:
      return "check the address: gitopsctl context list";
    default:
      return {};
  }
}

std::string with_hint(std::string text, const std::string& hint) {
  if (!hint.empty()) text += "\nhint: " + hint;
  return text + '\n';
}

Result<Json> data_of(const http::Response& response) {
  auto body = json_of(response);
  if (!body) return body;
  const Json& errors = value_at(*body, {"errors"});
  if (errors.is_array() && !errors.empty()) return std::unexpected(error_of(errors[0]));
  const Json& data = value_at(*body, {"data"});
  if (!data.is_object()) return fail(ErrorCode::protocol, "the answer is not one of GraphQL");
  return Json(data);
}

// Adds the id by which the logs of the servers name the request.
Result<Json> with_request_id(Result<Json> outcome, const http::Response& response) {
  const auto id = response.headers.find("X-Request-Id");
  if (!outcome && id && id->size() <= kMaxRequestId && http::is_token(*id)) {
    outcome.error().message += " (request ID " + std::string(*id) + ")";
  }
  return outcome;
}

}  // namespace

Result<Json> graphql_data(const http::Response& response) {
  return with_request_id(data_of(response), response);
}

Result<Json> rest_value(const http::Response& response) {
  if (response.status == 204) return Json();
  return with_request_id(json_of(response), response);
}

int exit_code_of(const Error& error) {
  if (error.subcode == kUsage) return cli::kWrongUsage;
  if (error.subcode == kNotReached) return cli::kFailed;
  if (is_lost(error)) return cli::kNotKnown;
  switch (error.code) {
    case ErrorCode::not_found:
    case ErrorCode::gone:
      return cli::kNotFound;
    case ErrorCode::unauthenticated:
    case ErrorCode::forbidden:
    case ErrorCode::invalid_argument:
    case ErrorCode::conflict:
    case ErrorCode::unsupported:
    case ErrorCode::too_large:
      return cli::kRefused;
    case ErrorCode::too_many_requests:
    case ErrorCode::timeout:
      return cli::kNotKnown;
    case ErrorCode::unavailable:
      return error.http_status == 500 ? cli::kFailed : cli::kNotKnown;
    default:
      return cli::kFailed;
  }
}

bool is_away(const Error& error) {
  // A stream that was cut counts among those of its user until the server has seen the cut.
  if (error.code == ErrorCode::too_many_requests) return true;
  // A balancer whose server restarts takes connections, and closes them in the handshake.
  if (error.code == ErrorCode::tls) return true;
  if (error.code != ErrorCode::unavailable && error.code != ErrorCode::timeout) return false;
  // 500 is an answer, and the next one will be the same.
  return error.http_status == 0 || (error.http_status >= 502 && error.http_status <= 504);
}

std::string failure_text(const Error& error) {
  const std::string message = cli::printable(error.message);
  if (error.subcode == kUsage || error.subcode == kNotReached)
    return "gitopsctl: " + message + '\n';
  if (is_lost(error) && error.http_status == 0 && error.code != ErrorCode::too_large) {
    return with_hint("Unable to connect to the server: " + message, hint_for(error));
  }
  return with_hint("Error from server (" + std::string(reason_of(error)) + "): " + message,
                   hint_for(error));
}

Outcome outcome_of(const Error& error) {
  // 503 is said by proxies that have lost an answer, too, and by an app-proxy that has lost that of Argo CD.
  if (is_lost(error) || error.http_status == 503) {
    return error.subcode == kNotSent ? Outcome::failed : Outcome::unknown;
  }
  if (error.http_status >= 400 && error.http_status < 500) return Outcome::refused;
  // An internal error does not tell what the server had done before.
  if (error.code == ErrorCode::internal) return Outcome::failed;
  return error.http_status == 0 ? Outcome::refused : Outcome::failed;
}

std::string outcome_text(const Error& error, std::string_view look) {
  const std::string message = cli::printable(error.message);
  const std::string reason = " (" + std::string(reason_of(error)) + "): " + message;
  if (error.subcode == kNotSent && outcome_of(error) == Outcome::failed) {
    Error told = error;
    told.message += ". Nothing was changed.";
    return failure_text(told);
  }
  switch (outcome_of(error)) {
    case Outcome::refused:
      return with_hint("Refused" + reason + ". Nothing was changed.", hint_for(error));
    case Outcome::failed:
      return with_hint("Failed" + reason, {});
    case Outcome::unknown:
      return with_hint("Unknown" + reason + ". It may have been done.",
                       "look before you try again: " + std::string(look));
  }
  std::unreachable();
}

}  // namespace gitops::ctl
