#include "k8s-client/status.hpp"

#include <gmock/gmock.h>

#include "test_http/responses.hpp"

namespace gitops::k8s {
namespace {

using namespace std::chrono_literals;
using test::make_response;
using ::testing::HasSubstr;
using ::testing::Not;

// The answer of a real API server to a list of a version that it does not have yet.
constexpr std::string_view kTooLarge =
    R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",
        "message":"Timeout: Too large resource version: 9999, current: 12","reason":"Timeout",
        "details":{"causes":[{"reason":"ResourceVersionTooLarge",
                              "message":"Too large resource version"}],
                   "retryAfterSeconds":1},"code":504})";

TEST(Status, IsReadWhole) {
  const Status status = parse_status(
      R"({"code":422,"reason":"Invalid","message":"m","details":{"name":"web","group":"apps",
          "kind":"Deployment","causes":[{"reason":"FieldValueInvalid","field":"spec.replicas",
          "message":"must be positive"},{"message":"second"}],"retryAfterSeconds":7}})");
  EXPECT_EQ(status.code, 422);
  EXPECT_EQ(status.reason, "Invalid");
  EXPECT_EQ(status.message, "m");
  EXPECT_EQ(status.name, "web");
  EXPECT_EQ(status.group, "apps");
  EXPECT_EQ(status.kind, "Deployment");
  ASSERT_EQ(status.causes.size(), 2U);
  EXPECT_EQ(status.causes[0].reason, "FieldValueInvalid");
  EXPECT_EQ(status.causes[0].field, "spec.replicas");
  EXPECT_EQ(status.causes[0].message, "must be positive");
  EXPECT_EQ(status.causes[1].message, "second");
  EXPECT_EQ(status.retry_after, 7s);
}

TEST(Status, IsEmptyWhereTheTextIsNot) {
  for (const std::string& text :
       {std::string(), std::string("<html>"), std::string("[1]"),
        std::string(R"({"code":"x","reason":5,"message":[],"details":{"causes":7}})"),
        std::string(R"({"code":99999,"details":{"retryAfterSeconds":-5}})"),
        std::string(R"({"details":[],"code":-1})"), std::string(100'000, '[')}) {
    const Status status = parse_status(text);
    EXPECT_EQ(status.code, 0) << text.substr(0, 50);
    EXPECT_EQ(status.reason, "");
    EXPECT_EQ(status.message, "");
    EXPECT_TRUE(status.causes.empty());
    EXPECT_EQ(status.retry_after, 0s);
  }
}

TEST(Status, BoundsWhatAServerMaySay) {
  std::string causes = "{}";
  for (int i = 0; i < 1000; ++i) causes += ",{}";
  const Status status = parse_status(R"({"details":{"retryAfterSeconds":99999999999999999999,)"
                                     R"("causes":[)" +
                                     causes + "]}}");
  EXPECT_LE(status.causes.size(), 50U);
  EXPECT_EQ(parse_status(R"({"details":{"retryAfterSeconds":18446744073709551615}})").retry_after,
            5min);
}

TEST(ErrorOf, TellsReasonsOfOneCodeApart) {
  const Error exists = error_of(
      make_response(409, R"({"kind":"Status","reason":"AlreadyExists","message":"x","code":409})"),
      "a");
  const Error stale = error_of(
      make_response(409, R"({"kind":"Status","reason":"Conflict","message":"x","code":409})"), "a");
  EXPECT_EQ(exists.code, ErrorCode::conflict);
  EXPECT_EQ(stale.code, ErrorCode::conflict);
  EXPECT_EQ(exists.reason, reasons::kAlreadyExists);
  EXPECT_EQ(stale.reason, reasons::kConflict);
}

TEST(ErrorOf, GivesTheSameForAnAnswerAndForAnErrorEvent) {
  for (const Error& error : {error_of(make_response(504, std::string(kTooLarge)), "watch x"),
                             error_of(parse_status(kTooLarge))}) {
    EXPECT_EQ(error.code, ErrorCode::unavailable);
    EXPECT_EQ(error.http_status, 504);
    EXPECT_EQ(error.reason, "Timeout");
    EXPECT_EQ(error.cause, causes::kResourceVersionTooLarge);
    EXPECT_EQ(error.retry_after, 1s);
  }
}

TEST(ErrorOf, CopesWithBodiesThatAreNoStatus) {
  for (const std::string& body :
       {std::string(), std::string("<html>"), std::string("[1]"), std::string(R"({"kind":5})"),
        std::string(R"({"kind":"Status","message":{},"reason":[],"details":7})"),
        std::string(100'000, '[')}) {
    const Error error = error_of(make_response(502, body), "get x");
    EXPECT_EQ(error.message, "get x: 502 Bad Gateway") << body.substr(0, 50);
    EXPECT_EQ(error.code, ErrorCode::unavailable);
  }
  const Error error =
      error_of(make_response(500, R"({"kind":"Status","reason":"InternalError","message":")" +
                                      std::string(9000, 'x') + "\"}"),
               "x");
  EXPECT_LT(error.message.size(), 600U);
}

TEST(ErrorOf, BelievesTheStatusLineMoreThanTheBody) {
  const Error error = error_of(make_response(404, R"({"kind":"Status","code":500})"), "get x");
  EXPECT_EQ(error.code, ErrorCode::not_found);
  EXPECT_EQ(error.http_status, 404);
}

TEST(ErrorOf, TakesTheWaitOfTheStatusOrElseOfTheHeader) {
  http::Response response =
      make_response(429, R"({"kind":"Status","details":{"retryAfterSeconds":3}})");
  response.headers.set("Retry-After", "7");
  EXPECT_EQ(error_of(response, "x").retry_after, 3s);
  response.body.clear();
  EXPECT_EQ(error_of(response, "x").retry_after, 7s);
}

TEST(ErrorOf, AC28_RepeatsNothingThatMayBeOfASecret) {
  const Error error = error_of(
      make_response(422, R"({"kind":"Status","reason":"Invalid","message":"data[token]: CANARY"})"),
      "update secrets a/b", Words::hide);
  EXPECT_EQ(error.message, "update secrets a/b: 422 Invalid");
  EXPECT_THAT(error.message, Not(HasSubstr("CANARY")));
}

}  // namespace
}  // namespace gitops::k8s
