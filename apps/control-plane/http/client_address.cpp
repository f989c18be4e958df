#include "control-plane/http/client_address.hpp"

#include <boost/asio/ip/address.hpp>

#include "common/core/text.hpp"

namespace gitops::control_plane_server {

std::string client_address(std::string peer, std::string_view forwarded_for,
                           const net::AddressList& trusted_proxies) {
  while (!forwarded_for.empty()) {
    boost::system::error_code error;
    const auto address = boost::asio::ip::make_address(peer, error);
    if (error || !trusted_proxies.contains(address)) break;
    const auto comma = forwarded_for.rfind(',');
    const bool is_last = comma == std::string_view::npos;
    const auto last = trimmed(is_last ? forwarded_for : forwarded_for.substr(comma + 1));
    static_cast<void>(boost::asio::ip::make_address(std::string(last), error));
    if (error) break;
    peer = last;
    forwarded_for = is_last ? std::string_view() : forwarded_for.substr(0, comma);
  }
  return peer;
}

}  // namespace gitops::control_plane_server
