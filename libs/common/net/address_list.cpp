#include "common/net/address_list.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <ranges>
#include <span>
#include <system_error>

#include "common/core/text.hpp"

namespace gitops::net {
namespace {

namespace ip = boost::asio::ip;

// Returns the IPv4 address embedded in an IPv6 one: mapped, compatible, NAT64 (RFC 6052), 6to4.
std::optional<ip::address_v4> embedded(const ip::address_v6& address) {
  const auto bytes = address.to_bytes();
  const auto at = [&bytes](std::size_t i) {
    return ip::address_v4({bytes[i], bytes[i + 1], bytes[i + 2], bytes[i + 3]});
  };
  const bool ten_zeros =
      std::all_of(bytes.begin(), bytes.begin() + 10, [](auto b) { return b == 0; });
  if (ten_zeros && bytes[10] == 0xff && bytes[11] == 0xff) return at(12);
  if (ten_zeros && bytes[10] == 0 && bytes[11] == 0 && (bytes[12] | bytes[13] | bytes[14]) != 0) {
    return at(12);
  }
  const bool nat64 =
      bytes[0] == 0 && bytes[1] == 0x64 && bytes[2] == 0xff && bytes[3] == 0x9b &&
      std::all_of(bytes.begin() + 4, bytes.begin() + 12, [](auto b) { return b == 0; });
  if (nat64) return at(12);
  if (bytes[0] == 0x20 && bytes[1] == 0x02) return at(2);
  return std::nullopt;
}

template <class Bytes>
bool same_prefix(const Bytes& a, const Bytes& b, unsigned bits) {
  for (std::size_t i = 0; i < a.size() && bits > 0; ++i) {
    const unsigned here = std::min(bits, 8U);
    const auto mask = static_cast<std::uint8_t>(0xffU << (8U - here));
    if ((a[i] & mask) != (b[i] & mask)) return false;
    bits -= here;
  }
  return true;
}

// Returns whether a cloud serves metadata or its agents listen at this address, which is not
// link-local: Azure, Alibaba, Oracle.
bool is_of_a_cloud(const ip::address_v4& address) {
  constexpr std::array<std::uint32_t, 3> kAddresses{
      0xa83f8110U,  // 168.63.129.16
      0x646464c8U,  // 100.100.100.200
      0xc00000c0U,  // 192.0.0.192
  };
  return std::ranges::find(kAddresses, address.to_uint()) != kAddresses.end();
}

bool is_special_v4(const ip::address_v4& address) {
  if (is_of_a_cloud(address)) return true;
  const auto bytes = address.to_bytes();
  return bytes[0] == 0 || bytes[0] == 127 || (bytes[0] == 169 && bytes[1] == 254) ||
         bytes[0] >= 224;
}

}  // namespace

ip::address plain_address(const ip::address& address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    return ip::make_address_v4(ip::v4_mapped, address.to_v6());
  }
  return address;
}

Result<AddressList> AddressList::parse(const std::vector<std::string>& items) {
  AddressList list;
  for (const auto& item : items) {
    const auto wrong = [&item] {
      return fail(ErrorCode::invalid_argument, "\"" + item + "\" is not an address or a network");
    };
    const auto slash = item.find('/');
    boost::system::error_code ec;
    Network network{.address = ip::make_address(item.substr(0, slash), ec)};
    if (ec) return wrong();
    network.address = plain_address(network.address);
    const unsigned most = network.address.is_v4() ? 32 : 128;
    network.bits = most;
    if (slash != std::string::npos) {
      const auto* end = item.data() + item.size();
      const auto [rest, error] = std::from_chars(item.data() + slash + 1, end, network.bits);
      if (error != std::errc{} || rest != end || network.bits > most) return wrong();
    }
    list.networks_.push_back(network);
  }
  return list;
}

void AddressList::add(const ip::address& address) {
  const auto plain = plain_address(address);
  networks_.push_back({.address = plain, .bits = plain.is_v4() ? 32U : 128U});
}

bool AddressList::contains(const ip::address& given) const {
  if (networks_.empty()) return false;
  const auto address = plain_address(given);
  return std::ranges::any_of(networks_, [&address](const Network& network) {
    if (network.address.is_v4() != address.is_v4()) return false;
    if (address.is_v4()) {
      return same_prefix(network.address.to_v4().to_bytes(), address.to_v4().to_bytes(),
                         network.bits);
    }
    return same_prefix(network.address.to_v6().to_bytes(), address.to_v6().to_bytes(),
                       network.bits);
  });
}

std::string_view hop_address(std::string_view hop) {
  const bool has_brackets = hop.starts_with('[');
  const auto end = hop.find(has_brackets ? ']' : ':');
  if (end == std::string_view::npos) return hop;
  const auto address = hop.substr(0, end).substr(has_brackets ? 1 : 0);
  const auto rest = hop.substr(has_brackets ? end + 1 : end);
  if (rest.empty()) return address;
  const auto port = rest.substr(1);
  const bool has_port = rest.front() == ':' && !port.empty() &&
                        std::ranges::all_of(port, [](char c) { return c >= '0' && c <= '9'; });
  return has_port ? address : hop;
}

std::optional<std::size_t> client_hop(const ip::address& peer,
                                      std::span<const std::string_view> hops,
                                      const AddressList& trusted) {
  std::optional<std::size_t> client;
  if (!trusted.contains(peer)) return client;
  for (std::size_t i = hops.size(); i-- > 0;) {
    boost::system::error_code error;
    const auto address = ip::make_address(std::string(hops[i]), error);
    if (error) break;
    client = i;
    if (!trusted.contains(address)) break;
  }
  return client;
}

std::string client_address(std::string peer, std::string_view forwarded_for,
                           const AddressList& trusted) {
  if (forwarded_for.empty() || trusted.empty()) return peer;
  boost::system::error_code error;
  const auto address = ip::make_address(peer, error);
  if (error) return peer;
  std::vector<std::string_view> hops;
  for (const auto hop : std::views::split(forwarded_for, ',')) {
    hops.push_back(hop_address(trimmed(std::string_view(hop))));
  }
  const auto client = client_hop(address, hops, trusted);
  return client ? std::string(hops[*client]) : peer;
}

ip::address client_network(const ip::address& client) {
  if (client.is_v4()) return client;
  auto bytes = client.to_v6().to_bytes();
  std::ranges::fill(std::span(bytes).subspan(8), static_cast<unsigned char>(0));
  return ip::address_v6(bytes);
}

std::string client_network(std::string_view client) {
  boost::system::error_code error;
  const auto given = ip::make_address(std::string(client), error);
  if (error) return std::string(client);
  const auto address = plain_address(given);
  return client_network(address).to_string() + (address.is_v4() ? "" : "/64");
}

bool is_special_address(const ip::address& address) {
  if (address.is_v4()) return is_special_v4(address.to_v4());
  const auto& six = address.to_v6();
  if (six.is_loopback() || six.is_unspecified() || six.is_link_local() || six.is_multicast()) {
    return true;
  }
  // Amazon also serves metadata at a unique local address.
  if (six == ip::make_address_v6("fd00:ec2::254")) return true;
  // NAT64 of the local network (RFC 8215): the position of the IPv4 address in it is unknown.
  static const auto kLocalNat64 = ip::make_address_v6("64:ff9b:1::").to_bytes();
  if (same_prefix(six.to_bytes(), kLocalNat64, 48)) return true;
  const auto four = embedded(six);
  return four && is_special_v4(*four);
}

}  // namespace gitops::net
