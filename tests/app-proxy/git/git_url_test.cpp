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
  for (const char* text : {"https://h/o/r.git/../x",
                           "https://h/o/r.git?ref=",
                           "https://h/o/r.git?ref=a..b",
                           "https://h/o/r.git?ref=--x",
                           "https://h/o/r.git?branch=x",
                           "https://h/o/r.git?ref=a&x=b",
                           "https://h/o",
                           "https://h/o/",
                           "https://h/",
                           "https://h/o//r",
                           "https://h/o/../r/x",
                           "https://h/o/r/../x",
                           "https://h/o/_git/",
                           "https://h/o/r?tag=",
                           "https://h/o/r?tag=-x",
                           "https://h/o/r?sha=main",
                           "https://h/o/r?sha=123",
                           "https://h/o/r?sha=",
                           "https://h/o/r?ref",
                           "https://u:p@dev.azure.com/o/p/_git/r",
                           "https://u@h/o/r"}) {
    EXPECT_FALSE(parse_specifier(text)) << text;
  }
}

// The forms that the public command line documents and its library reads.
TEST(GitUrl, ReadsSpecifiersOfTheCommandLine) {
  using Kind = RepositorySpecifier::Kind;
  struct Expected {
    const char* text;
    const char* repository;
    const char* name;
    const char* path;
    const char* ref;
    Kind kind;
  };
  const char* const shop = "https://github.com/owner/shop.git";
  const std::string sha(40, 'a');
  const std::string at_sha = "https://github.com/owner/shop/path?sha=" + sha;
  for (const auto& expected : std::vector<Expected>{
           {"https://github.com/owner/shop", shop, "owner/shop", "", "", Kind::branch},
           {"https://github.com/owner/shop/", shop, "owner/shop", "", "", Kind::branch},
           {"https://github.com/owner/shop/path/to?ref=main", shop, "owner/shop", "path/to", "main",
            Kind::branch},
           {"https://github.com/owner/shop.git/path?ref=HEAD", shop, "owner/shop", "path", "",
            Kind::branch},
           {"https://github.com/owner/shop/path?tag=v1.2", shop, "owner/shop", "path", "v1.2",
            Kind::tag},
           {"https://github.com/owner/shop.git?ref=refs/tags/v1", shop, "owner/shop", "", "v1",
            Kind::tag},
           {at_sha.c_str(), shop, "owner/shop", "path", sha.c_str(), Kind::commit},
           {"https://h/o/r.gitx/y", "https://h/o/r.gitx.git", "o/r.gitx", "y", "", Kind::branch},
           {"https://dev.azure.com/acme/my%20project/_git/shop/deploy/prod?ref=main",
            "https://dev.azure.com/acme/my%20project/_git/shop", "acme/my%20project/_git/shop",
            "deploy/prod", "main", Kind::branch},
           {"https://acme@dev.azure.com/acme/p/_git/shop", "https://dev.azure.com/acme/p/_git/shop",
            "acme/p/_git/shop", "", "", Kind::branch},
           // ".git" wins, so groups within groups can be written.
           {"https://gitlab.com/a/b/c.git/d", "https://gitlab.com/a/b/c.git", "a/b/c", "d", "",
            Kind::branch},
       }) {
    const auto read = parse_specifier(expected.text);
    ASSERT_TRUE(read) << expected.text << ": " << read.error().message;
    EXPECT_EQ(read->repository.to_string(), expected.repository) << expected.text;
    EXPECT_EQ(read->repository.name, expected.name) << expected.text;
    EXPECT_EQ(read->path, expected.path) << expected.text;
    EXPECT_EQ(read->ref, expected.ref) << expected.text;
    EXPECT_EQ(read->kind, expected.kind) << expected.text;
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
