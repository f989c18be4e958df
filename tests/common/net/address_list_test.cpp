#include "common/net/address_list.hpp"

#include <string>

#include <gmock/gmock.h>

namespace gitops::net {
namespace {

boost::asio::ip::address address(const std::string& text) {
  return boost::asio::ip::make_address(text);
}

TEST(AddressList, HoldsNetworksAndAddresses) {
  const auto list = AddressList::parse({"10.0.0.0/8", "192.168.1.7", "fd00::/8", "::ffff:1.2.3.4"});
  ASSERT_TRUE(list);
  for (const auto* inside :
       {"10.255.0.1", "192.168.1.7", "fd12::1", "::ffff:10.0.0.1", "1.2.3.4"}) {
    EXPECT_TRUE(list->contains(address(inside))) << inside;
  }
  for (const auto* outside : {"11.0.0.1", "192.168.1.8", "fe00::1", "::a00:1"}) {
    EXPECT_FALSE(list->contains(address(outside))) << outside;
  }
  for (const auto* wrong : {"10.0.0.0/33", "10.0.0/8", "x", "10.0.0.0/", "10.0.0.0/8x", "::/129"}) {
    EXPECT_FALSE(AddressList::parse({wrong})) << wrong;
  }
  EXPECT_TRUE(AddressList::parse({"0.0.0.0/0"})->contains(address("8.8.8.8")));
}

TEST(AddressList, TakesSingleAddressesLater) {
  auto list = AddressList::parse({"10.0.0.0/8"}).value();
  const auto before = list;
  EXPECT_EQ(before, AddressList::parse({"10.0.0.0/8"}).value());
  const auto address = boost::asio::ip::make_address("::ffff:192.0.2.1");
  EXPECT_FALSE(list.contains(address));
  list.add(address);
  EXPECT_TRUE(list.contains(address));
  EXPECT_TRUE(list.contains(boost::asio::ip::make_address("192.0.2.1")));
  EXPECT_FALSE(list.contains(boost::asio::ip::make_address("192.0.2.2")));
  EXPECT_NE(list, before);
  list.add(boost::asio::ip::make_address("fd00::1"));
  EXPECT_TRUE(list.contains(boost::asio::ip::make_address("fd00::1")));
  EXPECT_FALSE(list.contains(boost::asio::ip::make_address("fd00::2")));
}

TEST(AddressList, AC05_TheClientIsTheLastHopThatIsNoTrustedProxy) {
  const auto trusted = AddressList::parse({"10.0.0.0/8", "fd00::/8"}).value();
  const auto hop = [&](const char* peer, const std::vector<std::string_view>& hops) {
    return client_hop(boost::asio::ip::make_address(peer), hops, trusted);
  };
  EXPECT_EQ(hop("192.0.2.1", {"198.51.100.7"}), std::nullopt) << "an untrusted peer is the client";
  EXPECT_EQ(hop("10.0.0.1", {}), std::nullopt);
  EXPECT_EQ(hop("10.0.0.1", {"198.51.100.7"}), 0U);
  EXPECT_EQ(hop("10.0.0.1", {"203.0.113.1", "198.51.100.7", "10.0.0.2"}), 1U)
      << "anything before it may be forged";
  EXPECT_EQ(hop("10.0.0.1", {"10.0.0.3", "fd00::2"}), 0U);
  EXPECT_EQ(hop("10.0.0.1", {"198.51.100.7", "unknown"}), std::nullopt);
  EXPECT_EQ(hop("10.0.0.1", {"198.51.100.7", "unknown", "10.0.0.2"}), 2U);
  EXPECT_EQ(hop("::ffff:10.0.0.1", {"198.51.100.7"}), 0U);
}

TEST(AddressList, AC02_KnowsAddressesThatNoServiceHas) {
  for (const auto* special : {"127.0.0.1",
                              "127.255.255.255",
                              "0.0.0.0",
                              "169.254.169.254",
                              "224.0.0.1",
                              "255.255.255.255",
                              "::1",
                              "::",
                              "fe80::1",
                              "ff02::1",
                              "::ffff:127.0.0.1",
                              "::127.0.0.1",
                              "64:ff9b::7f00:1",
                              "2002:7f00:1::",
                              "fd00:ec2::254",
                              "168.63.129.16",
                              "100.100.100.200",
                              "192.0.0.192",
                              "::ffff:168.63.129.16",
                              "64:ff9b::a83f:8110",
                              "64:ff9b:1::1",
                              "64:ff9b:1:a83f:81:1000::"}) {
    EXPECT_TRUE(is_special_address(address(special))) << special;
  }
  for (const auto* plain : {"10.0.0.1", "8.8.8.8", "fd00::1", "2001:db8::1", "::ffff:10.0.0.1",
                            "168.63.129.17", "100.100.100.100", "192.0.0.1", "64:ff9b:2::1"}) {
    EXPECT_FALSE(is_special_address(address(plain))) << plain;
  }
}

AddressList proxies() {
  return AddressList::parse({"10.0.0.0/8", "127.0.0.1"}).value();
}

TEST(ClientAddress, IsThePeersWithoutATrustedProxy) {
  EXPECT_EQ(client_address("192.0.2.1", "198.51.100.7", proxies()), "192.0.2.1");
  EXPECT_EQ(client_address("192.0.2.1", "", proxies()), "192.0.2.1");
  EXPECT_EQ(client_address("127.0.0.1", "198.51.100.7", {}), "127.0.0.1");
}

TEST(ClientAddress, IsTheLastOneThatNoTrustedProxyHas) {
  EXPECT_EQ(client_address("127.0.0.1", "198.51.100.7", proxies()), "198.51.100.7");
  EXPECT_EQ(client_address("10.1.1.1", "203.0.113.9, 198.51.100.7, 10.2.2.2", proxies()),
            "198.51.100.7");
  EXPECT_EQ(client_address("10.1.1.1", "10.3.3.3", proxies()), "10.3.3.3");
}

TEST(ClientAddress, IsWithoutThePortThatAGatewayAdds) {
  EXPECT_EQ(client_address("10.1.1.1", "203.0.113.7:4711", proxies()), "203.0.113.7");
  EXPECT_EQ(client_address("10.1.1.1", "[2001:db8::1]:443, 10.2.2.2:80", proxies()), "2001:db8::1");
  EXPECT_EQ(client_address("10.1.1.1", "[2001:db8::1]", proxies()), "2001:db8::1");
  for (const auto* other : {"2001:db8::1", "::1", "::", "203.0.113.7", "203.0.113.7:",
                            "203.0.113.7:x", "[::1]x", "[::1]:", "[::1", "unknown", ""}) {
    EXPECT_EQ(hop_address(other), other);
  }
}

TEST(ClientAddress, AnUnreadableEntryEndsTheList) {
  EXPECT_EQ(client_address("10.1.1.1", "198.51.100.7, unknown", proxies()), "10.1.1.1");
  EXPECT_EQ(client_address("10.1.1.1", ",", proxies()), "10.1.1.1");
}

TEST(ClientNetwork, IsThe64BitsThatACustomerHas) {
  EXPECT_EQ(client_network("192.0.2.1"), "192.0.2.1");
  EXPECT_EQ(client_network("::ffff:192.0.2.1"), "192.0.2.1");
  EXPECT_EQ(client_network("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
  EXPECT_EQ(client_network("2001:DB8:1:2::"), "2001:db8:1:2::/64");
  EXPECT_EQ(client_network("tunnel prod"), "tunnel prod");
  EXPECT_EQ(client_network(""), "");
}

}  // namespace
}  // namespace gitops::net
