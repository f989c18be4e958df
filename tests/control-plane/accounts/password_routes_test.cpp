#include "control-plane/accounts/password_routes.hpp"

#include <gmock/gmock.h>

#include "control-plane/accounts/routes_fixture.hpp"

namespace gitops::control_plane_server {
namespace {

using testing::HasSubstr;

http::Headers with_json(http::Headers headers) {
  headers.add("Content-Type", "application/json");
  return headers;
}

Task<http::Headers> logged_in(RoutesFixture& fixture, const char* name,
                              const std::string& password) {
  const auto response = co_await fixture.log_in({{"name", name}, {"password", password}});
  EXPECT_EQ(response.status, 200) << response.body;
  co_return cookie_of(response);
}

Task<int> status_with(RoutesFixture& fixture, const http::Headers& credential) {
  co_return (co_await fixture.send("GET", "/api/user", credential)).status;
}

Task<http::Response> change(RoutesFixture& fixture, const http::Headers& credential, Json body) {
  co_return co_await fixture.send("POST", "/console/api/v1/password", with_json(credential),
                                  body.dump());
}

TEST(PasswordRoutes, AUserChangesItsPasswordAndOtherSessionsEnd) {
  with_routes([](RoutesFixture& fixture) -> Task<> {
    const auto here = co_await logged_in(fixture, "bob", "bob's password");
    const auto elsewhere = co_await logged_in(fixture, "bob", "bob's password");
    EXPECT_EQ(co_await status_with(fixture, elsewhere), 200);
    const auto changed = co_await change(
        fixture, here, {{"password", "bob's password"}, {"newPassword", "a new password"}});
    EXPECT_EQ(changed.status, 200) << changed.body;
    // This session goes on under the new cookie.
    EXPECT_EQ(co_await status_with(fixture, cookie_of(changed)), 200);
    EXPECT_EQ(co_await status_with(fixture, here), 401);
    EXPECT_EQ(co_await status_with(fixture, elsewhere), 401);
    // Keys stay.
    EXPECT_EQ((co_await fixture.get("/api/user", fixture.sample.bob_key)).status, 200);
    EXPECT_EQ((co_await fixture.log_in({{"name", "bob"}, {"password", "bob's password"}})).status,
              401);
    EXPECT_EQ((co_await fixture.log_in({{"name", "bob"}, {"password", "a new password"}})).status,
              200);
  });
}

TEST(PasswordRoutes, AC_34_ThePresentPasswordIsNeeded) {
  with_routes([](RoutesFixture& fixture) -> Task<> {
    const auto session = co_await logged_in(fixture, "bob", "bob's password");
    const Json wrong{{"password", "wrong"}, {"newPassword", "a new password"}};
    const auto refused = co_await change(fixture, session, wrong);
    EXPECT_EQ(refused.status, 403);
    EXPECT_EQ(json_of(refused)["message"], "The present password is wrong.");
    const auto short_one = co_await change(
        fixture, session, {{"password", "bob's password"}, {"newPassword", "short"}});
    EXPECT_EQ(short_one.status, 400);
    EXPECT_EQ((co_await change(fixture, authorization(fixture.sample.bob_key), wrong)).status, 403);
    EXPECT_EQ((co_await change(fixture, authorization(fixture.sample.prod_token), wrong)).status,
              403);
    // The session is as before.
    EXPECT_EQ(co_await status_with(fixture, session), 200);
  });
}

TEST(PasswordRoutes, AC_35_GuessesOfThePresentPasswordAreLimited) {
  with_routes([](RoutesFixture& fixture) -> Task<> {
    const auto session = co_await logged_in(fixture, "bob", "bob's password");
    int status = 0;
    for (int i = 0; i < 30 && status != 429; ++i) {
      status = (co_await change(fixture, session,
                                {{"password", "wrong"}, {"newPassword", "a new password"}}))
                   .status;
    }
    EXPECT_EQ(status, 429);
  });
}

TEST(PasswordRoutes, AnAdministratorResetsAPassword) {
  with_routes([](RoutesFixture& fixture) -> Task<> {
    const auto bob = co_await logged_in(fixture, "bob", "bob's password");
    const auto path = "/console/api/v1/users/" + fixture.sample.bob.id + "/password";
    const auto headers = with_json(authorization(fixture.sample.ann_key));
    const auto generated = co_await fixture.send("PUT", path, headers, "{}");
    EXPECT_EQ(generated.status, 200) << generated.body;
    const auto password = json_of(generated)["password"].get<std::string>();
    EXPECT_EQ(password.size(), 26U);
    EXPECT_EQ(co_await status_with(fixture, bob), 401);
    EXPECT_EQ((co_await fixture.log_in({{"name", "bob"}, {"password", password}})).status, 200);
    EXPECT_FALSE(fixture.accounts.log.text().contains(password));

    const auto given =
        co_await fixture.send("PUT", path, headers, R"({"password":"chosen by ann"})");
    EXPECT_EQ(given.status, 200);
    EXPECT_FALSE(json_of(given).contains("password"));
    EXPECT_EQ((co_await fixture.log_in({{"name", "bob"}, {"password", "chosen by ann"}})).status,
              200);
    EXPECT_EQ((co_await fixture.send("PUT", path, headers, R"({"password":"short"})")).status, 400);
  });
}

TEST(PasswordRoutes, ADisabledUserLosesSessionsAndKeysAtOnce) {
  with_routes([](RoutesFixture& fixture) -> Task<> {
    const auto bob = co_await logged_in(fixture, "bob", "bob's password");
    EXPECT_EQ(co_await status_with(fixture, bob), 200);
    EXPECT_EQ((co_await fixture.get("/api/user", fixture.sample.bob_key)).status, 200);
    const auto set = [&fixture](bool is_disabled) {
      return fixture.send("PATCH", "/console/api/v1/users/" + fixture.sample.bob.id,
                          with_json(authorization(fixture.sample.ann_key)),
                          Json{{"disabled", is_disabled}}.dump());
    };
    EXPECT_EQ((co_await set(true)).status, 200);
    EXPECT_EQ(co_await status_with(fixture, bob), 401);
    EXPECT_EQ((co_await fixture.get("/api/user", fixture.sample.bob_key)).status, 401);
    EXPECT_EQ((co_await fixture.log_in({{"name", "bob"}, {"password", "bob's password"}})).status,
              401);
    const auto list =
        json_of(co_await fixture.get("/console/api/v1/users", fixture.sample.ann_key));
    CO_ASSERT_EQ(list.size(), 2U);
    EXPECT_EQ(list[1]["userName"], "bob");
    EXPECT_EQ(list[1]["disabled"], true);
    // The key is valid again with its user, the session is not.
    EXPECT_EQ((co_await set(false)).status, 200);
    EXPECT_EQ((co_await fixture.get("/api/user", fixture.sample.bob_key)).status, 200);
    EXPECT_EQ(co_await status_with(fixture, bob), 401);
  });
}

TEST(PasswordRoutes, AC_34_OnlyAdministratorsOfAllTheUsersAccountsManageIt) {
  with_routes([](RoutesFixture& fixture) -> Task<> {
    const auto& sample = fixture.sample;
    const auto reset = [&](const Secret& token, const std::string& user) {
      return fixture.send("PUT", "/console/api/v1/users/" + user + "/password",
                          with_json(authorization(token)), R"({"password":"chosen by another"})");
    };
    EXPECT_EQ((co_await reset(sample.bob_key, sample.ann.id)).status, 403);
    EXPECT_EQ((co_await reset(sample.prod_token, sample.bob.id)).status, 403);
    EXPECT_EQ((co_await fixture.get("/console/api/v1/users", sample.bob_key)).status, 403);
    // An administrator of one account, who does not administer the installation.
    CO_ASSERT_OK(co_await fixture.accounts.write([&](store::Connection& db) {
      return put_member(db, sample.other.number, sample.eve.id, true);
    }));
    fixture.authenticator.forget("");
    EXPECT_EQ((co_await reset(sample.eve_key, sample.bob.id)).status, 404);
    CO_ASSERT_OK(co_await fixture.accounts.write([&](store::Connection& db) {
      return put_member(db, sample.other.number, sample.bob.id, false);
    }));
    const auto shared = co_await reset(sample.eve_key, sample.bob.id);
    EXPECT_EQ(shared.status, 403);
    EXPECT_THAT(shared.body, HasSubstr("belongs to other accounts"));
    // The administrator of the installation may.
    EXPECT_EQ((co_await reset(sample.ann_key, sample.bob.id)).status, 200);
    const auto own =
        co_await fixture.send("PATCH", "/console/api/v1/users/" + sample.ann.id,
                              with_json(authorization(sample.ann_key)), R"({"disabled":true})");
    EXPECT_EQ(own.status, 400);
  });
}

}  // namespace
}  // namespace gitops::control_plane_server
