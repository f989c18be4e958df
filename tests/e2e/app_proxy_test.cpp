// The running app-proxy between its clients and the double of its control plane.
#include <gmock/gmock.h>

#include "common/graphql/socket_session.hpp"
#include "common/http/websocket.hpp"
#include "e2e/app_proxy_harness.hpp"
#include "e2e/git_harness.hpp"

namespace gitops::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using Json = nlohmann::json;
using Harness = AppProxyHarness;

constexpr const char* kVersion =
    "\nquery VersionInfo {\n\tversionInfo "
    "{\n\t\tversion\n\t\tplatformHost\n\t\tplatformVersion\n\t}\n}";
constexpr const char* kIntegrations =
    "query GitIntegrations{gitIntegrations{name sharingPolicy provider apiUrl users{userId}}}";
constexpr const char* kRemove =
    "mutation RemoveGitIntegration($name: String!){removeGitIntegration(name: $name)}";

TEST(AppProxy, TellsItsVersionBeforeAnythingElseCanBeReached) {
  in_app_proxy_harness([](Harness& harness) -> Task<> {
    const auto url = harness.platform.url().to_string();
    co_await harness.platform.stop();
    const auto begun = std::chrono::steady_clock::now();
    harness.start();
    const auto answer = co_await harness.ask(kVersion);
    const auto took = std::chrono::steady_clock::now() - begun;
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.json, (Json{{"data",
                                  {{"versionInfo",
                                    {{"version", std::string(gitops::version())},
                                     {"platformHost", url},
                                     {"platformVersion", "2.0"}}}}}}));
    EXPECT_LT(took, 10s);  // of a sanitizer on a busy machine; the release takes milliseconds
    // Everybody else is told to come back.
    const auto other = co_await harness.ask(kIntegrations, Harness::as(Harness::kAnn));
    EXPECT_EQ(other.status, 503);
    EXPECT_EQ(other.headers.find("Retry-After"), "5");
    EXPECT_EQ(other.json["error"], "Service Unavailable");
  });
}

TEST(AppProxy, ServesEveryFormOfItsPaths) {
  in_app_proxy_harness([](Harness& harness) -> Task<> {
    harness.start();
    const std::string body = Json{{"query", "{versionInfo{version}}"}}.dump();
    for (const char* path :
         {"/api/graphql", "/app-proxy/api/graphql", "/app-proxy/api/graphql/", "//api/graphql",
          "/app-proxy//api//graphql", "//app-proxy/api/graphql?x=1"}) {
      const auto answer = co_await harness.send({.method = "POST",
                                                 .target = path,
                                                 .headers = {{"Content-Type", "application/json"}},
                                                 .body = body});
      EXPECT_EQ(answer.status, 200) << path;
      EXPECT_TRUE(answer.json.contains("data")) << path;
    }
    for (const char* path : {"/api/readyz", "/api/healthz", "/app-proxy/api/readyz/"}) {
      const auto answer = co_await harness.send({.target = path});
      EXPECT_EQ(answer.status, 200) << path;
      EXPECT_EQ(answer.body, "OK") << path;
    }
  });
}

TEST(AppProxy, AnswersErrorsOfRestInTheFormThatClientsKnow) {
  in_app_proxy_harness([](Harness& harness) -> Task<> {
    harness.start();
    const auto missing = co_await harness.send({.target = "/app-proxy/api/nothing"});
    EXPECT_EQ(missing.status, 404);
    EXPECT_EQ(missing.json,
              (Json{{"statusCode", 404}, {"message", "not found"}, {"error", "Not Found"}}));
    // Pages for people are HTML.
    const auto page = co_await harness.send({.target = "/api/git-auth/github"});
    EXPECT_EQ(page.status, 200);
    EXPECT_EQ(page.headers.find("Content-Type"), "text/html; charset=utf-8");
    const auto anonymous = co_await harness.send({.method = "POST", .target = "/api/clusters"});
    EXPECT_EQ(anonymous.status, 401);
    EXPECT_EQ(anonymous.json, (Json{{"error", "Unauthorized: Invalid token."}}));
    const auto method = co_await harness.send({.method = "DELETE", .target = "/api/graphql"});
    EXPECT_EQ(method.status, 405);
    EXPECT_EQ(method.json["error"], "Method Not Allowed");
  });
}

TEST(AppProxy, CorsOnlyLeavesFieldsOut) {
  in_app_proxy_harness([](Harness& harness) -> Task<> {
    harness.start();
    co_await harness.account_known();
    // What the Go SDK sends is no origin at all.
    auto headers = Harness::as(Harness::kAnn);
    headers.add("Origin", "127.0.0.1:3017");
    const auto sdk = co_await harness.ask(kVersion, headers);
    EXPECT_EQ(sdk.status, 200);
    EXPECT_EQ(sdk.headers.find("Access-Control-Allow-Origin"), std::nullopt);
    headers.set("Origin", Harness::kPage);
    for (const auto& answer :
         {co_await harness.ask(kVersion, headers),
          co_await harness.ask("{", {{"Origin", Harness::kPage}}),
          co_await harness.send({.target = "/nowhere", .headers = {{"Origin", Harness::kPage}}})}) {
      EXPECT_EQ(answer.headers.find("Access-Control-Allow-Origin"), Harness::kPage) << answer.body;
      EXPECT_EQ(answer.headers.find("Access-Control-Allow-Credentials"), "true");
      EXPECT_EQ(answer.headers.find("Vary"), "Origin");
    }
    const auto preflight = co_await harness.send(
        {.method = "OPTIONS",
         .target = "/app-proxy/api/graphql",
         .headers = {{"Origin", Harness::kPage},
                     {"Access-Control-Request-Method", "POST"},
                     {"Access-Control-Request-Headers", "content-type,x-access-token"}}});
    EXPECT_EQ(preflight.status, 204);
    EXPECT_EQ(preflight.headers.find("Access-Control-Allow-Headers"),
              "content-type,x-access-token,authorization,traceparent");
    EXPECT_EQ(preflight.headers.find("Access-Control-Allow-Origin"), Harness::kPage);
  });
}

// An account that lacks nothing is asked for once a minute. So tests can count the questions for users.
void complete_account(Harness& harness) {
  harness.platform.accounts().add(
      {.id = "acc-1",
       .name = "acme",
       .admins = {"u-ann"},
       .shared_config_repo = "https://git.example.test/acme/config.git"});
}

TEST(AppProxy, KnowsItsUsersByEachFormOfACredential) {
  in_app_proxy_harness([](Harness& harness) -> Task<> {
    complete_account(harness);
    harness.start();
    co_await harness.account_known();
    const std::string bob = Harness::kBob;
    const std::vector<http::Headers> forms = {
        {{"Authorization", bob}},
        {{"authorization", "Bearer " + bob}},
        {{"X-Access-Token", bob}},
        {{"Cookie", "theme=dark; session=" + bob}, {"Origin", Harness::kPage}},
    };
    for (const auto& headers : forms) {
      const auto answer = co_await harness.ask("{__typename gitIntegrations{name}}", headers);
      EXPECT_EQ(answer.status, 200) << answer.body;
      EXPECT_THAT(answer.body, Not(HasSubstr("Unauthorized")));
    }
    const auto& accounts = harness.platform.accounts();
    EXPECT_EQ(accounts.asked("me by Authorization"), 2U);  // the own account, and Bob once
    EXPECT_EQ(accounts.asked("me by x-access-token"), 1U);
    EXPECT_EQ(accounts.asked("me by Cookie"), 1U);
    const auto again = co_await harness.ask(kIntegrations, Harness::as(bob));
    EXPECT_EQ(again.status, 200);
    EXPECT_EQ(accounts.asked("me"), 4U);  // from memory
  });
}

TEST(AppProxy, WritesEachChangeToTheAuditStream) {
  in_app_proxy_harness([](Harness& harness) -> Task<> {
    harness.start();
    co_await harness.account_known();
    auto headers = Harness::as(Harness::kBob);
    headers.add("X-Request-Id", "req-77");
    const auto refused = co_await harness.ask(kRemove, headers, {{"name", "main"}});
    EXPECT_EQ(refused.status, 200);
    EXPECT_EQ(refused.headers.find("X-Request-Id"), "req-77");
    EXPECT_EQ(refused.json["errors"][0]["message"],
              "only an administrator of the account may do this");
    EXPECT_EQ(refused.json["errors"][0]["extensions"],
              (Json{{"code", "FORBIDDEN"}, {"statusCode", 403}}));
    (void)co_await harness.ask(
        "mutation($args: RegisterToGitIntegrationArgs){registerToGitIntegration(args: "
        "$args){name}}",
        Harness::as(Harness::kBob), {{"args", {{"name", "main"}, {"token", "canary-git-token"}}}});
    (void)co_await harness.ask(kIntegrations, Harness::as(Harness::kBob));
    const auto audit = co_await harness.audit(2);
    CO_ASSERT_EQ(audit.size(), 2U);
    EXPECT_EQ(audit[0]["action"], "removeGitIntegration");
    EXPECT_EQ(audit[0]["result"], "forbidden");
    EXPECT_EQ(audit[0]["user"], "u-bob");
    EXPECT_EQ(audit[0]["account"], "acc-1");
    EXPECT_EQ(audit[0]["requestId"], "req-77");
    EXPECT_EQ(audit[0]["subject"], (Json{{"name", "main"}}));
    EXPECT_EQ(audit[0]["peer"], "127.0.0.1");
    EXPECT_EQ(audit[1]["action"], "registerToGitIntegration");
    EXPECT_EQ(audit[1]["subject"], (Json{{"name", "main"}}));
  });
}

// The order of a fresh installation: the account gets its Git host and its repository after the start.
TEST(AppProxy, NeedsNoRestartWhenTheAccountGetsItsGitHost) {
  in_git_harness([](GitHarness& harness) -> Task<> {
    harness.start();
    co_await harness.base.account_known();
    const Json source{{"appName", "shop"},
                      {"appSpecifier", "https://git.example.test/acme/shop.git"},
                      {"destServer", "https://kubernetes.default.svc"},
                      {"destNamespace", "runtime"},
                      {"isInternal", false}};
    const auto create = [&] {
      return harness.ask(Harness::kAnn,
                         "mutation CreateGitSource($args: CreateGitSourceInput!) { "
                         "createGitSource(args: $args) }",
                         {{"args", source}});
    };
    EXPECT_THAT((co_await create()).body, HasSubstr("no shared configuration repository"));
    EXPECT_EQ((co_await harness.get(Harness::kAnn)).json["data"]["gitIntegration"], nullptr);

    harness.base.platform.accounts().add(
        {.id = "acc-1",
         .name = "acme",
         .admins = {"u-ann"},
         .git_provider = "GITLAB",
         .git_api_url = "https://git.example.test/",
         .shared_config_repo = "https://git.example.test/acme/config.git"});
    const auto deadline = deadline_after(20s);
    Json made;
    while (made.is_null() && Clock::now() < deadline) {
      made = (co_await harness.get(Harness::kAnn)).json["data"]["gitIntegration"];
      if (made.is_null()) co_await sleep_for(50ms);
    }
    EXPECT_EQ(made["name"], "default") << made;
    EXPECT_EQ(made["apiUrl"], "https://git.example.test/api/v4") << made;
    // The repository is known; what is missing is Ann's token.
    const auto refused = co_await create();
    EXPECT_EQ(refused.code(), "GIT_TOKEN_MISSING") << refused.body;
  });
}

// AC-28: what is wrong is told without the values that were sent.
TEST(AppProxyAttacks, AC28_ErrorsQuoteNoSecrets) {
  in_app_proxy_harness([](Harness& harness) -> Task<> {
    harness.start({}, {"--log-level=debug"});
    co_await harness.account_known();
    const char* document =
        "mutation($args: RegisterToGitIntegrationArgs!){registerToGitIntegration(args: "
        "$args){name}}";
    for (const Json& args :
         {Json{{"token", "canary-git"}, {"nme", "x"}}, Json{{"token", {{"a", "canary-git"}}}},
          Json{{"token", {"canary-git"}}}, Json{{"token", nullptr}, {"refreshToken", "canary-git"}},
          Json{{"token", "canary-git"}, {"tokenType", "NONSENSE"}}}) {
      const auto answer =
          co_await harness.ask(document, Harness::as(Harness::kAnn), {{"args", args}});
      EXPECT_TRUE(answer.json.contains("errors")) << answer.body;
    }
    const auto first = co_await harness.ask(document, Harness::as(Harness::kAnn),
                                            {{"args", {{"token", "canary-git"}, {"nme", "x"}}}});
    EXPECT_EQ(first.json["errors"][0]["message"],
              "Variable $args got invalid value (hidden); Field nme is not defined by type "
              "RegisterToGitIntegrationArgs. Did you mean name?");
    // As the status document of the public step, which supplies another name than it declares.
    const auto missing = co_await harness.ask(
        "query appProxyQuery($name: String!){applicationProxyQuery(name: $name){metadata{name}}}",
        Harness::as(Harness::kAnn), {{"applicationName", "shop"}});
    EXPECT_EQ(missing.json["errors"][0]["message"],
              "Variable $name of required type String! was not provided.");
    (void)co_await harness.send({.target = "/api/graphql?token=canary-query"});
  });
}

TEST(AppProxy, StaysUsefulWhileTheControlPlaneIsAway) {
  in_app_proxy_harness([](Harness& harness) -> Task<> {
    harness.start({{"USER_CACHE_TTL", "0"}});
    co_await harness.account_known();
    EXPECT_EQ((co_await harness.ask(kIntegrations, Harness::as(Harness::kBob))).status, 200);
    for (const int status : {500, 502, 429}) {
      harness.platform.fail_next(100, status, 0s, "graphql");
      // Known: the last good answer counts. Unknown: neither refused nor let in.
      EXPECT_EQ((co_await harness.ask(kIntegrations, Harness::as(Harness::kBob))).status, 200)
          << status;
      EXPECT_EQ((co_await harness.ask(kIntegrations, Harness::as(Harness::kAnn))).status, 503)
          << status;
      harness.platform.end_faults();
    }
    harness.platform.accounts().answer_with("<html>not today</html>");
    EXPECT_EQ((co_await harness.ask(kIntegrations, Harness::as(Harness::kAnn))).status, 503);
    harness.platform.accounts().answer_with(R"({"data":{"me":{"id":7}}})");
    EXPECT_EQ((co_await harness.ask(kIntegrations, Harness::as(Harness::kAnn))).status, 503);
    harness.platform.accounts().answer_with(std::nullopt);
    EXPECT_EQ((co_await harness.ask(kIntegrations, Harness::as(Harness::kAnn))).status, 200);
  });
}

// AC-32: what one request may cost, and requests of other sites.
TEST(AppProxyAttacks, AC32_CostIsBoundedAndOtherSitesCannotAsk) {
  in_app_proxy_harness([](Harness& harness) -> Task<> {
    harness.start();
    co_await harness.account_known();
    const auto ann = Harness::as(Harness::kAnn);
    const auto memory = harness.daemon->memory();
    std::string deep;
    for (int i = 0; i < 5000; ++i) deep += "{a";
    std::string aliases = "{";
    for (int i = 0; i < 500; ++i) aliases += "a" + std::to_string(i) + ":versionInfo{version} ";
    aliases += "}";
    std::string directives = "{versionInfo";
    for (int i = 0; i < 500; ++i) directives += " @include(if:true)";
    directives += "{version}}";
    std::string broad = "{versionInfo{";
    for (int i = 0; i < 1000; ++i) broad += "version ";
    broad += "}}";
    const std::vector<std::pair<std::string, std::string>> bombs = {
        {deep, "GRAPHQL_PARSE_FAILED"},
        {aliases, "TOO_MANY_ALIASES"},
        {directives, "TOO_MANY_DIRECTIVES"},
        {broad, "QUERY_TOO_BROAD"},
        {"{...A} fragment A on Query{...B} fragment B on Query{...A}", "GRAPHQL_VALIDATION_FAILED"},
        {"{versionInfo(x:99999999999999999999999999999999){version}}", "GRAPHQL_VALIDATION_FAILED"},
        {"{" + std::string(400'000, ' ') + "__typename}", "DOCUMENT_TOO_LARGE"},
    };
    for (const auto& [query, code] : bombs) {
      const auto answer = co_await harness.ask(query, ann);
      EXPECT_EQ(answer.code(), code) << answer.body.substr(0, 300);
    }
    const auto large = co_await harness.ask("{" + std::string(10'000'000, ' ') + "}", ann);
    EXPECT_EQ(large.status, 413);
    auto json = ann;
    json.add("Content-Type", "application/json");
    const auto batch =
        co_await harness.send({.method = "POST",
                               .target = "/api/graphql",
                               .headers = json,
                               .body = R"([{"query":"{__typename}"},{"query":"{__typename}"}])"});
    EXPECT_EQ(batch.status, 400);
    EXPECT_EQ(batch.code(), "BATCH_REFUSED");
    // A form, a script that asks for no leave, and a link.
    for (const char* type : {"text/plain", "application/x-www-form-urlencoded",
                             "multipart/form-data; boundary=x", ""}) {
      auto headers = ann;
      headers.add("Content-Type", type);
      const auto answer =
          co_await harness.ask("mutation{removeGitIntegration(name:\"x\")}", headers);
      EXPECT_EQ(answer.status, 415) << type;
    }
    const auto link = co_await harness.send(
        {.target = "/api/graphql?query=mutation%7BremoveGitIntegration(name:%22x%22)%7D",
         .headers = ann});
    EXPECT_EQ(link.status, 405);
    // A cookie counts for pages of the list only.
    for (const char* origin :
         {"https://evil.example", "null", "", "https://ui.example.test.evil"}) {
      http::Headers headers{{"Cookie", "session=" + std::string(Harness::kAnn)}};
      if (*origin != '\0') headers.add("Origin", origin);
      const auto answer =
          co_await harness.ask("mutation{removeGitIntegration(name:\"x\")}", headers);
      EXPECT_EQ(answer.status, 403) << origin;
      EXPECT_EQ(answer.headers.find("Access-Control-Allow-Origin"), std::nullopt);
    }
    EXPECT_TRUE(harness.audit().empty());
    // The schema is for users only.
    const auto schema = co_await harness.ask("{__schema{types{name}}}");
    EXPECT_EQ(schema.status, 401);
    EXPECT_THAT(schema.body, Not(HasSubstr("GitIntegration")));
    const auto guess = co_await harness.ask("{gitIntegration{nam}}");
    EXPECT_EQ(guess.status, 401);
    EXPECT_EQ((co_await harness.ask("{__schema{types{name}}}", ann)).status, 200);
    EXPECT_LT(harness.daemon->memory(), memory + 96 * 1024);  // KiB; a sanitizer keeps freed memory
  });
}

// AC-33: nobody is trusted by what a token says of itself, and a token that was taken back is refused,
// also within a session.
TEST(AppProxyAttacks, AC33_ForgedAndRevokedTokensAreRefused) {
  in_app_proxy_harness([](Harness& harness) -> Task<> {
    complete_account(harness);
    harness.start({{"USER_CACHE_TTL", "0"}, {"USER_OUTAGE", "0"}});
    co_await harness.account_known();
    const std::string unsigned_jwt =
        "eyJhbGciOiJub25lIn0.eyJpZCI6InUtYW5uIiwiYWNjb3VudF9pZCI6ImFjYy0xIn0.";
    const auto before = harness.platform.accounts().asked("me");
    for (const std::string& value :
         {unsigned_jwt, std::string("Bearer"), std::string("Bearer "), std::string("Basic dTpw"),
          std::string("undefined"), std::string("null"),
          "Bearer Bearer " + std::string(Harness::kAnn),
          std::string(Harness::kAnn) + " " + Harness::kAnn, std::string(20'000, 'a')}) {
      const auto answer = co_await harness.ask(kIntegrations, Harness::as(value));
      EXPECT_EQ(answer.status, 401) << value.substr(0, 60);
      EXPECT_EQ(answer.body, R"({"error":"Unauthorized: Invalid token."})");
    }
    // Only those that could be a token were shown to the control plane.
    EXPECT_EQ(harness.platform.accounts().asked("me") - before, 3U);
    const auto twice = co_await harness.ask(
        kIntegrations, {{"Authorization", Harness::kBob}, {"Authorization", Harness::kAnn}});
    EXPECT_EQ(twice.status, 401);
    EXPECT_EQ((co_await harness.ask(kIntegrations)).status, 401);

    EXPECT_EQ((co_await harness.ask(kIntegrations, Harness::as(Harness::kBob))).status, 200);
    harness.platform.accounts().revoke(Harness::kBob);
    EXPECT_EQ((co_await harness.ask(kIntegrations, Harness::as(Harness::kBob))).status, 401);
    // An administrator who is none any more.
    const auto first = co_await harness.ask(kRemove, Harness::as(Harness::kAnn), {{"name", "x"}});
    EXPECT_EQ(first.code(), "UNAVAILABLE");
    harness.platform.accounts().set_admins("acc-1", {});
    const auto then = co_await harness.ask(kRemove, Harness::as(Harness::kAnn), {{"name", "x"}});
    EXPECT_EQ(then.code(), "FORBIDDEN") << then.body;
  });
}

// A WebSocket of a client: messages come and go as JSON.
struct Chat {
  http::WebSocket& socket;

  Task<> say(Json message) { CO_ASSERT_OK(co_await socket.send(message.dump())); }
  Task<Json> hear() {
    const auto message = co_await socket.receive();
    co_return message ? Json::parse(message->data, nullptr, false) : Json();
  }
  Task<Json> ask(std::string id, std::string query) {
    co_await say({{"id", id}, {"type", "subscribe"}, {"payload", {{"query", query}}}});
    auto answer = co_await hear();
    if (answer.value("type", "") == "next") EXPECT_EQ((co_await hear())["type"], "complete");
    co_return answer;
  }
};

// Runs `body` on a WebSocket; the error when it could not be opened.
Task<Result<http::websocket::Ending>> chat(Harness& harness, http::Headers headers,
                                           std::function<Task<>(Chat&)> body) {
  const http::Url url{.scheme = "ws", .host = "127.0.0.1", .port = harness.daemon->port()};
  co_return co_await http::connect_websocket(
      harness.client, url, {.target = "/app-proxy/api/graphql", .headers = std::move(headers)},
      graphql::kSocketProtocols, {}, deadline_after(20s), [&](http::WebSocket& socket) -> Task<> {
        Chat with{socket};
        co_await body(with);
      });
}

// AC-33: revocation in the middle of a session.
TEST(AppProxyAttacks, AC33_AnOpenSessionDoesNotOutliveItsToken) {
  in_app_proxy_harness([](Harness& harness) -> Task<> {
    harness.start({{"USER_CACHE_TTL", "0"}, {"USER_OUTAGE", "0"}});
    co_await harness.account_known();
    const auto ended = co_await chat(harness, {}, [&](Chat& with) -> Task<> {
      co_await with.say(
          {{"type", "connection_init"}, {"payload", {{"Authorization", Harness::kBob}}}});
      EXPECT_EQ((co_await with.hear())["type"], "connection_ack");
      EXPECT_EQ((co_await with.ask("1", "{__typename}"))["payload"]["data"]["__typename"], "Query");
      harness.platform.accounts().revoke(Harness::kBob);
      const auto refused = co_await with.ask("2", "{__typename}");
      EXPECT_EQ(refused["type"], "error") << refused;
      EXPECT_EQ(refused["payload"][0]["extensions"]["statusCode"], 401) << refused;
    });
    EXPECT_TRUE(ended);
  });
}

// AC-37: a WebSocket is one more way in.
TEST(AppProxyAttacks, AC37_WebSocketsAskWhoItIs) {
  in_app_proxy_harness([](Harness& harness) -> Task<> {
    harness.start();
    co_await harness.account_known();
    const auto close_code = [&](http::Headers headers, Json payload) -> Task<int> {
      const auto ended = co_await chat(harness, std::move(headers), [&](Chat& with) -> Task<> {
        co_await with.say({{"type", "connection_init"}, {"payload", payload}});
        (void)co_await with.hear();
      });
      co_return ended ? ended->code : ended.error().http_status;
    };
    const http::Headers cookie{{"Cookie", "session=" + std::string(Harness::kBob)}};
    auto cookie_of_page = cookie;
    cookie_of_page.add("Origin", Harness::kPage);
    EXPECT_EQ(co_await close_code({}, nullptr), 4403);
    EXPECT_EQ(co_await close_code({}, {{"Authorization", "nobody.0"}}), 4403);
    EXPECT_EQ(co_await close_code({}, {{"Authorization", Harness::kEve}}), 4403);
    EXPECT_EQ(co_await close_code(cookie, nullptr), 4403);
    EXPECT_EQ(co_await close_code(cookie_of_page, nullptr), 1000);
    EXPECT_EQ(co_await close_code(Harness::as(Harness::kBob), nullptr), 1000);
    // A page of another site is not let in at all.
    for (const char* origin : {"https://evil.example", "null", "https://ui.example.test:444"}) {
      auto headers = cookie;
      headers.add("Origin", origin);
      EXPECT_EQ(co_await close_code(headers, nullptr), 403) << origin;
    }
    // Who says something before saying who it is.
    const auto early = co_await chat(harness, {}, [&](Chat& with) -> Task<> {
      co_await with.say(
          {{"id", "1"}, {"type", "subscribe"}, {"payload", {{"query", "{versionInfo{version}}"}}}});
      EXPECT_TRUE((co_await with.hear()).is_null());
    });
    CO_ASSERT_OK(early);
    EXPECT_EQ(early->code, 4401);
  });
}

// Documents of public clients that are not what a strict server expects.
TEST(AppProxy, AcceptsTheDocumentsOfOddClients) {
  in_app_proxy_harness([](Harness& harness) -> Task<> {
    harness.start();
    co_await harness.account_known();
    const auto accepted = [&](std::string query, Json variables) -> Task<> {
      const auto answer =
          co_await harness.ask(query, Harness::as(Harness::kAnn), std::move(variables));
      EXPECT_EQ(answer.status, 200) << query;
      EXPECT_NE(answer.code(), "GRAPHQL_VALIDATION_FAILED") << answer.body;
      EXPECT_NE(answer.code(), "GRAPHQL_PARSE_FAILED") << answer.body;
    };
    // A nullable variable for a required argument, and one that is not declared.
    co_await accepted(
        "mutation RegisterToGitIntegration($args: RegisterToGitIntegrationArgs) {"
        "registerToGitIntegration(args: $args) { name } }",
        {{"args", {{"token", "canary-x"}, {"isAdmin", true}}}, {"unknown", 1}});
    // gitops-operator, with an alias.
    co_await accepted(
        "mutation commitFiles($args: CommitFilesArgs!) { commitFiles(args: $args) { COMMIT_SHA: "
        "sha "
        "sha message date committer { name email } } }",
        {{"args",
          {{"branchName", "HEAD"},
           {"repo", "o/r"},
           {"files", {{{"path", "a"}, {"data", "b"}}}},
           {"msg", "m"},
           {"description", ""},
           {"force", true}}}});
    // Python's gql: __typename everywhere, and variables without a value.
    co_await accepted("query q($name: String) { gitIntegration(name: $name) { __typename name } }",
                      {{"name", nullptr}});
    const auto introspection = co_await harness.ask(
        "query IntrospectionQuery { __schema { queryType { name } mutationType { name } types { "
        "kind "
        "name fields(includeDeprecated: true) { name args { name type { kind name ofType { name } "
        "} "
        "defaultValue } isDeprecated deprecationReason } inputFields { name } enumValues { name } "
        "} "
        "directives { name locations } } }",
        Harness::as(Harness::kAnn));
    EXPECT_FALSE(introspection.json.contains("errors"));
    EXPECT_EQ(introspection.json["data"]["__schema"]["queryType"]["name"], "Query");
  });
}

// AC-34: an unknown token, one of another account and one of another runtime get the same answer.
TEST(AppProxyAttacks, AC34_RefusalsTellNothingApart) {
  in_app_proxy_harness([](Harness& harness) -> Task<> {
    harness.platform.accounts().add("canary-stage.5555",
                                    FakeAccounts::Runtime{.name = "stage", .account_id = "acc-1"});
    harness.start();
    co_await harness.account_known();
    std::vector<Harness::Answer> answers;
    for (const char* token : {"nobody.0000", Harness::kEve, "canary-stage.5555"}) {
      answers.push_back(co_await harness.ask(kIntegrations, Harness::as(token)));
      answers.push_back(co_await harness.ask(kRemove, Harness::as(token), {{"name", "x"}}));
    }
    for (auto& answer : answers) {
      EXPECT_EQ(answer.status, 401);
      EXPECT_EQ(answer.body, answers[0].body);
      for (const char* name : {"Date", "X-Request-Id"}) answer.headers.erase(name);
      EXPECT_TRUE(std::ranges::equal(answer.headers, answers[0].headers));
    }
  });
}

// AC-35: guessing is slow, and harms neither known users nor other addresses.
TEST(AppProxyAttacks, AC35_GuessingIsLimitedByAddress) {
  in_app_proxy_harness([](Harness& harness) -> Task<> {
    complete_account(harness);
    harness.start({{"TRUSTED_PROXIES", "127.0.0.1"}});
    co_await harness.account_known();
    const auto from = [](const std::string& token, const char* address) {
      auto headers = Harness::as(token);
      // What the client itself wrote stands first.
      headers.add("X-Forwarded-For", std::string("198.51.100.7, ") + address);
      return headers;
    };
    EXPECT_EQ((co_await harness.ask(kIntegrations, from(Harness::kBob, "203.0.113.9"))).status,
              200);
    const auto asked = harness.platform.accounts().asked("me");
    int limited = 0;
    for (int i = 0; i < 60; ++i) {
      const auto answer =
          co_await harness.ask(kIntegrations, from("guess." + std::to_string(i), "203.0.113.9"));
      if (answer.status == 429) {
        ++limited;
        EXPECT_NE(answer.headers.find("Retry-After"), std::nullopt);
      } else {
        EXPECT_EQ(answer.status, 401);
      }
    }
    EXPECT_GE(limited, 30);
    EXPECT_LE(harness.platform.accounts().asked("me") - asked, 30U);
    EXPECT_EQ((co_await harness.ask(kIntegrations, from(Harness::kBob, "203.0.113.9"))).status,
              200);
    EXPECT_EQ((co_await harness.ask(kIntegrations, from(Harness::kAnn, "203.0.113.10"))).status,
              200);
  });
}

// AC-36: what needs no user tells nothing but the version.
TEST(AppProxyAttacks, AC36_StrangersSeeTheVersionOnly) {
  in_app_proxy_harness([](Harness& harness) -> Task<> {
    harness.start();
    co_await harness.account_known();
    for (const char* query :
         {"{gitIntegrations{name}}", "{versionInfo{version} gitIntegrations{name}}",
          "{a:versionInfo{version} b:gitIntegration{name}}", "{__type(name:\"Query\"){name}}",
          "{...F} fragment F on Query{gitIntegration{name}}",
          "query A{versionInfo{version}} query B{gitIntegrations{name}}",
          "mutation{removeGitIntegration(name:\"x\")}", "{", "{nothing}"}) {
      const auto answer = co_await harness.ask(query);
      EXPECT_EQ(answer.status, 401) << query << answer.body;
      EXPECT_EQ(answer.body, R"({"error":"Unauthorized: Invalid token."})");
      EXPECT_EQ(answer.headers.find("WWW-Authenticate"), "Bearer");
    }
    EXPECT_EQ((co_await harness.ask("{versionInfo{version __typename} __typename}")).status, 200);
    // The page for people is off.
    const auto page =
        co_await harness.send({.target = "/api/graphql", .headers = {{"Accept", "text/html"}}});
    EXPECT_EQ(page.status, 405);
    EXPECT_TRUE(harness.audit().empty());
  });
}

// AC-37: each transport and each form of a path asks for the same.
TEST(AppProxyAttacks, AC37_EveryWayInAsksWhoItIs) {
  in_app_proxy_harness([](Harness& harness) -> Task<> {
    harness.start();
    co_await harness.account_known();
    const std::string body = Json{{"query", kIntegrations}}.dump();
    for (const char* path : {"/api/graphql", "/app-proxy/api/graphql", "//api//graphql/"}) {
      for (const char* type : {"application/json", "application/json; charset=utf-8"}) {
        const auto answer = co_await harness.send(
            {.method = "POST", .target = path, .headers = {{"Content-Type", type}}, .body = body});
        EXPECT_EQ(answer.status, 401) << path;
      }
    }
    // A user who is no administrator is refused what administrators do, by each name of it.
    for (const char* query :
         {"mutation{removeGitIntegration(name:\"x\")}",
          "mutation{a:removeGitIntegration(name:\"x\")}",
          "mutation{...F} fragment F on Mutation{removeGitIntegration(name:\"x\")}",
          "mutation{addGitIntegration(args:{provider:GITHUB,sharingPolicy:ALL_USERS_IN_ACCOUNT}){"
          "name}}",
          "mutation{editGitIntegration(args:{sharingPolicy:ALL_USERS_IN_ACCOUNT}){name}}"}) {
      const auto answer = co_await harness.ask(query, Harness::as(Harness::kBob));
      EXPECT_EQ(answer.status, 200);
      EXPECT_EQ(answer.code(), "FORBIDDEN") << query;
    }
    const auto audit = co_await harness.audit(5);
    EXPECT_EQ(audit.size(), 5U);
    for (const auto& line : audit) EXPECT_EQ(line["result"], "forbidden");
  });
}

TEST(AppProxy, ThePlaygroundIsThereOnRequest) {
  in_app_proxy_harness([](Harness& harness) -> Task<> {
    harness.start({{"GRAPHQL_PLAYGROUND", "true"}});
    const auto page = co_await harness.send(
        {.target = "/app-proxy/api/graphql", .headers = {{"Accept", "text/html,*/*"}}});
    EXPECT_EQ(page.status, 200);
    EXPECT_THAT(page.body, StartsWith("<!doctype html>"));
    EXPECT_THAT(std::string(page.headers.find("Content-Security-Policy").value_or("")),
                HasSubstr("default-src 'none'"));
  });
}

}  // namespace
}  // namespace gitops::test
