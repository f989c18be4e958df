// Every field of Query, Mutation and Subscription, and every route, asked for by each kind of caller: without a
// credential, of another account, by a viewer, with a rule for another namespace, with a rule for this one, and by an
// administrator. The doubles behind the daemon answer whatever is let through.
#include <algorithm>
#include <iostream>

#include <gmock/gmock.h>

#include "app-proxy/http/routes.hpp"
#include "app-proxy/resolvers/table.hpp"
#include "common/control_plane/access_rules.hpp"
#include "doubles/fake_argocd.hpp"
#include "e2e/app_proxy_permissions_harness.hpp"
#include "e2e/git_harness.hpp"

namespace gitops::test {
namespace {

using app_proxy::FieldRow;
using app_proxy::Permission;
using app_proxy::RootType;
using Json = nlohmann::json;
using Answer = AppProxyHarness::Answer;
using namespace nlohmann::literals;

constexpr const char* kPromotion =
    R"({"srcAppId":{"runtime":"prod","namespace":"argocd","name":"shop-dev"},)"
    R"("destAppId":{"runtime":"prod","namespace":"argocd","name":"shop-prod"},)"
    R"("message":"m","head":"h","title":"t"})";
constexpr RouteCase kRouteCases[] = {
    {"GET", "/api/readyz", "/api/readyz", RouteCase::Who::anyone},
    {"GET", "/api/healthz", "/api/healthz", RouteCase::Who::anyone},
    {"POST", "/api/graphql", "/api/graphql", RouteCase::Who::user,
     R"({"query":"{gitIntegrations{name}}"})"},
    {"POST", "/api/clusters", "/api/clusters", RouteCase::Who::admin, "{}"},
    {"GET", "/api/applications/logs", "/api/applications/logs?applicationName=shop",
     RouteCase::Who::ruled},
    {"GET", "/api/applications/logs", "/api/applications/logs?workflowName=w&namespace=web",
     RouteCase::Who::ruled},
    {"GET", "/api/applications/logs", "/api/applications/logs?componentName=app-proxy",
     RouteCase::Who::admin},
    {"GET", "/api/applications/logs", "/api/applications/logs", RouteCase::Who::admin},
    {"GET", "/api/image-report", "/api/image-report", RouteCase::Who::user},
    {"POST", "/api/promotions/commit", "/api/promotions/commit", RouteCase::Who::ruled, kPromotion},
    {"POST", "/api/promotions/pullRequest", "/api/promotions/pullRequest", RouteCase::Who::ruled,
     kPromotion},
    {"POST", "/api/source-files", "/api/source-files", RouteCase::Who::runtime, "{}"},
    {"GET", "/api/git-auth/{provider}", "/api/git-auth/github", RouteCase::Who::asked},
    // By the key in a form, and by the state of a login: app_proxy_git_login_test.cpp.
    {"POST", "/api/git-auth/{provider}", "/api/git-auth/github", RouteCase::Who::anyone},
    {"GET", "/api/git-auth/{provider}/callback", "/api/git-auth/github/callback",
     RouteCase::Who::anyone},
};

struct AppProxyPermissionsAtBoth : testing::TestWithParam<ControlPlaneKind> {};
INSTANTIATE_TEST_SUITE_P(ControlPlane, AppProxyPermissionsAtBoth,
                         testing::Values(ControlPlaneKind::fake, ControlPlaneKind::program),
                         [](const auto& info) { return kind_name(info.param); });

// Users, teams and rules of either control plane.
TEST_P(AppProxyPermissionsAtBoth, AC37_EachRouteAsksEachCallerForItsRight) {
  for (const auto& route : app_proxy::route_list()) {
    // A WebSocket asks for each of its operations, see below.
    if (route.method == "GET" && route.path == "/api/graphql") continue;
    EXPECT_TRUE(std::ranges::any_of(kRouteCases,
                                    [&](const RouteCase& wanted) {
                                      return route.method == wanted.method &&
                                             route.path == wanted.route;
                                    }))
        << "no case for " << route.method << " " << route.path;
  }
  in_git_harness([&](GitHarness& harness) -> Task<> {
    PermissionHarness permission_world(harness, co_await asio::this_coro::executor, GetParam());
    co_await play_in(permission_world, [](PermissionHarness& w) -> Task<> {
      co_await w.start();
      auto& proxy = w.base.base;
      int asked = 0;
      for (const RouteCase& wanted : kRouteCases) {
        SCOPED_TRACE(std::string(wanted.method) + " " + wanted.target);
        const auto status_for = [&](http::Headers headers) -> Task<int> {
          headers.add("Content-Type", "application/json");
          // Without parameters it is the download of the runtime's own logs.
          if (std::string_view(wanted.target).contains('?')) {
            headers.add("Accept", "text/event-stream");
          }
          http::Request request{.method = wanted.method,
                                .target = wanted.target,
                                .headers = std::move(headers),
                                .body = wanted.body};
          co_return (co_await proxy.send(std::move(request))).status;
        };
        const int unknown = co_await status_for({});
        const bool is_open = wanted.who == RouteCase::Who::anyone;
        const bool is_asked = wanted.who == RouteCase::Who::asked;
        EXPECT_EQ(unknown == 401, !is_open && !is_asked) << unknown;
        if (is_asked) EXPECT_EQ(unknown, 200);
        auto stranger = AppProxyHarness::as(AppProxyHarness::kEve);
        stranger.add("X-Forwarded-For", "203.0.113." + std::to_string(++asked));
        EXPECT_EQ(co_await status_for(std::move(stranger)), is_open ? unknown : 401);
        const auto expect = [&](const char* token, bool is_allowed) -> Task<> {
          const int status = co_await status_for(AppProxyHarness::as(token));
          EXPECT_NE(status, 401) << token;
          EXPECT_EQ(status == 403, !is_allowed && !is_open) << token << " got " << status;
        };
        const bool is_for_users = is_asked || wanted.who == RouteCase::Who::user;
        co_await expect(kViewer, is_for_users);
        co_await expect(kElsewhere, is_for_users);
        co_await expect(kHere, is_for_users || wanted.who == RouteCase::Who::ruled);
        co_await expect(AppProxyHarness::kAnn, wanted.who != RouteCase::Who::runtime);
        if (wanted.who == RouteCase::Who::runtime) co_await expect(AppProxyHarness::kRuntime, true);
      }
    });
  });
}

TEST(AppProxyPermissions, AC37_EachFieldAsksEachCallerForItsRight) {
  in_git_harness([](GitHarness& harness) -> Task<> {
    PermissionHarness permission_world(harness, co_await asio::this_coro::executor);
    co_await play_in(permission_world, [](PermissionHarness& w) -> Task<> {
      co_await w.start();
      auto& proxy = w.base.base;
      int asked = 0;
      const app_proxy::VersionInfo version;
      const app_proxy::ResolverDependencies dependencies{.version = version};
      for (const FieldRow& row : app_proxy::table(dependencies)) {
        const auto found = cases().find(row.field);
        CO_ASSERT_TRUE(found != cases().end()) << "no case for " << row.field;
        const Case& wanted = found->second;
        const bool is_stream = row.root == RootType::subscription;
        const std::string document = std::string(row.root == RootType::query ? "query{"
                                                 : is_stream                 ? "subscription{"
                                                                             : "mutation{") +
                                     row.field + wanted.arguments + wanted.selection + "}";
        const auto ask = [&](http::Headers headers = {}) -> Task<Answer> {
          if (is_stream) co_return co_await proxy.subscribe(document, std::move(headers));
          co_return co_await proxy.ask(document, std::move(headers));
        };
        SCOPED_TRACE(document);
        const bool is_open = row.permission == Permission::anyone;
        const bool is_admins = row.permission == Permission::admin;
        EXPECT_EQ((co_await ask()).status, is_open ? 200 : 401);
        // From an address of its own each time: wrong keys are limited by address.
        auto stranger = AppProxyHarness::as(AppProxyHarness::kEve);
        stranger.add("X-Forwarded-For", "203.0.113." + std::to_string(++asked));
        EXPECT_EQ((co_await ask(stranger)).status, is_open ? 200 : 401);
        const auto expect = [&](const char* token, bool is_allowed) -> Task<> {
          const auto answer = co_await ask(AppProxyHarness::as(token));
          EXPECT_EQ(answer.status, 200) << token << answer.body;
          EXPECT_EQ(is_forbidden(answer), !is_allowed && !is_admins) << token << answer.body;
          EXPECT_EQ(is_for_administrators(answer), !is_allowed && is_admins)
              << token << answer.body;
          // The document itself is right.
          EXPECT_NE(answer.code(), "GRAPHQL_VALIDATION_FAILED") << answer.body;
        };
        co_await expect(kViewer, !is_admins && wanted.ruled != Ruled::yes);
        co_await expect(kElsewhere, !is_admins && wanted.ruled == Ruled::no);
        co_await expect(kHere, !is_admins);
        co_await expect(AppProxyHarness::kAnn, true);
      }
      // Nothing but what was allowed reached Argo CD: the deletion by the administrator.
      EXPECT_EQ(w.argocd.count("DELETE", "/applications/shop?"), 1U);
    });
  });
}

// With the settings that the program has by itself.
TEST(AppProxyPermissions, AC33_ARuleThatIsTakenBackCountsWithinThirtySeconds) {
  in_git_harness([](GitHarness& harness) -> Task<> {
    PermissionHarness permission_world(harness, co_await asio::this_coro::executor);
    co_await play_in(permission_world, [](PermissionHarness& w) -> Task<> {
      co_await w.start();
      const auto refresh = [&] {
        return w.base.base.ask("mutation{refresh" + std::string(kApp) + "{metadata{name}}}",
                               AppProxyHarness::as(kHere));
      };
      EXPECT_FALSE(is_forbidden(co_await refresh()));
      w.base.base.platform.accounts().set_rules(Json::array());
      const auto begun = Clock::now();
      const auto limit = begun + std::chrono::seconds(30);
      while (!is_forbidden(co_await refresh()) && Clock::now() < limit) {
        co_await sleep_for(std::chrono::milliseconds(100));
      }
      std::cout
          << "the right was gone after "
          << std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begun).count()
          << " ms"
          << "\n";
      EXPECT_LT(Clock::now(), limit);
    });
  });
}

}  // namespace
}  // namespace gitops::test
