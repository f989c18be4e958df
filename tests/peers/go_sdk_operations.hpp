#pragma once

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "contract/populated_control_plane.hpp"

// The operations that the public Go SDK has for the platform, with the results on a PopulatedControlPlane.
namespace gitops::test {

// An operation of the SDK: its method, its name in the program and in client_requests.txt, its argument, and what is
// expected of the result. Members of the result that are not in `expected` are not compared.
struct SdkOperation {
  std::string method;
  std::string command;
  std::string request;
  std::string arguments = {};
  nlohmann::json expected = {};
  bool is_of_runtime = false;  // sent with the token of prod
};

// Compares what `expected` has; lists as a whole.
inline void expect_has(const nlohmann::json& actual, const nlohmann::json& expected,
                       const std::string& path) {
  if (expected.is_object()) {
    for (const auto& [name, value] : expected.items()) {
      expect_has(actual.is_object() ? actual.value(name, nlohmann::json()) : nlohmann::json(),
                 value, path + "." + name);
    }
  } else if (expected.is_array()) {
    ASSERT_TRUE(actual.is_array()) << path << " " << actual;
    ASSERT_EQ(actual.size(), expected.size()) << path << " " << actual;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      expect_has(actual[i], expected[i], path + "[" + std::to_string(i) + "]");
    }
  } else {
    EXPECT_EQ(actual, expected) << path;
  }
}

inline nlohmann::json named(const std::string& name) {
  return {{"metadata", {{"name", name}}}};
}

inline nlohmann::json cluster_of(const char* name, const char* server, const char* status) {
  return {{"metadata", {{"name", name}, {"runtime", "prod"}}},
          {"server", server},
          {"info",
           {{"connectionState", {{"status", status}, {"message", "m"}}},
            {"serverVersion", "1.31"},
            {"cacheInfo", {{"resourcesCount", 7}, {"apisCount", 3}}}}}};
}

inline nlohmann::json runtime_prod() {
  auto runtime = named("prod");
  runtime["metadata"]["namespace"] = "gitops";
  runtime["self"] = {{"syncStatus", "SYNCED"}, {"healthStatus", "HEALTHY"}};
  runtime["syncStatus"] = "SYNCED";
  runtime["healthStatus"] = "HEALTHY";
  runtime["managed"] = false;
  runtime["cluster"] = "https://kubernetes.default.svc";
  runtime["runtimeVersion"] = "0.2.0";
  runtime["installationType"] = "HELM";
  return runtime;
}

inline nlohmann::json workflow_build() {
  return {
      {"metadata",
       {{"uid", "uid-build"}, {"name", "build"}, {"namespace", "ci"}, {"runtime", "prod"}}},
      {"projects", {"shop"}},
      {"spec",
       {{"entrypoint", "main"}, {"workflowTemplateRef", {{"name", "ci"}, {"namespace", "ci"}}}}},
      {"status",
       {{"phase", "Running"},
        {"progress", "1/2"},
        {"nodes", {{{"type", "Pod"}, {"name", "main"}}}}}},
      {"pipeline", named("push")}};
}

inline nlohmann::json pipeline_push() {
  return {{"metadata", {{"name", "push"}, {"namespace", "ci"}, {"runtime", "prod"}}},
          {"self", {{"syncStatus", "SYNCED"}, {"healthStatus", "HEALTHY"}}},
          {"spec", {{"trigger", "build"}}}};
}

inline std::vector<SdkOperation> sdk_entity_queries() {
  const nlohmann::json component{
      {"metadata", {{"name", "prod-argo-rollouts"}, {"runtime", "prod"}}},
      {"version", ""},
      {"self",
       {{"status", {{"syncStatus", "OUT_OF_SYNC"}, {"healthStatus", "DEGRADED"}}},
        {"errors",
         {{{"title", "Synchronization failed"},
           {"message", "one or more objects failed to apply"},
           {"level", "ERROR"}},
          nlohmann::json::object()}}}}};
  auto app_proxy = named("cap-app-proxy");
  app_proxy["version"] = "0.2.0";
  app_proxy["self"] = {{"status", {{"syncStatus", "SYNCED"}, {"healthStatus", "HEALTHY"}}}};
  auto source = named("prod-apps");
  source["self"] = {{"path", "apps/prod-apps"},
                    {"repoURL", "https://git.example.test/acme/apps.git"},
                    {"status", {{"syncStatus", "SYNCED"}, {"healthStatus", "HEALTHY"}}}};
  return {
      {"Component.List", "components", "components", "", {app_proxy, component}},
      {"GitSource.List", "git-sources", "git-sources", "", nlohmann::json::array({source})},
      {"Workflow.List", "workflows", "workflows", R"({"project":"","runtime":"","namespace":""})",
       nlohmann::json::array({workflow_build()})},
      {"Workflow.Get", "workflow", "workflow", "uid-build", workflow_build()},
      {"Pipeline.List", "pipelines", "pipelines",
       R"({"project":"","runtime":"","namespace":"","name":""})",
       nlohmann::json::array({pipeline_push()})},
      {"Pipeline.Get", "pipeline", "pipeline", R"({"name":"push","namespace":"ci"})",
       pipeline_push()},
  };
}

inline std::vector<SdkOperation> sdk_queries(const PopulatedControlPlane& bed) {
  const nlohmann::json me{{"id", bed.admin_id},
                          {"name", "admin"},
                          {"isAdmin", true},
                          {"accounts", {{{"id", bed.account_id}, {"name", "default"}}}},
                          {"activeAccount",
                           {{"id", bed.account_id},
                            {"name", "default"},
                            {"admins", {bed.admin_id}},
                            {"features", {{"gitopsPlanEnforcement", false}}}}}};
  auto runtime = runtime_prod();
  runtime.update(nlohmann::json{{"isRemoteClusterConnected", false},
                                {"ingressClass", "nginx"},
                                {"ingressController", "k8s.io/ingress-nginx"},
                                {"managedClustersNum", 1},
                                {"installationStatus", "IN_PROGRESS"},
                                {"accessMode", "TUNNEL"}});
  auto stage = named("stage");
  stage.update(nlohmann::json{{"self", nullptr},
                              {"syncStatus", "UNKNOWN"},
                              {"runtimeVersion", "0.0.0"},
                              {"installationType", "HELM"}});
  const nlohmann::json clusters{
      cluster_of("east", "https://10.0.0.1", "Failed"),
      cluster_of("in-cluster", "https://kubernetes.default.svc", "Successful")};
  std::vector<SdkOperation> all{
      {"User.GetCurrent", "me", "me", "", me},
      {"Runtime.List", "runtimes", "runtimes", "", {runtime_prod(), stage}},
      {"Runtime.Get", "runtime", "runtime", "", runtime},
      {"Cluster.List", "clusters", "clusters-all", "", clusters},
      {"Cluster.List", "clusters", "clusters", "prod", clusters},
      {"Payments.GetLimitsStatus",
       "limits-status",
       "limits-status",
       "",
       {{"usage", {{"clusters", 2}, {"applications", 4}}}, {"limits", nullptr}, {"status", true}}},
      {"PromotionTemplate.GetVersionSourceByRuntime",
       "version-source",
       "version-source",
       R"({"name":"shop","namespace":"argocd","runtime":"prod"})",
       {{"versionSource", {{"file", "Chart.yaml"}, {"jsonPath", "$.appVersion"}}}}},
      {"CliRelease.GetLatest", "latest-cli-release", "latest-cli-release", "", ""},
  };
  std::ranges::move(sdk_entity_queries(), std::back_inserter(all));
  return all;
}

// In an order in which each finds what it needs.
inline std::vector<SdkOperation> sdk_mutations() {
  const std::string repository = "https://github.example.test/acme/config.git";
  const std::string create =
      R"({"runtimeName":"prod","cluster":"https://kubernetes.default.svc","runtimeVersion":"0.1.0"})";
  return {
      {"Runtime.ReportErrors", "report-errors", "report-errors",
       R"({"runtime":"prod","errors":[{"level":"ERROR","message":"m"}]})", 1, true},
      {"Account.UpdateCsdpSettings", "update-settings", "update-settings",
       nlohmann::json{{"provider", "GITHUB"},
                      {"api", "https://api.github.example.test"},
                      {"repository", repository}}
           .dump(),
       nullptr},
      {"Runtime.SetSharedConfigRepo", "suggest-isc-repo", "suggest-isc-repo", repository,
       repository},
      {"Runtime.MigrateRuntime", "migrate-runtime", "migrate-runtime", "", nullptr},
      {"Runtime.Create", "create-runtime", "create-runtime", create, {{"name", "prod"}}},
      {"Runtime.Delete", "delete-runtime", "delete-runtime", "", 0},
      {"Runtime.Create", "create-runtime", "create-runtime", create, {{"name", "prod"}}},
      {"Runtime.DeleteManaged", "delete-managed-runtime", "delete-managed-runtime", "", 0},
  };
}

}  // namespace gitops::test
