#pragma once

#include "common/http/message.hpp"

namespace gitops::app_proxy {

// A page on which a person writes a GraphQL query, gives a token and sees the answer. It loads nothing
// from elsewhere and keeps nothing.
http::Response playground_page();

}  // namespace gitops::app_proxy
