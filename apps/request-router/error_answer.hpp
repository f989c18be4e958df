#pragma once

#include <optional>
#include <string_view>

#include "common/http/message.hpp"

namespace gitops::router {

// What the router says when it answers itself: a small page for a browser that asks for HTML, JSON
// of app-proxy's shape ({"statusCode":…,"message":…,"error":…}) for everybody else. Answers that
// ask for another try (429, 502, 503, 504) carry Retry-After.
http::Response error_answer(int status, std::string_view message,
                            std::optional<std::string_view> accept);

}  // namespace gitops::router
