// A delivery pipeline on the real programs: app-proxy commits WorkflowTemplate, EventSource and Sensor to a
// repository of a real Gitea, a real Argo CD applies them as a Git source, and a webhook that a real event
// source takes has a real sensor submit the Workflow. The control plane is the double.
#include <functional>

#include <gmock/gmock.h>

#include "peers/gitea_account.hpp"
#include "peers/peer_bed.hpp"
#include "peers/peer_events.hpp"
#include "peers/peer_workflows.hpp"
#include "support/wait.hpp"

namespace gitops::test {
namespace {

using Json = nlohmann::json;
using namespace nlohmann::literals;
constexpr auto kAnn = AppProxyHarness::kAnn;
constexpr auto kTimeLimit = std::chrono::seconds(60);
constexpr const char* kNamespace = "pipelines";
constexpr const char* kObjects = "/apis/argoproj.io/v1alpha1/namespaces/pipelines/";

constexpr const char* kTemplate = R"(apiVersion: argoproj.io/v1alpha1
kind: WorkflowTemplate
metadata: {name: build}
spec:
  entrypoint: main
  arguments: {parameters: [{name: commit, value: none}]}
  templates: [{name: main, suspend: {}}]
)";

// The ports of a cluster are those of this machine here.
std::string event_source(int port) {
  return R"(apiVersion: argoproj.io/v1alpha1
kind: EventSource
metadata: {name: shop}
spec:
  webhook:
    push: {endpoint: /webhooks/pipelines/shop/push, method: POST, port: ")" +
         std::to_string(port) + "\"}\n";
}

// Pushes to main only; the id of the commit becomes a parameter of the Workflow.
constexpr const char* kSensor = R"(apiVersion: argoproj.io/v1alpha1
kind: Sensor
metadata: {name: build}
spec:
  dependencies:
  - name: push
    eventSourceName: shop
    eventName: push
    filters: {data: [{path: body.ref, type: string, value: [refs/heads/main]}]}
  triggers:
  - template:
      name: build
      k8s:
        operation: create
        source:
          resource:
            apiVersion: argoproj.io/v1alpha1
            kind: Workflow
            metadata: {generateName: build-, namespace: pipelines}
            spec:
              workflowTemplateRef: {name: build}
              arguments: {parameters: [{name: commit, value: none}]}
        parameters:
        - src: {dependencyName: push, dataKey: body.after}
          dest: spec.arguments.parameters.0.value
)";

struct Programs {
  static std::optional<std::string> missing() {
    if (auto lacking = PeerBed::missing()) return lacking;
    if (auto lacking = PeerGitea::missing()) return lacking;
    if (auto lacking = PeerEvents::missing()) return lacking;
    return PeerWorkflows::missing();
  }
};

TEST(Pipelines, FromThreeFilesToAWorkflowThatAWebhookStarts) {
  GITOPS_REQUIRE_PEER(Programs);
  auto& bed = peer_bed();
  PeerWorkflows workflows(bed.cluster(), {});
  PeerEvents events(bed.cluster());
  GiteaAccount git;
  git.gitea.create_repository(git.ann, "builds");
  const auto argocd_knows = [&](const char* repository) {
    bed.argocd().request_ok("POST", "/api/v1/repositories", git.for_argocd(repository));
  };
  argocd_knows("builds");
  bed.cluster().create_namespace(kNamespace);
  const int port = free_port();
  const auto objects = [&](const std::string& path) {
    return Json::parse(bed.cluster().request("GET", kObjects + path).body, nullptr, false);
  };
  in_app_proxy_harness(
      [&](AppProxyHarness& harness) -> Task<> {
        git.tell(harness.platform);
        TempDir folder;
        auto environment = git.environment(folder);
        environment.merge(Environment{{"KUBECONFIG", bed.cluster().kubeconfig().string()},
                                      {"NAMESPACE", PeerArgoCd::kNamespace},
                                      {"RUNTIME_STORE_IV", "canary-iv"}});
        harness.start(std::move(environment));
        co_await harness.account_known();
        const auto done = [&](std::string type, std::string field, Json args,
                              const char* selection = "") -> Task<> {
          const auto answer = co_await harness.ask(
              "mutation($args: " + type + "!){" + field + "(args: $args)" + selection + "}",
              AppProxyHarness::as(kAnn), {{"args", std::move(args)}});
          EXPECT_FALSE(answer.json.contains("errors")) << answer.body;
        };
        co_await done("AddGitIntegrationArgs", "addGitIntegration",
                      {{"provider", "GITHUB"},
                       {"apiUrl", git.gitea.url() + "/api/v1"},
                       {"sharingPolicy", "ALL_USERS_IN_ACCOUNT"}},
                      "{name}");
        co_await done("RegisterToGitIntegrationArgs", "registerToGitIntegration",
                      {{"token", git.ann.token}}, "{name}");
        Json files = Json::array();
        for (const auto& [path, data] : {std::pair<const char*, std::string>("template", kTemplate),
                                         {"event-source", event_source(port)},
                                         {"sensor", kSensor}}) {
          files.push_back({{"path", std::string("build/") + path + ".yaml"}, {"data", data}});
        }
        co_await done("CommitFilesArgs", "commitFiles",
                      {{"repo", "ann/builds"},
                       {"branchName", "HEAD"},
                       {"files", std::move(files)},
                       {"msg", "Add pipeline build"}},
                      "{sha}");
        co_await done("CreateGitSourceInput", "createGitSource",
                      {{"appName", "pipelines"},
                       {"appSpecifier", git.url("builds") + "/build?ref=main"},
                       {"destServer", "https://kubernetes.default.svc"},
                       {"destNamespace", kNamespace}});
        argocd_knows("config");
        CO_ASSERT_TRUE(co_await eventually(
            [&] {
              for (const char* name : {"prod", "in-cluster", "pipelines"}) {
                (void)bed.argocd().request(
                    "GET", "/api/v1/applications/" + std::string(name) + "?refresh=normal");
              }
              return objects("sensors/build").contains("spec") &&
                     objects("eventsources/shop").contains("spec") &&
                     objects("workflowtemplates/build").contains("spec");
            },
            "the three objects", kTimeLimit));

        // A sensor's subscription stays on the bus when it makes room for the event source.
        events.act(kNamespace, "build");
        CO_ASSERT_TRUE(
            co_await eventually([&] { return events.consumers() > 0; }, "the sensor", kTimeLimit));
        events.watch(kNamespace, "shop", bed.cluster().kubeconfig());
        const auto push = [&](const char* ref, const char* commit) {
          return http_call({.method = "POST",
                            .url = "http://127.0.0.1:" + std::to_string(port) +
                                   "/webhooks/pipelines/shop/push",
                            .headers = {"Content-Type: application/json"},
                            .body = Json{{"ref", ref}, {"after", commit}}.dump()})
              .ok();
        };
        CO_ASSERT_TRUE(co_await eventually([&] { return push("refs/heads/other", "c0ffee"); },
                                           "the webhook", kTimeLimit));
        EXPECT_TRUE(push("refs/heads/main", "4f1d2c"));
        CO_ASSERT_TRUE(co_await eventually([&] { return events.stored_messages() >= 2; },
                                           "the events on the bus", kTimeLimit));
        EXPECT_EQ(objects("workflows")["items"].size(), 0U);
        events.act(kNamespace, "build");
        const auto running = [&]() -> Json {
          for (auto& workflow : objects("workflows")["items"]) {
            if (workflow.value("/status/phase"_json_pointer, "") == "Running") return workflow;
          }
          return nullptr;
        };
        CO_ASSERT_TRUE(
            co_await eventually([&] { return running().is_object(); }, "the Workflow", kTimeLimit));
        const Json workflow = running();
        EXPECT_EQ(workflow.value("/spec/workflowTemplateRef/name"_json_pointer, ""), "build");
        EXPECT_EQ(workflow.value("/spec/arguments/parameters/0/value"_json_pointer, ""), "4f1d2c");
        // The other branch started nothing.
        EXPECT_EQ(objects("workflows")["items"].size(), 1U) << events.logs();
      },
      5 * kTimeLimit);
}

}  // namespace
}  // namespace gitops::test
