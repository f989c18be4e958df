// Real clients of app-proxy against the running daemon: the public Go SDK, the Python client gql, and
// two WebSocket clients for GraphQL. The control plane is the double.
#include <algorithm>
#include <filesystem>

#include <gmock/gmock.h>

#include "peers/go_sdk.hpp"

namespace gitops::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using Json = nlohmann::json;
using Harness = AppProxyHarness;

TEST(GoSdk, AsksForTheVersion) {
  GITOPS_REQUIRE_PEER(GoSdk);
  in_app_proxy_harness([](Harness& harness) -> Task<> {
    harness.start();
    const auto answer = co_await GoSdk::run(harness, Harness::kAnn, "version-info");
    EXPECT_EQ(answer.exit_code, 0) << answer.err;
    const auto info = Json::parse(answer.out);
    EXPECT_EQ(info["version"], std::string(gitops::version()));
    EXPECT_EQ(info["platformHost"], harness.platform.url().to_string());
  });
}

TEST(GoSdk, ShowsWhyATokenIsRefused) {
  GITOPS_REQUIRE_PEER(GoSdk);
  in_app_proxy_harness([](Harness& harness) -> Task<> {
    harness.start();
    co_await harness.account_known();
    // The control plane knows her, as a user of another account.
    harness.platform.accounts().add("canary-other-prod",
                                    FakeAccounts::Runtime{.name = "prod", .account_id = "acc-2"});
    const auto answer = co_await GoSdk::run(harness, Harness::kEve, "git-integrations");
    EXPECT_EQ(answer.exit_code, 1);
    EXPECT_THAT(
        answer.err,
        HasSubstr("API error: 401 Unauthorized: {\"error\":\"Unauthorized: Invalid token.\"}"));
  });
}

TEST(GoSdk, DecodesRefusals) {
  GITOPS_REQUIRE_PEER(GoSdk);
  in_app_proxy_harness([](Harness& harness) -> Task<> {
    harness.start();
    co_await harness.account_known();
    const auto answer =
        co_await GoSdk::run(harness, Harness::kBob, "remove-git-integration", "main");
    EXPECT_EQ(answer.exit_code, 1);
    EXPECT_THAT(answer.err, HasSubstr("only an administrator of the account may do this"));
    EXPECT_THAT(answer.err, testing::Not(HasSubstr("unmarshal")));
  });
}

// Of the double of the control plane, which every other test believes. The SDK refuses a whole answer
// for one enum or null that its types do not have.
TEST(GoSdk, DecodesEveryAnswerOfTheControlPlane) {
  GITOPS_REQUIRE_PEER(GoSdk);
  in_app_proxy_harness([](Harness& harness) -> Task<> {
    harness.start();
    co_await harness.account_known();
    harness.platform.accounts().add(FakeAccounts::GitSource{
        .name = "apps", .runtime = "prod", .repository_url = "https://git.example.test/apps.git"});
    const auto me = co_await GoSdk::ok(harness, Harness::kAnn, "me");
    EXPECT_EQ(me["activeAccount"]["gitProvider"], "GITHUB");
    const auto runtimes = co_await GoSdk::ok(harness, Harness::kAnn, "runtimes");
    CO_ASSERT_EQ(runtimes.size(), 1U);
    EXPECT_EQ(runtimes[0]["metadata"]["name"], "prod");
    EXPECT_EQ(runtimes[0]["installationType"], "HELM");
    const auto runtime = co_await GoSdk::ok(harness, Harness::kAnn, "runtime");
    EXPECT_EQ(runtime["accessMode"], "INGRESS");
    const auto sources = co_await GoSdk::ok(harness, Harness::kAnn, "git-sources");
    CO_ASSERT_EQ(sources.size(), 1U);
    EXPECT_EQ(sources[0]["self"]["status"]["syncStatus"], "SYNCED");
    const auto created = co_await GoSdk::ok(
        harness, Harness::kAnn, "create-runtime",
        R"({"runtimeName":"second","runtimeNamespace":"second","cluster":"https://api.example.test",)"
        R"("runtimeVersion":"0.1.72","installationType":"HELM_HOSTED","accessMode":"TUNNEL"})");
    EXPECT_EQ(created["name"], "second");
    const auto reported = co_await GoSdk::ok(
        harness, created["newAccessToken"].get<std::string>(), "report-errors",
        R"({"runtime":"second","errors":[{"level":"WARNING","message":"the disk is nearly full"}]})");
    EXPECT_EQ(reported, 1);
  });
}

struct SocketClients {
  static fs::path modules() { return peers_folder() / "share/graphql-clients"; }
  static std::optional<std::string> missing() {
    if (!fs::is_directory(modules() / "node_modules/graphql-ws")) {
      return "graphql-clients is not built (./dev peers graphql-clients)";
    }
    if (!find_program("node")) return "node is not installed";
    return std::nullopt;
  }
  static Task<Json> run(Harness& harness, const std::string& client, const std::string& token,
                        const Json& operations, const std::string& origin = {}) {
    const std::string url =
        "ws://127.0.0.1:" + std::to_string(harness.daemon->port()) + "/app-proxy/api/graphql";
    const auto answer =
        co_await run_beside({"node", GITOPS_SOURCE_DIR "/tests/peers/graphql-clients/clients.mjs",
                             client, url, operations.dump()},
                            {{"GRAPHQL_CLIENTS_MODULES", modules().string()},
                             {"CF_API_KEY", token},
                             {"ORIGIN", origin}});
    EXPECT_EQ(answer.exit_code, 0) << answer.err;
    co_return Json::parse(answer.out, nullptr, false);
  }
};

// The Python client of the public GitOps steps: it asks for the schema, and sends only documents that
// are right by it.
struct PythonClient {
  static fs::path packages() { return peers_folder() / "share/python-gql"; }
  static std::optional<std::string> missing() {
    if (!fs::is_directory(packages() / "gql")) {
      return "python-gql is not built (./dev peers python-gql)";
    }
    if (!find_program("python3")) return "python3 is not installed";
    return std::nullopt;
  }
  static Task<Json> run(Harness& harness, const std::string& token, const Json& operations) {
    const auto answer =
        co_await run_beside({"python3", GITOPS_SOURCE_DIR "/tests/peers/python-gql/client.py",
                             harness.daemon->url() + "/app-proxy/api/graphql", operations.dump()},
                            {{"PYTHONPATH", packages().string()},
                             {"PYTHONDONTWRITEBYTECODE", "1"},
                             {"CF_API_KEY", token}});
    EXPECT_EQ(answer.exit_code, 0) << answer.err;
    co_return Json::parse(answer.out, nullptr, false);
  }
};

TEST(PythonGql, SendsTheDocumentsOfThePublicSteps) {
  GITOPS_REQUIRE_PEER(PythonClient);
  in_app_proxy_harness([](Harness& harness) -> Task<> {
    harness.start();
    co_await harness.account_known();
    const Json operations = Json::parse(R"json([
      {"query": "query VersionInfo { versionInfo { version __typename } }"},
      {"query": "query sync($applicationName: String!, $options: SyncOptions, $applicationNamespace: String) { sync(applicationName: $applicationName, options: $options, appNamespace: $applicationNamespace) { metadata { name __typename } __typename } }",
       "variables": {"applicationName": "shop", "options": {"prune": true}}},
      {"query": "query appProxyQuery($name: String!) { applicationProxyQuery(name: $name) { metadata { name } spec { syncPolicy { automated { prune } } } status { health { status } sync { status } } } }",
       "variables": {"name": "shop"}},
      {"query": "query appProxyQuery($name: String!) { applicationProxyQuery(name: $name) { spec { syncPolicy { automated { prune } } } } }",
       "variables": {"name": "shop"}},
      {"query": "query appProxyQuery($name: String!) { applicationProxyQuery(name: $name) { status { health { status } sync { status } } } }",
       "variables": {"name": "shop"}},
      {"query": "query appRollback($appName: String!, $appNamespace: String!, $historyId: Int!, $dryRun: Boolean, $prune: Boolean) { appRollback(appName: $appName, appNamespace: $appNamespace, historyId: $historyId, dryRun: $dryRun, prune: $prune) }",
       "variables": {"appName": "shop", "appNamespace": "argocd", "historyId": 1}},
      {"query": "query resource($application: String!, $kind: String!, $resourceName: String!, $version: String!, $group: String!) { resource(application: $application, kind: $kind, name: $application, resourceName: $resourceName, version: $version, group: $group) { liveState } }",
       "variables": {"application": "shop", "kind": "Rollout", "resourceName": "ui", "version": "v1alpha1", "group": "argoproj.io"}},
      {"query": "mutation resume($namespace: String!, $workflowName: String!) { resumeWorkflow(namespace: $namespace, workflowName: $workflowName) }",
       "variables": {"namespace": "ci", "workflowName": "w"}},
      {"query": "mutation terminate($namespace: String!, $workflowName: String!) { terminateWorkflow(namespace: $namespace, workflowName: $workflowName) }",
       "variables": {"namespace": "ci", "workflowName": "w"}},
      {"query": "mutation commitFiles($args: CommitFilesArgs!) { commitFiles(args: $args) { COMMIT_SHA: sha sha message date committer { name email } } }",
       "variables": {"args": {"branchName": "HEAD", "repo": "acme/shop", "files": [{"path": "a", "data": "b"}], "msg": "m", "description": "", "force": true}}},
      {"query": "mutation CreateGitSource($args: CreateGitSourceInput!) { createGitSource(args: $args) }",
       "variables": {"args": {"appName": "shop", "appSpecifier": "https://git.example.test/a/b.git", "destServer": "https://kubernetes.default.svc"}}},
      {"query": "mutation RemoveGitIntegration($name: String!) { removeGitIntegration(name: $name) }",
       "variables": {"name": "x"}},
      {"query": "query appProxyQuery($name: String!) { applicationProxyQuery(name: $name) { status { health { status } sync { status } } } }",
       "variables": {"applicationName": "shop"}},
      {"query": "mutation IntegrationFlow($input: IntegrationFlowInput!) { applyIntegration(input: $input) }",
       "variables": {"input": {"metadata": {"name": "jira", "type": "issue.jira", "runtimes": [], "isAllRuntimes": true}, "operation": "CREATE", "providerInfo": "{}", "secureData": "{}"}}}
    ])json");
    // Every field that public clients but the Go SDK ask for.
    for (const char* field :
         {"sync", "applicationProxyQuery", "appRollback", "resource", "resumeWorkflow",
          "terminateWorkflow", "commitFiles", "applyIntegration"}) {
      EXPECT_TRUE(std::ranges::any_of(operations, [&](const Json& operation) {
        return operation.value("query", "").contains("{ " + std::string(field) + "(");
      })) << field;
    }
    // He is no administrator, and the harness has neither a cluster nor Argo CD: what
    // counts is that each document is right by the schema, and how Python shows the answers.
    const auto results = co_await PythonClient::run(harness, Harness::kBob, operations);
    CO_ASSERT_EQ(results.size(), operations.size());
    EXPECT_EQ(results[0]["data"]["versionInfo"]["__typename"], "AppProxyVersionInfo");
    for (std::size_t i = 1; i < results.size(); ++i) {
      std::string error = results[i].value("error", "");
      // The steps make JSON of it in this way.
      std::ranges::replace(error, '\'', '"');
      const Json json = Json::parse(error, nullptr, false);
      EXPECT_TRUE(json.is_object()) << i << error;
      EXPECT_NE(json.value("message", ""), "") << i << error;
    }
    std::string forbidden = results.back().value("error", "");
    std::ranges::replace(forbidden, '\'', '"');
    const Json json = Json::parse(forbidden, nullptr, false);
    EXPECT_EQ(json.value("message", ""), "only an administrator of the account may do this");
    EXPECT_EQ(json.value("extensions", Json()), (Json{{"code", "FORBIDDEN"}, {"statusCode", 403}}));
  });
}

class WebSocketClient : public testing::TestWithParam<const char*> {};

TEST_P(WebSocketClient, RunsOperationsSideBySide) {
  GITOPS_REQUIRE_PEER(SocketClients);
  in_app_proxy_harness([](Harness& harness) -> Task<> {
    harness.start();
    co_await harness.account_known();
    const Json operations = Json::parse(R"([
      {"query": "query V{versionInfo{version __typename}}"},
      {"query": "query($name: String){gitIntegration(name: $name){name}}", "variables": {"name": "x"}},
      {"query": "{nothing}"},
      {"query": "{__typename}"}])");
    const auto results =
        co_await SocketClients::run(harness, GetParam(), Harness::kBob, operations, Harness::kPage);
    CO_ASSERT_EQ(results.size(), 4U);
    EXPECT_EQ(results[0]["answers"][0]["data"]["versionInfo"]["__typename"], "AppProxyVersionInfo");
    EXPECT_FALSE(results[0].contains("error"));
    CO_ASSERT_TRUE(results[1]["answers"][0].contains("data"));
    // Either client gets the refusal of a document as an error.
    EXPECT_THAT(results[2].dump(), HasSubstr("Cannot query field \\\"nothing\\\""));
    EXPECT_EQ(results[3]["answers"][0]["data"]["__typename"], "Query");
  });
}

TEST_P(WebSocketClient, IsToldThatItsTokenIsRefused) {
  GITOPS_REQUIRE_PEER(SocketClients);
  in_app_proxy_harness([](Harness& harness) -> Task<> {
    harness.start();
    co_await harness.account_known();
    for (const std::string& token :
         {std::string("nobody.0"), std::string(Harness::kEve), std::string()}) {
      const auto results = co_await SocketClients::run(
          harness, GetParam(), token, Json::parse(R"([{"query":"{__typename}"}])"));
      CO_ASSERT_EQ(results.size(), 1U);
      EXPECT_TRUE(results[0]["answers"].empty());
      EXPECT_THAT(results[0]["error"].dump(),
                  testing::AnyOf(HasSubstr("4403"), HasSubstr("Unauthorized")));
    }
  });
}

TEST_P(WebSocketClient, IsRefusedOnPagesOfOtherSites) {
  GITOPS_REQUIRE_PEER(SocketClients);
  in_app_proxy_harness([](Harness& harness) -> Task<> {
    harness.start();
    co_await harness.account_known();
    const auto results = co_await SocketClients::run(harness, GetParam(), Harness::kAnn,
                                                     Json::parse(R"([{"query":"{__typename}"}])"),
                                                     "https://evil.example");
    CO_ASSERT_EQ(results.size(), 1U);
    EXPECT_TRUE(results[0]["answers"].empty());
    EXPECT_THAT(results[0]["error"].dump(), HasSubstr("403"));
  });
}

INSTANTIATE_TEST_SUITE_P(Npm, WebSocketClient,
                         testing::Values("graphql-ws", "subscriptions-transport-ws"),
                         [](const auto& info) {
                           return std::string(info.param) == "graphql-ws" ? "graphql_ws" : "legacy";
                         });

}  // namespace
}  // namespace gitops::test
