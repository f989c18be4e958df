// Streams that are opened for users, in test time: rules, an API server and scripted servers of Argo.
#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "app-proxy/logs/log_streams.hpp"
#include "app-proxy/users_fixture.hpp"
#include "common/core/task_group.hpp"
#include "common/http/server.hpp"
#include "doubles/fake_kube_api.hpp"
#include "support/wait.hpp"

namespace gitops::app_proxy {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::UnorderedElementsAre;
using Json = nlohmann::json;
using Kind = LogEvent::Kind;
const k8s::Resource kEvents{"", "v1", "events", "Event"};

// Bob may VIEW what lies in "argocd" and "web". The Application "shop" and the Workflow "w" have the pod "ui-1".
struct Fixture {
  explicit Fixture(UsersFixture& on, LogStreams::Options options)
      : users(on),
        cluster(on.executor),
        server(on.executor, {}, [this](http::Exchange& exchange) { return serve(exchange); }),
        released(on.executor),
        rules(on.executor, on.control_plane, [] { return std::string("a1"); }, on.metrics,
              {.refresh = 60s, .max_age = 900s}) {
    EXPECT_TRUE(server.listen());
    EXPECT_TRUE(cluster.start());
    cluster.add_type(kEvents);
    put_pod("web", "ui-1", {{"workflows.argoproj.io/workflow", "w"}});
    const http::Url here{.scheme = "http", .host = "127.0.0.1", .port = server.port()};
    const auto token_now = [] { return Secret("token"); };
    argocd.emplace(on.http, argo::ArgoCdClient::Options{.server = here}, token_now);
    workflows_client.emplace(on.http, argo::WorkflowsClient::Options{.server = here}, token_now);
    applications.emplace(*argocd, token, rules, "prod");
    workflows.emplace(*workflows_client, token, rules, "prod");
    client.emplace(on.executor, on.resolver, cluster.cluster_config(), http::ProxySettings{},
                   "test");
    streams.emplace(on.executor, &*applications, &*workflows, &*client, std::move(options));
    on.platform.accounts().set_team("t1", {"u-bob"});
  }
  Task<> stop() {
    co_await streams->stop();
    users.http.close_idle();
    client.reset();
    co_await server.stop(Clock::now());
    co_await rules.stop();
    co_await cluster.stop();
  }

  Task<> allow(std::vector<std::string> actions) {
    Json all = Json::array();
    for (const auto& [type, ns] :
         {std::pair("gitopsApplications", "argocd"), {"workflows", "web"}}) {
      all.push_back({{"id", type},
                     {"accountId", "a1"},
                     {"entityType", type},
                     {"teams", {"t1"}},
                     {"actions", actions},
                     {"attributes", {{{"name", "NAMESPACE"}, {"value", ns}}}}});
    }
    users.platform.accounts().set_rules(std::move(all));
    EXPECT_TRUE(co_await rules.refresh());
  }
  void put_pod(const std::string& ns, const std::string& name, Json labels = Json::object()) {
    Json pod{{"apiVersion", "v1"},
             {"kind", "Pod"},
             {"metadata", {{"name", name}, {"namespace", ns}, {"labels", std::move(labels)}}},
             {"spec", {{"containers", {{{"name", "main"}}}}}}};
    if (ns == "runtime") {
      pod["metadata"]["ownerReferences"] =
          Json::array({{{"kind", "StatefulSet"}, {"name", "reporter"}, {"controller", true}}});
    }
    cluster.put(k8s::resources::kPods, std::move(pod));
  }
  void put_event(const std::string& name) {
    cluster.put(kEvents, {{"apiVersion", "v1"},
                          {"kind", "Event"},
                          {"metadata", {{"name", name}, {"namespace", "web"}}},
                          {"involvedObject", {{"kind", "Pod"}, {"name", "ui-1"}}},
                          {"message", name}});
  }

  Task<> serve(http::Exchange& exchange) {
    const std::string path(exchange.path());
    ++asked;
    while (!is_released) co_await released.wait();
    if (path.ends_with("/log")) {
      log_query = exchange.query();
      const std::string time = log_query.contains("timestamps=true") ? "2026-03-04T09:15:2" : "";
      (void)co_await exchange.start({.status = 200});
      for (const char* content : {"7Z one", "8Z two"}) {
        const Json line{
            {"result",
             {{"content", time.empty() ? content + 3 : time + content}, {"podName", "w-1"}}}};
        (void)co_await exchange.write(line.dump() + "\n");
      }
      (void)co_await exchange.finish();
      co_return;
    }
    if (path.ends_with("/logs")) {
      (void)co_await exchange.start({.status = 200});
      (void)co_await exchange.finish();
      co_return;
    }
    Json answer{{"metadata", {{"name", "shop"}, {"namespace", "argocd"}}},
                {"spec", {{"destination", {{"server", "https://kubernetes.default.svc"}}}}}};
    if (path.contains("/workflows/")) answer["metadata"] = {{"name", "w"}, {"namespace", "web"}};
    if (path.ends_with("/resource-tree")) {
      answer = {{"nodes", {{{"kind", "Pod"}, {"namespace", "web"}, {"name", "ui-1"}}}}};
    }
    (void)co_await exchange.reply(
        {.status = 200, .headers = {{"Content-Type", "application/json"}}, .body = answer.dump()});
  }

  UsersFixture& users;
  test::FakeKubeApi cluster;
  http::Server server;
  Event released;
  bool is_released = true;
  std::size_t asked = 0;  // the servers of Argo
  std::string log_query;  // of the last log of a workflow
  Rules rules;
  Credential token = Credential::fixed(Secret("token"));
  std::optional<argo::ArgoCdClient> argocd;
  std::optional<argo::WorkflowsClient> workflows_client;
  std::optional<ApplicationActions> applications;
  std::optional<WorkflowActions> workflows;
  std::optional<k8s::Client> client;
  std::optional<LogStreams> streams;
  const Caller bob{
      .user = std::make_shared<User>(User{.id = "u-bob", .name = "Bob", .account_id = "a1"})};
  const Caller ann{.user = std::make_shared<User>(
                       User{.id = "u-ann", .name = "Ann", .account_id = "a1", .is_admin = true})};
};

void with_streams(LogStreams::Options options, const std::function<Task<>(Fixture&)>& body) {
  with_users_fixture([&](UsersFixture& on) -> Task<> {
    Fixture fixture(on, std::move(options));
    co_await body(fixture);
    co_await fixture.stop();
  });
}

Task<std::vector<std::string>> rest(LogFeed& feed) {
  std::vector<std::string> all;
  while (true) {
    const auto event = co_await feed.next();
    if (event.kind == Kind::end) co_return all;
    all.push_back(event.kind == Kind::line ? event.line.pod + ": " + event.line.content
                                           : "error " + event.error);
  }
}

// The watch itself lasts an hour.
TEST(OpenStreams, ARuleThatIsWithdrawnEndsTheEventsOfAPod) {
  with_streams({}, [](Fixture& fixture) -> Task<> {
    for (const auto& owner : {LogStreams::EventsOwner{.app = {.name = "shop", .ns = "argocd"}},
                              LogStreams::EventsOwner{.workflow = "w"}}) {
      co_await fixture.allow({"VIEW"});
      fixture.put_event("first");
      auto opened = co_await fixture.streams->events(
          fixture.bob, owner, {.kind = "Pod", .ns = "web", .name = "ui-1"}, deadline_after(10s));
      CO_ASSERT_OK(opened);
      auto& feed = **opened;
      EXPECT_EQ((co_await feed.next()).line.content, "first");
      while (feed.has_more()) (void)co_await feed.next();
      co_await sleep_for(31s);
      fixture.put_event("second");
      EXPECT_EQ((co_await feed.next()).line.content, "second") << "the right is still there";
      co_await fixture.allow({"SYNC"});
      co_await sleep_for(31s);
      fixture.put_event("third");
      EXPECT_THAT(co_await rest(feed), ElementsAre("error Forbidden"));
      for (const char* name : {"first", "second", "third"}) {
        fixture.cluster.remove(kEvents, {"web", name});
      }
    }
  });
}

TEST(OpenStreams, EventsAreThoseOfAnObjectOfTheApplication) {
  with_streams({}, [](Fixture& fixture) -> Task<> {
    co_await fixture.allow({"VIEW"});
    const LogStreams::EventsOwner shop{.app = {.name = "shop", .ns = "argocd"}};
    const auto refused = [&](argo::ResourceRef of) -> Task<ErrorCode> {
      const auto opened =
          co_await fixture.streams->events(fixture.bob, shop, std::move(of), deadline_after(10s));
      co_return opened ? ErrorCode::internal : opened.error().code;
    };
    EXPECT_EQ(co_await refused({.kind = "Deployment", .ns = "web", .name = "ui-1"}),
              ErrorCode::forbidden);
    EXPECT_EQ(co_await refused({.group = "x", .kind = "Pod", .ns = "web", .name = "ui-1"}),
              ErrorCode::forbidden);
    // A kind that would change the question to the API server.
    EXPECT_EQ(co_await refused({.kind = "Pod,type=Warning", .ns = "web", .name = "ui-1"}),
              ErrorCode::invalid_argument);
  });
}

TEST(OpenStreams, APodThatCannotBeReadNowMayBeOneOfTheWorkflow) {
  with_streams({}, [](Fixture& fixture) -> Task<> {
    co_await fixture.allow({"VIEW"});
    const auto refusal = [&]() -> Task<ErrorCode> {
      const auto opened = co_await fixture.streams->events(
          fixture.bob, LogStreams::EventsOwner{.workflow = "w"},
          {.kind = "Pod", .ns = "web", .name = "ui-1"}, deadline_after(10s));
      co_return opened ? ErrorCode::internal : opened.error().code;
    };
    fixture.cluster.fail_next(1'000, 503, {}, "/pods/ui-1");
    EXPECT_EQ(co_await refusal(), ErrorCode::unavailable);
    fixture.cluster.end_faults();
    fixture.cluster.remove(k8s::resources::kPods, {"web", "ui-1"});
    EXPECT_EQ(co_await refusal(), ErrorCode::forbidden);
    fixture.cluster.remove_type(k8s::resources::kPods);
    EXPECT_EQ(co_await refusal(), ErrorCode::unavailable) << "a 404 without a reason";
  });
}

TEST(OpenStreams, TheReaderIsToldWhichContainersOfAComponentCannotBeRead) {
  with_streams({.own_namespace = "runtime"}, [](Fixture& fixture) -> Task<> {
    fixture.cluster.append_pod_log("2026-03-04T09:15:27Z a line\n");
    for (const char* pod : {"reporter-0", "reporter-1"}) fixture.put_pod("runtime", pod);
    const auto refuse = [&](std::string pods) {
      fixture.cluster.set_access([pods](const test::FakeKubeApi::Access& access) {
        return access.subresource != "log" || !pods.contains(access.name);
      });
    };
    const auto read = [&](std::string pod = {}) -> Task<Result<std::vector<std::string>>> {
      auto opened = co_await fixture.streams->component(
          fixture.ann, "reporter", {.pod = std::move(pod), .tail_lines = 1}, deadline_after(10s));
      if (!opened) co_return std::unexpected(opened.error());
      co_return co_await rest(**opened);
    };
    const std::string first =
        "error reporter-0/main: the API server does not let the runtime do this; see the log of "
        "the runtime";
    refuse("reporter-0");
    const auto one = co_await read();
    CO_ASSERT_OK(one);
    EXPECT_THAT(*one, UnorderedElementsAre(first, "reporter-1: a line"));
    refuse("reporter-0 reporter-1");
    const auto none = co_await read();
    CO_ASSERT_OK(none);
    EXPECT_THAT(*none, ElementsAre(first, testing::StartsWith("error reporter-1/main: ")));
    // Nothing else was asked for: the error itself.
    EXPECT_EQ((co_await read("reporter-1")).error().subcode, "ARGO_NOT_AVAILABLE");
  });
}

TEST(OpenStreams, TheLogOfAComponentBeforeItsRestartIsAskedFor) {
  with_streams({.own_namespace = "runtime"}, [](Fixture& fixture) -> Task<> {
    fixture.put_pod("runtime", "reporter-0");
    for (const bool previous : {false, true}) {
      auto opened = co_await fixture.streams->component(
          fixture.ann, "reporter", {.previous = previous}, deadline_after(10s));
      CO_ASSERT_OK(opened);
      (void)co_await rest(**opened);
      EXPECT_EQ(fixture.cluster.count("GET", "previous=true"), previous ? 1U : 0U);
    }
  });
}

// argo-server has no such limit, and tells the times of lines only when it is asked to.
TEST(OpenStreams, TheLogOfAWorkflowEndsAtTheTimeThatIsWanted) {
  with_streams({}, [](Fixture& fixture) -> Task<> {
    const auto read = [&](std::string until) -> Task<std::vector<std::string>> {
      auto opened = co_await fixture.streams->workflow(
          fixture.ann, "web", "w", {.until_time = std::move(until)}, deadline_after(10s));
      EXPECT_TRUE(opened);
      if (!opened) co_return std::vector<std::string>();
      co_return co_await rest(**opened);
    };
    EXPECT_THAT(co_await read(""), ElementsAre("w-1: one", "w-1: two"));
    EXPECT_TRUE(fixture.log_query.contains("timestamps=false"));
    EXPECT_THAT(co_await read("2026-03-04T09:15:27Z"), ElementsAre("w-1: one"));
  });
}

TEST(OpenStreams, StreamsThatAreBeingOpenedCountAsOpen) {
  with_streams({.max_streams = 1}, [](Fixture& fixture) -> Task<> {
    fixture.is_released = false;
    const auto open = [&] {
      return fixture.streams->application(fixture.ann, {.name = "shop", .ns = "argocd"}, {}, {},
                                          deadline_after(10s));
    };
    std::vector<int> answers;
    TaskGroup readers(fixture.users.executor);
    for (int i = 0; i < 2; ++i) {
      readers.spawn("reader", [&]() -> Task<> {
        const auto opened = co_await open();
        answers.push_back(opened ? 200 : opened.error().http_status);
      });
    }
    // One waits for Argo CD; the other was refused.
    EXPECT_TRUE(co_await test::eventually([&] { return fixture.asked + answers.size() >= 2; },
                                          "both requests"));
    EXPECT_THAT(answers, ElementsAre(429));
    fixture.is_released = true;
    fixture.released.notify_all();
    co_await readers.join();
    EXPECT_THAT(answers, ElementsAre(429, 200));
    EXPECT_TRUE(co_await test::eventually([&] { return fixture.streams->open() == 0; },
                                          "the end of all streams"));
    // One that cannot be opened gives its place back.
    EXPECT_FALSE(co_await fixture.streams->component(fixture.ann, "none", {}, deadline_after(10s)));
    EXPECT_EQ(fixture.streams->open(), 0U);
    EXPECT_TRUE(co_await open());
  });
}

}  // namespace
}  // namespace gitops::app_proxy
