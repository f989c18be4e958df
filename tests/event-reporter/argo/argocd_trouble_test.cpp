#include "event-reporter/argo/argocd_trouble.hpp"

#include <gtest/gtest.h>

namespace gitops::reporter {
namespace {

const Error kTimeout{.code = ErrorCode::timeout, .message = "no answer"};
const Error kRefused{.code = ErrorCode::unavailable, .message = "connection refused"};
const Error kUnavailable{
    .code = ErrorCode::unavailable, .message = "repo-server away", .http_status = 503};

ArgoCdTrouble well() {
  ArgoCdTrouble trouble;
  trouble.answered();
  return trouble;
}

TEST(ArgoCdTrouble, BeforeTheFirstAnswerItIsNotKnownToBeWell) {
  EXPECT_NE(ArgoCdTrouble().text(), "");
  EXPECT_EQ(well().text(), "");
}

TEST(ArgoCdTrouble, FailuresOfOneApplicationAreItsOwn) {
  auto trouble = well();
  for (int i = 0; i < 10; ++i) {
    trouble.failed("argocd/slow", kTimeout);
    trouble.failed("argocd/broken", kUnavailable);
  }
  EXPECT_EQ(trouble.text(), "");
}

TEST(ArgoCdTrouble, SeveralApplicationsThatFailWithNoAnswerBetweenAreTheServers) {
  auto trouble = well();
  trouble.failed("argocd/a", kTimeout);
  trouble.failed("argocd/b", kTimeout);
  trouble.answered();
  trouble.failed("argocd/c", kTimeout);
  EXPECT_EQ(trouble.text(), "");
  trouble.failed("argocd/d", kTimeout);
  trouble.failed("argocd/e", kUnavailable);
  EXPECT_EQ(trouble.text(), "repo-server away");
  trouble.failed("argocd/e", kTimeout);
  EXPECT_EQ(trouble.text(), "no answer");
  trouble.answered();
  EXPECT_EQ(trouble.text(), "");
}

TEST(ArgoCdTrouble, AServerThatCannotBeReachedIsInTroubleAtOnce) {
  auto trouble = well();
  trouble.failed("argocd/a", kRefused);
  EXPECT_EQ(trouble.text(), "connection refused");
}

TEST(ArgoCdTrouble, AnyFailureOfARequestAboutNoApplicationIsTheServers) {
  auto trouble = well();
  trouble.failed("", {.code = ErrorCode::not_found, .message = "404", .http_status = 404});
  EXPECT_EQ(trouble.text(), "404");
}

TEST(ArgoCdTrouble, AnErrorAboutAnApplicationIsAnAnswer) {
  EXPECT_FALSE(may_concern_server({.code = ErrorCode::not_found, .http_status = 404}));
  EXPECT_FALSE(may_concern_server({.code = ErrorCode::forbidden, .http_status = 403}));
  EXPECT_FALSE(may_concern_server({.code = ErrorCode::unavailable, .http_status = 500}));
  EXPECT_TRUE(may_concern_server(kUnavailable));
  EXPECT_TRUE(may_concern_server(kTimeout));
  EXPECT_TRUE(may_concern_server(kRefused));
}

}  // namespace
}  // namespace gitops::reporter
