// The commands of docs/install.md and docs/uninstall.md as they are written there: run by a shell, with the
// real kubectl, helm and argocd, against a real API server and Argo CD.

#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "chart/helm.hpp"
#include "peers/peer_bed.hpp"
#include "support/process.hpp"
#include "support/wait.hpp"
#include "support/yaml_manifests.hpp"

namespace gitops::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kNamespace = PeerArgoCd::kNamespace;
constexpr auto kTimeLimit = std::chrono::seconds(60);

// The code blocks of a page with this language.
std::vector<std::string> blocks(const std::string& page, const std::string& language) {
  std::istringstream lines(read_file(fs::path(GITOPS_SOURCE_DIR) / page));
  std::vector<std::string> found;
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) {
      inside = !inside && line == "```" + language;
      if (inside) found.emplace_back();
    } else if (inside) {
      found.back() += line + "\n";
    }
  }
  return found;
}

struct Programs {
  static std::optional<std::string> missing() {
    if (auto lacking = Helm::missing()) return lacking;
    return PeerBed::missing();
  }
};

class InstallDocument : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto lacking = Programs::missing()) GTEST_SKIP() << "peers: " << *lacking;
    // The folder in which somebody who follows the page stands.
    fs::create_directory_symlink(fs::path(GITOPS_SOURCE_DIR) / "charts", here_ / "charts");
    write_file(here_ / "codefresh-token", "token-of-the-runtime");
    for (const auto* name : {"kubectl", "helm", "argocd"}) {
      fs::create_directories(here_ / "bin");
      fs::create_symlink(Helm::program(name), here_ / "bin" / name);
    }
  }

  CommandResult shell(const std::string& script) {
    const std::string path = (here_ / "bin").string() + ":/usr/bin:/bin";
    const Environment environment{{"PATH", path},
                                  {"HOME", here_.path().string()},
                                  {"KUBECONFIG", cluster().kubeconfig().string()}};
    return run_command(
        {"bash", "-euo", "pipefail", "-c", "cd '" + here_.path().string() + "'\n" + script},
        environment, {}, std::chrono::seconds(120));
  }
  void run(const std::string& script) {
    const auto done = shell(script);
    ASSERT_TRUE(done.ok()) << script << done.out << done.err;
    EXPECT_THAT(done.err, Not(HasSubstr("arning"))) << script;
  }

  static PeerCluster& cluster() { return peer_bed().cluster(); }
  static PeerArgoCd& argocd() { return peer_bed().argocd(); }

  // Kind and name of what is in the namespace, but for what its controllers make of it.
  static std::set<std::string> objects() {
    std::istringstream lines(cluster().kubectl_ok(
        {"-n", kNamespace, "get",
         "statefulsets,deployments,services,configmaps,secrets,serviceaccounts,roles,"
         "rolebindings,persistentvolumeclaims,leases,poddisruptionbudgets,clusterroles,"
         "clusterrolebindings",
         "-o", "name"}));
    std::set<std::string> all;
    for (std::string line; std::getline(lines, line);) all.insert(line);
    return all;
  }
  // The settings of Argo CD's accounts.
  static std::string account_settings() {
    return cluster().kubectl_ok({"-n", kNamespace, "get", "configmap", "argocd-cm",
                                 "argocd-rbac-cm", "-o", "jsonpath={.items[*].data}"});
  }

  static constexpr const char* kEntity = "codefresh.io/entity";
  // Of a runtime, as app-proxy makes them: each one applies the next one, the last one a ConfigMap in place of
  // workloads.
  static void make_applications() {
    auto& git = peer_bed().git();
    const auto url = git.create_repository("config");
    const auto application = [&](const char* name, const char* entity, const char* path,
                                 const char* ns) {
      return json{
          {"apiVersion", "argoproj.io/v1alpha1"},
          {"kind", "Application"},
          {"metadata",
           {{"name", name},
            {"namespace", kNamespace},
            {"labels", {{kEntity, entity}}},
            {"finalizers", {"resources-finalizer.argocd.argoproj.io"}}}},
          {"spec",
           {{"project", "default"},
            {"source", {{"repoURL", url}, {"path", path}, {"targetRevision", "main"}}},
            {"destination", {{"server", "https://kubernetes.default.svc"}, {"namespace", ns}}},
            {"syncPolicy", {{"automated", {{"prune", true}, {"selfHeal", true}}}}}}}}
          .dump();
    };
    git.commit("config",
               {{"runtimes/my-runtime/in-cluster.yaml",
                 application("in-cluster", "internal-config", "resources", kNamespace)},
                {"resources/shop.yaml", application("shop", "git-source", "shop", "default")},
                {"shop/map.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shop}\n"}},
               "the runtime's files");
    argocd().add_repository(git, "config");
    cluster().apply(application("my-runtime", "runtime", "runtimes/my-runtime", kNamespace));
    ASSERT_TRUE(wait_until([] { return workload_exists(); }, kTimeLimit, "the workload",
                           std::chrono::milliseconds(200)));
  }
  static bool workload_exists() {
    return cluster().kubectl({"-n", "default", "get", "configmap", "shop"}).ok();
  }
  static std::string applications() {
    return cluster().kubectl_ok(
        {"-n", kNamespace, "get", "applications.argoproj.io", "-l", kEntity, "-o", "name"});
  }

  static bool pod_exists(const std::string& name) {
    return cluster().kubectl({"-n", kNamespace, "get", "pod", name}).ok();
  }

  // Runs the command of the pod of helm test with the permissions of its account. Here the pod's network has no
  // argocd-server, and the control plane of the page does not exist.
  void checks_itself() {
    const auto hooks = parse_manifests(shell("helm get hooks gitops-runtime -n argocd").out);
    ASSERT_TRUE(hooks && hooks->size() == 1U);
    const auto& spec = hooks->front().at("spec");
    const std::string account = spec.at("serviceAccountName");
    std::vector<std::string> command{fs::path(GITOPS_BIN_DIR) / "gitopsctl"};
    for (std::string argument : spec.at("/containers/0/args"_json_pointer)) {
      const auto value = argument.find("=/app/config/");
      if (argument.starts_with("--argocd-ca-file=")) continue;
      if (argument.starts_with("--argocd-server=")) {
        argument = "--argocd-server=" + argocd().url();
      } else if (value != std::string::npos) {
        const bool control_plane = argument.contains("codefresh-token");
        argument = argument.substr(0, value + 1) +
                   (here_ / (control_plane ? "codefresh-token" : "argocd-token")).string();
      }
      command.push_back(argument);
    }
    command.insert(command.end(), {"--output=json", "--timeout=20s"});
    const auto token = cluster().service_account_token(kNamespace, account);
    const auto checked =
        run_command(command, {{"KUBECONFIG", cluster().write_kubeconfig(account, token).string()}});
    const auto report = json::parse(checked.out, nullptr, false);
    ASSERT_FALSE(report.is_discarded()) << checked.out << checked.err;
    int permissions = 0;
    for (const auto& row : report.at("rows")) {
      if (row.at("group") == "control_plane") continue;
      permissions += row.at("group") == "rights" ? 1 : 0;
      EXPECT_EQ(row.at("status"), "ok") << row;
    }
    EXPECT_GE(permissions, 4);
  }

  TempDir here_;
};

TEST_F(InstallDocument, InstallsAndUninstallsAsWritten) {
  // Every pod of the namespace has to be a restricted one.
  cluster().kubectl_ok({"label", "namespace", kNamespace,
                        "pod-security.kubernetes.io/enforce=restricted",
                        "pod-security.kubernetes.io/warn=restricted"});
  ASSERT_NO_FATAL_FAILURE(make_applications());
  const auto before = objects();
  const auto settings_before = account_settings();
  const auto steps = blocks("docs/install.md", "sh");
  ASSERT_EQ(steps.size(), 5U);

  // 1. The account. The page's login names an address of its own.
  run(steps[0]);
  const auto address = argocd().url().substr(argocd().url().find("//") + 2);
  run("argocd login " + address + " --username admin --password '" + argocd().admin_password() +
      "' --plaintext");
  const auto console = blocks("docs/install.md", "console");
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

  const auto removal = blocks("docs/uninstall.md", "sh");
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
  EXPECT_EQ(account_settings(), settings_before);
  EXPECT_EQ(applications(), "");
  EXPECT_TRUE(workload_exists());
}

}  // namespace
}  // namespace gitops::test
