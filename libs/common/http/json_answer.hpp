#pragma once

#include <string>

#include "common/http/message.hpp"

// Whether an answer is the JSON that was asked for. The page of a proxy, of an ingress or of a
// login that stands in for the peer is not, whatever its status. Pure.
namespace gitops::http {

// False when the media type is neither application/json nor one that ends in "+json". Without a
// media type it may be JSON.
[[nodiscard]] bool may_be_json(const Headers& headers);
// The same, and false when the body begins as a page does.
[[nodiscard]] bool may_be_json(const Response& response);

// Whether the media type is that of a page (HTML). No API of a peer answers with one.
[[nodiscard]] bool is_page(const Headers& headers);

// For the error of an answer that is not JSON: what came instead, and from where it may be.
[[nodiscard]] std::string not_json(const Response& response);

}  // namespace gitops::http
