#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/ip/address.hpp>

#include "common/core/error.hpp"

namespace gitops::net {

// List of networks in CIDR form ("10.0.0.0/8", "fd00::/8") and single addresses.
class AddressList {
 public:
  // Parses the items. The error names the first invalid one.
  static Result<AddressList> parse(const std::vector<std::string>& items);

  // Returns whether the list contains the address. IPv4-mapped IPv6 addresses (::ffff:a.b.c.d)
  // count as IPv4.
  [[nodiscard]] bool contains(const boost::asio::ip::address& address) const;
  [[nodiscard]] bool empty() const { return networks_.empty(); }

 private:
  struct Network {
    boost::asio::ip::address address;
    unsigned bits = 0;
  };
  std::vector<Network> networks_;
};

// Returns the IPv4 address of an IPv4-mapped IPv6 address (::ffff:a.b.c.d); other addresses
// unchanged.
boost::asio::ip::address plain_address(const boost::asio::ip::address& address);

// Returns whether the name of a service should never resolve to this address: loopback, link-local
// (where clouds serve their metadata), similar addresses, unspecified, multicast, broadcast, and
// IPv6 forms that embed or may embed such an IPv4 address.
bool is_special_address(const boost::asio::ip::address& address);

}  // namespace gitops::net
