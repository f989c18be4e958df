#include "app-proxy/runtime/group_reader.hpp"

#include <gmock/gmock.h>

#include "doubles/fake_kube_api.hpp"
#include "k8s-client/resource.hpp"
#include "support/run_coro.hpp"

namespace gitops::app_proxy {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;
using Json = nlohmann::json;
using Access = test::FakeKubeApi::Access;

struct Fixture {
  explicit Fixture(const Executor& executor)
      : cluster(executor),
        client(executor, resolver, started(cluster), {}, "test"),
        leadership(executor),
        reader({.cluster = client,
                .leadership = leadership,
                .git_token = git_token,
                .argocd = [this](Deadline) -> Task<Result<void>> { co_return argocd; }},
               {.own_namespace = "default", .runtime = "prod"}) {
    put("prod", "Synced", "Healthy");
    put("in-cluster", "Synced", "Healthy");
  }
  static k8s::ClusterConfig started(test::FakeKubeApi& cluster) {
    EXPECT_TRUE(cluster.start());
    return cluster.cluster_config();
  }
  void put(const char* name, const char* sync, const char* health) {
    cluster.put(k8s::resources::kApplications,
                {{"metadata", {{"name", name}, {"namespace", "default"}}},
                 {"status", {{"sync", {{"status", sync}}}, {"health", {{"status", health}}}}}});
  }
  void put_pod(const std::string& name, Json status, Json labels = Json::object()) {
    cluster.put(
        k8s::resources::kPods,
        {{"metadata", {{"name", name}, {"namespace", "default"}, {"labels", std::move(labels)}}},
         {"status", std::move(status)}});
  }

  RuntimeGitToken git_token{"robot", Credential::fixed(Secret("token"))};
  Result<void> argocd = {};
  test::FakeKubeApi cluster;
  Metrics metrics;
  net::Resolver resolver{metrics};
  k8s::Client client;
  Leadership leadership;  // without a Lease
  GroupReader reader;
};

void play(const std::function<Task<>(Fixture&)>& body) {
  test::run_in_test_time([&]() -> Task<> {
    Fixture fixture(co_await asio::this_coro::executor);
    co_await body(fixture);
    co_await fixture.cluster.stop();
  });
}

const Json kCrashing{
    {"phase", "Running"},
    {"containerStatuses",
     {{{"name", "main"}, {"state", {{"waiting", {{"reason", "CrashLoopBackOff"}}}}}}}}};

TEST(GroupReader, FindsWhatIsWrongInTheCluster) {
  play([](Fixture& w) -> Task<> {
    EXPECT_TRUE(w.reader.applications().is_pending);
    co_await w.reader.round();
    EXPECT_EQ(entry_of(w.reader.applications()).state, StatusState::ok);
    EXPECT_EQ(entry_of(w.reader.components()).state, StatusState::ok);
    w.put("in-cluster", "Synced", "Degraded");
    w.put_pod("web", kCrashing);
    w.put_pod("build", kCrashing, {{"workflows.argoproj.io/workflow", "build"}});
    co_await w.reader.round();
    EXPECT_THAT(w.reader.applications().errors, ElementsAre("in-cluster: Degraded"));
    EXPECT_THAT(w.reader.components().errors, ElementsAre("web: container main: CrashLoopBackOff"));
  });
}

TEST(GroupReader, ReadsAllPagesOfPods) {
  play([](Fixture& w) -> Task<> {
    for (int i = 0; i < 502; ++i)
      w.put_pod("pod-" + std::to_string(1000 + i), {{"phase", "Running"}});
    w.put_pod("pod-9", kCrashing);
    co_await w.reader.round();
    EXPECT_THAT(w.reader.components().errors, ElementsAre(HasSubstr("pod-9: ")));
    EXPECT_EQ(w.cluster.count("GET", "/pods?"), 2U);
  });
}

TEST(GroupReader, AFailedReadIsNotKnownAndNoError) {
  play([](Fixture& w) -> Task<> {
    w.put("in-cluster", "Synced", "Degraded");
    w.put_pod("web", kCrashing);
    w.cluster.set_access([](const Access&) { return false; });
    co_await w.reader.round();
    for (const auto* group : {&w.reader.applications(), &w.reader.components()}) {
      EXPECT_THAT(group->errors, IsEmpty()) << group->name;
      EXPECT_EQ(entry_of(*group).state, StatusState::unknown) << group->name;
      EXPECT_THAT(entry_of(*group).message, StartsWith("not known: ")) << group->name;
      EXPECT_FALSE(group->is_pending) << group->name;
    }
  });
}

// As from a balancer, or from an API server that does not serve the kind now.
TEST(GroupReader, A404WithoutAReasonIsNoMissingApplication) {
  play([](Fixture& w) -> Task<> {
    w.cluster.remove_type(k8s::resources::kApplications);
    co_await w.reader.round();
    EXPECT_THAT(w.reader.applications().errors, IsEmpty());
    EXPECT_EQ(entry_of(w.reader.applications()).state, StatusState::unknown);
    EXPECT_THAT(entry_of(w.reader.applications()).message, StartsWith("not known: "));
  });
}

TEST(GroupReader, ReadsNoApplicationWithoutAGitToken) {
  play([](Fixture& w) -> Task<> {
    w.git_token = RuntimeGitToken("robot", Credential::fixed({}));
    co_await w.reader.round();
    EXPECT_EQ(w.cluster.count("GET", "/applications"), 0U);
    EXPECT_THAT(entry_of(w.reader.applications()).message, StartsWith("not known: "));
    EXPECT_FALSE(w.reader.applications().is_pending);
  });
}

// What often passes by itself is an error when it lasts.
TEST(GroupReader, AnApplicationHasFiveMinutesToSync) {
  play([](Fixture& w) -> Task<> {
    w.put("in-cluster", "OutOfSync", "Healthy");
    w.cluster.remove(k8s::resources::kApplications, {"default", "prod"});
    TaskGroup group(co_await asio::this_coro::executor);
    w.reader.start(group);
    co_await sleep_for(4min);
    EXPECT_THAT(w.reader.applications().errors, IsEmpty());
    co_await sleep_for(2min);
    EXPECT_THAT(w.reader.applications().errors,
                ElementsAre("prod: there is no such Application", "in-cluster: OutOfSync"));
    w.put("in-cluster", "Synced", "Healthy");
    w.put("prod", "Synced", "Healthy");
    co_await sleep_for(1min);
    EXPECT_EQ(entry_of(w.reader.applications()).state, StatusState::ok);
    // It begins over.
    w.put("in-cluster", "OutOfSync", "Healthy");
    co_await sleep_for(4min);
    EXPECT_THAT(w.reader.applications().errors, IsEmpty());
    group.cancel();
    co_await group.join();
  });
}

TEST(GroupReader, AServerThatRefusesTheQuestionIsThere) {
  play([](Fixture& w) -> Task<> {
    w.argocd = fail(ErrorCode::forbidden, "403");
    co_await w.reader.round();
    EXPECT_EQ(w.reader.argocd_error(), "");
    w.argocd = fail(ErrorCode::unavailable, "connection refused");
    co_await w.reader.round();
    EXPECT_EQ(w.reader.argocd_error(), "connection refused");
    EXPECT_EQ(w.reader.workflows_error(), "") << "it is not configured";
  });
}

TEST(GroupReader, OnlyTheLeaderLooksAndTheNextOneAtOnce) {
  play([](Fixture& w) -> Task<> {
    w.leadership.set(false);
    TaskGroup group(co_await asio::this_coro::executor);
    w.reader.start(group);
    co_await sleep_for(10min);
    EXPECT_EQ(w.cluster.requests().size(), 0U);
    EXPECT_EQ(entry_of(w.reader.components()).state, StatusState::pending);
    EXPECT_EQ(entry_of(w.reader.components()).message, "not known: another replica leads");
    co_await sleep_for(1s);
    w.leadership.set(true);
    co_await sleep_for(1s);
    EXPECT_EQ(entry_of(w.reader.components()).state, StatusState::ok);
    w.leadership.set(false);
    co_await sleep_for(1s);
    EXPECT_TRUE(w.reader.components().is_pending);
    group.cancel();
    co_await group.join();
  });
}

}  // namespace
}  // namespace gitops::app_proxy
