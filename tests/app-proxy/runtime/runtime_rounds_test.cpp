// The rounds of RuntimeRegistration with the doubles of an API server and of a control plane, in test time.
#include <set>
#include <string>

#include <gmock/gmock.h>

#include "app-proxy/runtime/runtime_registration.hpp"
#include "common/core/encoding.hpp"
#include "common/core/task_group.hpp"
#include "doubles/fake_kube_api.hpp"
#include "doubles/fake_platform.hpp"
#include "doubles/kube_failure.hpp"
#include "k8s-client/resource.hpp"
#include "support/run_coro.hpp"
#include "support/status_page.hpp"

namespace gitops::app_proxy {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using Json = nlohmann::json;
using Access = test::FakeKubeApi::Access;

constexpr const char* kUserToken = "user-token";

// The tokens of argocd-server.
struct TokenServer {
  explicit TokenServer(const Executor& executor)
      : server(executor, {.address = "127.0.0.1"},
               [this](http::Exchange& exchange) { return serve(exchange); }) {
    EXPECT_TRUE(server.listen());
  }
  Task<> serve(http::Exchange& exchange) {
    const std::string sent(exchange.request().headers.find("Authorization").value_or(""));
    (void)co_await exchange.read_body(64 * 1024);
    http::Response answer{.status = 200, .headers = {{"Content-Type", "application/json"}}};
    if (exchange.path() == "/api/v1/session/userinfo") {
      if (!tokens.contains(sent)) answer.status = 401;
      answer.body = answer.status == 200 ? R"({"loggedIn":true})" : "{}";
    } else {
      const auto token = "argocd-" + std::to_string(++made);
      tokens.insert("Bearer " + token);
      answer.body = Json{{"token", token}}.dump();
    }
    (void)co_await exchange.reply(std::move(answer));
  }

  std::set<std::string> tokens;  // that are valid
  int made = 0;
  http::Server server;
};

struct Fixture {
  explicit Fixture(const Executor& executor)
      : cluster(executor),
        platform(executor),
        argocd(executor),
        kube(executor, resolver, started(cluster), {}, "test"),
        http(executor, resolver, {}),
        control_plane(http, started_at(platform), [this] { return identity->token(); }),
        argocd_client(
            http, {.server = {.scheme = "http", .host = "127.0.0.1", .port = argocd.server.port()}},
            [] { return Secret("session"); }),
        leadership(executor) {
    auto& accounts = platform.accounts();
    accounts.add({.id = "acc-1", .name = "acme", .admins = {"u-ann"}});
    accounts.add(kUserToken,
                 test::FakeAccounts::User{.id = "u-ann", .name = "Ann", .account_id = "acc-1"});
    start_process(executor);
  }
  // A new one knows nothing of what the one before has done.
  void start_process(const Executor& executor, k8s::Client* other = nullptr) {
    RuntimeRegistration::Options options{.own_namespace = "default", .argocd_account = "admin"};
    options.installation.name = "new";
    options.installation.runtime_namespace = "default";
    life.reset();
    identity.emplace(executor, Credential::fixed({}), Credential::fixed({}));
    life.emplace(
        executor,
        RuntimeRegistration::Dependencies{.cluster = other != nullptr ? *other : kube,
                                          .control_plane = control_plane,
                                          .identity = *identity,
                                          .leadership = leadership,
                                          .user_token = user_token,
                                          .files = files,
                                          .git_token = git_token,
                                          .argocd = &argocd_client},
        [this] { return facts; }, std::move(options));
  }
  static k8s::ClusterConfig started(test::FakeKubeApi& cluster) {
    EXPECT_TRUE(cluster.start());
    return cluster.cluster_config();
  }
  static http::Url started_at(test::FakePlatform& platform) {
    EXPECT_TRUE(platform.start());
    return platform.url();
  }
  void set_git_token(const char* token) {
    git_token = RuntimeGitToken("robot", Credential::fixed(Secret(token)));
  }
  [[nodiscard]] std::string value(const char* secret, const char* key) const {
    const auto found = cluster.find(k8s::resources::kSecrets, {"default", secret});
    if (!found) return {};
    const auto bytes =
        base64_decode(found->value(Json::json_pointer(std::string("/data/") + key), ""));
    return bytes ? *bytes : "";
  }
  void refuse_secrets() {
    cluster.set_access(
        [](const Access& access) { return access.resource != "secrets" || access.verb == "get"; });
  }
  test::FakeAccounts::Life& reported() { return platform.accounts().life(); }
  // The messages of each report of errors.
  [[nodiscard]] std::vector<std::vector<std::string>> errors() {
    std::vector<std::vector<std::string>> all;
    for (const Json& report : reported().errors) {
      auto& one = all.emplace_back();
      for (const Json& error : report["errors"]) one.push_back(error["message"]);
    }
    return all;
  }
  Task<> stop() {
    http.close_idle();
    co_await argocd.server.stop(Clock::now());
    co_await platform.stop();
    co_await cluster.stop();
  }

  RuntimeFacts facts = {.has_argocd = true};
  Credential user_token = Credential::fixed(Secret(kUserToken));
  RuntimeFiles files = {
      .config_repository = [] { return std::string("https://git.example.test/acme/config.git"); }};
  RuntimeGitToken git_token{"robot", Credential::fixed({})};
  test::FakeKubeApi cluster;
  test::FakePlatform platform;
  TokenServer argocd;
  Metrics metrics;
  net::Resolver resolver{metrics};
  k8s::Client kube;
  http::Client http;
  control_plane::GraphqlClient control_plane;
  argo::ArgoCdClient argocd_client;
  Leadership leadership;  // without a Lease
  std::optional<RuntimeIdentity> identity;
  std::optional<RuntimeRegistration> life;
};

void play(const std::function<Task<>(Fixture&)>& body) {
  test::run_in_test_time([&]() -> Task<> {
    Fixture fixture(co_await asio::this_coro::executor);
    co_await body(fixture);
    co_await fixture.stop();
  });
}

// Runs it for that long.
Task<> run(Fixture& w, Clock::duration time) {
  TaskGroup group(co_await asio::this_coro::executor);
  w.life->start(group);
  co_await sleep_for(time);
  group.cancel();
  co_await group.join();
}

TEST(RuntimeRegistration, RegistersOnceWhileItsSecretCannotBeStored) {
  play([](Fixture& w) -> Task<> {
    w.refuse_secrets();
    co_await run(w, 5min);
    EXPECT_GT(w.cluster.count("POST", "/secrets"), 10U);
    EXPECT_EQ(w.reported().registered.size(), 1U);
    w.cluster.set_access({});
    co_await run(w, 10s);
    EXPECT_EQ(w.reported().registered.size(), 1U);
    EXPECT_EQ(w.value("codefresh-token", "token"), "canary-runtime-token-1");
    EXPECT_EQ(w.value("codefresh-token", "encryptionIV").size(), 32U);
  });
}

TEST(RuntimeRegistration, RegistersAgainWhenTheKeptTokenWasRefused) {
  play([](Fixture& w) -> Task<> {
    w.refuse_secrets();
    co_await run(w, 1min);
    CO_ASSERT_EQ(w.reported().registered.size(), 1U);
    // Somebody has deleted the runtime at the control plane meanwhile.
    w.platform.accounts().revoke("canary-runtime-token-1");
    w.cluster.set_access({});
    co_await run(w, 5min);
    EXPECT_EQ(w.reported().registered.size(), 2U);
    EXPECT_EQ(w.value("codefresh-token", "token"), "canary-runtime-token-2");
  });
}

// As a control plane does that has lost its tokens for a while: no registration is possible either.
TEST(RuntimeRegistration, ATokenThatIsAcceptedAgainIsKept) {
  play([](Fixture& w) -> Task<> {
    co_await run(w, 30s);
    CO_ASSERT_EQ(w.reported().registered.size(), 1U);
    w.platform.fail_next(100'000, 401, 0s, "graphql");
    co_await run(w, 3min);
    w.platform.end_faults();
    co_await run(w, 3min);
    EXPECT_EQ(w.reported().registered.size(), 1U);
    EXPECT_EQ(w.value("codefresh-token", "token"), "canary-runtime-token-1");
    // The next refusals count from the beginning.
    w.platform.accounts().revoke("canary-runtime-token-1");
    co_await run(w, 5min);
    EXPECT_EQ(w.reported().registered.size(), 2U);
    EXPECT_EQ(w.value("codefresh-token", "token"), "canary-runtime-token-2");
  });
}

// As a balancer has it, or a tunnel, whose API server is away.
TEST(RuntimeRegistration, A404OfAnIntermediaryIsNoMissingSecret) {
  play([](Fixture& w) -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    CO_ASSERT_OK(co_await w.life->maintain_registration());
    http::Server balancer(executor, {.address = "127.0.0.1"},
                          [](http::Exchange& exchange) -> Task<> {
                            (void)co_await exchange.reply(test::page_not_found());
                          });
    EXPECT_TRUE(balancer.listen());
    auto config = w.cluster.cluster_config();
    config.server.port = balancer.port();
    k8s::Client behind(executor, w.resolver, std::move(config), {}, "test");
    w.start_process(executor, &behind);
    EXPECT_FALSE(co_await w.life->maintain_registration());
    EXPECT_EQ(w.reported().registered.size(), 1U);
    w.start_process(executor);
    CO_ASSERT_OK(co_await w.life->maintain_registration());
    EXPECT_EQ(w.reported().registered.size(), 1U);
    co_await balancer.stop(Clock::now());
  });
}

TEST(RuntimeRegistration, MakesOneArgoCdTokenWhileItCannotBeStored) {
  play([](Fixture& w) -> Task<> {
    CO_ASSERT_OK(co_await w.life->maintain_registration());
    w.refuse_secrets();
    co_await run(w, 5min);
    EXPECT_GT(w.cluster.count("POST", "/secrets"), 10U);
    EXPECT_EQ(w.argocd.made, 1);
    w.cluster.set_access({});
    co_await run(w, 5min);
    EXPECT_EQ(w.argocd.made, 1);
    EXPECT_EQ(w.value("argocd-token", "token"), "argocd-1");
  });
}

TEST(RuntimeRegistration, MakesAnotherArgoCdTokenWhenTheKeptOneWasRefused) {
  play([](Fixture& w) -> Task<> {
    CO_ASSERT_OK(co_await w.life->maintain_registration());
    w.refuse_secrets();
    co_await run(w, 1min);
    CO_ASSERT_EQ(w.argocd.made, 1);
    w.argocd.tokens.clear();
    w.cluster.set_access({});
    co_await run(w, 5min);
    EXPECT_EQ(w.argocd.made, 2);
    EXPECT_EQ(w.value("argocd-token", "token"), "argocd-2");
  });
}

// What a former leader, or this process before a restart, has told is not known.
TEST(RuntimeRegistration, TheFirstReportOfAProcessClearsWhatWasToldBefore) {
  play([](Fixture& w) -> Task<> {
    w.facts.git_error = "no host";
    co_await run(w, 10s);
    EXPECT_THAT(w.errors(), ElementsAre(ElementsAre("defaultGitIntegration: no host")));
    w.start_process(co_await asio::this_coro::executor);
    w.facts.git_error.clear();
    co_await run(w, 10s);
    EXPECT_THAT(w.errors(), ElementsAre(ElementsAre("defaultGitIntegration: no host"), IsEmpty()));
  });
}

TEST(RuntimeRegistration, EachLeaderTellsItsErrorsOnce) {
  play([](Fixture& w) -> Task<> {
    w.facts.git_error = "no host";
    TaskGroup group(co_await asio::this_coro::executor);
    w.life->start(group);
    co_await sleep_for(10min);
    EXPECT_THAT(w.errors(), ElementsAre(ElementsAre("defaultGitIntegration: no host")));
    EXPECT_GE(w.reported().statuses.size(), 10U) << "the status is told each minute";
    w.leadership.set(false);
    co_await sleep_for(10min);
    EXPECT_EQ(w.errors().size(), 1U);
    w.leadership.set(true);
    co_await sleep_for(6s);
    EXPECT_EQ(w.errors().size(), 2U);
    EXPECT_EQ(w.errors().back(), w.errors().front());
    co_await sleep_for(10min);
    EXPECT_EQ(w.errors().size(), 2U);
    w.facts.git_error.clear();
    co_await sleep_for(10s);
    EXPECT_EQ(w.errors().size(), 3U);
    EXPECT_THAT(w.errors().back(), IsEmpty());
    group.cancel();
    co_await group.join();
  });
}

// A list that would change in a moment is not told, so that people do not see it come and go.
TEST(RuntimeRegistration, TheFirstErrorsWaitForTheFirstLooks) {
  play([](Fixture& w) -> Task<> {
    w.facts.groups = {{.name = "components", .unknown = "not read yet", .is_pending = true}};
    TaskGroup group(co_await asio::this_coro::executor);
    w.life->start(group);
    co_await sleep_for(11s);
    EXPECT_GE(w.reported().statuses.size(), 1U);
    EXPECT_THAT(w.errors(), IsEmpty());
    w.facts.groups = {{.name = "components", .errors = {"web: ErrImagePull"}}};
    co_await sleep_for(6s);
    EXPECT_THAT(w.errors(), ElementsAre(ElementsAre("components: web: ErrImagePull")));
    // They do not wait for ever.
    w.facts.groups = {{.name = "components", .unknown = "not read yet", .is_pending = true}};
    w.leadership.set(false);
    co_await sleep_for(1s);
    w.leadership.set(true);
    co_await sleep_for(15s);
    EXPECT_EQ(w.errors().size(), 1U);
    co_await sleep_for(15s);
    EXPECT_EQ(w.errors().size(), 2U);
    EXPECT_THAT(w.errors().back(), IsEmpty());
    group.cancel();
    co_await group.join();
  });
}

TEST(RuntimeRegistration, KeepsTheSecretByWhichArgoCdReadsGitSources) {
  play([](Fixture& w) -> Task<> {
    const char* const name = "runtime-repo-creds-secret";
    w.set_git_token("1");
    TaskGroup group(co_await asio::this_coro::executor);
    w.life->start(group);
    co_await sleep_for(10s);
    EXPECT_EQ(w.value(name, "url"), "https://git.example.test/");
    EXPECT_EQ(w.value(name, "username"), "robot");
    EXPECT_EQ(w.value(name, "password"), "1");
    EXPECT_EQ(w.value(name, "type"), "git");
    const auto written = [&] { return w.cluster.count("PUT", name); };
    co_await sleep_for(10min);
    EXPECT_EQ(written(), 0U);
    // The token was rotated.
    w.set_git_token("2");
    co_await sleep_for(10s);
    EXPECT_EQ(w.value(name, "password"), "2");
    EXPECT_EQ(written(), 1U);
    w.cluster.remove(k8s::resources::kSecrets, {"default", name});
    co_await sleep_for(10s);
    EXPECT_EQ(w.value(name, "password"), "2");
    // Another replica leads.
    w.leadership.set(false);
    co_await sleep_for(1s);
    w.cluster.remove(k8s::resources::kSecrets, {"default", name});
    co_await sleep_for(1min);
    EXPECT_EQ(w.value(name, "password"), "");
    // One that others have made stays.
    w.cluster.put_secret({"default", name}, {{"password", "theirs"}});
    w.leadership.set(true);
    co_await sleep_for(1min);
    EXPECT_EQ(w.value(name, "password"), "theirs");
    const test::StatusPage status(w.life->status());
    EXPECT_EQ(status.state("repo-creds"), "ok") << status;
    EXPECT_EQ(status.message("repo-creds"), "made by others");
    // Without a Git token nothing is written.
    w.set_git_token("");
    co_await sleep_for(1s);
    w.cluster.remove(k8s::resources::kSecrets, {"default", name});
    co_await sleep_for(1min);
    EXPECT_FALSE(w.cluster.find(k8s::resources::kSecrets, {"default", name}));
    group.cancel();
    co_await group.join();
  });
}

}  // namespace
}  // namespace gitops::app_proxy
