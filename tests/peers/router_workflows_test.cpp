#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "daemons/router_harness.hpp"
#include "peers/shared_cluster.hpp"
#include "support/browser.hpp"
#include "support/wait.hpp"

// The real API server of Argo Workflows below /workflows/ of the real router.
namespace gitops::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using Auth = PeerWorkflows::Auth;

struct PeerRouterWorkflows : testing::Test {
  void SetUp() override {
    GITOPS_REQUIRE_PEER(PeerCluster);
    GITOPS_REQUIRE_PEER(PeerWorkflows);
    shared_cluster().create_namespace(ns);
    bed = router(Auth::server);
  }

  static std::unique_ptr<RouterHarness> router(Auth auth) {
    return std::make_unique<RouterHarness>(RouterHarness::Options{
        .environment = {{"WORKFLOWS_URL", shared_workflows().url(auth)},
                        {"WORKFLOWS_CA_FILE", shared_cluster().ca_file().string()}}});
  }

  std::string url(const std::string& target) const {
    return "http://127.0.0.1:" + std::to_string(bed->port()) + "/workflows" + target;
  }

  // The command line client of Argo Workflows, which knows nothing but the router.
  ProcessOptions cli(const std::vector<std::string>& arguments) const {
    std::vector<std::string> argv{peer_program("argo").string()};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    return {.argv = std::move(argv),
            .env = {{"ARGO_SERVER", "127.0.0.1:" + std::to_string(bed->port())},
                    {"ARGO_HTTP1", "true"},
                    {"ARGO_SECURE", "false"},
                    {"ARGO_BASE_HREF", "/workflows"},
                    {"ARGO_TOKEN", "Bearer none"},
                    {"ARGO_NAMESPACE", ns},
                    {"KUBECONFIG", "/dev/null"}}};
  }
  std::string run(const std::vector<std::string>& arguments) const {
    const auto options = cli(arguments);
    return run_or_throw(options.argv, options.env);
  }

  std::string ns = "router-workflows-" + random_hex(6);
  std::unique_ptr<RouterHarness> bed;
  TempDir folder;
};

// A step with a container, then one that waits.
constexpr const char* kWorkflow = R"(
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: two-steps}
spec:
  entrypoint: main
  templates:
  - name: main
    steps:
    - [{name: work, template: work}]
    - [{name: wait, template: wait}]
  - name: work
    container: {image: "example.test/step:1", command: ["true"]}
  - name: wait
    suspend: {}
)";

TEST_F(PeerRouterWorkflows, TheCliSubmitsListsFollowsLogsAndResumes) {
  write_file(folder / "workflow.yaml", kWorkflow);
  EXPECT_THAT(run({"submit", (folder / "workflow.yaml").string(), "--output", "name"}),
              "two-steps");
  EXPECT_THAT(run({"list", "--output", "name"}), "two-steps");
  ASSERT_TRUE(shared_workflows().wait_for_phase(ns, "two-steps", "Running"));

  auto options = cli({"logs", "two-steps", "--follow", "--no-color"});
  options.log_file = folder / "logs";
  Process follower(std::move(options));
  const auto sees = [&](const std::string& line) {
    return wait_until([&] { return read_file(folder / "logs").contains(line); },
                      std::chrono::seconds(20), line);
  };
  for (const std::string line : {"the first line", "the second line", "the third line"}) {
    shared_cluster().append_pod_log(line + " of " + ns);
    EXPECT_TRUE(sees(line + " of " + ns)) << read_file(folder / "logs");
  }
  EXPECT_THAT(run({"resume", "two-steps"}), HasSubstr("resumed"));
  EXPECT_TRUE(shared_workflows().wait_for_phase(ns, "two-steps", "Succeeded"));
}

TEST_F(PeerRouterWorkflows, WorkflowEventsStream) {
  for (const std::string type : {"text/event-stream", "application/json"}) {
    SCOPED_TRACE(type);
    const auto received = folder / type.substr(type.find('/') + 1);
    Process curl(
        {.argv = {"curl", "--disable", "--silent", "--no-buffer", "--compressed", "--noproxy", "*",
                  "--header", "Accept: " + type, url("/api/v1/workflow-events/" + ns)},
         .log_file = received});
    const std::string name = "waits-" + random_hex(4);
    shared_workflows().submit(ns, name, PeerWorkflows::one_wait());
    const auto sees = [&](const std::string& text) {
      return wait_until([&] { return read_file(received).contains(text); },
                        std::chrono::seconds(20), text);
    };
    EXPECT_TRUE(sees("\"name\":\"" + name + "\""));
    EXPECT_TRUE(sees("\"phase\":\"Running\"")) << read_file(received);
    EXPECT_TRUE(curl.running());
    EXPECT_THAT(run({"resume", name}), HasSubstr("resumed"));
    EXPECT_TRUE(sees("\"phase\":\"Succeeded\"")) << read_file(received);
  }
}

TEST_F(PeerRouterWorkflows, TheUserInterfaceLoadsItsFilesAndAsksTheApiThroughTheRouter) {
  if (const auto lacking = missing_browser()) GTEST_SKIP() << *lacking;
  const auto version = json::parse(http_call({.url = url("/api/v1/version")}).body);
  const auto text = "version " + version.at("version").get<std::string>();
  // A page of the interface that is no file is the interface, too.
  for (const auto* page : {"/", "/workflows/argo/any"}) {
    EXPECT_THAT(browse(url(page)), HasSubstr(text)) << page;
  }
}

TEST_F(PeerRouterWorkflows, RedirectsOfTheServerStayBelowThePrefix) {
  const auto answer = bed->get("/workflows//api/v1/version");
  EXPECT_EQ(answer.status / 100, 3);
  EXPECT_EQ(answer.header("Location"), "/workflows/api/v1/version");
}

TEST_F(PeerRouterWorkflows, TokensReachAServerThatAsksKubernetes) {
  const auto strict = router(Auth::client);
  const std::string target = "/workflows/api/v1/workflows/" + ns;
  const auto token = shared_cluster().service_account_token(ns, "default");
  EXPECT_EQ(strict->get(target).status, 401);
  EXPECT_EQ(strict->get(target, "Authorization: Bearer " + token + "\r\n").status, 403);
  EXPECT_EQ(strict->get(target, "Authorization: Bearer " + shared_cluster().admin_token() + "\r\n")
                .status,
            200);
}

}  // namespace
}  // namespace gitops::test
