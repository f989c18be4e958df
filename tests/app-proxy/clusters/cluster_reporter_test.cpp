// What the control plane is told when Argo CD lists fewer clusters, in test time, with doubles.
#include "app-proxy/clusters/cluster_reporter.hpp"

#include <optional>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "common/http/server.hpp"
#include "doubles/fake_kube_api.hpp"
#include "doubles/fake_platform.hpp"
#include "k8s-client/resource.hpp"
#include "support/run_coro.hpp"

namespace gitops::app_proxy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Json = nlohmann::json;

std::string server_of(const std::string& name) {
  return name == "in-cluster" ? "https://kubernetes.default.svc"
                              : "https://" + name + ".example.test";
}

struct Fixture {
  explicit Fixture(const Executor& executor)
      : platform(executor),
        cluster(executor),
        server(
            executor, {},
            [this](http::Exchange& exchange) -> Task<> {
              Json items = Json::array();
              for (const auto& name : visible) {
                const char* status = name == failed ? "Failed" : "Successful";
                items.push_back({{"name", name},
                                 {"server", server_of(name)},
                                 {"info", {{"connectionState", {{"status", status}}}}}});
              }
              (void)co_await exchange.reply({.status = 200, .body = Json{{"items", items}}.dump()});
            }),
        http(executor, resolver, {}),
        leadership(executor),
        runtime(executor, Credential::fixed(Secret("runtime.1")), Credential::fixed({})),
        clusters_changed(executor) {
    EXPECT_TRUE(platform.start());
    EXPECT_TRUE(cluster.start());
    EXPECT_TRUE(server.listen());
    platform.accounts().add({.id = "a1", .name = "acme"});
    platform.accounts().add("runtime.1",
                            test::FakeAccounts::Runtime{.name = "prod", .account_id = "a1"});
    client.emplace(executor, resolver, cluster.cluster_config(), http::ProxySettings{}, "test");
    argocd.emplace(http,
                   argo::ArgoCdClient::Options{
                       .server = {.scheme = "http", .host = "127.0.0.1", .port = server.port()}},
                   [] { return Secret("token"); });
    control_plane.emplace(http, platform.url(), [] { return Secret("runtime.1"); });
    reporter.emplace(
        *client, *argocd, *control_plane, leadership, runtime, clusters_changed,
        ClusterReporter::Options{.own_namespace = "default", .runtime = "prod", .chunk_count = 50});
  }
  Task<> stop() {
    client.reset();
    http.close_idle();
    co_await server.stop(Clock::now());
    co_await cluster.stop();
    co_await platform.stop();
  }
  void put_secret(const std::string& name) {
    cluster.put_secret({"default", "cluster-" + name},
                       {{"name", name}, {"server", server_of(name) + "/"}},
                       {{"argocd.argoproj.io/secret-type", "cluster"}});
  }
  void remove_secret(const std::string& name) {
    EXPECT_TRUE(cluster.remove(k8s::resources::kSecrets, {"default", "cluster-" + name}));
  }
  // The clusters of all reports since the last call: "edge Successful".
  std::vector<std::string> reported() {
    std::vector<std::string> lines;
    for (const Json& list : platform.accounts().life().clusters) {
      for (const Json& one : list) {
        lines.push_back(one["name"].get<std::string>() + " " +
                        one["info"]["connectionState"]["status"].get<std::string>());
      }
    }
    platform.accounts().life().clusters.clear();
    return lines;
  }

  std::vector<std::string> visible;
  std::string failed;
  test::FakePlatform platform;
  test::FakeKubeApi cluster;
  http::Server server;
  Metrics metrics;
  net::Resolver resolver{metrics};
  http::Client http;
  std::optional<k8s::Client> client;
  std::optional<argo::ArgoCdClient> argocd;
  std::optional<control_plane::GraphqlClient> control_plane;
  Leadership leadership;  // without a Lease
  RuntimeIdentity runtime;
  Event clusters_changed;
  std::optional<ClusterReporter> reporter;
};

void with_fixture(const std::function<Task<>(Fixture&)>& body) {
  test::run_in_test_time([&]() -> Task<> {
    Fixture fixture(co_await asio::this_coro::executor);
    co_await body(fixture);
    co_await fixture.stop();
  });
}

// The account of the runtime at Argo CD was narrowed.
TEST(ClusterReporter, AClusterThatArgoCdOnlyHidesIsNotToldAsRemoved) {
  with_fixture([](Fixture& fixture) -> Task<> {
    fixture.visible = {"in-cluster", "edge", "old"};
    fixture.put_secret("edge");
    fixture.put_secret("old");
    EXPECT_TRUE(co_await fixture.reporter->round());
    EXPECT_THAT(fixture.reported(),
                ElementsAre("in-cluster Successful", "edge Successful", "old Successful"));
    fixture.visible = {"new"};
    fixture.remove_secret("old");
    EXPECT_TRUE(co_await fixture.reporter->round());
    EXPECT_THAT(fixture.reported(), ElementsAre("new Successful", "old Unknown"));
    EXPECT_TRUE(co_await fixture.reporter->round());
    EXPECT_TRUE(fixture.reported().empty());
    // Shown again: nothing has changed.
    fixture.visible = {"in-cluster", "edge", "new"};
    EXPECT_TRUE(co_await fixture.reporter->round());
    EXPECT_TRUE(fixture.reported().empty());
  });
}

TEST(ClusterReporter, NoClusterIsToldAsRemovedWhileTheSecretsCannotBeRead) {
  with_fixture([](Fixture& fixture) -> Task<> {
    fixture.visible = {"edge", "other"};
    fixture.put_secret("edge");
    EXPECT_TRUE(co_await fixture.reporter->round());
    EXPECT_EQ(fixture.reported().size(), 2U);
    fixture.visible = {"other"};
    fixture.failed = "other";
    fixture.remove_secret("edge");
    fixture.cluster.set_access(
        [](const test::FakeKubeApi::Access& access) { return access.resource != "secrets"; });
    const auto done = co_await fixture.reporter->round();
    CO_ASSERT_TRUE(!done);
    EXPECT_THAT(done.error().message, HasSubstr("Secrets of clusters"));
    EXPECT_THAT(fixture.reported(), ElementsAre("other Failed")) << "the rest is told";
    fixture.cluster.set_access({});
    EXPECT_TRUE(co_await fixture.reporter->round());
    EXPECT_THAT(fixture.reported(), ElementsAre("edge Unknown"));
  });
}

// The control plane has been told, and the record of that is lost.
TEST(ClusterReporter, AStateThatWasNotRecordedIsFollowedByTheNextOneWhateverItIs) {
  with_fixture([](Fixture& fixture) -> Task<> {
    fixture.visible = {"edge"};
    EXPECT_TRUE(co_await fixture.reporter->round());
    EXPECT_THAT(fixture.reported(), ElementsAre("edge Successful"));
    fixture.failed = "edge";
    fixture.visible = {"edge", "new"};
    // The first write notes what is about to be told.
    fixture.cluster.set_access([updates = 0](const test::FakeKubeApi::Access& access) mutable {
      return access.resource != "configmaps" || access.verb != "update" || ++updates != 2;
    });
    EXPECT_FALSE(co_await fixture.reporter->round());
    EXPECT_THAT(fixture.reported(), ElementsAre("edge Failed", "new Successful"));
    fixture.cluster.set_access({});
    fixture.failed.clear();
    fixture.visible = {"edge"};
    EXPECT_TRUE(co_await fixture.reporter->round());
    EXPECT_THAT(fixture.reported(), ElementsAre("edge Successful", "new Unknown"));
    EXPECT_TRUE(co_await fixture.reporter->round());
    EXPECT_THAT(fixture.reported(), ElementsAre());
  });
}

TEST(ClusterReporter, NothingIsWrittenWhileTheControlPlaneCannotBeTold) {
  with_fixture([](Fixture& fixture) -> Task<> {
    fixture.visible = {"edge"};
    fixture.control_plane.emplace(fixture.http, http::parse_url("http://127.0.0.1:9").value(),
                                  [] { return Secret("runtime.1"); });
    EXPECT_FALSE(co_await fixture.reporter->round());
    const auto noted =
        fixture.cluster.find(k8s::resources::kConfigMaps, {"default", std::string(kClusterRecord)});
    EXPECT_FALSE(co_await fixture.reporter->round());
    EXPECT_EQ(
        fixture.cluster.find(k8s::resources::kConfigMaps, {"default", std::string(kClusterRecord)}),
        noted);
  });
}

}  // namespace
}  // namespace gitops::app_proxy
