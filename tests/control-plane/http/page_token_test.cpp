// How a page of the console reaches runtimes, at the real port: the policy of the page, and its tokens.
#include <gmock/gmock.h>

#include "common/http/url.hpp"
#include "control-plane/accounts/page_tokens.hpp"
#include "control-plane/http/whole_port.hpp"
#include "control-plane/runtimes/runtime_store.hpp"

namespace gitops::control_plane_server {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::Not;

Task<> register_runtime(WholePort& port, std::int64_t account, std::string name,
                        std::string address) {
  must(co_await port.accounts.write([=](store::Connection& db) {
    return create_runtime(db, account,
                          {.name = name,
                           .runtime_namespace = "gitops",
                           .cluster = "https://k",
                           .arguments = Json{{"ingressHost", address}}.dump()},
                          micros_at(wall_now()));
  }));
}

http::Headers cookie(const Secret& value) {
  return {{"Cookie", "session=" + std::string(value.reveal())}};
}

Task<http::Response> mint(WholePort& port, http::Headers headers, std::string runtime = "prod") {
  co_return co_await port.send("POST", "/console/api/v1/runtimes/" + runtime + "/token",
                               std::move(headers));
}

Task<http::Response> who(WholePort& port, std::string token) {
  co_return co_await port.ask(
      {{"x-access-token", std::move(token)}},
      "{me{id name runtimeName activeAccount{id name admins} accounts{name}}}");
}

std::string policy_of(const http::Response& response) {
  return std::string(response.headers.find("Content-Security-Policy").value_or(""));
}

TEST(PageToken, ASessionGetsOneAndTheRuntimeIsToldWhoSendsIt) {
  with_whole_port([](WholePort& port) -> Task<> {
    co_await register_runtime(port, port.sample.acme.number, "prod", "http://prod.example/");
    const auto made = co_await mint(port, cookie(port.sample.bob_session));
    EXPECT_EQ(made.status, 200) << made.body;
    EXPECT_EQ(made.headers.find("Cache-Control"), "no-store");
    const auto json = Json::parse(made.body);
    EXPECT_EQ(json["address"], "http://prod.example");
    EXPECT_EQ(json["expiresIn"], 300);
    const auto told = co_await who(port, json["token"]);
    EXPECT_EQ(told.status, 200) << told.body;
    const auto me = Json::parse(told.body)["data"]["me"];
    EXPECT_EQ(me["id"], port.sample.bob.id);
    EXPECT_EQ(me["runtimeName"], "prod");
    EXPECT_EQ(me["activeAccount"]["id"], port.sample.acme.id);
    EXPECT_EQ(me["accounts"].size(), 1U) << "nothing of the user's other accounts";
    const auto own = co_await port.ask(authorization(port.sample.bob_session), "{me{runtimeName}}");
    EXPECT_TRUE(Json::parse(own.body)["data"]["me"]["runtimeName"].is_null());
  });
}

TEST(PageToken, AC_57_ItEndsWithTheSessionAtOnce) {
  with_whole_port([](WholePort& port) -> Task<> {
    co_await register_runtime(port, port.sample.acme.number, "prod", "http://prod.example");
    const auto made = Json::parse((co_await mint(port, cookie(port.sample.bob_session))).body);
    EXPECT_EQ((co_await who(port, made["token"])).status, 200);
    EXPECT_EQ((co_await port.send("POST", "/console/api/v1/logout",
                                  authorization(port.sample.bob_session)))
                  .status,
              200);
    EXPECT_EQ((co_await who(port, made["token"])).status, 401) << "also where it was cached";
    EXPECT_EQ((co_await mint(port, cookie(port.sample.bob_session))).status, 401);
  });
}

TEST(PageToken, ADisabledUserHasNone) {
  with_whole_port([](WholePort& port) -> Task<> {
    co_await register_runtime(port, port.sample.acme.number, "prod", "http://prod.example");
    const auto made = Json::parse((co_await mint(port, cookie(port.sample.bob_session))).body);
    EXPECT_EQ((co_await who(port, made["token"])).status, 200);
    EXPECT_EQ((co_await port.send("PATCH", "/console/api/v1/users/" + port.sample.bob.id,
                                  authorization(port.sample.ann_key), R"({"disabled":true})"))
                  .status,
              200);
    EXPECT_EQ((co_await who(port, made["token"])).status, 401);
  });
}

TEST(PageToken, AC_57_IsForSessionsAndRuntimesOfTheAccount) {
  with_whole_port([](WholePort& port) -> Task<> {
    co_await register_runtime(port, port.sample.other.number, "theirs", "http://theirs.example");
    const auto session = port.sample.bob_session;
    EXPECT_EQ((co_await mint(port, cookie(session), "theirs")).status, 404);
    const auto bare = co_await mint(port, cookie(session));
    EXPECT_EQ(bare.status, 409) << bare.body;
    EXPECT_THAT(bare.body, HasSubstr("has registered no address"));
    co_await register_runtime(port, port.sample.acme.number, "prod", "https://x.example/path");
    EXPECT_EQ((co_await mint(port, cookie(session))).status, 409);
    co_await register_runtime(port, port.sample.acme.number, "prod", "https://x.example");
    EXPECT_EQ((co_await mint(port, cookie(port.sample.bob_key))).status, 403)
        << "a cookie may be a key";
    auto foreign = cookie(session);
    foreign.add("Sec-Fetch-Site", "cross-site");
    EXPECT_EQ((co_await mint(port, std::move(foreign))).status, 401);
    const auto made = Json::parse((co_await mint(port, cookie(session))).body);
    EXPECT_EQ((co_await mint(port, {{"x-access-token", made["token"]}})).status, 401)
        << "a token begets no other";
  });
}

TEST(PageToken, ThePolicyOfThePageNamesTheRuntimesOfItsUser) {
  with_whole_port([](WholePort& port) -> Task<> {
    co_await register_runtime(port, port.sample.acme.number, "prod", "https://prod.example");
    co_await register_runtime(port, port.sample.acme.number, "bad", "https://bad.example; x");
    co_await register_runtime(port, port.sample.other.number, "theirs", "https://theirs.example");
    auto browser = cookie(port.sample.bob_session);
    browser.add("Accept", "text/html");
    const auto page = co_await port.send("GET", "/applications", browser);
    EXPECT_THAT(policy_of(page), testing::EndsWith("connect-src 'self' https://prod.example"));
    browser.add("Sec-Fetch-Site", "cross-site");
    EXPECT_EQ(policy_of(co_await port.send("GET", "/", browser)), policy_of(page))
        << "a link on another page";
    const auto nobody = co_await port.send("GET", "/", {{"Accept", "text/html"}});
    EXPECT_EQ(nobody.status, 200);
    EXPECT_THAT(policy_of(nobody), Not(HasSubstr("http")));
  });
}

}  // namespace
}  // namespace gitops::control_plane_server
