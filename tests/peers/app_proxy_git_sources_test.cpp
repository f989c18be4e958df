// A Git source from the public Go SDK to a real cluster: app-proxy commits it to a repository of a real
// Gitea, and a real Argo CD applies it. The control plane is the double.
#include <gmock/gmock.h>

#include "doubles/fake_kube_api.hpp"
#include "peers/go_sdk.hpp"
#include "peers/peer_bed.hpp"
#include "peers/peer_gitea.hpp"

namespace gitops::test {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;
constexpr auto kAnn = AppProxyWorld::kAnn;
constexpr auto kPatience = std::chrono::seconds(60);

std::string config_map(const std::string& name) {
  return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\ndata: {a: b}\n";
}

// Argo CD looks at Git when it is asked, and otherwise after three minutes.
Task<bool> wait_for_argocd(const PeerArgoCd& argocd, const std::function<bool()>& done) {
  const auto deadline = deadline_after(kPatience);
  while (!done()) {
    if (Clock::now() > deadline) {
      for (const char* name : {"prod", "in-cluster", "shop"}) {
        const auto app = argocd.request("GET", "/api/v1/applications/" + std::string(name));
        ADD_FAILURE() << name << ": " << app.body;
      }
      co_return false;
    }
    for (const char* parent : {"prod", "in-cluster", "shop"}) {
      (void)argocd.request("GET",
                           "/api/v1/applications/" + std::string(parent) + "?refresh=normal");
    }
    co_await sleep_for(std::chrono::milliseconds(300));
  }
  co_return true;
}

TEST(GitSources, ReachTheClusterThroughGitAndArgoCd) {
  GITOPS_REQUIRE_PEERS();
  GITOPS_REQUIRE_PEER(PeerGitea);
  GITOPS_REQUIRE_PEER(GoSdk);
  auto& bed = peer_bed();
  PeerGitea gitea;
  const auto ann = gitea.create_user("ann");
  // The shared configuration repository has no commit yet.
  ASSERT_TRUE(gitea.api(ann, "POST", "/user/repos", R"({"name":"config"})").ok());
  const auto config = gitea.url() + "/ann/config.git";
  const auto shop = gitea.create_repository(ann, "shop");
  for (const std::string folder : {"one", "two"}) {
    const Json file{{"content", base64_encode(config_map("from-" + folder))}};
    ASSERT_TRUE(
        gitea.api(ann, "POST", "/repos/ann/shop/contents/" + folder + "/cm.yaml", file.dump())
            .ok());
  }
  // Argo CD refuses a repository without commits.
  const auto add_to_argocd = [&](const std::string& url) {
    bed.argocd().request_ok(
        "POST", "/api/v1/repositories",
        Json{{"repo", url}, {"username", ann.name}, {"password", ann.token}, {"insecure", true}}
            .dump());
  };
  add_to_argocd(shop);
  bed.cluster().create_namespace("shop");
  in_app_proxy_world(
      [&](AppProxyWorld& world) -> Task<> {
        world.platform.accounts().add({.id = "acc-1",
                                       .name = "acme",
                                       .admins = {"u-ann"},
                                       .git_provider = {},
                                       .shared_config_repo = config});
        TempDir folder;
        world.start({{"KUBECONFIG", bed.cluster().kubeconfig().string()},
                     {"NAMESPACE", PeerArgoCd::kNamespace},
                     {"RUNTIME_STORE_IV", "canary-iv"},
                     {"REPOS_DIR", (folder / "clones").string()},
                     {"GIT_USERNAME", ann.name},
                     {"GIT_PASSWORD", ann.token},
                     {"NODE_EXTRA_CA_CERTS", gitea.ca_file().string()}});
        co_await world.account_known();
        co_await GoSdk::ok(world, kAnn, "add-git-integration",
                           Json{{"provider", "GITHUB"},
                                {"apiUrl", gitea.url() + "/api/v1"},
                                {"sharingPolicy", "ALL_USERS_IN_ACCOUNT"}}
                               .dump());
        co_await GoSdk::ok(world, kAnn, "register-to-git-integration",
                           Json{{"token", ann.token}}.dump());

        Json source{{"appName", "shop"},
                    {"appSpecifier", shop + "/one?ref=main"},
                    {"destServer", "https://kubernetes.default.svc"},
                    {"destNamespace", "shop"},
                    {"isInternal", false},
                    {"include", ""},
                    {"exclude", ""},
                    {"createRepo", false}};
        co_await GoSdk::ok(world, kAnn, "create-git-source", source.dump());
        // app-proxy has put the runtime's own Application into the cluster.
        add_to_argocd(config);
        const auto has_config_map = [&](const std::string& name) {
          return bed.cluster().request("GET", "/api/v1/namespaces/shop/configmaps/" + name).ok();
        };
        EXPECT_TRUE(
            co_await wait_for_argocd(bed.argocd(), [&] { return has_config_map("from-one"); }));
        EXPECT_EQ(bed.argocd().app_field("shop", "{.metadata.labels.codefresh\\.io/entity}"),
                  "git-source");
        EXPECT_EQ(bed.argocd().app_field("shop", "{.spec.project}"), "cf-git-sources");
        EXPECT_TRUE(co_await wait_for_argocd(bed.argocd(), [&] {
          return bed.argocd().app_field("default-git-source", "{.status.sync.status}") == "Synced";
        }));

        co_await GoSdk::ok(
            world, kAnn, "edit-git-source",
            Json{{"appName", "shop"}, {"appSpecifier", shop + "/two?ref=main"}}.dump());
        EXPECT_TRUE(co_await wait_for_argocd(bed.argocd(), [&] {
          return has_config_map("from-two") && !has_config_map("from-one");
        }));

        co_await GoSdk::ok(world, kAnn, "delete-git-source", "shop");
        EXPECT_TRUE(co_await wait_for_argocd(bed.argocd(), [&] {
          return !has_config_map("from-two") &&
                 bed.argocd().request("GET", "/api/v1/applications/shop").status != 200;
        }));

        co_await GoSdk::ok(world, kAnn, "create-argo-rollouts",
                           Json{{"destServer", "https://kubernetes.default.svc"},
                                {"destNamespace", "argo-rollouts"}}
                               .dump());
        EXPECT_TRUE(co_await wait_for_argocd(bed.argocd(), [&] {
          return bed.argocd().request("GET", "/api/v1/applications/argo-rollouts-in-cluster").ok();
        }));
        EXPECT_EQ(co_await GoSdk::ok(world, kAnn, "remove-runtime-from-isc-repo"), 3);
        EXPECT_EQ(gitea.git(ann, "config", {"ls-tree", "-r", "--name-only", "main"}).out,
                  "git-sources/prod/default/README.md\nresources/README.md\n"
                  "resources/app-projects/cf-git-sources.yaml\n");
      },
      4 * kPatience);
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
  in_app_proxy_world(
      [&](AppProxyWorld& world) -> Task<> {
        auto& accounts = world.platform.accounts();
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
        world.start({{"KUBECONFIG", (folder / "kubeconfig").string()},
                     {"REPOS_DIR", (folder / "clones").string()},
                     {"GIT_USERNAME", ann.name},
                     {"GIT_PASSWORD", ann.token},
                     {"NODE_EXTRA_CA_CERTS", gitea.ca_file().string()}});
        co_await world.account_known();
        const auto id = [](const char* name) {
          return Json{{"runtime", "prod"}, {"namespace", "argocd"}, {"name", name}};
        };
        const auto promote = [&](const char* route, Json more) {
          Json body{{"srcAppId", id("shop-dev")}, {"destAppId", id("shop-prod")}};
          body.update(more);
          auto headers = AppProxyWorld::as(AppProxyWorld::kRuntime);
          headers.add("Content-Type", "application/json");
          return world.send({.method = "POST",
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
        world.client.close_idle();
        co_await cluster.stop();
      },
      kPatience);
}

}  // namespace
}  // namespace gitops::test
