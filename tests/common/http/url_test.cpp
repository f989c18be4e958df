#include "common/http/url.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gitops::http {
namespace {

struct Good {
  std::string text, scheme, host;
  std::uint16_t port;
  std::string path, query, userinfo, printed;
};

TEST(Url, ReadsItsParts) {
  const std::vector<Good> cases{
      {"http://a.example", "http", "a.example", 80, "", "", "", "http://a.example"},
      {"HTTPS://A.Example:443/x/y?q=1&r", "https", "a.example", 443, "/x/y", "q=1&r", "",
       "https://a.example/x/y?q=1&r"},
      {"ws://h:8080?x", "ws", "h", 8080, "", "x", "", "ws://h:8080?x"},
      {"wss://h/", "wss", "h", 443, "/", "", "", "wss://h/"},
      {"http://10.1.2.3:6443/", "http", "10.1.2.3", 6443, "/", "", "", "http://10.1.2.3:6443/"},
      {"http://[2001:DB8::1]:8443/p", "http", "2001:db8::1", 8443, "/p", "", "",
       "http://[2001:db8::1]:8443/p"},
      {"http://[::1]", "http", "::1", 80, "", "", "", "http://[::1]"},
      {"http://user:p%40ss@proxy:3128", "http", "proxy", 3128, "", "", "user:p%40ss",
       "http://proxy:3128"},
      {"http://my_svc.ns.svc.cluster.local.", "http", "my_svc.ns.svc.cluster.local.", 80, "", "",
       "", "http://my_svc.ns.svc.cluster.local."},
      {"http://h/a%2Fb/%2e%2e/c;d", "http", "h", 80, "/a%2Fb/%2e%2e/c;d", "", "",
       "http://h/a%2Fb/%2e%2e/c;d"},
      {"http://h/@x", "http", "h", 80, "/@x", "", "", "http://h/@x"},
  };
  for (const Good& c : cases) {
    const auto url = parse_url(c.text);
    ASSERT_TRUE(url) << c.text << ": " << url.error().message;
    EXPECT_EQ(url->scheme, c.scheme) << c.text;
    EXPECT_EQ(url->host, c.host) << c.text;
    EXPECT_EQ(url->port, c.port) << c.text;
    EXPECT_EQ(url->path, c.path) << c.text;
    EXPECT_EQ(url->query, c.query) << c.text;
    EXPECT_EQ(url->userinfo, c.userinfo) << c.text;
    EXPECT_EQ(url->to_string(), c.printed);
  }
}

TEST(Url, AC01_RefusesWhatCouldMeanAnotherHost) {
  for (const char* text : {
           "",
           "example.com",
           "//example.com",
           "ftp://a",
           "javascript://a",
           "http://",
           "http:///x",
           "http://:80",
           "http://a:",
           "http://a:0",
           "http://a:65536",
           "http://a:080808",
           "http://a:8a",
           "http://a:-1",
           "http://a:+1",
           "http://a b",
           "http://a\tb",
           "http://a\r\nHost: b",
           "http://a\x7f",
           "http://a\\b",
           "http://good.example\\@evil.example",
           "http://a#b",
           "http://a/#b",
           "http://good@evil@worse",
           "http://@a",
           "http://u%zz@a",
           "http://a,b",
           "http://a%2fb",
           "http://a%00",
           "http://a..b",
           "http://.a",
           "http://-a",
           "http://a-",
           "http://a-.b",
           "http://(a)",
           "http://[::1",
           "http://::1",
           "http://[::1]x",
           "http://[::1]80",
           "http://[fe80::1%25eth0]",
           "http://[fe80::1%eth0]",
           "http://[1.2.3.4]",
           "http://[]",
           "http://[a]",
           "http://\xc3\xa4.example",
           "http://1.2.3",
           "http://1.2.3.4.5",
           "http://1.2.3.256",
           "http://127.1",
           "http://2130706433",
           "http://0x7f000001",
           "http://0x7f.0.0.0x1",
           "http://0177.0.0.1",
           "http://1.2.3.04",
       }) {
    EXPECT_FALSE(parse_url(text)) << text;
  }
  EXPECT_FALSE(parse_url(std::string_view("http://a\0b", 10)));
  EXPECT_FALSE(parse_url("http://" + std::string(64, 'a') + ".b"));
  std::string long_name;
  for (int i = 0; i < 130; ++i) long_name += "a.";
  EXPECT_FALSE(parse_url("http://" + long_name + "b"));
}

// As curl and Go read them: up to the last '@' before the path.
TEST(Url, ReadsUserAndPasswordOfAProxyAsTheyAreWritten) {
  for (const auto& [text, userinfo] : std::vector<std::pair<std::string, std::string>>{
           {"http://proxy:3128", ""},
           {"http://me@proxy:3128", "me"},
           {"http://me:p@ss@proxy:3128", "me:p%40ss"},
           {"http://me:@@proxy:3128/a@b?c@d", "me:%40"},
           {"http://me:p%40ss@proxy:3128", "me:p%40ss"},
           {"http://me:100%@proxy:3128", "me:100%25"},
           {"http://me:%zz%4@proxy:3128", "me:%25zz%254"},
           {"http://me:a:b@proxy:3128", "me:a:b"},
           {"http://:token@proxy:3128", ":token"},
           {"http://@proxy:3128", ""},
           {R"(http://CORP\me:p$^&w@proxy:3128)", "CORP%5Cme:p%24%5E%26w"},
           {"http://me:p\xc3\xa4ss@proxy:3128", "me:p%C3%A4ss"},
           {" socks5://me:p@ss@proxy:3128\n", "me:p%40ss"},
       }) {
    const auto url = parse_proxy_url(text);
    ASSERT_TRUE(url) << text << ": " << url.error().message;
    EXPECT_EQ(url->host, "proxy") << text;
    EXPECT_EQ(url->port, 3128) << text;
    EXPECT_EQ(url->userinfo, userinfo) << text;
  }
  for (const char* text : {"http://me:p w@proxy", "http://me:p\x01w@proxy", "http://me:pw@",
                           "http://me@pro\\xy", "http://me:p/w@proxy", "ftp://proxy", "proxy:1"}) {
    EXPECT_FALSE(parse_proxy_url(text)) << text;
  }
}

TEST(Url, AC28_KeepsUserinfoOutOfErrors) {
  for (const char* text :
       {"http://user:canary@ho st/", "http://user:canary@a:99999", "http://user:canary@"}) {
    const auto url = parse_url(text);
    ASSERT_FALSE(url);
    EXPECT_THAT(url.error().message, testing::Not(testing::HasSubstr("canary")));
  }
}

TEST(Url, GivesTheHostHeader) {
  EXPECT_EQ(parse_url("https://a")->host_header(), "a");
  EXPECT_EQ(parse_url("https://a:80")->host_header(), "a:80");
  EXPECT_EQ(parse_url("http://[::1]:80")->host_header(), "[::1]");
  EXPECT_EQ(parse_url("http://[::1]:81")->host_header(), "[::1]:81");
}

TEST(Url, JoinsTargets) {
  EXPECT_EQ(join_target(*parse_url("http://a"), "/x?y=1"), "/x?y=1");
  EXPECT_EQ(join_target(*parse_url("http://a/"), "/x"), "/x");
  EXPECT_EQ(join_target(*parse_url("http://a/base//"), "/x"), "/base/x");
  EXPECT_EQ(join_target(*parse_url("http://a"), ""), "/");
}

TEST(Url, EncodesQueries) {
  EXPECT_EQ(query_string({{"a", "1"}, {"b c", "x+y&z=\n"}}), "a=1&b%20c=x%2By%26z%3D%0A");
  EXPECT_EQ(query_string({}), "");
}

TEST(Url, SplitsHostAndPort) {
  using Pair = std::pair<std::string, std::uint16_t>;
  EXPECT_EQ(*parse_host_port("A.b", 80), (Pair{"a.b", 80}));
  EXPECT_EQ(*parse_host_port("a:1", 80), (Pair{"a", 1}));
  EXPECT_EQ(*parse_host_port("[::1]:5", 80), (Pair{"::1", 5}));
  EXPECT_EQ(*parse_host_port("[::1]", 80), (Pair{"::1", 80}));
  for (const char* text : {"", ":80", "a:", "a:b", "a:1:2", "::1", "[::1]:", "a/b", "user@a"}) {
    EXPECT_FALSE(parse_host_port(text, 80)) << text;
  }
}

}  // namespace
}  // namespace gitops::http
