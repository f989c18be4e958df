// The commands of docs/get-started/install.md and docs/operations/uninstall.md as they are written there: run by a shell, with the
// real kubectl, helm and argocd, against a real API server and Argo CD.
#include <filesystem>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "chart/helm.hpp"
#include "peers/install_document_bed.hpp"
#include "peers/peer_bed.hpp"
#include "support/process.hpp"
#include "support/wait.hpp"

namespace gitops::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST_F(InstallDocument, InstallsAndUninstallsAsWritten) {
  // Every pod of the namespace has to be a restricted one.
  cluster().kubectl_ok({"label", "namespace", kNamespace,
                        "pod-security.kubernetes.io/enforce=restricted",
                        "pod-security.kubernetes.io/warn=restricted"});
  ASSERT_NO_FATAL_FAILURE(make_applications());
  const auto before = objects();
  const auto settings_before = account_settings();
  const auto steps = blocks("docs/get-started/install.md", "sh");
  ASSERT_EQ(steps.size(), 5U);

  // 1. The account. The page's login names an address of its own.
  run(steps[0]);
  const auto address = argocd().url().substr(argocd().url().find("//") + 2);
  run("argocd login " + address + " --username admin --password '" + argocd().admin_password() +
      "' --plaintext");
  const auto console = blocks("docs/get-started/install.md", "console");
  ASSERT_FALSE(console.empty());
  const auto generate = console[0].find("$ argocd account generate-token");
  ASSERT_NE(generate, std::string::npos);
  // Argo CD reads its accounts again within seconds.
  ASSERT_TRUE(wait_until([&] { return shell(console[0].substr(generate + 2)).ok(); }, kTimeLimit,
                         "a token for the account", std::chrono::milliseconds(500)));

  // The token may read Applications and nothing else.
  const auto token = read_file(here_ / "argocd-token");
  const auto ask = [&](const std::string& path) {
    return shell(
               "curl -s -o /dev/null -w '%{http_code}' -H \"Authorization: Bearer $(cat "
               "argocd-token)\" " +
               argocd().url() + path)
        .out;
  };
  EXPECT_FALSE(token.empty());
  EXPECT_TRUE(wait_until([&] { return ask("/api/v1/applications") == "200"; }, kTimeLimit,
                         "the account to read Applications", std::chrono::milliseconds(500)));
  EXPECT_EQ(shell("curl -s -o /dev/null -w '%{http_code}' -X DELETE -H 'Content-Type: "
                  "application/json' -H \"Authorization: Bearer "
                  "$(cat argocd-token)\" " +
                  argocd().url() + "/api/v1/projects/none")
                .out,
            "403");

  // The clusters that app-proxy reports: Argo CD leaves out those that the account may not get.
  const auto clusters = [&] {
    return shell("curl -s -H \"Authorization: Bearer $(cat argocd-token)\" " + argocd().url() +
                 "/api/v1/clusters")
        .out;
  };
  EXPECT_THAT(clusters(), Not(HasSubstr("in-cluster")));
  run(steps[1]);
  EXPECT_TRUE(wait_until([&] { return clusters().contains("in-cluster"); }, kTimeLimit,
                         "the account to read clusters", std::chrono::milliseconds(500)));

  // 2. and 3. Secrets and release.
  run(steps[2]);
  run(steps[3]);
  EXPECT_THAT(read_file(fs::path(GITOPS_SOURCE_DIR) / "README.md"), HasSubstr(steps[3]))
      << "the README has the same command";
  for (const auto* pod : {"runtime-event-reporter-0", "cluster-event-reporter-0"}) {
    EXPECT_TRUE(wait_until([&] { return pod_exists(pod); }, kTimeLimit, pod,
                           std::chrono::milliseconds(200)));
  }
  EXPECT_TRUE(wait_until(
      [&] {
        return json::parse(cluster().kubectl_ok({"-n", kNamespace, "get", "deployment",
                                                 "internal-router", "-o", "json"}))
                   .value("/status/readyReplicas"_json_pointer, 0) == 1;
      },
      kTimeLimit, "the router", std::chrono::milliseconds(200)));
  EXPECT_TRUE(
      cluster().kubectl({"-n", kNamespace, "get", "pvc", "ledger-runtime-event-reporter-0"}).ok());

  // 4. What the page looks at.
  EXPECT_THAT(shell(steps[4]).out,
              AllOf(HasSubstr("runtime-event-reporter-0"), HasSubstr("cluster-event-reporter-0"),
                    HasSubstr("internal-router-")));

  checks_itself();

  // Again, as an upgrade that changes nothing.
  run(steps[3]);

  // What daemons and app-proxy would leave.
  cluster().apply(R"({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
    "metadata": {"name": "event-reporter-app-layout", "namespace": "argocd",
                 "labels": {"gitops-runtime.io/leases-of": "event-reporter-app"}}})");
  cluster().apply(R"({"apiVersion": "v1", "kind": "Secret",
    "metadata": {"name": "git-default-acc", "namespace": "argocd",
                 "labels": {"io.codefresh.integration-type": "git"}}})");

  // What helm test creates.
  cluster().apply(shell("helm get hooks gitops-runtime -n argocd").out);
  const auto test_pods = [] {
    return cluster().kubectl_ok({"-n", kNamespace, "get", "pods", "-l",
                                 "app.kubernetes.io/name=gitops-runtime-check", "-o", "name"});
  };

  const auto removal = blocks("docs/operations/uninstall.md", "sh");
  ASSERT_EQ(removal.size(), 3U);
  run(removal[0]);
  const std::set<std::string> named{"persistentvolumeclaim/ledger-runtime-event-reporter-0",
                                    "persistentvolumeclaim/ledger-cluster-event-reporter-0",
                                    "lease.coordination.k8s.io/event-reporter-app-layout",
                                    "secret/git-default-acc",
                                    "secret/codefresh-token",
                                    "secret/argocd-token"};
  auto expected = before;
  expected.insert(named.begin(), named.end());
  EXPECT_TRUE(wait_until([&] { return objects() == expected; }, kTimeLimit,
                         "only what the page names to stay", std::chrono::milliseconds(500)))
      << testing::PrintToString(objects());

  EXPECT_EQ(test_pods(), "pod/gitops-runtime-check");

  // The Applications go, from the top, and what they have deployed stays.
  EXPECT_THAT(applications(),
              AllOf(HasSubstr("/my-runtime"), HasSubstr("/in-cluster"), HasSubstr("/shop")));
  run(removal[1]);
  EXPECT_EQ(applications(), "");
  EXPECT_TRUE(workload_exists());

  run(removal[2]);
  EXPECT_TRUE(wait_until([&] { return objects() == before; }, kTimeLimit, "nothing to stay",
                         std::chrono::milliseconds(500)))
      << testing::PrintToString(objects());
  EXPECT_TRUE(
      wait_until([&] { return test_pods().empty(); }, kTimeLimit, "no pod of helm test to stay"));
  EXPECT_EQ(account_settings(), settings_before);
  EXPECT_EQ(applications(), "");
  EXPECT_TRUE(workload_exists());
}

}  // namespace
}  // namespace gitops::test
