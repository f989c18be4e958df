#pragma once

#include <chrono>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace gitops {

// The category of a failure, by which callers decide. docs/adr/0002-result-and-error.md.
enum class ErrorCode {
  timeout,            // the deadline passed; the other side may still have acted
  unavailable,        // no connection, connection lost, or 5xx: try again later
  tls,                // a certificate was refused, by us or by the peer, or is not readable
  protocol,           // the peer violates the protocol
  invalid_argument,   // the request is invalid (400, 422)
  invalid_data,       // input that does not parse or breaks its schema
  unauthenticated,    // 401
  forbidden,          // 403
  not_found,          // 404
  conflict,           // 409: exists already, or a stale resourceVersion
  gone,               // 410: a resourceVersion or continue token that is too old
  too_large,          // over one of our limits, or 413
  too_many_requests,  // 429
  unsupported,        // this peer or this build cannot do it
  internal,           // a bug in this program
};

// The stable lower-case name of a code, e.g. "too_many_requests"; used in logs and metric labels.
std::string_view to_string(ErrorCode code);

// Returns the code for an HTTP status; 2xx and 3xx map to `protocol` (the caller did not expect
// them).
ErrorCode error_code_of_status(int http_status);

// An expected failure: its category, and one line for the log. Never holds a secret.
struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string message = {};
  // The peer's Retry-After; zero when there was none.
  std::chrono::milliseconds retry_after{0};
  // The HTTP status behind the error; 0 when there was none.
  int http_status = 0;
  // The program's own name of the case, for callers that must distinguish cases of one code: a
  // constant of a header, since this is a view. Empty when `code` says all. A subcode in capitals,
  // as "GIT_NOT_FOUND", is shown to clients (graphql/response.hpp); any other stays inside.
  std::string_view subcode = {};
  // The peer's name of the case: the reason of a Kubernetes Status ("AlreadyExists" and "Conflict"
  // are both `conflict`) and of its first cause. Never a name of our own. Empty when the peer gave
  // none; k8s-client/status.hpp lists those that decide something.
  std::string reason = {};
  std::string cause = {};

  // Returns true for failures that go away by themselves: a retry of the same request makes sense.
  [[nodiscard]] bool is_transient() const;
};

// A value or an Error. Results are for failures that can happen in a healthy system; exceptions are
// for bugs and for cancellation. T of a Result that travels through with_timeout is
// default-constructible.
template <class T>
class [[nodiscard]] Result : public std::expected<T, Error> {
 public:
  using std::expected<T, Error>::expected;
};

// `return fail(ErrorCode::not_found, "no context named x");`
inline std::unexpected<Error> fail(ErrorCode code, std::string message) {
  return std::unexpected(Error{.code = code, .message = std::move(message)});
}

// Passes an error on with more context in front: "<context>: <message>".
std::unexpected<Error> fail(std::string_view context, Error error);

}  // namespace gitops
