#pragma once

#include <string>
#include <string_view>

#include "common/net/address_list.hpp"

namespace gitops::control_plane_server {

// Returns the address of a client. When the peer is a trusted proxy, it is the last address of X-Forwarded-For that is
// not a trusted proxy; else it is the peer's.
std::string client_address(std::string peer, std::string_view forwarded_for,
                           const net::AddressList& trusted_proxies);

}  // namespace gitops::control_plane_server
