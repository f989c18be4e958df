#include "gitopsctl/config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/process.hpp"

namespace gitops::ctl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string kubeconfig_of(const std::string& server) {
  return "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
         "contexts: [{name: c, context: {cluster: k, user: u, namespace: of-context}}]\n"
         "clusters: [{name: k, cluster: {server: 'https://" +
         server + "'}}]\nusers: [{name: u, user: {token: t}}]\n";
}

// The host of the cluster that find_cluster() returns; "" when it fails.
class FindCluster : public testing::Test {
 protected:
  FindCluster() {
    for (const char* name : {"flag", "first", "home/.kube/config"}) {
      std::string host(name);
      host = host.starts_with("home") ? "home" : host;
      test::write_file(folder_ / name, kubeconfig_of(host));
    }
  }
  std::string path(const char* name) { return (folder_ / name).string(); }
  std::string host(const KubernetesSettings& settings, const cli::Environment& environment) {
    const auto found = find_cluster(settings, environment);
    return found ? found->server.host : "";
  }

  test::TempDir folder_;
};

TEST_F(FindCluster, AsKubectlDoes) {
  const cli::Environment home{{"HOME", path("home")}};
  cli::Environment variable = home;
  variable["KUBECONFIG"] = path("missing") + ":" + path("first");
  cli::Environment pod = home;
  pod["KUBERNETES_SERVICE_HOST"] = "10.0.0.1";
  pod["KUBERNETES_SERVICE_PORT"] = "443";
  EXPECT_EQ(host({.kubeconfig = path("flag"), .context = {}, .ns = {}}, variable), "flag");
  EXPECT_EQ(host({}, variable), "first");
  EXPECT_EQ(host({}, home), "home");
  EXPECT_EQ(host({}, pod), "home") << "a file of one's own wins over the pod's service account";
  EXPECT_EQ(host({}, {{"HOME", path("nowhere")}}), "");
}

TEST_F(FindCluster, TheNamespaceIsTheContextsUnlessGiven) {
  const cli::Environment home{{"HOME", path("home")}};
  EXPECT_EQ(find_cluster({}, home)->default_namespace, "of-context");
  EXPECT_EQ(find_cluster({.kubeconfig = {}, .context = {}, .ns = "given"}, home)->default_namespace,
            "given");
}

TEST_F(FindCluster, PluginsGetTheWholeEnvironment) {
  std::string text = kubeconfig_of("k");
  const std::string token = "token: t";
  text.replace(text.find(token), token.size(),
               "exec: {apiVersion: client.authentication.k8s.io/v1, command: aws, interactiveMode: "
               "Never, env: [{name: B, value: kubeconfig}]}");
  test::write_file(folder_ / "exec", text);
  const cli::Environment environment{{"AWS_PROFILE", "prod"}, {"B", "ours"}};
  const auto found =
      find_cluster({.kubeconfig = path("exec"), .context = {}, .ns = {}}, environment);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_THAT(found->exec->environment,
              testing::UnorderedElementsAre(testing::Pair("AWS_PROFILE", "prod"),
                                            testing::Pair("B", "kubeconfig")));
}

TEST_F(FindCluster, AMissingFileOrContextIsNamed) {
  const auto missing = find_cluster({.kubeconfig = path("missing"), .context = {}, .ns = {}}, {});
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr(path("missing")));
  const auto context = find_cluster({.kubeconfig = path("flag"), .context = "other", .ns = {}}, {});
  ASSERT_FALSE(context);
  EXPECT_THAT(context.error().message, HasSubstr("no context named 'other'"));
}

TEST(Settings, WrongAddressesAreMistakes) {
  ArgoCdSettings argocd;
  ControlPlaneSettings control_plane;
  ConfigReader reader("gitopsctl check", "", ProgramKind::command);
  argocd.add_to(reader);
  control_plane.add_to(reader);
  EXPECT_THAT(
      reader.load({"--argocd-server=ftp://x", "--control-plane-url=nonsense"}, {}).mistakes,
      ElementsAre(HasSubstr("flag --argocd-server: "), HasSubstr("flag --control-plane-url: ")));
}

TEST(Settings, TokensAreNoFlags) {
  ArgoCdSettings argocd;
  ControlPlaneSettings control_plane;
  ConfigReader reader("gitopsctl check", "", ProgramKind::command);
  argocd.add_to(reader);
  control_plane.add_to(reader);
  EXPECT_THAT(reader.load({"--argocd-token=abc", "--control-plane-token", "def"}, {}).mistakes,
              ElementsAre(HasSubstr("a secret is not given here"),
                          HasSubstr("a secret is not given here")));
  EXPECT_THAT(reader.load({}, {{"ARGOCD_AUTH_TOKEN", "abc"}, {"CODEFRESH_TOKEN", "def"}}).mistakes,
              testing::IsEmpty());
  EXPECT_EQ(argocd.token.reveal(), "abc");
  EXPECT_EQ(control_plane.token.reveal(), "def");
}

}  // namespace
}  // namespace gitops::ctl
