#pragma once

#include <optional>
#include <string_view>

#include "common/http/message.hpp"

namespace gitops::router {

// The router's own error answers: a small page for browsers that ask for HTML, otherwise JSON of
// app-proxy's shape ({"statusCode":…,"message":…,"error":…}). Statuses that invite a retry (429,
// 502, 503, 504) come with Retry-After.
http::Response error_answer(int status, std::string_view message,
                            std::optional<std::string_view> accept);

}  // namespace gitops::router
