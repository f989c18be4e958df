#include "common/core/error.hpp"

namespace gitops {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::timeout:
      return "timeout";
    case ErrorCode::unavailable:
      return "unavailable";
    case ErrorCode::tls:
      return "tls";
    case ErrorCode::protocol:
      return "protocol";
    case ErrorCode::invalid_argument:
      return "invalid_argument";
    case ErrorCode::invalid_data:
      return "invalid_data";
    case ErrorCode::unauthenticated:
      return "unauthenticated";
    case ErrorCode::forbidden:
      return "forbidden";
    case ErrorCode::not_found:
      return "not_found";
    case ErrorCode::conflict:
      return "conflict";
    case ErrorCode::gone:
      return "gone";
    case ErrorCode::too_large:
      return "too_large";
    case ErrorCode::too_many_requests:
      return "too_many_requests";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::internal:
      return "internal";
  }
  return "internal";
}

ErrorCode error_code_of_status(int http_status) {
  switch (http_status) {
    case 401:
      return ErrorCode::unauthenticated;
    case 403:
      return ErrorCode::forbidden;
    case 404:
      return ErrorCode::not_found;
    case 405:
    case 415:
    case 501:
    case 505:
      return ErrorCode::unsupported;
    case 408:
      return ErrorCode::timeout;
    case 409:
    case 412:
      return ErrorCode::conflict;
    case 410:
      return ErrorCode::gone;
    case 413:
      return ErrorCode::too_large;
    case 429:
      return ErrorCode::too_many_requests;
    default:
      break;
  }
  if (http_status >= 500 && http_status < 600) return ErrorCode::unavailable;
  if (http_status >= 400 && http_status < 500) return ErrorCode::invalid_argument;
  return ErrorCode::protocol;
}

bool Error::is_transient() const {
  return code == ErrorCode::timeout || code == ErrorCode::unavailable ||
         code == ErrorCode::too_many_requests;
}

std::unexpected<Error> fail(std::string_view context, Error error) {
  error.message = std::string(context) + ": " + error.message;
  return std::unexpected(std::move(error));
}

}  // namespace gitops
