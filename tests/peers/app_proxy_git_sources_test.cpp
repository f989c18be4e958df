// Every operation of the public Go SDK: a Git source goes to a repository of a real Gitea, and a real Argo
// CD applies it to a real cluster. The control plane is the double.
#include <gmock/gmock.h>

#include "daemons/reporter_process.hpp"
#include "doubles/fake_kube_api.hpp"
#include "peers/app_proxy_git_sources_bed.hpp"
#include "peers/gitea_account.hpp"
#include "peers/go_sdk.hpp"
#include "peers/peer_bed.hpp"

namespace gitops::test {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;
constexpr auto kAnn = AppProxyHarness::kAnn;

TEST(GoSdk, EveryOperationReachesTheRealPrograms) {
  GITOPS_REQUIRE_PEERS();
  GITOPS_REQUIRE_PEER(PeerGitea);
  GITOPS_REQUIRE_PEER(GoSdk);
  auto& bed = peer_bed();
  GiteaAccount git;
  git.gitea.create_repository(git.ann, "shop");
  for (const std::string folder : {"one", "two"}) {
    git.put("shop", folder + "/cm.yaml", config_map("from-" + folder));
  }
  bed.argocd().request_ok("POST", "/api/v1/repositories", git.for_argocd("shop"));
  bed.cluster().create_namespace("shop");
  // A cluster that Argo CD knows, and nobody has ever reached.
  bed.cluster().apply(
      "apiVersion: v1\nkind: Secret\nmetadata:\n  name: cluster-east\n  namespace: " +
      std::string(PeerArgoCd::kNamespace) +
      "\n  labels: {argocd.argoproj.io/secret-type: cluster}\n"
      "stringData: {name: east, server: \"" +
      std::string(kCluster) + "\", config: \"{}\"}\n");
  in_app_proxy_harness(
      [&](AppProxyHarness& harness) -> Task<> {
        git.tell(harness.platform);
        TempDir folder;
        auto environment = git.environment(folder);
        environment.merge(Environment{{"KUBECONFIG", bed.cluster().kubeconfig().string()},
                                      {"NAMESPACE", PeerArgoCd::kNamespace},
                                      {"RUNTIME_STORE_IV", "canary-iv"},
                                      {"ARGO_CD_URL", bed.argocd().url()},
                                      {"ARGO_CD_TOKEN", bed.argocd().token()}});
        harness.start(std::move(environment));
        co_await harness.account_known();
        const auto operations = every_operation(bed, git);
        // A method of the SDK without a row fails the test.
        std::vector<std::string> methods;
        for (const auto& operation : operations) methods.emplace_back(operation.method);
        EXPECT_THAT(methods, testing::UnorderedElementsAreArray(GoSdk::methods()));
        for (const auto& operation : operations) {
          SCOPED_TRACE(operation.method);
          const auto result =
              co_await GoSdk::ok(harness, kAnn, operation.command, operation.arguments);
          co_await operation.check(result);
        }
      },
      4 * kTimeLimit);
}

// The operator's request, with Gitea as the account's Git host.
TEST(Promotions, ByCommitAndByPullRequest) {
  GITOPS_REQUIRE_PEER(PeerGitea);
  PeerGitea gitea;
  const auto ann = gitea.create_user("ann");
  const auto shop = gitea.create_repository(ann, "shop");
  const auto put = [&](const std::string& path, const std::string& text) {
    ASSERT_TRUE(gitea
                    .api(ann, "POST", "/repos/ann/shop/contents/" + path,
                         Json{{"content", base64_encode(text)}}.dump())
                    .ok());
  };
  put("dev/values.yaml", "image:\n  tag: v2\n");
  put("prod/values.yaml", "# live\nimage:\n  tag: v1\nreplicas: 3\n");
  in_app_proxy_harness(
      [&](AppProxyHarness& harness) -> Task<> {
        auto& accounts = harness.platform.accounts();
        accounts.add({.id = "acc-1",
                      .name = "acme",
                      .admins = {"u-ann"},
                      .git_provider = "GITHUB",
                      .git_api_url = gitea.url() + "/api/v1"});
        accounts.set_application("shop-dev", {shop, "HEAD", "dev"});
        accounts.set_application("shop-prod", {shop, "main", "prod"});
        accounts.set_promotion_rules({{{"glob", "values.yaml"}, {"jsonPaths", {"$.image.tag"}}}});
        FakeKubeApi cluster(co_await asio::this_coro::executor);
        EXPECT_TRUE(cluster.start());
        TempDir folder;
        write_file(folder / "kubeconfig", cluster.kubeconfig());
        harness.start({{"KUBECONFIG", (folder / "kubeconfig").string()},
                       {"REPOS_DIR", (folder / "clones").string()},
                       {"GIT_USERNAME", ann.name},
                       {"GIT_PASSWORD", ann.token},
                       {"NODE_EXTRA_CA_CERTS", gitea.ca_file().string()}});
        co_await harness.account_known();
        const auto id = [](const char* name) {
          return Json{{"runtime", "prod"}, {"namespace", "argocd"}, {"name", name}};
        };
        const auto promote = [&](const char* route, Json more) {
          Json body{{"srcAppId", id("shop-dev")}, {"destAppId", id("shop-prod")}};
          body.update(more);
          auto headers = AppProxyHarness::as(AppProxyHarness::kRuntime);
          headers.add("Content-Type", "application/json");
          return harness.send({.method = "POST",
                               .target = std::string("/app-proxy/api/promotions/") + route,
                               .headers = std::move(headers),
                               .body = body.dump()});
        };
        const auto asked = co_await promote("pullRequest", {{"head", "v2"}, {"title", "Shop v2"}});
        EXPECT_EQ(asked.status, 200) << asked.body;
        const auto number = std::to_string(asked.json.value("id", 0));
        const auto pull = gitea.api(ann, "GET", "/repos/ann/shop/pulls/" + number);
        EXPECT_THAT(pull.body, HasSubstr("\"title\":\"Shop v2\""));
        EXPECT_THAT(pull.body, HasSubstr(asked.json.value("COMMIT_SHA", "none")));
        EXPECT_EQ((co_await promote("pullRequest", {{"head", "v2"}, {"title", "Shop v2"}})).status,
                  409);
        const auto done = co_await promote("commit", {{"message", "shop v2"}});
        EXPECT_EQ(done.status, 200) << done.body;
        EXPECT_EQ(gitea.git(ann, "shop", {"show", "main:prod/values.yaml"}).out,
                  "# live\nimage:\n  tag: v2\nreplicas: 3\n");
        EXPECT_EQ((co_await promote("commit", {{"message", "shop v2"}})).status, 400);
        harness.client.close_idle();
        co_await cluster.stop();
      },
      kTimeLimit);
}

// event-reporter tells the file of a real repository that a real Argo CD has applied; app-proxy reads it.
TEST(SourceFiles, OfARepositoryAtGiteaReachTheEvents) {
  GITOPS_REQUIRE_PEERS();
  GITOPS_REQUIRE_PEER(PeerGitea);
  auto& bed = peer_bed();
  PeerGitea gitea;
  const auto ann = gitea.create_user("ann");
  const auto shop = gitea.create_repository(ann, "shop");
  const std::string text = "# By hand.\n" + config_map("settings") + "# The end.\n";
  ASSERT_TRUE(gitea
                  .api(ann, "POST", "/repos/ann/shop/contents/apps/settings.yaml",
                       Json{{"content", base64_encode(text)}}.dump())
                  .ok());
  std::string commit = gitea.git(ann, "shop", {"rev-parse", "main"}).out;
  while (commit.ends_with('\n')) commit.pop_back();
  bed.argocd().request_ok(
      "POST", "/api/v1/repositories",
      Json{{"repo", shop}, {"username", ann.name}, {"password", ann.token}, {"insecure", true}}
          .dump());
  bed.cluster().create_namespace("files");
  in_app_proxy_harness(
      [&](AppProxyHarness& harness) -> Task<> {
        harness.platform.set_token(AppProxyHarness::kRuntime);
        auto& accounts = harness.platform.accounts();
        accounts.add(AppProxyHarness::kRuntime,
                     FakeAccounts::Runtime{.name = "prod", .account_id = "acc-1"});
        accounts.add({.id = "acc-1",
                      .name = "acme",
                      .admins = {"u-ann"},
                      .git_provider = "GITHUB",
                      .git_api_url = gitea.url() + "/api/v1"});
        TempDir folder;
        harness.start({{"KUBECONFIG", bed.cluster().kubeconfig().string()},
                       {"NAMESPACE", "files"},
                       {"REPOS_DIR", (folder / "clones").string()},
                       {"GIT_USERNAME", ann.name},
                       {"GIT_PASSWORD", ann.token},
                       {"NODE_EXTRA_CA_CERTS", gitea.ca_file().string()}});
        co_await harness.account_known();
        // The first clone, for which no report waits.
        const auto files = co_await harness.send(
            {.method = "POST",
             .target = "/api/source-files",
             .headers = {{"Content-Type", "application/json"},
                         {"Authorization", AppProxyHarness::kRuntime}},
             .body = Json{{"repoURL", shop}, {"revision", commit}, {"path", "apps"}}.dump()});
        EXPECT_EQ(files.status, 200) << files.body;

        write_file(folder / "token", AppProxyHarness::kRuntime);
        ReporterProcess reporter(
            ReporterProcess::command({"--codefresh-token-file", (folder / "token").string()}),
            {{"POD_NAMESPACE", PeerArgoCd::kNamespace},
             {"KUBECONFIG", bed.cluster().kubeconfig().string()},
             {"ARGOCD_SERVER", bed.argocd().url()},
             {"ARGOCD_TOKEN", bed.argocd().token()},
             {"CODEFRESH_URL", harness.platform.url().to_string()},
             {"APP_PROXY_URL", "http://127.0.0.1:" + std::to_string(harness.daemon->port())}},
            kTimeLimit);
        CO_ASSERT_TRUE(co_await reporter.wait_for_readyz("ready\n"));
        bed.argocd().create_application("files", shop, "apps", "files", true);
        const auto* synced = co_await harness.platform.wait_for(
            [](const FakePlatform::Report& report) {
              return report.kind() == "ConfigMap" && report.name() == "settings" &&
                     report.source("syncStatus") == "Synced";
            },
            deadline_after(kTimeLimit));
        CO_ASSERT_TRUE(synced != nullptr) << reporter.report();
        EXPECT_EQ(synced->source("path"), "apps/settings.yaml") << reporter.report();
        EXPECT_EQ(synced->source("gitManifest"), text);
        EXPECT_EQ(synced->source("revision"), commit);
        EXPECT_EQ(co_await reporter.stop(), 0);
      },
      4 * kTimeLimit);
}

}  // namespace
}  // namespace gitops::test
