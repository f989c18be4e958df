// Managed clusters by the running app-proxy: added by the request of the add-cluster Job, reported to the control
// plane, and removed. The API server and argocd-server are doubles; the Git server is real. The control plane is a double,
// and the program where a test asks what it holds.
#include <csignal>
#include <memory>

#include <gmock/gmock.h>

#include "common/core/task_group.hpp"
#include "daemons/router_harness.hpp"
#include "doubles/fake_argocd_server.hpp"
#include "doubles/fake_kube_api.hpp"
#include "e2e/app_proxy_clusters_harness.hpp"
#include "e2e/app_proxy_harness.hpp"
#include "support/git_server.hpp"
#include "support/wait.hpp"

namespace gitops::test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;
using Answer = AppProxyHarness::Answer;

constexpr auto kBob = AppProxyHarness::kBob;
constexpr auto kTimeLimit = 60s;

struct AppProxyClustersAtBoth : testing::TestWithParam<ControlPlaneKind> {};
INSTANTIATE_TEST_SUITE_P(ControlPlane, AppProxyClustersAtBoth,
                         testing::Values(ControlPlaneKind::fake, ControlPlaneKind::program),
                         [](const auto& info) { return kind_name(info.param); });

TEST_P(AppProxyClustersAtBoth, AreAddedReportedAndRemoved) {
  in_clusters_harness(GetParam(), [](ClustersHarness& w) -> Task<> {
    using States = std::map<std::string, std::string>;
    const auto shows = [&w](States states) {
      return [&w, states = std::move(states)] { return w.side.clusters("prod") == states; };
    };
    const States here{{"here", "Successful"}};
    w.argocd.clusters = {"here"};
    co_await w.start();
    CO_ASSERT_TRUE(co_await eventually(shows(here), "the first report", kTimeLimit));
    const auto added = co_await w.add();
    EXPECT_EQ(added.status, 201) << added.body;
    CO_ASSERT_EQ(w.secrets().size(), 1U);
    const auto labels = w.secrets()[0]["metadata"]["labels"];
    EXPECT_EQ(labels, (Json{{"argocd.argoproj.io/secret-type", "cluster"}, {"env", "prod"}}));
    const auto file = w.file("runtimes/prod/edge.yaml");
    EXPECT_THAT(file, HasSubstr("server: https://edge.example.test:6443\n"));
    EXPECT_THAT(file, HasSubstr("all-runtimes-all-clusters/*.yaml"));
    EXPECT_THAT(file, Not(HasSubstr("control-planes")));
    const auto log = w.log_of("runtimes/prod/edge.yaml");
    EXPECT_EQ(log,
              "GitOps runtime prod|Add cluster edge of runtime prod|Requested by Ann through "
              "runtime prod.\n\n");
    CO_ASSERT_TRUE(co_await eventually(shows({{"here", "Successful"}, {"edge", "Successful"}}),
                                       "the report", kTimeLimit));
    if (!w.side.is_program()) {
      EXPECT_THAT(w.reported(), ElementsAre("here Successful", "edge Successful"));
    }

    // Again: nothing is there twice.
    EXPECT_EQ((co_await w.add()).status, 201);
    EXPECT_EQ(w.secrets().size(), 1U);
    EXPECT_EQ(w.log_of("runtimes/prod/edge.yaml"), log);
    // The cluster has moved: the same Secret and file.
    const auto moved =
        co_await w.add(kAnn, "https://moved.example.test", {{"token", "canary-other"}});
    EXPECT_EQ(moved.status, 201) << moved.body;
    EXPECT_EQ(w.secrets().size(), 1U);
    EXPECT_THAT(w.file("runtimes/prod/edge.yaml"), HasSubstr("https://moved.example.test\n"));
    EXPECT_EQ((co_await w.add()).status, 201);

    // Argo CD has made the Application, which it removes when its file has gone.
    for (const char* name : {"prod", "edge"}) {
      w.cluster.put(k8s::resources::kApplications,
                    {{"apiVersion", "argoproj.io/v1alpha1"},
                     {"kind", "Application"},
                     {"metadata", {{"name", name}, {"namespace", "default"}}}});
    }
    EXPECT_EQ((co_await w.remove(kAnn, "https://none.example.test")).code(), "NOT_FOUND");
    EXPECT_EQ((co_await w.remove(kAnn, ClustersHarness::kEdge, "other")).code(),
              "INVALID_ARGUMENT");
    TaskGroup group(co_await asio::this_coro::executor);
    group.spawn("argo cd", [&w]() -> Task<> {
      EXPECT_TRUE(co_await eventually(
          [&] {
            const auto app = w.cluster.find(k8s::resources::kApplications, {"default", "prod"});
            return app && app->dump().contains(R"("argocd.argoproj.io/refresh":"normal")");
          },
          "a refresh", kTimeLimit));
      EXPECT_EQ(w.file("runtimes/prod/edge.yaml"), "");
      EXPECT_EQ(w.secrets().size(), 1U) << "Argo CD can still clean up";
      w.cluster.remove(k8s::resources::kApplications, {"default", "edge"});
    });
    const auto removed = co_await w.remove(kAnn, std::string(ClustersHarness::kEdge) + "/");
    co_await group.join();
    EXPECT_EQ(removed.json, (Json{{"data", {{"removeCluster", nullptr}}}})) << removed.body;
    EXPECT_TRUE(w.secrets().empty());
    EXPECT_NE(w.file("runtimes/prod/in-cluster.yaml"), "");
    CO_ASSERT_TRUE(co_await eventually(shows(here), "the end of the cluster", kTimeLimit));
    // A list that shows nothing is one that may not be seen, and no removal.
    const auto reports = w.reported().size();
    w.argocd.clusters.clear();
    CO_ASSERT_TRUE(co_await eventually(
        [&] {
          const auto status = w.base.daemon->status();
          return status.state("report of clusters") == "failed" &&
                 status.message("report of clusters").contains("Argo CD shows no cluster");
        },
        "the error", kTimeLimit));
    EXPECT_EQ(w.reported().size(), reports);
    EXPECT_TRUE(shows(here)());
  });
}

TEST(AppProxyClusters, AClusterWithTheNameOfAGitSourceIsRefusedAndLeavesNothingBehind) {
  in_clusters_harness([](ClustersHarness& w) -> Task<> {
    co_await w.start();
    CO_ASSERT_TRUE(
        co_await eventually([&] { return w.file("runtimes/prod/in-cluster.yaml") != ""; },
                            "the runtime's files", kTimeLimit));
    w.git.commit("config", {{"resources/prod/edge.yaml", "kind: Application\n"}}, "a Git source");
    const auto refused = co_await w.add();
    EXPECT_EQ(refused.status, 409) << refused.body;
    EXPECT_THAT(refused.body, HasSubstr("has a Git source edge"));
    EXPECT_TRUE(w.secrets().empty());
    EXPECT_EQ(w.file("runtimes/prod/edge.yaml"), "");
    w.git.commit("config", {{"resources/prod/edge.yaml", std::nullopt}}, "no Git source");
    EXPECT_EQ((co_await w.add()).status, 201);
    EXPECT_EQ(w.secrets().size(), 1U);
  });
}

// `argocd cluster add` and declarative Secrets allow any name.
TEST(AppProxyClusters, AClusterThatArgoCdKnowsByAnyNameIsAdded) {
  in_clusters_harness([](ClustersHarness& w) -> Task<> {
    co_await w.start();
    CO_ASSERT_TRUE(
        co_await eventually([&] { return w.file("runtimes/prod/in-cluster.yaml") != ""; },
                            "the runtime's files", kTimeLimit));
    w.cluster.put(k8s::resources::kSecrets,
                  {{"apiVersion", "v1"},
                   {"kind", "Secret"},
                   {"metadata",
                    {{"name", "cluster-by-hand"},
                     {"namespace", "default"},
                     {"labels", {{"argocd.argoproj.io/secret-type", "cluster"}}}}},
                   {"data",
                    {{"name", base64_encode(ClustersHarness::kEdge)},
                     {"server", base64_encode(ClustersHarness::kEdge)},
                     {"config", base64_encode("{}")}}}});
    const auto added = co_await w.add();
    EXPECT_EQ(added.status, 201) << added.body;
    EXPECT_NE(w.file("runtimes/prod/edge.yaml"), "");
    CO_ASSERT_TRUE(w.secrets().size() == 1);
    EXPECT_EQ(w.secrets()[0]["data"]["name"], base64_encode("edge"));
  });
}

// Argo CD needs the Secret to remove what it has applied to the cluster.
TEST(AppProxyClusters, TheSecretStaysWhileTheApplicationCannotBeRead) {
  in_clusters_harness([](ClustersHarness& w) -> Task<> {
    co_await w.start();
    EXPECT_EQ((co_await w.add()).status, 201);
    w.cluster.put(k8s::resources::kApplications,
                  {{"apiVersion", "argoproj.io/v1alpha1"},
                   {"kind", "Application"},
                   {"metadata", {{"name", "edge"}, {"namespace", "default"}}}});
    w.cluster.fail_next(1'000, 503, {}, "/applications/edge");
    TaskGroup group(co_await asio::this_coro::executor);
    bool is_answered = false;
    group.spawn("remove", [&]() -> Task<> {
      const auto removed = co_await w.remove(kAnn, ClustersHarness::kEdge);
      EXPECT_EQ(removed.json, (Json{{"data", {{"removeCluster", nullptr}}}})) << removed.body;
      is_answered = true;
    });
    CO_ASSERT_TRUE(co_await eventually(
        [&] { return is_answered || w.cluster.count("GET", "/applications/edge") >= 3; },
        "reads of the Application", kTimeLimit));
    EXPECT_FALSE(is_answered);
    EXPECT_EQ(w.secrets().size(), 1U);
    w.cluster.remove(k8s::resources::kApplications, {"default", "edge"});
    w.cluster.end_faults();
    co_await group.join();
    EXPECT_TRUE(w.secrets().empty());
  });
}

// AC-02, AC-28, AC-30, AC-36: nothing of it is stored, committed or shown.
TEST(AppProxyClusters, AC30_HostileRequestsChangeNothing) {
  in_clusters_harness([](ClustersHarness& w) -> Task<> {
    write_file(w.folder / "hosts",
               "127.0.0.1 loop.example.test\n169.254.169.254 metadata.example.test\n"
               "10.9.8.7 edge.example.test\n");
    co_await w.start({{"LD_PRELOAD", hosts_library()},
                      {"NSS_WRAPPER_HOSTS", (w.folder / "hosts").string()},
                      {"NSS_WRAPPER_DISABLE_DEEPBIND", "1"}});  // which sanitizers refuse
    CO_ASSERT_TRUE(
        co_await eventually([&] { return w.file("runtimes/prod/in-cluster.yaml") != ""; },
                            "the runtime's files", kTimeLimit));
    const auto head = w.git.git("config", {"rev-parse", "main"}).out;
    EXPECT_EQ((co_await w.add("")).status, 401);
    EXPECT_EQ((co_await w.add("canary-wrong")).status, 401);
    EXPECT_EQ((co_await w.add(AppProxyHarness::kEve)).status, 401);
    EXPECT_EQ((co_await w.add(kBob)).status, 403);
    const Json token{{"token", "canary-cluster-token"}};
    for (const char* server :
         {"https://169.254.169.254", "https://127.0.0.1:6443", "https://[::1]", "https://localhost",
          "https://kubernetes.default.svc", "http://edge.example.test", "gopher://x",
          // Names that lead to such addresses.
          "https://loop.example.test:6443", "https://metadata.example.test"}) {
      const auto answer = co_await w.add(kAnn, server, token);
      EXPECT_EQ(answer.status, 400) << server << answer.body;
    }
    const auto marker = (w.folder / "was-run").string();
    const Json exec{{"apiVersion", "client.authentication.k8s.io/v1"},
                    {"command", "/usr/bin/touch"},
                    {"args", {marker}}};
    for (const Json& user : {Json{{"exec", exec}}, Json{{"tokenFile", "/etc/hostname"}},
                             Json{{"client-certificate", "/etc/hostname"}},
                             Json{{"auth-provider", {{"name", "gcp"}}}}, Json::object()}) {
      EXPECT_EQ((co_await w.add(kAnn, ClustersHarness::kEdge, user)).status, 400) << user;
    }
    EXPECT_FALSE(std::filesystem::exists(marker));
    for (const std::string& body :
         {std::string("["), std::string("{}"), std::string(R"({"name":"../x"})"),
          "{\"a\":" + std::string(100'000, '[')}) {
      EXPECT_EQ((co_await w.post(kAnn, body)).status, 400);
    }
    EXPECT_EQ((co_await w.post(kAnn, std::string(3'000'000, ' '))).status, 413);
    EXPECT_TRUE(w.secrets().empty());
    EXPECT_EQ(w.git.git("config", {"rev-parse", "main"}).out, head);
    // Whoever was refused stands in the audit stream.
    std::map<std::string, int> results;
    for (const Json& line : co_await w.base.audit(19)) {
      if (line["action"] == "clusters") ++results[line["result"]];
    }
    EXPECT_EQ(results["forbidden"], 1);
    EXPECT_EQ(results["invalid_argument"], 18);
    EXPECT_EQ(results.size(), 2U);
    EXPECT_EQ((co_await w.add()).status, 201) << "its host leads to a usual address";
  });
}

TEST(AppProxyClusters, ReportsComeInChunksAndOnlyWhatChanged) {
  in_clusters_harness([](ClustersHarness& w) -> Task<> {
    w.argocd.clusters = {"a", "b", "c", "d", "e"};
    co_await w.start({{"CLUSTER_CHUNK_SIZE", "2"}});
    CO_ASSERT_TRUE(
        co_await eventually([&] { return w.reported().size() >= 3; }, "three reports", kTimeLimit));
    EXPECT_THAT(w.reported(), ElementsAre("a Successful, b Successful",
                                          "c Successful, d Successful", "e Successful"));
    w.argocd.failed = "c";
    CO_ASSERT_TRUE(
        co_await eventually([&] { return w.reported().size() >= 4; }, "the change", kTimeLimit));
    EXPECT_EQ(w.reported().back(), "c Failed");
    // A restart tells nothing again; what changed meanwhile is told.
    EXPECT_EQ(w.base.daemon->process().stop(), 0);
    w.argocd.clusters = {"a", "b", "c", "d"};
    co_await w.start({{"CLUSTER_CHUNK_SIZE", "2"}});
    CO_ASSERT_TRUE(co_await eventually([&] { return w.reported().size() >= 5; }, "the removed one",
                                       kTimeLimit));
    EXPECT_EQ(w.reported().back(), "e Unknown");
    EXPECT_EQ(w.reported().size(), 5U);
  });
}

// The leader is frozen after its first report. Another replica takes over and tells the rest; the first one, when it
// comes back, tells nothing a second time.
TEST(AppProxyClusters, ALeaderThatComesBackTellsNothingTwice) {
  in_clusters_harness([](ClustersHarness& w) -> Task<> {
    w.argocd.clusters = {"a", "b", "c"};
    const auto is_frozen = std::make_shared<bool>(false);
    w.cluster.set_access([is_frozen, &w](const FakeKubeApi::Access& access) {
      if (access.resource == "configmaps" && access.verb == "create" &&
          !std::exchange(*is_frozen, true)) {
        w.base.daemon->process().signal(SIGSTOP);
      }
      return true;
    });
    co_await w.start({{"CLUSTER_CHUNK_SIZE", "1"}});
    CO_ASSERT_TRUE(co_await eventually([&] { return *is_frozen; }, "the first report", kTimeLimit));
    auto environment = w.settings("pod-b");
    environment["CLUSTER_CHUNK_SIZE"] = "1";
    environment.merge(w.base.environment());
    AppProxyProcess second(std::move(environment));
    CO_ASSERT_TRUE(co_await eventually([&] { return w.reported().size() >= 3; },
                                       "the second replica", kTimeLimit));
    w.base.daemon->process().signal(SIGCONT);
    CO_ASSERT_TRUE(
        co_await eventually([&] { return w.base.daemon->status().message("leader") == "pod-b"; },
                            "the first replica", kTimeLimit));
    // A change is told once, by the one that leads.
    w.argocd.failed = "b";
    CO_ASSERT_TRUE(
        co_await eventually([&] { return w.reported().size() >= 4; }, "the change", kTimeLimit));
    EXPECT_THAT(w.reported(),
                ElementsAre("a Successful", "b Successful", "c Successful", "b Failed"));
    EXPECT_EQ(second.process().stop(), 0) << second.log();
    EXPECT_THAT(second.log(), Not(HasSubstr("canary")));
  });
}

}  // namespace
}  // namespace gitops::test
