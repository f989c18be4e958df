#include "control-plane/accounts/audit_routes.hpp"

#include <algorithm>

#include <gmock/gmock.h>

#include "control-plane/accounts/routes_fixture.hpp"
#include "control-plane/audit/audit_log.hpp"
#include "control-plane/audit/audit_store.hpp"

namespace gitops::control_plane_server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// "action target result" of the entries, the oldest first.
Task<std::vector<std::string>> entries_of(RoutesFixture& fixture, const std::string& query = {}) {
  // A refusal is stored a little later.
  co_await fixture.audit.idle(AccountsFixture::soon());
  const auto response =
      co_await fixture.get("/console/api/v1/audit" + query, fixture.sample.ann_key);
  EXPECT_EQ(response.status, 200) << response.body;
  std::vector<std::string> out;
  for (const auto& entry : json_of(response)["entries"]) {
    out.insert(out.begin(), entry["caller"].get<std::string>() + ": " +
                                entry["action"].get<std::string>() + ": " +
                                entry["result"].get<std::string>());
  }
  co_return out;
}

TEST(AuditRoutes, ChangesAndRefusalsAreListed) {
  with_routes([](RoutesFixture& fixture) -> Task<> {
    const auto make = co_await fixture.send(
        "POST", "/api/auth/key", authorization(fixture.sample.bob_key), R"({"name":"ci"})");
    EXPECT_EQ(make.status, 200);
    EXPECT_EQ((co_await fixture.get("/api/user", fixture.sample.bob_key)).status, 200);
    EXPECT_EQ((co_await fixture.get("/console/api/v1/users", fixture.sample.bob_key)).status, 403);
    EXPECT_EQ((co_await fixture.get("/console/api/v1/audit", fixture.sample.bob_key)).status, 403);
    EXPECT_THAT(
        co_await entries_of(fixture),
        ElementsAre("bob: POST /api/auth/key: done", "bob: GET /console/api/v1/users: refused",
                    "bob: GET /console/api/v1/audit: refused"));
    EXPECT_THAT(co_await entries_of(fixture, "?result=done"),
                ElementsAre("bob: POST /api/auth/key: done"));
    const auto csv =
        co_await fixture.get("/console/api/v1/audit?format=csv", fixture.sample.ann_key);
    EXPECT_EQ(csv.headers.find("Content-Type"), "text/csv; charset=utf-8");
    EXPECT_THAT(csv.body, HasSubstr("\"POST /api/auth/key\""));
    EXPECT_THAT(csv.body, testing::Not(HasSubstr(make.body))) << "the key itself";
    EXPECT_EQ(csv.headers.find("Content-Disposition"), "attachment; filename=\"audit.csv\"");
    const auto cut =
        co_await fixture.get("/console/api/v1/audit?format=csv&limit=1", fixture.sample.ann_key);
    EXPECT_EQ(cut.headers.find("Content-Disposition"),
              "attachment; filename=\"audit-newest-1.csv\"");
    EXPECT_EQ(std::ranges::count(cut.body, '\n'), 2) << "the names and an entry: " << cut.body;
  });
}

TEST(AuditRoutes, LoginsAreEntriesWithoutPasswords) {
  with_routes([](RoutesFixture& fixture) -> Task<> {
    EXPECT_EQ((co_await fixture.log_in({{"name", "bob"}, {"password", "canary-1"}})).status, 401);
    EXPECT_EQ((co_await fixture.log_in({{"name", "bob"}, {"password", "bob's password"}})).status,
              200);
    EXPECT_THAT(
        co_await entries_of(fixture, "?nobody=true"),
        ElementsAre(": POST /console/api/v1/login: refused", ": POST /console/api/v1/login: done"));
    const auto all = co_await fixture.get("/console/api/v1/audit?nobody=true&format=csv",
                                          fixture.sample.ann_key);
    EXPECT_THAT(all.body, HasSubstr("name=bob"));
    EXPECT_THAT(all.body, testing::Not(HasSubstr("canary")));
    EXPECT_THAT(all.body, testing::Not(HasSubstr("bob's password")));
  });
}

TEST(AuditRoutes, ALogoutWithoutASessionIsNoEntry) {
  with_routes([](RoutesFixture& fixture) -> Task<> {
    const auto log_out = [&fixture](http::Headers headers) {
      return fixture.send("POST", "/console/api/v1/logout", std::move(headers));
    };
    EXPECT_EQ((co_await log_out({})).status, 200);
    EXPECT_EQ((co_await log_out({{"Authorization", std::string(43, 'x')}})).status, 200);
    const auto in = co_await fixture.log_in({{"name", "bob"}, {"password", "bob's password"}});
    EXPECT_EQ((co_await log_out(cookie_of(in))).status, 200);
    EXPECT_EQ((co_await log_out(cookie_of(in))).status, 200);
    EXPECT_THAT(
        co_await entries_of(fixture, "?nobody=true"),
        ElementsAre(": POST /console/api/v1/login: done", ": POST /console/api/v1/logout: done"));
  });
}

TEST(AuditRoutes, AC_34_OtherAccountsAreInvisibleAndWrongParametersNamed) {
  with_routes([](RoutesFixture& fixture) -> Task<> {
    EXPECT_EQ((co_await fixture.send("POST", "/api/auth/key", authorization(fixture.sample.eve_key),
                                     R"({"name":"theirs"})"))
                  .status,
              200);
    EXPECT_THAT(co_await entries_of(fixture), ElementsAre());
    for (const auto* query : {"?from=yesterday", "?limit=0", "?before=x", "?result=maybe"}) {
      const auto wrong = co_await fixture.get(std::string("/console/api/v1/audit") + query,
                                              fixture.sample.ann_key);
      EXPECT_EQ(wrong.status, 400) << query;
    }
  });
}

}  // namespace
}  // namespace gitops::control_plane_server
