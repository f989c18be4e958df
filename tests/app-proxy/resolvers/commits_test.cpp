// The pure parts of the fields that commit.
#include "app-proxy/resolvers/commits.hpp"

#include <gmock/gmock.h>

#include "app-proxy/git/committer.hpp"
#include "app-proxy/git/push_rules.hpp"
#include "app-proxy/git/repository.hpp"
#include "app-proxy/providers/git_error.hpp"

namespace gitops::app_proxy {
namespace {

using testing::HasSubstr;
using testing::Not;

ApiRoot root(std::string_view provider, std::string_view url,
             PlainHttp plain = PlainHttp::refused) {
  auto made = make_api_root(provider, url, plain);
  EXPECT_TRUE(made) << made.error().message;
  return made.value_or(ApiRoot());
}

// AC-39: the user's token goes to the integration's own host, and nowhere else.
TEST(CloneUrls, AC39_AreOfTheIntegrationsHost) {
  const ApiRoot github = root("GITHUB", "https://api.github.com");
  EXPECT_TRUE(clone_url_of(github, "https://github.com/acme/shop.git"));
  const ApiRoot residency = root("GITHUB", "https://acme.ghe.com");
  EXPECT_TRUE(clone_url_of(residency, "https://acme.ghe.com/acme/shop.git"));
  EXPECT_FALSE(clone_url_of(residency, "https://other.ghe.com/acme/shop.git"));
  const ApiRoot own = root("GITHUB", "https://git.example.test");
  EXPECT_TRUE(clone_url_of(own, "https://git.example.test/acme/shop.git"));
  for (const char* elsewhere :
       {"https://evil.example/acme/shop.git", "https://git.example.test.evil.example/a/b.git",
        "https://git.example.test@evil.example/a/b.git"}) {
    const auto url = clone_url_of(own, elsewhere);
    ASSERT_FALSE(url) << elsewhere;
    EXPECT_THAT(url.error().subcode,
                testing::AnyOf(git_errors::kRedirected, git_errors::kBadAnswer));
  }
  EXPECT_EQ(clone_url_of(own, "https://evil.example/a/b.git").error().subcode,
            git_errors::kRedirected);
}

// AC-41: no SSH, and no TLS left out unless the integration has none.
TEST(CloneUrls, AC41_AreHttpsUnlessTheHostHasNoTls) {
  const ApiRoot own = root("GITHUB", "https://git.example.test");
  for (const char* text :
       {"git@git.example.test:acme/shop.git", "ssh://git@git.example.test/acme/shop.git",
        "http://git.example.test/acme/shop.git", "file:///etc", "", "ext::sh -c x"}) {
    const auto url = clone_url_of(own, text);
    ASSERT_FALSE(url) << text;
    EXPECT_EQ(url.error().subcode, git_errors::kBadAnswer) << text;
  }
  const ApiRoot plain = root("GITHUB", "http://git.example.test", PlainHttp::insecure_allowed);
  EXPECT_TRUE(clone_url_of(plain, "http://git.example.test/acme/shop.git"));
}

TEST(GitUsernames, AreThoseThatHostsExpect) {
  GitAccount account;
  account.root = root("GITHUB", "https://api.github.com");
  EXPECT_EQ(git_username_of(account), "git");
  account.login = "dana";
  EXPECT_EQ(git_username_of(account), "dana");
  account.access.username = "robot";
  EXPECT_EQ(git_username_of(account), "robot");
  account.access.username = "dana@example.test";
  EXPECT_EQ(git_username_of(account), "dana@example.test");
  account.root = root("BITBUCKET", "https://api.bitbucket.org/2.0");
  EXPECT_EQ(git_username_of(account), "x-bitbucket-api-token-auth");
}

Error shown(ErrorCode code, std::string_view subcode = {}) {
  return public_commit_error({.code = code, .message = "what happened", .subcode = subcode});
}

TEST(PublicCommitErrors, SayWhatToDo) {
  EXPECT_EQ(shown(ErrorCode::conflict, kNothingToCommit).subcode, "GIT_NOTHING_TO_COMMIT");
  EXPECT_EQ(shown(ErrorCode::conflict).subcode, git_errors::kConflict);
  EXPECT_THAT(shown(ErrorCode::conflict).message, HasSubstr("read it again"));
  const auto rejected = shown(ErrorCode::unauthenticated);
  EXPECT_EQ(rejected.subcode, git_errors::kTokenRejected);
  // The caller's own session is fine.
  EXPECT_NE(rejected.code, ErrorCode::unauthenticated);
  EXPECT_NE(shown(ErrorCode::forbidden).code, ErrorCode::forbidden);
  EXPECT_EQ(shown(ErrorCode::not_found).subcode, git_errors::kNotFound);
  EXPECT_EQ(shown(ErrorCode::tls).subcode, git_errors::kUnreachable);
  EXPECT_EQ(shown(ErrorCode::protocol).subcode, git_errors::kBadAnswer);
  EXPECT_EQ(shown(ErrorCode::invalid_argument, "x").subcode, "");
}

TEST(PublicCommitErrors, KeepTheRuntimesOwnFailuresForTheLog) {
  for (const auto subcode : {kBrokenClone, kDiskFull}) {
    const auto error = shown(ErrorCode::internal, subcode);
    EXPECT_EQ(error.code, ErrorCode::unavailable);
    EXPECT_THAT(error.message, Not(HasSubstr("what happened")));
  }
  EXPECT_EQ(shown(ErrorCode::unavailable, kStopping).message, "what happened");
  // A full disk after a push whose answer was lost.
  const auto unknown = public_commit_error(
      final_error({.error = {.code = ErrorCode::internal, .subcode = kDiskFull}}, true));
  EXPECT_EQ(unknown.code, ErrorCode::timeout);
  EXPECT_THAT(unknown.message, HasSubstr("it is not known whether the commit was pushed"));
}

}  // namespace
}  // namespace gitops::app_proxy
