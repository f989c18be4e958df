#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"
#include "common/http/message.hpp"

namespace gitops::k8s {

// The API server's description of a failed request: a `Status` object (meta/v1), as the body of a
// response or as the object of a watch's ERROR event. Reasons are those of StatusReason and
// CauseType in k8s.io/apimachinery/pkg/apis/meta/v1/types.go.
struct Status {
  struct Cause {
    std::string reason;   // "FieldValueInvalid", "ResourceVersionTooLarge"; may be empty
    std::string field;    // "spec.replicas"; may be empty
    std::string message;  // may quote values of the object
  };

  int code = 0;         // as in HTTP; 0 when it is absent
  std::string reason;   // "NotFound", "AlreadyExists", "Conflict"; may be empty
  std::string message;  // for a person; may quote values of the object
  // details: the object of the request.
  std::string name;
  std::string group;
  std::string kind;  // mostly a plural such as "configmaps"
  std::vector<Cause> causes;
  std::chrono::seconds retry_after{0};  // at most five minutes
};

// Values of Error::reason that decide something in callers of this library.
namespace reasons {
inline constexpr std::string_view kAlreadyExists = "AlreadyExists";
// A stale resourceVersion, a failed precondition, or (with Error::cause FieldManagerConflict) a
// field of another manager.
inline constexpr std::string_view kConflict = "Conflict";
inline constexpr std::string_view kExpired = "Expired";
inline constexpr std::string_view kNotFound = "NotFound";
}  // namespace reasons

// Values of Error::subcode.
namespace subcodes {
// The exec plugin or the token file gave no credential, so nothing was sent.
inline constexpr std::string_view kNoCredential = "NoCredential";
}  // namespace subcodes

// Values of Error::cause.
namespace causes {
// The requested resourceVersion is newer than the server's state.
inline constexpr std::string_view kResourceVersionTooLarge = "ResourceVersionTooLarge";
inline constexpr std::string_view kFieldManagerConflict = "FieldManagerConflict";
}  // namespace causes

// Returns the Status in a JSON text. Members of another type count as absent; a text that is no
// JSON object or over 64 KiB gives an empty Status. `kind` and `apiVersion` are ignored.
Status parse_status(std::string_view text);

// Returns the Error of a watch's ERROR event: its message is that of the Status, its code comes
// from the code of the Status or, without a usable one, from its reason.
Error error_of(const Status& status);

// Permission to include the API server's message in an error. The message may quote parts of a
// Secret.
enum class Words { show, hide };

// Returns the Error of a response that is not 2xx. Its message is one line: `what` was attempted,
// the HTTP status, and, when the body is a Status, its reason and its message. retryAfterSeconds of
// the Status wins over the header Retry-After.
Error error_of(const http::Response& response, std::string_view what, Words words = Words::show);

}  // namespace gitops::k8s
