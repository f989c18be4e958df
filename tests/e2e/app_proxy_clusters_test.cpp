// Managed clusters by the running app-proxy: added by the request of the add-cluster Job, reported to the control
// plane, and removed. The control plane, the API server and argocd-server are doubles; the Git server is real.
#include <csignal>
#include <memory>

#include <gmock/gmock.h>

#include "common/core/task_group.hpp"
#include "daemons/router_harness.hpp"
#include "doubles/fake_argocd_server.hpp"
#include "doubles/fake_kube_api.hpp"
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
constexpr auto kAnn = AppProxyHarness::kAnn;
constexpr auto kBob = AppProxyHarness::kBob;
constexpr auto kTimeLimit = 60s;

std::vector<Json> secrets_in(const FakeKubeApi& cluster) {
  std::vector<Json> found;
  const auto* type = cluster.store().find_type("", "v1", "secrets");
  for (const auto& object : cluster.store().list(*type, "default")) found.push_back(object->json);
  return found;
}

struct ClustersHarness {
  explicit ClustersHarness(const Executor& executor)
      : base(executor), cluster(executor), argocd(executor) {
    git.create_repository("config");
    git.add_user("robot", "canary-git");
    base.platform.accounts().add({.id = "acc-1",
                                  .name = "acme",
                                  .admins = {"u-ann"},
                                  .git_provider = {},
                                  .shared_config_repo = git.url("config")});
    EXPECT_TRUE(cluster.start());
    EXPECT_TRUE(argocd.start());
    argocd.has_accounts = false;
    argocd.more = [this] { return clusters_of_secrets(); };
    write_file(folder / "kubeconfig", cluster.kubeconfig());
  }
  [[nodiscard]] Environment settings(const std::string& leader_id = "pod-a") const {
    return {{"KUBECONFIG", (folder / "kubeconfig").string()},
            {"NAMESPACE", "default"},
            {"USER_TOKEN", kAnn},
            {"RUNTIME_STORE_IV", "canary-iv"},
            {"LEADER_ID", leader_id},
            {"REPOS_DIR", (folder / ("clones-" + leader_id)).string()},
            {"GIT_INSECURE_HTTP", "true"},
            {"GIT_USERNAME", "robot"},
            {"GIT_PASSWORD", "canary-git"},
            {"ARGO_CD_URL", "http://127.0.0.1:" + std::to_string(argocd.url().port)},
            {"ARGO_CD_TOKEN", "canary-argocd"}};
  }
  Task<> start(Environment more = {}) {
    more.merge(settings());
    base.start(std::move(more));
    co_await base.account_known();
  }

  // The request of the Job.
  Task<Answer> add(const char* key, const std::string& server, Json user) {
    const Json config{
        {"kind", "Config"},
        {"apiVersion", "v1"},
        {"clusters", {{{"name", "edge"}, {"cluster", {{"server", server}}}}}},
        {"users", {{{"name", "edge"}, {"user", std::move(user)}}}},
        {"contexts", {{{"name", "edge"}, {"context", {{"cluster", "edge"}, {"user", "edge"}}}}}},
        {"current-context", "edge"}};
    return post(key, Json{{"name", "edge"},
                          {"kubeConfig", base64_encode(config.dump())},
                          {"annotations", ""},
                          {"labels", base64_encode("env: prod\n")}}
                         .dump());
  }
  Task<Answer> add(const char* key = kAnn) {
    return add(key, kEdge, {{"token", "canary-cluster-token"}});
  }
  Task<Answer> post(const char* key, std::string body) {
    http::Headers headers{{"Content-Type", "application/json"}};
    if (*key != '\0') headers.add("Authorization", key);
    co_return co_await base.send({.method = "POST",
                                  .target = "/app-proxy/api/clusters",
                                  .headers = std::move(headers),
                                  .body = std::move(body)});
  }
  // The public SDK's document.
  Task<Answer> remove(const char* key, const std::string& server, const char* runtime = "prod") {
    return base.ask(
        "mutation RemoveCluster($server: String!, $runtime: String!) {\n\tremoveCluster(server: "
        "$server, runtime: $runtime)\n}\n",
        AppProxyHarness::as(key), {{"server", server}, {"runtime", runtime}});
  }

  // Secrets of clusters.
  [[nodiscard]] std::vector<Json> secrets() const {
    std::vector<Json> found;
    for (const Json& secret : secrets_in(cluster)) {
      if (secret["metadata"]["name"].get<std::string>().starts_with("cluster-")) {
        found.push_back(secret);
      }
    }
    return found;
  }
  // The clusters that Argo CD reads from its Secrets.
  [[nodiscard]] std::vector<FakeArgoCdServer::Cluster> clusters_of_secrets() const {
    std::vector<FakeArgoCdServer::Cluster> found;
    for (const Json& secret : secrets_in(cluster)) {
      if (secret["metadata"]["labels"].value("argocd.argoproj.io/secret-type", "") != "cluster") {
        continue;
      }
      const auto value = [&](const char* key) {
        return base64_decode(secret["data"][key].get<std::string>()).value();
      };
      found.push_back({value("name"), value("server")});
    }
    return found;
  }
  [[nodiscard]] std::string file(const std::string& path) const {
    return git.file_at_head("config", path).value_or("");
  }
  [[nodiscard]] std::string log_of(const std::string& path) const {
    return git.git("config", {"log", "--format=%an|%s|%b", "main", "--", path}).out;
  }
  // "edge Successful", in order of arrival; a list in brackets for each report.
  [[nodiscard]] std::vector<std::string> reported() const {
    std::vector<std::string> lines;
    for (const Json& list : base.platform.accounts().life().clusters) {
      std::string line;
      for (const Json& one : list) {
        line += (line.empty() ? "" : ", ") + one["name"].get<std::string>() + " " +
                one["info"]["connectionState"]["status"].get<std::string>();
      }
      lines.push_back(line);
    }
    return lines;
  }

  [[nodiscard]] std::string logs() const { return base.logs(); }
  Task<> stop() {
    co_await base.stop();
    co_await argocd.stop();
    co_await cluster.stop();
  }

  static constexpr const char* kEdge = "https://edge.example.test:6443";
  mutable AppProxyHarness base;
  FakeKubeApi cluster;
  FakeArgoCdServer argocd;
  GitServer git;
  TempDir folder;
};

void in_clusters_harness(const std::function<Task<>(ClustersHarness&)>& body) {
  if (const auto missing = GitServer::missing()) FAIL() << *missing;
  run_coro(
      [&]() -> Task<> {
        ClustersHarness world(co_await asio::this_coro::executor);
        co_await play_in(world, body);
      },
      std::chrono::seconds(150));
}

TEST(AppProxyClusters, AreAddedReportedAndRemoved) {
  in_clusters_harness([](ClustersHarness& w) -> Task<> {
    w.argocd.clusters = {"here"};
    co_await w.start();
    CO_ASSERT_TRUE(
        co_await eventually([&] { return !w.reported().empty(); }, "the first report", kTimeLimit));
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
    CO_ASSERT_TRUE(
        co_await eventually([&] { return w.reported().size() >= 2; }, "the report", kTimeLimit));
    EXPECT_THAT(w.reported(), ElementsAre("here Successful", "edge Successful"));

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
    CO_ASSERT_TRUE(co_await eventually([&] { return w.reported().back() == "edge Unknown"; },
                                       "the end of the cluster", kTimeLimit));
    // A list that shows nothing is one that may not be seen, and no removal.
    const auto reports = w.reported().size();
    w.argocd.clusters.clear();
    CO_ASSERT_TRUE(co_await eventually(
        [&] { return w.base.daemon->admin("/statusz").body.contains("Argo CD shows no cluster"); },
        "the error", kTimeLimit));
    EXPECT_EQ(w.reported().size(), reports);
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
    for (const Json& line : w.base.audit()) {
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
    CO_ASSERT_TRUE(co_await eventually(
        [&] { return w.base.daemon->admin("/statusz").body.contains("leader: pod-b"); },
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
