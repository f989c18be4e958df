#include "tunnel-server/config.hpp"

#include <gmock/gmock.h>

namespace gitops::tunnel_server {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> mistakes(const std::vector<std::string>& flags,
                                  std::map<std::string, std::string> environment = {}) {
  Config config;
  ConfigReader reader("tunnel-server", "");
  bind(reader, config);
  return reader.load(flags, environment).mistakes;
}

TEST(TunnelServerConfig, AsksForAWayToKnowClients) {
  EXPECT_THAT(mistakes({}), Contains(HasSubstr("one of token, runtimes-file and plugin.url")));
  EXPECT_THAT(mistakes({"--insecure-any-client"}), IsEmpty());
  EXPECT_THAT(mistakes({"--runtimes-file=/x"}), IsEmpty());
  EXPECT_THAT(mistakes({"--plugin.url=http://cp/hook"}), IsEmpty());
  EXPECT_THAT(mistakes({}, {{"PLUGIN_URL", "http://cp/hook/token\n"}}), IsEmpty());
  EXPECT_THAT(mistakes({}, {{"TUNNEL_SERVER_TOKEN", "t"}}), IsEmpty());
}

TEST(TunnelServerConfig, NamesEachMistake) {
  const std::vector<std::string> any{"--insecure-any-client"};
  const auto with = [&](std::string flag) {
    auto flags = any;
    flags.push_back(std::move(flag));
    return mistakes(flags);
  };
  EXPECT_THAT(with("--subdomain-host=Example.test"), Contains(HasSubstr("lower case")));
  EXPECT_THAT(with("--trusted-proxies=here"), testing::Not(IsEmpty()));
  EXPECT_THAT(with("--tls-key-file=/x"), Contains(HasSubstr("required together")));
  EXPECT_THAT(with("--tunnel.require-tls"), Contains(HasSubstr("needs a certificate")));
  EXPECT_THAT(with("--plugin.operations=Login,Logout"), Contains(HasSubstr("\"Logout\" is none")));
  EXPECT_THAT(with("--plugin.operations=NewUserConn"), Contains(HasSubstr("type http")));
  EXPECT_THAT(with("--plugin.url=ftp://x"), testing::Not(IsEmpty()));
  EXPECT_THAT(with("--auth-scopes=HeartBeats"), Contains(HasSubstr("prove nothing")));
  EXPECT_THAT(with("--auth-scopes=Heartbeats"), Contains(HasSubstr("is none of HeartBeats")));
  EXPECT_THAT(with("--tunnel.servers=a:1,b"), Contains(HasSubstr("\"b\" is not of the form")));
  EXPECT_THAT(with("--api.port=9000"), Contains(HasSubstr("the API needs a token")));
}

}  // namespace
}  // namespace gitops::tunnel_server
