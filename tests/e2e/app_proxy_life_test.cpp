// The runtime registers itself, by the running app-proxy: from an empty namespace, killed at each step, with
// Secrets that vanish or cannot be stored, and with a leader that is frozen. It tells people and the control plane
// what is wrong. The API server and argocd-server are doubles; the control plane is a double, and the program where a
// test asks what it holds.
#include <csignal>
#include <memory>
#include <set>

#include <gmock/gmock.h>

#include "doubles/fake_argocd_server.hpp"
#include "doubles/fake_kube_api.hpp"
#include "e2e/app_proxy_harness.hpp"
#include "e2e/control_plane_side.hpp"
#include "support/wait.hpp"

namespace gitops::test {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using Json = nlohmann::json;
using Harness = AppProxyHarness;

struct LifeHarness {
  explicit LifeHarness(const Executor& executor, ControlPlaneKind kind = ControlPlaneKind::fake)
      : base(executor), cluster(executor), argocd(executor), side(kind, base.platform) {
    // No Git integration is made by itself.
    side.set_git("", "", "");
    EXPECT_TRUE(cluster.start());
    EXPECT_TRUE(argocd.start());
    argocd.lists_clusters = false;
    write_file(folder / "kubeconfig", cluster.kubeconfig());
  }
  [[nodiscard]] Environment settings(const std::string& leader_id = "pod-a") const {
    Environment all{{"KUBECONFIG", (folder / "kubeconfig").string()},
                    {"NAMESPACE", "default"},
                    {"RUNTIME_NAME", "new"},
                    {"RUNTIME_TOKEN", ""},
                    {"USER_TOKEN", Harness::kAnn},
                    {"CHART_VERSION", "0.30.1"},
                    {"RUNTIME_VERSION", "0.1.72"},
                    {"INGRESS_HOST", "https://runtime.example.test"},
                    {"LEADER_ID", leader_id},
                    {"ARGO_CD_URL", "http://127.0.0.1:" + std::to_string(argocd.url().port)},
                    {"ARGO_CD_USERNAME", "admin"},
                    {"ARGO_CD_PASSWORD", "canary-password"}};
    all.merge(side.environment());
    return all;
  }
  void start(Environment more = {}) {
    more.merge(settings());
    base.start(std::move(more));
  }

  [[nodiscard]] std::string value(const char* secret, const char* key) const {
    const auto found = cluster.find(k8s::resources::kSecrets, {"default", secret});
    if (!found) return {};
    const auto bytes =
        base64_decode(found->value(Json::json_pointer(std::string("/data/") + key), ""));
    return bytes ? *bytes : "";
  }
  [[nodiscard]] std::string token() const { return value("codefresh-token", "token"); }
  [[nodiscard]] StatusPage status() const { return base.daemon->status(); }
  // The errors that the control plane shows, a line each.
  [[nodiscard]] std::string errors() const { return side.errors("new"); }
  // A shared configuration repository that nobody serves, and the runtime's token for it.
  Environment git_settings(const std::string& leader_id = "pod-a") {
    side.set_git("", "", "https://127.0.0.1:1/acme/config.git");
    return {{"GIT_USERNAME", "robot"},
            {"GIT_PASSWORD", "canary-git"},
            {"REPOS_DIR", (folder / ("clones-" + leader_id)).string()}};
  }
  // Both Secrets are there, and those for whom they are take them.
  [[nodiscard]] bool is_complete() {
    return side.runtime_of(token()) == "new" &&
           value("codefresh-token", "encryptionIV").size() == 32 &&
           argocd.tokens.contains("Bearer " + value("argocd-token", "token"));
  }

  [[nodiscard]] std::string logs() const { return base.logs() + side.logs(); }
  Task<> stop() {
    if (const auto made = token(); !made.empty()) EXPECT_THAT(logs(), Not(HasSubstr(made)));
    co_await base.stop();
    side.stop();
    co_await argocd.stop();
    co_await cluster.stop();
  }

  AppProxyHarness base;
  FakeKubeApi cluster;
  FakeArgoCdServer argocd;
  ControlPlaneSide side;
  TempDir folder;
};

void in_life_harness(ControlPlaneKind kind, const std::function<Task<>(LifeHarness&)>& body) {
  run_coro(
      [&]() -> Task<> {
        LifeHarness harness(co_await asio::this_coro::executor, kind);
        co_await play_in(harness, body);
      },
      std::chrono::seconds(180));
}
void in_life_harness(const std::function<Task<>(LifeHarness&)>& body) {
  in_life_harness(ControlPlaneKind::fake, body);
}

// With either control plane.
struct AppProxyLifeAtBoth : testing::TestWithParam<ControlPlaneKind> {};
INSTANTIATE_TEST_SUITE_P(ControlPlane, AppProxyLifeAtBoth,
                         testing::Values(ControlPlaneKind::fake, ControlPlaneKind::program),
                         [](const auto& info) { return kind_name(info.param); });

TEST_P(AppProxyLifeAtBoth, AnEmptyNamespaceBecomesARegisteredRuntime) {
  in_life_harness(GetParam(), [](LifeHarness& w) -> Task<> {
    const auto& life = w.base.platform.accounts().life();
    const std::size_t registrations = w.side.is_program() ? 0 : 1;  // that the double has seen
    w.start();
    CO_ASSERT_TRUE(co_await eventually([&] { return w.is_complete(); }, "both Secrets"));
    EXPECT_EQ(life.registered.size(), registrations);
    EXPECT_EQ(w.side.registration("new"), (Json{{"runtimeName", "new"},
                                                {"runtimeNamespace", "default"},
                                                {"isExternalArgoCd", false},
                                                {"chartVersion", "0.30.1"},
                                                {"cluster", "https://kubernetes.default.svc"},
                                                {"ingressClass", ""},
                                                {"ingressController", ""},
                                                {"ingressHost", "https://runtime.example.test"},
                                                {"installationType", "HELM"},
                                                {"managed", false},
                                                {"runtimeVersion", "0.1.72"}}));
    // The new token serves at once: the account is known, and the status is told.
    co_await w.base.account_known();
    CO_ASSERT_TRUE(co_await eventually(
        [&] {
          const auto status = w.side.status("new");
          return !status.empty() && status["eventReporterArgoCDToken"]["status"] == "SUCCESSFUL" &&
                 status["argoCdState"] == "CONNECTED";
        },
        "the status"));
    EXPECT_EQ(w.side.status("new")["encryptionIv"]["status"], "SUCCESSFUL");
    EXPECT_EQ(w.side.status("new")["syncMode"], "HELM");
    EXPECT_EQ((co_await w.base.ask("{versionInfo{version}}")).status, 200);

    // What vanishes comes back as it was, without another registration.
    const auto token = w.token();
    const auto iv = w.value("codefresh-token", "encryptionIV");
    w.cluster.remove(k8s::resources::kSecrets, {"default", "codefresh-token"});
    w.cluster.remove(k8s::resources::kSecrets, {"default", "argocd-token"});
    CO_ASSERT_TRUE(co_await eventually([&] { return w.is_complete(); }, "both Secrets again"));
    EXPECT_EQ(w.token(), token);
    EXPECT_EQ(w.value("codefresh-token", "encryptionIV"), iv);
    EXPECT_EQ(life.registered.size(), registrations);
    EXPECT_EQ(w.argocd.tokens_made, 2);

    // A start later everything is as before. A token that Argo CD does not take any more is replaced.
    EXPECT_EQ(w.base.daemon->process().stop(), 0);
    w.argocd.tokens.clear();
    w.start();
    CO_ASSERT_TRUE(co_await eventually([&] { return w.is_complete(); }, "a token of Argo CD"));
    EXPECT_EQ(w.token(), token);
    EXPECT_EQ(life.registered.size(), registrations);
    EXPECT_EQ(w.argocd.tokens_made, 3);
  });
}

// An error is told to the control plane, and its end.
TEST_P(AppProxyLifeAtBoth, AnErrorIsReportedOnceAndItsEnd) {
  in_life_harness(GetParam(), [](LifeHarness& w) -> Task<> {
    w.argocd.refuses_tokens = true;
    w.start();
    CO_ASSERT_TRUE(co_await eventually(
        [&] { return w.errors().contains("eventReporterArgoCDToken"); }, "an error", 60s));
    w.argocd.refuses_tokens = false;
    CO_ASSERT_TRUE(co_await eventually([&] { return w.errors().empty(); }, "its end"));
    EXPECT_EQ(w.base.platform.accounts().life().errors.size(), w.side.is_program() ? 0U : 2U);
    EXPECT_TRUE(w.is_complete());
  });
}

// A token that cannot be stored is kept; it is not made again every few seconds.
TEST(AppProxyLife, TokensThatCannotBeStoredAreNotMadeAgain) {
  in_life_harness([](LifeHarness& w) -> Task<> {
    const auto& registered = w.base.platform.accounts().life().registered;
    const auto attempts = [&](std::size_t more) {
      return [&w, most = w.cluster.count("POST", "/secrets") + more] {
        return w.cluster.count("POST", "/secrets") >= most;
      };
    };
    const auto is_refused = [](const FakeKubeApi::Access& access) {
      return access.resource == "secrets" && access.verb == "create";
    };
    w.cluster.set_access([=](const FakeKubeApi::Access& access) { return !is_refused(access); });
    w.start();
    CO_ASSERT_TRUE(co_await eventually(attempts(3), "attempts to store codefresh-token"));
    EXPECT_EQ(registered.size(), 1U);
    w.cluster.set_access([=, &w](const FakeKubeApi::Access& access) {
      return !is_refused(access) || w.token().empty();
    });
    CO_ASSERT_TRUE(co_await eventually([&] { return !w.token().empty(); }, "codefresh-token"));
    CO_ASSERT_TRUE(co_await eventually(attempts(3), "attempts to store argocd-token"));
    EXPECT_EQ(w.argocd.tokens_made, 1);
    w.cluster.set_access({});
    CO_ASSERT_TRUE(co_await eventually([&] { return w.is_complete(); }, "both Secrets"));
    EXPECT_EQ(registered.size(), 1U);
    EXPECT_EQ(w.argocd.tokens_made, 1);
  });
}

TEST(AppProxyLife, ErrorsOfBeforeARestartAreCleared) {
  in_life_harness([](LifeHarness& w) -> Task<> {
    w.argocd.refuses_tokens = true;
    w.start();
    CO_ASSERT_TRUE(co_await eventually(
        [&] { return w.errors().contains("eventReporterArgoCDToken"); }, "an error", 60s));
    EXPECT_EQ(w.base.daemon->process().stop(), 0);
    w.argocd.refuses_tokens = false;
    w.start();
    CO_ASSERT_TRUE(co_await eventually([&] { return w.errors().empty(); }, "its end", 60s));
  });
}

// A login without a password is refused, and after a refusal the next one is minutes later.
TEST(AppProxyLife, ThePasswordForArgoCdMayComeLater) {
  in_life_harness([](LifeHarness& w) -> Task<> {
    const auto file = w.folder / "argocd-password";
    auto environment = w.settings();
    environment.erase("ARGO_CD_PASSWORD");
    w.base.start(std::move(environment), {"--argocd-password-file", file.string()});
    CO_ASSERT_TRUE(co_await eventually(
        [&] { return w.status().message("Argo CD").contains(file.string()); }, "the reason"));
    EXPECT_EQ(w.argocd.count("POST", "/api/v1/session"), 0U);
    write_file(file, "canary-password");
    CO_ASSERT_TRUE(co_await eventually([&] { return w.is_complete(); }, "both Secrets", 60s));
  });
}

TEST(AppProxyLife, ArgoCdReadsGitSourcesWithTheTokenOfTheRuntime) {
  in_life_harness([](LifeHarness& w) -> Task<> {
    constexpr const char* kName = "runtime-repo-creds-secret";
    const auto file = w.folder / "git-token";
    write_file(file, "canary-git-1");
    auto environment = w.git_settings();
    environment.erase("GIT_PASSWORD");
    environment.merge(w.settings());
    w.base.start(std::move(environment), {"--git-password-file", file.string()});
    const auto has = [&](const char* token) {
      return [&w, token] { return w.value(kName, "password") == token; };
    };
    CO_ASSERT_TRUE(co_await eventually(has("canary-git-1"), "the Secret"));
    EXPECT_EQ(w.value(kName, "url"), "https://127.0.0.1:1/");
    EXPECT_EQ(w.value(kName, "username"), "robot");
    EXPECT_EQ(w.value(kName, "type"), "git");
    const auto secret = w.cluster.find(k8s::resources::kSecrets, {"default", kName});
    EXPECT_EQ((*secret)["metadata"]["labels"],
              (Json{{"app.kubernetes.io/managed-by", "gitops-app-proxy"},
                    {"argocd.argoproj.io/secret-type", "repo-creds"}}));
    // It follows the token, and comes back when somebody deletes it.
    write_file(file, "canary-git-2");
    CO_ASSERT_TRUE(co_await eventually(has("canary-git-2"), "the token that was rotated"));
    w.cluster.remove(k8s::resources::kSecrets, {"default", kName});
    CO_ASSERT_TRUE(co_await eventually(has("canary-git-2"), "the Secret again"));
    EXPECT_EQ(w.status().state("repo-creds"), "ok") << w.status();
  });
}

TEST_P(AppProxyLifeAtBoth, TheStateIsShownAndToldInGroups) {
  in_life_harness(GetParam(), [](LifeHarness& w) -> Task<> {
    w.argocd.lists_clusters = true;
    w.argocd.clusters = {"edge"};
    w.argocd.failed = "edge";
    w.cluster.put(
        k8s::resources::kApplications,
        {{"metadata", {{"name", "in-cluster"}, {"namespace", "default"}}},
         {"status", {{"health", {{"status", "Degraded"}, {"message", "no right to deploy"}}}}}});
    w.cluster.put(
        k8s::resources::kPods,
        {{"metadata", {{"name", "internal-router-1"}, {"namespace", "default"}}},
         {"status",
          {{"containerStatuses",
            {{{"name", "router"}, {"state", {{"waiting", {{"reason", "ImagePullBackOff"}}}}}}}}}}});
    auto environment = w.git_settings();
    environment["ARGO_WORKFLOWS_URL"] = "http://127.0.0.1:1";
    w.start(std::move(environment));
    CO_ASSERT_TRUE(co_await eventually([&] { return w.errors().contains("components: "); },
                                       "the errors", 60s));
    EXPECT_THAT(w.errors(),
                AllOf(HasSubstr("connectivity: Argo Workflows: "),
                      HasSubstr("applications: in-cluster: Degraded: no right to deploy"),
                      HasSubstr("components: internal-router-1: container router: "
                                "ImagePullBackOff"),
                      HasSubstr("Git sources: shared configuration repository: "),
                      HasSubstr("clusters: edge: Argo CD cannot reach it"), Not(HasSubstr("isc"))));
    for (const char* group :
         {"connectivity", "applications", "components", "Git sources", "clusters"}) {
      EXPECT_EQ(w.status().state(group), "degraded") << group;
      EXPECT_NE(w.status().message(group), "") << group;
    }
    EXPECT_EQ(w.status().state("rights"), "ok") << w.status();
    // The items of the status keep their names.
    EXPECT_EQ(w.side.status("new")["isc"]["status"], "FAILED");
  });
}

TEST_P(AppProxyLifeAtBoth, AMissingRightIsTold) {
  in_life_harness(GetParam(), [](LifeHarness& w) -> Task<> {
    w.cluster.set_access(
        [](const FakeKubeApi::Access& access) { return access.resource != "pods"; });
    w.start();
    CO_ASSERT_TRUE(co_await eventually(
        [&] { return w.errors().contains("rights: app-proxy may not list pods"); }, "the error",
        60s));
    EXPECT_EQ(w.status().state("rights"), "degraded") << w.status();
    EXPECT_THAT(w.status().message("rights"), HasSubstr("may not list pods in namespace default"));
    EXPECT_THAT(w.logs(), HasSubstr("a permission in the cluster is missing"));
    // What cannot be read is not known, and no error.
    EXPECT_EQ(w.status().state("components"), "unknown") << w.status();
    EXPECT_THAT(w.status().message("components"), StartsWith("not known: "));
    EXPECT_THAT(w.errors(), Not(HasSubstr("components: ")));
  });
}

// Two replicas would spend the budget of each Git token twice.
TEST(AppProxyLife, TheNextLeaderGoesOnWithWhatOnlyALeaderDoes) {
  in_life_harness([](LifeHarness& w) -> Task<> {
    w.start(w.git_settings());
    CO_ASSERT_TRUE(
        co_await eventually([&] { return w.status().state("leader") == "ok"; }, "a leader"));
    EXPECT_EQ(w.status().message("leader"), "this one");
    auto environment = w.settings("pod-b");
    environment.merge(w.git_settings("pod-b"));
    environment.merge(w.base.environment());
    AppProxyProcess second(std::move(environment));
    const auto is_left_to_others = [](const Json& entry) {
      return entry["state"] == "standby" ||
             entry["message"].get<std::string>().contains("another replica");
    };
    const auto others = [&] {
      const auto page = second.status();
      return page.message("Git permissions of users") == "another replica checks them" &&
             page.message("shared configuration repository") == "another replica prepares it";
    };
    CO_ASSERT_TRUE(co_await eventually(others, "the second replica"));
    for (const char* part : {"Git permissions of users", "shared configuration repository",
                             "applications", "repo-creds"}) {
      EXPECT_EQ(second.status().state(part), "standby") << part;
    }
    EXPECT_THAT(second.status().message("applications"), HasSubstr("another replica leads"));
    EXPECT_NE(w.status().state("shared configuration repository"), "standby") << w.status();
    EXPECT_EQ(w.base.daemon->process().stop(), 0);
    w.base.daemon.reset();
    CO_ASSERT_TRUE(co_await eventually(
        [&] { return second.status().count_if(is_left_to_others) == 0; }, "the next leader"));
    EXPECT_EQ(second.status().state("leader"), "ok");
    EXPECT_EQ(second.status().message("leader"), "this one");
    EXPECT_EQ(second.process().stop(), 0) << second.log();
    EXPECT_THAT(second.log(), Not(HasSubstr("canary")));
  });
}

// kill -9 at each step: the next start completes it, and nothing is there twice.
TEST_P(AppProxyLifeAtBoth, KilledAtEachStepTheNextStartCompletesIt) {
  struct Step {
    const char* name;
    std::function<void(LifeHarness&, const std::function<void()>& kill)> arrange;
    std::size_t registrations = 1;
    bool is_program_asked = false;  // of the others it sees the same
  };
  // On the first request of that kind; `is_done`: it is carried out, and its answer lost. A review of the right to
  // make one is no such request.
  const auto on_create = [](const char* resource, std::size_t which, bool is_done) {
    return [=](LifeHarness& w, const std::function<void()>& kill) {
      w.cluster.set_access([=, &w](const FakeKubeApi::Access& access) {
        if (access.is_review || access.verb != "create" || access.resource != resource ||
            w.cluster.count("POST", std::string("/") + resource) != which + 1) {
          return true;
        }
        kill();
        return is_done;
      });
    };
  };
  const Step steps[] = {
      {"the Lease is asked for", on_create("leases", 0, false)},
      {"the Lease is taken", on_create("leases", 0, true)},
      {"the control plane has registered it",
       [](LifeHarness& w, const std::function<void()>& kill) {
         w.base.platform.accounts().life().on_registration = kill;
       },
       2},
      {"codefresh-token is about to be stored", on_create("secrets", 0, false), 2, true},
      {"codefresh-token is stored", on_create("secrets", 0, true), 1, true},
      {"Argo CD has made a token",
       [](LifeHarness& w, const std::function<void()>& kill) { w.argocd.on_token = kill; }},
      {"argocd-token is about to be stored", on_create("secrets", 1, false)},
      {"argocd-token is stored", on_create("secrets", 1, true)},
  };
  const bool is_program = GetParam() == ControlPlaneKind::program;
  for (const Step& step : steps) {
    if (is_program && !step.is_program_asked) continue;
    SCOPED_TRACE(step.name);
    in_life_harness(GetParam(), [&](LifeHarness& w) -> Task<> {
      const auto is_killed = std::make_shared<bool>(false);
      step.arrange(w, [is_killed, &w] {
        if (std::exchange(*is_killed, true)) return;
        w.base.daemon->process().signal(SIGKILL);
      });
      w.start();
      CO_ASSERT_TRUE(co_await eventually([&] { return *is_killed; }, "the step"));
      (void)w.base.daemon->process().kill();
      w.cluster.set_access({});
      const auto begin = Clock::now();
      w.start();
      CO_ASSERT_TRUE(co_await eventually([&] { return w.is_complete(); }, "both Secrets"));
      EXPECT_LT(Clock::now() - begin, 25s);
      co_await w.base.account_known();
      if (!is_program) {
        EXPECT_EQ(w.base.platform.accounts().life().registered.size(), step.registrations);
      }
      // The double has two others, the program one.
      EXPECT_EQ(w.side.runtimes(), is_program ? 2U : 3U);
    });
  }
}

// The leader is frozen in the middle of the registration. Another replica takes over; when the first one
// comes back, it takes what that one has stored.
TEST(AppProxyLife, ALeaderThatComesBackReplacesNothing) {
  in_life_harness([](LifeHarness& w) -> Task<> {
    auto& life = w.base.platform.accounts().life();
    const auto is_frozen = std::make_shared<bool>(false);
    life.on_registration = [is_frozen, &w] {
      if (std::exchange(*is_frozen, true)) return;
      w.base.daemon->process().signal(SIGSTOP);
    };
    w.start();
    CO_ASSERT_TRUE(co_await eventually([&] { return *is_frozen; }, "the registration"));
    auto environment = w.settings("pod-b");
    environment.merge(w.base.environment());
    AppProxyProcess second(std::move(environment));
    CO_ASSERT_TRUE(co_await eventually([&] { return w.is_complete(); }, "the second replica", 60s));
    EXPECT_EQ(life.registered.size(), 2U);
    const auto token = w.token();
    const auto argocd_token = w.value("argocd-token", "token");
    w.base.daemon->process().signal(SIGCONT);
    CO_ASSERT_TRUE(co_await eventually(
        [&] {
          return w.status().state("registration") == "ok" &&
                 w.status().message("leader") == "pod-b";
        },
        "the first replica"));
    co_await w.base.account_known();
    EXPECT_EQ(w.token(), token);
    EXPECT_EQ(w.value("argocd-token", "token"), argocd_token);
    EXPECT_EQ(life.registered.size(), 2U);
    EXPECT_EQ(second.status().message("leader"), "this one");
    EXPECT_EQ(second.process().stop(), 0) << second.log();
  });
}

}  // namespace
}  // namespace gitops::test
