#include "control-plane/runtimes/tunnel_plugin.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "control-plane/accounts/accounts_fixture.hpp"
#include "control-plane/accounts/user_routes.hpp"
#include "control-plane/http/served_routes.hpp"

namespace gitops::control_plane_server {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;

Json new_proxy(const std::string& token, const std::string& subdomain) {
  return {{"version", "0.1.0"},
          {"op", "NewProxy"},
          {"content",
           {{"user", {{"user", ""}, {"metas", nullptr}, {"run_id", "r1"}}},
            {"proxy_name", subdomain},
            {"proxy_type", "http"},
            {"subdomain", subdomain},
            {"locations", {"/"}},
            {"custom_domains", nullptr},
            {"metas", {{"Authorization", token}}}}}};
}

Caller runtime_caller() {
  Account account;
  account.number = 1;
  account.id = "0123456789abcdef01234567";
  Caller caller;
  caller.account = std::make_shared<const Account>(std::move(account));
  caller.runtime = "prod";
  return caller;
}

TEST(TunnelQuestion, IsReadAsTheServerSendsIt) {
  const auto question = read_tunnel_question(new_proxy("t", "a-prod").dump());
  ASSERT_TRUE(question);
  EXPECT_EQ(question->operation, "NewProxy");
  EXPECT_EQ(question->token.reveal(), "t");
  EXPECT_EQ(question->subdomain, "a-prod");
  EXPECT_TRUE(question->custom_domains.empty());
  for (const auto* wrong : {"", "[]", "{}", R"({"op":"NewProxy"})", R"({"op":1,"content":{}})"}) {
    EXPECT_FALSE(read_tunnel_question(wrong)) << wrong;
  }
}

TEST(TunnelVerdict, ARuntimeHasItsOwnHostAlone) {
  const auto caller = runtime_caller();
  TunnelQuestion question{.operation = "NewProxy",
                          .token = {},
                          .proxy_type = "http",
                          .subdomain = "0123456789ABCDEF01234567-PROD",
                          .custom_domains = {}};
  EXPECT_EQ(tunnel_refusal(question, &caller), "");
  EXPECT_EQ(tunnel_refusal(question, nullptr), "invalid token");
  for (const auto* other : {"", "0123456789abcdef01234567-stage", "prod",
                            "0123456789abcdef01234567-prod-x", "765432100123456789abcdef-prod"}) {
    auto wrong = question;
    wrong.subdomain = other;
    EXPECT_NE(tunnel_refusal(wrong, &caller), "") << other;
  }
  auto wrong = question;
  wrong.custom_domains = {"evil.example"};
  EXPECT_NE(tunnel_refusal(wrong, &caller), "");
  wrong = question;
  wrong.proxy_type = "tcp";
  EXPECT_NE(tunnel_refusal(wrong, &caller), "");
  Caller user;
  user.account = caller.account;
  user.user_id = "ann";
  user.is_admin = true;
  EXPECT_NE(tunnel_refusal(question, &user), "");
}

TEST(TunnelVerdict, ALoginIsAcceptedFromAnyone) {
  const TunnelQuestion login{
      .operation = "Login", .token = {}, .proxy_type = {}, .subdomain = {}, .custom_domains = {}};
  EXPECT_EQ(tunnel_refusal(login, nullptr), "");
  EXPECT_EQ(tunnel_verdict(""), R"({"reject":false,"unchange":true})");
  const auto refused = Json::parse(tunnel_verdict("why \"so\""));
  EXPECT_EQ(refused["reject"], true);
  EXPECT_EQ(refused["reject_reason"], "why \"so\"");
}

// The plugin behind a server, and a client of it.
struct PluginFixture {
  explicit PluginFixture(AccountsFixture& on, std::string token = "plugin token")
      : accounts(on),
        authenticator(on.database, on.metrics, {}),
        plugin(authenticator, Credential::fixed(Secret(std::move(token))), on.metrics),
        served(on, plugin.routes()) {}
  Task<> stop() { co_await served.stop(); }
  Task<http::Response> ask(std::string target, http::Headers headers, std::string body) {
    co_return co_await served.send("POST", std::move(target), std::move(headers), std::move(body));
  }
  Task<Json> verdict(const Secret& token, const std::string& subdomain) {
    const auto response = co_await ask("/tunnel-plugin?version=0.1.0&op=NewProxy",
                                       {{"Authorization", "Bearer plugin token"}},
                                       new_proxy(std::string(token.reveal()), subdomain).dump());
    EXPECT_EQ(response.status, 200);
    co_return Json::parse(response.body, nullptr, false);
  }

  AccountsFixture& accounts;
  Authenticator authenticator;
  TunnelPlugin plugin;
  ServedRoutes served;
};

void with_plugin(const std::function<Task<>(PluginFixture&)>& body) {
  with_accounts([&](AccountsFixture& accounts) -> Task<> {
    PluginFixture fixture(accounts);
    co_await body(fixture);
    co_await fixture.stop();
  });
}

TEST(TunnelPlugin, AnswersByTheRuntimesToken) {
  with_plugin([](PluginFixture& fixture) -> Task<> {
    const auto& sample = fixture.accounts.sample;
    const auto own = tunnel_subdomain(sample.acme, "prod");
    EXPECT_EQ((co_await fixture.verdict(sample.prod_token, own))["reject"], false);
    EXPECT_EQ((co_await fixture.verdict(sample.prod_token, "other"))["reject"], true);
    EXPECT_EQ((co_await fixture.verdict(sample.ann_key, own))["reject"], true);
    const auto nobody = co_await fixture.verdict(Secret(std::string("nobody")), own);
    EXPECT_EQ(nobody["reject_reason"], "invalid token");
  });
}

TEST(TunnelPlugin, ARevokedTokenIsRefusedAtOnce) {
  with_plugin([](PluginFixture& fixture) -> Task<> {
    const auto& sample = fixture.accounts.sample;
    const auto own = tunnel_subdomain(sample.acme, "prod");
    EXPECT_EQ((co_await fixture.verdict(sample.prod_token, own))["reject"], false);
    const auto revoked =
        co_await fixture.accounts.write([number = sample.acme.number](store::Connection& db) {
          return revoke_runtime_tokens(db, number, "prod");
        });
    CO_ASSERT_OK(revoked);
    for (const auto& id : *revoked) fixture.authenticator.forget(id);
    EXPECT_EQ((co_await fixture.verdict(sample.prod_token, own))["reject"], true);
  });
}

TEST(TunnelPlugin, AsksForItsOwnToken) {
  with_plugin([](PluginFixture& fixture) -> Task<> {
    const auto body = new_proxy("x", "y").dump();
    for (const auto& headers : {http::Headers{}, http::Headers{{"Authorization", "Bearer x"}},
                                http::Headers{{"Authorization", "plugin token"}}}) {
      EXPECT_EQ((co_await fixture.ask("/tunnel-plugin", headers, body)).status, 401);
    }
    EXPECT_EQ((co_await fixture.ask("/tunnel-plugin/wrong", {}, body)).status, 401);
    EXPECT_EQ((co_await fixture.ask("/tunnel-plugin/plugin%20token", {}, body)).status, 200);
    EXPECT_EQ((co_await fixture.ask("/tunnel-plugin/plugin%20token", {}, "{}")).status, 400);
  });
}

TEST(TunnelPlugin, ItsTokenMayBeBase64) {
  with_accounts([](AccountsFixture& accounts) -> Task<> {
    PluginFixture fixture(accounts, "canary//a+b/c==/");
    const auto body = new_proxy("x", "y").dump();
    for (const auto* path : {"/tunnel-plugin/canary//a+b/c==/?version=0.1.0&op=NewProxy",
                             "/tunnel-plugin/canary%2F%2Fa%2Bb%2Fc%3D%3D%2F"}) {
      EXPECT_EQ((co_await fixture.ask(path, {}, body)).status, 200) << path;
    }
    EXPECT_EQ((co_await fixture.ask("/tunnel-plugin/canary//a+b/c==", {}, body)).status, 401);
    co_await fixture.stop();
  });
}

TEST(TunnelPlugin, ItsTokenIsInNoLog) {
  with_accounts([](AccountsFixture& accounts) -> Task<> {
    PluginFixture fixture(accounts, "canary-plugin");
    {
      net::Resolver names(accounts.metrics);
      http::Client client(accounts.executor, names, {});
      auto exchange = co_await client.open(
          fixture.served.url(), {.method = "POST", .target = "/tunnel-plugin/canary-plugin"},
          AccountsFixture::soon(), http::Client::Body::streamed);
      CO_ASSERT_OK(exchange);
      (void)co_await exchange->write(std::string(70'000, ' '));
      const auto response = co_await exchange->read_head();
      CO_ASSERT_OK(response);
      EXPECT_EQ(response->status, 413);
    }
    EXPECT_FALSE(accounts.log.text().contains("canary-plugin"));
    co_await fixture.stop();
  });
}

TEST(TunnelPlugin, AnOutageIsNoRefusal) {
  with_plugin([](PluginFixture& fixture) -> Task<> {
    fixture.accounts.database.close(1s);
    const auto response = co_await fixture.ask(
        "/tunnel-plugin", {{"Authorization", "Bearer plugin token"}},
        new_proxy(std::string(fixture.accounts.sample.prod_token.reveal()), "x").dump());
    EXPECT_EQ(response.status, 503);
  });
}

}  // namespace
}  // namespace gitops::control_plane_server
