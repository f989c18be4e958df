#pragma once

#include "common/http/message.hpp"

namespace gitops::app_proxy {

// A page to write a GraphQL query, enter a token and see the response. It loads no other resources
// and stores nothing.
http::Response playground_page();

}  // namespace gitops::app_proxy
