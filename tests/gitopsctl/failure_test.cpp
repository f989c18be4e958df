#include "gitopsctl/failure.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/cli/command.hpp"

namespace gitops::ctl {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

http::Response json_response(int status, std::string body) {
  return {
      .status = status, .headers = {{"Content-Type", "application/json"}}, .body = std::move(body)};
}

Error error_of(int status, std::string body) {
  const auto data = graphql_data(json_response(status, std::move(body)));
  EXPECT_FALSE(data);
  return data ? Error{} : data.error();
}

struct Case {
  const char* what;
  Error error;
  int exit_code;
  Outcome outcome;
  const char* text;
};

TEST(Failure, EachKindHasItsExitCodeItsOutcomeAndItsWord) {
  const auto errors = [](const char* message, const char* extensions) {
    return std::string(R"({"data":null,"errors":[{"message":")") + message + R"(","extensions":)" +
           extensions + "}]}";
  };
  const std::vector<Case> cases = {
      {"bad key", error_of(401, R"({"message":"no"})"), cli::kRefused, Outcome::refused,
       "Error from server (Unauthorized): no"},
      {"forbidden", error_of(403, R"({"message":"no"})"), cli::kRefused, Outcome::refused,
       "Error from server (Forbidden): no"},
      {"the number of a public client", error_of(200, errors("Forbidden", "403")), cli::kRefused,
       Outcome::refused, "Error from server (Forbidden): Forbidden"},
      {"missing", error_of(200, errors("gone", R"({"statusCode":404})")), cli::kNotFound,
       Outcome::refused, "Error from server (NotFound): gone"},
      {"code alone", error_of(200, errors("gone", R"({"code":"NOT_FOUND_ERROR"})")), cli::kNotFound,
       Outcome::refused, "Error from server (NotFound): gone"},
      {"conflict", error_of(200, errors("auto-sync", R"({"statusCode":409})")), cli::kRefused,
       Outcome::refused, "Error from server (Conflict): auto-sync"},
      {"its own fault", error_of(200, errors("bug", R"({"statusCode":500})")), cli::kFailed,
       Outcome::failed, "Error from server (InternalError): bug"},
      {"no code", error_of(200, R"({"errors":[{"message":"so"}]})"), cli::kFailed, Outcome::failed,
       "Error from server (Unexpected): so"},
      {"a code of nobody", error_of(200, errors("so", R"({"code":"INTERNAL_SERVER_ERROR"})")),
       cli::kFailed, Outcome::failed, "Error from server (Unexpected): so"},
      {"busy", error_of(503, R"({"message":"later"})"), cli::kNotKnown, Outcome::unknown,
       "Error from server (ServiceUnavailable): later"},
      {"Argo CD is away",
       error_of(200, errors("no answer", R"({"code":"ARGO_NOT_AVAILABLE","statusCode":503})")),
       cli::kNotKnown, Outcome::unknown, "Error from server (ServiceUnavailable): no answer"},
      {"nobody may act",
       error_of(200, errors("the runtime is not configured for an Argo CD; set it",
                            R"({"code":"ARGO_NOT_AVAILABLE","statusCode":503})")),
       cli::kRefused, Outcome::refused,
       "Error from server (NotSupported): the runtime is not configured for an Argo CD"},
      {"the account of the runtime",
       error_of(200, errors("Argo CD does not let the runtime do this; see the log",
                            R"({"code":"ARGO_NOT_AVAILABLE","statusCode":503})")),
       cli::kRefused, Outcome::refused,
       "Error from server (NotSupported): Argo CD does not let the runtime do this"},
      {"an answer without end",
       {.code = ErrorCode::too_large, .message = "larger than 16 bytes"},
       cli::kNotKnown,
       Outcome::unknown,
       "Error from server (RequestEntityTooLarge): larger than 16 bytes"},
      {"a gateway", error_of(504, ""), cli::kNotKnown, Outcome::unknown,
       "Error from server (ServiceUnavailable): 504 Gateway Timeout"},
      {"a page", error_of(200, "<html>hello</html>"), cli::kNotKnown, Outcome::unknown,
       "Unable to connect to the server: "},
      {"no data", error_of(200, "{}"), cli::kNotKnown, Outcome::unknown,
       "Unable to connect to the server: "},
      {"another server", error_of(404, "<html></html>"), cli::kNotKnown, Outcome::unknown,
       "Error from server (Unexpected): 404 Not Found"},
      {"away",
       {.code = ErrorCode::unavailable, .message = "refused"},
       cli::kNotKnown,
       Outcome::unknown,
       "Unable to connect to the server: refused"},
      {"slow",
       {.code = ErrorCode::timeout, .message = "slow"},
       cli::kNotKnown,
       Outcome::unknown,
       "Unable to connect to the server: slow"},
      {"usage",
       {.code = ErrorCode::invalid_argument, .message = "which", .subcode = kUsage},
       cli::kWrongUsage,
       Outcome::refused,
       "gitopsctl: which"},
  };
  for (const Case& one : cases) {
    EXPECT_EQ(exit_code_of(one.error), one.exit_code) << one.what;
    EXPECT_EQ(outcome_of(one.error), one.outcome) << one.what;
    EXPECT_THAT(failure_text(one.error), StartsWith(one.text)) << one.what;
  }
}

TEST(Failure, MessagesOfServersAreOneLineWithoutEscapes) {
  const auto text = failure_text(error_of(403, R"({"message":"a\u001b[31m\nb"})"));
  EXPECT_THAT(text, StartsWith("Error from server (Forbidden): a [31m b\nhint: "));
}

TEST(Failure, AnUnknownOutcomeSaysWhereToLook) {
  const auto text =
      outcome_text({.code = ErrorCode::timeout, .message = "slow"}, "gitopsctl app get a");
  EXPECT_THAT(text, StartsWith("Unknown (Timeout): slow. It may have been done.\n"));
  EXPECT_THAT(text, HasSubstr("gitopsctl app get a"));
}

TEST(Failure, WhatPassesByItselfIsAskedAgain) {
  const std::vector<Error> passing = {
      {.code = ErrorCode::unavailable, .message = "refused"},
      {.code = ErrorCode::timeout, .message = "slow"},
      {.code = ErrorCode::tls, .message = "the peer closed the connection during the handshake"},
      error_of(429, R"({"message":"too many streams of this user"})"),
      error_of(503, R"({"message":"it starts"})")};
  for (const Error& error : passing) EXPECT_TRUE(is_away(error)) << error.message;
  const std::vector<Error> lasting = {error_of(401, R"({"message":"no"})"),
                                      error_of(500, R"({"message":"bug"})"),
                                      error_of(200, "<html>")};
  for (const Error& error : lasting) EXPECT_FALSE(is_away(error)) << error.message;
}

// Logs of the servers name the request by its id.
TEST(Failure, NamesTheRequest) {
  auto response = json_response(403, R"({"message":"no"})");
  response.headers.add("X-Request-Id", "ab12-7");
  EXPECT_EQ(graphql_data(response).error().message, "no (request ID ab12-7)");
  EXPECT_EQ(rest_value(response).error().message, "no (request ID ab12-7)");
  response.headers.set("X-Request-Id", "a b\033[2J");
  EXPECT_EQ(rest_value(response).error().message, "no");
}

TEST(Failure, DataIsTheAnswer) {
  EXPECT_EQ(graphql_data(json_response(200, R"({"data":{"me":null}})")).value()["me"], nullptr);
  EXPECT_TRUE(rest_value({.status = 204}).value().is_null());
  EXPECT_EQ(rest_value(json_response(200, "[1]")).value()[0], 1);
}

}  // namespace
}  // namespace gitops::ctl
