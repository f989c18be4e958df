#include "control-plane/accounts/invitation_routes.hpp"

#include <gmock/gmock.h>

#include "control-plane/accounts/invitations.hpp"
#include "control-plane/accounts/routes_fixture.hpp"

namespace gitops::control_plane_server {
namespace {

using testing::HasSubstr;

constexpr const char* kPath = "/console/api/v1/invitation";

Task<IssuedInvitation> invited(RoutesFixture& fixture, const Account& account, std::string email,
                               Micros ago = 0) {
  auto issued = co_await fixture.accounts.write(
      [&account, email, now = micros_at(wall_now()) - ago](store::Connection& db) {
        return invite(db, account.number, {.email = email}, now);
      });
  co_return must(std::move(issued));
}

Task<http::Response> shown(RoutesFixture& fixture, const Secret& token) {
  co_return co_await fixture.send("GET", kPath + ("?token=" + std::string(token.reveal())), {});
}

Task<http::Response> accepted(RoutesFixture& fixture, const Secret& token, std::string name,
                              http::Headers headers = {}) {
  headers.add("Content-Type", "application/json");
  co_return co_await fixture.send(
      "POST", kPath, std::move(headers),
      Json{{"token", token.reveal()}, {"name", name}, {"password", "zoe's password"}}.dump());
}

TEST(InvitationRoutes, APersonBecomesAUserWithASession) {
  with_routes([](RoutesFixture& fixture) -> Task<> {
    const auto issued = co_await invited(fixture, fixture.sample.acme, "zoe@acme.example");
    const auto seen = co_await shown(fixture, issued.token);
    EXPECT_EQ(seen.status, 200);
    EXPECT_EQ(json_of(seen)["account"], "acme");
    EXPECT_EQ(json_of(seen)["email"], "zoe@acme.example");
    const auto in = co_await accepted(fixture, issued.token, "zoe");
    CO_ASSERT_EQ(in.status, 200) << in.body;
    const auto user = json_of(co_await fixture.send("GET", "/api/user", cookie_of(in)));
    EXPECT_EQ(user["_id"], issued.invitation.user_id);
    EXPECT_EQ(user["userName"], "zoe");
    EXPECT_EQ(user["activeAccountName"], "acme");
    EXPECT_EQ((co_await fixture.log_in({{"name", "zoe"}, {"password", "zoe's password"}})).status,
              200);
    EXPECT_EQ((co_await accepted(fixture, issued.token, "zed")).status, 404) << "used";
    const auto log = fixture.accounts.log.text();
    EXPECT_FALSE(log.contains(issued.token.reveal()));
    EXPECT_FALSE(log.contains("zoe's password"));
  });
}

TEST(InvitationRoutes, AC_50_WhatIsNotValidLooksTheSame) {
  with_routes([](RoutesFixture& fixture) -> Task<> {
    const auto& acme = fixture.sample.acme;
    const auto used = co_await invited(fixture, acme, "a@acme.example");
    EXPECT_EQ((co_await accepted(fixture, used.token, "amy")).status, 200);
    const auto expired = co_await invited(fixture, acme, "b@acme.example", kInvitationLife);
    const auto replaced = co_await invited(fixture, acme, "c@acme.example");
    co_await invited(fixture, acme, "C@acme.example");
    const auto withdrawn = co_await invited(fixture, acme, "d@acme.example");
    EXPECT_EQ((co_await fixture.send(
                   "DELETE", "/api/accounts/" + acme.id + "/" + withdrawn.invitation.user_id,
                   authorization(fixture.sample.ann_key)))
                  .status,
              200);
    const Secret unknown(std::string(43, 'a'));
    const auto first = co_await shown(fixture, unknown);
    EXPECT_EQ(first.status, 404);
    for (const auto* token :
         {&unknown, &used.token, &expired.token, &replaced.token, &withdrawn.token}) {
      EXPECT_EQ((co_await shown(fixture, *token)).body, first.body);
      const auto refused = co_await accepted(fixture, *token, "eve");
      EXPECT_EQ(refused.status, 404);
      EXPECT_EQ(refused.body, first.body) << "not even that the name is taken";
      EXPECT_FALSE(refused.headers.find("Set-Cookie"));
    }
  });
}

TEST(InvitationRoutes, AC_51_AttemptsOfAnAddressAreLimited) {
  with_routes([](RoutesFixture& fixture) -> Task<> {
    const Secret unknown(std::string(43, 'a'));
    int refused = 0;
    http::Response last;
    for (int i = 0; i < 30 && last.status != 429; ++i) {
      last = co_await shown(fixture, unknown);
      if (last.status == 404) ++refused;
    }
    EXPECT_EQ(last.status, 429);
    EXPECT_TRUE(last.headers.find("Retry-After"));
    EXPECT_EQ(refused, 20);
    EXPECT_EQ((co_await accepted(fixture, unknown, "x")).status, 429);
  });
}

TEST(InvitationRoutes, ASignedInUserJoinsASecondAccount) {
  with_routes([](RoutesFixture& fixture) -> Task<> {
    const auto in = co_await fixture.log_in({{"name", "bob"}, {"password", "bob's password"}});
    const auto session = cookie_of(in);
    const auto issued = co_await invited(fixture, fixture.sample.other, "bob@other.example");
    const auto joined = co_await accepted(fixture, issued.token, "", session);
    CO_ASSERT_EQ(joined.status, 200) << joined.body;
    EXPECT_EQ(json_of(joined)["_id"], fixture.sample.bob.id);
    EXPECT_FALSE(joined.headers.find("Set-Cookie")) << "the session goes on";
    const auto user = json_of(co_await fixture.send("GET", "/api/user", session));
    EXPECT_EQ(user["account"].size(), 2U);
    EXPECT_EQ(user["activeAccountName"], "acme");
    // The key stays bound to its account.
    EXPECT_EQ(
        json_of(co_await fixture.get("/api/user", fixture.sample.bob_key))["activeAccountName"],
        "acme");
    const auto again = co_await invited(fixture, fixture.sample.other, "bob2@other.example");
    EXPECT_EQ((co_await accepted(fixture, again.token, "", session)).status, 409);
    EXPECT_EQ((co_await shown(fixture, again.token)).status, 200) << "not used up";
  });
}

TEST(InvitationRoutes, AC_49_OnlyAPersonOnThisSiteAccepts) {
  with_routes([](RoutesFixture& fixture) -> Task<> {
    const auto issued = co_await invited(fixture, fixture.sample.acme, "zoe@acme.example");
    EXPECT_EQ(
        (co_await accepted(fixture, issued.token, "zoe", {{"Origin", "https://evil.example"}}))
            .status,
        403);
    EXPECT_EQ((co_await accepted(fixture, issued.token, "zoe", {{"Sec-Fetch-Site", "cross-site"}}))
                  .status,
              403);
    const auto form = co_await fixture.send("POST", kPath, {{"Content-Type", "text/plain"}},
                                            Json{{"token", issued.token.reveal()}}.dump());
    EXPECT_EQ(form.status, 415);
    EXPECT_EQ(
        (co_await accepted(fixture, issued.token, "zoe", authorization(fixture.sample.bob_key)))
            .status,
        403)
        << "a key signs nobody in";
    EXPECT_EQ((co_await shown(fixture, issued.token)).status, 200) << "not used up";
  });
}

TEST(InvitationRoutes, AWrongNameOrPasswordLeavesItValid) {
  with_routes([](RoutesFixture& fixture) -> Task<> {
    const auto issued = co_await invited(fixture, fixture.sample.acme, "zoe@acme.example");
    const auto send = [&](Json body) {
      body["token"] = issued.token.reveal();
      return fixture.send("POST", kPath, {{"Content-Type", "application/json"}}, body.dump());
    };
    EXPECT_EQ((co_await send({{"name", "zoe"}, {"password", "short"}})).status, 400);
    EXPECT_EQ((co_await send({{"name", "runtime prod"}, {"password", "a long password"}})).status,
              400);
    EXPECT_EQ((co_await send({{"name", "bob"}, {"password", "a long password"}})).status, 409);
    EXPECT_EQ((co_await send({{"name", "zoe"}, {"password", "a long password"}})).status, 200);
    co_await fixture.audit.idle(AccountsFixture::soon());
    const auto log =
        co_await fixture.get("/console/api/v1/audit?format=csv", fixture.sample.ann_key);
    EXPECT_THAT(log.body, HasSubstr("\"zoe\""));
    EXPECT_THAT(log.body, HasSubstr("POST /console/api/v1/invitation"));
    EXPECT_FALSE(log.body.contains(issued.token.reveal()));
  });
}

}  // namespace
}  // namespace gitops::control_plane_server
