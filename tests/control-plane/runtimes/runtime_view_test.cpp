#include "control-plane/runtimes/runtime_view.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "control-plane/accounts/account_store.hpp"

namespace gitops::control_plane_server {
namespace {

using Json = nlohmann::json;

constexpr Micros kNow = 1'790'000'000LL * 1'000'000;

Account sample_account() {
  Account account;
  account.number = 1;
  account.id = "0123456789abcdef01234567";
  account.name = "acme";
  account.git_provider = "GITHUB";
  account.shared_config_repo = "https://github.example/acme/config.git";
  return account;
}

RuntimeRow sample_runtime() {
  return {.name = "prod",
          .runtime_namespace = "gitops",
          .cluster = "https://10.0.0.1",
          .arguments = R"({"runtimeName":"prod","runtimeVersion":"0.1.0",
            "ingressHost":"https://prod.example","installationType":"HELM","managed":false,
            "isExternalArgoCd":true})",
          .status = "{}",
          .errors = "[]",
          .is_configuration_runtime = true,
          .created_at = kNow - 1,
          .seen_at = kNow};
}

struct RuntimeView : testing::Test {
  Json shown() {
    facts.now = kNow;
    return Json::parse(runtime_json(runtime, facts));
  }
  void set_argument(const char* name, const Json& value) {
    auto arguments = Json::parse(runtime.arguments);
    arguments[name] = value;
    runtime.arguments = arguments.dump();
  }

  Account account = sample_account();
  RuntimeRow runtime = sample_runtime();
  RuntimeFacts facts{.account = account};
};

TEST_F(RuntimeView, ARuntimeThatReportedNothingHasAllEnums) {
  runtime.arguments = "{}";
  runtime.seen_at = 0;
  const auto json = shown();
  EXPECT_EQ(json["syncStatus"], "UNKNOWN");
  EXPECT_TRUE(json["healthStatus"].is_null());
  EXPECT_TRUE(json["self"].is_null());
  EXPECT_EQ(json["installationType"], "HELM");
  EXPECT_EQ(json["installationStatus"], "IN_PROGRESS");
  EXPECT_EQ(json["accessMode"], "INGRESS");
  EXPECT_EQ(json["runtimeVersion"], "0.0.0");
  EXPECT_EQ(json["managedClustersNum"], 0);
  EXPECT_EQ(json["managed"], false);
  EXPECT_EQ(json["available"], false);
  EXPECT_EQ(json["status"]["syncMode"], "UNKNOWN");
  EXPECT_EQ(json["status"]["argoCdState"], "UNKNOWN");
  EXPECT_EQ(json["status"]["isc"]["status"], "UNKNOWN");
  EXPECT_TRUE(json["lastUpdated"].is_null());
}

TEST_F(RuntimeView, WhatTheRuntimeWasRegisteredWithIsShown) {
  const auto json = shown();
  EXPECT_EQ(json["metadata"]["name"], "prod");
  EXPECT_EQ(json["metadata"]["namespace"], "gitops");
  EXPECT_EQ(json["metadata"]["runtime"], "prod");
  EXPECT_EQ(json["metadata"]["account"], account.id);
  EXPECT_EQ(json["ingressHost"], "https://prod.example");
  EXPECT_TRUE(json["internalIngressHost"].is_null());
  EXPECT_EQ(json["runtimeVersion"], "0.1.0");
  EXPECT_EQ(json["isExternalArgoCd"], true);
  EXPECT_EQ(json["isConfigurationRuntime"], true);
  EXPECT_EQ(json["gitProvider"], "GITHUB");
  EXPECT_EQ(json["repo"], account.shared_config_repo);
  EXPECT_EQ(json["available"], true);
}

TEST_F(RuntimeView, NoTextOfARuntimeMakesAnUnknownWord) {
  for (const auto& odd : {Json("CLI"), Json("helm"), Json(""), Json(1), Json(nullptr),
                          Json::array(), Json::object()}) {
    set_argument("installationType", odd);
    set_argument("accessMode", odd);
    set_argument("runtimeVersion", odd);
    set_argument("managed", odd);
    runtime.status = Json{{"syncMode", odd}, {"argoCdState", odd}, {"isc", odd}}.dump();
    const auto json = shown();
    EXPECT_EQ(json["installationType"], "HELM") << odd;
    EXPECT_EQ(json["accessMode"], "INGRESS") << odd;
    EXPECT_EQ(json["runtimeVersion"], "0.0.0") << odd;
    EXPECT_EQ(json["managed"], false) << odd;
    EXPECT_EQ(json["status"]["syncMode"], "UNKNOWN") << odd;
    EXPECT_EQ(json["status"]["argoCdState"], "UNKNOWN") << odd;
    EXPECT_EQ(json["status"]["isc"]["status"], "UNKNOWN") << odd;
  }
  runtime.arguments = runtime.status = runtime.errors = "not JSON";
  EXPECT_EQ(shown()["installationType"], "HELM");
}

TEST_F(RuntimeView, AVersionIsOneThatClientsCanParse) {
  for (const auto& [given, expected] :
       std::vector<std::pair<std::string, std::string>>{{"0.1.0", "0.1.0"},
                                                        {"v0.1.0", "0.1.0"},
                                                        {"1.2.3-rc.1+build", "1.2.3-rc.1+build"},
                                                        {"1.2", "0.0.0"},
                                                        {"1.2.3.4", "0.0.0"},
                                                        {"01.2.3", "0.0.0"},
                                                        {"1.2.3 ", "0.0.0"},
                                                        {"latest", "0.0.0"}}) {
    set_argument("runtimeVersion", given);
    EXPECT_EQ(shown()["runtimeVersion"], expected) << given;
  }
}

TEST_F(RuntimeView, TheInstallationIsCompleteWithAGitTokenAndARepository) {
  EXPECT_EQ(shown()["installationStatus"], "IN_PROGRESS");
  runtime.status = R"({"runtimeGitToken":{"status":"SUCCESSFUL"}})";
  EXPECT_EQ(shown()["installationStatus"], "COMPLETED");
  account.shared_config_repo.clear();
  EXPECT_EQ(shown()["installationStatus"], "IN_PROGRESS");
}

TEST_F(RuntimeView, AHostBelowTheTunnelDomainIsATunnel) {
  set_argument("ingressHost", "https://0123-prod.tunnels.example");
  EXPECT_EQ(shown()["accessMode"], "INGRESS");
  facts.tunnel_domain = "tunnels.example";
  EXPECT_EQ(shown()["accessMode"], "TUNNEL");
  set_argument("ingressHost", "https://eviltunnels.example");
  EXPECT_EQ(shown()["accessMode"], "INGRESS");
}

TEST_F(RuntimeView, StatesOfOlderAndNewerRuntimesAreUnderstood) {
  runtime.status =
      R"({"syncMode":"GITOPS","argoCdState":"CONNECTED",
          "isc":{"status":"FAILED","description":"no access"}})";
  auto status = shown()["status"];
  EXPECT_EQ(status["syncMode"], "GITOPS");
  EXPECT_EQ(status["argoCdState"], "CONNECTED");
  EXPECT_EQ(status["isc"]["status"], "FAILED");
  EXPECT_EQ(status["isc"]["description"], "no access");
  runtime.status = R"({"syncMode":{"status":"SUCCESSFUL","description":"HELM"},
                       "argoCdState":{"status":"SUCCESSFUL","description":""}})";
  status = shown()["status"];
  EXPECT_EQ(status["syncMode"], "HELM");
  EXPECT_EQ(status["argoCdState"], "CONNECTED");
  for (const auto& [description, expected] : std::vector<std::pair<std::string, std::string>>{
           {"Argo CD: 401 Unauthorized", "NOT_AUTHORIZED"},
           {"no such host", "NOT_FOUND"},
           {"it broke", "UNKNOWN"}}) {
    runtime.status =
        Json{{"argoCdState", {{"status", "FAILED"}, {"description", description}}}}.dump();
    EXPECT_EQ(shown()["status"]["argoCdState"], expected) << description;
  }
}

TEST_F(RuntimeView, SyncAndHealthAreThoseOfTheRuntimesApplication) {
  facts.applications = {{.runtime = "prod", .entity = "internal-config", .name = "isc"},
                        {.runtime = "prod",
                         .entity = "runtime",
                         .name = "prod-app",
                         .application_namespace = "gitops",
                         .sync = SyncStatus::out_of_sync,
                         .health = HealthStatus::degraded,
                         .health_message = "broken"}};
  const auto json = shown();
  EXPECT_EQ(json["syncStatus"], "OUT_OF_SYNC");
  EXPECT_EQ(json["healthStatus"], "DEGRADED");
  EXPECT_EQ(json["healthMessage"], "broken");
  EXPECT_EQ(json["self"]["syncStatus"], "OUT_OF_SYNC");
  EXPECT_EQ(json["self"]["metadata"]["name"], "prod-app");
  EXPECT_EQ(json["runtimeApplicationName"], "prod-app");
  EXPECT_EQ(json["internalSharedConfigAppName"], "isc");
  EXPECT_TRUE(json["inClusterApplicationName"].is_null());
}

TEST_F(RuntimeView, TheApplicationOfItsOwnClusterIsNotThatOfAManagedOne) {
  facts.applications = {
      {.runtime = "prod", .entity = "internal-config", .name = "a-managed-cluster"},
      {.runtime = "prod", .entity = "internal-config", .name = "in-cluster"}};
  const auto json = shown();
  EXPECT_EQ(json["internalSharedConfigAppName"], "in-cluster");
  EXPECT_EQ(json["inClusterApplicationName"], "in-cluster");
}

TEST_F(RuntimeView, ReportedErrorsAreShown) {
  runtime.errors = R"([{"level":"WARNING","message":"slow"},{"level":"ODD","message":"bad"}])";
  const auto json = shown();
  ASSERT_EQ(json["errors"].size(), 2U);
  EXPECT_EQ(json["errors"][0]["__typename"], "HealthError");
  EXPECT_EQ(json["errors"][0]["level"], "WARNING");
  EXPECT_EQ(json["errors"][1]["level"], "ERROR");
  EXPECT_EQ(json["healthMessage"], "slow");
}

TEST_F(RuntimeView, ItIsOnlineForSomeMinutesAfterItsLastRequest) {
  runtime.seen_at = kNow - kRuntimeOnline;
  EXPECT_EQ(shown()["available"], true);
  --runtime.seen_at;
  EXPECT_EQ(shown()["available"], false);
}

TEST_F(RuntimeView, AProviderThatTheSdkDoesNotKnowIsNotShown) {
  account.git_provider = "GITEA";
  EXPECT_TRUE(shown()["gitProvider"].is_null());
  account.git_provider = "";
  EXPECT_TRUE(shown()["gitProvider"].is_null());
}

}  // namespace
}  // namespace gitops::control_plane_server
