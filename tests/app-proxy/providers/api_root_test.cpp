#include "app-proxy/providers/api_root.hpp"

#include <gtest/gtest.h>

namespace gitops::app_proxy {
namespace {

std::string root_of(std::string_view provider, std::string_view url) {
  const auto root = make_api_root(provider, url);
  return root ? root->text() : "refused: " + root.error().message;
}

TEST(ApiRoot, HasTheUsualPathOfEachProvider) {
  EXPECT_EQ(root_of("GITHUB", ""), "https://api.github.com");
  EXPECT_EQ(root_of("github", "https://github.com/"), "https://api.github.com");
  EXPECT_EQ(root_of("GITHUB", "https://api.github.com/"), "https://api.github.com");
  EXPECT_EQ(root_of("GITHUB", "https://ghe.example.test"), "https://ghe.example.test/api/v3");
  EXPECT_EQ(root_of("GITHUB", "https://ghe.example.test:8443//"),
            "https://ghe.example.test:8443/api/v3");
  EXPECT_EQ(root_of("GITLAB", ""), "https://gitlab.com/api/v4");
  EXPECT_EQ(root_of("gitlab", "https://git.example.test/sub/api/v4/"),
            "https://git.example.test/sub/api/v4");
  EXPECT_EQ(root_of("BITBUCKET", "https://bitbucket.org/api/2.0"), "https://api.bitbucket.org/2.0");
  EXPECT_EQ(root_of("bitbucket", ""), "https://api.bitbucket.org/2.0");
  EXPECT_EQ(root_of("BITBUCKET_SERVER", "https://bb.example.test"),
            "https://bb.example.test/rest/api/1.0");
  EXPECT_EQ(root_of("bitbucket-server", "https://bb.example.test/rest/api/1.0/"),
            "https://bb.example.test/rest/api/1.0");
  EXPECT_EQ(root_of("gitea", "https://tea.example.test"), "https://tea.example.test/api/v1");
}

// GitHub with data residency: each customer has a name below ghe.com, and the interface its own
// host.
TEST(ApiRoot, HostsOfGitHubWithDataResidency) {
  for (const char* url : {"https://acme.ghe.com", "https://acme.ghe.com/",
                          "https://api.acme.ghe.com", "https://acme.ghe.com/api/v3"}) {
    const auto root = make_api_root("GITHUB", url);
    ASSERT_TRUE(root) << url;
    EXPECT_EQ(root->text(), "https://api.acme.ghe.com") << url;
    EXPECT_EQ(root->web_host(), "acme.ghe.com") << url;
  }
  EXPECT_EQ(root_of("github", "https://www.github.com"), "https://api.github.com");
  // Others have no host beside theirs.
  EXPECT_EQ(root_of("GITHUB", "https://acme.ghe.com.example.test"),
            "https://acme.ghe.com.example.test/api/v3");
  EXPECT_EQ(root_of("GITHUB", "https://api.acme.ghe.example.test"),
            "https://api.acme.ghe.example.test/api/v3");
  EXPECT_EQ(make_api_root("GITHUB", "https://api.example.test")->web_host(), "api.example.test");
  EXPECT_EQ(root_of("GITHUB", "https://evilghe.com"), "https://evilghe.com/api/v3");
  EXPECT_EQ(root_of("BITBUCKET_SERVER", "https://acme.ghe.com"),
            "https://acme.ghe.com/rest/api/1.0");
}

TEST(ApiRoot, GiteaIsRecognisedByItsPath) {
  const auto root = make_api_root("GITHUB", "https://tea.example.test/api/v1/");
  ASSERT_TRUE(root);
  EXPECT_EQ(root->kind, ProviderKind::gitea);
  EXPECT_EQ(wire_name(root->kind), "GITHUB");
  EXPECT_EQ(make_api_root("GITHUB", "https://ghe.example.test/api/v3")->kind, ProviderKind::github);
}

TEST(ApiRoot, RefusesWhatCannotBeTrusted) {
  for (const auto* url :
       {"http://ghe.example.test", "ftp://ghe.example.test", "https://", "nonsense",
        "https://user:hunter2@ghe.example.test", "https://ghe.example.test/api?x=1",
        "https://ghe.example.test/../x", "https://ghe.example.test/a//b",
        "https://ghe.example.test/%2e%2e/x", "https://ghe.example.test/#x"}) {
    const auto root = make_api_root("GITHUB", url);
    ASSERT_FALSE(root) << url;
    EXPECT_EQ(root.error().code, ErrorCode::invalid_argument);
    EXPECT_FALSE(root.error().message.contains("hunter2"));
  }
  const auto gerrit = make_api_root("GERRIT", "https://x.test").error();
  EXPECT_EQ(gerrit.code, ErrorCode::unsupported);
  EXPECT_TRUE(gerrit.message.starts_with("Gerrit is not supported; supported are GITHUB"));
  EXPECT_FALSE(make_api_root("BITBUCKET_SERVER", ""));
  EXPECT_FALSE(make_api_root("gitea", ""));
}

TEST(ApiRoot, PlainHttpNeedsAnInsecureOption) {
  const auto root = make_api_root("GITHUB", "http://127.0.0.1:3000", PlainHttp::insecure_allowed);
  ASSERT_TRUE(root);
  EXPECT_EQ(root->text(), "http://127.0.0.1:3000/api/v3");
}

}  // namespace
}  // namespace gitops::app_proxy
