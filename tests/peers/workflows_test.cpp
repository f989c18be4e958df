#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "peers/peer_workflows.hpp"
#include "peers/shared_cluster.hpp"
#include "support/wait.hpp"

namespace gitops::test {
namespace {

using nlohmann::json;
using Auth = PeerWorkflows::Auth;

struct PeerWorkflowsTest : testing::Test {
  void SetUp() override {
    GITOPS_REQUIRE_PEER(PeerCluster);
    GITOPS_REQUIRE_PEER(PeerWorkflows);
    workflows = &shared_workflows();
    ns = "workflows-" + random_hex(6);
    cluster().create_namespace(ns);
  }
  void TearDown() override {
    if (workflows != nullptr) cluster().kubectl({"delete", "namespace", ns, "--wait=false"});
  }
  static PeerCluster& cluster() { return shared_cluster(); }

  HttpReply put(Auth auth, const std::string& name, const std::string& verb,
                const std::string& token = {}) const {
    return workflows->request(auth, "PUT", "/api/v1/workflows/" + ns + "/" + name + "/" + verb,
                              "{}", token);
  }

  PeerWorkflows* workflows = nullptr;
  std::string ns;
};

TEST_F(PeerWorkflowsTest, AStepWithAContainerSucceeds) {
  workflows->submit(ns, "steps", PeerWorkflows::one_step());
  EXPECT_TRUE(workflows->wait_for_phase(ns, "steps", "Succeeded"));
}

TEST_F(PeerWorkflowsTest, AWaitingWorkflowIsResumedOrTerminated) {
  for (const auto* name : {"resumed", "terminated"}) {
    workflows->submit(ns, name, PeerWorkflows::one_wait());
    ASSERT_TRUE(workflows->wait_for_phase(ns, name, "Running"));
  }
  EXPECT_EQ(put(Auth::server, "resumed", "resume").status, 200);
  EXPECT_TRUE(workflows->wait_for_phase(ns, "resumed", "Succeeded"));
  EXPECT_EQ(put(Auth::server, "terminated", "terminate").status, 200);
  EXPECT_TRUE(workflows->wait_for_phase(ns, "terminated", "Failed"));
}

TEST_F(PeerWorkflowsTest, AnApiServerInClientModeAsksKubernetesWhoCalls) {
  workflows->submit(ns, "asked", PeerWorkflows::one_wait());
  ASSERT_TRUE(workflows->wait_for_phase(ns, "asked", "Running"));
  const auto token = cluster().service_account_token(ns, "default");
  EXPECT_EQ(put(Auth::client, "asked", "terminate").status, 401);
  const auto refused = put(Auth::client, "asked", "terminate", token);
  EXPECT_EQ(refused.status, 403) << refused.body;

  cluster().apply(R"(
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: terminator, namespace: )" +
                  ns + R"(}
rules: [{apiGroups: [argoproj.io], resources: [workflows], verbs: [get, patch]}]
)");
  cluster().kubectl_ok({"--namespace", ns, "create", "rolebinding", "terminator", "--role",
                        "terminator", "--serviceaccount", ns + ":default"});
  HttpReply reply;
  EXPECT_TRUE(wait_until(
      [&] {
        reply = put(Auth::client, "asked", "terminate", token);
        return reply.status == 200;
      },
      std::chrono::seconds(10), "the new right"))
      << reply.body;
  EXPECT_TRUE(workflows->wait_for_phase(ns, "asked", "Failed"));
}

}  // namespace
}  // namespace gitops::test
