#pragma once

#include <string>

#include "common/core/error.hpp"
#include "common/http/message.hpp"

namespace gitops::argo {

// Returns the Error of a response that is not 200, of any server of the Argo projects: their errors
// are the JSON {"code", "message"} of grpc-gateway. `what` was attempted. These servers never
// respond with a page: such an error is `unavailable`, without a status, unless it asks for
// credentials or for a pause (401, 429). So is a 403 or 404 whose body is no JSON object.
Error error_from_answer(const http::Response& response, const std::string& what);

// Returns the body of a response 200, or the Error of any other response. A response 200 that is
// not JSON comes from an intermediary, and is `unavailable` without a status.
Result<std::string> body_of(http::Response response, const std::string& what);

}  // namespace gitops::argo
