// app-proxy as the chart installs it: into a real API server by the real helm, read back from there,
// and run as the node would run it, with its ServiceAccount's token. The control plane and the Git
// host are doubles.
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "chart/helm.hpp"
#include "e2e/git_harness.hpp"
#include "peers/rendered_workload.hpp"
#include "peers/shared_cluster.hpp"
#include "support/wait.hpp"

namespace gitops::test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using Json = nlohmann::json;
using namespace nlohmann::literals;

constexpr auto kAnn = AppProxyHarness::kAnn;
constexpr auto kBob = AppProxyHarness::kBob;
constexpr auto kTimeLimit = std::chrono::seconds(60);
constexpr const char* kSelector = "io.codefresh.integration-type=git";

struct HelmAndCluster {
  static std::optional<std::string> missing() {
    if (auto lacking = Helm::missing()) return lacking;
    return PeerCluster::missing();
  }
};

class AppProxyChart : public testing::Test {
 protected:
  void SetUp() override {
    GITOPS_REQUIRE_PEER(HelmAndCluster);
    static int number = 0;
    ns_ = "proxy-" + std::to_string(++number);
    cluster().create_namespace(ns_, {{"pod-security.kubernetes.io/enforce", "restricted"},
                                     {"pod-security.kubernetes.io/warn", "restricted"}});
  }

  static PeerCluster& cluster() { return shared_cluster(); }

  Json get(const std::string& kind, const std::string& name) const {
    return Json::parse(cluster().kubectl_ok({"-n", ns_, "get", kind, name, "-o", "json"}));
  }
  std::set<std::string> integration_secrets() const {
    const auto all = Json::parse(
        cluster().kubectl_ok({"-n", ns_, "get", "secrets", "-l", kSelector, "-o", "json"}));
    std::set<std::string> names;
    for (const auto& item : all.at("items")) {
      names.insert(item.at("/metadata/name"_json_pointer).get<std::string>());
    }
    return names;
  }
  void put_runtime_token() const {
    const Json secret{
        {"apiVersion", "v1"},
        {"kind", "Secret"},
        {"metadata", {{"name", "codefresh-token"}, {"namespace", ns_}}},
        {"stringData", {{"token", AppProxyHarness::kRuntime}, {"encryptionIV", "canary-iv"}}}};
    cluster().apply(secret.dump());
  }
  void helm(GitHarness& harness) {
    const Json values{{"global",
                       {{"codefresh", {{"url", harness.base.platform.url().to_string()}}},
                        {"runtime", {{"name", "prod"}}}}},
                      {"app-proxy",
                       {{"enabled", true},
                        {"networkPolicy", {{"enabled", true}}},
                        {"env", {{"GIT_INSECURE_HTTP", true}}},
                        {"terminationGracePeriodSeconds", 5}}}};
    write_file(folder_ / "values.json", values.dump());
    const auto done =
        helm_.run({"upgrade", "--install", "rt", chart_folder(), "-n", ns_, "-f",
                   values_file("minimal.yaml"), "-f", (folder_ / "values.json").string()},
                  cluster().kubeconfig());
    if (!done.ok()) throw std::runtime_error("helm: " + done.err);
    EXPECT_THAT(done.err, Not(HasSubstr("arning")));
  }
  // Runs the program of the pod that the Deployment's controller made.
  void start(GitHarness& harness) {
    pod_ = std::make_unique<RenderedWorkload>(cluster(), ns_,
                                              RenderedWorkload::Deployment{"cap-app-proxy"});
    ASSERT_EQ(pod_->argv().at(0), "app-proxy");
    harness.base.daemon.emplace(
        pod_->process_environment(),
        std::vector<std::string>(pod_->argv().begin() + 1, pod_->argv().end()));
  }
  // kubectl as the pod's ServiceAccount.
  CommandResult as_pod(std::vector<std::string> args, std::string_view input = {}) const {
    args.insert(args.begin(), {Helm::program("kubectl"), "--kubeconfig", pod_->kubeconfig()});
    return run_command(args, {}, input);
  }
  void expect_refused(const std::vector<std::string>& args, std::string_view input = {}) const {
    const auto done = as_pod(args, input);
    EXPECT_FALSE(done.ok()) << testing::PrintToString(args);
    EXPECT_THAT(done.err, HasSubstr("orbidden")) << testing::PrintToString(args);
  }

  TempDir folder_;
  Helm helm_;
  std::string ns_;
  std::unique_ptr<RenderedWorkload> pod_;
};

TEST_F(AppProxyChart, KeepsGitIntegrationsWithThePermissionsOfItsAccount) {
  cluster();
  in_git_harness([this](GitHarness& harness) -> Task<> {
    harness.base.platform.accounts().add(
        {.id = "acc-1", .name = "acme", .admins = {"u-ann"}, .git_provider = "GITHUB"});
    put_runtime_token();
    helm(harness);
    start(harness);
    co_await harness.base.account_known();

    // What the account's own Git host is, is there without anybody's doing.
    const auto made = [this] { return integration_secrets().contains("git-default-acc-1"); };
    const auto deadline = deadline_after(kTimeLimit);
    while (!made() && Clock::now() < deadline) {
      co_await sleep_for(std::chrono::milliseconds(50));
    }
    EXPECT_TRUE(made()) << harness.logs();

    // create, get, update, list, delete.
    const Json args{{"name", "main"},
                    {"provider", "GITHUB"},
                    {"apiUrl", harness.host.api_root().text()},
                    {"sharingPolicy", "ALL_USERS_IN_ACCOUNT"}};
    EXPECT_EQ((co_await harness.add(kAnn, args)).code(), "");
    EXPECT_EQ(
        (co_await harness.register_user(kBob, {{"name", "main"}, {"token", FakeGitHost::kToken}}))
            .json["data"]["registerToGitIntegration"]["registeredUsers"],
        (Json{"u-bob"}));
    EXPECT_EQ((co_await harness.get(kBob, "main")).json["data"]["gitIntegration"]["apiUrl"],
              harness.host.api_root().text());
    EXPECT_EQ((co_await harness.list(kBob)).json["data"]["gitIntegrations"].size(), 2U);
    EXPECT_THAT(integration_secrets(), ElementsAre("git-default-acc-1", "git-main-acc-1"));
    const auto stored = get("secret", "git-main-acc-1");
    EXPECT_EQ(stored.at("/metadata/labels"_json_pointer)
                  .value("io.codefresh.integration-name", std::string()),
              "main");
    for (const auto& [key, value] : stored.at("data").items()) {
      EXPECT_THAT(base64_decode(value.get<std::string>()).value(), Not(HasSubstr("canary"))) << key;
    }
    EXPECT_EQ((co_await harness.remove(kAnn, "main")).code(), "");
    EXPECT_THAT(integration_secrets(), ElementsAre("git-default-acc-1"));

    // Without its permissions it says so, and goes on serving.
    cluster().kubectl_ok({"-n", ns_, "delete", "rolebinding", "cap-app-proxy"});
    const auto gone = deadline_after(kTimeLimit);
    auto refused = co_await harness.list(kBob);
    while (!refused.json.contains("errors") && Clock::now() < gone) {
      co_await sleep_for(std::chrono::milliseconds(50));
      refused = co_await harness.list(kBob);
    }
    EXPECT_EQ(refused.code(), "UNAVAILABLE");
    EXPECT_THAT(harness.logs(), HasSubstr("list secrets in " + ns_));
    EXPECT_THAT(harness.logs(), HasSubstr("403 Forbidden"));
    EXPECT_EQ(
        (co_await harness.base.ask("{versionInfo{version}}")).json["data"]["versionInfo"].size(),
        1U);
  });
}

TEST_F(AppProxyChart, MayDoNothingElse) {
  cluster();
  in_git_harness([this](GitHarness& harness) -> Task<> {
    put_runtime_token();
    helm(harness);
    start(harness);
    co_await harness.base.account_known();

    const auto allowed = as_pod({"-n", ns_, "get", "secrets"});
    EXPECT_TRUE(allowed.ok()) << allowed.err;
    const std::string secret =
        R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"x","namespace":")" + ns_ +
        R"("}})";
    EXPECT_TRUE(as_pod({"create", "--validate=false", "-f", "-"}, secret).ok());
    expect_refused({"-n", ns_, "patch", "secret", "x", "-p", R"({"stringData":{"a":"b"}})"});
    expect_refused({"-n", ns_, "get", "secrets", "--as=system:admin"});
    expect_refused({"get", "--raw", "/api/v1/namespaces/" + ns_ + "/secrets?watch=true"});
    expect_refused({"-n", "kube-system", "get", "secrets"});
    expect_refused({"get", "secrets", "--all-namespaces"});
    for (const auto* kind : {"configmaps", "events", "serviceaccounts", "roles", "deployments"}) {
      expect_refused({"-n", ns_, "get", kind});
    }
    // It cannot give itself more.
    expect_refused({"-n", ns_, "create", "rolebinding", "more", "--role=cap-app-proxy",
                    "--serviceaccount=" + ns_ + ":default"});
    expect_refused({"-n", ns_, "create", "token", "runtime-event-reporter"});
    EXPECT_TRUE(as_pod({"-n", ns_, "delete", "secret", "x"}).ok());
  });
}

TEST_F(AppProxyChart, IsWhereTheRouterLooksForIt) {
  cluster();
  in_git_harness([this](GitHarness& harness) -> Task<> {
    put_runtime_token();
    helm(harness);
    start(harness);
    co_await harness.base.account_known();

    const auto routes =
        get("configmap", "internal-router-config").at("/data/routes.yaml"_json_pointer);
    EXPECT_THAT(routes.get<std::string>(), HasSubstr("http://cap-app-proxy:3017"));
    const auto service = get("service", "cap-app-proxy");
    EXPECT_EQ(service.at("/spec/ports/0/port"_json_pointer), 3017);
    const std::string address = pod_->pod().at("/status/podIP"_json_pointer);
    const auto leads_to_the_pod = [&] {
      const auto slices = Json::parse(
          cluster().kubectl_ok({"-n", ns_, "get", "endpointslices", "-l",
                                "kubernetes.io/service-name=cap-app-proxy", "-o", "json"}));
      for (const auto& slice : slices.at("items")) {
        if (slice.value("/ports/0/port"_json_pointer, 0) != 8080) continue;
        for (const auto& endpoint : slice.value("endpoints", Json::array())) {
          if (endpoint.at("/addresses/0"_json_pointer) == address) return true;
        }
      }
      return false;
    };
    EXPECT_TRUE(
        wait_until(leads_to_the_pod, kTimeLimit, "the endpoint", std::chrono::milliseconds(200)));
    // The API server has taken the policy, which lets the router's pods in.
    const auto policy = get("networkpolicy", "cap-app-proxy");
    const auto router = get("deployment", "internal-router");
    const auto& labels = router.at("/spec/template/metadata/labels"_json_pointer);
    const auto& admitted = policy.at("/spec/ingress/0/from/0/podSelector/matchLabels"_json_pointer);
    EXPECT_FALSE(admitted.empty());
    for (const auto& [name, value] : admitted.items()) {
      EXPECT_EQ(labels.value(name, ""), value.get<std::string>());
    }

    // The folder for clones is the pod's own, and may be written to.
    const fs::path repositories = pod_->environment().at("REPOS_DIR");
    EXPECT_TRUE(fs::is_directory(repositories));
    EXPECT_EQ(repositories, pod_->local("/var/lib/app-proxy/repos"));
    EXPECT_THAT(pod_->environment(), Not(testing::Contains(testing::Key("RUNTIME_TOKEN"))));
  });
}

}  // namespace
}  // namespace gitops::test
