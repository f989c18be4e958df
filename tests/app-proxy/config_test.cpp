#include "app-proxy/config.hpp"

#include <gmock/gmock.h>

namespace gitops::app_proxy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> load(Config& config, const std::map<std::string, std::string>& environment,
                              const std::vector<std::string>& flags = {}) {
  ConfigReader reader("app-proxy", "");
  bind(reader, config);
  return reader.load(flags, environment).mistakes;
}

// The environment that the existing chart gives its app-proxy: what this version does not use is no
// mistake.
TEST(AppProxyConfig, TakesTheEnvironmentOfTheChart) {
  Config config;
  EXPECT_THAT(load(config, {{"ENV", "production"},
                            {"CF_HOST", "https://codefresh.example.test/"},
                            {"CORS", "https://a.example, https://b.example/"},
                            {"CLUSTER", "https://kubernetes.default.svc"},
                            {"CLUSTER_CHUNK_SIZE", "50"},
                            {"RUNTIME_NAME", "prod"},
                            {"NAMESPACE", "runtime"},
                            {"RUNTIME_TOKEN", "token"},
                            {"RUNTIME_STORE_IV", "iv"},
                            {"INSTALLATION_TYPE", "HELM"},
                            {"STRIP_PREFIX", ""},
                            {"GRAPHQL_DEBUG", "false"},
                            {"GRAPHQL_PLAYGROUND", "true"},
                            {"NODE_EXTRA_CA_CERTS", "/app/config/all/all.cer"},
                            {"CF_TELEMETRY_PROMETHEUS_ENABLE", "false"},
                            {"USER_CACHE_TTL", "45"}}),
              IsEmpty());
  EXPECT_EQ(config.control_plane.text, "https://codefresh.example.test/");
  EXPECT_EQ(config.control_plane.url.host, "codefresh.example.test");
  EXPECT_THAT(config.cors_origins, ElementsAre("https://a.example", "https://b.example/"));
  EXPECT_EQ(config.port, 8080);
  EXPECT_EQ(config.extra_ca_file, "/app/config/all/all.cer");
  EXPECT_TRUE(config.ca_file.empty());
  EXPECT_TRUE(config.playground);
  EXPECT_EQ(config.runtime_token.reveal(), "token");
  EXPECT_EQ(config.user_cache_ttl, std::chrono::seconds(45));
}

TEST(AppProxyConfig, TheDefaultControlPlaneIsTheOneOfItsText) {
  const Config config;
  const auto parsed = http::parse_url(config.control_plane.text);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->to_string(), config.control_plane.url.to_string());
}

TEST(AppProxyConfig, ServersAndAddressesAreParsedOnce) {
  Config config;
  EXPECT_THAT(load(config, {{"ARGO_CD_URL", "argo-cd-server:80"},
                            {"TRUSTED_PROXIES", "10.0.0.0/8, 192.0.2.1"},
                            {"SPECIAL_CLUSTER_ADDRESSES", "127.0.0.7"}}),
              IsEmpty());
  ASSERT_TRUE(config.argocd);
  EXPECT_EQ(config.argocd->text, "argo-cd-server:80");
  EXPECT_EQ(config.argocd->url.host, "argo-cd-server");
  EXPECT_FALSE(config.workflows);
  EXPECT_TRUE(config.trusted_proxies.contains(asio::ip::make_address("192.0.2.1")));
  EXPECT_TRUE(config.special_cluster_addresses.contains(asio::ip::make_address("127.0.0.7")));
}

TEST(AppProxyConfig, ReportsEveryMistake) {
  Config config;
  const auto mistakes = load(config, {{"PORT", "70000"},
                                      {"CF_HOST", "codefresh.example.test"},
                                      {"TRUSTED_PROXIES", "10.0.0.0/40"},
                                      {"USER_CACHE_TTL", "1h"},
                                      {"RULES_REFRESH", "10m"}});
  EXPECT_EQ(mistakes.size(), 5U) << testing::PrintToString(mistakes);
  EXPECT_THAT(mistakes, testing::Contains(HasSubstr("expected 1s to 7m30s")));
}

}  // namespace
}  // namespace gitops::app_proxy
