#include "app-proxy/runtime/permission_check.hpp"

#include <algorithm>
#include <set>
#include <tuple>

#include <gmock/gmock.h>

#include "doubles/fake_kube_api.hpp"
#include "gitopsctl/permissions.hpp"
#include "support/log_capture.hpp"
#include "support/run_coro.hpp"

namespace gitops::app_proxy {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;
using Access = test::FakeKubeApi::Access;

// Scope, group, resource, object name, verb.
using Grant = std::tuple<bool, std::string, std::string, std::string, std::string>;

std::set<Grant> grants_of(const PermissionSettings& settings) {
  std::set<Grant> grants;
  for (const auto& permission : needed_permissions(settings)) {
    EXPECT_NE(permission.without, "") << permission.resource;
    const auto resource = permission.subresource.empty()
                              ? permission.resource
                              : permission.resource + "/" + permission.subresource;
    for (const auto& verb : permission.verbs) {
      grants.emplace(permission.everywhere, permission.group, resource, permission.name, verb);
    }
  }
  return grants;
}

// ChartPermissions compares these with the Role of the chart.
std::set<Grant> grants_of(ctl::Installation installation) {
  installation.app_proxy = true;
  installation.daemon = "cap-app-proxy";
  std::set<Grant> grants;
  for (const auto& permission : ctl::permissions_of_runtime(installation)) {
    const std::vector<std::string> any = {""};
    for (const auto& name : permission.names.empty() ? any : permission.names) {
      for (const auto& verb : permission.verbs) {
        grants.emplace(permission.everywhere, permission.group, permission.resource, name, verb);
      }
    }
  }
  return grants;
}

TEST(NeededPermissions, AreThoseThatTheChartGrants) {
  EXPECT_EQ(grants_of(PermissionSettings{}), grants_of(ctl::Installation{}));
  EXPECT_EQ(grants_of(PermissionSettings{.has_user_token = true}),
            grants_of(ctl::Installation{.registration = true}));
  EXPECT_EQ(grants_of(PermissionSettings{.has_git_token = true}),
            grants_of(ctl::Installation{.git_credentials = true}));
  EXPECT_EQ(grants_of(PermissionSettings{.has_image_reports = true}),
            grants_of(ctl::Installation{.image_reports = true}));
  EXPECT_EQ(grants_of(PermissionSettings{.has_actions = true}),
            grants_of(ctl::Installation{.app_proxy_actions = true}));
}

TEST(NeededPermissions, AreDescribedForPeople) {
  const NeededPermission permission{.group = "argoproj.io",
                                    .resource = "rollouts",
                                    .subresource = "status",
                                    .verbs = {"get", "patch"},
                                    .everywhere = true};
  EXPECT_EQ(describe(permission, {"patch"}, "argocd"),
            "patch rollouts/status.argoproj.io in all namespaces");
  const NeededPermission named{
      .group = "", .resource = "configmaps", .verbs = {"get", "update"}, .name = "mine"};
  EXPECT_EQ(describe(named, {"get", "update"}, "argocd"),
            "get, update configmaps mine in namespace argocd");
}

struct Fixture {
  Fixture(const Executor& executor, const PermissionSettings& settings)
      : cluster(executor),
        client(executor, resolver, started(cluster), {}, "test"),
        git_token("robot", Credential::fixed(Secret(settings.has_git_token ? "token" : ""))),
        check(client, settings, git_token, {.own_namespace = "argocd"}) {}
  static k8s::ClusterConfig started(test::FakeKubeApi& cluster) {
    EXPECT_TRUE(cluster.start());
    return cluster.cluster_config();
  }
  [[nodiscard]] std::size_t asked() const {
    return cluster.count("POST", "selfsubjectaccessreviews");
  }

  test::FakeKubeApi cluster;
  Metrics metrics;
  net::Resolver resolver{metrics};
  k8s::Client client;
  RuntimeGitToken git_token;
  PermissionCheck check;
};

void play(const std::function<Task<>(Fixture&)>& body,
          const PermissionSettings& settings = {.has_git_token = true}) {
  test::run_in_test_time([&]() -> Task<> {
    Fixture fixture(co_await asio::this_coro::executor, settings);
    co_await body(fixture);
    co_await fixture.cluster.stop();
  });
}

TEST(PermissionCheck, NamesWhatDoesNotWorkOnceForEachMissingPermission) {
  play([](Fixture& w) -> Task<> {
    test::LogCapture log;
    EXPECT_TRUE(w.check.permissions().is_pending);
    w.cluster.set_access([](const Access& access) {
      EXPECT_EQ(access.ns, "argocd");
      return !(access.resource == "secrets" &&
               (access.verb == "create" || access.verb == "update")) &&
             access.subresource != "log";
    });
    EXPECT_FALSE(co_await w.check.round());
    EXPECT_THAT(w.check.permissions().errors,
                ElementsAre("app-proxy may not create, update secrets in namespace argocd: Git "
                            "integrations, the runtime's Secrets and managed clusters cannot be "
                            "kept",
                            "app-proxy may not get pods/log in namespace argocd: the logs of the "
                            "runtime's components cannot be read"));
    EXPECT_THAT(entry_of(w.check.permissions()).message, StartsWith("app-proxy may not create, "));
    EXPECT_FALSE(w.check.permissions().is_pending);
    EXPECT_EQ(log.count("a permission in the cluster is missing"), 2U);
    EXPECT_FALSE(co_await w.check.round());
    EXPECT_EQ(log.count("a permission in the cluster is missing"), 2U);
    w.cluster.set_access({});
    EXPECT_TRUE(co_await w.check.round());
    EXPECT_EQ(entry_of(w.check.permissions()).state, StatusState::ok);
    EXPECT_EQ(log.count("no permission is missing any more"), 1U);
  });
}

TEST(PermissionCheck, AReviewThatFailsMakesNoPermissionMissing) {
  play([](Fixture& w) -> Task<> {
    w.cluster.fail_next(1, 403, {}, "selfsubjectaccessreviews");
    EXPECT_FALSE(co_await w.check.round());
    EXPECT_THAT(w.check.permissions().errors, IsEmpty());
    EXPECT_THAT(entry_of(w.check.permissions()).message, StartsWith("not known: "));
    EXPECT_TRUE(co_await w.check.round());
  });
}

// A runtime of one namespace has the permissions on objects of Argo there only.
TEST(PermissionCheck, TheOwnNamespaceIsEnoughForActions) {
  const auto body = [](Fixture& w) -> Task<> {
    w.cluster.set_access([](const Access& access) { return access.ns == "argocd"; });
    EXPECT_TRUE(co_await w.check.round()) << entry_of(w.check.permissions()).message;
    w.cluster.set_access([](const Access& access) { return access.resource != "rollouts"; });
    EXPECT_FALSE(co_await w.check.round());
    EXPECT_THAT(w.check.permissions().errors,
                ElementsAre(HasSubstr("may not get, patch rollouts.argoproj.io in all namespaces"),
                            HasSubstr("may not patch rollouts/status.argoproj.io")));
  };
  play(body, {.has_actions = true});
}

TEST(PermissionCheck, AsksAtTheStartThenHourlyAndSoonerWhileOneIsMissing) {
  play([](Fixture& w) -> Task<> {
    TaskGroup group(co_await asio::this_coro::executor);
    w.cluster.set_access([](const Access& access) { return access.resource != "pods"; });
    w.check.start(group);
    co_await sleep_for(30s);
    const auto once = w.asked();
    EXPECT_GT(once, 5U);
    w.cluster.set_access({});
    co_await sleep_for(1min);
    EXPECT_EQ(w.asked(), 2 * once);
    EXPECT_EQ(entry_of(w.check.permissions()).state, StatusState::ok);
    co_await sleep_for(50min);
    EXPECT_EQ(w.asked(), 2 * once);
    co_await sleep_for(20min);
    EXPECT_EQ(w.asked(), 3 * once);
    group.cancel();
    co_await group.join();
  });
}

}  // namespace
}  // namespace gitops::app_proxy
