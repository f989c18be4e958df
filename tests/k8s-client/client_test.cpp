#include "k8s-client/client.hpp"

#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "common/core/task_group.hpp"
#include "support/process.hpp"
#include "support/run_coro.hpp"
#include "support/test_certs.hpp"
#include "support/wait.hpp"
#include "test_http/canned_server.hpp"
#include "test_http/responses.hpp"

namespace gitops::k8s {
namespace {

using namespace std::chrono_literals;
using test::CannedServer;
using test::json_ok;
using test::run_coro;
using test::soon;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A server with these answers, and a client.
class Fixture {
 public:
  Fixture(const Executor& executor, std::vector<http::Response> answers, ClusterConfig config = {},
          RetryPolicy retry = {})
      : server(executor, std::move(answers)),
        client(executor, resolver_, with_url(std::move(config)), {}, "gitops-test/1", retry) {}

  [[nodiscard]] const http::Request& request(std::size_t index = 0) const {
    return server.seen().at(index);
  }
  [[nodiscard]] std::string header(std::string_view name, std::size_t index = 0) const {
    return std::string(request(index).headers.find(name).value_or("(none)"));
  }

  CannedServer server;

 private:
  ClusterConfig with_url(ClusterConfig config) {
    const std::string path = config.server.path;
    config.server = server.url();
    config.server.path = path;
    return config;
  }

  Metrics metrics_;
  net::Resolver resolver_{metrics_};

 public:
  Client client;
};

using Answers = std::vector<http::Response>;

http::Response refusal(int status, const std::string& reason, const std::string& message,
                       const std::string& details = "{}") {
  const nlohmann::json json{{"kind", "Status"},
                            {"apiVersion", "v1"},
                            {"status", "Failure"},
                            {"code", status},
                            {"reason", reason},
                            {"message", message},
                            {"details", nlohmann::json::parse(details)}};
  return {.status = status, .headers = {}, .body = json.dump()};
}

// Runs `body` on a fixture and stops it.
void with_fixture(Answers answers, const std::function<Task<>(Fixture&)>& body,
                  ClusterConfig config = {}, RetryPolicy retry = {}) {
  run_coro([&]() -> Task<> {
    Fixture fixture(co_await asio::this_coro::executor, std::move(answers), std::move(config),
                    retry);
    co_await body(fixture);
    co_await fixture.server.stop();
  });
}

TEST(Client, GetsTheTextAsReceived) {
  with_fixture({json_ok("{ \"a\" : 1 }")}, [](Fixture& fixture) -> Task<> {
    const auto text = co_await fixture.client.get(resources::kDeployments, {"shop", "web"}, soon());
    CO_ASSERT_OK(text);
    EXPECT_EQ(*text, "{ \"a\" : 1 }");
    EXPECT_EQ(fixture.request().method, "GET");
    EXPECT_EQ(fixture.request().target, "/apis/apps/v1/namespaces/shop/deployments/web");
    EXPECT_EQ(fixture.header("Accept"), "application/json");
    EXPECT_EQ(fixture.header("User-Agent"), "gitops-test/1");
    EXPECT_EQ(fixture.header("Authorization"), "(none)");
    EXPECT_EQ(fixture.header("Content-Type"), "(none)");
  });
}

TEST(Client, KeepsThePathOfTheServerUrl) {
  ClusterConfig config;
  config.server.path = "/k8s/clusters/c-1/";
  with_fixture(
      {json_ok("{}")},
      [](Fixture& fixture) -> Task<> {
        CO_ASSERT_OK(co_await fixture.client.raw({.target = "/version"}, soon()));
        EXPECT_EQ(fixture.request().target, "/k8s/clusters/c-1/version");
      },
      config);
}

TEST(Client, ListsWithEncodedParameters) {
  with_fixture({json_ok("{}")}, [](Fixture& fixture) -> Task<> {
    CO_ASSERT_OK(co_await fixture.client.list(resources::kPods, "shop",
                                              {.label_selector = "app in (a,b),x=y&z",
                                               .field_selector = "spec.nodeName=n 1",
                                               .resource_version = "0",
                                               .limit = 50,
                                               .continue_token = ""},
                                              soon()));
    EXPECT_EQ(fixture.request().target,
              "/api/v1/namespaces/shop/pods?labelSelector=app%20in%20%28a%2Cb%29%2Cx%3Dy%26z"
              "&fieldSelector=spec.nodeName%3Dn%201&limit=50&resourceVersion=0");
  });
}

TEST(Client, ReadsEachPageOfAList) {
  with_fixture(
      {json_ok(R"({"metadata":{"continue":"a+/="},"items":[1]})"),
       json_ok(R"({"items":[2],"metadata":{"resourceVersion":"7"}})")},
      [](Fixture& fixture) -> Task<> {
        std::vector<std::string> pages;
        CO_ASSERT_OK(co_await fixture.client.list_pages(resources::kPods, "shop",
                                                        {.label_selector = "a=b", .limit = 1},
                                                        soon(), [&](std::string_view page) {
                                                          pages.emplace_back(page);
                                                          return Result<void>();
                                                        }));
        EXPECT_THAT(pages, testing::ElementsAre(HasSubstr("[1]"), HasSubstr("[2]")));
        EXPECT_EQ(fixture.request(1).target,
                  "/api/v1/namespaces/shop/pods?labelSelector=a%3Db&limit=1&continue=a%2B%2F%3D");
      });
}

TEST(Client, TakesNoUnreadablePageForTheEndOfAList) {
  for (const std::string page :
       {"{}", R"({"items":[1]})", R"({"metadata":{"continue":)", "[]", ""}) {
    with_fixture({json_ok(page)}, [&](Fixture& fixture) -> Task<> {
      const auto listed = co_await fixture.client.list_pages(
          resources::kPods, "shop", {}, soon(), [](std::string_view) { return Result<void>(); });
      CO_ASSERT_TRUE(!listed.has_value());
      EXPECT_EQ(listed.error().code, ErrorCode::invalid_data) << page;
    });
  }
}

TEST(Client, ReadsNoFurtherPageAfterAnErrorInOne) {
  with_fixture({json_ok(R"({"metadata":{"continue":"a"}})")}, [](Fixture& fixture) -> Task<> {
    const auto listed = co_await fixture.client.list_pages(
        resources::kPods, "shop", {}, soon(),
        [](std::string_view) { return fail(ErrorCode::internal, "full"); });
    CO_ASSERT_TRUE(!listed.has_value());
    EXPECT_EQ(listed.error().message, "full");
    EXPECT_EQ(fixture.server.seen().size(), 1U);
  });
}

TEST(Client, SendsNoVersionWithAContinueToken) {
  with_fixture({json_ok("{}")}, [](Fixture& fixture) -> Task<> {
    ListOptions options;
    options.resource_version = "0";
    options.continue_token = "a+/=";
    CO_ASSERT_OK(co_await fixture.client.list(resources::kPods, "", options, soon()));
    EXPECT_EQ(fixture.request().target, "/api/v1/pods?limit=500&continue=a%2B%2F%3D");
    options = {};
    options.limit = 0;
    CO_ASSERT_OK(co_await fixture.client.list(resources::kPods, "", options, soon()));
    EXPECT_EQ(fixture.request(1).target, "/api/v1/pods");
  });
}

TEST(Client, CreatesAndReplaces) {
  with_fixture({json_ok("{}")}, [](Fixture& fixture) -> Task<> {
    CO_ASSERT_OK(
        co_await fixture.client.create(resources::kConfigMaps, "shop", "{\"a\":1}", soon()));
    EXPECT_EQ(fixture.request().method, "POST");
    EXPECT_EQ(fixture.request().target, "/api/v1/namespaces/shop/configmaps");
    EXPECT_EQ(fixture.request().body, "{\"a\":1}");
    EXPECT_EQ(fixture.header("Content-Type"), "application/json");

    CO_ASSERT_OK(co_await fixture.client.update(resources::kDeployments, {"shop", "web"}, "{}",
                                                soon(), {.subresource = "status"}));
    EXPECT_EQ(fixture.request(1).method, "PUT");
    EXPECT_EQ(fixture.request(1).target, "/apis/apps/v1/namespaces/shop/deployments/web/status");
  });
}

TEST(Client, PatchesWithTheTypesOfKubernetes) {
  with_fixture({json_ok("{}")}, [](Fixture& fixture) -> Task<> {
    const ObjectKey key{"shop", "web"};
    const Resource& type = resources::kDeployments;
    CO_ASSERT_OK(co_await fixture.client.patch(type, key, PatchType::merge, "{}", soon()));
    EXPECT_EQ(fixture.request().method, "PATCH");
    EXPECT_EQ(fixture.header("Content-Type"), "application/merge-patch+json");
    CO_ASSERT_OK(co_await fixture.client.patch(type, key, PatchType::json, "[]", soon(),
                                               {.subresource = "status"}));
    EXPECT_EQ(fixture.header("Content-Type", 1), "application/json-patch+json");
    EXPECT_THAT(fixture.request(1).target, testing::EndsWith("/web/status"));
    CO_ASSERT_OK(co_await fixture.client.patch(type, key, PatchType::apply, "{}", soon(),
                                               {.field_manager = "me & co", .force = true}));
    EXPECT_EQ(fixture.header("Content-Type", 2), "application/apply-patch+yaml");
    EXPECT_THAT(fixture.request(2).target,
                testing::EndsWith("/web?fieldManager=me%20%26%20co&force=true"));
  });
}

TEST(Client, DeletesWithOptions) {
  with_fixture({json_ok("{}")}, [](Fixture& fixture) -> Task<> {
    CO_ASSERT_OK(co_await fixture.client.remove(resources::kPods, {"shop", "p"}, soon(),
                                                {.grace_period = 0s}));
    EXPECT_EQ(fixture.request().method, "DELETE");
    EXPECT_EQ(fixture.request().body, R"({"gracePeriodSeconds":0})");
  });
}

TEST(Client, SaysHowAChangeIsToBeMade) {
  with_fixture({json_ok("{}")}, [](Fixture& fixture) -> Task<> {
    const Resource& type = resources::kConfigMaps;
    const ObjectKey key{"shop", "a"};
    CO_ASSERT_OK(co_await fixture.client.create(type, "shop", "{}", soon(),
                                                {.field_manager = "me", .dry_run = true}));
    EXPECT_EQ(fixture.request().target,
              "/api/v1/namespaces/shop/configmaps?fieldManager=me&dryRun=All");
    CO_ASSERT_OK(co_await fixture.client.update(type, key, "{}", soon(), {.dry_run = true}));
    EXPECT_THAT(fixture.request(1).target, testing::EndsWith("/configmaps/a?dryRun=All"));
    CO_ASSERT_OK(co_await fixture.client.patch(type, key, PatchType::merge, "{}", soon(),
                                               {.dry_run = true}));
    EXPECT_THAT(fixture.request(2).target, testing::EndsWith("/configmaps/a?dryRun=All"));
    CO_ASSERT_OK(co_await fixture.client.remove(type, key, soon(),
                                                {.uid = "u",
                                                 .resource_version = "7",
                                                 .propagation = Propagation::foreground,
                                                 .dry_run = true}));
    EXPECT_EQ(nlohmann::json::parse(fixture.request(3).body),
              nlohmann::json::parse(R"({"preconditions":{"uid":"u","resourceVersion":"7"},
                                        "propagationPolicy":"Foreground","dryRun":["All"]})"));
  });
}

TEST(Client, DeletesCollectionsOfOneNamespace) {
  with_fixture({json_ok("{}")}, [](Fixture& fixture) -> Task<> {
    const Selectors selectors{.labels = "a=b", .fields = "metadata.name!=c"};
    CO_ASSERT_OK(co_await fixture.client.remove_all(resources::kPods, "shop", selectors, soon(),
                                                    {.propagation = Propagation::orphan}));
    EXPECT_EQ(fixture.request().method, "DELETE");
    EXPECT_EQ(
        fixture.request().target,
        "/api/v1/namespaces/shop/pods?labelSelector=a%3Db&fieldSelector=metadata.name%21%3Dc");
    EXPECT_EQ(fixture.request().body, R"({"propagationPolicy":"Orphan"})");
    const auto everywhere = co_await fixture.client.remove_all(resources::kPods, "", {}, soon());
    CO_ASSERT_TRUE(!everywhere);
    EXPECT_EQ(everywhere.error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(fixture.server.seen().size(), 1U);
  });
}

TEST(Client, APageIsNoAnswerOfAnApiServer) {
  const http::Headers html{{"Content-Type", "text/html"}};
  for (const int status : {200, 400, 403, 404, 410}) {
    with_fixture(
        {{.status = status, .headers = html, .body = "<html>log in</html>"}},
        [status](Fixture& fixture) -> Task<> {
          const auto object =
              co_await fixture.client.get(resources::kPods, {"shop", "web"}, soon());
          CO_ASSERT_TRUE(!object);
          EXPECT_EQ(object.error().code, ErrorCode::protocol) << status;
          EXPECT_THAT(object.error().message, HasSubstr("text/html instead of JSON"));
          EXPECT_FALSE(co_await fixture.client.watch(resources::kPods, "shop", {}, soon()));
          EXPECT_FALSE(co_await fixture.client.log({"shop", "web"}, {}, soon()));
        });
  }
  // Those ask for something, and mean it.
  for (const int status : {401, 429, 503}) {
    with_fixture({{.status = status, .headers = html, .body = "<html>"}},
                 [status](Fixture& fixture) -> Task<> {
                   const auto object =
                       co_await fixture.client.get(resources::kPods, {"shop", "web"}, soon());
                   EXPECT_EQ(object.error().code, error_code_of_status(status));
                 });
  }
}

TEST(Client, OnlyTheApiServerSaysThatAnObjectDoesNotExist) {
  with_fixture(
      {refusal(404, "NotFound", "pods \"web\" not found"),
       {.status = 404, .headers = {{"Content-Type", "text/plain"}}, .body = "404 page not found"}},
      [](Fixture& fixture) -> Task<> {
        for (const bool says : {true, false}) {
          const auto object =
              co_await fixture.client.get(resources::kPods, {"shop", "web"}, soon());
          CO_ASSERT_TRUE(!object);
          EXPECT_EQ(object.error().code, says ? ErrorCode::not_found : ErrorCode::unavailable);
          EXPECT_EQ(object.error().http_status, 404);
        }
      });
}

TEST(Client, ReadsLogs) {
  with_fixture({{.status = 200, .headers = {{"Content-Type", "text/plain"}}, .body = "one\ntwo\n"},
                refusal(400, "BadRequest", "a container name must be specified for pod web")},
               [](Fixture& fixture) -> Task<> {
                 auto log = co_await fixture.client.log({"shop", "web"},
                                                        {.container = "main",
                                                         .follow = true,
                                                         .previous = true,
                                                         .timestamps = true,
                                                         .since = 60s,
                                                         .tail_lines = 10,
                                                         .limit_bytes = 1000},
                                                        soon());
                 CO_ASSERT_OK(log);
                 EXPECT_EQ(fixture.request().target,
                           "/api/v1/namespaces/shop/pods/web/log?container=main&follow=true"
                           "&previous=true&timestamps=true&sinceSeconds=60&tailLines=10"
                           "&limitBytes=1000");
                 log->set_deadline(soon());
                 const auto text = co_await log->read_some();
                 CO_ASSERT_OK(text);
                 EXPECT_EQ(*text, "one\ntwo\n");
                 const auto end = co_await log->read_some();
                 CO_ASSERT_OK(end);
                 EXPECT_EQ(*end, "");

                 const auto refused = co_await fixture.client.log({"shop", "web"}, {}, soon());
                 CO_ASSERT_TRUE(!refused);
                 EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
                 EXPECT_THAT(refused.error().message, HasSubstr("a container name must be"));
                 EXPECT_FALSE(co_await fixture.client.log({"shop", ""}, {}, soon()));
                 EXPECT_FALSE(co_await fixture.client.log({"shop", "web"}, {.since = 0s}, soon()));
               });
}

TEST(Client, NeverSendsARequestThatWouldNameAnotherThing) {
  with_fixture({json_ok("{}")}, [](Fixture& fixture) -> Task<> {
    for (const ObjectKey& key : {ObjectKey{"shop", ""}, ObjectKey{"", "x"}, ObjectKey{"shop", ".."},
                                 ObjectKey{".", "x"}}) {
      const auto removed = co_await fixture.client.remove(resources::kPods, key, soon());
      CO_ASSERT_TRUE(!removed);
      EXPECT_EQ(removed.error().code, ErrorCode::invalid_argument);
      EXPECT_FALSE(co_await fixture.client.get(resources::kPods, key, soon()));
      EXPECT_FALSE(co_await fixture.client.update(resources::kPods, key, "{}", soon()));
      EXPECT_FALSE(
          co_await fixture.client.patch(resources::kPods, key, PatchType::merge, "{}", soon()));
    }
    EXPECT_FALSE(co_await fixture.client.create(resources::kPods, "", "{}", soon()));
    EXPECT_TRUE(fixture.server.seen().empty());
  });
}

TEST(Client, MakesOneClearLineOfAStatus) {
  with_fixture(
      {refusal(404, "NotFound", "pods \"web\" not found")}, [](Fixture& fixture) -> Task<> {
        const auto pod = co_await fixture.client.get(resources::kPods, {"shop", "web"}, soon());
        CO_ASSERT_TRUE(!pod);
        EXPECT_EQ(pod.error().code, ErrorCode::not_found);
        EXPECT_EQ(pod.error().http_status, 404);
        EXPECT_EQ(pod.error().reason, "NotFound");
        EXPECT_EQ(pod.error().message, "get pods shop/web at " +
                                           fixture.server.url().host_header() +
                                           ": 404 NotFound: pods \"web\" not found");
      });
}

TEST(Client, NamesTheHostItCouldNotReach) {
  run_coro([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    Metrics metrics;
    net::Resolver resolver(metrics);
    ClusterConfig config;
    {
      CannedServer gone(executor, {json_ok("")});
      config.server = gone.url();
      co_await gone.stop();
    }
    Client client(executor, resolver, config, {}, "x");
    const auto pods = co_await client.list(resources::kPods, "shop", {}, soon());
    CO_ASSERT_TRUE(!pods);
    EXPECT_EQ(pods.error().code, ErrorCode::unavailable);
    EXPECT_THAT(pods.error().message,
                AllOf(testing::StartsWith("list pods in shop: "),
                      HasSubstr("127.0.0.1:" + std::to_string(config.server.port))));
  });
}

TEST(Client, RefusesRedirects) {
  with_fixture({{.status = 301, .headers = {{"Location", "http://169.254.169.254/"}}, .body = ""}},
               [](Fixture& fixture) -> Task<> {
                 const auto pod = co_await fixture.client.get(resources::kPods, {"a", "b"}, soon());
                 CO_ASSERT_TRUE(!pod);
                 EXPECT_EQ(pod.error().code, ErrorCode::protocol);
                 EXPECT_EQ(fixture.server.seen().size(), 1U);
               });
}

TEST(Client, AC28_LeavesOutWhatTheServerSaysOfSecrets) {
  with_fixture({refusal(422, "Invalid", "data[token]: Invalid value: \"CANARY\"")},
               [](Fixture& fixture) -> Task<> {
                 const auto patched = co_await fixture.client.patch(
                     resources::kSecrets, {"shop", "s"}, PatchType::merge, "{}", soon());
                 CO_ASSERT_TRUE(!patched);
                 EXPECT_THAT(patched.error().message,
                             AllOf(HasSubstr("422 Invalid"), Not(HasSubstr("CANARY"))));
               });
}

TEST(Client, TellsWhenToComeBack) {
  http::Response by_header = refusal(429, "TooManyRequests", "slow down");
  by_header.headers.set("Retry-After", "7");
  with_fixture(
      {by_header, refusal(504, "ServerTimeout", "later", R"({"retryAfterSeconds":3})"),
       refusal(503, "x", "y", R"({"retryAfterSeconds":99999999999})")},
      [](Fixture& fixture) -> Task<> {
        const auto first = co_await fixture.client.get(resources::kPods, {"a", "b"}, soon());
        CO_ASSERT_TRUE(!first);
        EXPECT_EQ(first.error().code, ErrorCode::too_many_requests);
        EXPECT_EQ(first.error().retry_after, 7s);
        const auto second = co_await fixture.client.get(resources::kPods, {"a", "b"}, soon());
        EXPECT_EQ(second.error().retry_after, 3s);
        EXPECT_TRUE(second.error().is_transient());
        const auto third = co_await fixture.client.get(resources::kPods, {"a", "b"}, soon());
        EXPECT_EQ(third.error().retry_after, 300s);
      });
}

class ClientCredentials : public testing::Test {
 protected:
  ClientCredentials() {
    config.token_file = folder / "token";
    set("one");
  }
  void set(const std::string& token) { std::ofstream(config.token_file) << token; }

  test::TempDir folder;
  ClusterConfig config;
  const http::Response unauthorized = refusal(401, "Unauthorized", "Unauthorized");
};

TEST_F(ClientCredentials, TriesOnceMoreWithARotatedToken) {
  with_fixture(
      {json_ok("{}"), unauthorized, json_ok("{}")},
      [this](Fixture& fixture) -> Task<> {
        CO_ASSERT_OK(co_await fixture.client.raw({.target = "/a"}, soon()));
        set("two");
        CO_ASSERT_OK(co_await fixture.client.raw(
            {.method = "POST", .target = "/b", .body = "body", .content_type = "text/plain"},
            soon()));
        CO_ASSERT_EQ(fixture.server.seen().size(), 3U);
        EXPECT_EQ(fixture.header("Authorization", 1), "Bearer one");
        EXPECT_EQ(fixture.header("Authorization", 2), "Bearer two");
        EXPECT_EQ(fixture.request(2).body, "body");
      },
      config);
}

TEST_F(ClientCredentials, DoesNotRepeatARefusedToken) {
  with_fixture(
      {unauthorized},
      [](Fixture& fixture) -> Task<> {
        const auto answer = co_await fixture.client.raw({.target = "/a"}, soon());
        CO_ASSERT_TRUE(!answer);
        EXPECT_EQ(answer.error().code, ErrorCode::unauthenticated);
        EXPECT_EQ(fixture.server.seen().size(), 1U);
      },
      config);
}

TEST_F(ClientCredentials, GivesUpAfterTheSecond401) {
  with_fixture(
      {unauthorized},
      [this](Fixture& fixture) -> Task<> {
        EXPECT_FALSE(co_await fixture.client.raw({.target = "/a"}, soon()));
        set("two");
        EXPECT_FALSE(co_await fixture.client.raw({.target = "/a"}, soon()));
        EXPECT_EQ(fixture.server.seen().size(), 3U);
      },
      config);
}

TEST_F(ClientCredentials, RotatesForWatchesToo) {
  with_fixture(
      {json_ok("{}"), unauthorized, json_ok("{}\n")},
      [this](Fixture& fixture) -> Task<> {
        CO_ASSERT_OK(co_await fixture.client.raw({.target = "/a"}, soon()));
        set("two");
        CO_ASSERT_OK(co_await fixture.client.watch(resources::kPods, "", {}, soon()));
        EXPECT_EQ(fixture.header("Authorization", 2), "Bearer two");
      },
      config);
}

TEST_F(ClientCredentials, AC28_FailWithoutShowingThem) {
  std::filesystem::remove(config.token_file);
  with_fixture(
      {json_ok("{}")},
      [this](Fixture& fixture) -> Task<> {
        const auto answer = co_await fixture.client.get(resources::kPods, {"a", "b"}, soon());
        CO_ASSERT_TRUE(!answer);
        EXPECT_EQ(answer.error().message, "get pods a/b: token file " + config.token_file +
                                              ": cannot be read: No such file or directory");
        EXPECT_EQ(answer.error().subcode, subcodes::kNoCredential);
        EXPECT_TRUE(fixture.server.seen().empty());
      },
      config);
}

TEST(Client, OpensWatches) {
  with_fixture({json_ok("{\"type\":\"ADDED\"}\n")}, [](Fixture& fixture) -> Task<> {
    auto stream = co_await fixture.client.watch(
        resources::kApplications, "argocd",
        {.label_selector = "a=b", .field_selector = "", .resource_version = "5", .timeout = 301s},
        soon());
    CO_ASSERT_OK(stream);
    EXPECT_EQ(fixture.request().target,
              "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications?watch=1"
              "&allowWatchBookmarks=true&timeoutSeconds=301&resourceVersion=5&labelSelector=a%3Db");
    stream->set_deadline(soon());
    const auto part = co_await stream->read_some();
    CO_ASSERT_OK(part);
    EXPECT_EQ(*part, "{\"type\":\"ADDED\"}\n");
  });
}

TEST(Client, AsksForAStreamingList) {
  with_fixture({json_ok("")}, [](Fixture& fixture) -> Task<> {
    WatchOptions options;
    options.send_initial_events = true;
    CO_ASSERT_OK(co_await fixture.client.watch(resources::kPods, "", options, soon()));
    EXPECT_THAT(fixture.request().target,
                HasSubstr("&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"));
  });
}

TEST(Client, ReportsARefusedWatch) {
  with_fixture(
      {refusal(410, "Expired", "too old resource version")}, [](Fixture& fixture) -> Task<> {
        const auto stream = co_await fixture.client.watch(resources::kPods, "shop", {}, soon());
        CO_ASSERT_TRUE(!stream);
        EXPECT_EQ(stream.error().code, ErrorCode::gone);
        EXPECT_EQ(stream.error().message, "watch pods in shop at " +
                                              fixture.server.url().host_header() +
                                              ": 410 Expired: too old resource version");
      });
}

TEST(Client, ReviewsAccess) {
  with_fixture({json_ok(R"({"status":{"allowed":true}})"),
                json_ok(R"({"status":{"allowed":false}})"), json_ok("{}"), json_ok("nonsense")},
               [](Fixture& fixture) -> Task<> {
                 const auto may = [&]() {
                   return fixture.client.can_i({.verb = "patch",
                                                .group = "apps",
                                                .resource = "deployments",
                                                .subresource = "scale",
                                                .ns = "shop",
                                                .name = "web"},
                                               soon());
                 };
                 const auto yes = co_await may();
                 CO_ASSERT_OK(yes);
                 EXPECT_TRUE(*yes);
                 const auto json = nlohmann::json::parse(fixture.request().body);
                 EXPECT_EQ(json["kind"], "SelfSubjectAccessReview");
                 EXPECT_EQ(json["spec"]["resourceAttributes"],
                           nlohmann::json::parse(R"({"group":"apps","resource":"deployments",
                           "subresource":"scale","verb":"patch","namespace":"shop","name":"web"})"));
                 EXPECT_EQ(fixture.request().target,
                           "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews");
                 const auto no = co_await may();
                 CO_ASSERT_OK(no);
                 EXPECT_FALSE(*no);
                 EXPECT_EQ((co_await may()).error().code, ErrorCode::protocol);
                 EXPECT_EQ((co_await may()).error().code, ErrorCode::protocol);
               });
}

TEST(Client, TellsWhoAsks) {
  with_fixture(
      {json_ok(R"({"status":{"userInfo":{"username":"jane"}}})"), json_ok("{}"),
       json_ok("nonsense")},
      [](Fixture& fixture) -> Task<> {
        const auto user = co_await fixture.client.who_am_i(soon());
        CO_ASSERT_OK(user);
        EXPECT_EQ(*user, "jane");
        EXPECT_EQ(fixture.request().target, "/apis/authentication.k8s.io/v1/selfsubjectreviews");
        EXPECT_EQ(nlohmann::json::parse(fixture.request().body)["kind"], "SelfSubjectReview");
        EXPECT_EQ((co_await fixture.client.who_am_i(soon())).error().code, ErrorCode::protocol);
        EXPECT_EQ((co_await fixture.client.who_am_i(soon())).error().code, ErrorCode::protocol);
      });
}

TEST(Client, RequestsTokens) {
  with_fixture(
      {json_ok(R"({"status":{"token":"abc","expirationTimestamp":"2030-01-02T03:04:05Z"}})"),
       json_ok(R"({"status":{}})")},
      [](Fixture& fixture) -> Task<> {
        const auto token =
            co_await fixture.client.request_token({"shop", "robot"}, {"x"}, 600s, soon());
        CO_ASSERT_OK(token);
        EXPECT_EQ(token->token.reveal(), "abc");
        EXPECT_EQ(format_rfc3339(token->expires), "2030-01-02T03:04:05Z");
        EXPECT_EQ(fixture.request().target, "/api/v1/namespaces/shop/serviceaccounts/robot/token");
        EXPECT_EQ(nlohmann::json::parse(fixture.request().body)["spec"],
                  nlohmann::json::parse(R"({"audiences":["x"],"expirationSeconds":600})"));
        EXPECT_FALSE(co_await fixture.client.request_token({"shop", "robot"}, {}, 600s, soon()));
      });
}

TEST(Client, DiscoversTypes) {
  with_fixture(
      {json_ok(R"({"resources":[{"name":"applications"},{"name":"applications/status"}]})"),
       json_ok(R"({"resources":[{"name":"rollouts"}]})"), json_ok(R"({"resources":"none"})"),
       refusal(404, "NotFound", "no such group"), refusal(503, "x", "y")},
      [](Fixture& fixture) -> Task<> {
        const auto known = [&]() -> Task<std::string> {
          const auto found = co_await fixture.client.exists(resources::kApplications, soon());
          co_return found ? (*found ? "yes" : "no") : "error";
        };
        EXPECT_EQ(co_await known(), "yes");
        EXPECT_EQ(fixture.request().target, "/apis/argoproj.io/v1alpha1");
        EXPECT_EQ(co_await known(), "no");
        EXPECT_EQ(co_await known(), "no");
        EXPECT_EQ(co_await known(), "no");
        EXPECT_EQ(co_await known(), "error");
      });
}

// The API server has no Status for a group that it does not serve, as a balancer has none.
TEST(Client, AsksForTheGroupsBeforeATypeIsAbsent) {
  const http::Response plain{
      .status = 404, .headers = {{"Content-Type", "text/plain"}}, .body = "404 page not found"};
  const auto groups = [](const std::string& versions) {
    return json_ok(R"({"kind":"APIGroupList","groups":[{"name":"argoproj.io","versions":[)" +
                   versions + "]}]}");
  };
  with_fixture(
      {plain, groups(R"({"version":"v1alpha1"})"), plain, groups(R"({"version":"v1"})"), plain,
       groups(""), plain, plain, json_ok(R"({"resources":[{"name":"applications"}]})")},
      [](Fixture& fixture) -> Task<> {
        std::vector<std::string> found;
        for (int i = 0; i < 5; ++i) {
          const auto type = co_await fixture.client.exists(resources::kApplications, soon());
          found.emplace_back(type ? (*type ? "yes" : "no") : to_string(type.error().code));
        }
        EXPECT_THAT(found, testing::ElementsAre("unavailable", "no", "no", "unavailable", "yes"));
        EXPECT_EQ(fixture.request(1).target, "/apis");
      });
}

const RetryPolicy kQuick{.attempts = 3, .backoff = {.initial = 1ms, .max = 1ms}};

TEST(ClientRetries, SendsAReadAgainUntilItIsAnswered) {
  with_fixture(
      {refusal(503, "ServiceUnavailable", "x"), refusal(500, "InternalError", "y"), json_ok("{}")},
      [](Fixture& fixture) -> Task<> {
        CO_ASSERT_OK(co_await fixture.client.get(resources::kPods, {"a", "b"}, soon()));
        EXPECT_EQ(fixture.server.seen().size(), 3U);
      },
      {}, kQuick);
}

TEST(ClientRetries, GivesTheLastErrorWhenAllAttemptsFail) {
  with_fixture(
      {refusal(503, "x", "first"), refusal(503, "x", "second"), refusal(503, "x", "last")},
      [](Fixture& fixture) -> Task<> {
        const auto pod = co_await fixture.client.get(resources::kPods, {"a", "b"}, soon());
        CO_ASSERT_TRUE(!pod);
        EXPECT_THAT(pod.error().message, HasSubstr("last"));
        EXPECT_EQ(fixture.server.seen().size(), 3U);
      },
      {}, kQuick);
}

TEST(ClientRetries, NeverSendsAChangeAgainThatMayHaveBeenMade) {
  with_fixture(
      {refusal(500, "InternalError", "x")},
      [](Fixture& fixture) -> Task<> {
        EXPECT_FALSE(co_await fixture.client.create(resources::kPods, "a", "{}", soon()));
        EXPECT_FALSE(co_await fixture.client.patch(resources::kPods, {"a", "b"}, PatchType::json,
                                                   "[]", soon()));
        EXPECT_EQ(fixture.server.seen().size(), 2U);
      },
      {}, kQuick);
}

TEST(ClientRetries, SendsAChangeAgainThatWasTurnedAway) {
  with_fixture(
      {refusal(429, "TooManyRequests", "x"), json_ok("{}")},
      [](Fixture& fixture) -> Task<> {
        CO_ASSERT_OK(co_await fixture.client.create(resources::kPods, "a", "body", soon()));
        CO_ASSERT_EQ(fixture.server.seen().size(), 2U);
        EXPECT_EQ(fixture.request(1).body, "body");
      },
      {}, kQuick);
}

TEST(ClientRetries, SendsAChangeAgainWhenNobodyListened) {
  run_coro([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    Metrics metrics;
    net::Resolver resolver(metrics);
    ClusterConfig config;
    {
      CannedServer before(executor, {json_ok("")});
      config.server = before.url();
      co_await before.stop();
    }
    Client client(executor, resolver, config, {}, "x",
                  {.attempts = 1000, .backoff = {.initial = 1ms, .max = 10ms}});
    TaskGroup group(executor);
    bool created = false;
    group.spawn("create", [&]() -> Task<> {
      CO_ASSERT_OK(co_await client.create(resources::kConfigMaps, "default", "{}", soon()));
      created = true;
    });
    co_await sleep_for(5ms);
    EXPECT_FALSE(created);
    CannedServer server(executor, {json_ok("{}")}, {.port = config.server.port});
    co_await group.join();
    EXPECT_TRUE(created);
    EXPECT_EQ(server.seen().size(), 1U);
    co_await server.stop();
  });
}

TEST(ClientRetries, LeavesTheErrorWhileItIsOfUse) {
  http::Response later = refusal(429, "TooManyRequests", "x");
  later.headers.set("Retry-After", "60");
  with_fixture(
      {later},
      [](Fixture& fixture) -> Task<> {
        const auto pod = co_await fixture.client.get(resources::kPods, {"a", "b"}, soon());
        CO_ASSERT_TRUE(!pod);
        EXPECT_EQ(pod.error().code, ErrorCode::too_many_requests);
        EXPECT_EQ(pod.error().retry_after, 60s);
        EXPECT_EQ(fixture.server.seen().size(), 1U);
      },
      {}, kQuick);
}

TEST(ClientDiscovery, AsksEachGroupOfAServerWithoutAggregatedDiscovery) {
  with_fixture(
      {json_ok(R"({"kind":"APIVersions","versions":["v1"]})"),
       json_ok(R"({"kind":"APIGroupList","groups":[
              {"name":"apps","versions":[{"version":"v1"}]},
              {"name":"metrics.k8s.io","versions":[{"version":"v1beta1"}]}]})"),
       json_ok(R"({"resources":[{"name":"pods","kind":"Pod","namespaced":true}]})"),
       json_ok(R"({"resources":[{"name":"deployments","kind":"Deployment","namespaced":true}]})"),
       refusal(503, "ServiceUnavailable", "the server is currently unable")},
      [](Fixture& fixture) -> Task<> {
        const auto found = co_await fixture.client.discover(soon());
        CO_ASSERT_OK(found);
        EXPECT_THAT(fixture.header("Accept"),
                    testing::StartsWith("application/json;g=apidiscovery"));
        EXPECT_EQ(fixture.request(2).target, "/api/v1");
        EXPECT_EQ(fixture.request(3).target, "/apis/apps/v1");
        EXPECT_EQ(found->find(resources::kDeployments), Discovery::Answer::served);
        EXPECT_EQ(found->find({"metrics.k8s.io", "v1beta1", "pods", "PodMetrics", true}),
                  Discovery::Answer::not_known);
      });
}

TEST(ClientDiscovery, FailsWhenItCannotAskAtAll) {
  with_fixture(
      {json_ok(R"({"kind":"APIVersions","versions":["v1"]})"), refusal(503, "x", "y")},
      [](Fixture& fixture) -> Task<> { EXPECT_FALSE(co_await fixture.client.discover(soon())); });
}

TEST(Client, ReadsTheVersionOfTheServer) {
  with_fixture(
      {json_ok(R"({"major":"1","minor":"27+","gitVersion":"v1.27.3-eks-1"})"), json_ok("[]"),
       json_ok("{}"), json_ok(R"({"gitVersion":1})"), json_ok("<html>"), json_ok("")},
      [](Fixture& fixture) -> Task<> {
        const auto version = co_await fixture.client.server_version(soon());
        CO_ASSERT_OK(version);
        EXPECT_EQ(version->major, 1U);
        EXPECT_EQ(version->minor, 27U);
        EXPECT_EQ(version->git_version, "v1.27.3-eks-1");
        for (int other = 0; other < 5; ++other) {
          const auto refused = co_await fixture.client.server_version(soon());
          CO_ASSERT_TRUE(!refused);
          EXPECT_EQ(refused.error().code, ErrorCode::protocol);
        }
      });
}

TEST(Client, PresentsTheClientCertificateOfAPlugin) {
  test::CertificateAuthority authority;
  const auto server =
      authority.issue({.common_name = "server", .organization = {}, .alt_names = {"127.0.0.1"}});
  const auto person =
      authority.issue({.common_name = "person", .organization = {}, .alt_names = {}});
  const auto text_of = [](const std::filesystem::path& file) {
    std::ifstream stream(file);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  };
  const nlohmann::json printed{{"apiVersion", "client.authentication.k8s.io/v1"},
                               {"kind", "ExecCredential"},
                               {"status",
                                {{"clientCertificateData", text_of(person.cert_file)},
                                 {"clientKeyData", text_of(person.key_file)}}}};
  const test::TempDir folder;
  std::ofstream(folder / "credential") << printed.dump();
  run_coro([&]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    Metrics metrics;
    net::Resolver resolver(metrics);
    // With a certificate authority, the server requires client certificates.
    CannedServer api(executor, {json_ok("{}")},
                     {.tls = net::TlsOptions{.ca_file = authority.ca_file().string(),
                                             .certificate_file = server.cert_file.string(),
                                             .key_file = server.key_file.string()}});
    ClusterConfig config;
    config.server = api.url();
    config.tls.ca_file = authority.ca_file().string();
    Client anonymous(executor, resolver, config, {}, "x");
    EXPECT_FALSE(co_await anonymous.raw({.target = "/version"}, soon()));
    config.exec = ExecPlugin{.api_version = "client.authentication.k8s.io/v1",
                             .command = "/bin/cat",
                             .arguments = {folder / "credential"},
                             .environment = {}};
    Client client(executor, resolver, config, {}, "x");
    CO_ASSERT_OK(co_await client.raw({.target = "/version"}, soon()));
    co_await api.stop();
  });
}

}  // namespace
}  // namespace gitops::k8s
