#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "chart/helm.hpp"
#include "peers/peer_bed.hpp"

// gitopsctl on a real API server and a real Argo CD.
namespace gitops::test {
namespace {

using nlohmann::json;
using testing::Each;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr const char* kNamespace = "gitops";  // that the chart is rendered for

// The Roles of the chart, their bindings and their ServiceAccounts, on the cluster.
void install_rights(PeerCluster& cluster) {
  static const bool installed = [&] {
    cluster.create_namespace(kNamespace);
    for (json object : Helm().render({"-f", values_file("minimal.yaml")})) {
      const std::string kind = object["kind"];
      if (kind != "ServiceAccount" && !kind.starts_with("Role") &&
          !kind.starts_with("ClusterRole")) {
        continue;
      }
      if (!kind.starts_with("ClusterRole")) object["metadata"]["namespace"] = kNamespace;
      cluster.apply(object.dump());
    }
    return true;
  }();
  static_cast<void>(installed);
}

struct Ran {
  int exit_code = -1;
  json report;
  std::string text;
};

class GitopsctlPeers : public testing::Test {
 protected:
  void SetUp() override { GITOPS_REQUIRE_PEERS(); }

  static Ran check(const std::filesystem::path& kubeconfig, const std::string& argocd_token) {
    PeerBed& bed = peer_bed();
    const Environment environment{
        {"KUBECONFIG", kubeconfig.string()}, {"ARGOCD_SERVER", bed.argocd().url()},
        {"ARGOCD_TOKEN", argocd_token},      {"CODEFRESH_URL", std::nullopt},
        {"HTTP_PROXY", std::nullopt},        {"http_proxy", std::nullopt},
        {"HTTPS_PROXY", std::nullopt},       {"https_proxy", std::nullopt}};
    const auto result = run_command(
        {std::string(GITOPS_BIN_DIR) + "/gitopsctl", "check", "-n", kNamespace, "-o", "json"},
        environment);
    EXPECT_EQ(result.err, "");
    EXPECT_THAT(result.out, Not(HasSubstr(argocd_token)));
    return {.exit_code = result.exit_code,
            .report = json::parse(result.out, nullptr, false),
            .text = result.out};
  }

  // The statuses of the rows of a group with this name, or with any.
  static std::vector<std::string> statuses(const Ran& run, const std::string& group,
                                           const std::string& name = {}) {
    std::vector<std::string> found;
    for (const json& row : run.report["rows"]) {
      if (row["group"] == group && (name.empty() || row["name"] == name)) {
        found.push_back(row["status"]);
      }
    }
    EXPECT_FALSE(found.empty()) << group << ' ' << name << " in " << run.text;
    return found;
  }
  static json row(const Ran& run, const std::string& group, const std::string& name) {
    for (const json& row : run.report["rows"]) {
      if (row["group"] == group && row["name"] == name) return row;
    }
    ADD_FAILURE() << group << ' ' << name << " in " << run.text;
    return json::object();
  }
};

TEST_F(GitopsctlPeers, AdministratorsMayDoEverything) {
  PeerBed& bed = peer_bed();
  const Ran run = check(bed.cluster().kubeconfig(), bed.argocd().token());
  EXPECT_EQ(run.exit_code, 3) << "no control plane was given: " << run.text;
  EXPECT_EQ(run.report["totals"]["failed"], 0) << run.text;
  EXPECT_THAT(row(run, "kubernetes", "API server")["version"], StartsWith("v1."));
  EXPECT_THAT(statuses(run, "kubernetes"), Each("ok"));
  EXPECT_THAT(statuses(run, "rights"), Each("ok"));
  EXPECT_THAT(row(run, "argocd", "argocd-server")["version"], StartsWith("v3.2"));
  EXPECT_EQ(row(run, "argocd", "token")["status"], "ok") << run.text;
}

TEST_F(GitopsctlPeers, ADaemonHasTheRightsOfItsRolesAndNoOthers) {
  if (const auto lacking = Helm::missing()) GTEST_SKIP() << "peers: " << *lacking;
  PeerBed& bed = peer_bed();
  install_rights(bed.cluster());
  const auto as = [&](const std::string& account) {
    const auto token = bed.cluster().service_account_token(kNamespace, account);
    return check(bed.cluster().write_kubeconfig(account, token), bed.argocd().token());
  };
  const Ran reporter = as("event-reporter");
  EXPECT_EQ(reporter.exit_code, 1);
  EXPECT_EQ(row(reporter, "kubernetes", "credentials")["message"],
            "accepted as system:serviceaccount:gitops:event-reporter");
  EXPECT_THAT(statuses(reporter, "rights", "event-reporter"), Each("ok")) << reporter.text;
  EXPECT_THAT(statuses(reporter, "rights", "cluster-event-reporter"), Each("failed"))
      << reporter.text;
  const Ran other = as("default");
  EXPECT_THAT(statuses(other, "rights"), Each("failed")) << other.text;
}

TEST_F(GitopsctlPeers, RefusedCredentialsAreNamedWithWhatThePeersSay) {
  PeerBed& bed = peer_bed();
  const Ran run =
      check(bed.cluster().write_kubeconfig("nobody", "wrong"), bed.argocd().token() + "x");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(row(run, "kubernetes", "API server")["status"], "ok");
  EXPECT_EQ(row(run, "kubernetes", "credentials")["reason"], "unauthenticated");
  EXPECT_THAT(statuses(run, "rights"), Each("not_known"));
  EXPECT_EQ(row(run, "argocd", "argocd-server")["status"], "ok");
  EXPECT_EQ(row(run, "argocd", "token")["reason"], "unauthenticated") << run.text;
  EXPECT_THAT(row(run, "argocd", "token")["message"], HasSubstr("invalid session"));
}

}  // namespace
}  // namespace gitops::test
