// Managed clusters and their files, with Git's own server and the double of an API server.
#include <functional>
#include <optional>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "../git/git_bed.hpp"
#include "app-proxy/clusters/managed_clusters.hpp"
#include "app-proxy/entities/rollouts_installation.hpp"
#include "common/core/task_group.hpp"
#include "doubles/fake_kube_api.hpp"
#include "support/play.hpp"
#include "support/run_coro.hpp"

namespace gitops::app_proxy {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr auto kServer = "https://10.1.2.3:6443";
constexpr auto kFile = "runtimes/prod/edge.yaml";
constexpr auto kTakenBy = "resources/prod/edge.yaml";
constexpr auto kRead = "/applications/edge";

struct Fixture {
  Fixture(const Executor& executor, Clock::duration settling)
      : git(executor, {}), cluster(executor) {
    server.create_repository("config");
    server.add_user("prod", "token");
    EXPECT_TRUE(cluster.start());
    client.emplace(executor, git.resolver, cluster.cluster_config(), http::ProxySettings{}, "test");
    files = {.runtime = "prod",
             .runtime_namespace = "default",
             .scheme = Scheme::http_too,
             .config_repository = [this] { return server.url("config"); }};
    ManagedClusters::Options options{.own_namespace = "default"};
    options.settling = settling;
    options.poll = 10ms;
    clusters.emplace(executor, *client, nullptr, git.resolver, &git.committer, files, token,
                     std::move(options));
  }
  Task<> stop() {
    co_await git.stop();
    client.reset();
    co_await cluster.stop();
  }
  Task<Result<void>> add() {
    return clusters->add({.name = "edge",
                          .server = kServer,
                          .config = Secret("{}"),
                          .labels = {},
                          .annotations = {}},
                         "Requested by Ann.", deadline_after(30s));
  }
  Task<Result<void>> remove() {
    return clusters->remove(kServer, "Requested by Ann.", deadline_after(30s));
  }
  void put_application() {
    cluster.put(k8s::resources::kApplications,
                {{"apiVersion", "argoproj.io/v1alpha1"},
                 {"kind", "Application"},
                 {"metadata", {{"name", "edge"}, {"namespace", "default"}}}});
  }
  // An installation of Argo Rollouts, and its Application, as Argo CD has made it.
  void put_rollouts(const std::string& name, const std::string& at) {
    const auto repository = files.repository().value();
    test::FileChanges changes;
    changes[repository.own_resource_file(name)] =
        rollouts_manifest(repository, {.name = name,
                                       .server = at,
                                       .destination_namespace = "rollouts",
                                       .chart_repository = "https://charts.example.test",
                                       .chart_version = "1"});
    server.commit("config", changes, "Argo Rollouts");
    cluster.put(k8s::resources::kApplications,
                {{"apiVersion", "argoproj.io/v1alpha1"},
                 {"kind", "Application"},
                 {"metadata", {{"name", name}, {"namespace", "default"}}},
                 {"spec", {{"destination", {{"server", at}}}}}});
  }
  [[nodiscard]] bool has_rollouts(const std::string& name) const {
    const auto path = files.repository().value().own_resource_file(name);
    return server.file_at_head("config", path).has_value();
  }
  [[nodiscard]] std::size_t secrets() const {
    return cluster.store().list(*cluster.store().find_type("", "v1", "secrets"), "default").size();
  }
  [[nodiscard]] bool has_file() const { return server.file_at_head("config", kFile).has_value(); }
  [[nodiscard]] std::string commits_of_file() const {
    return server.git("config", {"log", "--format=%s", "main", "--", kFile}).out;
  }

  test::GitServer server;
  test::GitBed git;
  test::FakeKubeApi cluster;
  std::optional<k8s::Client> client;
  RuntimeFiles files;
  RuntimeGitToken token{"prod", Credential::fixed(Secret("token"))};
  std::optional<ManagedClusters> clusters;
};

void play(Clock::duration settling, const std::function<Task<>(Fixture&)>& body) {
  if (const auto missing = test::GitServer::missing()) FAIL() << *missing;
  test::run_coro(
      [&]() -> Task<> {
        Fixture fixture(co_await asio::this_coro::executor, settling);
        co_await test::play_in(fixture, body);
      },
      60s);
}

TEST(ClusterFiles, ANameThatGitRefusesLeavesNothingBehind) {
  play(1s, [](Fixture& fixture) -> Task<> {
    fixture.server.commit("config", {{kTakenBy, "kind: Application\n"}}, "a Git source");
    const auto refused = co_await fixture.add();
    CO_ASSERT_TRUE(!refused);
    EXPECT_EQ(refused.error().code, ErrorCode::conflict);
    EXPECT_THAT(refused.error().message, HasSubstr("has a Git source edge"));
    EXPECT_EQ(fixture.secrets(), 0U);
    EXPECT_FALSE(fixture.has_file());
    fixture.server.commit("config", {{kTakenBy, std::nullopt}}, "no Git source any more");
    EXPECT_TRUE(co_await fixture.add());
    EXPECT_EQ(fixture.secrets(), 1U);
  });
}

// As after a kill between the two.
TEST(ClusterFiles, ARequestThatEndsAfterTheCommitIsCompletedByTheNext) {
  play(1s, [](Fixture& fixture) -> Task<> {
    fixture.cluster.set_access([](const test::FakeKubeApi::Access& access) {
      return access.resource != "secrets" || access.verb != "create";
    });
    EXPECT_FALSE(co_await fixture.add());
    EXPECT_TRUE(fixture.has_file());
    EXPECT_EQ(fixture.secrets(), 0U);
    fixture.cluster.set_access({});
    EXPECT_TRUE(co_await fixture.add());
    EXPECT_EQ(fixture.secrets(), 1U);
    EXPECT_EQ(fixture.commits_of_file(), "Add cluster edge of runtime prod\n");
  });
}

// Argo CD needs the Secret to remove what it has applied to the cluster.
TEST(ClusterFiles, TheSecretStaysUntilTheApplicationIsGone) {
  play(30s, [](Fixture& fixture) -> Task<> {
    EXPECT_TRUE(co_await fixture.add());
    fixture.put_application();
    // A read that fails does not tell that it is gone.
    fixture.cluster.fail_next(1'000, 503, {}, kRead);
    TaskGroup requests(co_await asio::this_coro::executor);
    bool is_removed = false;
    requests.spawn("remove", [&]() -> Task<> {
      EXPECT_TRUE(co_await fixture.remove());
      is_removed = true;
    });
    const auto is_read = [&](std::size_t times) {
      return fixture.cluster.count("GET", kRead) >= times;
    };
    EXPECT_TRUE(co_await fixture.cluster.wait_until([&] { return is_removed || is_read(3); },
                                                    deadline_after(20s)));
    EXPECT_FALSE(fixture.has_file());
    EXPECT_EQ(fixture.secrets(), 1U);
    fixture.cluster.end_faults();
    fixture.cluster.forget_requests();
    EXPECT_TRUE(co_await fixture.cluster.wait_until([&] { return is_removed || is_read(3); },
                                                    deadline_after(20s)));
    EXPECT_EQ(fixture.secrets(), 1U);
    EXPECT_FALSE(is_removed);
    fixture.cluster.remove(k8s::resources::kApplications, {"default", "edge"});
    co_await requests.join();
    EXPECT_EQ(fixture.secrets(), 0U);
  });
}

// The removal waits for Argo CD, and the cluster is added again meanwhile: here, and by another
// replica.
TEST(ClusterFiles, AClusterThatIsAddedAgainDuringItsRemovalStays) {
  play(30s, [](Fixture& fixture) -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    EXPECT_TRUE(co_await fixture.add());
    fixture.put_application();
    TaskGroup requests(executor);
    std::optional<Error> refusal;
    requests.spawn("remove", [&]() -> Task<> {
      auto removed = co_await fixture.remove();
      if (!removed) refusal = std::move(removed.error());
    });
    EXPECT_TRUE(co_await fixture.cluster.wait_until(
        [&] { return fixture.cluster.count("GET", kRead) >= 1; }, deadline_after(20s)));
    const auto too_soon = co_await fixture.add();
    EXPECT_FALSE(too_soon);
    if (!too_soon) EXPECT_THAT(too_soon.error().message, HasSubstr("edge is being removed"));
    EXPECT_FALSE(fixture.has_file());
    ManagedClusters other(executor, *fixture.client, nullptr, fixture.git.resolver,
                          &fixture.git.committer, fixture.files, fixture.token,
                          {.own_namespace = "default"});
    EXPECT_TRUE(co_await other.add({.name = "edge",
                                    .server = kServer,
                                    .config = Secret(R"({"bearerToken":"canary-new"})"),
                                    .labels = {},
                                    .annotations = {}},
                                   "Requested by Bob.", deadline_after(30s)));
    fixture.cluster.remove(k8s::resources::kApplications, {"default", "edge"});
    co_await requests.join();
    EXPECT_TRUE(refusal);
    if (refusal) EXPECT_EQ(refusal->code, ErrorCode::conflict);
    EXPECT_EQ(fixture.secrets(), 1U);
    EXPECT_TRUE(fixture.has_file());
    // It can be removed afterwards.
    EXPECT_TRUE(co_await fixture.remove());
    EXPECT_EQ(fixture.secrets(), 0U);
  });
}

// A cluster that does not answer is removed, too.
TEST(ClusterFiles, TheSecretGoesWhenTheTimeIsOver) {
  play(200ms, [](Fixture& fixture) -> Task<> {
    EXPECT_TRUE(co_await fixture.add());
    fixture.put_application();
    fixture.cluster.fail_next(1'000, 503, {}, kRead);
    const auto begun = Clock::now();
    EXPECT_TRUE(co_await fixture.remove());
    EXPECT_GE(Clock::now() - begun, 200ms);
    EXPECT_EQ(fixture.secrets(), 0U);
    EXPECT_FALSE(fixture.has_file());
  });
}

// Argo CD would show an Application without a destination, which createArgoRollouts has made.
TEST(ClusterFiles, TheInstallationOfRolloutsGoesWithItsCluster) {
  play(30s, [](Fixture& fixture) -> Task<> {
    const std::string other = "https://10.1.2.3:7443";  // of the same host
    const auto installation = rollouts_names(kServer).by_host;
    const auto others = rollouts_names(other).by_url;
    EXPECT_TRUE(co_await fixture.add());
    fixture.put_rollouts(installation, kServer);
    fixture.put_rollouts(others, other);
    TaskGroup requests(co_await asio::this_coro::executor);
    bool is_removed = false;
    requests.spawn("remove", [&]() -> Task<> {
      EXPECT_TRUE(co_await fixture.remove());
      is_removed = true;
    });
    EXPECT_TRUE(co_await fixture.cluster.wait_until(
        [&] {
          return is_removed || fixture.cluster.count("GET", "/applications/" + installation) >= 3;
        },
        deadline_after(20s)));
    EXPECT_FALSE(is_removed) << "Argo CD can still clean up";
    EXPECT_EQ(fixture.secrets(), 1U);
    EXPECT_FALSE(fixture.has_file());
    EXPECT_FALSE(fixture.has_rollouts(installation));
    fixture.cluster.remove(k8s::resources::kApplications, {"default", installation});
    co_await requests.join();
    EXPECT_EQ(fixture.secrets(), 0U);
    EXPECT_TRUE(fixture.has_rollouts(others));
  });
}

}  // namespace
}  // namespace gitops::app_proxy
