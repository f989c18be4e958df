#include "control-plane/http/graphql_gate.hpp"

#include <set>

#include <gmock/gmock.h>

#include "control-plane/accounts/user_routes.hpp"
#include "control-plane/audit/audit_log.hpp"
#include "control-plane/audit/audit_store.hpp"
#include "control-plane/http/routes.hpp"
#include "control-plane/http/served_routes.hpp"
#include "control-plane/resolvers/graphql_fixture.hpp"
#include "control-plane/runtimes/runtime_store.hpp"

namespace gitops::control_plane_server {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;
using testing::HasSubstr;

// The gate behind a server with the routes of the port, and a client of it.
struct GateFixture {
  explicit GateFixture(GraphqlFixture& on)
      : graphql(on),
        gate(*on.engine, on.rows, on.authenticator, on.accounts.metrics, {}),
        served(on.accounts, all_routes(gate, {})) {}
  Task<> stop() { co_await served.stop(); }
  Task<http::Response> send(http::Headers headers, std::string body,
                            std::string target = "/2.0/api/graphql") {
    headers.add("Content-Type", "application/json");
    co_return co_await served.send("POST", std::move(target), std::move(headers), std::move(body));
  }
  Task<http::Response> ask(const Secret& token, const std::string& query) {
    co_return co_await send(authorization(token), Json{{"query", query}}.dump());
  }

  GraphqlFixture& graphql;
  SampleAccounts& sample = graphql.sample;
  GraphqlGate gate;
  ServedRoutes served;
};

void with_gate(const std::function<Task<>(GateFixture&)>& body) {
  with_graphql([&](GraphqlFixture& graphql) -> Task<> {
    GateFixture fixture(graphql);
    co_await body(fixture);
    co_await fixture.stop();
  });
}

TEST(GraphqlGate, AnswersWithoutAnEmptyListOfErrors) {
  with_gate([](GateFixture& fixture) -> Task<> {
    const auto response = co_await fixture.ask(fixture.sample.bob_key, "{me{name}}");
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body, R"({"data":{"me":{"name":"bob"}}})");
    EXPECT_TRUE(response.headers.find("X-Request-Id"));
  });
}

TEST(GraphqlGate, TakesWhatTheSdkSends) {
  with_gate([](GateFixture& fixture) -> Task<> {
    auto headers = authorization(fixture.sample.bob_key);
    headers.add("origin", "127.0.0.1:8080");
    for (const auto* variables : {"{}", "null", R"({"unused":""})"}) {
      const auto response = co_await fixture.send(
          headers, R"({"query":"{me{name}}","variables":)" + std::string(variables) + "}");
      EXPECT_EQ(response.status, 200) << variables << response.body;
    }
    http::Headers bearer{
        {"Authorization", "Bearer " + std::string(fixture.sample.bob_key.reveal())}};
    EXPECT_EQ((co_await fixture.send(std::move(bearer), R"({"query":"{me{name}}"})")).status, 200);
  });
}

TEST(GraphqlGate, AC_33_AnUnknownCredentialIs401BeforeAnythingIsTold) {
  with_gate([](GateFixture& fixture) -> Task<> {
    for (const auto* query : {"{me{name}}", "{me{noSuchField}}", "{", "{__schema{types{name}}}"}) {
      const auto response = co_await fixture.ask(Secret(std::string("nobody.0000")), query);
      EXPECT_EQ(response.status, 401) << query;
      EXPECT_EQ(Json::parse(response.body)["message"], "Unauthorized: Invalid token.") << query;
      EXPECT_EQ((co_await fixture.send({}, Json{{"query", query}}.dump())).status, 401) << query;
    }
  });
}

TEST(GraphqlGate, RefusalsAreAudited) {
  with_graphql([](GraphqlFixture& graphql) -> Task<> {
    auto& accounts = graphql.accounts;
    AuditLog audit(accounts.executor, accounts.database, accounts.metrics);
    audit.start();
    auto made = graphql::Engine::make(std::string(schema_text()), resolvers(graphql.rows, &audit));
    GraphqlGate gate(**made, graphql.rows, graphql.authenticator, accounts.metrics,
                     {.audit = &audit});
    ServedRoutes served(accounts, all_routes(gate, {}));
    const auto ask = [&](const Secret& token, const std::string& query) {
      auto headers = authorization(token);
      headers.add("Content-Type", "application/json");
      return served.send("POST", "/2.0/api/graphql", std::move(headers),
                         Json{{"query", query}}.dump());
    };
    const std::string remove = R"(mutation{deleteRuntime(name:"prod")})";
    EXPECT_EQ((co_await ask(graphql.sample.bob_key, remove)).status, 403);
    EXPECT_EQ(
        (co_await ask(graphql.sample.ann_key, R"(mutation{deleteRuntime(name:"absent")})")).status,
        200);
    EXPECT_EQ((co_await ask(graphql.sample.ann_key, remove)).status, 200);
    co_await audit.stop(AccountsFixture::soon());
    const auto entries =
        must(co_await accounts.write([account = graphql.sample.acme.number](store::Connection& db) {
          return list_audit(db, {.account = account}, 10);
        }));
    std::vector<std::string> told;
    for (const auto& entry : entries) {
      told.push_back(entry.caller + " " + entry.action + " " + entry.target + " " +
                     std::string(to_string(entry.result)));
      EXPECT_NE(entry.request_id, "");
      EXPECT_EQ(entry.peer, "127.0.0.1");
    }
    EXPECT_THAT(told, testing::ElementsAre("ann deleteRuntime name=prod done",
                                           "ann deleteRuntime name=absent refused",
                                           "bob deleteRuntime  refused"));
    co_await served.stop();
  });
}

TEST(GraphqlGate, ARefusedDocumentIs400) {
  with_gate([](GateFixture& fixture) -> Task<> {
    const auto response = co_await fixture.ask(fixture.sample.bob_key, "{promotionz{x}}");
    EXPECT_EQ(response.status, 400);
    // The public command line searches for these bytes.
    EXPECT_THAT(response.body, HasSubstr(R"(Cannot query field \"promotionz\" on type \"Query\")"));
    EXPECT_EQ((co_await fixture.ask(fixture.sample.bob_key, "{")).status, 400);
    EXPECT_EQ((co_await fixture.send(authorization(fixture.sample.bob_key), "[]")).status, 400);
  });
}

TEST(GraphqlGate, AFailingFieldIs200) {
  with_gate([](GateFixture& fixture) -> Task<> {
    const auto response =
        co_await fixture.ask(fixture.sample.ann_key, R"(mutation{deleteRuntime(name:"absent")})");
    EXPECT_EQ(response.status, 200);
    EXPECT_THAT(response.body, HasSubstr("does not exist"));
  });
}

TEST(GraphqlGate, AC_34_APermissionIsCheckedBeforeAnythingRuns) {
  with_gate([](GateFixture& fixture) -> Task<> {
    const std::string both =
        R"(mutation{suggestIscRepo(suggestedSharedConfigRepo:"https://git.example/a.git")
           deleteRuntime(name:"prod")})";
    const auto response = co_await fixture.ask(fixture.sample.bob_key, both);
    EXPECT_EQ(response.status, 403);
    EXPECT_THAT(Json::parse(response.body)["message"].get<std::string>(),
                HasSubstr("deleteRuntime: only an administrator"));
    const auto account =
        co_await fixture.ask(fixture.sample.bob_key, "{me{activeAccount{sharedConfigRepo}}}");
    EXPECT_EQ(account.body, R"({"data":{"me":{"activeAccount":{"sharedConfigRepo":null}}}})");
    EXPECT_EQ(
        (co_await fixture.ask(fixture.sample.prod_token, R"(mutation{deleteRuntime(name:"prod")})"))
            .status,
        403);
    EXPECT_EQ((co_await fixture.ask(fixture.sample.ann_key, R"({getSealingKey(id:"x")})")).status,
              403);
  });
}

TEST(GraphqlGate, AC_34_AKeyDoesWhatItsScopesAllow) {
  with_gate([](GateFixture& fixture) -> Task<> {
    const auto key_with = [&](std::vector<std::string> scopes) -> Task<Secret> {
      auto issued = co_await fixture.graphql.accounts.write([&, scopes](store::Connection& db) {
        return create_user_key(db, fixture.sample.acme.number, fixture.sample.ann.id,
                               {.name = "narrow", .scopes = scopes}, micros_at(wall_now()));
      });
      co_return must(std::move(issued)).text;
    };
    const std::string query = "{runtimes{edges{node{metadata{name}}}}}";
    const std::string remove = R"(mutation{deleteRuntime(name:"absent")})";
    const std::string report =
        R"(mutation{saveAnnotation(annotation:{logicEntityId:{id:"i"},entityType:"image",key:"k",
           type:"issue",issueValue:{url:"u",title:"t",status:"s"}})})";
    const std::string suggest =
        R"(mutation{suggestIscRepo(suggestedSharedConfigRepo:"https://git.example/a.git")})";
    struct Case {
      std::vector<std::string> scopes;
      std::vector<std::string> allowed;
    };
    for (const auto& one :
         std::vector<Case>{{{}, {query, remove, report, suggest, "{me{name}}"}},
                           {{"read"}, {query, "{me{name}}", "{__schema{types{name}}}"}},
                           {{"write"}, {remove, report, suggest}},
                           {{"runtimes"}, {remove}},
                           {{"images"}, {report}},
                           {{"app-proxy"}, {"{me{name}}"}},
                           {{"pipeline"}, {"{__typename}"}}}) {
      const auto key = co_await key_with(one.scopes);
      for (const auto& document :
           {query, remove, report, suggest, std::string("{me{name}}"),
            std::string("{__schema{types{name}}}"), std::string("{__typename}")}) {
        const bool is_allowed = one.scopes.empty() || document == "{__typename}" ||
                                std::ranges::find(one.allowed, document) != one.allowed.end();
        const auto response = co_await fixture.ask(key, document);
        EXPECT_EQ(response.status, is_allowed ? 200 : 403)
            << Json(one.scopes) << document << response.body;
      }
    }
    // A runtime takes a key whose `me` has no name of another runtime as its user.
    const auto runtime_of = [&](std::vector<std::string> scopes) -> Task<std::string> {
      const auto response =
          co_await fixture.ask(co_await key_with(std::move(scopes)), "{me{id runtimeName}}");
      const auto name = Json::parse(response.body)["data"]["me"]["runtimeName"];
      co_return name.is_null() ? "" : name.get<std::string>();
    };
    EXPECT_EQ(co_await runtime_of({}), "");
    EXPECT_EQ(co_await runtime_of({"app-proxy"}), "");
    EXPECT_EQ(co_await runtime_of({"read", "app-proxy"}), "");
    EXPECT_EQ(co_await runtime_of({"read"}), "-");
    EXPECT_EQ(co_await runtime_of({"read", "write"}), "-");
    EXPECT_NE(runtime_name_mistake("-"), "") << "no runtime has this name";
    const auto refused = co_await fixture.ask(co_await key_with({"read"}), remove);
    EXPECT_EQ(Json::parse(refused.body)["message"],
              "deleteRuntime: the API key lacks the scope runtimes or write; it has read");
  });
}

TEST(GraphqlGate, OtherPathsAre404InThePlatformsForm) {
  with_gate([](GateFixture& fixture) -> Task<> {
    const auto response =
        co_await fixture.send(authorization(fixture.sample.bob_key), "{}", "/2.0/api/broadcaster");
    EXPECT_EQ(response.status, 404);
    EXPECT_EQ(Json::parse(response.body)["statusCode"], 404);
  });
}

TEST(GraphqlGate, EveryRouteSendsOneIdOfItsRequest) {
  with_gate([](GateFixture& fixture) -> Task<> {
    std::set<std::string> ids;
    for (const auto& route : all_routes(fixture.gate, {})) {
      if (route.pattern.contains("{") && route.pattern != "/2.0/api/{rest...}") continue;
      const auto target = route.pattern == "/2.0/api/{rest...}" ? "/2.0/api/x" : route.pattern;
      const auto response = co_await fixture.served.send(
          route.method, target, authorization(fixture.sample.bob_key), "{}");
      const auto id = response.headers.find("X-Request-Id");
      const bool is_socket = route.pattern == "/2.0/api/broadcaster/graphql";  // not upgraded
      EXPECT_EQ(id.has_value(), !is_socket) << route.method << ' ' << target;
      if (id) EXPECT_TRUE(ids.insert(std::string(*id)).second) << *id;
    }
    EXPECT_GE(ids.size(), 6U);
  });
}

TEST(GraphqlGate, AnOutageIs503WithAWait) {
  with_gate([](GateFixture& fixture) -> Task<> {
    fixture.graphql.accounts.database.close(1s);
    const auto response = co_await fixture.ask(fixture.sample.bob_key, "{me{name}}");
    EXPECT_EQ(response.status, 503);
    EXPECT_TRUE(response.headers.find("Retry-After"));
  });
}

}  // namespace
}  // namespace gitops::control_plane_server
