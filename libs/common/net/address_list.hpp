#pragma once

#include <cstddef>
#include <optional>
#include <span>
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

  void add(const boost::asio::ip::address& address);
  // Returns whether the list contains the address. IPv4-mapped IPv6 addresses (::ffff:a.b.c.d)
  // count as IPv4.
  [[nodiscard]] bool contains(const boost::asio::ip::address& address) const;
  [[nodiscard]] bool empty() const { return networks_.empty(); }
  // Compares the items in their order.
  bool operator==(const AddressList&) const = default;

 private:
  struct Network {
    boost::asio::ip::address address;
    unsigned bits = 0;

    bool operator==(const Network&) const = default;
  };
  std::vector<Network> networks_;
};

// Returns the address in an entry of X-Forwarded-For: without brackets, and without the port that
// some proxies add ("203.0.113.7:4711", "[2001:db8::1]:443"). Returns other texts unchanged.
std::string_view hop_address(std::string_view hop);

// Finds the client of a request that came through trusted proxies. `hops` are the addresses of
// X-Forwarded-For in their order. Returns the index of the last one that is not a trusted proxy's,
// since everything before it can be forged, or of the first one when all are. A hop that is not an
// address ends the chain. Returns nothing when `peer` itself is the client.
std::optional<std::size_t> client_hop(const boost::asio::ip::address& peer,
                                      std::span<const std::string_view> hops,
                                      const AddressList& trusted);

// Returns the client as text: `peer`, the address of the other end, or the hop of `forwarded_for` (X-Forwarded-For)
// that client_hop() finds.
std::string client_address(std::string peer, std::string_view forwarded_for,
                           const AddressList& trusted);

// Returns the part of a client's address by which its use is limited: of IPv6 the first 64 bits, since each customer of a
// provider has all addresses behind them. IPv4, and texts that are no addresses, are returned unchanged.
boost::asio::ip::address client_network(const boost::asio::ip::address& client);
std::string client_network(std::string_view client);

// Returns the IPv4 address of an IPv4-mapped IPv6 address (::ffff:a.b.c.d); other addresses
// unchanged.
boost::asio::ip::address plain_address(const boost::asio::ip::address& address);

// Returns whether the name of a service should never resolve to this address: loopback, link-local
// (where clouds serve their metadata), similar addresses, unspecified, multicast, broadcast, and
// IPv6 forms that embed or may embed such an IPv4 address.
bool is_special_address(const boost::asio::ip::address& address);

}  // namespace gitops::net
