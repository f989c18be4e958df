#include "app-proxy/providers/git_types.hpp"

#include <gtest/gtest.h>

#include "app-proxy/providers/bitbucket_api.hpp"

namespace gitops::app_proxy {
namespace {

TEST(RepositoryNames, AreSplitAtTheLastSlash) {
  const auto name = parse_repository_name("group/sub/shop.web");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->owner, "group/sub");
  EXPECT_EQ(name->name, "shop.web");
  EXPECT_TRUE(parse_repository_name("~dana/notes"));
}

// [AC-39]
TEST(RepositoryNames, AC39_CannotLeaveTheirPlaceInAPath) {
  for (const auto* bad :
       {"", "shop", "/shop", "acme/", "acme//shop", "../shop", "acme/..", "acme/./x", "acme/sh op",
        "acme/shop?x=1", "acme/shop#x", "acme/%2e%2e", "acme/shop\n", "acme\\shop/x",
        "https://h.test/acme/shop", "acme/shop.git"}) {
    EXPECT_FALSE(parse_repository_name(bad)) << bad;
  }
}

TEST(FilePaths, AC39_StayInTheRepository) {
  for (const auto* good : {"a.yaml", "a/b/c.yaml", "with space.yaml", ".hidden", "a..b"}) {
    EXPECT_TRUE(check_file_path(good)) << good;
  }
  for (const auto* bad : {"", "/etc/passwd", "../x", "a/../../x", "a/./b", "a//b", "a/", "a\\b"}) {
    EXPECT_FALSE(check_file_path(bad)) << bad;
  }
}

TEST(Refs, AC39_AreThoseThatGitAllows) {
  for (const auto* good :
       {"main", "feature/x", "v1.2.3", "HEAD", "4b825dc642cb6eb9a060e54bf8d69288fbee4904"}) {
    EXPECT_TRUE(check_ref(good)) << good;
  }
  for (const auto* bad :
       {"",    "..", "a..b", "-x",   "/a", "a/",   "a b",  "a~1",   "a^",     "a:b",
        "a?b", "a*", "a[b",  "a\\b", ".a", "a/.b", "a//b", "a@{1}", "a.lock", "a."}) {
    EXPECT_FALSE(check_ref(bad)) << bad;
  }
}

TEST(CommitIdsAndWebhookIds, ArePlain) {
  EXPECT_TRUE(check_sha("4b825dc642cb6eb9a060e54bf8d69288fbee4904"));
  EXPECT_FALSE(check_sha("../../user"));
  EXPECT_FALSE(check_sha("abc"));
  EXPECT_TRUE(check_webhook_id("42"));
  EXPECT_TRUE(check_webhook_id("{76c2-aa}"));
  EXPECT_FALSE(check_webhook_id(".."));
  EXPECT_FALSE(check_webhook_id("1/2"));
  EXPECT_FALSE(check_webhook_id(""));
}

// A host that leaves out the query answers with those of all repositories.
TEST(BitbucketPermissions, AreThoseOfTheRepositoryThatIsNamed) {
  const auto* list = R"({"values":[
      {"permission":"admin","repository":{"full_name":"acme/other"}},
      {"permission":"read","repository":{"full_name":"Acme/Shop"}}]})";
  const auto shop = bitbucket::read_permissions(list, "acme/shop");
  ASSERT_TRUE(shop);
  EXPECT_TRUE(shop->read);
  EXPECT_FALSE(shop->write);
  const auto none = bitbucket::read_permissions(list, "acme/none");
  ASSERT_TRUE(none);
  EXPECT_FALSE(none->read);
  const auto unnamed = bitbucket::read_permissions(R"({"values":[{"permission":"write"}]})", "a/b");
  ASSERT_TRUE(unnamed);
  EXPECT_TRUE(unnamed->write);
}

}  // namespace
}  // namespace gitops::app_proxy
