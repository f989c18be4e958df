#include "event-reporter/argo/argocd_failure.hpp"

#include <gtest/gtest.h>

namespace gitops::reporter {
namespace {

const Error kTimeout{.code = ErrorCode::timeout, .message = "no answer"};
const Error kRefused{.code = ErrorCode::unavailable, .message = "connection refused"};
const Error kUnavailable{
    .code = ErrorCode::unavailable, .message = "repo-server away", .http_status = 503};

ArgoCdFailure well() {
  ArgoCdFailure failure;
  failure.answered();
  return failure;
}

TEST(ArgoCdFailure, BeforeTheFirstAnswerItIsNotKnownToBeWell) {
  EXPECT_NE(ArgoCdFailure().text(), "");
  EXPECT_EQ(well().text(), "");
}

TEST(ArgoCdFailure, FailuresOfOneApplicationAreItsOwn) {
  auto failure = well();
  for (int i = 0; i < 10; ++i) {
    failure.failed("argocd/slow", kTimeout);
    failure.failed("argocd/broken", kUnavailable);
  }
  EXPECT_EQ(failure.text(), "");
}

TEST(ArgoCdFailure, SeveralApplicationsThatFailWithNoAnswerBetweenAreTheServers) {
  auto failure = well();
  failure.failed("argocd/a", kTimeout);
  failure.failed("argocd/b", kTimeout);
  failure.answered();
  failure.failed("argocd/c", kTimeout);
  EXPECT_EQ(failure.text(), "");
  failure.failed("argocd/d", kTimeout);
  failure.failed("argocd/e", kUnavailable);
  EXPECT_EQ(failure.text(), "repo-server away");
  failure.failed("argocd/e", kTimeout);
  EXPECT_EQ(failure.text(), "no answer");
  failure.answered();
  EXPECT_EQ(failure.text(), "");
}

TEST(ArgoCdFailure, AServerThatCannotBeReachedHasFailedAtOnce) {
  auto failure = well();
  failure.failed("argocd/a", kRefused);
  EXPECT_EQ(failure.text(), "connection refused");
}

TEST(ArgoCdFailure, AnyFailureOfARequestAboutNoApplicationIsTheServers) {
  auto failure = well();
  failure.failed("", {.code = ErrorCode::not_found, .message = "404", .http_status = 404});
  EXPECT_EQ(failure.text(), "404");
}

TEST(ArgoCdFailure, AnErrorAboutAnApplicationIsAnAnswer) {
  EXPECT_FALSE(may_concern_server({.code = ErrorCode::not_found, .http_status = 404}));
  EXPECT_FALSE(may_concern_server({.code = ErrorCode::forbidden, .http_status = 403}));
  EXPECT_FALSE(may_concern_server({.code = ErrorCode::unavailable, .http_status = 500}));
  EXPECT_TRUE(may_concern_server(kUnavailable));
  EXPECT_TRUE(may_concern_server(kTimeout));
  EXPECT_TRUE(may_concern_server(kRefused));
}

}  // namespace
}  // namespace gitops::reporter
