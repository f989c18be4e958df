#include "control-plane/http/client_address.hpp"

#include <ranges>
#include <vector>

#include <boost/asio/ip/address.hpp>

#include "common/core/text.hpp"

namespace gitops::control_plane_server {

std::string client_address(std::string peer, std::string_view forwarded_for,
                           const net::AddressList& trusted_proxies) {
  boost::system::error_code error;
  const auto address = boost::asio::ip::make_address(peer, error);
  if (error) return peer;
  std::vector<std::string_view> hops;
  for (const auto hop : std::views::split(forwarded_for, ',')) {
    hops.push_back(trimmed(std::string_view(hop)));
  }
  const auto client = net::client_hop(address, hops, trusted_proxies);
  return client ? std::string(hops[*client]) : peer;
}

}  // namespace gitops::control_plane_server
