#include "doubles/fake_argocd.hpp"

#include <gtest/gtest.h>

#include "common/http/client.hpp"
#include "support/git_server.hpp"
#include "support/run_coro.hpp"

namespace gitops::test {
namespace {

using Json = nlohmann::json;

GitServer& git_server() {
  static GitServer server;
  return server;
}

std::string config_map(const std::string& name, const std::string& value) {
  return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\ndata:\n  value: \"" +
         value + "\"\n";
}

const std::string kDeployment =
    "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  replicas: 2\n";

// An application of its own repository, synced.
struct Fixture {
  Fixture(const Executor& executor, std::string name)
      : repository(std::move(name)), cluster(executor), argocd(executor, cluster) {}

  [[nodiscard]] Json app() const {
    return cluster.find(k8s::resources::kApplications, {"argocd", "shop"}).value_or(Json());
  }
  [[nodiscard]] std::size_t writes() const {
    std::size_t writes = 0;
    for (const auto& change : cluster_history())
      writes += change.type == "applications.argoproj.io";
    return writes;
  }
  [[nodiscard]] const std::deque<FakeKubeStore::Change>& cluster_history() const {
    return cluster.store().history();
  }

  std::string repository;
  FakeKubeApi cluster;
  FakeArgoCd argocd;
};

void on_synced_app(const std::string& repository, const FileChanges& files,
                   const std::function<Task<>(Fixture&)>& body) {
  run_coro(
      [&]() -> Task<> {
        Fixture fixture(co_await asio::this_coro::executor, repository);
        FakeArgoCd::App app{.name = "shop", .repo_url = git_server().create_repository(repository)};
        app.git_username = git_server().username();
        app.git_password = git_server().password();
        git_server().commit(repository, files, "first");
        CO_ASSERT_OK(co_await fixture.argocd.create_app(app));
        CO_ASSERT_OK(co_await fixture.argocd.sync("shop"));
        co_await body(fixture);
      },
      std::chrono::seconds(20));
}

TEST(FakeArgoCd, SyncAppliesAndPrunes) {
  on_synced_app(
      "sync", {{"a.yaml", config_map("a", "1")}, {"b.yaml", config_map("b", "1")}},
      [](Fixture& fixture) -> Task<> {
        const auto value = [&](const char* name) {
          const auto found = fixture.cluster.find(k8s::resources::kConfigMaps, {"default", name});
          return found ? (*found)["data"]["value"].get<std::string>() : "gone";
        };
        EXPECT_EQ(value("a"), "1");
        git_server().commit("sync", {{"a.yaml", config_map("a", "2")}, {"b.yaml", std::nullopt}},
                            "second");
        const auto revision = co_await fixture.argocd.sync("shop");
        CO_ASSERT_OK(revision);
        EXPECT_EQ(value("a"), "2");
        EXPECT_EQ(value("b"), "gone");
        const auto app = fixture.app();
        EXPECT_EQ(app["status"]["history"].size(), 2U);
        EXPECT_EQ(app["status"]["history"][1]["id"], 1);
        EXPECT_EQ(app["status"]["history"][1]["revision"], *revision);
        EXPECT_EQ(app["status"]["sync"]["status"], "Synced");
        const auto results = app["status"]["operationState"]["syncResult"]["resources"];
        EXPECT_EQ(results[0]["message"], "configmap/a configured");
        EXPECT_EQ(results[1]["message"], "pruned");
      });
}

TEST(FakeArgoCd, HealthOfAResourceIsWrittenOnlyWhereItChangesTheApplication) {
  on_synced_app("health", {{"web.yaml", kDeployment}, {"a.yaml", config_map("a", "1")}},
                [](Fixture& fixture) -> Task<> {
                  const auto before = fixture.writes();
                  CO_ASSERT_OK(fixture.argocd.set_health("shop", "Deployment", "web", "Degraded",
                                                         "no image"));
                  EXPECT_EQ(fixture.writes(), before + 1);
                  EXPECT_EQ(fixture.app()["status"]["health"]["status"], "Degraded");
                  CO_ASSERT_OK(fixture.argocd.set_health("shop", "Deployment", "web", "Degraded",
                                                         "still no image"));
                  EXPECT_EQ(fixture.writes(), before + 1);
                  CO_ASSERT_OK(fixture.argocd.touch("shop"));
                  EXPECT_EQ(fixture.writes(), before + 2);
                });
}

TEST(FakeArgoCd, DeletionGoesThroughTheFinalizer) {
  on_synced_app("deletion", {{"a.yaml", config_map("a", "1")}}, [](Fixture& fixture) -> Task<> {
    CO_ASSERT_OK(fixture.argocd.delete_app("shop"));
    EXPECT_TRUE(fixture.app().is_null());
    EXPECT_FALSE(fixture.cluster.find(k8s::resources::kConfigMaps, {"default", "a"}).has_value());
    bool marked = false;
    for (const auto& change : fixture.cluster_history()) {
      marked = marked || (change.kind == FakeKubeStore::ChangeKind::modified &&
                          change.object->json["metadata"].contains("deletionTimestamp"));
    }
    EXPECT_TRUE(marked);
  });
}

TEST(FakeArgoCd, RefusesManifestsItCannotHandle) {
  on_synced_app("unknown", {{"a.yaml", config_map("a", "1")}}, [](Fixture& fixture) -> Task<> {
    git_server().commit("unknown", {{"x.yaml", "apiVersion: example.test/v1\nkind: Widget\n"}},
                        "x");
    const auto refused = co_await fixture.argocd.refresh("shop");
    CO_ASSERT_TRUE(!refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
    git_server().commit("unknown", {{"x.yaml", "a: [\n"}}, "broken");
    const auto broken = co_await fixture.argocd.refresh("shop");
    CO_ASSERT_TRUE(!broken.has_value());
    EXPECT_EQ(broken.error().code, ErrorCode::invalid_data);
  });
}

TEST(FakeArgoCd, GivesAnswersThatWereSetByHandAndCountsReads) {
  run_coro([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    FakeKubeApi cluster(executor);
    FakeArgoCd argocd(executor, cluster);
    argocd.set_tree("shop", {{"nodes", Json::array()}});
    argocd.set_managed_resources("shop", Json::array({{{"kind", "Pod"}}}));
    argocd.set_revision("abc", {{"author", "Dana"}});
    CO_ASSERT_OK(argocd.start());
    Metrics metrics;
    net::Resolver resolver(metrics);
    http::Client client(executor, resolver, {});
    const auto get = [&](std::string rest) -> Task<Json> {
      http::Request request;
      request.target = "/api/v1/applications/shop/" + rest + "?appNamespace=argocd&project=default";
      request.headers.set("Authorization", "Bearer " + FakeArgoCd::Options().token);
      const auto response =
          co_await client.send(argocd.url(), request, deadline_after(std::chrono::seconds(3)));
      co_return response ? Json::parse(response->body, nullptr, false) : Json();
    };
    EXPECT_EQ((co_await get("resource-tree")).dump(), R"({"nodes":[]})");
    EXPECT_EQ((co_await get("managed-resources")).dump(), R"({"items":[{"kind":"Pod"}]})");
    EXPECT_EQ((co_await get("revisions/abc/metadata")).dump(), R"({"author":"Dana"})");
    EXPECT_EQ(argocd.reads().tree, 1U);
    EXPECT_EQ(argocd.reads().managed, 1U);
    EXPECT_EQ(argocd.reads().revisions, 1U);
    EXPECT_EQ(argocd.reads().total(), 3U);
    client.close_idle();
    co_await argocd.stop();
  });
}

}  // namespace
}  // namespace gitops::test
