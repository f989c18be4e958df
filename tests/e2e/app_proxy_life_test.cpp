// The runtime registers itself, by the running app-proxy: from an empty namespace, killed at each step, with
// Secrets that vanish, and with a leader that is frozen. The control plane, the API server and argocd-server
// are doubles.
#include <csignal>
#include <memory>
#include <set>

#include <gmock/gmock.h>

#include "doubles/fake_kube_api.hpp"
#include "e2e/app_proxy_world.hpp"

namespace gitops::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Json = nlohmann::json;
using World = AppProxyWorld;

// The login and the tokens of argocd-server.
struct TokenServer {
  explicit TokenServer(const Executor& executor)
      : server(executor, {.address = "127.0.0.1"},
               [this](http::Exchange& exchange) { return serve(exchange); }) {
    EXPECT_TRUE(server.listen());
  }
  Task<> serve(http::Exchange& exchange) {
    const std::string path(exchange.path());
    const std::string sent(exchange.request().headers.find("Authorization").value_or(""));
    (void)co_await exchange.read_body(64 * 1024);
    http::Response answer{.status = 200, .headers = {{"Content-Type", "application/json"}}};
    if (path == "/api/v1/session") {
      answer.body = R"({"token":"canary-session"})";
    } else if (path == "/api/v1/session/userinfo") {
      const bool is_known = tokens.contains(sent);
      if (!is_known) answer.status = 401;
      answer.body = is_known ? R"({"loggedIn":true})" : R"({"message":"invalid session"})";
    } else if (path.ends_with("/token") && sent == "Bearer canary-session") {
      const auto token = "canary-argocd-" + std::to_string(++made);
      tokens.insert("Bearer " + token);
      answer.body = Json{{"token", token}}.dump();
      on_token();
    } else {
      answer.status = 403;
      answer.body = R"({"message":"permission denied"})";
    }
    (void)co_await exchange.reply(std::move(answer));
  }

  std::set<std::string> tokens;  // that are valid
  int made = 0;
  std::function<void()> on_token = [] {};
  http::Server server;
};

struct LifeWorld {
  explicit LifeWorld(const Executor& executor)
      : base(executor), cluster(executor), argocd(executor) {
    // No Git integration is made by itself.
    base.platform.accounts().add(
        {.id = "acc-1", .name = "acme", .admins = {"u-ann"}, .git_provider = {}});
    EXPECT_TRUE(cluster.start());
    write_file(folder / "kubeconfig", cluster.kubeconfig());
  }
  [[nodiscard]] Environment settings(const std::string& leader_id = "pod-a") const {
    return {{"KUBECONFIG", (folder / "kubeconfig").string()},
            {"NAMESPACE", "default"},
            {"RUNTIME_NAME", "new"},
            {"RUNTIME_TOKEN", ""},
            {"USER_TOKEN", World::kAnn},
            {"CHART_VERSION", "0.30.1"},
            {"RUNTIME_VERSION", "0.1.72"},
            {"INGRESS_HOST", "https://runtime.example.test"},
            {"LEADER_ID", leader_id},
            {"ARGO_CD_URL", "http://127.0.0.1:" + std::to_string(argocd.server.port())},
            {"ARGO_CD_USERNAME", "admin"},
            {"ARGO_CD_PASSWORD", "canary-password"}};
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
  // Both Secrets are there, and those for whom they are take them.
  [[nodiscard]] bool is_complete() {
    const auto& registered = base.platform.accounts().life().registered;
    return token() == "canary-runtime-token-" + std::to_string(registered.size()) &&
           value("codefresh-token", "encryptionIV").size() == 32 &&
           argocd.tokens.contains("Bearer " + value("argocd-token", "token"));
  }
  Task<bool> until(std::function<bool()> condition, const char* what,
                   Clock::duration patience = 30s) {
    const auto deadline = deadline_after(patience);
    while (!condition()) {
      if (Clock::now() > deadline) {
        ADD_FAILURE() << "waited in vain for " << what;
        co_return false;
      }
      co_await sleep_for(20ms);
    }
    co_return true;
  }

  [[nodiscard]] std::string logs() const { return base.logs(); }
  Task<> stop() {
    co_await base.stop();
    co_await argocd.server.stop(Clock::now());
    co_await cluster.stop();
  }

  AppProxyWorld base;
  FakeKubeApi cluster;
  TokenServer argocd;
  TempDir folder;
};

void in_life_world(const std::function<Task<>(LifeWorld&)>& body) {
  run_coro(
      [&]() -> Task<> {
        LifeWorld world(co_await asio::this_coro::executor);
        co_await play_in(world, body);
      },
      std::chrono::seconds(180));
}

TEST(AppProxyLife, AnEmptyNamespaceBecomesARegisteredRuntime) {
  in_life_world([](LifeWorld& w) -> Task<> {
    auto& life = w.base.platform.accounts().life();
    w.start();
    CO_ASSERT_TRUE(co_await w.until([&] { return w.is_complete(); }, "both Secrets"));
    CO_ASSERT_EQ(life.registered.size(), 1U);
    EXPECT_EQ(life.registered[0], (Json{{"runtimeName", "new"},
                                        {"runtimeNamespace", "default"},
                                        {"componentNames", Json::array()},
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
    CO_ASSERT_TRUE(co_await w.until(
        [&] {
          return !life.statuses.empty() &&
                 life.statuses.back()["status"]["eventReporterArgoCDToken"]["status"] ==
                     "SUCCESSFUL" &&
                 life.statuses.back()["status"]["argoCdState"]["status"] == "SUCCESSFUL";
        },
        "the status"));
    EXPECT_EQ(life.statuses.back()["runtime"], "new");
    EXPECT_EQ(life.statuses.back()["status"]["encryptionIv"]["status"], "SUCCESSFUL");
    EXPECT_EQ((co_await w.base.ask("{versionInfo{version}}")).status, 200);

    // What vanishes comes back as it was, without another registration.
    const auto token = w.token();
    const auto iv = w.value("codefresh-token", "encryptionIV");
    w.cluster.remove(k8s::resources::kSecrets, {"default", "codefresh-token"});
    w.cluster.remove(k8s::resources::kSecrets, {"default", "argocd-token"});
    CO_ASSERT_TRUE(co_await w.until([&] { return w.is_complete(); }, "both Secrets again"));
    EXPECT_EQ(w.token(), token);
    EXPECT_EQ(w.value("codefresh-token", "encryptionIV"), iv);
    EXPECT_EQ(life.registered.size(), 1U);
    EXPECT_EQ(w.argocd.made, 2);

    // A start later everything is as before. A token that Argo CD does not take any more is replaced.
    EXPECT_EQ(w.base.daemon->process().stop(), 0);
    w.argocd.tokens.clear();
    w.start();
    CO_ASSERT_TRUE(co_await w.until([&] { return w.is_complete(); }, "a token of Argo CD"));
    EXPECT_EQ(w.token(), token);
    EXPECT_EQ(life.registered.size(), 1U);
    EXPECT_EQ(w.argocd.made, 3);
  });
}

// Trouble is told to the control plane, and its end.
TEST(AppProxyLife, TroubleIsToldOnceAndItsEnd) {
  in_life_world([](LifeWorld& w) -> Task<> {
    auto& life = w.base.platform.accounts().life();
    const auto may_create = std::make_shared<bool>(false);
    w.cluster.set_access([may_create, &w](const FakeKubeApi::Access& access) {
      return *may_create || access.resource != "secrets" || access.verb != "create" ||
             w.token().empty();
    });
    w.start();
    const auto reported = [&](const char* message) {
      return !life.errors.empty() && life.errors.back().dump().contains(message);
    };
    CO_ASSERT_TRUE(
        co_await w.until([&] { return reported("eventReporterArgoCDToken"); }, "an error"));
    *may_create = true;
    CO_ASSERT_TRUE(
        co_await w.until([&] { return life.errors.back()["errors"].empty(); }, "its end"));
    EXPECT_TRUE(w.is_complete());
  });
}

// kill -9 at each step: the next start completes it, and nothing is there twice.
TEST(AppProxyLife, KilledAtEachStepTheNextStartCompletesIt) {
  struct Step {
    const char* name;
    std::function<void(LifeWorld&, const std::function<void()>& kill)> arrange;
    std::size_t registrations = 1;
  };
  // On the first request of that kind; `is_done`: it is carried out, and its answer lost.
  const auto on_create = [](const char* resource, int which, bool is_done) {
    return [=](LifeWorld& w, const std::function<void()>& kill) {
      w.cluster.set_access([=, seen = 0](const FakeKubeApi::Access& access) mutable {
        if (access.verb != "create" || access.resource != resource || seen++ != which) return true;
        kill();
        return is_done;
      });
    };
  };
  const Step steps[] = {
      {"the Lease is asked for", on_create("leases", 0, false)},
      {"the Lease is taken", on_create("leases", 0, true)},
      {"the control plane has registered it",
       [](LifeWorld& w, const std::function<void()>& kill) {
         w.base.platform.accounts().life().on_registration = kill;
       },
       2},
      {"codefresh-token is about to be stored", on_create("secrets", 0, false), 2},
      {"codefresh-token is stored", on_create("secrets", 0, true)},
      {"Argo CD has made a token",
       [](LifeWorld& w, const std::function<void()>& kill) { w.argocd.on_token = kill; }},
      {"argocd-token is about to be stored", on_create("secrets", 1, false)},
      {"argocd-token is stored", on_create("secrets", 1, true)},
  };
  for (const Step& step : steps) {
    SCOPED_TRACE(step.name);
    in_life_world([&](LifeWorld& w) -> Task<> {
      const auto is_killed = std::make_shared<bool>(false);
      step.arrange(w, [is_killed, &w] {
        if (std::exchange(*is_killed, true)) return;
        w.base.daemon->process().signal(SIGKILL);
      });
      w.start();
      CO_ASSERT_TRUE(co_await w.until([&] { return *is_killed; }, "the step"));
      (void)w.base.daemon->process().kill();
      w.cluster.set_access({});
      const auto begin = Clock::now();
      w.start();
      CO_ASSERT_TRUE(co_await w.until([&] { return w.is_complete(); }, "both Secrets"));
      EXPECT_LT(Clock::now() - begin, 25s);
      co_await w.base.account_known();
      auto& accounts = w.base.platform.accounts();
      EXPECT_EQ(accounts.life().registered.size(), step.registrations);
      // Those of the doubles, and this one.
      EXPECT_EQ(accounts.runtimes(), 3U);
    });
  }
}

// The leader is frozen in the middle of the registration. Another replica takes over; when the first one
// comes back, it takes what that one has stored.
TEST(AppProxyLife, ALeaderThatComesBackReplacesNothing) {
  in_life_world([](LifeWorld& w) -> Task<> {
    auto& life = w.base.platform.accounts().life();
    const auto is_frozen = std::make_shared<bool>(false);
    life.on_registration = [is_frozen, &w] {
      if (std::exchange(*is_frozen, true)) return;
      w.base.daemon->process().signal(SIGSTOP);
    };
    w.start();
    CO_ASSERT_TRUE(co_await w.until([&] { return *is_frozen; }, "the registration"));
    auto environment = w.settings("pod-b");
    environment.merge(w.base.environment());
    AppProxyProcess second(std::move(environment));
    CO_ASSERT_TRUE(co_await w.until([&] { return w.is_complete(); }, "the second replica", 60s));
    EXPECT_EQ(life.registered.size(), 2U);
    const auto token = w.token();
    const auto argocd_token = w.value("argocd-token", "token");
    w.base.daemon->process().signal(SIGCONT);
    CO_ASSERT_TRUE(co_await w.until(
        [&] {
          return w.base.daemon->admin("/statusz").body.contains("registration: well") &&
                 w.base.daemon->admin("/statusz").body.contains("leader: pod-b");
        },
        "the first replica"));
    co_await w.base.account_known();
    EXPECT_EQ(w.token(), token);
    EXPECT_EQ(w.value("argocd-token", "token"), argocd_token);
    EXPECT_EQ(life.registered.size(), 2U);
    EXPECT_THAT(second.admin("/statusz").body, HasSubstr("leader: this one"));
    EXPECT_EQ(second.process().stop(), 0) << second.log();
  });
}

}  // namespace
}  // namespace gitops::test
