// event-reporter and app-proxy agree on the files in Git that manifests come from: both programs run, between
// doubles of the control plane, the API server, Argo CD and GitHub's REST interface, and Git's own server.
#include <gmock/gmock.h>

#include "daemons/reporter_process.hpp"
#include "doubles/fake_argocd.hpp"
#include "e2e/git_harness.hpp"
#include "support/git_server.hpp"
#include "support/wait.hpp"

namespace gitops::test {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kWeb =
    "# The shop's page.\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  "
    "replicas: 2  # two are enough\n  selector: {matchLabels: {app: web}}\n  template:\n    "
    "metadata: "
    "{labels: {app: web}}\n    spec: {containers: [{name: web, image: 'example.com/web:1'}]}\n";
constexpr const char* kSettings =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {color: red}\n";

struct FilesHarness {
  explicit FilesHarness(const Executor& executor)
      : harness(executor), argocd(executor, harness.cluster) {
    git.create_repository("shop");
    git.create_repository("config");
    git.add_user(FakeGitHost::kLogin, FakeGitHost::kToken);
    commit = git.commit("shop",
                        {{"apps/web.yaml", kWeb},
                         {"apps/settings.yaml", kSettings},
                         {"apps/README.md", "no manifest\n"}},
                        "begin");
    auto& platform = harness.base.platform;
    platform.set_token(AppProxyHarness::kRuntime);
    auto& accounts = platform.accounts();
    accounts.add(AppProxyHarness::kRuntime,
                 FakeAccounts::Runtime{.name = "prod", .account_id = "acc-1"});
    accounts.add({.id = "acc-1",
                  .name = "acme",
                  .admins = {"u-ann"},
                  .git_provider = "GITHUB",
                  .git_api_url = harness.host.api_root().text(),
                  .shared_config_repo = git.url("config")});
    EXPECT_TRUE(argocd.start());
  }
  Task<> start_app_proxy() {
    harness.start({{"REPOS_DIR", (folder / "clones").string()},
                   {"GIT_USERNAME", FakeGitHost::kLogin},
                   {"GIT_PASSWORD", FakeGitHost::kToken}});
    co_await harness.base.account_known();
  }
  [[nodiscard]] std::string app_proxy_url() const {
    return "http://127.0.0.1:" + std::to_string(harness.base.daemon->port());
  }
  Task<> start_reporter(const std::string& app_proxy) {
    write_file(folder / "kubeconfig", harness.cluster.kubeconfig());
    write_file(folder / "token", AppProxyHarness::kRuntime);
    Environment environment{{"POD_NAMESPACE", "argocd"},
                            {"KUBECONFIG", (folder / "kubeconfig").string()},
                            {"ARGOCD_SERVER", argocd.url().to_string()},
                            {"ARGOCD_TOKEN", "argocd.double.token"},
                            {"CODEFRESH_URL", harness.base.platform.url().to_string()},
                            {"LOG_LEVEL", "debug"}};
    if (!app_proxy.empty()) environment["APP_PROXY_URL"] = app_proxy;
    reporter.emplace(
        ReporterProcess::command({"--codefresh-token-file", (folder / "token").string()}),
        std::move(environment));
    CO_ASSERT_TRUE(co_await reporter->wait_for_readyz("ready\n"));
  }
  Task<> deploy() {
    CO_ASSERT_OK(co_await argocd.create_app({.name = "shop",
                                             .repo_url = git.url("shop"),
                                             .git_username = FakeGitHost::kLogin,
                                             .git_password = FakeGitHost::kToken,
                                             .path = "apps",
                                             .destination_namespace = "shop"}));
    CO_ASSERT_OK(co_await argocd.sync("shop"));
  }
  // The event of a synced resource.
  Task<const FakePlatform::Report*> synced(std::string name, std::string path) {
    co_return co_await harness.base.platform.wait_for(
        [name, path](const FakePlatform::Report& report) {
          return report.name() == name && report.source("syncStatus") == "Synced" &&
                 report.source("path") == path;
        },
        soon());
  }

  [[nodiscard]] std::string logs() const {
    return (reporter ? reporter->report() : "") + harness.logs();
  }
  Task<> stop() {
    if (reporter) {
      EXPECT_THAT(reporter->log(), Not(HasSubstr("canary")));
      EXPECT_EQ(co_await reporter->stop(), 0);
    }
    EXPECT_TRUE(harness.base.platform.refused().empty());
    co_await argocd.stop();
    co_await harness.stop();
  }

  GitHarness harness;
  GitServer git;
  FakeArgoCd argocd;
  TempDir folder;
  std::string commit;
  std::optional<ReporterProcess> reporter;
};

void play(const std::function<Task<>(FilesHarness&)>& body) {
  if (const auto missing = GitServer::missing()) GTEST_SKIP() << *missing;
  run_coro(
      [&]() -> Task<> {
        FilesHarness harness(co_await asio::this_coro::executor);
        co_await play_in(harness, body);
      },
      std::chrono::seconds(60));
}

TEST(SourceFiles, EventsTellTheFileInGitAndItsText) {
  play([](FilesHarness& files) -> Task<> {
    co_await files.start_app_proxy();
    co_await files.start_reporter(files.app_proxy_url());
    co_await files.deploy();
    // The first clone may take longer than a report waits. Then a later report has what it brought.
    const auto tells = [](const FakePlatform::Report& report) {
      return report.name() == "web" && report.source("path") == "apps/web.yaml";
    };
    const auto end = soon();
    for (int i = 0; Clock::now() < end; ++i) {
      if (co_await files.harness.base.platform.wait_for(
              tells, deadline_after(std::chrono::milliseconds(500)))) {
        break;
      }
      CO_ASSERT_OK(files.argocd.set_health("shop", "Deployment", "web",
                                           i % 2 == 0 ? "Degraded" : "Healthy"));
    }
    const auto* web = co_await files.synced("web", "apps/web.yaml");
    CO_ASSERT_TRUE(web != nullptr);
    EXPECT_EQ(web->source("gitManifest"), kWeb) << "with its comments";
    EXPECT_THAT(web->source("desiredManifest"), HasSubstr(R"("replicas":2)"));
    EXPECT_EQ(web->source("revision"), files.commit);
  });
}

TEST(SourceFiles, WithoutTheSettingEventsAreAsBefore) {
  play([](FilesHarness& files) -> Task<> {
    co_await files.start_app_proxy();
    co_await files.start_reporter("");
    co_await files.deploy();
    const auto* settings = co_await files.synced("settings", "");
    CO_ASSERT_TRUE(settings != nullptr);
    EXPECT_EQ(
        settings->source("gitManifest"),
        "apiVersion: v1\ndata:\n  color: red\nkind: ConfigMap\nmetadata:\n  annotations:\n    "
        "argocd.argoproj.io/tracking-id: shop:/ConfigMap:shop/settings\n  name: settings\n  "
        "namespace: shop\n");
    EXPECT_EQ(settings->data["source"]["path"], "");
  });
}

TEST(SourceFiles, AnAppProxyThatIsAwayHoldsUpNoReport) {
  play([](FilesHarness& files) -> Task<> {
    co_await files.start_app_proxy();
    co_await files.start_reporter("http://127.0.0.1:9");
    co_await files.deploy();
    const auto* settings = co_await files.synced("settings", "");
    CO_ASSERT_TRUE(settings != nullptr);
    EXPECT_THAT(settings->source("gitManifest"), HasSubstr("color: red"));
  });
}

TEST(SourceFiles, TheRouteIsForTheRuntimeAloneAndNotFromOutside) {
  play([](FilesHarness& files) -> Task<> {
    co_await files.start_app_proxy();
    auto& base = files.harness.base;
    const Json body{
        {"repoURL", files.git.url("shop")}, {"revision", files.commit}, {"path", "apps"}};
    const auto ask = [&](std::string token, std::string target,
                         Json wanted) -> Task<AppProxyHarness::Answer> {
      http::Headers headers{{"Content-Type", "application/json"}};
      if (!token.empty()) headers.add("Authorization", token);
      co_return co_await base.send(
          {.method = "POST", .target = target, .headers = headers, .body = wanted.dump()});
    };
    const auto found = co_await ask(AppProxyHarness::kRuntime, "/api/source-files", body);
    EXPECT_EQ(found.status, 200) << found.body;
    EXPECT_EQ(found.json["files"].size(), 2U);
    EXPECT_EQ(found.json["files"][1]["text"], kWeb);
    EXPECT_EQ((co_await ask("", "/api/source-files", body)).status, 401);
    EXPECT_EQ((co_await ask("nobody", "/api/source-files", body)).status, 401);
    EXPECT_EQ((co_await ask(AppProxyHarness::kEve, "/api/source-files", body)).status, 401);
    EXPECT_EQ((co_await ask(AppProxyHarness::kAnn, "/api/source-files", body)).status, 403)
        << "an administrator, too";
    for (const char* outside : {"/app-proxy/api/source-files", "//app-proxy//api/source-files"}) {
      EXPECT_EQ((co_await ask(AppProxyHarness::kRuntime, outside, body)).status, 404) << outside;
    }
    auto other = body;
    other["repoURL"] = "http://127.0.0.2:1/git/shop.git";
    EXPECT_EQ((co_await ask(AppProxyHarness::kRuntime, "/api/source-files", other)).status, 400)
        << "the runtime's token goes nowhere else";
    other = body;
    other["revision"] = std::string(40, 'a');
    EXPECT_EQ((co_await ask(AppProxyHarness::kRuntime, "/api/source-files", other)).status, 404);
    other = body;
    other["path"] = "../apps";
    EXPECT_EQ((co_await ask(AppProxyHarness::kRuntime, "/api/source-files", other)).status, 400);
  });
}

// event-reporter takes a 401 or 403 for one of its own token, and then asks for no source.
TEST(SourceFiles, ARefusalOfTheGitHostIsNotOneOfTheCaller) {
  play([](FilesHarness& files) -> Task<> {
    files.harness.start({{"REPOS_DIR", (files.folder / "clones").string()},
                         {"GIT_USERNAME", FakeGitHost::kLogin},
                         {"GIT_PASSWORD", "canary-revoked"}});
    co_await files.harness.base.account_known();
    const Json body{
        {"repoURL", files.git.url("shop")}, {"revision", files.commit}, {"path", "apps"}};
    const auto answer =
        co_await files.harness.base.send({.method = "POST",
                                          .target = "/api/source-files",
                                          .headers = {{"Content-Type", "application/json"},
                                                      {"Authorization", AppProxyHarness::kRuntime}},
                                          .body = body.dump()});
    EXPECT_EQ(answer.status, 404) << answer.body;
  });
}

TEST(SourceFiles, AKustomizationHasNone) {
  play([](FilesHarness& files) -> Task<> {
    const auto commit =
        files.git.commit("shop", {{"apps/kustomization.yaml", "resources: [web.yaml]\n"}}, "other");
    co_await files.start_app_proxy();
    const auto answer = co_await files.harness.base.send(
        {.method = "POST",
         .target = "/api/source-files",
         .headers = {{"Content-Type", "application/json"},
                     {"Authorization", AppProxyHarness::kRuntime}},
         .body = Json{{"repoURL", files.git.url("shop")}, {"revision", commit}, {"path", "apps"}}
                     .dump()});
    EXPECT_EQ(answer.body, R"({"files":[]})");
  });
}

}  // namespace
}  // namespace gitops::test
