#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "peers/peer_rollouts.hpp"
#include "peers/shared_cluster.hpp"
#include "support/wait.hpp"

namespace gitops::test {
namespace {

using nlohmann::json;

struct PeerRolloutsTest : testing::Test {
  void SetUp() override {
    GITOPS_REQUIRE_PEER(PeerCluster);
    GITOPS_REQUIRE_PEER(PeerRollouts);
    rollouts = &shared_rollouts();
    ns = "rollouts-" + random_hex(6);
    cluster().create_namespace(ns);
  }
  void TearDown() override {
    if (rollouts != nullptr) cluster().kubectl({"delete", "namespace", ns, "--wait=false"});
  }
  static PeerCluster& cluster() { return shared_cluster(); }

  void apply(const std::string& image) const {
    cluster().kubectl_ok({"--namespace", ns, "apply", "--server-side", "--filename", "-"},
                         PeerRollouts::canary("shop", image));
  }
  /// The images of the running pods, with how many there are.
  std::map<std::string, int> images() const {
    const auto reply = cluster().request("GET", "/api/v1/namespaces/" + ns + "/pods");
    std::map<std::string, int> count;
    for (const auto& pod : json::parse(reply.body).at("items")) {
      if (pod.contains("/metadata/deletionTimestamp"_json_pointer)) continue;
      ++count[pod.at("/spec/containers/0/image"_json_pointer).get<std::string>()];
    }
    return count;
  }

  PeerRollouts* rollouts = nullptr;
  std::string ns;
};

using Images = std::map<std::string, int>;

TEST_F(PeerRolloutsTest, ACanaryPausesUntilItIsPromoted) {
  apply("example.test/shop:1");
  ASSERT_TRUE(rollouts->wait_for_phase(ns, "shop", "Healthy"));
  apply("example.test/shop:2");
  ASSERT_TRUE(rollouts->wait_for_phase(ns, "shop", "Paused"));
  EXPECT_EQ(images(), (Images{{"example.test/shop:1", 3}, {"example.test/shop:2", 1}}));
  rollouts->promote(ns, "shop");
  ASSERT_TRUE(rollouts->wait_for_phase(ns, "shop", "Healthy"));
  EXPECT_EQ(images(), (Images{{"example.test/shop:2", 4}}));
}

TEST_F(PeerRolloutsTest, AnAbortedCanaryGoesBackAndCanBeRetried) {
  apply("example.test/shop:1");
  ASSERT_TRUE(rollouts->wait_for_phase(ns, "shop", "Healthy"));
  apply("example.test/shop:2");
  ASSERT_TRUE(rollouts->wait_for_phase(ns, "shop", "Paused"));
  rollouts->abort(ns, "shop");
  ASSERT_TRUE(rollouts->wait_for_phase(ns, "shop", "Degraded"));
  EXPECT_TRUE(wait_until([&] { return images() == Images{{"example.test/shop:1", 4}}; },
                         std::chrono::seconds(10), "the old image alone"));
  rollouts->retry(ns, "shop");
  ASSERT_TRUE(rollouts->wait_for_phase(ns, "shop", "Paused"));
  rollouts->promote_fully(ns, "shop");
  EXPECT_TRUE(rollouts->wait_for_phase(ns, "shop", "Healthy"));
}

TEST_F(PeerRolloutsTest, AnAnalysisRunMeasuresByAJob) {
  cluster().kubectl_ok({"--namespace", ns, "create", "--filename", "-"},
                       PeerRollouts::job_analysis("check"));
  EXPECT_TRUE(wait_until(
      [&] {
        const auto reply = cluster().request(
            "GET", "/apis/argoproj.io/v1alpha1/namespaces/" + ns + "/analysisruns/check");
        return json::parse(reply.body).value("/status/phase"_json_pointer, "") == "Successful";
      },
      std::chrono::seconds(30), "the AnalysisRun to succeed"));
}

}  // namespace
}  // namespace gitops::test
