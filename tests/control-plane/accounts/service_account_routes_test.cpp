#include "control-plane/accounts/service_account_routes.hpp"

#include <tuple>

#include <gmock/gmock.h>

#include "control-plane/accounts/revocations.hpp"
#include "control-plane/accounts/routes_fixture.hpp"

namespace gitops::control_plane_server {
namespace {

using testing::HasSubstr;

constexpr const char* kPath = "/api/service-users";

Task<std::string> made(RoutesFixture& fixture, Json body) {
  const auto response =
      co_await fixture.send("POST", kPath, authorization(fixture.sample.ann_key), body.dump());
  EXPECT_EQ(response.status, 200) << response.body;
  co_return json_of(response)["_id"].get<std::string>();
}

Task<Secret> key_of(RoutesFixture& fixture, std::string id) {
  const auto response =
      co_await fixture.send("POST", "/api/auth/key/service-user/" + id,
                            authorization(fixture.sample.ann_key), R"({"name":"terraform"})");
  EXPECT_EQ(response.status, 200) << response.body;
  co_return Secret(response.body);
}

Task<Json> changed(RoutesFixture& fixture, const std::string& id, Json body) {
  const auto response = co_await fixture.send("PATCH", kPath + ("/" + id),
                                              authorization(fixture.sample.ann_key), body.dump());
  EXPECT_EQ(response.status, 200) << response.body;
  co_return json_of(response);
}

Task<std::string> team_named(RoutesFixture& fixture, std::string name) {
  const auto teams = json_of(co_await fixture.get("/api/team", fixture.sample.ann_key));
  for (const auto& team : teams) {
    if (team["name"] == name) co_return team["_id"].get<std::string>();
  }
  co_return "";
}

// What Terraform sends for a service account, and what it reads again.
TEST(ServiceAccountRoutes, OneIsMadeListedChangedAndRemoved) {
  with_routes([](RoutesFixture& fixture) -> Task<> {
    const auto users = co_await team_named(fixture, "users");
    const auto id = co_await made(
        fixture,
        {{"userName", "terraform"}, {"teamIds", Json::array({users})}, {"assignAdminRole", true}});
    const auto one = json_of(co_await fixture.get(kPath + ("/" + id), fixture.sample.ann_key));
    EXPECT_EQ(one["_id"], id);
    EXPECT_EQ(one["userName"], "terraform");
    EXPECT_EQ(one["teams"], Json::array({Json{{"_id", users}}}));
    EXPECT_EQ(one["roles"], Json::array({"User", "Admin"}));
    EXPECT_EQ(one["enabled"], true);
    EXPECT_EQ(json_of(co_await fixture.get(kPath, fixture.sample.ann_key)), Json::array({one}));
    // Terraform leaves out what is empty or false.
    const auto plain = co_await changed(fixture, id, {{"_id", id}, {"userName", "ci"}});
    EXPECT_EQ(plain["userName"], "ci");
    EXPECT_EQ(plain["teams"], Json::array());
    EXPECT_EQ(plain["roles"], Json::array({"User"}));
    // What changes only whether it is enabled leaves the rest alone.
    co_await changed(fixture, id, {{"userName", "ci"}, {"teamIds", Json::array({users})}});
    const auto disabled = co_await changed(fixture, id, {{"enabled", false}});
    EXPECT_EQ(disabled["enabled"], false);
    EXPECT_EQ(disabled["teams"].size(), 1U);
    const auto gone =
        co_await fixture.send("DELETE", kPath + ("/" + id), authorization(fixture.sample.ann_key));
    EXPECT_EQ(gone.status, 200);
    EXPECT_EQ(json_of(co_await fixture.get(kPath, fixture.sample.ann_key)), Json::array());
    EXPECT_EQ((co_await fixture.get(kPath + ("/" + id), fixture.sample.ann_key)).status, 404);
  });
}

TEST(ServiceAccountRoutes, ItsKeyActsForItAndIsNoUsers) {
  with_routes([](RoutesFixture& fixture) -> Task<> {
    const auto id = co_await made(fixture, {{"userName", "ci"}});
    const auto key = co_await key_of(fixture, id);
    const auto user = json_of(co_await fixture.get("/api/user", key));
    EXPECT_EQ(user["_id"], id);
    EXPECT_EQ(user["userName"], "ci");
    EXPECT_EQ(user["activeAccountName"], "acme");
    CO_ASSERT_EQ(user["account"].size(), 1U);
    EXPECT_EQ(user["account"][0]["admins"], Json::array({fixture.sample.ann.id}));
    EXPECT_EQ(user["roles"], Json::array({"User"}));
    // A stolen key makes no others, and gets no session.
    for (const auto& [method, path, body] :
         {std::tuple("POST", std::string("/api/auth/key"), R"({"name":"more"})"),
          std::tuple("POST", "/api/auth/key/service-user/" + id, R"({"name":"more"})"),
          std::tuple("GET", std::string(kPath), ""),
          std::tuple("POST", std::string("/console/api/v1/password"),
                     R"({"password":"a","newPassword":"a long password"})"),
          std::tuple("POST", "/api/user/changeaccount/" + fixture.sample.acme.id, "")}) {
      EXPECT_EQ((co_await fixture.send(method, path, authorization(key), body)).status, 403)
          << path;
    }
    EXPECT_EQ((co_await fixture.log_in({{"name", "ci"}, {"password", ""}})).status, 401);
  });
}

TEST(ServiceAccountRoutes, AnAdministratorAmongThemAdministers) {
  with_routes([](RoutesFixture& fixture) -> Task<> {
    const auto id = co_await made(fixture, {{"userName", "tf"}, {"assignAdminRole", true}});
    const auto key = co_await key_of(fixture, id);
    EXPECT_EQ((co_await fixture.get(kPath, key)).status, 200);
    const auto user = json_of(co_await fixture.get("/api/user", key));
    EXPECT_EQ(user["account"][0]["admins"], Json::array({fixture.sample.ann.id, id}))
        << "runtimes ask whether the caller is one of the administrators";
    EXPECT_EQ(user["roles"], Json::array({"User"})) << "of the account, not of the installation";
    // The role ends at once.
    co_await changed(fixture, id, {{"userName", "tf"}});
    EXPECT_EQ((co_await fixture.get(kPath, key)).status, 403);
  });
}

TEST(ServiceAccountRoutes, ADisabledOneHasNoValidKeyAtOnceAndEverywhere) {
  with_routes([](RoutesFixture& fixture) -> Task<> {
    const auto id = co_await made(fixture, {{"userName", "ci"}});
    const auto key = co_await key_of(fixture, id);
    EXPECT_EQ((co_await fixture.get("/api/team", key)).status, 200);
    co_await changed(fixture, id, {{"enabled", false}});
    EXPECT_EQ((co_await fixture.get("/api/team", key)).status, 401);
    auto told = co_await fixture.accounts.write(
        [](store::Connection& db) { return revocations_since(db, micros_at(wall_now()) - kHour); });
    CO_ASSERT_OK(told);
    CO_ASSERT_EQ(told->size(), 1U);
    EXPECT_EQ(told->front().subject, id) << "other processes evict it from their caches";
    co_await changed(fixture, id, {{"enabled", true}});
    EXPECT_EQ((co_await fixture.get("/api/team", key)).status, 200);
    EXPECT_EQ(
        (co_await fixture.send("DELETE", kPath + ("/" + id), authorization(fixture.sample.ann_key)))
            .status,
        200);
    EXPECT_EQ((co_await fixture.get("/api/team", key)).status, 401);
  });
}

TEST(ServiceAccountRoutes, ItsKeysAreListedChangedAndRevoked) {
  with_routes([](RoutesFixture& fixture) -> Task<> {
    const auto id = co_await made(fixture, {{"userName", "ci"}});
    const auto other = co_await made(fixture, {{"userName", "cd"}});
    const auto key = co_await key_of(fixture, id);
    const auto key_id = std::string(key.reveal().substr(0, 24));
    const auto keys = "/api/auth/key/service-user/" + id;
    const auto admin = authorization(fixture.sample.ann_key);
    const auto list = json_of(co_await fixture.get(keys, fixture.sample.ann_key));
    CO_ASSERT_EQ(list.size(), 1U);
    EXPECT_EQ(list[0]["_id"], key_id);
    EXPECT_EQ(list[0]["subject"], (Json{{"type", "service-user"}, {"ref", id}}));
    EXPECT_FALSE(list.dump().contains(key.reveal().substr(31)));
    const auto path = keys + "/" + key_id;
    const auto named = co_await fixture.send("PATCH", path, admin, R"({"name":"new"})");
    EXPECT_EQ(json_of(named)["name"], "new");
    EXPECT_EQ(json_of(co_await fixture.get(path, fixture.sample.ann_key))["name"], "new");
    // Neither a user's key nor that of another service account is below this one.
    for (const auto& wrong :
         {"/api/auth/key/service-user/" + other + "/" + key_id,
          keys + "/" + std::string(fixture.sample.bob_key.reveal().substr(0, 24)),
          "/api/auth/key/service-user/" + fixture.sample.bob.id + "/" +
              std::string(fixture.sample.bob_key.reveal().substr(0, 24))}) {
      EXPECT_EQ((co_await fixture.send("DELETE", wrong, admin)).status, 404) << wrong;
    }
    EXPECT_EQ((co_await fixture.send("DELETE", path, admin)).status, 200);
    EXPECT_EQ((co_await fixture.get("/api/team", key)).status, 401);
  });
}

TEST(ServiceAccountRoutes, TheirTeamsAreThoseThatAreGiven) {
  with_routes([](RoutesFixture& fixture) -> Task<> {
    const auto users = co_await team_named(fixture, "users");
    const auto id = co_await made(fixture, {{"userName", "ci"}, {"teamIds", Json::array({users})}});
    const auto team_users = [&](const Secret& token) -> Task<Json> {
      const auto teams = json_of(co_await fixture.get("/api/team", token));
      co_return teams[1];
    };
    const auto seen = co_await team_users(fixture.sample.ann_key);
    EXPECT_EQ(seen["users"].size(), 2U) << "Terraform compares these with people";
    CO_ASSERT_EQ(seen["serviceAccounts"].size(), 1U);
    EXPECT_EQ(seen["serviceAccounts"][0]["_id"], id);
    // A runtime evaluates rules by the members of teams.
    const auto told = co_await team_users(fixture.sample.prod_token);
    EXPECT_EQ(told["users"].size(), 3U);
    const auto missing = co_await fixture.send("POST", kPath, authorization(fixture.sample.ann_key),
                                               R"({"userName":"x","teamIds":["0123"]})");
    EXPECT_EQ(missing.status, 404);
  });
}

TEST(ServiceAccountRoutes, WrongBodiesAreNamed) {
  with_routes([](RoutesFixture& fixture) -> Task<> {
    const auto admin = authorization(fixture.sample.ann_key);
    for (const auto* body :
         {"", "[]", "{}", R"({"userName":1})", R"({"userName":""})", R"({"userName":"a\u0007"})",
          R"({"userName":"a","teamIds":"x"})", R"({"userName":"a","teamIds":[1]})",
          R"({"userName":"a","assignAdminRole":"yes"})", R"({"userName":"a","enabled":1})"}) {
      EXPECT_EQ((co_await fixture.send("POST", kPath, admin, body)).status, 400) << body;
    }
    const auto id = co_await made(fixture, {{"userName", "ci"}});
    for (const auto* body : {"{}", R"({"teamIds":[]})", R"({"enabled":"no"})"}) {
      EXPECT_EQ((co_await fixture.send("PATCH", kPath + ("/" + id), admin, body)).status, 400)
          << body;
    }
    const auto twice = co_await fixture.send("POST", kPath, admin, R"({"userName":"ci"})");
    EXPECT_EQ(twice.status, 409);
  });
}

TEST(ServiceAccountRoutes, AC_47_ThoseOfAnotherAccountAreAbsent) {
  with_routes([](RoutesFixture& fixture) -> Task<> {
    CO_ASSERT_OK(co_await fixture.accounts.write([&](store::Connection& db) {
      return put_member(db, fixture.sample.other.number, fixture.sample.eve.id, true);
    }));
    fixture.authenticator.forget("");
    const auto id = co_await made(fixture, {{"userName", "ci"}});
    const auto key = co_await key_of(fixture, id);
    const auto eve = authorization(fixture.sample.eve_key);
    const auto keys = "/api/auth/key/service-user/" + id;
    for (const auto& [method, path, body] :
         {std::tuple("GET", kPath + ("/" + id), ""),
          std::tuple("PATCH", kPath + ("/" + id), R"({"enabled":false})"),
          std::tuple("DELETE", kPath + ("/" + id), ""), std::tuple("GET", keys, ""),
          std::tuple("POST", keys, R"({"name":"mine"})")}) {
      EXPECT_EQ((co_await fixture.send(method, path, eve, body)).status, 404) << method << path;
    }
    // The name is free in each account.
    EXPECT_EQ((co_await fixture.send("POST", kPath, eve, R"({"userName":"ci"})")).status, 200);
    EXPECT_EQ((co_await fixture.get("/api/team", key)).status, 200);
  });
}

TEST(ServiceAccountRoutes, TheAuditLogSaysWhoActedAndOnWhat) {
  with_routes([](RoutesFixture& fixture) -> Task<> {
    const auto id = co_await made(fixture, {{"userName", "tf"}, {"assignAdminRole", true}});
    const auto key = co_await key_of(fixture, id);
    EXPECT_EQ(
        (co_await fixture.send("POST", kPath, authorization(key), R"({"userName":"b"})")).status,
        200);
    co_await fixture.audit.idle(AccountsFixture::soon());
    const auto log =
        co_await fixture.get("/console/api/v1/audit?format=csv", fixture.sample.ann_key);
    EXPECT_THAT(log.body, HasSubstr("\"service account tf\""));
    EXPECT_THAT(log.body, HasSubstr("name=tf id=" + id));
    EXPECT_THAT(log.body, HasSubstr("name=terraform id="));
    EXPECT_FALSE(log.body.contains(key.reveal().substr(31)));
  });
}

}  // namespace
}  // namespace gitops::control_plane_server
