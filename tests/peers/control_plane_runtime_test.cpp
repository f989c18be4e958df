// Whole runtimes that the real control plane shows: app-proxy registers itself with a user's key, both event-reporters
// report with the token that it got, and users reach it by an ingress and by a tunnel. All programs are real, and so are
// Kubernetes, Argo CD, Argo Rollouts, Argo Workflows and Gitea; the control plane serves by TLS.
#include <algorithm>
#include <exception>
#include <memory>
#include <thread>

#include "peers/control_plane_runtime_bed.hpp"

namespace gitops::test {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

// The image of the Deployment in a release.
Json web_image(const Json& release) {
  for (const Json& service : release["toState"]["services"]) {
    if (service["name"] == "web") return service["images"][0];
  }
  return Json::object();
}

constexpr const char* kInCluster = "https://kubernetes.default.svc";

// All of them look at one runtime.
struct RuntimeByIngress : testing::Test {
  void SetUp() override {
    GITOPS_REQUIRE_PEER(RuntimePrograms);
    if (failure) std::rethrow_exception(failure);
    if (runtime) return;
    try {
      runtime = std::make_unique<ShopRuntime>();
    } catch (...) {
      failure = std::current_exception();
      throw;
    }
  }
  static void TearDownTestSuite() {
    if (runtime) run_coro([]() -> Task<> { co_await runtime->bed->stop(); }, kTimeLimit);
    runtime.reset();
  }

  static inline std::unique_ptr<ShopRuntime> runtime;
  static inline std::exception_ptr failure;
};

TEST_F(RuntimeByIngress, ShowsItsRegistrationAndItsStatus) {
  const auto state = shown(
      "the status of the runtime",
      [] {
        return runtime->plane.ask(
            R"({runtime(name: "fresh") {metadata {namespace} runtimeVersion chartVersion accessMode
              available installationStatus syncStatus healthStatus repo errors {message}
              runtimeApplicationName inClusterApplicationName
              status {encryptionIv {status} eventReporterArgoCDToken {status}
                runtimeGitToken {status} isc {status} syncMode argoCdState}}})");
      },
      [](const Json& shown) {
        return shown["installationStatus"] == "COMPLETED" && shown["syncStatus"] == "SYNCED" &&
               shown["healthStatus"] == "HEALTHY" &&
               shown["status"]["argoCdState"] == "CONNECTED" &&
               shown["status"]["isc"]["status"] == "SUCCESSFUL";
      });
  EXPECT_EQ(state["metadata"]["namespace"], "argocd");
  EXPECT_EQ(state["runtimeVersion"], "0.1.72");
  EXPECT_EQ(state["chartVersion"], "0.30.1");
  EXPECT_EQ(state["accessMode"], "INGRESS");
  EXPECT_EQ(state["available"], true);
  EXPECT_EQ(state["repo"], runtime->git.url("config"));
  EXPECT_EQ(state["errors"], Json::array());
  EXPECT_EQ(state["runtimeApplicationName"], "fresh");
  EXPECT_EQ(state["inClusterApplicationName"], "in-cluster");
  for (const char* item : {"encryptionIv", "eventReporterArgoCDToken", "runtimeGitToken"}) {
    EXPECT_EQ(state["status"][item]["status"], "SUCCESSFUL") << item;
  }
  EXPECT_EQ(state["status"]["syncMode"], "HELM");
}

TEST_F(RuntimeByIngress, ShowsAGitSourceAndItsApplicationWithTheCommit) {
  shown(
      "the Git source",
      [] {
        return runtime->plane.ask(
            R"({gitSources(runtime: "fresh") {edges {node {metadata {name} self {repoURL} syncStatus}}}})");
      },
      [](const Json& slice) {
        return std::ranges::any_of(slice["edges"], [](const Json& edge) {
          const Json& source = edge["node"];
          return source["metadata"]["name"] == "apps" && source["syncStatus"] == "SYNCED" &&
                 source["self"].is_object() &&
                 source["self"]["repoURL"] == runtime->git.url("apps");
        });
      });
  const auto shop = runtime->shop();
  EXPECT_EQ(shop["appsRelations"]["parent"]["name"], "apps");
  EXPECT_EQ(shop["destination"]["namespace"], "shop");
  EXPECT_EQ(shop["syncPolicy"], "Automated");
  EXPECT_THAT(shop["status"]["commitAuthor"].dump(), HasSubstr("Dana Levi"));
  EXPECT_THAT(shop["status"]["commitMessage"].dump(), HasSubstr("what the shop needs"));
  const auto release = shown(
      "the release", [] { return runtime->release(); },
      [](const Json& release) {
        return release.is_object() && release["toState"]["services"].size() == 2 &&
               release["toState"]["rollouts"].size() == 1;
      });
  EXPECT_EQ(release["current"], true);
  EXPECT_THAT(release["application"]["status"]["commitAuthor"].dump(), HasSubstr("Dana Levi"));
  EXPECT_EQ(web_image(release)["image"], ShopRepositories::kWebImage);
}

// The second step of the rollout is a pause without an end.
TEST_F(RuntimeByIngress, ShowsTheStepsOfARollout) {
  const auto commit = runtime->git.put(
      "shop", "ui.json", PeerRollouts::canary("ui", "registry.example.test/acme/ui:2"),
      "a new user interface");
  const auto step = [&](int index) {
    const auto found = runtime->plane.ask(
        R"(query S($commit: String!, $index: Int!) {rolloutStepStatus(runtime: "fresh",
          appNamespace: "not relevant", appName: "shop", commitSHA: $commit, rollout: "ui",
          stepIndex: $index) {status}})",
        {{"commit", commit}, {"index", index}});
    return found.is_object() ? found["status"] : found;
  };
  const auto phase = [] {
    const auto release = runtime->release();
    return release["application"]["status"]["commitMessage"] == "a new user interface"
               ? release["toState"]["rollouts"][0]["phase"]
               : Json();
  };
  shown(
      "the pause",
      [&] {
        refresh_applications({"shop"});
        return step(1);
      },
      [](const Json& status) { return status == "PAUSED_INDEFINITE"; });
  EXPECT_EQ(step(0), "PASSED");
  EXPECT_EQ(step(2), "PENDING");
  shown("its phase", phase, [](const Json& phase) { return phase == "Paused"; });
  runtime->rollouts.promote_fully("shop", "ui");
  shown(
      "the last step", [&] { return step(3); },
      [](const Json& status) { return status == "PASSED"; });
  shown("its end", phase, [](const Json& phase) { return phase == "Healthy"; });
  // The release before is past, and so is its sync.
  shown(
      "both releases", [] { return runtime->releases()["edges"]; },
      [](const Json& edges) {
        return edges.size() >= 2 && std::ranges::all_of(edges, [](const Json& edge) {
                 const auto& status = edge["node"]["application"]["status"];
                 return status["syncStatus"] != "SYNCING" && status["healthStatus"] == "HEALTHY";
               });
      });
}

// Bob's pipeline reports an image. Nothing runs in the pods of this cluster, so the test sends what the task sends, with
// the key that the task gets.
TEST_F(RuntimeByIngress, ShowsTheImageThatAPipelineReports) {
  std::jthread pipeline([] {
    (void)runtime->call("GET", std::string("/image-report?CF_IMAGE=") + ShopRepositories::kWebImage,
                        kBobKey);
  });
  const auto report = shown(
      "the Workflow of the report",
      [] {
        const auto slice = runtime->plane.ask(
            R"({workflows(filters: {runtime: "fresh"}) {edges {node {metadata {name uid namespace}
              status {phase}}}}})");
        for (const Json& edge : slice["edges"]) {
          const Json& workflow = edge["node"];
          if (workflow["metadata"]["name"].get<std::string>().starts_with("image-report-")) {
            return workflow;
          }
        }
        return Json();
      },
      [](const Json& workflow) {
        return workflow.is_object() && workflow["status"]["phase"] != "Pending";
      });
  const auto name = report["metadata"]["name"].get<std::string>();
  const auto key = secret_value(PeerArgoCd::kNamespace, name, "CF_API_KEY");
  EXPECT_EQ(key, kBobKey);
  runtime->plane.ask(
      "mutation B($binary: ImageBinaryInput!){createImageBinary(imageBinary: $binary){id "
      "imageName workflowName}}",
      {{"binary",
        {{"id", "sha256:web-1"},
         {"created", "2026-03-04T09:00:00Z"},
         {"imageName", ShopRepositories::kWebImage},
         {"workflowName", "build-web"}}}},
      key);
  const auto release = shown(
      "the image of the release", [] { return runtime->release(); },
      [](const Json& release) {
        const auto image = web_image(release);
        return image["binaryId"] == "sha256:web-1" && image["workflowName"] == "build-web";
      });
  EXPECT_EQ(release["application"]["builds"][0]["workflowName"], "build-web") << release;
  peer_bed().cluster().kubectl_ok({"-n", PeerArgoCd::kNamespace, "delete", "workflow", name});
  shown(
      "the end of the Workflow",
      [&] {
        return runtime->plane.ask(
            R"({workflows(filters: {runtime: "fresh"}) {edges {node {metadata {name}}}}})");
      },
      [&](const Json& slice) { return !slice.dump().contains(name); });
}

TEST_F(RuntimeByIngress, ShowsAManagedClusterUntilItIsRemoved) {
  const PeerCluster edge;
  const auto& server = edge.server_url();
  const auto kubeconfig =
      edge.kubectl_ok({"config", "view", "--minify", "--flatten", "--output", "json"});
  const auto name = Json::parse(kubeconfig)["current-context"].get<std::string>();
  const auto added = runtime->call("POST", "/clusters", kAnnKey,
                                   Json{{"name", name},
                                        {"kubeConfig", base64_encode(kubeconfig)},
                                        {"annotations", ""},
                                        {"labels", ""}}
                                       .dump());
  ASSERT_EQ(added.status, 201) << added.body;
  const auto read = [] {
    return runtime->plane.ask(
        R"({clusters(runtime: "fresh") {edges {node {server info {connectionState {status}}}}}})");
  };
  const auto state_of = [](const Json& slice, const std::string& of) -> std::string {
    for (const Json& edge : slice["edges"]) {
      if (edge["node"]["server"] == of) return edge["node"]["info"]["connectionState"]["status"];
    }
    return "absent";
  };
  shown(
      "both clusters",
      [&] {
        refresh_applications({"fresh", name});
        return read();
      },
      [&](const Json& slice) {
        return state_of(slice, server) == "Successful" &&
               state_of(slice, kInCluster) == "Successful";
      });
  EXPECT_EQ(
      runtime->plane.ask(R"({runtime(name: "fresh") {managedClustersNum}})")["managedClustersNum"],
      1);
  runtime->bed->ask(
      R"(mutation R($server: String!) {removeCluster(server: $server, runtime: "fresh")})",
      {{"server", server}});
  shown("the end of the cluster", read,
        [&](const Json& slice) { return state_of(slice, server) == "absent"; });
}

// app-proxy asks Gitea what Ann may do there.
TEST_F(RuntimeByIngress, ShowsTheGitPermissionsOfUsers) {
  shown(
      "the permissions of Ann",
      [] {
        return runtime->plane.ask(
            R"({gitSources(runtime: "fresh") {edges {node {metadata {name}
              permissions {userId read write}}}}})");
      },
      [](const Json& slice) {
        return !slice["edges"].empty() && std::ranges::all_of(slice["edges"], [](const Json& edge) {
          return edge["node"]["permissions"] ==
                 Json::array({{{"userId", kAnnId}, {"read", true}, {"write", true}}});
        });
      });
}

TEST_F(RuntimeByIngress, ObeysTheRulesOfTheControlPlane) {
  HttpReply last;
  const auto may_bob = [&last](bool is_allowed) {
    last =
        runtime->bed->send(kBobKey, R"({applicationProxyQuery(name: "shop") {metadata {name}}})");
    return last.ok() && last.body.contains("Forbidden") != is_allowed &&
           last.body.contains(R"("name":"shop")") == is_allowed;
  };
  EXPECT_TRUE(may_bob(false)) << last.body;
  runtime->plane.add_rules(
      Json::array({{{"entityType", "gitopsApplications"},
                    {"teams", {"devs"}},
                    {"actions", {"VIEW"}},
                    {"attributes", Json::array({{{"name", "NAMESPACE"}, {"value", "argocd"}}})}}}));
  EXPECT_TRUE(wait_until([&] { return may_bob(true); }, kTimeLimit, "the rule")) << last.body;
  runtime->plane.remove_rules();
  EXPECT_TRUE(wait_until([&] { return may_bob(false); }, kTimeLimit, "its end")) << last.body;
}

// The tunnel-server asks the control plane, which takes the tunnel away when the runtime is deleted.
TEST(RuntimeByTunnel, IsReachedUntilItIsDeleted) {
  GITOPS_REQUIRE_PEER(RuntimePrograms);
  TempDir folder;
  write_file(folder / "plugin-token", "canary-plugin-token");
  write_file(folder / "api-token", "canary-api-token");
  const auto api = std::to_string(free_port());
  ControlPlaneBed plane(
      {.engine = store::Engine::postgres,
       .flags = {"--tunnel.domain=example.test",
                 "--tunnel.plugin-token-file=" + (folder / "plugin-token").string(),
                 "--tunnel.api-urls=http://127.0.0.1:" + api,
                 "--tunnel.api-token-file=" + (folder / "api-token").string()},
       .members = {},
       .teams = {}});
  const OwnTunnelServer server(
      plane.authority(),
      {"--plugin.url=" + plane.url() + "/tunnel-plugin/canary-plugin-token",
       "--plugin.ca-file=" + plane.ca_file().string(), "--api.listen-address=127.0.0.1",
       "--api.port=" + api, "--api.token-file=" + (folder / "api-token").string()});
  const std::string prefix = std::string(kAccountId) + "-edge";
  const std::string host = prefix + ".example.test";
  peer_bed().cluster().create_namespace("edge");
  RuntimeBed bed(plane,
                 {.name = "edge", .runtime_namespace = "edge", .ingress_host = "https://" + host});
  const OwnTunnelClient client({server.tunnel_port}, plane.ca_file(), bed.router_port(), {},
                               {.prefix = prefix, .token = bed.token()});
  const auto by_tunnel = [&] {
    return http_call(
        {.method = "POST",
         .url = "https://localhost:" + std::to_string(server.port) + "/app-proxy/api/graphql",
         .headers = {"Host: " + host, std::string("Authorization: ") + kBobKey,
                     "Content-Type: application/json"},
         .body = R"({"query":"{versionInfo{version}}"})",
         .ca_file = plane.ca_file()});
  };
  ASSERT_TRUE(wait_until([&] { return server.serves(host); }, kTimeLimit, "the tunnel"))
      << client.log() << server.log();
  const auto answer = by_tunnel();
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_THAT(answer.body, HasSubstr("\"version\""));
  const auto runtime = plane.ask(R"({runtime(name: "edge") {ingressHost accessMode}})");
  EXPECT_EQ(runtime["ingressHost"], "https://" + host);
  EXPECT_EQ(runtime["accessMode"], "TUNNEL");

  // Another runtime's token does not open this host.
  const OwnTunnelClient thief({server.tunnel_port}, plane.ca_file(), bed.router_port(), {},
                              {.prefix = prefix, .token = kProdToken});
  EXPECT_TRUE(wait_until([&] { return thief.log().contains("and for no other"); }, kTimeLimit,
                         "the refusal"))
      << thief.log();
  EXPECT_EQ(by_tunnel().status, 200);

  plane.ask(R"(mutation {deleteRuntime(name: "edge")})");
  EXPECT_TRUE(wait_until([&] { return !server.serves(host) && by_tunnel().status != 200; },
                         kTimeLimit, "the end of the tunnel"));
  EXPECT_EQ(plane.runtime_of(bed.token()), "");
  // After the ban the control plane refuses the token.
  EXPECT_TRUE(
      wait_until([&] { return client.log().contains("invalid token"); }, kTimeLimit, "the refusal"))
      << client.log();
  EXPECT_FALSE(server.serves(host));
  for (const auto& log : {server.log(), client.log(), plane.program().log()}) {
    EXPECT_THAT(log, testing::Not(HasSubstr("canary")));
  }
  EXPECT_EQ(bed.proxy->process().stop(std::chrono::seconds(20)), 0);
}

}  // namespace
}  // namespace gitops::test
