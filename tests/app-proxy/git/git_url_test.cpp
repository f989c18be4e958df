#include "app-proxy/git/git_url.hpp"

#include <gtest/gtest.h>

namespace gitops::app_proxy {
namespace {

TEST(GitUrl, ReadsCloneUrls) {
  const auto url = parse_repository_url("https://Git.Example.com:8443/owner/repo.git/");
  ASSERT_TRUE(url);
  EXPECT_EQ(url->name, "owner/repo");
  EXPECT_EQ(url->to_string(), "https://git.example.com:8443/owner/repo.git");
  EXPECT_EQ(url->key(), "https://git.example.com:8443/owner/repo");
  EXPECT_EQ(parse_repository_url("https://h/o/r")->key(),
            parse_repository_url("https://h:443/o/r.git")->key());
  EXPECT_TRUE(parse_repository_url("http://127.0.0.1:1/o/r", Scheme::http_too));
}

// AC-39, AC-41: other transports, local files, options, traversal, credentials.
TEST(GitUrl, AC39_AC41_RefusesWhatIsNotACloneUrl) {
  for (const char* text : {"",
                           "git@github.com:owner/repo.git",
                           "ssh://git@host/o/r.git",
                           "ssh://-oProxyCommand=x/r",
                           "git+ssh://h/o/r",
                           "file:///etc/passwd",
                           "/srv/repo.git",
                           "../repo",
                           "--upload-pack=sh",
                           "-oProxyCommand=id",
                           "ext::sh -c id",
                           "git://h/o/r",
                           "http://h/o/r",
                           "ftp://h/o/r",
                           "https://user:token@h/o/r",
                           "https://h",
                           "https://h/",
                           "https://h/.git",
                           "https://h/o/../r",
                           "https://h/o/%2e%2e/r",
                           "https://h/o/%2E./r",
                           "https://h/o%2f..%2fr",
                           "https://h/o//r",
                           "https://h/./r",
                           "https://h/o/-r",
                           "https://h/o/%2dr",
                           "https://h/o/r%0a",
                           "https://h/o/r%00",
                           "https://h/o/r%5c",
                           "https://h/o/r%25",
                           "https://h/o/r%zz",
                           "https://h/o/r?x=1",
                           "https://h/o/r?",
                           "https://h/o/r#f",
                           "https://h/o\\r",
                           "https://h/o /r"}) {
    const auto url = parse_repository_url(text);
    ASSERT_FALSE(url) << text;
    EXPECT_EQ(url.error().code, ErrorCode::invalid_argument);
    EXPECT_FALSE(url.error().message.contains("token"));
  }
  EXPECT_TRUE(parse_repository_url("ssh://h/o/r").error().message.contains("SSH"));
  EXPECT_TRUE(parse_repository_url("git@h:o/r").error().message.contains("SSH"));
  EXPECT_TRUE(parse_repository_url("file:///x").error().message.contains("local file"));
}

TEST(GitUrl, ReadsSpecifiers) {
  const auto whole = parse_specifier("https://h/o/r.git/resources/a%20b/?ref=feature/x");
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_EQ(whole->repository.to_string(), "https://h/o/r.git");
  EXPECT_EQ(whole->path, "resources/a b");
  EXPECT_EQ(whole->ref, "feature/x");
  const auto bare = parse_specifier("https://h/o/r.git");
  ASSERT_TRUE(bare);
  EXPECT_EQ(bare->path, "");
  EXPECT_EQ(bare->ref, "");
  EXPECT_EQ(parse_specifier("https://h/o/my.github.io.git/x")->repository.name, "o/my.github.io");
  for (const char* text : {"https://h/o/r", "https://h/o/r.git/../x", "https://h/o/r.git?ref=",
                           "https://h/o/r.git?ref=a..b", "https://h/o/r.git?ref=--x",
                           "https://h/o/r.git?branch=x", "https://h/o/r.git?ref=a&x=b",
                           "https://h/o/r.gitx", "https://h/o/r.git?ref=refs/tags/v1"}) {
    EXPECT_FALSE(parse_specifier(text)) << text;
  }
}

TEST(GitUrl, ReadsBranches) {
  EXPECT_EQ(parse_branch("refs/heads/main").value(), "main");
  EXPECT_EQ(parse_branch("feature/äö-1.2").value(), "feature/äö-1.2");
  for (const char* text : {"",     "HEAD",  "@",    "-x",           "a..b",
                           "a//b", "/a",    "a/",   "a.lock",       "a.lock/b",
                           ".a",   "a/.b",  "a.",   "a b",          "a~1",
                           "a^",   "a:b",   "a?",   "a*",           "a[",
                           "a\\b", "a@{1}", "a\nb", "refs/tags/v1", "refs/heads/refs/x"}) {
    EXPECT_FALSE(parse_branch(text)) << text;
  }
  EXPECT_FALSE(parse_branch(std::string(245, 'a')));
}

}  // namespace
}  // namespace gitops::app_proxy
