#pragma once

#include <optional>
#include <string_view>

#include "common/http/message.hpp"

namespace gitops::router {

// Returns the router's own error response: a small page for browsers that accept HTML, otherwise
// JSON in app-proxy's form ({"statusCode":…,"message":…,"error":…}). Statuses that invite a retry
// (429, 502, 503, 504) have Retry-After.
http::Response error_answer(int status, std::string_view message,
                            std::optional<std::string_view> accept);

}  // namespace gitops::router
