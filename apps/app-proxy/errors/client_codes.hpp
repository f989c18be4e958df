#pragma once

#include <string_view>

// Values of Error::subcode that clients see as the code of an error (docs/reference/app-proxy/errors.md). They
// are stable, since clients compare them.
namespace gitops::app_proxy {

// Failures of Git hosts and Git servers.
namespace git_errors {
inline constexpr std::string_view kTokenRejected = "GIT_TOKEN_REJECTED";       // unauthenticated
inline constexpr std::string_view kTokenLacksRight = "GIT_TOKEN_LACKS_RIGHT";  // forbidden
inline constexpr std::string_view kNotFound = "GIT_NOT_FOUND";                 // not_found
inline constexpr std::string_view kConflict = "GIT_CONFLICT";                  // conflict
inline constexpr std::string_view kRefused = "GIT_REFUSED";                    // invalid_argument
inline constexpr std::string_view kThrottled = "GIT_THROTTLED";                // too_many_requests
inline constexpr std::string_view kUnreachable =
    "GIT_HOST_UNREACHABLE";                                        // unavailable, timeout, tls
inline constexpr std::string_view kRedirected = "GIT_REDIRECTED";  // protocol
inline constexpr std::string_view kBadAnswer = "GIT_BAD_ANSWER";   // protocol, too_large
inline constexpr std::string_view kNothingToCommit = "GIT_NOTHING_TO_COMMIT";  // invalid_argument
}  // namespace git_errors

// Git integrations and their users' tokens.
namespace integration_errors {
inline constexpr std::string_view kUnknown = "GIT_INTEGRATION_NOT_FOUND";
inline constexpr std::string_view kExists = "GIT_INTEGRATION_EXISTS";
inline constexpr std::string_view kNoToken = "GIT_TOKEN_MISSING";
inline constexpr std::string_view kInvalidToken = "GIT_TOKEN_INVALID";
inline constexpr std::string_view kTooMany = "GIT_INTEGRATION_FULL";
// The host rejects the code of a login, or its refresh token.
inline constexpr std::string_view kNotGranted = "GIT_LOGIN_NOT_GRANTED";
}  // namespace integration_errors

// Git sources, and other files of the shared configuration repository.
namespace git_source_errors {
inline constexpr std::string_view kExists = "GIT_SOURCE_EXISTS";
inline constexpr std::string_view kNameTaken = "NAME_TAKEN";
inline constexpr std::string_view kUnknown = "GIT_SOURCE_NOT_FOUND";
inline constexpr std::string_view kForm = "GIT_SOURCE_UNREADABLE";
}  // namespace git_source_errors

// Integrations with other tools.
namespace tool_integration_errors {
inline constexpr std::string_view kExists = "INTEGRATION_EXISTS";
inline constexpr std::string_view kUnknown = "INTEGRATION_NOT_FOUND";
inline constexpr std::string_view kNoKey = "SEALING_KEY_MISSING";
}  // namespace tool_integration_errors

// Actions on Applications, workflows and rollouts, and their logs.
namespace action_errors {
// Public clients compare this code.
inline constexpr std::string_view kNotFound = "NOT_FOUND_ERROR";
inline constexpr std::string_view kInProgress = "ARGO_CD_OPERATION_IN_PROGRESS";
inline constexpr std::string_view kAutoSync = "ARGO_CD_AUTO_SYNC";
inline constexpr std::string_view kNotAvailable = "ARGO_NOT_AVAILABLE";
inline constexpr std::string_view kNotInstalled = "ARGO_NOT_INSTALLED";
inline constexpr std::string_view kNotPossible = "NOT_POSSIBLE_NOW";
inline constexpr std::string_view kPruning = "STILL_PRUNING";
}  // namespace action_errors

}  // namespace gitops::app_proxy
