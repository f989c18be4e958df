#include "control-plane/http/client_address.hpp"

#include <gtest/gtest.h>

namespace gitops::control_plane_server {
namespace {

net::AddressList proxies() {
  return net::AddressList::parse({"10.0.0.0/8", "127.0.0.1"}).value();
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

TEST(ClientAddress, AnUnreadableEntryEndsTheList) {
  EXPECT_EQ(client_address("10.1.1.1", "198.51.100.7, unknown", proxies()), "10.1.1.1");
  EXPECT_EQ(client_address("10.1.1.1", ",", proxies()), "10.1.1.1");
}

}  // namespace
}  // namespace gitops::control_plane_server
