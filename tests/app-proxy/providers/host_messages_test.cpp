// What is sent to a Git host, and what its responses mean, without a connection.
#include "app-proxy/providers/host_messages.hpp"

#include <gmock/gmock.h>

namespace gitops::app_proxy {
namespace {

using namespace std::chrono_literals;
using CacheChange = HostOutcome::CacheChange;
using Kind = HostOutcome::Kind;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kToken = "ghp_canary0123456789";
const ApiRoot kRoot = *make_api_root("GITHUB", "https://git.example.test/api/v3");
const GitAccess kAccess{Secret(kToken)};

HostCall call(std::string method = "GET") {
  return {.root = kRoot,
          .style = AuthStyle::bearer,
          .access = kAccess,
          .request = {.method = std::move(method), .path = "/user?a=1", .what = "user"}};
}

// A call for a page with as many repositories as the body has characters.
HostCall page_call() {
  auto page = call();
  page.read = [](std::string_view body, const http::Headers&) -> Result<HostPage> {
    if (body == "broken") return fail(ErrorCode::invalid_data, "no JSON");
    HostPage out;
    out.repositories.resize(body.size());
    return out;
  };
  return page;
}

HostOutcome outcome(const HostCall& asked, const http::Response& response) {
  return outcome_of(asked, response, false, false);
}

std::string header(const http::Request& request, std::string_view name) {
  return std::string(request.headers.find(name).value_or("(none)"));
}

// Requests.

TEST(HostRequests, GoBelowTheApiRootWithTheTokenOfTheCaller) {
  const auto request = request_of(call(), "");
  EXPECT_EQ(request.method, "GET");
  EXPECT_EQ(request.target, "/api/v3/user?a=1");
  EXPECT_EQ(header(request, "Authorization"), std::string("Bearer ") + kToken);
  EXPECT_EQ(header(request, "Accept"), "application/json");
  EXPECT_EQ(header(request, "Content-Type"), "(none)");
  EXPECT_EQ(header(request, "If-None-Match"), "(none)");
}

TEST(HostRequests, AskWhetherAKeptResponseHolds) {
  EXPECT_EQ(header(request_of(call(), "\"v1\""), "If-None-Match"), "\"v1\"");
}

TEST(HostRequests, NameTheTypeOfABodyAndAnotherRoot) {
  auto post = call("POST");
  post.request.body = "{}";
  post.request.other_root = "/rest/keys";
  const auto request = request_of(post, "");
  EXPECT_EQ(request.target, "/rest/keys/user?a=1");
  EXPECT_EQ(request.body, "{}");
  EXPECT_EQ(header(request, "Content-Type"), "application/json");
}

TEST(HostRequests, CarryTheTokenInTheStyleOfTheHost) {
  const GitAccess with_name{Secret("t"), "dana"};
  const GitAccess without{Secret("t")};
  const auto authorization = [](AuthStyle style, const GitAccess& access) {
    const HostCall asked{kRoot, style, access, {.path = "/user", .what = "user"}};
    return header(request_of(asked, ""), "Authorization");
  };
  EXPECT_EQ(authorization(AuthStyle::token, with_name), "token t");
  EXPECT_EQ(authorization(AuthStyle::bearer, with_name), "Bearer t");
  EXPECT_EQ(authorization(AuthStyle::basic_or_bearer, with_name), "Basic ZGFuYTp0");
  EXPECT_EQ(authorization(AuthStyle::basic_or_bearer, without), "Bearer t");
}

TEST(HostRequests, ATokenThatCannotStandInAHeaderIsRefused) {
  EXPECT_FALSE(unusable_access(call()));
  for (const auto& access : {GitAccess{Secret("")}, GitAccess{Secret("ghp_canary\r\nX-Evil: 1")},
                             GitAccess{Secret(kToken), "user:name"}}) {
    const HostCall asked{kRoot, AuthStyle::bearer, access, {.path = "/user", .what = "user"}};
    const auto error = unusable_access(asked);
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code, ErrorCode::unauthenticated);
    EXPECT_EQ(error->subcode, git_errors::kTokenRejected);
    EXPECT_THAT(error->message, Not(HasSubstr("canary")));
  }
}

TEST(HostRequests, AnOversizedResponseIsToldFromAHostThatDoesNotRespond) {
  const auto large = no_response(call(), {.code = ErrorCode::too_large, .message = "x"});
  EXPECT_EQ(large.code, ErrorCode::too_large);
  EXPECT_EQ(large.subcode, git_errors::kBadAnswer);
  const auto away = no_response(call(), {.code = ErrorCode::unavailable, .message = "x"});
  EXPECT_EQ(away.code, ErrorCode::unavailable);
  EXPECT_EQ(away.subcode, git_errors::kUnreachable);
  EXPECT_THAT(away.message, HasSubstr("proxy and CA settings"));
}

// Redirects.

http::Response redirect(int status, std::string location = "/moved") {
  return {.status = status, .headers = {{"Location", std::move(location)}}};
}

TEST(HostRedirects, AReadIsRepeatedAtTheTargetOnTheSameOrigin) {
  for (const int status : {301, 302, 303, 307, 308}) {
    const auto there = redirect_of(call(), redirect(status), 0);
    EXPECT_EQ(there.kind, Redirect::Kind::follow) << status;
    EXPECT_EQ(there.target, "/moved") << status;
  }
  EXPECT_EQ(redirect_of(call(), redirect(301, "https://git.example.test/x?y=1"), 0).target,
            "/x?y=1");
  EXPECT_EQ(redirect_of(call(), redirect(301, "https://git.example.test"), 0).target, "/");
}

TEST(HostRedirects, AChangeIsRepeatedOnlyWhereTheHostKeepsTheMethod) {
  for (const int status : {301, 302, 303}) {
    EXPECT_EQ(redirect_of(call("POST"), redirect(status), 0).kind, Redirect::Kind::refuse);
    EXPECT_EQ(redirect_of(call("HEAD"), redirect(status), 0).kind, Redirect::Kind::follow);
  }
  for (const int status : {307, 308}) {
    EXPECT_EQ(redirect_of(call("POST"), redirect(status), 0).kind, Redirect::Kind::follow);
  }
}

TEST(HostRedirects, TheFourthInARowIsRefused) {
  EXPECT_EQ(redirect_of(call(), redirect(302), 2).kind, Redirect::Kind::follow);
  EXPECT_EQ(redirect_of(call(), redirect(302), 3).kind, Redirect::Kind::refuse);
}

// [AC-39]
TEST(HostRedirects, AC39_AnotherOriginIsRefused) {
  for (const char* location :
       {"https://evil.example/user", "//evil.example/user", "http://git.example.test/user",
        "https://git.example.test:8443/user", "https://x@git.example.test/user",
        "https:/\\evil.example", "javascript:alert(1)", "/a b", "/a#b", "/a\\b", ""}) {
    EXPECT_EQ(redirect_of(call(), redirect(301, location), 0).kind, Redirect::Kind::refuse)
        << location;
  }
  EXPECT_EQ(redirect_of(call(), {.status = 301}, 0).kind, Redirect::Kind::refuse);
}

TEST(HostRedirects, AStatusThatTheCallerReadsIsNone) {
  auto probe = call();
  probe.request.also = {302};
  EXPECT_EQ(redirect_of(probe, redirect(302), 0).kind, Redirect::Kind::none);
  for (const int status : {200, 304, 404}) {
    EXPECT_EQ(redirect_of(call(), redirect(status), 0).kind, Redirect::Kind::none) << status;
  }
}

// Responses.

TEST(HostOutcomes, ASuccessfulReadIsUsableAndKept) {
  const auto read = outcome(call(), {.status = 200, .body = "{}"});
  EXPECT_EQ(read.kind, Kind::usable);
  EXPECT_EQ(read.cache, CacheChange::keep);
  EXPECT_EQ(read.page, nullptr);
}

TEST(HostOutcomes, ASuccessfulChangeEndsTheFreshnessOfWhatIsKept) {
  for (const char* method : {"POST", "PUT", "PATCH", "DELETE"}) {
    EXPECT_EQ(outcome(call(method), {.status = 201}).kind, Kind::usable);
    EXPECT_EQ(outcome(call(method), {.status = 201}).cache, CacheChange::expire) << method;
  }
  EXPECT_EQ(outcome(call("HEAD"), {.status = 200}).cache, CacheChange::none);
}

TEST(HostOutcomes, APageIsReadOnce) {
  const auto read = outcome(page_call(), {.status = 200, .body = "xx"});
  EXPECT_EQ(read.kind, Kind::usable);
  EXPECT_EQ(read.cache, CacheChange::keep);
  ASSERT_NE(read.page, nullptr);
  EXPECT_EQ(read.page->repositories.size(), 2U);
}

TEST(HostOutcomes, APageThatCannotBeReadIsAnErrorAndNotKept) {
  const auto broken = outcome(page_call(), {.status = 200, .body = "broken"});
  EXPECT_EQ(broken.kind, Kind::unreadable);
  EXPECT_EQ(broken.cache, CacheChange::none);
  EXPECT_EQ(broken.error.code, ErrorCode::invalid_data);
}

// A proxy or a login page in between answers like this.
TEST(HostOutcomes, AWebPageIsNeitherAnAnswerNorAFile) {
  const http::Response page{.status = 200,
                            .headers = {{"Content-Type", "text/html; charset=utf-8"}},
                            .body = "<html>Sign in</html>"};
  auto file = call();
  file.request.accept = "*/*";
  file.request.path = "/raw/apps/values.yaml?at=main";
  for (const auto& asked : {call(), call("POST"), page_call(), file}) {
    const auto strange = outcome(asked, page);
    EXPECT_EQ(strange.kind, Kind::unreadable) << asked.request.method << asked.request.path;
    EXPECT_EQ(strange.cache, CacheChange::none);
    EXPECT_EQ(strange.error.subcode, git_errors::kBadAnswer);
  }
  file.request.path = "/raw/docs/index.html?at=main";
  EXPECT_EQ(outcome(file, page).kind, Kind::usable);
}

TEST(HostOutcomes, AWebPageRefusesNothing) {
  const http::Headers html{{"Content-Type", "text/html; charset=utf-8"}};
  auto probe = call();
  probe.request.also = {403, 404};
  for (const int status : {401, 403, 404, 410}) {
    for (const auto& asked : {call(), call("POST"), page_call(), probe}) {
      const auto strange =
          outcome(asked, {.status = status, .headers = html, .body = "\n<html>No</html>"});
      EXPECT_EQ(strange.kind, Kind::refused) << status;
      EXPECT_EQ(strange.cache, CacheChange::none) << "the token and the object may be good";
      EXPECT_EQ(strange.error.code, ErrorCode::unavailable);
      EXPECT_EQ(strange.error.subcode, git_errors::kUnreachable);
      EXPECT_THAT(strange.error.message, HasSubstr("with a web page"));
    }
  }
  // As Bitbucket Cloud refuses a token.
  const auto rejected = outcome(call(), {.status = 401, .headers = html, .body = ""});
  EXPECT_EQ(rejected.error.subcode, git_errors::kTokenRejected);
}

TEST(HostOutcomes, NotModifiedStandsForTheKeptResponse) {
  const auto same = outcome_of(call(), {.status = 304}, false, true);
  EXPECT_EQ(same.kind, Kind::not_modified);
  EXPECT_EQ(same.cache, CacheChange::renew);
}

TEST(HostOutcomes, NotModifiedWithoutAKeptResponseIsAnError) {
  const auto strange = outcome_of(call(), {.status = 304}, false, false);
  EXPECT_EQ(strange.kind, Kind::unreadable);
  EXPECT_EQ(strange.error.subcode, git_errors::kBadAnswer);
}

TEST(HostOutcomes, AThrottledTokenChangesNothingThatIsKept) {
  for (const int status : {429, 403}) {
    const auto limited = outcome_of(call(), {.status = status}, true, true);
    EXPECT_EQ(limited.kind, Kind::throttled) << status;
    EXPECT_EQ(limited.cache, CacheChange::none) << status;
  }
}

TEST(HostOutcomes, ARejectedTokenLosesAllThatItWasShown) {
  const auto rejected = outcome(call(), {.status = 401});
  EXPECT_EQ(rejected.kind, Kind::refused);
  EXPECT_EQ(rejected.cache, CacheChange::forget_token);
  EXPECT_EQ(rejected.error.subcode, git_errors::kTokenRejected);
}

TEST(HostOutcomes, AnObjectThatIsHiddenOrGoneIsForgotten) {
  EXPECT_EQ(outcome(call(), {.status = 403}).cache, CacheChange::forget_path);
  EXPECT_EQ(outcome(call(), {.status = 403}).error.subcode, git_errors::kTokenLacksRight);
  EXPECT_EQ(outcome(call(), {.status = 404}).cache, CacheChange::forget_path);
  EXPECT_EQ(outcome(call(), {.status = 404}).error.subcode, git_errors::kNotFound);
}

TEST(HostOutcomes, AnotherErrorOfTheHostKeepsWhatIsKnown) {
  const auto broken = outcome(call(), {.status = 502});
  EXPECT_EQ(broken.kind, Kind::refused);
  EXPECT_EQ(broken.cache, CacheChange::none);
  EXPECT_EQ(broken.error.subcode, git_errors::kUnreachable);
  EXPECT_EQ(outcome(call("POST"), {.status = 422}).error.subcode, git_errors::kRefused);
}

TEST(HostOutcomes, AStatusThatTheCallerReadsIsUsableAndNotKept) {
  auto probe = call();
  probe.request.also = {404};
  const auto read = outcome(probe, {.status = 404});
  EXPECT_EQ(read.kind, Kind::usable);
  EXPECT_EQ(read.cache, CacheChange::none);
}

// [AC-28]
TEST(HostOutcomes, AC28_NoErrorHoldsTheToken) {
  for (const int status : {401, 403, 404, 409, 422, 500}) {
    const auto refused =
        outcome(call(), {.status = status, .body = R"({"message":"ghp_canary0123456789 is bad"})"});
    EXPECT_THAT(refused.error.message, Not(HasSubstr("canary"))) << status;
  }
}

// What is kept.

TEST(KeptResponses, HaveTheirFreshnessAndTheFieldsThatProvidersRead) {
  const Clock::time_point now{1h};
  const auto entry = entry_of({.status = 200,
                               .headers = {{"ETag", "\"v1\""},
                                           {"Link", "<x>; rel=next"},
                                           {"Set-Cookie", "a=b"},
                                           {"Cache-Control", "private, max-age=60"}},
                               .body = "{}"},
                              nullptr, now);
  EXPECT_EQ(entry.etag, "\"v1\"");
  EXPECT_EQ(entry.body, "{}");
  EXPECT_EQ(entry.headers.size(), 1U);
  EXPECT_EQ(entry.headers.find("Link"), "<x>; rel=next");
  EXPECT_EQ(entry.fresh_until, now + 60s);
}

TEST(KeptResponses, APageTakesThePlaceOfItsBody) {
  const auto page = std::make_shared<const HostPage>();
  const auto entry = entry_of({.status = 200, .body = "xx"}, page, Clock::time_point{1h});
  EXPECT_EQ(entry.body, "");
  EXPECT_EQ(entry.page, page);
  EXPECT_EQ(entry.etag, "");
}

}  // namespace
}  // namespace gitops::app_proxy
