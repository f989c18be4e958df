#include "control-plane/sso/sso_routes.hpp"

#include <gmock/gmock.h>

#include "control-plane/accounts/routes_fixture.hpp"
#include "control-plane/audit/audit_store.hpp"
#include "control-plane/sso/scripted_provider.hpp"

// Logins at a scripted identity provider, by the requests that a browser sends.
namespace gitops::control_plane_server::sso {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kBegin = "/console/api/v1/sso/corp?to=/applications";
constexpr const char* kCallback = "/api/auth/corp/callback?";

ProviderSettings settings_of(const ScriptedProvider& provider, std::string name) {
  ProviderSettings settings;
  settings.name = std::move(name);
  settings.title = "Corp login";
  settings.issuer = provider.issuer();
  settings.client_id = "gitops";
  settings.client_secret = Secret("the secret");
  settings.account = "acme";
  settings.creates_users = true;
  settings.teams = {{"dev", "developers"}};
  return settings;
}

// Two providers, corp and other, and the routes behind a server. A browser is a Cookie header.
struct SsoFixture {
  explicit SsoFixture(AccountsFixture& on)
      : accounts(on),
        corp(on.executor),
        other(on.executor),
        sso(on.executor, resolver, on.metrics,
            {.database = on.database, .authenticator = authenticator, .audit = &audit},
            {.providers = {settings_of(corp, "corp"), settings_of(other, "other")},
             .public_url = "http://console.example"}),
        served(on, all_routes()) {
    audit.start();
  }
  std::vector<http::Route> all_routes() {
    auto routes = user_routes({.database = accounts.database,
                               .authenticator = authenticator,
                               .login = login,
                               .audit = &audit,
                               .end_session_url = [this](const std::string& provider) {
                                 return sso.end_session_address(provider);
                               }});
    for (auto& route : sso.routes()) routes.push_back(std::move(route));
    return routes;
  }
  Task<> stop() {
    co_await served.stop();
    sso.close();
    co_await corp.stop();
    co_await other.stop();
    co_await audit.stop(AccountsFixture::soon());
  }

  Task<http::Response> get(std::string target, http::Headers browser = {}) {
    co_return co_await served.send("GET", std::move(target), std::move(browser));
  }
  // Begins a login; returns the address at the provider and sets the browser's cookie.
  Task<std::string> begin(http::Headers& browser, std::string target = kBegin) {
    const auto response = co_await get(std::move(target), browser);
    EXPECT_EQ(response.status, 302);
    if (response.headers.find("Set-Cookie")) browser = cookie_of(response);
    co_return std::string(response.headers.find("Location").value_or(""));
  }
  // A whole login; returns the last response.
  Task<http::Response> log_in(http::Headers browser = {}) {
    const auto location = co_await begin(browser);
    co_return co_await get(kCallback + corp.authorize(location), browser);
  }
  // A whole login that is refused; returns the code of the sign-in page.
  Task<std::string> refusal() {
    const auto response = co_await log_in();
    co_return refusal_in(response);
  }
  static std::string refusal_in(const http::Response& response) {
    constexpr std::string_view kPage = "/sign-in?error=";
    const auto location = response.headers.find("Location").value_or("");
    EXPECT_FALSE(response.headers.find("Set-Cookie"));
    return response.status == 302 && location.starts_with(kPage)
               ? std::string(location.substr(kPage.size(), location.find('&') - kPage.size()))
               : std::to_string(response.status) + " " + std::string(location);
  }
  Task<std::vector<AuditEntry>> audited(std::int64_t account) {
    co_await audit.idle(AccountsFixture::soon());
    auto entries = co_await accounts.database.read(
        AccountsFixture::soon(),
        [account](store::Connection& db) { return list_audit(db, {.account = account}, 100); });
    co_return must(std::move(entries));
  }

  AccountsFixture& accounts;
  ScriptedProvider corp;
  ScriptedProvider other;
  net::Resolver resolver{accounts.metrics};
  Authenticator authenticator{accounts.database, accounts.metrics, {.cookie = CookieForm::plain}};
  Passwords passwords{accounts.metrics, kCheap};
  Login login{accounts.database, passwords, accounts.metrics, {}};
  AuditLog audit{accounts.executor, accounts.database, accounts.metrics};
  SsoRoutes sso;
  ServedRoutes served;
};

void with_sso(const std::function<Task<>(SsoFixture&)>& body) {
  with_accounts([&](AccountsFixture& accounts) -> Task<> {
    SsoFixture fixture(accounts);
    co_await body(fixture);
    co_await fixture.stop();
  });
}

TEST(SsoRoutes, ListsTheWaysToLogIn) {
  with_sso([](SsoFixture& fixture) -> Task<> {
    const auto response = co_await fixture.get("/console/api/v1/sign-in");
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(json_of(response), Json::parse(R"({"password":true,"providers":[
                {"name":"corp","title":"Corp login","path":"/console/api/v1/sso/corp"},
                {"name":"other","title":"Corp login","path":"/console/api/v1/sso/other"}]})"));
  });
}

TEST(SsoRoutes, LogsAUserIn) {
  with_sso([](SsoFixture& fixture) -> Task<> {
    fixture.corp.claims["groups"] = {"dev"};
    const auto response = co_await fixture.log_in();
    EXPECT_EQ(response.status, 302);
    EXPECT_EQ(response.headers.find("Location"), "/applications");
    EXPECT_THAT(std::string(response.headers.find("Set-Cookie").value_or("")),
                StartsWith("session="));
    const auto user = co_await fixture.get("/api/user", cookie_of(response));
    EXPECT_EQ(json_of(user).value("userName", ""), "kim");
    const auto again = co_await fixture.log_in();
    const auto same = co_await fixture.get("/api/user", cookie_of(again));
    EXPECT_EQ(json_of(same)["_id"], json_of(user)["_id"]);
    EXPECT_TRUE(
        fixture.accounts.counts(R"(gitops_control_plane_sso_logins_total{result="succeeded"} 2)"));
    // Discovery and keys were read once.
    EXPECT_EQ(fixture.corp.asked["/.well-known/openid-configuration"], 1);
    EXPECT_EQ(fixture.corp.asked["/keys"], 1);

    const auto entries = co_await fixture.audited(fixture.accounts.sample.acme.number);
    CO_ASSERT_EQ(entries.size(), 2U);
    EXPECT_EQ(entries[1].caller, "kim");
    EXPECT_EQ(entries[1].action, "GET /api/auth/corp/callback");
    EXPECT_THAT(entries[1].target,
                HasSubstr("provider=corp subject=u-1 new-user=true teams-joined=1"));
    EXPECT_EQ(entries[0].target, "provider=corp subject=u-1");
  });
}

TEST(SsoRoutes, SeveralTabsLogInAtOnce) {
  with_sso([](SsoFixture& fixture) -> Task<> {
    http::Headers browser;
    const auto one = co_await fixture.begin(browser);
    const auto two = co_await fixture.begin(browser);
    const auto second = co_await fixture.get(kCallback + fixture.corp.authorize(two), browser);
    const auto first = co_await fixture.get(kCallback + fixture.corp.authorize(one), browser);
    EXPECT_EQ(first.headers.find("Location"), "/applications");
    EXPECT_EQ(second.headers.find("Location"), "/applications");
  });
}

TEST(SsoRoutes, ReturnsOnlyToItsOwnPages) {
  with_sso([](SsoFixture& fixture) -> Task<> {
    http::Headers browser;
    const auto location =
        co_await fixture.begin(browser, "/console/api/v1/sso/corp?to=https://evil.example/");
    const auto response =
        co_await fixture.get(kCallback + fixture.corp.authorize(location), browser);
    EXPECT_EQ(response.headers.find("Location"), "/");
  });
}

TEST(SsoRoutes, AStateIsOfOneUse) {
  with_sso([](SsoFixture& fixture) -> Task<> {
    http::Headers browser;
    const auto location = co_await fixture.begin(browser);
    const auto callback = kCallback + fixture.corp.authorize(location);
    EXPECT_EQ((co_await fixture.get(callback, browser)).headers.find("Location"), "/applications");
    EXPECT_EQ(SsoFixture::refusal_in(co_await fixture.get(callback, browser)), "sso-expired");
    EXPECT_EQ(fixture.corp.asked["/token"], 1);
  });
}

TEST(SsoRoutes, ACodeOfAnotherLoginIsRefused) {
  with_sso([](SsoFixture& fixture) -> Task<> {
    // The code of the attacker's login with the state of the victim's: the verifier does not fit.
    http::Headers victim;
    http::Headers attacker;
    const auto victims = co_await fixture.begin(victim);
    const auto stolen = fixture.corp.authorize(co_await fixture.begin(attacker));
    const auto own = fixture.corp.authorize(victims);
    const auto mixed = http::query_string({{"state", http::query_parameter(own, "state")},
                                           {"code", http::query_parameter(stolen, "code")},
                                           {"iss", fixture.corp.issuer()}});
    EXPECT_EQ(SsoFixture::refusal_in(co_await fixture.get(kCallback + mixed, victim)),
              "sso-provider");
  });
}

TEST(SsoRoutes, AStateOfAnotherBrowserIsRefusedAndStays) {
  with_sso([](SsoFixture& fixture) -> Task<> {
    http::Headers browser;
    http::Headers stranger;
    const auto location = co_await fixture.begin(browser);
    (void)co_await fixture.begin(stranger);
    const auto callback = kCallback + fixture.corp.authorize(location);
    EXPECT_EQ(SsoFixture::refusal_in(co_await fixture.get(callback, stranger)), "sso-expired");
    EXPECT_EQ(SsoFixture::refusal_in(co_await fixture.get(callback)), "sso-expired");
    const auto response = co_await fixture.get(callback, browser);
    EXPECT_EQ(response.headers.find("Location"), "/applications");
  });
}

TEST(SsoRoutes, AnOldStateIsRefused) {
  with_sso([](SsoFixture& fixture) -> Task<> {
    http::Headers browser;
    const auto callback = kCallback + fixture.corp.authorize(co_await fixture.begin(browser));
    co_await sleep_for(kLoginTime);
    EXPECT_EQ(SsoFixture::refusal_in(co_await fixture.get(callback, browser)), "sso-expired");
  });
}

TEST(SsoRoutes, ProvidersAreNotMixedUp) {
  with_sso([](SsoFixture& fixture) -> Task<> {
    // The browser began at corp and comes back from other.
    http::Headers browser;
    auto query = fixture.corp.authorize(co_await fixture.begin(browser));
    EXPECT_EQ(
        SsoFixture::refusal_in(co_await fixture.get("/api/auth/other/callback?" + query, browser)),
        "sso-expired");
    EXPECT_EQ(fixture.other.asked["/token"], 0);
    // At the right path, with the name of another issuer: the code goes nowhere.
    const auto state = http::query_parameter(query, "state");
    const auto forged =
        http::query_string({{"state", state}, {"code", "c"}, {"iss", fixture.other.issuer()}});
    EXPECT_EQ(SsoFixture::refusal_in(co_await fixture.get(kCallback + forged, browser)),
              "sso-provider");
    // Nor without a name, which this provider always sends.
    query = fixture.corp.authorize(co_await fixture.begin(browser));
    EXPECT_EQ(SsoFixture::refusal_in(
                  co_await fixture.get(kCallback + query.substr(0, query.find("&iss=")), browser)),
              "sso-provider");
    EXPECT_EQ(fixture.corp.asked["/token"], 0);
  });
}

TEST(SsoRoutes, FollowsARotationOfKeys) {
  with_sso([](SsoFixture& fixture) -> Task<> {
    EXPECT_EQ((co_await fixture.log_in()).headers.find("Location"), "/applications");
    fixture.corp.keys = Json::array({other_rsa_signer().jwk("k2")});
    fixture.corp.signer = &other_rsa_signer();
    fixture.corp.header["kid"] = "k2";
    EXPECT_EQ((co_await fixture.log_in()).headers.find("Location"), "/applications");
    EXPECT_EQ(fixture.corp.asked["/keys"], 2);
    // The old key is gone.
    fixture.corp.signer = &rsa_signer();
    fixture.corp.header["kid"] = "k1";
    EXPECT_EQ(co_await fixture.refusal(), "sso-token");
    // An unknown key leads to one read a minute.
    EXPECT_EQ(fixture.corp.asked["/keys"], 2);
    co_await sleep_for(std::chrono::minutes(1));
    EXPECT_EQ(co_await fixture.refusal(), "sso-token");
    EXPECT_EQ(co_await fixture.refusal(), "sso-token");
    EXPECT_EQ(fixture.corp.asked["/keys"], 3);
  });
}

TEST(SsoRoutes, FollowsARotationToAKeyOfTheSameName) {
  with_sso([](SsoFixture& fixture) -> Task<> {
    EXPECT_EQ((co_await fixture.log_in()).headers.find("Location"), "/applications");
    fixture.corp.keys = Json::array({other_rsa_signer().jwk("k1")});
    fixture.corp.signer = &other_rsa_signer();
    EXPECT_EQ((co_await fixture.log_in()).headers.find("Location"), "/applications");
    EXPECT_EQ(fixture.corp.asked["/keys"], 2);
  });
}

TEST(SsoRoutes, RefusesWrongTokens) {
  with_sso([](SsoFixture& fixture) -> Task<> {
    for (const Json& claims :
         {Json{{"iss", fixture.other.issuer()}}, Json{{"aud", "another"}}, Json{{"nonce", "x"}},
          Json{{"exp", 1}}, Json{{"sub", ""}}, Json{{"azp", "another"}}}) {
      const auto before = fixture.corp.claims;
      fixture.corp.claims.update(claims);
      EXPECT_EQ(co_await fixture.refusal(), "sso-token") << claims;
      fixture.corp.claims = before;
    }
    fixture.corp.header["alg"] = "none";
    EXPECT_EQ(co_await fixture.refusal(), "sso-token");
    fixture.corp.header["alg"] = "HS256";
    EXPECT_EQ(co_await fixture.refusal(), "sso-token");
    fixture.corp.header["alg"] = "RS256";
    fixture.corp.signer = &other_rsa_signer();
    EXPECT_EQ(co_await fixture.refusal(), "sso-token");
    const auto entries = co_await fixture.audited(0);
    CO_ASSERT_TRUE(!entries.empty());
    EXPECT_EQ(entries.back().result, AuditResult::refused);
    EXPECT_THAT(entries.back().detail, StartsWith("sso-token: "));
  });
}

TEST(SsoRoutes, TellsThatAProviderIsDown) {
  with_sso([](SsoFixture& fixture) -> Task<> {
    const auto down = [&](const char* path) -> Task<std::string> {
      fixture.corp.instead[path] = {.status = 503};
      auto code = co_await fixture.refusal();
      fixture.corp.instead.clear();
      co_return code;
    };
    http::Headers browser;
    fixture.corp.instead["/.well-known/openid-configuration"] = {.status = 503};
    const auto location = co_await fixture.begin(browser);
    EXPECT_EQ(location, "/sign-in?error=sso-unavailable&to=%2Fapplications");
    fixture.corp.instead.clear();
    // A failure is remembered for two seconds.
    (void)co_await fixture.begin(browser);
    EXPECT_EQ(fixture.corp.asked["/.well-known/openid-configuration"], 1);
    co_await sleep_for(std::chrono::seconds(2));
    EXPECT_EQ(co_await down("/token"), "sso-unavailable");
    EXPECT_EQ(co_await down("/keys"), "sso-unavailable");
    co_await sleep_for(std::chrono::seconds(2));
    fixture.corp.silent_path = "/token";
    EXPECT_EQ(co_await fixture.refusal(), "sso-unavailable");
    fixture.corp.silent_path.clear();
    EXPECT_EQ((co_await fixture.log_in()).headers.find("Location"), "/applications");
    // The password still works.
    const auto response = co_await fixture.served.send(
        "POST", "/console/api/v1/login", {{"Content-Type", "application/json"}},
        R"({"name":"bob","password":"bob's password"})");
    EXPECT_EQ(response.status, 200);
  });
}

TEST(SsoRoutes, AFailedLoginKeepsThePageThatWasWanted) {
  with_sso([](SsoFixture& fixture) -> Task<> {
    fixture.corp.instead["/token"] = {.status = 503};
    const auto response = co_await fixture.log_in();
    EXPECT_EQ(response.headers.find("Location"),
              "/sign-in?error=sso-unavailable&to=%2Fapplications");
  });
}

TEST(SsoRoutes, RefusesResponsesThatAreNotUsable) {
  with_sso([](SsoFixture& fixture) -> Task<> {
    const http::Response wrong[] = {
        {.status = 302, .headers = {{"Location", fixture.other.issuer() + "/token"}}},
        {.status = 200, .headers = {{"Content-Type", "text/html"}}, .body = "<html>"},
        {.status = 200, .headers = {{"Content-Type", "application/json"}}, .body = "{"},
        {.status = 200, .headers = {{"Content-Type", "application/json"}}, .body = "{}"},
        {.status = 200,
         .headers = {{"Content-Type", "application/json"}},
         .body = std::string(600'000, ' ')}};
    for (const auto& response : wrong) {
      fixture.corp.instead["/token"] = response;
      EXPECT_EQ(co_await fixture.refusal(), "sso-provider")
          << response.status << response.body.size();
    }
    EXPECT_EQ(fixture.other.asked["/token"], 0);
    fixture.corp.instead.clear();
    fixture.other.document["issuer"] = fixture.corp.issuer();
    http::Headers browser;
    EXPECT_EQ(co_await fixture.begin(browser, "/console/api/v1/sso/other"),
              "/sign-in?error=sso-provider");
  });
}

TEST(SsoRoutes, PassesARefusalOfTheProviderOnWithoutItsText) {
  with_sso([](SsoFixture& fixture) -> Task<> {
    http::Headers browser;
    const auto query = fixture.corp.authorize(co_await fixture.begin(browser));
    const auto refused = http::query_string({{"state", http::query_parameter(query, "state")},
                                             {"error", "access_denied"},
                                             {"error_description", "<script>"},
                                             {"iss", fixture.corp.issuer()}});
    EXPECT_EQ(SsoFixture::refusal_in(co_await fixture.get(kCallback + refused, browser)),
              "sso-denied");
    EXPECT_EQ(SsoFixture::refusal_in(co_await fixture.get(kCallback + std::string("x=1"), browser)),
              "sso-expired");
  });
}

TEST(SsoRoutes, AUserOfAProviderHasNoPassword) {
  with_sso([](SsoFixture& fixture) -> Task<> {
    const auto response = co_await fixture.log_in();
    const auto user = json_of(co_await fixture.get("/api/user", cookie_of(response)));
    (void)co_await fixture.accounts.write([id = user.value("_id", "")](store::Connection& db) {
      return set_password(db, id,
                          hash_password(Secret("kim's password"), "0123456789abcdef", kCheap));
    });
    const auto login = co_await fixture.served.send(
        "POST", "/console/api/v1/login", {{"Content-Type", "application/json"}},
        R"({"name":"kim","password":"kim's password"})");
    EXPECT_EQ(login.status, 401);
    auto headers = cookie_of(response);
    headers.add("Content-Type", "application/json");
    const auto change = co_await fixture.served.send(
        "POST", "/console/api/v1/password", std::move(headers),
        R"({"password":"kim's password","newPassword":"kim's other password"})");
    EXPECT_EQ(change.status, 403);
  });
}

TEST(SsoRoutes, LogoutTellsWhereTheProvidersSessionEnds) {
  with_sso([](SsoFixture& fixture) -> Task<> {
    const auto response = co_await fixture.log_in();
    const auto out =
        co_await fixture.served.send("POST", "/console/api/v1/logout", cookie_of(response));
    EXPECT_EQ(json_of(out).value("endSession", ""),
              fixture.corp.issuer() +
                  "/logout?client_id=gitops&post_logout_redirect_uri="
                  "http%3A%2F%2Fconsole.example%2Fsign-in");
    EXPECT_EQ((co_await fixture.get("/api/user", cookie_of(response))).status, 401);
    // Not after a login by password.
    const auto session = fixture.accounts.sample.bob_session;
    const auto local = co_await fixture.served.send(
        "POST", "/console/api/v1/logout", {{"Cookie", "session=" + std::string(session.reveal())}});
    EXPECT_EQ(json_of(local), Json::object());
  });
}

TEST(SsoRoutes, ALossOfATeamCountsAtOnce) {
  with_sso([](SsoFixture& fixture) -> Task<> {
    fixture.corp.claims["groups"] = {"dev"};
    const auto first = co_await fixture.log_in();
    EXPECT_EQ((co_await fixture.get("/api/user", cookie_of(first))).status, 200);
    fixture.corp.claims["groups"] = Json::array();
    (void)co_await fixture.log_in();
    const auto teams = json_of(co_await fixture.get("/api/team", cookie_of(first)));
    for (const auto& team : teams) {
      if (team.value("name", "") == "developers") EXPECT_TRUE(team["users"].empty());
    }
  });
}

TEST(SsoRoutes, LimitsAttemptsByAddress) {
  with_sso([](SsoFixture& fixture) -> Task<> {
    std::string last;
    for (int i = 0; i < 31; ++i) {
      last =
          SsoFixture::refusal_in(co_await fixture.get(kCallback + std::string("state=s&code=c")));
    }
    EXPECT_EQ(last, "sso-busy");
    EXPECT_EQ(fixture.corp.asked["/token"], 0);
  });
}

TEST(SsoRoutes, KnowsNoOtherProvider) {
  with_sso([](SsoFixture& fixture) -> Task<> {
    EXPECT_EQ((co_await fixture.get("/console/api/v1/sso/nobody")).status, 404);
    EXPECT_EQ((co_await fixture.get("/api/auth/nobody/callback?state=s&code=c")).status, 404);
    http::Headers browser;
    const auto callback = kCallback + fixture.corp.authorize(co_await fixture.begin(browser));
    const auto head = co_await fixture.served.send("HEAD", callback, browser);
    EXPECT_EQ(head.status, 405);
    EXPECT_EQ((co_await fixture.get(callback, browser)).headers.find("Location"), "/applications");
  });
}

}  // namespace
}  // namespace gitops::control_plane_server::sso
