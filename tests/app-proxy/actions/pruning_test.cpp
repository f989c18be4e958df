// The wait for Argo CD after a Git source was removed from Git, and requests at the end of a
// session, in test time, with a scripted argocd-server.
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "app-proxy/actions/applications.hpp"
#include "app-proxy/actions/rollouts.hpp"
#include "app-proxy/actions/workflows.hpp"
#include "app-proxy/errors/client_codes.hpp"
#include "common/core/metrics.hpp"
#include "common/core/task_group.hpp"
#include "common/http/server.hpp"
#include "k8s-client/client.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"

namespace gitops::app_proxy {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Json = nlohmann::json;

struct Answer {
  int status = 200;
  std::string body = {};
};
Answer git_source() {
  return {.body = Json{{"metadata",
                        {{"name", "shop"}, {"labels", {{"codefresh.io/entity", "git-source"}}}}}}
                      .dump()};
}
const Answer kDenied{403, R"({"code":7,"message":"permission denied"})"};

// argocd-server: `shop` answers a read of the Application of that name.
struct ArgoCd {
  explicit ArgoCd(const Executor& executor)
      : server(executor, {},
               [this](http::Exchange& exchange) -> Task<> {
                 const auto answer = answer_to(exchange.path());
                 (void)co_await exchange.reply({.status = answer.status,
                                                .headers = {{"Content-Type", "application/json"}},
                                                .body = answer.body});
               }),
        client(executor, resolver, {}) {
    EXPECT_TRUE(server.listen());
    here = {.scheme = "http", .host = "127.0.0.1", .port = server.port()};
    argocd.emplace(client, argo::ArgoCdClient::Options{.server = here},
                   [] { return Secret("token"); });
    // Nobody's right is checked here.
    control_plane.emplace(client, here, [] { return Secret(); });
    rules.emplace(
        executor, *control_plane, [] { return std::string(); }, metrics,
        Rules::Options{.refresh = 60s, .max_age = 900s});
    actions.emplace(*argocd, token, *rules, "prod");
  }
  Answer answer_to(std::string_view path) {
    if (path.contains("/can-i/")) {
      ++permissions_asked;
      return {.body = sees_all ? R"({"value":"yes"})" : R"({"value":"no"})"};
    }
    if (path.ends_with("/applications/shop")) return shop();
    ++parents_asked;
    return kDenied;
  }
  Task<Result<bool>> wait() {
    return actions->wait_until_pruned("shop", {{.name = "prod", .ns = "argocd"}},
                                      deadline_after(25s));
  }
  Task<> stop() {
    client.close_idle();
    co_await server.stop(Clock::now());
  }

  std::function<Answer()> shop;
  bool sees_all = true;
  int permissions_asked = 0;
  int parents_asked = 0;
  http::Url here;
  http::Server server;
  Metrics metrics;
  net::Resolver resolver{metrics};
  http::Client client;
  Credential token = Credential::fixed(Secret("token"));
  std::optional<argo::ArgoCdClient> argocd;
  std::optional<control_plane::GraphqlClient> control_plane;
  std::optional<Rules> rules;
  std::optional<ApplicationActions> actions;
};

void with_argocd(const std::function<Task<>(ArgoCd&)>& body) {
  test::run_in_test_time([&]() -> Task<> {
    ArgoCd argocd(co_await asio::this_coro::executor);
    co_await body(argocd);
    co_await argocd.stop();
  });
}

TEST(Pruning, EndsWhenTheApplicationIsMissing) {
  with_argocd([](ArgoCd& argocd) -> Task<> {
    int asked = 0;
    argocd.shop = [&asked] { return ++asked < 3 ? git_source() : kDenied; };
    const auto begun = Clock::now();
    const auto pruned = co_await argocd.wait();
    EXPECT_TRUE(pruned && *pruned);
    EXPECT_EQ(asked, 3);
    EXPECT_EQ(argocd.parents_asked, 2);
    EXPECT_EQ(argocd.permissions_asked, 1);
    EXPECT_LT(Clock::now() - begun, 2s);
    // As a request that names the project is answered.
    argocd.sees_all = false;
    argocd.shop = [] { return Answer{404, R"({"code":5,"message":"not found"})"}; };
    const auto absent = co_await argocd.wait();
    EXPECT_TRUE(absent && !*absent) << "it was not there";
  });
}

// 403 may mean as well that the account lacks the right.
TEST(Pruning, AnAccountThatDoesNotSeeAllApplicationsKnowsNothing) {
  with_argocd([](ArgoCd& argocd) -> Task<> {
    argocd.sees_all = false;
    argocd.shop = [] { return kDenied; };
    const auto begun = Clock::now();
    const auto done = co_await argocd.wait();
    CO_ASSERT_TRUE(!done);
    EXPECT_EQ(done.error().subcode, "STILL_PRUNING");
    EXPECT_THAT(done.error().message, HasSubstr("needs the right to get all applications"));
    EXPECT_GT(Clock::now() - begun, 24s);
    // The right is given: the next call ends.
    argocd.sees_all = true;
    EXPECT_TRUE(co_await argocd.wait());
  });
}

TEST(Pruning, AnAnswerThatIsNoApplicationIsNoEnd) {
  with_argocd([](ArgoCd& argocd) -> Task<> {
    for (const Answer& answer :
         {Answer{200, "<html>"}, Answer{200, "{}"}, Answer{200, "[]"}, Answer{503, "{}"},
          Answer{404, "default backend - 404"}, Answer{403, "RBAC: access denied"}}) {
      argocd.shop = [&answer] { return answer; };
      const auto done = co_await argocd.wait();
      CO_ASSERT_TRUE(!done) << answer.body;
      EXPECT_EQ(done.error().subcode, "STILL_PRUNING");
      EXPECT_THAT(done.error().message, HasSubstr("does not tell")) << answer.body;
    }
    argocd.shop = [] { return git_source(); };
    const auto done = co_await argocd.wait();
    CO_ASSERT_TRUE(!done);
    EXPECT_THAT(done.error().message, HasSubstr("has not pruned it yet"));
    // Another Application of that name is nobody's to wait for.
    argocd.shop = [] { return Answer{200, R"({"metadata":{"name":"shop"}})"}; };
    EXPECT_TRUE(co_await argocd.wait());
  });
}

// Something in between answers 200 with JSON of its own.
TEST(ApplicationActions, AnAnswerWithoutANameIsNoApplication) {
  test::run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    bool is_read_good = true;
    http::Server server(executor, {}, [&](http::Exchange& exchange) -> Task<> {
      const bool is_good = is_read_good && exchange.request().method == "GET" &&
                           !exchange.query().contains("refresh");
      (void)co_await exchange.reply({.status = 200,
                                     .headers = {{"Content-Type", "application/json"}},
                                     .body = is_good ? R"({"metadata":{"name":"shop"}})" : "{}"});
    });
    EXPECT_TRUE(server.listen());
    const http::Url here{.scheme = "http", .host = "127.0.0.1", .port = server.port()};
    Metrics metrics;
    net::Resolver resolver(metrics);
    http::Client client(executor, resolver, {});
    argo::ArgoCdClient argocd(client, argo::ArgoCdClient::Options{.server = here},
                              [] { return Secret(); });
    control_plane::GraphqlClient platform(client, here, [] { return Secret(); });
    const Rules rules(
        executor, platform, [] { return std::string(); }, metrics,
        Rules::Options{.refresh = 60s, .max_age = 900s});
    auto token = Credential::fixed({});
    ApplicationActions actions(argocd, token, rules, "prod");
    const User ann{.id = "u-ann", .name = "Ann", .is_admin = true};
    const argo::AppRef shop{.name = "shop", .ns = "argocd"};
    const auto synced = co_await actions.sync(ann, shop, "", deadline_after(20s));
    EXPECT_FALSE(synced);
    if (!synced) EXPECT_THAT(synced.error().message, HasSubstr("look at it before you repeat"));
    const auto rolled =
        co_await actions.rollback(ann, shop, {.history_id = 1}, deadline_after(20s));
    EXPECT_FALSE(rolled);
    if (!rolled) EXPECT_THAT(rolled.error().message, HasSubstr("look at it before you repeat"));
    EXPECT_FALSE(co_await actions.refresh(ann, shop, argo::Refresh::hard, deadline_after(20s)));
    const auto patched =
        co_await actions.patch_resource(ann, shop, {.kind = "Pod", .ns = "web", .name = "ui-1"},
                                        "application/merge-patch+json", "{}", deadline_after(20s));
    EXPECT_FALSE(patched);
    if (!patched) EXPECT_THAT(patched.error().message, HasSubstr("look at it before you repeat"));
    // Rules would be checked for an application of no cluster and no namespace.
    is_read_good = false;
    const auto seen = co_await actions.permitted(ann, Action::view, shop, deadline_after(20s));
    EXPECT_FALSE(seen);
    if (!seen) EXPECT_EQ(seen.error().code, ErrorCode::unavailable);
    client.close_idle();
    co_await server.stop(Clock::now());
  });
}

// argocd-server with sessions, of which `good` is open. Requests for the Application "late" wait
// for their answer until they are released.
struct Sessions {
  explicit Sessions(const Executor& executor)
      : released(executor),
        server(executor, {}, [this](http::Exchange& exchange) { return serve(exchange); }),
        client(executor, resolver, {}),
        tasks(executor) {
    EXPECT_TRUE(server.listen());
    const http::Url here{.scheme = "http", .host = "127.0.0.1", .port = server.port()};
    argocd.emplace(client, argo::ArgoCdClient::Options{.server = here},
                   [this] { return token.current(); });
    control_plane.emplace(client, here, [] { return Secret(); });
    rules.emplace(
        executor, *control_plane, [] { return std::string(); }, metrics,
        Rules::Options{.refresh = 60s, .max_age = 900s});
    actions.emplace(*argocd, token, *rules, "prod");
    token.start(tasks);
  }
  Task<> serve(http::Exchange& exchange) {
    const std::string sent(exchange.request().headers.find("Authorization").value_or(""));
    if (exchange.path().ends_with("/late")) {
      ++late;
      while (is_held) (void)co_await released.wait();
    }
    const bool is_open = sent == "Bearer " + good;
    (void)co_await exchange.reply({.status = is_open ? 200 : 401,
                                   .headers = {{"Content-Type", "application/json"}},
                                   .body = is_open ? R"({"metadata":{"name":"shop"}})"
                                                   : R"({"code":16,"message":"token expired"})"});
  }
  Task<bool> read(std::string app) {
    const auto found = co_await actions->permitted(
        ann, Action::view, {.name = std::move(app), .ns = "argocd"}, deadline_after(20s));
    co_return found.has_value();
  }
  Task<> stop() {
    tasks.cancel();
    co_await tasks.join();
    client.close_idle();
    co_await server.stop(Clock::now());
  }

  const User ann{.id = "u-ann", .name = "Ann", .is_admin = true};
  std::string good = "canary-1";
  int logins = 0;
  int late = 0;
  bool is_held = true;
  Event released;
  http::Server server;
  Metrics metrics;
  net::Resolver resolver{metrics};
  http::Client client;
  TaskGroup tasks;
  Credential token = Credential::fetched(
      [this]() -> Task<Result<Secret>> {
        co_await sleep_for(10ms);
        co_return Secret("canary-" + std::to_string(++logins));
      },
      {.task = "login", .not_yet = "not logged in yet"});
  std::optional<argo::ArgoCdClient> argocd;
  std::optional<control_plane::GraphqlClient> control_plane;
  std::optional<Rules> rules;
  std::optional<ApplicationActions> actions;
};

// One of them is refused after the login for the other has ended.
TEST(Sessions, EveryRequestAtTheEndOfASessionIsRepeatedInTheNextOne) {
  test::run_in_test_time([]() -> Task<> {
    Sessions sessions(co_await asio::this_coro::executor);
    EXPECT_TRUE(co_await test::eventually([&] { return sessions.logins == 1; }, "the login"));
    EXPECT_TRUE(co_await sessions.read("shop"));
    bool is_read = false;
    TaskGroup users(co_await asio::this_coro::executor);
    users.spawn("late", [&]() -> Task<> { is_read = co_await sessions.read("late"); });
    EXPECT_TRUE(co_await test::eventually([&] { return sessions.late == 1; }, "the late request"));
    sessions.good = "canary-2";
    EXPECT_TRUE(co_await sessions.read("shop"));
    EXPECT_EQ(sessions.logins, 2);
    co_await sleep_for(5s);  // a refusal leads to another login now
    sessions.is_held = false;
    sessions.released.notify_all();
    co_await users.join();
    EXPECT_TRUE(is_read);
    EXPECT_EQ(sessions.logins, 2);
    co_await sessions.stop();
  });
}

// Something in between answers 200 with JSON of its own.
TEST(WorkflowActions, AnAnswerWithoutANameIsNoWorkflow) {
  test::run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    bool is_read_good = true;
    http::Server server(executor, {}, [&](http::Exchange& exchange) -> Task<> {
      const bool is_read = is_read_good && exchange.request().method == "GET";
      (void)co_await exchange.reply(
          {.status = 200,
           .headers = {{"Content-Type", "application/json"}},
           .body = is_read ? R"({"metadata":{"name":"build","namespace":"ci"}})" : "{}"});
    });
    EXPECT_TRUE(server.listen());
    const http::Url here{.scheme = "http", .host = "127.0.0.1", .port = server.port()};
    Metrics metrics;
    net::Resolver resolver(metrics);
    http::Client client(executor, resolver, {});
    argo::WorkflowsClient workflows(client, argo::WorkflowsClient::Options{.server = here},
                                    [] { return Secret(); });
    control_plane::GraphqlClient platform(client, here, [] { return Secret(); });
    const Rules rules(
        executor, platform, [] { return std::string(); }, metrics,
        Rules::Options{.refresh = 60s, .max_age = 900s});
    auto token = Credential::fixed({});
    WorkflowActions actions(workflows, token, rules, "prod");
    const User ann{.id = "u-ann", .name = "Ann", .is_admin = true};
    const auto made = co_await actions.submit(ann, "ci", "build", "", deadline_after(20s));
    CO_ASSERT_TRUE(!made);
    EXPECT_THAT(made.error().message, HasSubstr("look at the Workflows"));
    const auto again =
        co_await actions.act(ann, WorkflowAction::resubmit, "ci", "build", "", deadline_after(20s));
    CO_ASSERT_TRUE(!again);
    EXPECT_THAT(again.error().message, HasSubstr("look at the Workflows"));
    // Rules would be checked for an object of no namespace, and a Workflow be told as deleted.
    is_read_good = false;
    const auto removed =
        co_await actions.act(ann, WorkflowAction::remove, "ci", "build", "", deadline_after(20s));
    CO_ASSERT_TRUE(!removed);
    EXPECT_EQ(removed.error().code, ErrorCode::unavailable);
    const auto unread = co_await actions.submit(ann, "ci", "build", "", deadline_after(20s));
    CO_ASSERT_TRUE(!unread);
    EXPECT_EQ(unread.error().code, ErrorCode::unavailable);
    EXPECT_THAT(unread.error().message, HasSubstr("cannot be asked now"));
    client.close_idle();
    co_await server.stop(Clock::now());
  });
}

// As a balancer has it whose API server is away.
TEST(RolloutActions, A404OfAnIntermediaryIsNoMissingInstallation) {
  test::run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    http::Server balancer(
        executor, {.address = "127.0.0.1"}, [](http::Exchange& exchange) -> Task<> {
          (void)co_await exchange.reply({.status = 404,
                                         .headers = {{"Content-Type", "text/plain"}},
                                         .body = "default backend - 404"});
        });
    EXPECT_TRUE(balancer.listen());
    Metrics metrics;
    net::Resolver resolver(metrics);
    k8s::ClusterConfig config;
    config.server = {.scheme = "http", .host = "127.0.0.1", .port = balancer.port()};
    k8s::Client cluster(executor, resolver, std::move(config), {}, "test");
    RolloutActions actions(cluster, nullptr);
    const User ann{.id = "ann", .is_admin = true};
    const auto done = co_await actions.act(
        ann, RolloutAction::pause, {.ns = "shop", .name = "web", .app = {}}, deadline_after(20s));
    CO_ASSERT_TRUE(!done);
    EXPECT_EQ(done.error().subcode, action_errors::kNotAvailable) << done.error().message;
    co_await balancer.stop(Clock::now());
  });
}

}  // namespace
}  // namespace gitops::app_proxy
