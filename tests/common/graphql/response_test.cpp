#include "common/graphql/response.hpp"

#include <gtest/gtest.h>

namespace gitops::graphql {
namespace {

TEST(PresentedErrors, HaveACodeAndAStatus) {
  const auto shown = present({.code = ErrorCode::not_found, .message = "no such thing"});
  EXPECT_EQ(shown.message, "no such thing");
  EXPECT_EQ(shown.extensions, R"({"code":"NOT_FOUND","statusCode":404})");
}

TEST(PresentedErrors, AProgramsOwnCodeComesFirst) {
  const auto shown = present(
      {.code = ErrorCode::not_found, .message = "none", .subcode = "GIT_INTEGRATION_NOT_FOUND"});
  EXPECT_EQ(shown.extensions, R"({"code":"GIT_INTEGRATION_NOT_FOUND","statusCode":404})");
  const auto forbidden = present(
      {.code = ErrorCode::forbidden, .message = "lacks", .subcode = "GIT_TOKEN_LACKS_RIGHT"});
  EXPECT_EQ(forbidden.message, "lacks");
  EXPECT_EQ(forbidden.extensions, R"({"code":"GIT_TOKEN_LACKS_RIGHT","statusCode":403})");
}

TEST(PresentedErrors, WordsOfPeersAreNoCodes) {
  for (const auto* reason : {"AlreadyExists", "NotFound", "CONFLICT", "A b_C", "", "A_CODE"}) {
    const auto shown = present({.code = ErrorCode::conflict, .message = "m", .reason = reason});
    EXPECT_EQ(shown.extensions, R"({"code":"CONFLICT","statusCode":409})") << reason;
  }
}

TEST(PresentedErrors, SubcodesForTheProgramAloneAreNotShown) {
  for (const auto* subcode : {"BrokenClone", "NothingToCommit", "CONFLICT", "A b_C", ""}) {
    const auto shown = present({.code = ErrorCode::conflict, .message = "m", .subcode = subcode});
    EXPECT_EQ(shown.extensions, R"({"code":"CONFLICT","statusCode":409})") << subcode;
  }
}

TEST(PresentedErrors, ForbiddenIsOneWordAndAnInternalErrorSaysNothing) {
  const auto forbidden = present({.code = ErrorCode::forbidden, .message = "because"});
  EXPECT_EQ(forbidden.message, "Forbidden");
  EXPECT_EQ(forbidden.extensions, "403");
  const auto internal =
      present({.code = ErrorCode::internal, .message = "secret", .subcode = "SOME_CODE"});
  EXPECT_EQ(internal.message, "Internal server error");
  EXPECT_EQ(internal.extensions, R"({"code":"INTERNAL","statusCode":500})");
}

}  // namespace
}  // namespace gitops::graphql
