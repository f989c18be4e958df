#include "tunnel-client/config.hpp"

#include <gmock/gmock.h>

namespace gitops::tunnel {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Loaded {
  Config config;
  std::vector<std::string> mistakes;
};

Loaded load(const std::vector<std::string>& arguments,
            const std::map<std::string, std::string>& environment = {}) {
  Loaded loaded;
  ConfigReader reader("tunnel-client", "");
  bind(reader, loaded.config);
  loaded.mistakes = reader.load(arguments, environment).mistakes;
  return loaded;
}

TEST(TunnelClientConfig, NeedsOnlyThePrefix) {
  const auto loaded = load({"--tunnel.subdomain-prefix=acc-rt"});
  EXPECT_THAT(loaded.mistakes, IsEmpty());
  EXPECT_EQ(loaded.config.server_host, "register-tunnels.cf-cd.com");
  EXPECT_EQ(loaded.config.server_port, 443);
  EXPECT_EQ(loaded.config.protocol, Protocol::wss);
  EXPECT_EQ(loaded.config.forward_host, "internal-router");
  EXPECT_EQ(loaded.config.forward_port, 80);
  EXPECT_FALSE(loaded.config.insecure);
}

TEST(TunnelClientConfig, TakesThePeersNameForTheToken) {
  const auto loaded = load({}, {{"AUTHORIZATION", "token"}, {"TUNNEL_SUBDOMAIN_PREFIX", "acc-rt"}});
  EXPECT_THAT(loaded.mistakes, IsEmpty());
  EXPECT_EQ(loaded.config.authorization.reveal(), "token");
}

// The server matches hosts in lower case and by whole labels.
TEST(TunnelClientConfig, RefusesAPrefixThatIsNoLabel) {
  for (const std::string prefix : {"", "Acc-rt", "a.b", "-a", "a-", "a_b", "*"}) {
    EXPECT_THAT(load({"--tunnel.subdomain-prefix=" + prefix}).mistakes,
                ElementsAre(HasSubstr("subdomain-prefix")))
        << prefix;
  }
  EXPECT_THAT(load({"--tunnel.subdomain-prefix=" + std::string(63, 'a')}).mistakes, IsEmpty());
  EXPECT_THAT(load({"--tunnel.subdomain-prefix=" + std::string(64, 'a')}).mistakes,
              ElementsAre(HasSubstr("63")));
}

TEST(TunnelClientConfig, TellsEveryMistake) {
  EXPECT_EQ(load({"--tunnel-server.protocol=quic", "--tunnel-server.port=0",
                  "--tunnel.ips-allow-list=10.0.0.0/8,nonsense", "--tunnel.pool-size=1000",
                  "--tunnel.forward-to.location=api"})
                .mistakes.size(),
            6u);
}

}  // namespace
}  // namespace gitops::tunnel
