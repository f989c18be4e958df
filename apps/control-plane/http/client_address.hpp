#pragma once

#include <string>
#include <string_view>

#include "common/net/address_list.hpp"

namespace gitops::control_plane_server {

// The address of a client: the last one of X-Forwarded-For that is no trusted proxy's, if the peer is one; else the
// peer's.
std::string client_address(std::string peer, std::string_view forwarded_for,
                           const net::AddressList& trusted_proxies);

}  // namespace gitops::control_plane_server
