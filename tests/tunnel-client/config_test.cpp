#include "tunnel-client/config.hpp"

#include <gmock/gmock.h>

namespace gitops::tunnel_client {
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
  EXPECT_THAT(server_endpoints(loaded.config),
              ElementsAre(Endpoint{"register-tunnels.cf-cd.com", 443}));
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

TEST(TunnelClientConfig, TakesSeveralServers) {
  const auto loaded = load({"--tunnel.subdomain-prefix=a"},
                           {{"TUNNEL_SERVER_HOST", "a.example.test, b.example.test:8443"},
                            {"TUNNEL_SERVER_PORT", "7000"}});
  EXPECT_THAT(loaded.mistakes, IsEmpty());
  EXPECT_THAT(server_endpoints(loaded.config),
              ElementsAre(Endpoint{"a.example.test", 7000}, Endpoint{"b.example.test", 8443}));
  EXPECT_EQ(*parse_endpoint("a.example.test", 443), (Endpoint{"a.example.test", 443}));
  EXPECT_EQ(*parse_endpoint("b.example.test:8443", 443), (Endpoint{"b.example.test", 8443}));
  EXPECT_EQ(*parse_endpoint("[::1]:8443", 443), (Endpoint{"::1", 8443}));
  EXPECT_EQ(*parse_endpoint("[::1]", 443), (Endpoint{"::1", 443}));
  EXPECT_EQ(*parse_endpoint("::1", 443), (Endpoint{"::1", 443}));
  for (const std::string wrong : {"", ":443", "a:", "a:x", "a:0", "a:70000", "a b", "a/b", "a@b"}) {
    EXPECT_FALSE(parse_endpoint(wrong, 443)) << wrong;
  }
  EXPECT_THAT(load({"--tunnel.subdomain-prefix=a", "--tunnel-server.host=a:x"}).mistakes,
              ElementsAre(HasSubstr("a:x")));
}

TEST(TunnelClientConfig, TakesFurtherProxies) {
  const auto load_with = [](const std::string& items) {
    return load({"--tunnel.subdomain-prefix=acc-rt", "--tunnel.extra-proxies=" + items}).mistakes;
  };
  EXPECT_THAT(load_with("argocd=argocd-server:80,docs=docs:8080"), IsEmpty());
  EXPECT_THAT(load({"--tunnel.subdomain-prefix=acc-rt", "--tunnel.extra-proxies=docs=docs:8080"})
                  .config.extra_proxies,
              ElementsAre(ExtraProxy{.name = "docs", .upstream = {"docs", 8080}}));
  EXPECT_EQ(parse_extra_proxy("argocd=argocd-server:80")->upstream,
            (Endpoint{"argocd-server", 80}));
  for (const std::string wrong :
       {"argocd", "argocd=host", "Argo=host:80", "=host:80", "a.b=c:80", "a=host:0"}) {
    EXPECT_THAT(load_with(wrong), ElementsAre(HasSubstr("extra-proxies"))) << wrong;
  }
  EXPECT_THAT(load_with(std::string(60, 'a') + "=host:80"), ElementsAre(HasSubstr("63")));
}

TEST(TunnelClientConfig, KnowsTheScopesOfFrp) {
  const auto both =
      load({"--tunnel.subdomain-prefix=a", "--tunnel-server.auth-scopes=HeartBeats,NewWorkConns"});
  EXPECT_THAT(both.mistakes, IsEmpty());
  EXPECT_EQ(both.config.auth_scopes,
            (tunnel::AuthScopes{.heart_beats = true, .new_work_conns = true}));
  EXPECT_EQ(load({"--tunnel.subdomain-prefix=a", "--tunnel-server.auth-scopes=NewWorkConns"})
                .config.auth_scopes,
            tunnel::AuthScopes{.new_work_conns = true});
  EXPECT_THAT(
      load({"--tunnel.subdomain-prefix=a", "--tunnel-server.auth-scopes=Heartbeats"}).mistakes,
      ElementsAre(HasSubstr("Heartbeats")));
}

TEST(TunnelClientConfig, TellsEveryMistake) {
  EXPECT_EQ(load({"--tunnel-server.protocol=quic", "--tunnel-server.port=0",
                  "--tunnel.ips-allow-list=10.0.0.0/8,nonsense", "--tunnel.pool-size=1000",
                  "--tunnel.forward-to.location=api"})
                .mistakes.size(),
            6u);
}

}  // namespace
}  // namespace gitops::tunnel_client
