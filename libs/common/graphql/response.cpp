#include "common/graphql/response.hpp"

#include <algorithm>

#include "common/graphql/print.hpp"

namespace gitops::graphql {
namespace {

int status_of(const Error& error) {
  if (error.http_status != 0) return error.http_status;
  switch (error.code) {
    case ErrorCode::invalid_argument:
    case ErrorCode::invalid_data:
      return 400;
    case ErrorCode::unauthenticated:
      return 401;
    case ErrorCode::forbidden:
      return 403;
    case ErrorCode::not_found:
      return 404;
    case ErrorCode::conflict:
      return 409;
    case ErrorCode::gone:
      return 410;
    case ErrorCode::too_large:
      return 413;
    case ErrorCode::too_many_requests:
      return 429;
    case ErrorCode::unsupported:
      return 501;
    case ErrorCode::unavailable:
    case ErrorCode::tls:
    case ErrorCode::protocol:
      return 502;
    case ErrorCode::timeout:
      return 504;
    case ErrorCode::internal:
      return 500;
  }
  return 500;
}

// Returns whether the subcode is one for clients, like "GIT_TOKEN_REJECTED"; others are internal.
bool is_stable_code(std::string_view subcode) {
  return subcode.contains('_') && std::ranges::all_of(subcode, [](char c) {
           return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
         });
}

}  // namespace

void append_json(std::string& out, const ResponseError& error) {
  out += "{\"message\":";
  append_quoted(out, error.message);
  if (!error.locations.empty()) {
    out += ",\"locations\":";
    char separator = '[';
    for (const Location& location : error.locations) {
      out += separator;
      separator = ',';
      out += "{\"line\":" + std::to_string(location.line) +
             ",\"column\":" + std::to_string(location.column) + "}";
    }
    out += ']';
  }
  if (!error.path.empty()) (out += ",\"path\":") += error.path;
  if (!error.extensions.empty()) (out += ",\"extensions\":") += error.extensions;
  out += '}';
}

std::string errors_json(const std::vector<ResponseError>& errors) {
  std::string out = "[";
  for (const ResponseError& error : errors) {
    if (out.size() > 1) out += ',';
    append_json(out, error);
  }
  return out + "]";
}

std::string errors_body(const std::vector<ResponseError>& errors) {
  return "{\"errors\":" + errors_json(errors) + "}";
}

ResponseError coded_error(std::string message, std::string_view code, int status) {
  ResponseError error{.message = std::move(message)};
  error.extensions =
      "{\"code\":" + in_quotes(code) + ",\"statusCode\":" + std::to_string(status) + "}";
  return error;
}

ResponseError present(const Error& error) {
  if (is_stable_code(error.subcode) && error.code != ErrorCode::internal) {
    return coded_error(error.message, error.subcode, status_of(error));
  }
  if (error.code == ErrorCode::forbidden && error.subcode != kPublicRefusal) {
    ResponseError forbidden{.message = "Forbidden"};
    forbidden.extensions = "403";
    return forbidden;
  }
  std::string code(to_string(error.code));
  for (char& c : code) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  const bool is_internal = error.code == ErrorCode::internal;
  return coded_error(is_internal ? "Internal server error" : error.message, code, status_of(error));
}

}  // namespace gitops::graphql
