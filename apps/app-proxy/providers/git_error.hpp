#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "app-proxy/providers/api_root.hpp"
#include "common/core/error.hpp"
#include "common/http/message.hpp"

// Failures of a Git host: Error::reason is one of these, stable and shown to clients as their code;
// the message ends with what to do. None holds a token, even when the host sends it back.
namespace gitops::app_proxy::git_errors {

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

}  // namespace gitops::app_proxy::git_errors

namespace gitops::app_proxy {

// What an error is about: "<what> at <host>".
struct GitErrorPlace {
  const ApiRoot& root;
  std::string_view what;
};

// The error of an answer that is not 2xx. `token` is taken out of what the host says.
Error refused_by_host(const GitErrorPlace& place, const http::Response& response,
                      std::string_view token);
// The error of a request that got no answer.
Error host_unreachable(const GitErrorPlace& place, Error cause);
Error host_throttles(const GitErrorPlace& place, std::chrono::milliseconds wait);
Error bad_answer(const GitErrorPlace& place, std::string_view problem);
Error redirected_away(const GitErrorPlace& place);

// The explanation in an error's body, one line of at most 200 characters; empty when there is none,
// or when it contains `token`. Hosts write {"message"}, {"error"}, {"error":{"message"}} or
// {"errors":[{"message"}]}.
std::string host_message(std::string_view body, std::string_view token);

}  // namespace gitops::app_proxy
