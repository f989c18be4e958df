#pragma once

#include <string>

#include "common/core/error.hpp"
#include "common/http/message.hpp"

namespace gitops::argo {

// The Error of an answer that is not 200, of any server of the Argo projects: their errors are the JSON
// {"code", "message"} of grpc-gateway. `what` was attempted.
Error error_from_answer(const http::Response& response, const std::string& what);

}  // namespace gitops::argo
