#pragma once

#include <string>

#include "common/http/message.hpp"

// Checks that a response is the requested JSON. The page of a proxy, an ingress or a login in place
// of the peer is not, whatever its status. Pure.
namespace gitops::http {

// Returns whether the media type is application/json, ends in "+json", or is missing.
[[nodiscard]] bool may_be_json(const Headers& headers);
// Returns the same, and false if the body begins like a page.
[[nodiscard]] bool may_be_json(const Response& response);

// Returns whether the media type is that of a page (HTML). No API of a peer responds with one.
[[nodiscard]] bool is_page(const Headers& headers);

// Returns the error message for a response that is not JSON: its content and possible origin.
[[nodiscard]] std::string not_json(const Response& response);

}  // namespace gitops::http
