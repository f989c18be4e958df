#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/ip/address.hpp>

#include "common/core/error.hpp"

namespace gitops::net {

// Networks in CIDR form ("10.0.0.0/8", "fd00::/8") and single addresses.
class AddressList {
 public:
  // An error names the first item that is neither.
  static Result<AddressList> parse(const std::vector<std::string>& items);

  // IPv4 addresses written as IPv6 (::ffff:a.b.c.d) count as IPv4.
  [[nodiscard]] bool contains(const boost::asio::ip::address& address) const;
  [[nodiscard]] bool empty() const { return networks_.empty(); }

 private:
  struct Network {
    boost::asio::ip::address address;
    unsigned bits = 0;
  };
  std::vector<Network> networks_;
};

// The IPv4 address where the IPv6 address stands for one (::ffff:a.b.c.d).
boost::asio::ip::address plain_address(const boost::asio::ip::address& address);

// True for addresses that the name of a service should never resolve to: loopback, link-local
// (where clouds serve their metadata), other addresses of that kind, unspecified, multicast,
// broadcast, and IPv6 forms that embed or may embed such an IPv4 address.
bool is_special_address(const boost::asio::ip::address& address);

}  // namespace gitops::net
