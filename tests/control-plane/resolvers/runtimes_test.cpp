#include "control-plane/resolvers/runtimes.hpp"

#include <gmock/gmock.h>

#include "control-plane/resolvers/graphql_fixture.hpp"

namespace gitops::control_plane_server {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

constexpr const char* kCreate =
    "mutation CreateRuntime($installationArgs: RuntimeInstallationArgs!){createRuntime("
    "installationArgs: $installationArgs){name newAccessToken}}";
// The SDK's query, shortened to the fields that make clients fail.
constexpr const char* kRuntimes =
    "query Runtimes { runtimes { edges { node { metadata { name namespace } self { syncStatus "
    "healthMessage healthStatus } syncStatus healthMessage healthStatus managed cluster "
    "ingressHost runtimeVersion installationStatus installationType } } } }";

Json arguments(const char* name) {
  return {{"installationArgs",
           {{"runtimeName", name},
            {"runtimeNamespace", "gitops"},
            {"cluster", "https://k"},
            {"runtimeVersion", "0.1.0"},
            {"installationType", "CLI"},
            {"componentNames", nullptr}}}};
}

Json cluster(const char* name, const char* runtime, const char* status, const char* message) {
  return {{"name", name},
          {"runtime", runtime},
          {"server", std::string("https://") + name},
          {"info",
           {{"connectionState", {{"status", status}, {"message", message}}},
            {"applicationsCount", 1}}}};
}

TEST(RuntimeFields, ARuntimeIsRegisteredShownAndDeleted) {
  with_graphql([](GraphqlFixture& fixture) -> Task<> {
    const auto made = co_await fixture.ask(fixture.sample.ann_key, kCreate, arguments("stage"));
    CO_ASSERT_TRUE(!made.contains("errors")) << made;
    const Secret token{made["data"]["createRuntime"]["newAccessToken"].get<std::string>()};
    const auto me =
        co_await fixture.ask(token,
                             "{me{id runtimeName activeAccount{id features{"
                             "gitopsPlanEnforcement csdpFilterAppsByGitPermissions}}}}");
    EXPECT_EQ(me["data"]["me"]["runtimeName"], "stage") << me;
    EXPECT_TRUE(me["data"]["me"]["id"].is_null());
    EXPECT_EQ(me["data"]["me"]["activeAccount"]["id"], fixture.sample.acme.id);

    const auto list = co_await fixture.ask(fixture.sample.bob_key, kRuntimes);
    CO_ASSERT_EQ(list["data"]["runtimes"]["edges"].size(), 2U) << list;
    const auto& node = list["data"]["runtimes"]["edges"][1]["node"];
    EXPECT_EQ(node["metadata"]["name"], "stage");
    EXPECT_EQ(node["installationType"], "HELM") << "also when it was registered as something else";
    EXPECT_EQ(node["syncStatus"], "UNKNOWN");

    const auto again = co_await fixture.ask(fixture.sample.ann_key, kCreate, arguments("stage"));
    EXPECT_NE(again["data"]["createRuntime"]["newAccessToken"].get<std::string>(), token.reveal());
    const auto old = co_await fixture.ask(token, "{me{runtimeName}}");
    EXPECT_EQ(old["errors"][0]["extensions"]["code"], "UNAUTHENTICATED") << old;

    const auto gone = co_await fixture.ask(
        fixture.sample.ann_key,
        "mutation deleteRuntime($name: String!) { deleteRuntime(name: $name) }",
        {{"name", "stage"}});
    EXPECT_EQ(gone["data"]["deleteRuntime"], 0) << gone;
    const auto missing =
        co_await fixture.ask(fixture.sample.bob_key, R"({runtime(name:"stage"){metadata{name}}})");
    EXPECT_EQ(missing, (Json{{"data", {{"runtime", nullptr}}}}));
    const auto twice =
        co_await fixture.ask(fixture.sample.ann_key, R"(mutation{deleteRuntime(name:"stage")})");
    EXPECT_THAT(twice["errors"][0]["message"].get<std::string>(), HasSubstr("does not exist"));
  });
}

TEST(RuntimeFields, AC_34_RuntimesOfOtherAccountsAreAbsent) {
  with_graphql([](GraphqlFixture& fixture) -> Task<> {
    const auto runtime =
        co_await fixture.ask(fixture.sample.eve_key, R"({runtime(name:"prod"){metadata{name}}})");
    EXPECT_EQ(runtime, (Json{{"data", {{"runtime", nullptr}}}}));
    const auto list = co_await fixture.ask(fixture.sample.eve_key, kRuntimes);
    EXPECT_TRUE(list["data"]["runtimes"]["edges"].empty()) << list;
  });
}

TEST(RuntimeFields, AMalformedNameIsRefused) {
  with_graphql([](GraphqlFixture& fixture) -> Task<> {
    for (const auto* name : {"", "Prod", "a/b", "-a"}) {
      const auto made = co_await fixture.ask(fixture.sample.ann_key, kCreate, arguments(name));
      EXPECT_EQ(made["errors"][0]["extensions"]["code"], "INVALID_ARGUMENT") << name;
    }
  });
}

TEST(RuntimeFields, ARuntimeReportsItsStatusAndErrors) {
  with_graphql([](GraphqlFixture& fixture) -> Task<> {
    const Json status{{"args",
                       {{"runtime", "prod"},
                        {"status",
                         {{"isc", {{"status", "SUCCESSFUL"}, {"description", "fine"}}},
                          {"syncMode", "GITOPS"},
                          {"argoCdState", {{"status", "SUCCESSFUL"}}}}}}}};
    const auto told = co_await fixture.ask(
        fixture.sample.prod_token,
        "mutation UpdateRuntimeStatus($args: UpdateRuntimeStatusArgs!){updateRuntimeStatus(args: "
        "$args)}",
        status);
    CO_ASSERT_TRUE(!told.contains("errors")) << told;
    const Json errors{{"reportErrorsArgs",
                       {{"runtime", "prod"},
                        {"errors", Json::array({{{"level", "WARNING"}, {"message", "slow"}}})}}}};
    const auto reported = co_await fixture.ask(
        fixture.sample.prod_token,
        "mutation ReportRuntimeErrors($reportErrorsArgs: ReportRuntimeErrorsArgs!){"
        "reportRuntimeErrors(reportErrorsArgs: $reportErrorsArgs)}",
        errors);
    EXPECT_EQ(reported["data"]["reportRuntimeErrors"], 1) << reported;
    const auto shown = co_await fixture.ask(
        fixture.sample.bob_key,
        R"({runtime(name:"prod"){status{isc{status description} syncMode argoCdState}
          errors{level message ...on HealthError{code}}}})");
    const auto& runtime = shown["data"]["runtime"];
    EXPECT_EQ(runtime["status"]["isc"]["status"], "SUCCESSFUL") << shown;
    EXPECT_EQ(runtime["status"]["syncMode"], "GITOPS");
    EXPECT_EQ(runtime["status"]["argoCdState"], "CONNECTED");
    EXPECT_EQ(runtime["errors"][0]["message"], "slow");
  });
}

TEST(RuntimeFields, AC_34_ATokenSpeaksForItsOwnRuntime) {
  with_graphql([](GraphqlFixture& fixture) -> Task<> {
    const auto told =
        co_await fixture.ask(fixture.sample.prod_token,
                             R"(mutation{updateRuntimeStatus(args:{runtime:"stage",status:{}})})");
    EXPECT_EQ(told["errors"][0]["extensions"]["code"], "INVALID_ARGUMENT") << told;
    const auto clusters = co_await fixture.ask(
        fixture.sample.prod_token,
        "mutation($clusters: [ClusterUpsertArgs]){updateRuntimeClusters(clusters: $clusters)}",
        {{"clusters", Json::array({cluster("a", "stage", "Successful", "")})}});
    EXPECT_EQ(clusters["errors"][0]["extensions"]["code"], "INVALID_ARGUMENT") << clusters;
  });
}

TEST(RuntimeFields, ClustersAreReportedAndListedInPages) {
  with_graphql([](GraphqlFixture& fixture) -> Task<> {
    const auto told = co_await fixture.ask(
        fixture.sample.prod_token,
        "mutation($clusters: [ClusterUpsertArgs]){updateRuntimeClusters(clusters: $clusters)}",
        {{"clusters", Json::array({cluster("a", "prod", "Successful", ""),
                                   cluster("b", "prod", "Failed", "no route"),
                                   cluster("c", "prod", "Unknown", "")})}});
    EXPECT_EQ(told["data"]["updateRuntimeClusters"], true) << told;
    std::vector<std::string> names;
    Json pagination{{"after", ""}, {"first", 2}};
    for (int page = 0; page < 3; ++page) {
      const auto list = co_await fixture.ask(
          fixture.sample.bob_key,
          "query clusters($runtime: String, $pagination: SlicePaginationArgs){clusters(runtime: "
          "$runtime, pagination: $pagination){edges{node{metadata{name runtime} server info{"
          "connectionState{status message} serverVersion cacheInfo{resourcesCount apisCount}}}} "
          "pageInfo{endCursor hasNextPage}}}",
          {{"runtime", ""}, {"pagination", pagination}});
      CO_ASSERT_TRUE(!list.contains("errors")) << list;
      const auto& clusters = list["data"]["clusters"];
      for (const auto& edge : clusters["edges"]) {
        names.push_back(edge["node"]["metadata"]["name"].get<std::string>());
        EXPECT_TRUE(edge["node"]["info"]["connectionState"]["status"].is_string());
      }
      if (clusters["pageInfo"]["hasNextPage"] != true) break;
      CO_ASSERT_TRUE(clusters["pageInfo"]["endCursor"].is_string());
      pagination["after"] = clusters["pageInfo"]["endCursor"];
    }
    EXPECT_THAT(names, testing::ElementsAre("a", "b", "c"));
    const auto runtime =
        co_await fixture.ask(fixture.sample.bob_key,
                             R"({runtime(name:"prod"){managedClustersNum isRemoteClusterConnected
          managedClusters{metadata{name}}}})");
    EXPECT_EQ(runtime["data"]["runtime"]["managedClustersNum"], 3) << runtime;
    EXPECT_EQ(runtime["data"]["runtime"]["isRemoteClusterConnected"], true);
    EXPECT_EQ(runtime["data"]["runtime"]["managedClusters"].size(), 3U);
  });
}

}  // namespace
}  // namespace gitops::control_plane_server
