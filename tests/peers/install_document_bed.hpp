#pragma once

#include <filesystem>
#include <optional>
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

// A machine on which the commands of a document are run.
namespace gitops::test {

inline constexpr const char* kNamespace = PeerArgoCd::kNamespace;
inline constexpr auto kTimeLimit = std::chrono::seconds(60);

// The code blocks of a page with this language.
inline std::vector<std::string> blocks(const std::string& page, const std::string& language) {
  std::istringstream lines(read_file(std::filesystem::path(GITOPS_SOURCE_DIR) / page));
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
    std::filesystem::create_directory_symlink(std::filesystem::path(GITOPS_SOURCE_DIR) / "charts",
                                              here_ / "charts");
    write_file(here_ / "codefresh-token", "token-of-the-runtime");
    for (const auto* name : {"kubectl", "helm", "argocd"}) {
      std::filesystem::create_directories(here_ / "bin");
      std::filesystem::create_symlink(Helm::program(name), here_ / "bin" / name);
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
    EXPECT_THAT(done.err, testing::Not(testing::HasSubstr("arning"))) << script;
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
      return nlohmann::json{
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
    std::vector<std::string> command{std::filesystem::path(GITOPS_BIN_DIR) / "gitopsctl"};
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
    const auto report = nlohmann::json::parse(checked.out, nullptr, false);
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

}  // namespace gitops::test
