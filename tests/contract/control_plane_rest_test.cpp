// The REST of the platform that public clients use, against the real control plane on both engines: the login of the
// command line, teams and keys. The rest of the platform's REST belongs to other products and is absent.
#include <algorithm>
#include <utility>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "contract/populated_control_plane.hpp"

namespace gitops::test {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::Not;

struct ControlPlaneRest : PopulatedControlPlaneTest {
  static HttpReply send(const std::string& method, const std::string& path,
                        const std::string& authorization, const std::string& body = {}) {
    return http_call({.method = method,
                      .url = bed().program().url() + path,
                      .headers = {authorization, "Content-Type: application/json",
                                  "origin: 127.0.0.1:" + std::to_string(bed().program().port())},
                      .body = body});
  }
  static std::string raw(const std::string& key) { return "Authorization: " + key; }
  static Json get(const std::string& path, const std::string& key) {
    const auto reply = send("GET", path, raw(key));
    EXPECT_EQ(reply.status, 200) << path << reply.body;
    return Json::parse(reply.body, nullptr, false);
  }
};

// Checks what ends `config get-contexts` with a stack trace, and the members that other clients read.
void expect_user(const Json& user) {
  for (const auto* member : {"_id", "id", "userName", "email", "activeAccountName"}) {
    EXPECT_TRUE(user[member].is_string()) << member << user;
  }
  EXPECT_EQ(user["_id"], user["id"]);
  EXPECT_TRUE(user["user_data"]["image"].is_string());
  ASSERT_TRUE(user["roles"].is_array());
  for (const auto& role : user["roles"]) EXPECT_TRUE(role.is_string());
  ASSERT_TRUE(user["account"].is_array());
  std::size_t active = 0;
  for (const auto& account : user["account"]) {
    EXPECT_TRUE(account["_id"].is_string()) << account;
    EXPECT_EQ(account["_id"], account["id"]);
    if (account["name"] == user["activeAccountName"]) ++active;
    ASSERT_TRUE(account["admins"].is_array());
    for (const auto& admin : account["admins"]) EXPECT_TRUE(admin.is_string());
    ASSERT_TRUE(account["features"].is_object());
    for (const auto& [name, is_on] : account["features"].items()) {
      EXPECT_TRUE(is_on.is_boolean()) << name;
    }
  }
  EXPECT_EQ(active, 1U) << user;
}

TEST_P(ControlPlaneRest, TheUserIsCompleteForEachFormOfACredential) {
  for (const auto* key : {&bed().admin_key, &bed().bob_key, &bed().eve_key}) {
    for (const auto& header : {raw(*key), raw("Bearer " + *key), "x-access-token: " + *key}) {
      const auto reply = send("GET", "/api/user", header);
      EXPECT_EQ(reply.status, 200);
      expect_user(Json::parse(reply.body, nullptr, false));
    }
  }
  const auto admin = get("/api/user", bed().admin_key);
  EXPECT_EQ(admin["_id"], bed().admin_id);
  EXPECT_EQ(admin["account"][0]["id"], bed().account_id);
  EXPECT_EQ(admin["account"][0]["admins"], Json::array({bed().admin_id}));
  EXPECT_EQ(get("/api/user", bed().eve_key)["activeAccountName"], "other");
}

TEST_P(ControlPlaneRest, ALoginWithABadKeyIs401InOneLine) {
  for (const auto* key : {"", "nobody", "nobody.0000", "Bearer ", "Basic YTpi"}) {
    const auto reply = send("GET", "/api/user", raw(key));
    EXPECT_EQ(reply.status, 401) << key;
    EXPECT_EQ(Json::parse(reply.body, nullptr, false),
              (Json{{"code", "unauthenticated"}, {"message", "Unauthorized: Invalid token."}}));
    EXPECT_THAT(reply.body, Not(HasSubstr("\n")));
  }
  EXPECT_EQ(send("GET", "/api/user", raw(bed().prod_token)).status, 403) << "no user";
}

TEST_P(ControlPlaneRest, TeamsHaveTheMembersThatAppProxyAndTerraformRead) {
  for (const auto* key : {&bed().admin_key, &bed().prod_token}) {
    const auto teams = get("/api/team", *key);
    ASSERT_TRUE(teams.is_array());
    ASSERT_FALSE(teams.empty());
    for (const auto& team : teams) {
      for (const auto* member : {"_id", "name", "type", "account"}) {
        EXPECT_TRUE(team[member].is_string()) << member;
      }
      EXPECT_TRUE(team["tags"].is_array());
      ASSERT_TRUE(team["users"].is_array());
      for (const auto& user : team["users"]) {
        for (const auto* member : {"_id", "userName", "email"}) {
          EXPECT_TRUE(user[member].is_string()) << member;
        }
      }
    }
  }
  EXPECT_THAT(get("/api/team", bed().eve_key).dump(), Not(HasSubstr(bed().admin_id)));
}

TEST_P(ControlPlaneRest, AKeyIsMadeAsABareTextListedAndRevoked) {
  const auto& bob = bed().bob_key;
  const auto made = send("POST", "/api/auth/key", raw(bob), R"({"name":"ci","scopes":["read"]})");
  ASSERT_EQ(made.status, 200) << made.body;
  EXPECT_EQ(get("/api/user", made.body)["userName"], "bob");
  const auto keys = get("/api/auth/keys", bob);
  const auto found =
      std::ranges::find_if(keys, [](const Json& key) { return key["name"] == "ci"; });
  ASSERT_NE(found, keys.end()) << keys;
  const auto& key = *found;
  EXPECT_EQ(key["scopes"], Json::array({"read"}));
  EXPECT_TRUE(made.body.contains(key["tokenPrefix"].get<std::string>()));
  EXPECT_TRUE(key["created"].is_string());
  EXPECT_EQ(key["subject"]["type"], "user");
  EXPECT_TRUE(key["subject"]["ref"].is_string());
  EXPECT_TRUE(key["scopeSnapshot"].is_object());
  const auto path = "/api/auth/key/" + key["_id"].get<std::string>();
  EXPECT_EQ(get(path, bob)["name"], "ci");
  EXPECT_EQ(send("PATCH", path, raw(bob), R"({"name":"cd","scopes":[]})").status, 200);
  EXPECT_EQ(send("GET", path, raw(bed().eve_key)).status, 404) << "of another account";
  EXPECT_EQ(send("DELETE", path, raw(bob)).status, 200);
  EXPECT_EQ(send("GET", "/api/user", raw(made.body)).status, 401);
}

// The requests of Terraform's provider, in its order: it takes 200 and 201 for success.
TEST_P(ControlPlaneRest, TerraformManagesServiceAccountsTeamsAndUsers) {
  const auto change = [](const std::string& method, const std::string& path, const Json& body) {
    const auto reply =
        send(method, path, raw(bed().admin_key), body.is_null() ? std::string() : body.dump());
    EXPECT_EQ(reply.status, 200) << method << ' ' << path << reply.body;
    return Json::parse(reply.body, nullptr, false);
  };
  const auto& admin = bed().admin_key;
  const auto team = change("POST", "/api/team", {{"name", "web"}});
  ASSERT_TRUE(team["_id"].is_string()) << team;
  const auto team_path = "/api/team/" + team["_id"].get<std::string>();
  change("PUT", team_path + "/" + bed().admin_id + "/assignUserToTeam", nullptr);
  change("PUT", team_path + "/renameTeam", {{"name", "shop"}});

  const auto robot =
      change("POST", "/api/service-users", {{"userName", "robot"}, {"teamIds", {team["_id"]}}});
  const auto robot_path = "/api/service-users/" + robot["_id"].get<std::string>();
  EXPECT_EQ(robot["teams"], Json::array({Json{{"_id", team["_id"]}}}));
  const auto keys = "/api/auth/key/service-user/" + robot["_id"].get<std::string>();
  const auto key = send("POST", keys, raw(admin), R"({"name":"k","scopes":[]})");
  ASSERT_EQ(key.status, 200) << key.body;
  expect_user(get("/api/user", key.body));
  EXPECT_EQ(get(keys + "/" + key.body.substr(0, 24), admin)["subject"]["type"], "service-user");
  change("PATCH", robot_path, {{"enabled", false}});
  EXPECT_EQ(send("GET", "/api/user", raw(key.body)).status, 401) << "at once";
  change("PATCH", robot_path, {{"_id", robot["_id"]}, {"userName", "r2"}, {"enabled", true}});
  EXPECT_EQ(get(robot_path, admin)["teams"], Json::array());
  EXPECT_EQ(get("/api/user", key.body)["userName"], "r2");

  const auto account = "/api/accounts/" + bed().account_id;
  const auto zoe = change("POST", account + "/adduser", {{"userDetails", "zoe@acme.example"}});
  EXPECT_EQ(zoe["status"], "pending");
  const auto zoe_path = account + "/" + zoe["_id"].get<std::string>();
  change("POST", zoe_path + "/admin", nullptr);
  const auto link =
      change("POST", zoe_path + "/updateuser", {{"userDetails", "z@acme.example"}})["inviteUrl"]
          .get<std::string>();
  const auto token = link.substr(link.find('=') + 1);
  // A browser sends this.
  const auto joined = http_call(
      {.method = "POST",
       .url = bed().program().url() + "/console/api/v1/invitation",
       .headers = {"Content-Type: application/json", "Sec-Fetch-Site: same-origin"},
       .body = Json{{"token", token}, {"name", "zoe"}, {"password", "a long password"}}.dump()});
  EXPECT_EQ(joined.status, 200) << joined.body;
  const auto users = get(account + "/users", admin);
  const auto found =
      std::ranges::find_if(users, [&zoe](const Json& user) { return user["_id"] == zoe["_id"]; });
  ASSERT_NE(found, users.end()) << users;
  EXPECT_EQ((*found)["status"], "active");
  EXPECT_EQ((*found)["isAdmin"], true);
  EXPECT_EQ(send("GET", account + "/users", raw(bed().eve_key)).status, 404)
      << "of another account";

  change("DELETE", zoe_path + "/admin", nullptr);
  change("DELETE", zoe_path, nullptr);
  change("DELETE", robot_path, nullptr);
  change("DELETE", team_path, nullptr);
  EXPECT_EQ(send("GET", "/api/user", raw(key.body)).status, 401);
}

TEST_P(ControlPlaneRest, WhatBelongsToOtherProductsIs404InThePlatformsForm) {
  const std::vector<std::pair<const char*, const char*>> absent{
      {"POST", "/api/argo"},
      {"GET", "/api/argo/a"},
      {"PUT", "/api/argo/a"},
      {"DELETE", "/api/argo/a"},
      {"POST", "/api/argo-agent/a"},
      {"POST", "/api/argo-agent/a/heartbeat"},
      {"GET", "/api/clusters"},
      {"GET", "/api/clusters/a/credentials"},
      {"GET", "/api/contexts"},
      {"GET", "/api/contexts/git/default"},
      {"GET", "/api/contexts/jira?decrypt=true"},
      {"GET", "/api/contexts/jira?decrypt=true&regex=true&type=atlassian"},
      {"GET", "/api/atlassian/issues/SHOP-1?jira-context=jira"},
      {"POST", "/api/annotations"},
      {"POST", "/api/environments-v2"},
      {"GET", "/api/environments-v2?plain=true&isEnvironment=false"},
      {"GET", "/api/environments-v2%3Fplain=true&isEnvironment=false"},
      {"DELETE", "/api/environments-v2/a"},
      {"POST", "/api/environments-v2/argo/events"},
      {"POST", "/api/gitops/resources"},
      {"POST", "/api/gitops/system/events"},
      {"GET", "/api/pipelines"},
      {"POST", "/api/pipelines/run/a%2Fb"},
      {"GET", "/api/builds/1"},
      {"GET", "/api/progress/1"},
      {"GET", "/api/runtime-environments"},
      {"GET", "/api/runtime-environments/a"},
      {"PUT", "/api/runtime-environments/default/a"},
      {"DELETE", "/api/runtime-environments/a"},
      {"POST", "/api/custom_clusters/register"},
      {"POST", "/api/custom_clusters/signServerCerts"},
      {"POST", "/api/custom_clusters/validate"},
      {"GET", "/api/argo-runtime"}};
  for (const auto& [method, path] : absent) {
    const auto* body = std::string_view(method) == "GET" ? "" : "{}";
    const auto reply = send(method, path, raw(bed().admin_key), body);
    EXPECT_EQ(reply.status, 404) << method << " " << path << reply.body;
    const auto json = Json::parse(reply.body, nullptr, false);
    EXPECT_EQ(json["statusCode"], 404) << path << reply.body;
    EXPECT_TRUE(json["message"].is_string());
    EXPECT_THAT(reply.body, Not(HasSubstr("\n")));
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, ControlPlaneRest, testing::Bool(),
                         [](const auto& info) { return info.param ? "Postgres" : "Sqlite"; });

}  // namespace
}  // namespace gitops::test
