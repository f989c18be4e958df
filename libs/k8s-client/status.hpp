#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"
#include "common/http/message.hpp"

namespace gitops::k8s {

// What the API server says about a request that failed: a `Status` object (meta/v1), as the body of
// an answer or as the object of a watch's ERROR event. Reasons are those of StatusReason and
// CauseType in k8s.io/apimachinery/pkg/apis/meta/v1/types.go.
struct Status {
  struct Cause {
    std::string reason;   // "FieldValueInvalid", "ResourceVersionTooLarge"; may be empty
    std::string field;    // "spec.replicas"; may be empty
    std::string message;  // may quote values of the object
  };

  int code = 0;         // as in HTTP; 0 when it says none
  std::string reason;   // "NotFound", "AlreadyExists", "Conflict"; may be empty
  std::string message;  // for a person; may quote values of the object
  // details: what the request was about.
  std::string name;
  std::string group;
  std::string kind;  // a kind or, as a rule, a plural such as "configmaps"
  std::vector<Cause> causes;
  std::chrono::seconds retry_after{0};  // at most five minutes
};

// Values of Error::reason that callers of this library decide by.
namespace reasons {
inline constexpr std::string_view kAlreadyExists = "AlreadyExists";
// A stale resourceVersion, a failed precondition, or (with Error::cause FieldManagerConflict) a
// field that another manager has applied.
inline constexpr std::string_view kConflict = "Conflict";
inline constexpr std::string_view kExpired = "Expired";
// Made by the client: the exec plugin or the token file gave no credential, so nothing was sent.
inline constexpr std::string_view kNoCredential = "NoCredential";
}  // namespace reasons

// Values of Error::cause.
namespace causes {
// The server has no state as new as the resourceVersion asked for.
inline constexpr std::string_view kResourceVersionTooLarge = "ResourceVersionTooLarge";
inline constexpr std::string_view kFieldManagerConflict = "FieldManagerConflict";
}  // namespace causes

// The Status in a JSON text. Members of another type count as absent; a text that is no JSON object
// or over 64 KiB gives an empty Status. `kind` and `apiVersion` are not looked at.
Status parse_status(std::string_view text);

// The Error that an ERROR event of a watch stands for: its message is that of the Status, its code
// comes from the code of the Status or, without a usable one, from its reason.
Error error_of(const Status& status);

// Whether an error may repeat what the API server says: its words may quote parts of a Secret.
enum class Words { show, hide };

// The Error behind an answer of the API server that is not 2xx. Its message is one line: `what` was
// attempted, the HTTP status, and, when the body is a Status, its reason and its message. A
// Retry-After of the Status wins over the header.
Error error_of(const http::Response& response, std::string_view what, Words words = Words::show);

}  // namespace gitops::k8s
