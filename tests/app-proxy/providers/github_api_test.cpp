#include "app-proxy/providers/github_api.hpp"

#include <gmock/gmock.h>

#include "app-proxy/errors/client_codes.hpp"

namespace gitops::app_proxy::github {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(GitHubApi, AUserWithoutAPublicAddressHasANoReplyOne) {
  const auto hidden =
      read_profile(R"({"id":583231,"login":"dana","name":null,"email":null})", "github.com");
  ASSERT_TRUE(hidden);
  EXPECT_EQ(hidden->mail, "583231+dana@users.noreply.github.com");
  EXPECT_EQ(hidden->name, "dana");
  EXPECT_FALSE(read_profile(R"({"login":"dana"})", "github.com"));
}

TEST(GitHubApi, SearchesCannotBeWidened) {
  EXPECT_EQ(search_query("shop user:other", {"dana", "acme"}),
            "shop user other in:name fork:true user:dana user:acme");
}

// docs.github.com/rest/search: "up to 1,000 results for each search". A page beyond is 422.
TEST(GitHubApi, ASearchShowsItsFirstThousandResults) {
  EXPECT_EQ(read_search(R"({"total_count":999,"items":[]})")->total, 999U);
  EXPECT_EQ(read_search(R"({"total_count":54321,"items":[]})")->total, 1'000U);
}

// docs.github.com/rest/search, "Timeouts and incomplete results".
TEST(GitHubApi, ASearchThatGitHubDidNotFinishIsNoList) {
  const auto part = read_search(
      R"({"total_count":1,"incomplete_results":true,"items":[{"id":1,"full_name":"acme/shop"}]})");
  ASSERT_FALSE(part);
  EXPECT_EQ(part.error().code, ErrorCode::unavailable);
  EXPECT_EQ(part.error().subcode, git_errors::kUnreachable);
  const auto whole = read_search(
      R"({"total_count":1,"incomplete_results":false,"items":[{"id":1,"full_name":"acme/shop"}]})");
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->repositories.size(), 1U);
}

TEST(GitHubApi, ClassicTokensAreJudgedByScopes) {
  EXPECT_THAT(missing_scopes("repo, admin:repo_hook", TokenUse::runtime), IsEmpty());
  EXPECT_THAT(missing_scopes("repo", TokenUse::runtime), ElementsAre("admin:repo_hook"));
  EXPECT_THAT(missing_scopes("repo", TokenUse::user), IsEmpty());
  EXPECT_THAT(missing_scopes("repo:status", TokenUse::user), ElementsAre("repo"));
  EXPECT_THAT(missing_scopes("", TokenUse::user), ElementsAre("repo"));
}

TEST(GitHubApi, ARepositoryThatCannotBeReadDoesNotHideTheOthers) {
  const auto found = read_repositories(
      R"([{"id":1,"full_name":"acme/shop"},{"id":2},7,{"id":3,"full_name":"a/../b"},
          {"id":4,"full_name":"acme/web","private":false,"permissions":{"push":true}}])");
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 2U);
  EXPECT_TRUE(found->at(0).is_private) << "unless the host says otherwise";
  EXPECT_FALSE(found->at(0).permissions);
  EXPECT_FALSE(found->at(1).is_private);
  EXPECT_EQ(found->at(1).permissions, (Permissions{.read = true, .write = true}));
}

TEST(GitHubApi, OnlyAMergedPullRequestHasAMergeCommit) {
  const auto open = read_pull_request(
      R"({"number":7,"state":"open","merged":false,"merge_commit_sha":"abc"})", {"a", "b"});
  ASSERT_TRUE(open);
  EXPECT_TRUE(open->is_open);
  EXPECT_EQ(open->merge_commit_sha, "");
}

TEST(GitHubApi, FilesAreDecodedAndFoldersAreNot) {
  const auto file = read_file(
      R"({"type":"file","encoding":"base64","content":"aGVs\nbG8K\n","sha":"ce01"})", "a/b");
  ASSERT_TRUE(file);
  EXPECT_EQ(file->content, "hello\n");
  EXPECT_EQ(file->revision, "ce01");
  EXPECT_EQ(read_file("[]", "a").error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(read_file(R"({"type":"symlink","target":"/etc/passwd"})", "a").error().code,
            ErrorCode::invalid_argument);
  EXPECT_EQ(read_file(R"({"type":"file","encoding":"none","content":""})", "a").error().code,
            ErrorCode::too_large);
}

}  // namespace
}  // namespace gitops::app_proxy::github
