// A runtime whose files an administrator has removed from the shared configuration repository, with Git's own server
// and the double of an API server.
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../git/git_bed.hpp"
#include "app-proxy/runtime/config_repository_setup.hpp"
#include "common/core/task_group.hpp"
#include "doubles/fake_kube_api.hpp"
#include "k8s-client/resource.hpp"
#include "support/play.hpp"
#include "support/run_coro.hpp"

namespace gitops::app_proxy {
namespace {

using testing::HasSubstr;

const k8s::ObjectKey kRuntime{"default", "prod"};
constexpr auto kInCluster = "runtimes/prod/in-cluster.yaml";
constexpr auto kDefaultSource = "resources/prod/default-git-source.yaml";

struct Fixture {
  explicit Fixture(const Executor& executor)
      : git(executor, {}), cluster(executor), leadership(executor) {
    server.create_repository("config");
    server.add_user("prod", "token");
    EXPECT_TRUE(cluster.start());
    client.emplace(executor, git.resolver, cluster.cluster_config(), http::ProxySettings{}, "test");
    files = {.runtime = "prod",
             .runtime_namespace = "default",
             .scheme = Scheme::http_too,
             .config_repository = [this] { return server.url("config"); }};
    setup.emplace(git.committer, *client, files, token, leadership,
                  ConfigRepositorySetup::Options{});
  }
  Task<> stop() {
    co_await git.stop();
    client.reset();
    co_await cluster.stop();
  }
  // As removeRuntimeFromIscRepo does.
  void remove_runtime() {
    *files.is_removed = true;
    server.commit("config", {{kInCluster, std::nullopt}, {kDefaultSource, std::nullopt}}, "remove");
    EXPECT_TRUE(cluster.remove(k8s::resources::kApplications, kRuntime));
  }
  [[nodiscard]] std::string commits() const {
    return server.git("config", {"log", "--format=%s", "main"}).out;
  }
  // The double keeps what has finalizers until somebody takes them away.
  [[nodiscard]] bool has_application() const {
    const auto found = cluster.find(k8s::resources::kApplications, kRuntime);
    return found && !found->at("metadata").contains("deletionTimestamp");
  }

  test::GitServer server;
  test::GitBed git;
  test::FakeKubeApi cluster;
  std::optional<k8s::Client> client;
  Leadership leadership;  // without a Lease
  RuntimeFiles files;
  RuntimeGitToken token{"prod", Credential::fixed(Secret("token"))};
  std::optional<ConfigRepositorySetup> setup;
};

void play(const std::function<Task<>(Fixture&)>& body) {
  if (const auto missing = test::GitServer::missing()) FAIL() << *missing;
  test::run_coro(
      [&]() -> Task<> {
        Fixture fixture(co_await asio::this_coro::executor);
        co_await test::play_in(fixture, body);
      },
      std::chrono::seconds(60));
}

// The Application that was made goes with the files; one of somebody else that has its name stays.
TEST(RemovedRuntime, TakesItsApplicationAway) {
  play([](Fixture& fixture) -> Task<> {
    EXPECT_TRUE(co_await fixture.setup->round());
    EXPECT_TRUE(fixture.has_application());
    *fixture.files.is_removed = true;
    for (int i = 0; i < 2; ++i) {
      const auto done = co_await fixture.setup->round();
      CO_ASSERT_TRUE(!done);
      EXPECT_THAT(done.error().message, HasSubstr("the Application prod is being deleted"));
      EXPECT_FALSE(fixture.has_application());
    }
  });
  play([](Fixture& fixture) -> Task<> {
    const auto made = co_await fixture.client->create(
        k8s::resources::kApplications, "default",
        R"({"apiVersion":"argoproj.io/v1alpha1","kind":"Application","metadata":{"name":"prod",)"
        R"("namespace":"default"},"spec":{}})",
        deadline_after(std::chrono::seconds(5)));
    CO_ASSERT_OK(made);
    *fixture.files.is_removed = true;
    const auto done = co_await fixture.setup->round();
    CO_ASSERT_TRUE(!done);
    EXPECT_THAT(done.error().message, testing::Not(HasSubstr("Application")));
    EXPECT_TRUE(fixture.has_application());
  });
}

// The commit may be refused yet, and Argo CD deletes everything below the Application.
TEST(RemovedRuntime, KeepsItsApplicationUntilItsFilesAreGone) {
  play([](Fixture& fixture) -> Task<> {
    EXPECT_TRUE(co_await fixture.setup->round());
    ++*fixture.files.removals;
    const auto waits = co_await fixture.setup->round();
    CO_ASSERT_TRUE(!waits);
    EXPECT_THAT(waits.error().message, HasSubstr("is being removed"));
    EXPECT_TRUE(fixture.has_application());
    EXPECT_EQ(fixture.commits(), "Prepare runtime prod\n");
    // The commit was refused.
    --*fixture.files.removals;
    EXPECT_TRUE(co_await fixture.setup->round());
    EXPECT_TRUE(fixture.has_application());
  });
}

// One of several processes with the same Lease.
struct Replica {
  Replica(const Executor& executor, Fixture& fixture, std::string name)
      : leadership(executor, *fixture.client,
                   k8s::LeaseOptions{.key = {"default", "cap-app-proxy"},
                                     .identity = std::move(name),
                                     .retry_period = std::chrono::milliseconds(50)}),
        files{.runtime = "prod",
              .runtime_namespace = "default",
              .scheme = Scheme::http_too,
              .config_repository = [&fixture] { return fixture.server.url("config"); }},
        setup(fixture.git.committer, *fixture.client, files, fixture.token, leadership,
              ConfigRepositorySetup::Options{}) {
    files.publish = [this](bool is_removed, Deadline deadline) {
      return setup.publish_removal(is_removed, deadline);
    };
  }
  // Waits until the Lease, as this replica has read it, begins so; then takes it over in a round.
  Task<Result<void>> round_after(test::FakeKubeApi& cluster, std::string begin) {
    EXPECT_TRUE(co_await cluster.wait_until(
        [this, begin] {
          const auto seen = leadership.annotation("gitops-runtime.io/runtime-files");
          return seen && seen->starts_with(begin);
        },
        deadline_after(std::chrono::seconds(20))));
    co_return co_await setup.round();
  }

  Leadership leadership;
  RuntimeFiles files;
  ConfigRepositorySetup setup;
};

Task<> wait_until_it_leads(Leadership& leadership) {
  const auto deadline = deadline_after(std::chrono::seconds(20));
  while (!leadership.leads()) {
    if (!co_await leadership.changed().wait(deadline)) break;
  }
  EXPECT_TRUE(leadership.leads());
}

// The request reaches any replica, and the one that leads prepares the repository.
TEST(RemovedRuntime, IsKnownToTheReplicaThatLeads) {
  play([](Fixture& fixture) -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    const auto limit = deadline_after(std::chrono::seconds(50));
    TaskGroup tasks(executor);
    Replica leader(executor, fixture, "a");
    leader.leadership.start(tasks);
    co_await wait_until_it_leads(leader.leadership);
    Replica other(executor, fixture, "b");
    other.leadership.start(tasks);
    // A Git source, without a removal before.
    EXPECT_TRUE(co_await other.files.set_removed(false, limit));
    EXPECT_TRUE(co_await leader.round_after(fixture.cluster, ""));
    EXPECT_TRUE(co_await other.round_after(fixture.cluster, ""));
    EXPECT_TRUE(fixture.has_application());

    EXPECT_TRUE(co_await other.files.set_removed(true, limit));
    const auto removed = co_await leader.round_after(fixture.cluster, "removed by ");
    EXPECT_FALSE(removed);
    if (!removed) EXPECT_THAT(removed.error().message, HasSubstr("was removed from it"));
    EXPECT_FALSE(fixture.has_application());
    EXPECT_TRUE(leader.leadership.leads()) << "also while others write to its Lease";

    EXPECT_TRUE(co_await leader.files.set_removed(false, limit));
    (void)co_await other.round_after(fixture.cluster, "present by ");
    EXPECT_FALSE(*other.files.is_removed);
    EXPECT_FALSE(*leader.files.is_removed);
    tasks.cancel();
    co_await tasks.join();
  });
}

// A process that starts brings the runtime back, as after a new installation.
TEST(RemovedRuntime, IsForgottenByAProcessThatStartsLater) {
  play([](Fixture& fixture) -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    const auto limit = deadline_after(std::chrono::seconds(50));
    TaskGroup tasks(executor);
    Replica leader(executor, fixture, "a");
    leader.leadership.start(tasks);
    co_await wait_until_it_leads(leader.leadership);
    EXPECT_TRUE(co_await leader.files.set_removed(true, limit));
    Replica later(executor, fixture, "b");
    later.leadership.start(tasks);
    EXPECT_TRUE(co_await later.round_after(fixture.cluster, "removed by "));
    EXPECT_FALSE(*later.files.is_removed);
    tasks.cancel();
    co_await tasks.join();
  });
}

// As from a balancer, or from an API server that does not serve the kind now.
TEST(RemovedRuntime, A404WithoutAReasonIsNoMissingApplication) {
  play([](Fixture& fixture) -> Task<> {
    EXPECT_TRUE(co_await fixture.setup->round());
    *fixture.files.is_removed = true;
    fixture.cluster.remove_type(k8s::resources::kApplications);
    const auto done = co_await fixture.setup->round();
    CO_ASSERT_TRUE(!done);
    EXPECT_THAT(done.error().message, HasSubstr("; the Application prod may be left: "));
  });
}

TEST(RemovedRuntime, IsPreparedAgainOnlyWithANewGitSource) {
  play([](Fixture& fixture) -> Task<> {
    EXPECT_TRUE(co_await fixture.setup->round());
    EXPECT_TRUE(fixture.has_application());
    fixture.remove_runtime();
    for (int i = 0; i < 2; ++i) {
      const auto done = co_await fixture.setup->round();
      CO_ASSERT_TRUE(!done);
      EXPECT_THAT(done.error().message, HasSubstr("was removed from it"));
    }
    EXPECT_EQ(fixture.commits(), "remove\nPrepare runtime prod\n");
    EXPECT_FALSE(fixture.has_application());
    // As createGitSource does. The hour of the files has not passed, and they are put back all the same.
    *fixture.files.is_removed = false;
    EXPECT_TRUE(co_await fixture.setup->round());
    EXPECT_EQ(fixture.commits(), "Prepare runtime prod\nremove\nPrepare runtime prod\n");
    EXPECT_TRUE(fixture.server.file_at_head("config", kInCluster).has_value());
  });
}

}  // namespace
}  // namespace gitops::app_proxy
