#include "common/http/proxy_settings.hpp"

#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gitops::http {
namespace {

bool bypassed(const std::string& no_proxy, const std::string& target) {
  const auto settings = proxy_settings(
      {{"http_proxy", "http://p:1"}, {"https_proxy", "http://p:2"}, {"no_proxy", no_proxy}});
  return settings.proxy_for(*parse_url(target)).value() == nullptr;
}

// The proxy for a target; the test ends when there is none.
Url proxy_for(const ProxySettings& settings, const char* target) {
  const auto found = settings.proxy_for(*parse_url(target));
  return found && *found != nullptr ? **found : throw std::runtime_error("no proxy");
}

TEST(ProxySettings, NoProxyTable) {
  struct Case {
    const char* no_proxy;
    const char* target;
    bool direct;
  };
  for (const Case& c : std::vector<Case>{
           {"", "http://a.b", false},
           {"*", "http://a.b", true},
           {"x, *", "https://a.b", true},
           {"a.b", "http://a.b", true},
           {"A.B", "http://a.b", true},
           {"a.b", "http://a.b.", true},
           {"a.b.", "http://a.b", true},
           {".", "http://a.b", false},
           {"a.b", "http://x.a.b", true},
           {"a.b", "http://xa.b", false},
           {".a.b", "http://x.a.b", true},
           {".a.b", "http://a.b", false},
           {"*.a.b", "http://x.a.b", true},
           {"*.a.b", "http://a.b", false},
           {"a.b:8080", "http://a.b:8080", true},
           {"a.b:8080", "http://a.b", false},
           {"a.b:443", "https://a.b", true},
           {"10.0.0.0/8", "https://10.96.0.1", true},
           {"10.0.0.0/8", "https://11.0.0.1", false},
           {"10.0.0.0/8", "https://ten.example", false},
           {"10.96.0.1", "https://10.96.0.1:6443", true},
           {"10.96.0.1:443", "https://10.96.0.1:6443", false},
           {"10.96.0.1", "https://10.96.0.10", false},
           {"fd00::/8", "https://[fd00::1]", true},
           {"fd00::/8", "https://[fe00::1]", false},
           {"fd00::1", "https://[fd00::1]", true},
           {"[fd00::1]:443", "https://[fd00::1]", true},
           {"[fd00::1]:444", "https://[fd00::1]", false},
           {"10.0.0.0/99", "https://10.0.0.1", false},
           {" svc , .cluster.local ,, ", "http://app.ns.svc.cluster.local", true},
           {"", "http://localhost:1", true},
           {"", "http://127.0.0.1", true},
           {"", "http://127.9.9.9", true},
           {"", "http://[::1]", true},
           {"", "http://localhost.example", false},
       }) {
    EXPECT_EQ(bypassed(c.no_proxy, c.target), c.direct) << c.no_proxy << " for " << c.target;
  }
}

TEST(ProxySettings, ChoosesByScheme) {
  const auto settings =
      proxy_settings({{"HTTP_PROXY", "plain:3128"}, {"HTTPS_PROXY", "http://u:p@tls:8080"}});
  EXPECT_EQ(proxy_for(settings, "http://a").host, "plain");
  EXPECT_EQ(proxy_for(settings, "http://a").port, 3128);
  EXPECT_EQ(proxy_for(settings, "https://a").host, "tls");
  EXPECT_EQ(proxy_for(settings, "wss://a").userinfo, "u:p");
}

TEST(ProxySettings, TakesSocksProxies) {
  const auto settings =
      proxy_settings({{"HTTP_PROXY", "socks5h://u:p@jump"}, {"HTTPS_PROXY", "socks5://jump:9"}});
  EXPECT_TRUE(proxy_for(settings, "http://a").is_socks());
  EXPECT_EQ(proxy_for(settings, "http://a").port, 1080);
  EXPECT_EQ(proxy_for(settings, "wss://a").port, 9);
}

TEST(ProxySettings, AProxyOfOneServerIsUsedForLoopback) {
  auto settings = proxy_settings({{"HTTP_PROXY", "proxy"}});
  for (const char* target : {"http://127.0.0.1", "http://[::1]", "http://localhost"}) {
    settings.proxies_loopback = false;
    EXPECT_EQ(settings.proxy_for(*parse_url(target)).value(), nullptr) << target;
    settings.proxies_loopback = true;
    EXPECT_NE(settings.proxy_for(*parse_url(target)).value(), nullptr) << target;
  }
}

TEST(ProxySettings, LowerCaseWins) {
  const auto settings =
      proxy_settings({{"HTTP_PROXY", "http://upper"}, {"http_proxy", "http://lower"}});
  EXPECT_EQ(settings.http->host, "lower");
  const auto empty = proxy_settings({{"HTTP_PROXY", "http://upper"}, {"http_proxy", ""}});
  EXPECT_EQ(empty.http->host, "upper");
}

// As with curl and Go.
TEST(ProxySettings, AProxyMayBeReachedByTls) {
  const auto settings = proxy_settings({{"HTTPS_PROXY", "https://u:p@secure"}});
  const auto proxy = proxy_for(settings, "https://a");
  EXPECT_TRUE(proxy.is_tls());
  EXPECT_EQ(proxy.port, 443);
  EXPECT_EQ(proxy.userinfo, "u:p");
}

TEST(ProxySettings, AC28_ErrorsNameTheVariableOnly) {
  for (const char* value :
       {"http://user:canary@ho st", "socks4://user:canary@h:1", "ftp://user:canary@h:1"}) {
    const auto proxy = proxy_settings({{"HTTPS_PROXY", value}}).proxy_for(*parse_url("https://a"));
    ASSERT_FALSE(proxy) << value;
    EXPECT_THAT(proxy.error().message, testing::HasSubstr("HTTPS_PROXY"));
    EXPECT_THAT(proxy.error().message, testing::Not(testing::HasSubstr("canary")));
  }
}

TEST(ProxySettings, AVariableThatCannotBeReadIsAnErrorOnlyOfThePeersThatNeedIt) {
  const auto settings = proxy_settings({{"HTTPS_PROXY", "socks4://proxy"},
                                        {"HTTP_PROXY", "http://plain:3128"},
                                        {"NO_PROXY", ".svc,10.0.0.0/8"}});
  for (const char* target :
       {"https://argocd.argocd.svc", "https://10.96.0.1", "https://localhost"}) {
    EXPECT_EQ(settings.proxy_for(*parse_url(target)).value(), nullptr) << target;
  }
  EXPECT_EQ(proxy_for(settings, "http://a").host, "plain");
  const auto needed = settings.proxy_for(*parse_url("https://platform.example"));
  ASSERT_FALSE(needed);
  EXPECT_EQ(needed.error().code, ErrorCode::unavailable);
  EXPECT_EQ(needed.error().message,
            "HTTPS_PROXY: invalid URL: the scheme must be http, https, socks5 or socks5h");
}

TEST(ProxySettings, TakesPasswordsAsPeopleWriteThem) {
  const auto settings = proxy_settings(
      {{"HTTP_PROXY", "me:p@ss@proxy:3128\n"}, {"HTTPS_PROXY", " http://me:p@ss@proxy:3128 "}});
  for (const char* target : {"http://a", "https://a"}) {
    const Url proxy = proxy_for(settings, target);
    EXPECT_EQ(proxy.host, "proxy");
    EXPECT_EQ(proxy.port, 3128);
    EXPECT_EQ(proxy.userinfo, "me:p%40ss");
  }
}

TEST(ProxySettings, NothingSetMeansDirect) {
  const auto settings = proxy_settings({{"NO_PROXY", "a"}});
  EXPECT_EQ(settings.proxy_for(*parse_url("http://b")).value(), nullptr);
}

}  // namespace
}  // namespace gitops::http
