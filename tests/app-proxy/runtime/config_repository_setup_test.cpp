// With Git's own smart HTTP server, and the double of an API server.
#include "app-proxy/runtime/config_repository_setup.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../git/git_bed.hpp"
#include "common/core/task_group.hpp"
#include "doubles/fake_kube_api.hpp"
#include "k8s-client/resource.hpp"
#include "support/play.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"

namespace gitops::app_proxy {
namespace {

using testing::HasSubstr;

constexpr auto kInCluster = "runtimes/prod/in-cluster.yaml";

struct Fixture {
  explicit Fixture(const Executor& executor)
      : git(executor, {}), cluster(executor), leadership(executor) {
    server.create_repository("config");
    EXPECT_TRUE(cluster.start());
    test::write_file(folder / "kubeconfig", cluster.kubeconfig());
    auto config =
        k8s::load_cluster_config((folder / "kubeconfig").string(), "", {}, k8s::ExecPolicy::refuse);
    client.emplace(executor, git.resolver, std::move(*config), http::ProxySettings{}, "test");
    setup.emplace(git.committer, *client, files, token, leadership,
                  ConfigRepositorySetup::Options{.first_retry = std::chrono::hours(1)});
    server.add_user("prod", "token");
    files = {.runtime = "prod",
             .runtime_namespace = "default",
             .scheme = Scheme::http_too,
             .config_repository = [this] { return specifier; }};
    specifier = server.url("config");
  }
  std::string logs() const { return {}; }
  Task<> stop() {
    co_await git.stop();
    co_await cluster.stop();
  }
  [[nodiscard]] std::string file(const std::string& path) const {
    return server.file_at_head("config", path).value_or("");
  }
  [[nodiscard]] std::string commits() const {
    return server.git("config", {"rev-list", "--count", "main"}).out;
  }

  test::GitServer server;
  test::GitBed git;
  test::FakeKubeApi cluster;
  test::TempDir folder;
  std::optional<k8s::Client> client;
  void set_password(const char* password) {
    token = RuntimeGitToken("prod", Credential::fixed(Secret(password)));
  }

  Leadership leadership;  // without a Lease
  RuntimeFiles files;
  std::string specifier;
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

const k8s::ObjectKey kRuntime{"default", "prod"};

TEST(ConfigRepositorySetup, MakesWhatIsMissingOnce) {
  play([](Fixture& fixture) -> Task<> {
    const auto done = co_await fixture.setup->round();
    EXPECT_TRUE(done) << done.error().message;
    EXPECT_THAT(fixture.file(kInCluster), HasSubstr("name: in-cluster"));
    EXPECT_THAT(fixture.file("resources/app-projects/cf-git-sources.yaml"),
                HasSubstr("AppProject"));
    EXPECT_THAT(fixture.file("resources/prod/default-git-source.yaml"),
                HasSubstr("path: git-sources/prod/default\n"));
    EXPECT_NE(fixture.file("git-sources/prod/default/README.md"), "");
    const auto application = fixture.cluster.find(k8s::resources::kApplications, kRuntime);
    CO_ASSERT_TRUE(application.has_value());
    EXPECT_EQ((*application)["spec"]["source"]["path"], "runtimes/prod");
    EXPECT_EQ((*application)["metadata"]["labels"]["codefresh.io/entity"], "runtime");
    EXPECT_TRUE(co_await fixture.setup->round());
    EXPECT_EQ(fixture.commits(), "1\n");
  });
}

// The Git server does not tell the default branch of a repository without commits.
TEST(ConfigRepositorySetup, TheFirstFilesGoToTheDefaultBranchOfTheHost) {
  play([](Fixture& fixture) -> Task<> {
    EXPECT_TRUE(fixture.server.git("config", {"symbolic-ref", "HEAD", "refs/heads/trunk"}).ok());
    EXPECT_TRUE(fixture.server.git("config", {"config", "lsrefs.unborn", "ignore"}).ok());
    std::string asked;
    ConfigRepositorySetup::Options options;
    options.default_branch = [&asked](RepositoryUrl repository, GitCredential credential,
                                      Deadline) -> Task<std::string> {
      asked = repository.name + " as " + credential.username;
      co_return std::string("trunk");
    };
    fixture.setup.emplace(fixture.git.committer, *fixture.client, fixture.files, fixture.token,
                          fixture.leadership, std::move(options));
    for (int rounds = 0; rounds < 2; ++rounds) {
      CO_ASSERT_OK(co_await fixture.setup->round());
      EXPECT_THAT(asked, HasSubstr(rounds == 0 ? "config as prod" : "none"));
      asked = "none";
    }
    EXPECT_EQ(fixture.server.git("config", {"for-each-ref", "--format=%(refname)"}).out,
              "refs/heads/trunk\n");
  });
}

TEST(ConfigRepositorySetup, MakesALostApplicationAgain) {
  play([](Fixture& fixture) -> Task<> {
    EXPECT_TRUE(co_await fixture.setup->round());
    EXPECT_TRUE(fixture.cluster.remove(k8s::resources::kApplications, kRuntime));
    EXPECT_FALSE(fixture.cluster.find(k8s::resources::kApplications, kRuntime).has_value() &&
                 !fixture.cluster.find(k8s::resources::kApplications, kRuntime)
                      ->at("metadata")
                      .contains("deletionTimestamp"));
    EXPECT_TRUE(co_await fixture.setup->round());
    EXPECT_TRUE(fixture.cluster.find(k8s::resources::kApplications, kRuntime).has_value());
  });
}

// The account moved to another repository.
TEST(ConfigRepositorySetup, FollowsTheAccountToAnotherRepository) {
  play([](Fixture& fixture) -> Task<> {
    EXPECT_TRUE(co_await fixture.setup->round());
    EXPECT_TRUE(fixture.server.git("config", {"branch", "live", "main"}).ok());
    fixture.specifier += "/shared?ref=live";
    const auto done = co_await fixture.setup->round();
    EXPECT_TRUE(done) << done.error().message;
    EXPECT_TRUE(fixture.server
                    .git("config", {"cat-file", "-e", "live:shared/runtimes/prod/in-cluster.yaml"})
                    .ok());
    const auto application = fixture.cluster.find(k8s::resources::kApplications, kRuntime);
    CO_ASSERT_TRUE(application.has_value());
    EXPECT_EQ((*application)["spec"]["source"]["path"], "shared/runtimes/prod");
    EXPECT_EQ((*application)["spec"]["source"]["targetRevision"], "live");
  });
}

// The next leader does not wait for the end of a period.
TEST(ConfigRepositorySetup, OnlyTheLeaderPreparesItAndTheNextOneAtOnce) {
  play([](Fixture& fixture) -> Task<> {
    fixture.leadership.set(false);
    TaskGroup group(co_await asio::this_coro::executor);
    fixture.setup->start(group);
    co_await test::eventually([&] { return fixture.setup->status().state == StatusState::standby; },
                              "the status of a replica that does not lead");
    EXPECT_EQ(fixture.setup->status().message, "another replica prepares it");
    EXPECT_FALSE(fixture.setup->last_error()) << "it is not known";
    EXPECT_EQ(fixture.file(kInCluster), "");
    EXPECT_EQ(fixture.cluster.requests().size(), 0U);
    fixture.leadership.set(true);
    EXPECT_TRUE(co_await test::eventually([&] { return fixture.setup->last_error() == ""; },
                                          "a prepared repository"));
    EXPECT_NE(fixture.file(kInCluster), "");
    EXPECT_TRUE(fixture.cluster.find(k8s::resources::kApplications, kRuntime).has_value());
    group.cancel();
    co_await group.join();
  });
}

TEST(ConfigRepositorySetup, TellsWhatIsMissing) {
  play([](Fixture& fixture) -> Task<> {
    fixture.set_password("");
    auto done = co_await fixture.setup->round();
    CO_ASSERT_TRUE(!done);
    EXPECT_THAT(done.error().message, HasSubstr("GIT_PASSWORD"));
    fixture.set_password("wrong");
    done = co_await fixture.setup->round();
    CO_ASSERT_TRUE(!done);
    EXPECT_THAT(done.error().message, HasSubstr("the runtime's files: "));
    EXPECT_FALSE(fixture.cluster.find(k8s::resources::kApplications, kRuntime).has_value())
        << "there is nothing to apply";
    fixture.specifier = "";
    done = co_await fixture.setup->round();
    CO_ASSERT_TRUE(!done);
    EXPECT_THAT(done.error().message, HasSubstr("no shared configuration repository"));
  });
}

}  // namespace
}  // namespace gitops::app_proxy
