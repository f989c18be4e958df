#include "common/argo/argocd_client.hpp"

#include <gmock/gmock.h>

#include "common/http/gzip.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"
#include "test_http/canned_server.hpp"
#include "test_http/responses.hpp"

namespace gitops::argo {
namespace {

using namespace std::chrono_literals;
using test::CannedServer;
using test::ok;
using test::run_in_test_time;
using test::soon;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// An argocd-server with these answers and a client of it.
struct Fixture {
  Fixture(const Executor& executor, std::vector<http::Response> answers, std::string root_path)
      : server(executor, std::move(answers)),
        http(executor, resolver, {}),
        client(http, {.server = server.url(), .root_path = std::move(root_path)},
               [this] { return token; }) {}

  [[nodiscard]] std::string target() const { return server.seen().back().target; }
  [[nodiscard]] std::string header(std::string_view name) const {
    return std::string(server.seen().back().headers.find(name).value_or("(none)"));
  }

  CannedServer server;
  Metrics metrics;
  net::Resolver resolver{metrics};
  http::Client http;
  Secret token{"abc"};
  ArgoCdClient client;
};

void with_fixture(std::vector<http::Response> answers, const std::function<Task<>(Fixture&)>& body,
                  std::string root_path = {}) {
  run_in_test_time([&]() -> Task<> {
    Fixture fixture(co_await asio::this_coro::executor, std::move(answers), std::move(root_path));
    co_await body(fixture);
    co_await fixture.server.stop();
  });
}

const AppRef kApp{.name = "guestbook", .ns = "argocd", .project = "default"};

TEST(ArgoCdClient, AsksForPermissions) {
  with_fixture({ok(R"({"value":"yes"})"), ok(R"({"value":"no"})"), ok("{}"), ok("nonsense")},
               [](Fixture& fixture) -> Task<> {
                 const auto may = [&] {
                   return fixture.client.can_i("applications", "get", "*/*", soon());
                 };
                 const auto yes = co_await may();
                 CO_ASSERT_OK(yes);
                 EXPECT_TRUE(*yes);
                 EXPECT_EQ(fixture.target(), "/api/v1/account/can-i/applications/get/*/*");
                 EXPECT_EQ(fixture.header("Authorization"), "Bearer abc");
                 const auto no = co_await may();
                 CO_ASSERT_OK(no);
                 EXPECT_FALSE(*no);
                 EXPECT_EQ((co_await may()).error().code, ErrorCode::protocol);
                 EXPECT_EQ((co_await may()).error().code, ErrorCode::protocol);
               });
}

TEST(ArgoCdClient, LogsIn) {
  with_fixture(
      {ok(R"({"token":"a.b.c"})"), ok("{}"), ok("nonsense")},
      [](Fixture& fixture) -> Task<> {
        const auto token = co_await fixture.client.log_in("bot", Secret("pass\"word"), soon());
        CO_ASSERT_OK(token);
        EXPECT_EQ(token->reveal(), "a.b.c");
        EXPECT_EQ(fixture.target(), "/argo/api/v1/session");
        EXPECT_EQ(fixture.header("Content-Type"), "application/json");
        EXPECT_EQ(fixture.header("Authorization"), "(none)");
        for (int i = 0; i < 2; ++i) {
          const auto without = co_await fixture.client.log_in("bot", Secret("x"), soon());
          CO_ASSERT_TRUE(!without);
          EXPECT_EQ(without.error().code, ErrorCode::invalid_data);
        }
      },
      "argo");
}

TEST(ArgoCdClient, ReadsTreesAndManagedResources) {
  with_fixture({ok("{ \"nodes\": [] }")}, [](Fixture& fixture) -> Task<> {
    const auto tree = co_await fixture.client.resource_tree(kApp, soon());
    CO_ASSERT_OK(tree);
    EXPECT_EQ(*tree, "{ \"nodes\": [] }") << "as received";
    EXPECT_EQ(fixture.target(),
              "/api/v1/applications/guestbook/resource-tree?appNamespace=argocd&project=default");
    EXPECT_EQ(fixture.header("Authorization"), "Bearer abc");
    CO_ASSERT_OK(co_await fixture.client.managed_resources(kApp, soon()));
    EXPECT_EQ(
        fixture.target(),
        "/api/v1/applications/guestbook/managed-resources?appNamespace=argocd&project=default");
  });
}

TEST(ArgoCdClient, AsksForOneManagedResource) {
  with_fixture({ok(R"({"items":[]})")}, [](Fixture& fixture) -> Task<> {
    CO_ASSERT_OK(co_await fixture.client.managed_resources(
        kApp, soon(),
        {.group = "argoproj.io", .kind = "Application", .ns = "team-a", .name = "web"}));
    EXPECT_THAT(fixture.target(),
                EndsWith("/managed-resources?appNamespace=argocd&project=default"
                         "&group=argoproj.io&kind=Application&namespace=team-a&name=web"));
  });
}

TEST(ArgoCdClient, EncodesEveryPart) {
  with_fixture({ok("{}")}, [](Fixture& fixture) -> Task<> {
    const AppRef app{.name = "../a b", .ns = "n&s", .project = "p=q#r"};
    CO_ASSERT_OK(co_await fixture.client.revision_metadata(app, "refs/heads/x?y+1", 2, soon()));
    EXPECT_EQ(fixture.target(),
              "/api/v1/applications/..%2Fa%20b/revisions/refs%2Fheads%2Fx%3Fy%2B1/metadata"
              "?appNamespace=n%26s&project=p%3Dq%23r&sourceIndex=2");
  });
}

TEST(ArgoCdClient, LeavesOutWhatItDoesNotKnow) {
  with_fixture({ok("{}")}, [](Fixture& fixture) -> Task<> {
    fixture.token = Secret();
    CO_ASSERT_OK(
        co_await fixture.client.resource_tree({.name = "a", .ns = "", .project = ""}, soon()));
    EXPECT_EQ(fixture.target(), "/api/v1/applications/a/resource-tree");
    EXPECT_EQ(fixture.header("Authorization"), "(none)");
    CO_ASSERT_OK(co_await fixture.client.revision_metadata({.name = "a", .ns = "", .project = ""},
                                                           "r", 0, soon()));
    EXPECT_EQ(fixture.target(), "/api/v1/applications/a/revisions/r/metadata?sourceIndex=0");
  });
}

TEST(ArgoCdClient, PutsTheRootPathFirst) {
  for (const char* root : {"argo/cd", "/argo/cd/"}) {
    with_fixture(
        {ok("{}")},
        [](Fixture& fixture) -> Task<> {
          CO_ASSERT_OK(co_await fixture.client.version(soon()));
          EXPECT_EQ(fixture.target(), "/argo/cd/api/version");
          EXPECT_EQ(fixture.header("Authorization"), "(none)") << "needs no token";
        },
        root);
  }
}

TEST(ArgoCdClient, UsesARotatedTokenAtOnce) {
  with_fixture({ok("{}")}, [](Fixture& fixture) -> Task<> {
    CO_ASSERT_OK(co_await fixture.client.resource_tree(kApp, soon()));
    fixture.token = Secret("def");
    CO_ASSERT_OK(co_await fixture.client.resource_tree(kApp, soon()));
    EXPECT_EQ(fixture.header("Authorization"), "Bearer def");
  });
}

TEST(ArgoCdClient, ReadsGzip) {
  http::Response answer = ok(http::gzip_compress("{\"nodes\":[]}"));
  answer.headers.set("Content-Encoding", "gzip");
  with_fixture({answer}, [](Fixture& fixture) -> Task<> {
    const auto tree = co_await fixture.client.resource_tree(kApp, soon());
    CO_ASSERT_OK(tree);
    EXPECT_EQ(*tree, "{\"nodes\":[]}");
    EXPECT_EQ(fixture.header("Accept-Encoding"), "gzip");
  });
}

TEST(ArgoCdClient, AC07_RefusesABombOfAnAnswer) {
  http::Response answer = ok(http::gzip_compress(std::string(65 * 1024 * 1024, ' ')));
  answer.headers.set("Content-Encoding", "gzip");
  with_fixture({answer}, [](Fixture& fixture) -> Task<> {
    const auto tree = co_await fixture.client.resource_tree(kApp, soon());
    CO_ASSERT_TRUE(!tree);
    EXPECT_EQ(tree.error().code, ErrorCode::too_large);
  });
}

TEST(ArgoCdClient, MakesOneLineOfAFailure) {
  const std::string body =
      R"({"error":"permission denied","code":7,"message":"permission denied"})";
  with_fixture({{.status = 403, .headers = {}, .body = body}}, [](Fixture& fixture) -> Task<> {
    const auto tree = co_await fixture.client.resource_tree(kApp, soon());
    CO_ASSERT_TRUE(!tree);
    EXPECT_EQ(tree.error().code, ErrorCode::forbidden);
    EXPECT_EQ(tree.error().http_status, 403);
    EXPECT_EQ(tree.error().message, "Argo CD resource tree of argocd/guestbook at " +
                                        fixture.server.url().host_header() +
                                        ": 403 Forbidden: permission denied");
  });
}

TEST(ArgoCdClient, AsksOnceWhenItsTokenIsRefused) {
  with_fixture({{.status = 401, .headers = {}, .body = R"({"message":"no session"})"}},
               [](Fixture& fixture) -> Task<> {
                 const auto tree = co_await fixture.client.managed_resources(kApp, soon());
                 CO_ASSERT_TRUE(!tree);
                 EXPECT_EQ(tree.error().code, ErrorCode::unauthenticated);
                 EXPECT_THAT(tree.error().message,
                             AllOf(EndsWith("no session"), Not(HasSubstr("abc"))));
                 EXPECT_EQ(fixture.server.seen().size(), 1U);
               });
}

TEST(ArgoCdClient, CopesWithFailuresOfOthers) {
  with_fixture({{.status = 502, .headers = {{"Retry-After", "4"}}, .body = "<html>nginx</html>"},
                {.status = 302, .headers = {{"Location", "/login"}}, .body = ""},
                {.status = 500, .headers = {}, .body = R"({"message":7})"}},
               [](Fixture& fixture) -> Task<> {
                 const auto first = co_await fixture.client.resource_tree(kApp, soon());
                 CO_ASSERT_TRUE(!first);
                 EXPECT_EQ(first.error().code, ErrorCode::unavailable);
                 EXPECT_EQ(first.error().retry_after, 4s);
                 EXPECT_THAT(first.error().message, EndsWith("502 Bad Gateway"));
                 const auto second = co_await fixture.client.resource_tree(kApp, soon());
                 EXPECT_EQ(second.error().code, ErrorCode::protocol);
                 const auto third = co_await fixture.client.resource_tree(kApp, soon());
                 EXPECT_THAT(third.error().message, EndsWith("500 Internal Server Error"));
               });
}

// As a login in front of argocd-server, or the page of an ingress without a backend.
TEST(ArgoCdClient, APageIsNoAnswerWhateverItsStatus) {
  const http::Headers html{{"Content-Type", "text/html; charset=utf-8"}};
  for (const int status : {200, 400, 403, 404, 500, 503}) {
    with_fixture({{.status = status, .headers = html, .body = "<html>log in</html>"}},
                 [status](Fixture& fixture) -> Task<> {
                   const auto tree = co_await fixture.client.resource_tree(kApp, soon());
                   CO_ASSERT_TRUE(!tree);
                   EXPECT_EQ(tree.error().code, ErrorCode::unavailable) << status;
                   EXPECT_EQ(tree.error().http_status, 0) << status;
                   EXPECT_THAT(tree.error().message,
                               HasSubstr(std::to_string(status) + " with text/html"));
                   EXPECT_FALSE(co_await fixture.client.remove(kApp, true, {}, soon()));
                   EXPECT_FALSE(co_await fixture.client.is_accepted(Secret("x"), soon()));
                   const auto login = co_await fixture.client.log_in("bot", Secret("x"), soon());
                   EXPECT_TRUE(!login && login.error().is_transient());
                 });
  }
  // Without a media type, and with a wrong one.
  with_fixture(
      {ok("\n<html>"), {.status = 200, .headers = {{"Content-Type", "text/plain"}}, .body = "{}"}},
      [](Fixture& fixture) -> Task<> {
        for (int i = 0; i < 2; ++i) {
          EXPECT_FALSE(co_await fixture.client.resource_tree(kApp, soon())) << i;
        }
      });
  with_fixture({{.status = 401, .headers = html, .body = "<html>"}},
               [](Fixture& fixture) -> Task<> {
                 const auto tree = co_await fixture.client.resource_tree(kApp, soon());
                 EXPECT_EQ(tree.error().code, ErrorCode::unauthenticated);
               });
}

// Of an ingress whose backend is away, and of a service mesh.
TEST(ArgoCdClient, AVerdictInPlainTextIsNotThatOfArgoCd) {
  const http::Headers text{{"Content-Type", "text/plain"}};
  with_fixture({{.status = 404, .headers = text, .body = "default backend - 404"},
                {.status = 403, .headers = text, .body = "RBAC: access denied"},
                {.status = 404, .headers = {}, .body = ""}},
               [](Fixture& fixture) -> Task<> {
                 for (int i = 0; i < 3; ++i) {
                   const auto tree = co_await fixture.client.resource_tree(kApp, soon());
                   CO_ASSERT_TRUE(!tree);
                   EXPECT_EQ(tree.error().code, ErrorCode::unavailable) << i;
                   EXPECT_EQ(tree.error().http_status, 0) << i;
                 }
               });
}

TEST(ArgoCdClient, AsksForARevisionOfAFormerSource) {
  with_fixture({ok("{}")}, [](Fixture& fixture) -> Task<> {
    CO_ASSERT_OK(co_await fixture.client.revision_metadata(kApp, "abc", 1, soon(), 0));
    EXPECT_THAT(fixture.target(), EndsWith("&sourceIndex=1&versionId=0"));
  });
}

TEST(ArgoCdClient, NamesTheCallThatFoundNobody) {
  with_fixture({ok("{}")}, [](Fixture& fixture) -> Task<> {
    co_await fixture.server.stop();
    const auto version = co_await fixture.client.version(soon());
    CO_ASSERT_TRUE(!version);
    EXPECT_EQ(version.error().code, ErrorCode::unavailable);
    EXPECT_THAT(version.error().message, StartsWith("Argo CD version: 127.0.0.1:"));
  });
}

TEST(ParseServer, TakesHostsAndUrls) {
  const auto shown = [](const std::string& text) {
    const auto url = parse_server(text);
    return url ? url->to_string() : "refused";
  };
  EXPECT_THAT(shown("argo-cd-server:80"), StartsWith("http://argo-cd-server"));
  EXPECT_THAT(shown("https://argo.example/x"), StartsWith("https://argo.example/x"));
  EXPECT_EQ(parse_server("[::1]:8080")->port, 8080);
  EXPECT_EQ(shown("ftp://x"), "refused");
  EXPECT_EQ(shown("wss://x"), "refused");
  EXPECT_EQ(shown(""), "refused");
  EXPECT_EQ(shown("a b"), "refused");
}

TEST(ArgoCdClient, ChangesStateWithItsTokenAndJson) {
  with_fixture({ok("{}")}, [](Fixture& fixture) -> Task<> {
    CO_ASSERT_OK(co_await fixture.client.sync(kApp, R"({"prune":true,"name":"other"})", soon()));
    EXPECT_EQ(fixture.target(), "/api/v1/applications/guestbook/sync");
    EXPECT_EQ(fixture.header("Authorization"), "Bearer abc");
    EXPECT_EQ(fixture.header("Content-Type"), "application/json");
    EXPECT_EQ(fixture.server.seen().back().body,
              R"({"appNamespace":"argocd","name":"guestbook","project":"default","prune":true})");
    CO_ASSERT_OK(co_await fixture.client.terminate_operation(kApp, soon()));
    EXPECT_EQ(fixture.target(),
              "/api/v1/applications/guestbook/operation?appNamespace=argocd&project=default");
    EXPECT_EQ(fixture.header("Content-Type"), "application/json") << "also without a body";
    CO_ASSERT_OK(
        co_await fixture.client.remove({.name = "x", .ns = ""}, false, "foreground", soon()));
    EXPECT_EQ(fixture.target(),
              "/api/v1/applications/x?cascade=false&propagationPolicy=foreground");
    const ResourceRef which{
        .group = "apps", .version = "v1", .kind = "Deployment", .ns = "web", .name = "a&b"};
    CO_ASSERT_OK(co_await fixture.client.patch_resource(
        {.name = "x", .ns = ""}, which, "application/json", R"({"a":"b"})", soon()));
    EXPECT_THAT(fixture.target(), HasSubstr("resourceName=a%26b"));
    EXPECT_EQ(fixture.server.seen().back().body, R"("{\"a\":\"b\"}")");
  });
}

TEST(ArgoCdClient, RunsActionsByThePathOfTheRelease) {
  const ResourceRef which{
      .group = "apps", .version = "v1", .kind = "Deployment", .ns = "web", .name = "ui"};
  with_fixture({ok(R"({"Version":"v2.13.9"})"), ok("{}")}, [&](Fixture& fixture) -> Task<> {
    CO_ASSERT_OK(
        co_await fixture.client.run_action({.name = "x", .ns = ""}, which, "restart", "", soon()));
    EXPECT_THAT(fixture.target(), StartsWith("/api/v1/applications/x/resource/actions?"));
    EXPECT_EQ(fixture.server.seen().back().body, R"("restart")");
  });
  with_fixture({ok(R"({"Version":"v3.2.11+1"})"), ok("{}")}, [&](Fixture& fixture) -> Task<> {
    CO_ASSERT_OK(co_await fixture.client.run_action({.name = "x", .ns = ""}, which, "scale",
                                                    R"([{"name":"n","value":"3"}])", soon()));
    EXPECT_EQ(fixture.target(), "/api/v1/applications/x/resource/actions/v2");
    EXPECT_THAT(fixture.server.seen().back().body,
                HasSubstr(R"("resourceActionParameters":[{"name":"n","value":"3"}])"));
  });
  with_fixture({ok(R"({"Version":"v3.0.9"})")}, [&](Fixture& fixture) -> Task<> {
    const auto refused = co_await fixture.client.run_action(
        {.name = "x", .ns = ""}, which, "scale", R"([{"name":"n","value":"3"}])", soon());
    EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
  });
}

TEST(ArgoCdClient, ReleasesWithParametersOfActions) {
  for (const char* version : {"v3.1.0", "v3.2.11+unknown", "3.10.0", "v4.0.0", "", "dev"}) {
    EXPECT_TRUE(has_action_parameters(version)) << version;
  }
  for (const char* version : {"v2.13.9", "v3.0.99", "v3.0.0-rc1"}) {
    EXPECT_FALSE(has_action_parameters(version)) << version;
  }
}

}  // namespace
}  // namespace gitops::argo
