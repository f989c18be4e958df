#include "app-proxy/providers/git_error.hpp"

#include <gmock/gmock.h>

namespace gitops::app_proxy {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const ApiRoot kRoot = *make_api_root("GITHUB", "");
const GitErrorPlace kPlace{kRoot, "repository acme/shop"};

TEST(GitError, EachStatusHasACodeAndARemedy) {
  const struct {
    int status;
    std::string_view subcode;
    ErrorCode code;
    const char* remedy;
  } cases[] = {
      {401, git_errors::kTokenRejected, ErrorCode::unauthenticated, "register a new token"},
      {403, git_errors::kTokenLacksRight, ErrorCode::forbidden, "extend the token's rights"},
      {404, git_errors::kNotFound, ErrorCode::not_found, "check the name"},
      {409, git_errors::kConflict, ErrorCode::conflict, "exists already"},
      {422, git_errors::kRefused, ErrorCode::invalid_argument, "refused the request"},
      {502, git_errors::kUnreachable, ErrorCode::unavailable, "try again later"},
  };
  for (const auto& expected : cases) {
    const auto error = refused_by_host(kPlace, {.status = expected.status}, "t");
    EXPECT_EQ(error.subcode, expected.subcode);
    EXPECT_EQ(error.code, expected.code);
    EXPECT_THAT(error.message, HasSubstr("repository acme/shop at api.github.com: "));
    EXPECT_THAT(error.message, HasSubstr(expected.remedy));
  }
}

TEST(GitError, QuotesWhatTheHostSays) {
  EXPECT_EQ(host_message(R"({"message":"Bad credentials"})", "ghp_x"), "Bad credentials");
  EXPECT_EQ(host_message(R"({"message":"Validation Failed","errors":[{"message":"exists"}]})", ""),
            "Validation Failed: exists");
  EXPECT_EQ(host_message(R"({"error":{"message":"no"}})", ""), "no");
  EXPECT_EQ(host_message(R"({"error":"insufficient_scope","error_description":"needs api"})", ""),
            "needs api");
  EXPECT_EQ(host_message(R"({"errors":[{"context":null,"message":"slug"}]})", ""), "slug");
  EXPECT_EQ(host_message(R"({"message":{"name":["has already been taken"]}})", ""),
            "has already been taken");
  EXPECT_EQ(host_message(R"({"message":["Another open merge request"]})", ""),
            "Another open merge request");
  EXPECT_EQ(host_message("<html>", ""), "");
  EXPECT_EQ(host_message(R"({"message":"a\nb"})", ""), "a b");
  EXPECT_LE(host_message(R"({"message":")" + std::string(5000, 'x') + "\"}", "").size(), 203U);
}

// Proxies and some hosts answer in plain text; pages for browsers are not quoted.
TEST(GitError, QuotesPlainText) {
  const auto said = [](std::string type, std::string body) {
    return refused_by_host(kPlace,
                           {.status = 422,
                            .headers = {{"Content-Type", std::move(type)}},
                            .body = std::move(body)},
                           "ghp_canary")
        .message;
  };
  EXPECT_THAT(said("text/plain; charset=utf-8", "The branch is locked.\nAsk \xff\x1b[31mAnn\n"),
              HasSubstr("(The branch is locked. Ask ? [31mAnn)"));
  EXPECT_THAT(said("text/html", "<h1>locked</h1>"), Not(HasSubstr("locked")));
  EXPECT_THAT(said("text/plain", "token ghp_canary"), Not(HasSubstr("canary")));
  EXPECT_LT(said("text/plain", std::string(5'000, 'x')).size(), 400U);
}

// [AC-28]
TEST(GitError, AC28_AHostThatSendsTheTokenBackIsNotQuoted) {
  const std::string token = "ghp_canary0123456789";
  const auto error = refused_by_host(
      kPlace, {.status = 401, .body = R"({"message":"bad token ghp_canary0123456789"})"}, token);
  EXPECT_THAT(error.message, Not(HasSubstr("canary")));
}

TEST(GitError, NamesThePermissionsThatGitHubWants) {
  const auto error = refused_by_host(
      kPlace, {.status = 403, .headers = {{"X-Accepted-GitHub-Permissions", "contents=write"}}},
      "t");
  EXPECT_THAT(error.message, HasSubstr("(needed: contents=write)"));
}

TEST(GitError, ThrottlingTellsUntilWhen) {
  const auto error = host_throttles(kPlace, std::chrono::seconds(90));
  EXPECT_EQ(error.code, ErrorCode::too_many_requests);
  EXPECT_EQ(error.retry_after, std::chrono::seconds(90));
  EXPECT_THAT(error.message, HasSubstr("until 2"));
}

}  // namespace
}  // namespace gitops::app_proxy
