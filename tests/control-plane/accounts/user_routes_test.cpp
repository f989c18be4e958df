#include "control-plane/accounts/user_routes.hpp"

#include <tuple>

#include <gmock/gmock.h>

#include "control-plane/accounts/revocations.hpp"
#include "control-plane/accounts/routes_fixture.hpp"

namespace gitops::control_plane_server {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::StartsWith;

TEST(UserRoutes, PingNeedsNoCredential) {
  with_routes([](RoutesFixture& fixture) -> Task<> {
    EXPECT_EQ((co_await fixture.send("GET", "/api/ping", {})).status, 200);
  });
}

TEST(UserRoutes, TheCommandLinesLoginFindsItsAccount) {
  with_routes([](RoutesFixture& fixture) -> Task<> {
    const auto response = co_await fixture.get("/api/user", fixture.sample.ann_key);
    EXPECT_EQ(response.status, 200);
    const auto user = json_of(response);
    EXPECT_EQ(user["_id"], fixture.sample.ann.id);
    EXPECT_EQ(user["id"], fixture.sample.ann.id);
    EXPECT_EQ(user["userName"], "ann");
    EXPECT_EQ(user["email"], "ann@acme.example");
    EXPECT_EQ(user["activeAccountName"], "acme");
    CO_ASSERT_EQ(user["account"].size(), 1U);
    EXPECT_EQ(user["account"][0]["_id"], fixture.sample.acme.id);
    EXPECT_EQ(user["account"][0]["id"], fixture.sample.acme.id);
    EXPECT_EQ(user["account"][0]["name"], "acme");
    EXPECT_EQ(user["account"][0]["admins"], Json::array({fixture.sample.ann.id}));
    EXPECT_EQ(user["account"][0]["features"]["gitopsPlanEnforcement"], false);
    EXPECT_EQ(user["roles"], Json::array({"User", "Admin"}));
    EXPECT_EQ(user["user_data"]["image"], "");
    const auto bob = json_of(co_await fixture.get("/api/user", fixture.sample.bob_key));
    EXPECT_EQ(bob["roles"], Json::array({"User"}));
  });
}

TEST(UserRoutes, AC_33_ErrorsHaveThePlatformsForm) {
  with_routes([](RoutesFixture& fixture) -> Task<> {
    for (const auto* path : {"/api/user", "/api/team", "/api/auth/keys"}) {
      const auto refused = co_await fixture.send("GET", path, {{"Authorization", "nobody.0000"}});
      EXPECT_EQ(refused.status, 401) << path;
      EXPECT_EQ(json_of(refused), Json::object({{"code", "unauthenticated"},
                                                {"message", "Unauthorized: Invalid token."}}));
      EXPECT_EQ((co_await fixture.send("GET", path, {})).status, 401) << path;
    }
    for (const auto* method : {"GET", "POST", "PUT", "PATCH", "DELETE"}) {
      const auto absent = co_await fixture.send(method, "/api/environments-v2/x", {});
      EXPECT_EQ(absent.status, 404) << method;
      EXPECT_EQ(json_of(absent)["statusCode"], 404) << absent.body;
      EXPECT_TRUE(json_of(absent)["message"].is_string());
      EXPECT_FALSE(absent.body.contains('\n'));
    }
    EXPECT_EQ(
        (co_await fixture.get("/api/contexts/jira?decrypt=true", fixture.sample.ann_key)).status,
        404);
    EXPECT_EQ((co_await fixture.get("/api/user", fixture.sample.prod_token)).status, 403);
    EXPECT_EQ((co_await fixture.get("/api/auth/keys", fixture.sample.prod_token)).status, 403);
  });
}

TEST(UserRoutes, TeamsAreThoseOfTheAccount) {
  with_routes([](RoutesFixture& fixture) -> Task<> {
    for (const auto* token : {&fixture.sample.bob_key, &fixture.sample.prod_token}) {
      const auto teams = json_of(co_await fixture.get("/api/team", *token));
      CO_ASSERT_EQ(teams.size(), 2U);
      EXPECT_EQ(teams[0]["name"], "admins");
      EXPECT_EQ(teams[0]["type"], "admin");
      EXPECT_EQ(teams[0]["account"], fixture.sample.acme.id);
      EXPECT_EQ(teams[0]["tags"], Json::array());
      EXPECT_EQ(teams[0]["users"], Json::array({Json::object({{"_id", fixture.sample.ann.id},
                                                              {"userName", "ann"},
                                                              {"email", "ann@acme.example"}})}));
      EXPECT_EQ(teams[1]["users"].size(), 2U);
    }
  });
}

TEST(UserRoutes, AKeyIsMadeListedChangedAndRevoked) {
  with_routes([](RoutesFixture& fixture) -> Task<> {
    const auto made =
        co_await fixture.send("POST", "/api/auth/key", authorization(fixture.sample.bob_key),
                              R"({"name":"ci","scopes":["pipeline"]})");
    CO_ASSERT_EQ(made.status, 200);
    const Secret key{std::string(made.body)};
    const auto parsed = parse_api_key(key.reveal());
    CO_ASSERT_TRUE(parsed) << made.body;
    EXPECT_EQ(made.headers.find("Cache-Control"), "no-store");
    EXPECT_EQ((co_await fixture.get("/api/user", key)).status, 200);

    const auto list = json_of(co_await fixture.get("/api/auth/keys", fixture.sample.bob_key));
    CO_ASSERT_EQ(list.size(), 2U);
    const auto& ci = list[0]["_id"] == parsed->id ? list[0] : list[1];
    EXPECT_EQ(ci["_id"], parsed->id);
    EXPECT_EQ(ci["name"], "ci");
    EXPECT_EQ(ci["scopes"], Json::array({"pipeline"}));
    EXPECT_EQ(ci["tokenPrefix"], made.body.substr(25, 6));
    EXPECT_EQ(ci["subject"]["ref"], fixture.sample.bob.id);
    EXPECT_FALSE(list.dump().contains(made.body.substr(31)));

    const auto path = "/api/auth/key/" + parsed->id;
    const auto changed = co_await fixture.send("PATCH", path, authorization(fixture.sample.bob_key),
                                               R"({"name":"deploy"})");
    EXPECT_EQ(changed.status, 200);
    EXPECT_EQ(json_of(changed)["name"], "deploy");
    EXPECT_EQ(json_of(co_await fixture.get(path, fixture.sample.bob_key))["scopes"],
              Json::array({"pipeline"}));

    EXPECT_EQ((co_await fixture.send("DELETE", path, authorization(fixture.sample.bob_key))).status,
              200);
    EXPECT_EQ((co_await fixture.get("/api/user", key)).status, 401) << "at once";
    EXPECT_EQ((co_await fixture.send("DELETE", path, authorization(fixture.sample.bob_key))).status,
              404);
  });
}

TEST(UserRoutes, AC_37_KeysOfOthersAreAbsent) {
  with_routes([](RoutesFixture& fixture) -> Task<> {
    const auto path = "/api/auth/key/" + std::string(fixture.sample.ann_key.reveal().substr(0, 24));
    for (const auto* token : {&fixture.sample.bob_key, &fixture.sample.eve_key}) {
      for (const auto* method : {"GET", "PATCH", "DELETE"}) {
        const auto response =
            co_await fixture.send(method, path, authorization(*token),
                                  std::string_view(method) == "PATCH" ? R"({"name":"x"})" : "");
        EXPECT_EQ(response.status, 404) << method;
      }
    }
    EXPECT_EQ((co_await fixture.get("/api/user", fixture.sample.ann_key)).status, 200);
    // An administrator sees and revokes all keys of the account, but no keys of other accounts.
    const auto bob = "/api/auth/key/" + std::string(fixture.sample.bob_key.reveal().substr(0, 24));
    const auto eve = "/api/auth/key/" + std::string(fixture.sample.eve_key.reveal().substr(0, 24));
    EXPECT_EQ((co_await fixture.get(bob, fixture.sample.ann_key)).status, 200);
    EXPECT_EQ((co_await fixture.get(eve, fixture.sample.ann_key)).status, 404);
  });
}

TEST(UserRoutes, ABodyThatIsNoKeyIsRefused) {
  with_routes([](RoutesFixture& fixture) -> Task<> {
    const auto bob = authorization(fixture.sample.bob_key);
    for (const auto* body : {"", "[]", "{", R"({"scopes":[]})", R"({"name":1})", R"({"name":""})",
                             R"({"name":"a","scopes":"b"})", R"({"name":"a","scopes":[1]})",
                             R"({"name":"a\u0000b"})", R"({"name":"a","expires":"yesterday"})"}) {
      const auto response = co_await fixture.send("POST", "/api/auth/key", bob, body);
      EXPECT_EQ(response.status, 400) << body;
      EXPECT_TRUE(json_of(response)["message"].is_string()) << response.body;
    }
    const auto unknown = co_await fixture.send("POST", "/api/auth/key", bob,
                                               R"({"name":"a","scopes":["read","wirte"]})");
    EXPECT_EQ(unknown.status, 400);
    EXPECT_THAT(json_of(unknown)["message"].get<std::string>(),
                testing::StartsWith("there is no scope wirte; there are read, write"));
    const auto keys = json_of(co_await fixture.get("/api/auth/keys", fixture.sample.bob_key));
    const auto path = "/api/auth/key/" + keys[0]["_id"].get<std::string>();
    EXPECT_EQ((co_await fixture.send("PATCH", path, bob, R"({"scopes":["wirte"]})")).status, 400);
    EXPECT_EQ(json_of(co_await fixture.get(path, fixture.sample.bob_key))["scopes"],
              keys[0]["scopes"])
        << "nothing was changed";
    EXPECT_EQ(
        (co_await fixture.send("POST", "/api/auth/key?subjectType=team", bob, R"({"name":"a"})"))
            .status,
        400);
    EXPECT_EQ(
        (co_await fixture.send("POST", "/api/auth/key", bob, std::string(70'000, ' '))).status,
        413);
  });
}

// Makes a key of ann with these scopes.
Task<Secret> key_with(RoutesFixture& fixture, std::vector<std::string> scopes) {
  const auto response =
      co_await fixture.send("POST", "/api/auth/key", authorization(fixture.sample.ann_key),
                            Json{{"name", "narrow"}, {"scopes", scopes}}.dump());
  EXPECT_EQ(response.status, 200) << response.body;
  co_return Secret(response.body);
}

TEST(UserRoutes, AC_34_AKeyDoesWhatItsScopesAllow) {
  with_routes([](RoutesFixture& fixture) -> Task<> {
    const auto reads = co_await key_with(fixture, {"read"});
    EXPECT_EQ((co_await fixture.get("/api/team", reads)).status, 200);
    EXPECT_EQ((co_await fixture.get("/api/auth/keys", reads)).status, 200);
    const auto writes = co_await key_with(fixture, {"write"});
    // Every key may ask whose it is: that is the login of the command line.
    EXPECT_EQ((co_await fixture.get("/api/user", writes)).status, 200);
    const auto refused = co_await fixture.get("/api/team", writes);
    EXPECT_EQ(refused.status, 403);
    EXPECT_EQ(json_of(refused)["message"], "the API key lacks the scope read; it has write");
  });
}

TEST(UserRoutes, AC_34_AKeyWithScopesCannotGiveItselfOthers) {
  with_routes([](RoutesFixture& fixture) -> Task<> {
    const auto narrow = co_await key_with(fixture, {"read", "write"});
    const auto path = "/api/auth/key/" + std::string(narrow.reveal().substr(0, 24));
    for (const auto& [method, target, body] :
         {std::tuple("POST", std::string("/api/auth/key"), R"({"name":"wide"})"),
          std::tuple("PATCH", path, R"({"scopes":[]})"), std::tuple("DELETE", path, "")}) {
      const auto refused = co_await fixture.send(method, target, authorization(narrow), body);
      EXPECT_EQ(refused.status, 403) << method;
      EXPECT_THAT(refused.body, HasSubstr("cannot manage keys")) << method;
    }
    EXPECT_EQ((co_await fixture.send("PUT",
                                     "/console/api/v1/users/" + fixture.sample.bob.id + "/password",
                                     authorization(narrow), "{}"))
                  .status,
              403);
  });
}

TEST(UserRoutes, NewScopesOfAKeyCountAtOnce) {
  with_routes([](RoutesFixture& fixture) -> Task<> {
    const auto key = co_await key_with(fixture, {"read"});
    EXPECT_EQ((co_await fixture.get("/api/team", key)).status, 200);
    const auto path = "/api/auth/key/" + std::string(key.reveal().substr(0, 24));
    const auto changed = co_await fixture.send("PATCH", path, authorization(fixture.sample.ann_key),
                                               R"({"scopes":["images"]})");
    EXPECT_EQ(changed.status, 200);
    EXPECT_EQ((co_await fixture.get("/api/team", key)).status, 403);
  });
}

// Runners belong to the CI product.
TEST(UserRoutes, RunnersHaveNoKeys) {
  with_routes([](RoutesFixture& fixture) -> Task<> {
    const std::string query = "?subjectType=runtime-environment&subjectReference=a";
    const auto created = co_await fixture.send(
        "POST", "/api/auth/key" + query, authorization(fixture.sample.bob_key), R"({"name":"a"})");
    EXPECT_EQ(created.status, 404);
    EXPECT_EQ(json_of(created)["statusCode"], 404);
    EXPECT_EQ((co_await fixture.get("/api/auth/keys" + query, fixture.sample.bob_key)).status, 404);
  });
}

TEST(UserRoutes, AnAdministratorFindsAndRevokesTheTokenOfARuntime) {
  with_routes([](RoutesFixture& fixture) -> Task<> {
    const std::string list = "/api/auth/keys?subjectType=runtime&subjectReference=";
    EXPECT_EQ((co_await fixture.get(list + "prod", fixture.sample.bob_key)).status, 403);
    EXPECT_EQ((co_await fixture.get("/api/auth/keys?subjectType=x", fixture.sample.ann_key)).status,
              400);
    EXPECT_EQ(json_of(co_await fixture.get(list + "absent", fixture.sample.ann_key)),
              Json::array());
    const auto keys = json_of(co_await fixture.get(list + "prod", fixture.sample.ann_key));
    CO_ASSERT_EQ(keys.size(), 1U);
    EXPECT_EQ(keys[0]["subject"], (Json{{"type", "runtime"}, {"ref", "prod"}}));
    const auto path = "/api/auth/key/" + keys[0]["_id"].get<std::string>();
    EXPECT_EQ((co_await fixture.send("DELETE", path, authorization(fixture.sample.bob_key))).status,
              404);
    EXPECT_EQ(fixture.runtimes_revoked, 0);
    EXPECT_EQ((co_await fixture.send("DELETE", path, authorization(fixture.sample.ann_key))).status,
              200);
    EXPECT_EQ(fixture.runtimes_revoked, 1);
    EXPECT_EQ((co_await fixture.get("/api/team", fixture.sample.prod_token)).status, 401);
    auto pending =
        co_await fixture.accounts.write([](store::Connection& db) { return pending_tunnels(db); });
    CO_ASSERT_OK(pending);
    CO_ASSERT_EQ(pending->size(), 1U);
    EXPECT_EQ(pending->front().runtime, "prod");
    EXPECT_EQ(pending->front().account, fixture.sample.acme.id);
  });
}

TEST(UserRoutes, ALoginBeginsASessionAndALogoutEndsIt) {
  with_routes([](RoutesFixture& fixture) -> Task<> {
    const auto in = co_await fixture.log_in({{"name", "bob"}, {"password", "bob's password"}});
    CO_ASSERT_EQ(in.status, 200) << in.body;
    EXPECT_THAT(std::string(in.headers.find("Set-Cookie").value_or("")),
                testing::AllOf(StartsWith("session="), HasSubstr("HttpOnly")));
    EXPECT_FALSE(in.body.contains("session"));
    const auto cookie = cookie_of(in);
    const auto user = json_of(co_await fixture.send("GET", "/api/user", cookie));
    EXPECT_EQ(user["userName"], "bob");
    const auto out = co_await fixture.send("POST", "/console/api/v1/logout", cookie);
    EXPECT_EQ(out.status, 200);
    EXPECT_THAT(std::string(out.headers.find("Set-Cookie").value_or("")), HasSubstr("Max-Age=0"));
    EXPECT_EQ((co_await fixture.send("GET", "/api/user", cookie)).status, 401);
    EXPECT_EQ((co_await fixture.send("POST", "/console/api/v1/logout", {})).status, 200);
  });
}

TEST(UserRoutes, AC_35_WrongLoginsAreFew) {
  with_routes([](RoutesFixture& fixture) -> Task<> {
    int refused = 0;
    http::Response last;
    for (int i = 0; i < 11; ++i) {
      last = co_await fixture.log_in({{"name", "bob"}, {"password", "wrong"}});
      if (last.status == 401) ++refused;
      EXPECT_FALSE(last.headers.find("Set-Cookie"));
    }
    EXPECT_EQ(refused, 10);
    EXPECT_EQ(last.status, 429);
    EXPECT_TRUE(last.headers.find("Retry-After"));
  });
}

TEST(UserRoutes, AC_32_PagesOfOtherSitesNeitherLogInNorOut) {
  with_routes([](RoutesFixture& fixture) -> Task<> {
    const Json right{{"name", "bob"}, {"password", "bob's password"}};
    EXPECT_EQ((co_await fixture.log_in(right, {{"Origin", "https://evil.example"}})).status, 403);
    EXPECT_EQ((co_await fixture.log_in(right, {{"Sec-Fetch-Site", "cross-site"}})).status, 403);
    const auto form = co_await fixture.send("POST", "/console/api/v1/login",
                                            {{"Content-Type", "text/plain"}}, right.dump());
    EXPECT_EQ(form.status, 415);
    auto session = cookie_of(co_await fixture.log_in(right));
    auto foreign = session;
    foreign.add("Sec-Fetch-Site", "cross-site");
    EXPECT_EQ((co_await fixture.send("POST", "/console/api/v1/logout", foreign)).status, 403);
    EXPECT_EQ((co_await fixture.send("POST", "/api/auth/key", foreign, R"({"name":"a"})")).status,
              401);
    EXPECT_EQ((co_await fixture.send("GET", "/api/user", session)).status, 200);
  });
}

// Otherwise a stolen session never ended: it would change to its own account once a week.
TEST(UserRoutes, AC_33_AChangeOfTheAccountDoesNotProlongTheSession) {
  with_routes([](RoutesFixture& fixture) -> Task<> {
    const auto in = co_await fixture.log_in({{"name", "bob"}, {"password", "bob's password"}});
    constexpr store::Statement kShorten{
        .name = "test.shorten_sessions",
        .sql = "UPDATE session SET created_at = created_at - $1, expires_at = expires_at - $1"};
    CO_ASSERT_OK(co_await fixture.accounts.write(
        [&](store::Connection& db) { return db.execute(kShorten, {kSessionMax - kHour}); }));
    const auto changed = co_await fixture.send(
        "POST", "/api/user/changeaccount/" + fixture.sample.acme.id, cookie_of(in));
    CO_ASSERT_EQ(changed.status, 200) << changed.body;
    const Secret token{json_of(changed)["accessToken"].get<std::string>()};
    const auto session = co_await fixture.accounts.write(
        [&](store::Connection& db) { return find_session(db, session_hash(token)); });
    CO_ASSERT_TRUE(session && *session);
    EXPECT_LE((*session)->expires_at, micros_at(wall_now()) + kHour);
    EXPECT_EQ((*session)->expires_at - (*session)->created_at, kSessionMax);
  });
}

// Another process has ended it, and this one has still cached whose it is.
TEST(UserRoutes, AC_33_AnEndedSessionDoesNotContinueInAnotherAccount) {
  with_routes([](RoutesFixture& fixture) -> Task<> {
    const auto cookie =
        cookie_of(co_await fixture.log_in({{"name", "bob"}, {"password", "bob's password"}}));
    CO_ASSERT_EQ((co_await fixture.send("GET", "/api/user", cookie)).status, 200);
    CO_ASSERT_OK(co_await fixture.accounts.write(
        [&](store::Connection& db) { return end_sessions_of(db, fixture.sample.bob.id); }));
    const auto changed =
        co_await fixture.send("POST", "/api/user/changeaccount/" + fixture.sample.acme.id, cookie);
    EXPECT_EQ(changed.status, 401) << changed.body;
    EXPECT_FALSE(changed.headers.find("Set-Cookie"));
    constexpr store::Statement kCount{.name = "test.count_sessions_of",
                                      .sql = "SELECT count(*) FROM session WHERE user_id = $1"};
    const auto left = co_await fixture.accounts.write(
        [&](store::Connection& db) { return db.run(kCount, {fixture.sample.bob.id}); });
    CO_ASSERT_TRUE(left);
    EXPECT_EQ(left->number(0, 0), 0);
  });
}

TEST(UserRoutes, ASessionChangesItsAccount) {
  with_routes([](RoutesFixture& fixture) -> Task<> {
    CO_ASSERT_OK(co_await fixture.accounts.write([&](store::Connection& db) {
      return put_member(db, fixture.sample.other.number, fixture.sample.bob.id, false);
    }));
    const auto in = co_await fixture.log_in({{"name", "bob"}, {"password", "bob's password"}});
    const auto before = cookie_of(in);
    const auto to = [](const Account& account) { return "/api/user/changeaccount/" + account.id; };
    const auto changed = co_await fixture.send("POST", to(fixture.sample.other), before);
    CO_ASSERT_EQ(changed.status, 200) << changed.body;
    EXPECT_EQ(json_of(changed)["user"]["activeAccountName"], "other");
    EXPECT_EQ(json_of(changed)["user"]["account"].size(), 2U);
    const Secret token{json_of(changed)["accessToken"].get<std::string>()};
    const auto user = json_of(co_await fixture.get("/api/user", token));
    EXPECT_EQ(user["activeAccountName"], "other");
    EXPECT_EQ(json_of(co_await fixture.send("GET", "/api/user", cookie_of(changed)))["userName"],
              "bob");
    EXPECT_EQ((co_await fixture.send("GET", "/api/user", before)).status, 401) << "the old token";
    // An account of others looks like one that does not exist.
    const auto ann = co_await fixture.log_in({{"name", "ann"}, {"password", "ann's password"}});
    EXPECT_EQ((co_await fixture.send("POST", to(fixture.sample.other), cookie_of(ann))).status,
              404);
    EXPECT_EQ(
        (co_await fixture.send("POST", "/api/user/changeaccount/0123", cookie_of(ann))).status,
        404);
    EXPECT_EQ((co_await fixture.send("POST", to(fixture.sample.acme),
                                     authorization(fixture.sample.ann_key)))
                  .status,
              403);
  });
}

TEST(UserRoutes, AnOutageIs503WithAWait) {
  with_routes([](RoutesFixture& fixture) -> Task<> {
    fixture.accounts.database.close(1s);
    const auto response = co_await fixture.get("/api/user", fixture.sample.bob_key);
    EXPECT_EQ(response.status, 503);
    EXPECT_TRUE(response.headers.find("Retry-After"));
    const auto in = co_await fixture.log_in({{"name", "bob"}, {"password", "bob's password"}});
    EXPECT_EQ(in.status, 503);
  });
}

}  // namespace
}  // namespace gitops::control_plane_server
