// Teams, members and pending users of an account, as Terraform manages them.
#include "control-plane/accounts/member_routes.hpp"

#include <tuple>

#include <gmock/gmock.h>

#include "common/core/task_group.hpp"
#include "control-plane/accounts/invitations.hpp"
#include "control-plane/accounts/routes_fixture.hpp"
#include "support/wait.hpp"

namespace gitops::control_plane_server {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

struct Admin {
  RoutesFixture& fixture;
  const Secret& key = fixture.sample.ann_key;
  std::string account = "/api/accounts/" + fixture.sample.acme.id;

  Task<http::Response> send(std::string method, std::string path, std::string body = {}) {
    co_return co_await fixture.send(std::move(method), std::move(path), authorization(key),
                                    std::move(body));
  }
  Task<Json> done(std::string method, std::string path, std::string body = {}) {
    const auto response = co_await send(std::move(method), path, std::move(body));
    EXPECT_EQ(response.status, 200) << path << response.body;
    co_return json_of(response);
  }
  Task<int> status(std::string method, std::string path, std::string body = {}) {
    co_return (co_await send(std::move(method), std::move(path), std::move(body))).status;
  }
  Task<Json> user(std::string id) {
    for (const auto& one : co_await done("GET", account + "/users")) {
      if (one["_id"] == id) co_return one;
    }
    co_return Json();
  }
};

TEST(TeamRoutes, ATeamIsMadeRenamedFilledAndRemoved) {
  with_routes([](RoutesFixture& fixture) -> Task<> {
    Admin admin{fixture};
    const auto& bob = fixture.sample.bob.id;
    const auto made =
        co_await admin.done("POST", "/api/team", Json{{"name", "web"}, {"users", {bob}}}.dump());
    EXPECT_EQ(made["name"], "web");
    EXPECT_EQ(made["users"], Json::array({bob}));
    const auto path = "/api/team/" + made["_id"].get<std::string>();
    const auto team = [&]() -> Task<Json> {
      for (const auto& one : co_await admin.done("GET", "/api/team")) {
        if (one["_id"] == made["_id"]) co_return one;
      }
      co_return Json();
    };
    CO_ASSERT_EQ((co_await team())["users"].size(), 1U);
    co_await admin.done("PUT", path + "/" + bob + "/deleteUserFromTeam");
    EXPECT_EQ((co_await team())["users"].size(), 0U);
    co_await admin.done("PUT", path + "/" + bob + "/assignUserToTeam");
    EXPECT_EQ((co_await team())["users"][0]["_id"], bob);
    EXPECT_EQ(
        co_await admin.status("PUT", path + "/" + fixture.sample.eve.id + "/assignUserToTeam"), 404)
        << "no member";
    co_await admin.done("PUT", path + "/renameTeam", R"({"name":"shop"})");
    EXPECT_EQ((co_await team())["name"], "shop");
    for (const auto* name : {"", "Shop", "a b", "a_b"}) {
      EXPECT_EQ(co_await admin.status("PUT", path + "/renameTeam", Json{{"name", name}}.dump()),
                400)
          << name;
      EXPECT_EQ(co_await admin.status("POST", "/api/team", Json{{"name", name}}.dump()), 400);
    }
    EXPECT_EQ(co_await admin.status("POST", "/api/team", R"({"name":"shop"})"), 409);
    co_await admin.done("DELETE", path);
    EXPECT_EQ(co_await team(), Json());
    EXPECT_EQ(co_await admin.status("DELETE", path), 404);
  });
}

TEST(TeamRoutes, BuiltInTeamsFollowTheMembers) {
  with_routes([](RoutesFixture& fixture) -> Task<> {
    Admin admin{fixture};
    for (const auto& team : co_await admin.done("GET", "/api/team")) {
      const auto path = "/api/team/" + team["_id"].get<std::string>();
      EXPECT_EQ(co_await admin.status("DELETE", path), 400);
      EXPECT_EQ(co_await admin.status("PUT", path + "/renameTeam", R"({"name":"x"})"), 400);
      EXPECT_EQ(
          co_await admin.status("PUT", path + "/" + fixture.sample.bob.id + "/assignUserToTeam"),
          400);
    }
    const auto refused = co_await admin.send("GET", "/api/team/group/synchronize/name/a/type/okta");
    EXPECT_EQ(refused.status, 400);
    EXPECT_THAT(refused.body, HasSubstr("not synchronised"));
  });
}

TEST(MemberRoutes, AUserIsInvitedAndListedAsPending) {
  with_routes([](RoutesFixture& fixture) -> Task<> {
    Admin admin{fixture};
    const auto added = co_await admin.done("POST", admin.account + "/adduser",
                                           R"({"userDetails":"zoe@acme.example"})");
    EXPECT_EQ(added["status"], "pending");
    EXPECT_EQ(added["email"], "zoe@acme.example");
    EXPECT_THAT(added["inviteUrl"].get<std::string>(),
                StartsWith("https://console.example/invitation?token="));
    const auto id = added["_id"].get<std::string>();
    const auto listed = co_await admin.user(id);
    EXPECT_EQ(listed["status"], "pending");
    EXPECT_FALSE(listed.contains("inviteUrl")) << "shown once";
    EXPECT_EQ((co_await admin.user(fixture.sample.bob.id))["status"], "active");
    // What Terraform does next.
    co_await admin.done("POST", admin.account + "/" + id + "/admin");
    EXPECT_EQ((co_await admin.user(id))["isAdmin"], true);
    co_await admin.done("DELETE", admin.account + "/" + id + "/admin");
    EXPECT_EQ((co_await admin.user(id))["isAdmin"], false);
    const auto changed = co_await admin.done("POST", admin.account + "/" + id + "/updateuser",
                                             R"({"userName":"zoe","email":"z@acme.example"})");
    EXPECT_EQ(changed["email"], "z@acme.example");
    EXPECT_NE(changed["inviteUrl"], added["inviteUrl"]);
    co_await admin.done("DELETE", admin.account + "/" + id);
    EXPECT_EQ(co_await admin.user(id), Json());
    EXPECT_EQ(co_await admin.status("DELETE", admin.account + "/" + id), 404);
    for (const auto* body : {"{}", R"({"userDetails":""})", R"({"userDetails":"nobody"})",
                             R"({"userName":"a"})", R"({"email":"a@b","userName":"runtime x"})"}) {
      EXPECT_EQ(co_await admin.status("POST", admin.account + "/adduser", body), 400) << body;
    }
    // The address of a member is that member.
    const auto member = co_await admin.done("POST", admin.account + "/adduser",
                                            R"({"userDetails":"ANN@acme.example"})");
    EXPECT_EQ(member["_id"], fixture.sample.ann.id);
    EXPECT_EQ(member["status"], "active");
  });
}

TEST(MemberRoutes, AMemberIsChangedPromotedAndRemoved) {
  with_routes([](RoutesFixture& fixture) -> Task<> {
    Admin admin{fixture};
    const auto bob = admin.account + "/" + fixture.sample.bob.id;
    EXPECT_EQ((co_await fixture.get("/console/api/v1/users", fixture.sample.bob_key)).status, 403);
    co_await admin.done("POST", bob + "/admin");
    EXPECT_EQ((co_await fixture.get("/console/api/v1/users", fixture.sample.bob_key)).status, 200)
        << "at once";
    const auto user = json_of(co_await fixture.get("/api/user", fixture.sample.ann_key));
    EXPECT_EQ(user["account"][0]["admins"].size(), 2U);
    co_await admin.done("DELETE", bob + "/admin");
    EXPECT_EQ((co_await fixture.get("/console/api/v1/users", fixture.sample.bob_key)).status, 403);
    const auto changed =
        co_await admin.done("POST", bob + "/updateuser", R"({"email":"bob@acme.example"})");
    EXPECT_EQ(changed["userName"], "bob");
    EXPECT_EQ(changed["email"], "bob@acme.example");
    co_await admin.done("DELETE", bob);
    EXPECT_EQ((co_await fixture.get("/api/user", fixture.sample.bob_key)).status, 401) << "at once";
    EXPECT_EQ((co_await fixture.log_in({{"name", "bob"}, {"password", "bob's password"}})).status,
              401);
    EXPECT_EQ(co_await admin.status("DELETE", bob), 404);
  });
}

TEST(MemberRoutes, TheLastAdministratorStays) {
  with_routes([](RoutesFixture& fixture) -> Task<> {
    Admin admin{fixture};
    const auto ann = admin.account + "/" + fixture.sample.ann.id;
    EXPECT_EQ(co_await admin.status("DELETE", ann), 409);
    EXPECT_EQ(co_await admin.status("DELETE", ann + "/admin"), 409);
    EXPECT_EQ(co_await admin.status("DELETE", "/api/admin/user/ann"), 409);
    EXPECT_EQ((co_await admin.user(fixture.sample.ann.id))["isAdmin"], true);
    // Neither is the last one disabled by another administrator of the installation.
    CO_ASSERT_OK(co_await fixture.accounts.write([&](store::Connection& db) -> Result<void> {
      return put_member(db, fixture.sample.other.number, fixture.sample.eve.id, true);
    }));
    EXPECT_EQ(co_await admin.status("PATCH", "/console/api/v1/users/" + fixture.sample.eve.id,
                                    R"({"disabled":true})"),
              409);
  });
}

// Another replica removes a user from the installation: it locks that before the user's accounts.
TEST(MemberRoutes, ARemovalLocksTheInstallationBeforeTheAccount) {
  with_accounts(
      [](AccountsFixture& accounts) -> Task<> {
        RoutesFixture fixture(accounts);
        Admin admin{fixture};
        const auto other = must(store::open_postgres(accounts.files.location(), "test"));
        const auto watching = must(store::open_postgres(accounts.files.location(), "test"));
        must(other->run_script(
            "INSERT INTO instance (one, id, restores, created_at) VALUES (1, 'i', 0, 1)"));
        must(other->run_script("BEGIN; UPDATE instance SET restores = restores WHERE one = 1"));
        constexpr store::Statement kWaits{.name = "test.waits",
                                          .sql = "SELECT count(*) FROM pg_locks WHERE NOT granted"};
        int status = 0;
        TaskGroup tasks(accounts.executor);
        tasks.spawn("removal", [&]() -> Task<> {
          status = co_await admin.status("DELETE", admin.account + "/" + fixture.sample.bob.id);
        });
        const bool waits = co_await test::eventually_while_clock_is_held(
            [&] { return must(watching->run(kWaits)).number(0, 0) > 0; }, "a removal that waits");
        const auto locked = other->run_script("UPDATE account SET name = name");
        const auto committed = other->run_script("COMMIT");
        co_await tasks.join();
        EXPECT_TRUE(waits);
        EXPECT_TRUE(locked) << locked.error().message;
        EXPECT_TRUE(committed) << committed.error().message;
        EXPECT_EQ(status, 200);
        co_await fixture.stop();
      },
      store::Engine::postgres);
}

TEST(MemberRoutes, AC_47_AnotherAccountAndItsUsersAreAbsent) {
  with_routes([](RoutesFixture& fixture) -> Task<> {
    const auto& sample = fixture.sample;
    CO_ASSERT_OK(co_await fixture.accounts.write([&](store::Connection& db) {
      return put_member(db, sample.other.number, sample.eve.id, true);
    }));
    fixture.authenticator.forget("");
    for (const auto& account : {sample.acme.id, sample.other.id, std::string(24, '0')}) {
      const bool is_own = account == sample.other.id;
      const auto path = "/api/accounts/" + account;
      for (const auto& [method, target, body] :
           {std::tuple("DELETE", path + "/" + sample.bob.id, ""),
            std::tuple("POST", path + "/" + sample.bob.id + "/updateuser",
                       R"({"userDetails":"a@b.example"})"),
            std::tuple("POST", path + "/" + sample.bob.id + "/admin", ""),
            std::tuple("DELETE", path + "/" + sample.bob.id + "/admin", "")}) {
        EXPECT_EQ(
            (co_await fixture.send(method, target, authorization(sample.eve_key), body)).status,
            404)
            << target;
      }
      EXPECT_EQ((co_await fixture.get(path + "/users", sample.eve_key)).status, is_own ? 200 : 404);
    }
    EXPECT_EQ((co_await fixture.get("/api/user", sample.bob_key)).status, 200);
    // An administrator of the installation manages all.
    Admin admin{fixture};
    EXPECT_EQ(co_await admin.status("GET", "/api/accounts/" + sample.other.id + "/users"), 200);
  });
}

TEST(InstallationRoutes, AccountsAndUsersAreListedAndMade) {
  with_routes([](RoutesFixture& fixture) -> Task<> {
    Admin admin{fixture};
    EXPECT_EQ((co_await admin.done("GET", "/api/admin/accounts")).size(), 2U);
    const auto named = co_await admin.done("GET", "/api/admin/accounts?filter%5Bname%5D=other");
    CO_ASSERT_EQ(named.size(), 1U);
    EXPECT_EQ(named[0]["_id"], fixture.sample.other.id);
    const auto made = co_await admin.done("POST", "/api/admin/accounts", R"({"name":"third"})");
    const auto path = "/api/admin/accounts/" + made["_id"].get<std::string>();
    EXPECT_EQ((co_await admin.done("GET", path))["name"], "third");
    EXPECT_EQ(co_await admin.status("POST", "/api/admin/accounts", R"({"name":"third"})"), 409);
    EXPECT_EQ(co_await admin.status("DELETE", path), 400);
    const auto invited = co_await admin.done(
        "POST", "/api/admin/accounts/addpendinguser",
        Json{{"email", "zoe@third.example"}, {"account", {made["_id"]}}}.dump());
    EXPECT_EQ(invited["status"], "pending");
    EXPECT_EQ((co_await admin.done(
                  "GET", "/api/accounts/" + made["_id"].get<std::string>() + "/users"))[0]["email"],
              "zoe@third.example");
    EXPECT_EQ((co_await admin.done("GET", "/api/admin/user?limit=2&page=1"))["docs"].size(), 2U);
    EXPECT_EQ((co_await admin.done("GET", "/api/admin/user?limit=2&page=2"))["docs"].size(), 1U);
    EXPECT_EQ((co_await admin.done("GET", "/api/admin/user?limit=2&page=3"))["docs"].size(), 0U);
    const auto eve = co_await admin.done("GET", "/api/admin/user/id/" + fixture.sample.eve.id);
    EXPECT_EQ(eve["userName"], "eve");
    EXPECT_EQ(eve["account"][0]["name"], "other");
    co_await admin.done("DELETE", "/api/admin/user/eve");
    EXPECT_EQ((co_await fixture.get("/api/user", fixture.sample.eve_key)).status, 401);
    const auto gone = co_await admin.send("DELETE", "/api/admin/user/eve");
    EXPECT_EQ(gone.status, 404);
    EXPECT_THAT(gone.body, HasSubstr("User does not exist"));
  });
}

TEST(InstallationRoutes, APendingUserIsReadAndRemovedAsAnyOther) {
  with_routes([](RoutesFixture& fixture) -> Task<> {
    Admin admin{fixture};
    const auto invite = [&](std::string account, std::string email) -> Task<Json> {
      co_return co_await admin.done(
          "POST", "/api/admin/accounts/addpendinguser",
          Json{{"email", email}, {"userName", "zoe"}, {"account", {account}}}.dump());
    };
    const auto invited = co_await invite(fixture.sample.other.id, "zoe@other.example");
    const auto path = "/api/admin/user/id/" + invited["_id"].get<std::string>();
    const auto pending = co_await admin.done("GET", path);
    EXPECT_EQ(pending["userName"], "zoe");
    EXPECT_EQ(pending["status"], "pending");
    EXPECT_EQ(pending["account"][0]["name"], "other");
    const auto again = co_await invite(fixture.sample.acme.id, "zoe@acme.example");
    EXPECT_EQ(co_await admin.status("DELETE", "/api/admin/user/zoe"), 409) << "which one?";
    co_await admin.done("DELETE", "/api/accounts/" + fixture.sample.acme.id + "/" +
                                      again["_id"].get<std::string>());
    const auto removed = co_await admin.done("DELETE", "/api/admin/user/zoe");
    EXPECT_EQ(removed["_id"], invited["_id"]);
    EXPECT_EQ(co_await admin.status("GET", path), 404);
    const auto link = invited["inviteUrl"].get<std::string>();
    const auto token = link.substr(link.find("token="));
    EXPECT_EQ((co_await fixture.send("GET", "/console/api/v1/invitation?" + token, {})).status,
              404);
  });
}

TEST(InstallationRoutes, NobodyActsAsAnotherUser) {
  with_routes([](RoutesFixture& fixture) -> Task<> {
    Admin admin{fixture};
    const auto refused =
        co_await admin.send("GET", "/api/admin/user/loginAsUser?userId=" + fixture.sample.bob.id);
    EXPECT_EQ(refused.status, 400);
    EXPECT_THAT(refused.body, HasSubstr("service account"));
    EXPECT_FALSE(refused.headers.find("Set-Cookie"));
  });
}

}  // namespace
}  // namespace gitops::control_plane_server
