#include "app-proxy/integrations/oauth.hpp"

#include <chrono>
#include <initializer_list>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "common/core/encoding.hpp"
#include "test_http/responses.hpp"

namespace gitops::app_proxy::oauth {
namespace {

using Json = nlohmann::json;
using namespace std::chrono_literals;
using test::json_response;
using test::make_response;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string app_secret(std::initializer_list<std::pair<const char*, const char*>> values) {
  Json data = Json::object();
  for (const auto& [key, value] : values) data[key] = base64_encode(value);
  return Json{{"metadata", {{"name", "login"}}}, {"data", data}}.dump();
}

OauthApp app_at(const char* url) {
  return read_app(
             app_secret({{"url", url}, {"clientId", "id 1"}, {"clientSecret", "canary-secret"}}),
             PlainHttp::refused)
      .value_or(OauthApp());
}

OauthApp plain_app(const char* url) {
  return {.url = http::parse_url(url).value(),
          .client_id = "id-1",
          .client_secret = Secret("canary secret")};
}

TEST(OauthApp, IsReadFromItsSecret) {
  const auto app = read_app(app_secret({{"appId", "7"},
                                        {"clientId", " id-1\n"},
                                        {"clientSecret", "canary-secret\n"},
                                        {"url", "https://git.example.test/team/\n"}}),
                            PlainHttp::refused);
  ASSERT_TRUE(app);
  EXPECT_EQ(app->url.to_string(), "https://git.example.test/team");
  EXPECT_EQ(app->client_id, "id-1");
  EXPECT_EQ(app->client_secret.reveal(), "canary-secret");
}

TEST(OauthApp, WhatIsNoneIsRefusedWithoutQuotingIt) {
  for (const char* url :
       {"", "git.example.test", "http://git.example.test", "ftp://git.example.test",
        "https://canary@git.example.test", "https://git.example.test?a=canary",
        "https://git.example.test/a/../b", "https://git.example.test/%2e"}) {
    const auto app =
        read_app(app_secret({{"url", url}, {"clientId", "i"}, {"clientSecret", "canary"}}),
                 PlainHttp::refused);
    ASSERT_FALSE(app) << url;
    EXPECT_THAT(app.error().message, AllOf(HasSubstr("Secret login"), Not(HasSubstr("canary"))));
  }
  EXPECT_FALSE(
      read_app(app_secret({{"url", "https://a.test"}, {"clientId", "i"}}), PlainHttp::refused));
  EXPECT_FALSE(
      read_app(app_secret({{"url", "https://a.test"}, {"clientSecret", "s"}}), PlainHttp::refused));
  EXPECT_FALSE(
      read_app(app_secret({{"url", "https://a.test"}, {"clientId", "a b"}, {"clientSecret", "s"}}),
               PlainHttp::refused));
  EXPECT_FALSE(read_app("no JSON", PlainHttp::refused));
  EXPECT_TRUE(
      read_app(app_secret({{"url", "http://a.test"}, {"clientId", "i"}, {"clientSecret", "s"}}),
               PlainHttp::insecure_allowed));
}

TEST(OauthApp, IsForTheHostOfItsPages) {
  const auto fits = [](const char* app, const char* provider, const char* api) {
    return is_for(plain_app(app), make_api_root(provider, api).value());
  };
  EXPECT_TRUE(fits("https://github.com", "github", ""));
  EXPECT_TRUE(fits("https://acme.ghe.com", "github", "https://acme.ghe.com"));
  EXPECT_TRUE(fits("https://ghe.example.test", "github", "https://ghe.example.test"));
  EXPECT_TRUE(fits("https://gitlab.com", "gitlab", ""));
  EXPECT_TRUE(fits("https://x.test/gitlab", "gitlab", "https://x.test/gitlab/api/v4"));
  EXPECT_TRUE(
      fits("https://x.test:7990/bb", "bitbucket-server", "https://x.test:7990/bb/rest/api/1.0"));
  EXPECT_TRUE(fits("https://tea.example.test", "gitea", "https://tea.example.test"));
  EXPECT_FALSE(fits("https://github.com", "gitlab", ""));
  EXPECT_FALSE(fits("https://github.com:444", "github", ""));
  EXPECT_FALSE(fits("https://github.com/evil", "github", ""));
  EXPECT_FALSE(fits("https://x.test/git", "gitlab", "https://x.test/gitlab/api/v4"));
  EXPECT_FALSE(fits("http://gitlab.com:443", "gitlab", ""));
  EXPECT_FALSE(fits("https://gitlab.com.evil.test", "gitlab", ""));
}

TEST(OauthApp, ProvidersHaveTheWordsOfTheirPaths) {
  for (const auto kind : {ProviderKind::github, ProviderKind::gitlab,
                          ProviderKind::bitbucket_server, ProviderKind::gitea}) {
    EXPECT_EQ(provider_of(word_of(kind)), kind);
  }
  for (const char* word : {"", "bitbucket", "GITHUB", "github/", "../github"}) {
    EXPECT_FALSE(provider_of(word)) << word;
  }
}

TEST(Oauth, EachProviderIsAskedAtItsAddresses) {
  const struct {
    ProviderKind kind;
    const char* authorize;
    const char* scope;
    const char* token;
  } cases[] = {
      {ProviderKind::github, "/login/oauth/authorize", "repo", "/login/oauth/access_token"},
      {ProviderKind::gitlab, "/oauth/authorize", "api", "/oauth/token"},
      {ProviderKind::bitbucket_server, "/rest/oauth2/latest/authorize", "REPO_WRITE",
       "/rest/oauth2/latest/token"},
      {ProviderKind::gitea, "/login/oauth/authorize",
       "write%3Arepository%20write%3Auser%20read%3Aorganization", "/login/oauth/access_token"},
  };
  const std::string verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
  for (const auto& [kind, authorize, scope, token] : cases) {
    const auto app = plain_app("https://git.example.test:8443/team");
    EXPECT_EQ(
        authorize_url(kind, app, "https://r.test/cb", "the-state", verifier),
        "https://git.example.test:8443/team" + std::string(authorize) +
            "?client_id=id-1&response_type=code&redirect_uri=https%3A%2F%2Fr.test%2Fcb&scope=" +
            scope +
            "&state=the-state"
            "&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
            "&code_challenge_method=S256");
    const auto request = code_request(kind, app, "c&d", "https://r.test/cb", verifier);
    EXPECT_EQ(request.method, "POST");
    EXPECT_EQ(request.target, "/team" + std::string(token));
    EXPECT_EQ(request.headers.find("Accept"), "application/json");
    EXPECT_EQ(request.headers.find("Content-Type"), "application/x-www-form-urlencoded");
    EXPECT_EQ(request.body,
              "grant_type=authorization_code&client_id=id-1&client_secret=canary%20secret"
              "&code=c%26d&redirect_uri=https%3A%2F%2Fr.test%2Fcb&code_verifier=" +
                  verifier);
    const auto refresh = refresh_request(kind, app, Secret("r/1"), "https://r.test/cb");
    EXPECT_EQ(refresh.target, request.target);
    EXPECT_EQ(refresh.body,
              "grant_type=refresh_token&client_id=id-1&client_secret=canary%20secret"
              "&refresh_token=r%2F1&redirect_uri=https%3A%2F%2Fr.test%2Fcb");
    EXPECT_THAT(refresh_request(kind, app, Secret("r"), "").body, Not(HasSubstr("redirect_uri")));
  }
  EXPECT_TRUE(app_at("https://a.test").client_id.empty()) << "a client id has no blanks";
}

TEST(Oauth, VerifiersAreLongAndNeverTheSame) {
  const auto one = new_verifier();
  EXPECT_EQ(one.size(), 43U);
  EXPECT_NE(one, new_verifier());
  EXPECT_EQ(
      one.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"),
      std::string::npos);
}

TEST(Oauth, TokensAreReadFromAnAnswer) {
  const auto github = read_grant(
      ProviderKind::github,
      make_response(200, R"({"access_token":"gho_1","token_type":"bearer","scope":"repo"})",
                    {{"Content-Type", "application/json; charset=utf-8"}}));
  ASSERT_TRUE(github);
  EXPECT_EQ(github->access_token.reveal(), "gho_1");
  EXPECT_TRUE(github->refresh_token.empty());
  EXPECT_EQ(github->lifetime, 0s);
  const auto gitlab = read_grant(
      ProviderKind::github,
      json_response(
          200,
          R"({"access_token":"a","token_type":"Bearer","expires_in":7200,"refresh_token":"r"})"));
  ASSERT_TRUE(gitlab);
  EXPECT_EQ(gitlab->refresh_token.reveal(), "r");
  EXPECT_EQ(gitlab->lifetime, 7200s);
  EXPECT_EQ(read_grant(ProviderKind::github,
                       json_response(200, R"({"access_token":"a","expires_in":"3600"})"))
                ->lifetime,
            3600s);
  for (const char* odd : {"-1", "0", "1e99", "99999999999999", "\"abc\"", "null", "[]"}) {
    const auto grant =
        read_grant(ProviderKind::github,
                   json_response(200, R"({"access_token":"a","refresh_token":"r","expires_in":)" +
                                          std::string(odd) + "}"));
    ASSERT_TRUE(grant) << odd;
    EXPECT_EQ(grant->lifetime, 0s) << odd;
  }
}

TEST(Oauth, AnswersWithoutATokenAreErrorsThatQuoteNothing) {
  const std::string huge = R"({"access_token":")" + std::string(5'000, 'a') + "\"}";
  const http::Response cases[] = {
      make_response(200, "<html>canary</html>", {{"Content-Type", "text/html"}}),
      make_response(200, R"({"access_token":"canary"})", {{"Content-Type", "text/plain"}}),
      make_response(200, "access_token=canary&scope=repo",
                    {{"Content-Type", "application/x-www-form-urlencoded"}}),
      json_response(200, "{}"),
      json_response(200, "[]"),
      json_response(200, "canary"),
      json_response(200, R"({"access_token":""})"),
      json_response(200, R"({"access_token":["canary"]})"),
      json_response(200, "{\"access_token\":\"canary\\r\\nX: y\"}"),
      json_response(200, R"({"access_token":"canary","token_type":"mac"})"),
      json_response(200, "{\"access_token\":\"canary\",\"refresh_token\":\"a\\nb\"}"),
      json_response(200, huge),
      json_response(302, ""),
      make_response(404, "canary", {{"Content-Type", "text/plain"}}),
      json_response(200,
                    R"({"error":"incorrect_client_credentials","error_description":"canary"})"),
      json_response(401, R"({"error":"invalid_client","error_description":"canary"})"),
      json_response(400, R"({"error":"<canary>"})"),
      json_response(200, R"({"error":{"canary":1},"access_token":"canary"})"),
  };
  for (const auto& response : cases) {
    const auto grant = read_grant(ProviderKind::github, response);
    ASSERT_FALSE(grant) << response.body;
    EXPECT_EQ(grant.error().code, ErrorCode::protocol) << response.body;
    EXPECT_EQ(grant.error().subcode, "") << response.body;
    EXPECT_THAT(grant.error().message, Not(HasSubstr("canary")));
  }
  for (const int status : {429, 500, 503}) {
    EXPECT_EQ(read_grant(ProviderKind::github, json_response(status, "{}")).error().code,
              ErrorCode::unavailable)
        << status;
  }
}

TEST(Oauth, ARefusalOfTheGrantIsToldApart) {
  for (const auto& response : {json_response(400, R"({"error":"invalid_grant"})"),
                               json_response(401, R"({"error":"invalid_grant"})"),
                               json_response(200, R"({"error":"bad_verification_code"})"),
                               json_response(200, R"({"error":"bad_refresh_token"})")}) {
    EXPECT_EQ(read_grant(ProviderKind::github, response).error().subcode,
              integration_errors::kNotGranted)
        << response.body;
  }
  const auto of_gitea = json_response(400, R"({"error":"unauthorized_client"})");
  EXPECT_EQ(read_grant(ProviderKind::gitea, of_gitea).error().subcode,
            integration_errors::kNotGranted);
  EXPECT_EQ(read_grant(ProviderKind::gitlab, of_gitea).error().subcode, "");
  // A host that fails has not refused.
  EXPECT_EQ(read_grant(ProviderKind::github, json_response(503, R"({"error":"invalid_grant"})"))
                .error()
                .subcode,
            "");
}

// A seal with a key, and a login.
struct LoginFixture {
  LoginFixture() { seal.use(Secret("runtime-token"), Secret("iv")); }
  TokenSeal seal;
  const WallTime now{std::chrono::milliseconds(1'700'000'000'000)};
  const std::string browser = new_browser_value();
  const Login login{.id = {},
                    .user_id = "u-1",
                    .user_name = "Ann \xff",
                    .is_admin = true,
                    .account_id = "acc",
                    .integration = "default",
                    .kind = ProviderKind::gitlab,
                    .verifier = "canary-verifier",
                    .browser = browser_mark(browser),
                    .until = now + 10min};
};

TEST(Login, ComesBackAsItWasSealed) {
  const LoginFixture fixture;
  const auto state = seal_login(fixture.seal, fixture.login);
  ASSERT_TRUE(state);
  EXPECT_THAT(*state, Not(HasSubstr("canary")));
  EXPECT_EQ(percent_encode(*state), *state);
  EXPECT_LT(state->size(), 1'000U);
  const auto opened = open_login(fixture.seal, *state, fixture.now + 9min);
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->user_id, "u-1");
  EXPECT_THAT(opened->user_name, StartsWith("Ann "));
  EXPECT_TRUE(opened->is_admin);
  EXPECT_EQ(opened->account_id, "acc");
  EXPECT_EQ(opened->integration, "default");
  EXPECT_EQ(opened->kind, ProviderKind::gitlab);
  EXPECT_EQ(opened->verifier, "canary-verifier");
  EXPECT_TRUE(is_browser(opened->browser, fixture.browser));
  EXPECT_FALSE(is_browser(opened->browser, new_browser_value()));
  EXPECT_FALSE(is_browser(opened->browser, ""));
  EXPECT_FALSE(is_browser(opened->browser, opened->browser));
}

TEST(Login, AnotherReplicaOpensIt) {
  const LoginFixture fixture;
  TokenSeal replica;
  replica.use(Secret("runtime-token"), Secret("iv"));
  EXPECT_TRUE(open_login(replica, seal_login(fixture.seal, fixture.login).value(), fixture.now));
  TokenSeal other_runtime;
  other_runtime.use(Secret("another"), Secret("iv"));
  EXPECT_FALSE(
      open_login(other_runtime, seal_login(fixture.seal, fixture.login).value(), fixture.now));
}

TEST(Login, NothingElseIsOne) {
  const LoginFixture fixture;
  const auto state = seal_login(fixture.seal, fixture.login).value();
  for (std::size_t i = 0; i < state.size(); ++i) {
    auto changed = state;
    changed[i] = changed[i] == 'A' ? 'B' : 'A';
    EXPECT_FALSE(open_login(fixture.seal, changed, fixture.now)) << i;
  }
  for (const auto& other : {std::string(), state.substr(1), state + "A", state + "=", state + " ",
                            "+" + state, std::string(10'000, 'A'), std::string("\0", 1)}) {
    EXPECT_FALSE(open_login(fixture.seal, other, fixture.now)) << other;
  }
  const auto late = open_login(fixture.seal, state, fixture.now + 10min);
  ASSERT_FALSE(late);
  EXPECT_THAT(late.error().message, HasSubstr("too long"));
  EXPECT_EQ(seal_login(TokenSeal(), fixture.login).error().code, ErrorCode::unavailable);
}

// What was sealed as a token must not pass as a login, nor the other way round.
TEST(Login, IsNoToken) {
  const LoginFixture fixture;
  const Secret text(R"({"user":"u-1","browser":"b","provider":"github","until":9e15})");
  const auto token = fixture.seal.seal({}, text).value();
  EXPECT_FALSE(fixture.seal.open_for("login at a Git host", token));
  const auto login = fixture.seal.seal_for("login at a Git host", text).value();
  EXPECT_TRUE(fixture.seal.open_for("login at a Git host", login));
  EXPECT_FALSE(fixture.seal.open_for("another purpose", login));
  EXPECT_FALSE(fixture.seal.open({}, login));
}

TEST(UsedLogins, EachComesBackOnce) {
  const LoginFixture fixture;
  const auto opened = [&] {
    return open_login(fixture.seal, seal_login(fixture.seal, fixture.login).value(), fixture.now)
        .value();
  };
  UsedLogins used(2);
  const auto one = opened();
  const auto two = opened();
  EXPECT_TRUE(used.use(one, fixture.now));
  EXPECT_EQ(used.use(one, fixture.now).error().code, ErrorCode::invalid_argument);
  EXPECT_TRUE(used.use(two, fixture.now));
  EXPECT_EQ(used.use(opened(), fixture.now).error().code, ErrorCode::unavailable);
  EXPECT_FALSE(used.use(one, fixture.now + 9min));
  // Those that are over are refused by open_login().
  EXPECT_TRUE(used.use(opened(), fixture.now + 11min));
}

}  // namespace
}  // namespace gitops::app_proxy::oauth
