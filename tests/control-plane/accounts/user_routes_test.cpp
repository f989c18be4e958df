#include "control-plane/accounts/user_routes.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "common/http/client.hpp"
#include "control-plane/accounts/accounts_bench.hpp"

namespace gitops::control_plane_server {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

// The routes behind a server, and a client of it.
struct RoutesBench {
  explicit RoutesBench(AccountsBench& on)
      : accounts(on),
        authenticator(on.database, on.metrics, {.cookie = CookieForm::plain}),
        login(on.database, passwords, on.metrics, {}),
        router(user_routes({.database = on.database,
                            .authenticator = authenticator,
                            .login = login,
                            .own_origins = {},
                            .client_of = {}}),
               [](int status, std::string_view message) { return api_error(status, message); }),
        server(on.executor, {},
               [this](http::Exchange& exchange) { return router.serve(exchange); }),
        client(on.executor, resolver, {}) {
    must(server.listen());
  }
  Task<> stop() {
    client.close_idle();
    co_await server.stop(Clock::now());
  }

  Task<http::Response> send(std::string method, std::string target, http::Headers headers,
                            std::string body = {}) {
    const http::Url url{.scheme = "http", .host = "127.0.0.1", .port = server.port()};
    auto response = co_await client.send(url,
                                         {.method = std::move(method),
                                          .target = std::move(target),
                                          .headers = std::move(headers),
                                          .body = std::move(body)},
                                         deadline_after(20s));
    co_return must(std::move(response));
  }
  Task<http::Response> get(std::string target, const Secret& token) {
    co_return co_await send("GET", std::move(target), authorization(token));
  }
  Task<http::Response> log_in(const Json& body, http::Headers more = {}) {
    more.add("Content-Type", "application/json");
    co_return co_await send("POST", "/console/api/v1/login", std::move(more), body.dump());
  }

  AccountsBench& accounts;
  SampleAccounts& sample = accounts.sample;
  Authenticator authenticator;
  Passwords passwords{accounts.metrics, kCheap};
  Login login;
  http::Router router;
  http::Server server;
  net::Resolver resolver{accounts.metrics};
  http::Client client;
};

void with_routes(const std::function<Task<>(RoutesBench&)>& body) {
  with_accounts([&](AccountsBench& accounts) -> Task<> {
    RoutesBench bench(accounts);
    co_await body(bench);
    co_await bench.stop();
  });
}

Json json_of(const http::Response& response) {
  return Json::parse(response.body, nullptr, false);
}

// Returns the session's cookie of a response in the form of a request.
http::Headers cookie_of(const http::Response& response) {
  const auto set = response.headers.find("Set-Cookie").value_or("");
  return {{"Cookie", std::string(set.substr(0, set.find(';')))}};
}

TEST(UserRoutes, PingNeedsNoCredential) {
  with_routes([](RoutesBench& bench) -> Task<> {
    EXPECT_EQ((co_await bench.send("GET", "/api/ping", {})).status, 200);
  });
}

TEST(UserRoutes, TheCommandLinesLoginFindsItsAccount) {
  with_routes([](RoutesBench& bench) -> Task<> {
    const auto response = co_await bench.get("/api/user", bench.sample.ann_key);
    EXPECT_EQ(response.status, 200);
    const auto user = json_of(response);
    EXPECT_EQ(user["_id"], bench.sample.ann.id);
    EXPECT_EQ(user["id"], bench.sample.ann.id);
    EXPECT_EQ(user["userName"], "ann");
    EXPECT_EQ(user["email"], "ann@acme.example");
    EXPECT_EQ(user["activeAccountName"], "acme");
    CO_ASSERT_EQ(user["account"].size(), 1U);
    EXPECT_EQ(user["account"][0]["_id"], bench.sample.acme.id);
    EXPECT_EQ(user["account"][0]["id"], bench.sample.acme.id);
    EXPECT_EQ(user["account"][0]["name"], "acme");
    EXPECT_EQ(user["account"][0]["admins"], Json::array({bench.sample.ann.id}));
    EXPECT_EQ(user["account"][0]["features"]["gitopsPlanEnforcement"], false);
    EXPECT_EQ(user["roles"], Json::array({"User", "Admin"}));
    EXPECT_EQ(user["user_data"]["image"], "");
    const auto bob = json_of(co_await bench.get("/api/user", bench.sample.bob_key));
    EXPECT_EQ(bob["roles"], Json::array({"User"}));
  });
}

TEST(UserRoutes, AC_33_ErrorsHaveThePlatformsForm) {
  with_routes([](RoutesBench& bench) -> Task<> {
    for (const auto* path : {"/api/user", "/api/team", "/api/auth/keys"}) {
      const auto refused = co_await bench.send("GET", path, {{"Authorization", "nobody.0000"}});
      EXPECT_EQ(refused.status, 401) << path;
      EXPECT_EQ(json_of(refused), Json::object({{"message", "Unauthorized: Invalid token."}}));
      EXPECT_EQ((co_await bench.send("GET", path, {})).status, 401) << path;
    }
    for (const auto* method : {"GET", "POST", "PUT", "PATCH", "DELETE"}) {
      const auto absent = co_await bench.send(method, "/api/environments-v2/x", {});
      EXPECT_EQ(absent.status, 404) << method;
      EXPECT_EQ(json_of(absent)["statusCode"], 404) << absent.body;
      EXPECT_TRUE(json_of(absent)["message"].is_string());
      EXPECT_FALSE(absent.body.contains('\n'));
    }
    EXPECT_EQ((co_await bench.get("/api/contexts/jira?decrypt=true", bench.sample.ann_key)).status,
              404);
    EXPECT_EQ((co_await bench.get("/api/user", bench.sample.prod_token)).status, 403);
    EXPECT_EQ((co_await bench.get("/api/auth/keys", bench.sample.prod_token)).status, 403);
  });
}

TEST(UserRoutes, TeamsAreThoseOfTheAccount) {
  with_routes([](RoutesBench& bench) -> Task<> {
    for (const auto* token : {&bench.sample.bob_key, &bench.sample.prod_token}) {
      const auto teams = json_of(co_await bench.get("/api/team", *token));
      CO_ASSERT_EQ(teams.size(), 2U);
      EXPECT_EQ(teams[0]["name"], "admins");
      EXPECT_EQ(teams[0]["type"], "admin");
      EXPECT_EQ(teams[0]["account"], bench.sample.acme.id);
      EXPECT_EQ(teams[0]["tags"], Json::array());
      EXPECT_EQ(teams[0]["users"], Json::array({Json::object({{"_id", bench.sample.ann.id},
                                                              {"userName", "ann"},
                                                              {"email", "ann@acme.example"}})}));
      EXPECT_EQ(teams[1]["users"].size(), 2U);
    }
  });
}

TEST(UserRoutes, AKeyIsMadeListedChangedAndRevoked) {
  with_routes([](RoutesBench& bench) -> Task<> {
    const auto made =
        co_await bench.send("POST", "/api/auth/key", authorization(bench.sample.bob_key),
                            R"({"name":"ci","scopes":["pipeline"]})");
    CO_ASSERT_EQ(made.status, 200);
    const Secret key{std::string(made.body)};
    const auto parsed = parse_api_key(key.reveal());
    CO_ASSERT_TRUE(parsed) << made.body;
    EXPECT_EQ(made.headers.find("Cache-Control"), "no-store");
    EXPECT_EQ((co_await bench.get("/api/user", key)).status, 200);

    const auto list = json_of(co_await bench.get("/api/auth/keys", key));
    CO_ASSERT_EQ(list.size(), 2U);
    const auto& ci = list[0]["_id"] == parsed->id ? list[0] : list[1];
    EXPECT_EQ(ci["_id"], parsed->id);
    EXPECT_EQ(ci["name"], "ci");
    EXPECT_EQ(ci["scopes"], Json::array({"pipeline"}));
    EXPECT_EQ(ci["tokenPrefix"], made.body.substr(25, 6));
    EXPECT_EQ(ci["subject"]["ref"], bench.sample.bob.id);
    EXPECT_FALSE(list.dump().contains(made.body.substr(31)));

    const auto path = "/api/auth/key/" + parsed->id;
    const auto changed =
        co_await bench.send("PATCH", path, authorization(key), R"({"name":"deploy"})");
    EXPECT_EQ(changed.status, 200);
    EXPECT_EQ(json_of(changed)["name"], "deploy");
    EXPECT_EQ(json_of(co_await bench.get(path, key))["scopes"], Json::array({"pipeline"}));

    EXPECT_EQ((co_await bench.send("DELETE", path, authorization(bench.sample.bob_key))).status,
              200);
    EXPECT_EQ((co_await bench.get("/api/user", key)).status, 401) << "at once";
    EXPECT_EQ((co_await bench.send("DELETE", path, authorization(bench.sample.bob_key))).status,
              404);
  });
}

TEST(UserRoutes, AC_37_KeysOfOthersAreAbsent) {
  with_routes([](RoutesBench& bench) -> Task<> {
    const auto path = "/api/auth/key/" + std::string(bench.sample.ann_key.reveal().substr(0, 24));
    for (const auto* token : {&bench.sample.bob_key, &bench.sample.eve_key}) {
      for (const auto* method : {"GET", "PATCH", "DELETE"}) {
        const auto response =
            co_await bench.send(method, path, authorization(*token),
                                std::string_view(method) == "PATCH" ? R"({"name":"x"})" : "");
        EXPECT_EQ(response.status, 404) << method;
      }
    }
    EXPECT_EQ((co_await bench.get("/api/user", bench.sample.ann_key)).status, 200);
    // An administrator sees and revokes all keys of the account, but no keys of other accounts.
    const auto bob = "/api/auth/key/" + std::string(bench.sample.bob_key.reveal().substr(0, 24));
    const auto eve = "/api/auth/key/" + std::string(bench.sample.eve_key.reveal().substr(0, 24));
    EXPECT_EQ((co_await bench.get(bob, bench.sample.ann_key)).status, 200);
    EXPECT_EQ((co_await bench.get(eve, bench.sample.ann_key)).status, 404);
  });
}

TEST(UserRoutes, ABodyThatIsNoKeyIsRefused) {
  with_routes([](RoutesBench& bench) -> Task<> {
    const auto bob = authorization(bench.sample.bob_key);
    for (const auto* body : {"", "[]", "{", R"({"scopes":[]})", R"({"name":1})", R"({"name":""})",
                             R"({"name":"a","scopes":"b"})", R"({"name":"a","scopes":[1]})",
                             R"({"name":"a\u0000b"})", R"({"name":"a","expires":"yesterday"})"}) {
      const auto response = co_await bench.send("POST", "/api/auth/key", bob, body);
      EXPECT_EQ(response.status, 400) << body;
      EXPECT_TRUE(json_of(response)["message"].is_string()) << response.body;
    }
    EXPECT_EQ((co_await bench.send("POST", "/api/auth/key?subjectType=runtime-environment", bob,
                                   R"({"name":"a"})"))
                  .status,
              400);
    EXPECT_EQ((co_await bench.send("POST", "/api/auth/key", bob, std::string(70'000, ' '))).status,
              413);
  });
}

TEST(UserRoutes, ALoginBeginsASessionAndALogoutEndsIt) {
  with_routes([](RoutesBench& bench) -> Task<> {
    const auto in = co_await bench.log_in({{"name", "bob"}, {"password", "bob's password"}});
    CO_ASSERT_EQ(in.status, 200) << in.body;
    EXPECT_THAT(std::string(in.headers.find("Set-Cookie").value_or("")),
                testing::AllOf(StartsWith("session="), HasSubstr("HttpOnly")));
    EXPECT_FALSE(in.body.contains("session"));
    const auto cookie = cookie_of(in);
    const auto user = json_of(co_await bench.send("GET", "/api/user", cookie));
    EXPECT_EQ(user["userName"], "bob");
    const auto out = co_await bench.send("POST", "/console/api/v1/logout", cookie);
    EXPECT_EQ(out.status, 200);
    EXPECT_THAT(std::string(out.headers.find("Set-Cookie").value_or("")), HasSubstr("Max-Age=0"));
    EXPECT_EQ((co_await bench.send("GET", "/api/user", cookie)).status, 401);
    EXPECT_EQ((co_await bench.send("POST", "/console/api/v1/logout", {})).status, 200);
  });
}

TEST(UserRoutes, AC_35_WrongLoginsAreFew) {
  with_routes([](RoutesBench& bench) -> Task<> {
    int refused = 0;
    http::Response last;
    for (int i = 0; i < 11; ++i) {
      last = co_await bench.log_in({{"name", "bob"}, {"password", "wrong"}});
      if (last.status == 401) ++refused;
      EXPECT_FALSE(last.headers.find("Set-Cookie"));
    }
    EXPECT_EQ(refused, 10);
    EXPECT_EQ(last.status, 429);
    EXPECT_TRUE(last.headers.find("Retry-After"));
  });
}

TEST(UserRoutes, AC_32_PagesOfOtherSitesNeitherLogInNorOut) {
  with_routes([](RoutesBench& bench) -> Task<> {
    const Json right{{"name", "bob"}, {"password", "bob's password"}};
    EXPECT_EQ((co_await bench.log_in(right, {{"Origin", "https://evil.example"}})).status, 403);
    EXPECT_EQ((co_await bench.log_in(right, {{"Sec-Fetch-Site", "cross-site"}})).status, 403);
    const auto form = co_await bench.send("POST", "/console/api/v1/login",
                                          {{"Content-Type", "text/plain"}}, right.dump());
    EXPECT_EQ(form.status, 415);
    auto session = cookie_of(co_await bench.log_in(right));
    auto foreign = session;
    foreign.add("Sec-Fetch-Site", "cross-site");
    EXPECT_EQ((co_await bench.send("POST", "/console/api/v1/logout", foreign)).status, 403);
    EXPECT_EQ((co_await bench.send("POST", "/api/auth/key", foreign, R"({"name":"a"})")).status,
              401);
    EXPECT_EQ((co_await bench.send("GET", "/api/user", session)).status, 200);
  });
}

TEST(UserRoutes, ASessionChangesItsAccount) {
  with_routes([](RoutesBench& bench) -> Task<> {
    CO_ASSERT_OK(co_await bench.accounts.write([&](store::Connection& db) {
      return put_member(db, bench.sample.other.number, bench.sample.bob.id, false);
    }));
    const auto in = co_await bench.log_in({{"name", "bob"}, {"password", "bob's password"}});
    const auto before = cookie_of(in);
    const auto to = [](const Account& account) { return "/api/user/changeaccount/" + account.id; };
    const auto changed = co_await bench.send("POST", to(bench.sample.other), before);
    CO_ASSERT_EQ(changed.status, 200) << changed.body;
    EXPECT_EQ(json_of(changed)["user"]["activeAccountName"], "other");
    EXPECT_EQ(json_of(changed)["user"]["account"].size(), 2U);
    const Secret token{json_of(changed)["accessToken"].get<std::string>()};
    const auto user = json_of(co_await bench.get("/api/user", token));
    EXPECT_EQ(user["activeAccountName"], "other");
    EXPECT_EQ(json_of(co_await bench.send("GET", "/api/user", cookie_of(changed)))["userName"],
              "bob");
    EXPECT_EQ((co_await bench.send("GET", "/api/user", before)).status, 401) << "the old token";
    // An account of others looks like one that does not exist.
    const auto ann = co_await bench.log_in({{"name", "ann"}, {"password", "ann's password"}});
    EXPECT_EQ((co_await bench.send("POST", to(bench.sample.other), cookie_of(ann))).status, 404);
    EXPECT_EQ((co_await bench.send("POST", "/api/user/changeaccount/0123", cookie_of(ann))).status,
              404);
    EXPECT_EQ(
        (co_await bench.send("POST", to(bench.sample.acme), authorization(bench.sample.ann_key)))
            .status,
        403);
  });
}

TEST(UserRoutes, AnOutageIs503WithAWait) {
  with_routes([](RoutesBench& bench) -> Task<> {
    bench.accounts.database.close(1s);
    const auto response = co_await bench.get("/api/user", bench.sample.bob_key);
    EXPECT_EQ(response.status, 503);
    EXPECT_TRUE(response.headers.find("Retry-After"));
    const auto in = co_await bench.log_in({{"name", "bob"}, {"password", "bob's password"}});
    EXPECT_EQ(in.status, 503);
  });
}

}  // namespace
}  // namespace gitops::control_plane_server
