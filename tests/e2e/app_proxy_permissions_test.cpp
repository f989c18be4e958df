// Every field of Query, Mutation and Subscription, and every route, asked for by each kind of caller: without a
// credential, of another account, by a viewer, with a rule for another namespace, with a rule for this one, and by an
// administrator. The doubles behind the daemon answer whatever is let through.
#include <algorithm>
#include <iostream>

#include <gmock/gmock.h>

#include "app-proxy/http/routes.hpp"
#include "app-proxy/resolvers/table.hpp"
#include "app-proxy/users/permissions.hpp"
#include "doubles/fake_argocd.hpp"
#include "e2e/app_proxy_rights_harness.hpp"
#include "e2e/git_harness.hpp"

namespace gitops::test {
namespace {

using app_proxy::FieldRow;
using app_proxy::Permission;
using app_proxy::RootType;
using Json = nlohmann::json;
using Answer = AppProxyHarness::Answer;
using namespace nlohmann::literals;
constexpr const char* kViewer = "canary-vic.6666";
constexpr const char* kElsewhere = "canary-els.7777";
constexpr const char* kHere = "canary-her.8888";

// What the account's rules say of a field.
enum class Ruled {
  no,       // whoever is a user may ask
  as_view,  // the right VIEW
  yes,      // another right
};
struct Case {
  const char* arguments;  // with parentheses
  const char* selection = "";
  Ruled ruled = Ruled::no;
};

constexpr const char* kApp = R"((applicationName:"shop"))";
constexpr const char* kWorkflow = R"((namespace:"web",workflowName:"w"))";
constexpr const char* kObject =
    R"(application:"shop",kind:"Rollout",group:"argoproj.io",version:"v1alpha1",resourceName:"ui")";
constexpr const char* kRestricted =
    R"((args:{appName:"a",appSpecifier:"https://x.test/a/b.git",sourceNamespace:"cf-a",)"
    R"(destinations:[{server:"https://x.test",namespaces:["a"]}],sourceRepos:["*"]}))";
constexpr const char* kRollout = R"(application:"shop",namespace:"web",rolloutName:"ui")";

// A field of the table without a case here fails the test.
const std::map<std::string, Case>& cases() {
  static const std::string object = std::string("(") + kObject;
  static const std::string read_object = object + ")";
  static const std::string patch = object + R"(,patch:"{}"))";
  static const std::string action = object + R"(,action:"restart"))";
  static const std::string rollout_action = std::string("(") + kRollout + ",action:PAUSE)";
  static const std::string rollback = std::string("(") + kRollout + ")";
  static const std::string image = std::string("(") + kRollout + R"(,container:"*",image:"x"))";
  using enum Ruled;
  static const std::map<std::string, Case> all = {
      {"versionInfo", {"", "{version}"}},
      {"gitIntegrations", {"", "{name}"}},
      {"gitIntegration", {"", "{name}"}},
      {"addGitIntegration",
       {R"((args:{name:"x",provider:GITHUB,apiUrl:"https://x.test",sharingPolicy:ACCOUNT_ADMINS}))",
        "{name}"}},
      {"editGitIntegration", {"(args:{sharingPolicy:ALL_USERS_IN_ACCOUNT})", "{name}"}},
      {"removeGitIntegration", {R"((name:"none"))"}},
      {"registerToGitIntegration", {R"((args:{token:"canary-t"}))", "{name}"}},
      {"deregisterFromGitIntegration", {"", "{name}"}},
      {"validateGitProvider", {R"((args:{provider:GITHUB,token:"canary-t"}))"}},
      {"gitOrganizations", {"", "{name}"}},
      {"gitRepositories", {"", "{count}"}},
      {"repositoryBranchesAndTags", {R"((repo:"a/b"))", "{branches}"}},
      {"readFile", {R"((args:{ref:"HEAD",repo:"a/b",path:"c"}))", "{data}"}},
      {"pullRequest", {R"((repo:"a/b",id:1))", "{id}"}},
      {"createPullRequest", {R"((args:{repo:"a/b",head:"h",base:"b",title:"t"}))", "{id}"}},
      {"commitFiles", {R"((args:{repo:"a/b",files:[{path:"a",data:"b"}]}))", "{sha}"}},
      {"deleteFiles", {R"((args:{repo:"a/b",paths:["a"]}))", "{sha}"}},
      {"createGitSource",
       {R"((args:{appName:"a",appSpecifier:"https://x.test/a/b.git",destServer:"https://x.test"}))"}},
      {"editGitSource", {R"((args:{appName:"a",appSpecifier:"https://x.test/a/b.git"}))"}},
      {"createRestrictedGitSource", {kRestricted}},
      {"editRestrictedGitSource", {kRestricted}},
      {"deleteApplication", {R"((args:{appName:"a"}))"}},
      {"createArgoRollouts", {R"((args:{destServer:"https://x.test",destNamespace:"a"}))"}},
      {"removeCluster", {R"((server:"https://x.test",runtime:"prod"))"}},
      {"removeRuntimeFromIscRepo", {""}},
      {"applyIntegration",
       {R"((input:{metadata:{name:"a",type:"issue.jira",runtimes:[],isAllRuntimes:true},)"
        R"(operation:CREATE,providerInfo:"{}"}))"}},
      {"applicationProxyQuery", {R"((name:"shop"))", "{metadata{name}}", as_view}},
      {"sync", {kApp, "{metadata{name}}", yes}},
      {"refresh", {kApp, "{metadata{name}}", yes}},
      {"appRollback", {R"((appName:"shop",appNamespace:"argocd",historyId:0))", "", yes}},
      {"terminateApplicationOperation", {kApp, "{terminated}", yes}},
      {"deleteArgoApplication", {kApp}},
      {"resource", {read_object.c_str(), "{name}", as_view}},
      {"patchResource", {patch.c_str(), "{manifest}"}},
      {"deleteResource", {read_object.c_str(), "", yes}},
      {"resourceActions", {read_object.c_str(), "{name}", as_view}},
      {"runResourceAction", {action.c_str(), "", yes}},
      {"terminateWorkflow", {kWorkflow, "", yes}},
      {"stopWorkflow", {kWorkflow, "", yes}},
      {"suspendWorkflow", {kWorkflow, "", yes}},
      {"resumeWorkflow", {kWorkflow, "", yes}},
      {"retryWorkflow", {kWorkflow, "", yes}},
      {"setWorkflow", {R"((namespace:"web",workflowName:"w",nodeFieldSelector:"a=b"))", "", yes}},
      {"deleteWorkflow", {kWorkflow, "", yes}},
      {"resubmitWorkflow", {kWorkflow, "{newWorkflowName}", yes}},
      {"createWorkflowFromWorkflowTemplate",
       {R"((namespace:"web",workflowTemplateName:"t"))", "{newWorkflowName}", yes}},
      {"rolloutAction", {rollout_action.c_str(), "{changed}", yes}},
      {"rolloutRollback", {rollback.c_str(), "{newRevision}", yes}},
      {"setRolloutImage", {image.c_str(), "{changed}"}},
      {"terminateAnalysisRun",
       {R"((application:"shop",namespace:"web",name:"run"))", "{changed}", yes}},
      {"applicationLogs", {kApp, "{done}", yes}},
      {"workflowLogs", {kWorkflow, "{done}", yes}},
      {"componentLogs", {R"((componentName:"app-proxy"))", "{done}"}},
      {"podEvents",
       {R"((namespace:"web",podName:"ui-1",applicationName:"shop"))", "{done}", as_view}},
      {"terminateExperiment",
       {R"((application:"shop",namespace:"web",name:"run"))", "{changed}", yes}},
  };
  return all;
}

Json rule(const char* type, const char* team, const char* ns, std::vector<std::string> actions) {
  return {{"id", std::string(type) + team},
          {"accountId", "acc-1"},
          {"entityType", type},
          {"teams", {team}},
          {"actions", std::move(actions)},
          {"attributes", {{{"name", "NAMESPACE"}, {"value", ns}}}}};
}

// Everything but VIEW.
std::vector<std::string> all_actions() {
  std::vector<std::string> names;
  for (int i = 1; i <= static_cast<int>(app_proxy::Action::promote_to); ++i) {
    names.emplace_back(to_string(static_cast<app_proxy::Action>(i)));
  }
  return names;
}

// Applications lie in "argocd", Workflows in "web".
Json rules() {
  Json list = Json::array();
  const auto add = [&](const char* team, const char* applications, const char* workflows,
                       const std::vector<std::string>& actions) {
    list.push_back(rule("gitopsApplications", team, applications, actions));
    list.push_back(rule("workflows", team, workflows, actions));
    list.push_back(rule("workflowTemplates", team, workflows, actions));
  };
  auto everything = all_actions();
  everything.emplace_back("VIEW");
  add("viewers", "argocd", "web", {"VIEW"});
  add("elsewhere", "other", "other", everything);
  add("here", "argocd", "web", everything);
  return list;
}

Task<> serve_workflows(http::Exchange& exchange) {
  (void)co_await exchange.read_body(1024 * 1024);
  http::Response answer{.status = 200,
                        .headers = {{"Content-Type", "application/json"}},
                        .body = R"({"metadata":{"name":"w","namespace":"web"}})"};
  (void)co_await exchange.reply(std::move(answer));
}

bool is_forbidden(const Answer& answer) {
  return answer.status == 200 &&
         answer.json.value("/errors/0/message"_json_pointer, "") == "Forbidden" &&
         answer.json.value("/errors/0/extensions"_json_pointer, Json()) == 403;
}

// A field for administrators says so; a refused object is hidden.
bool is_for_administrators(const Answer& answer) {
  return answer.status == 200 && answer.code() == "FORBIDDEN" &&
         answer.json.value("/errors/0/message"_json_pointer, "") ==
             "only an administrator of the account may do this" &&
         answer.json.value("/errors/0/extensions/statusCode"_json_pointer, 0) == 403;
}

// The doubles behind the daemon: what they are asked for is let through.
struct PermissionWorld {
  PermissionWorld(GitWorld& w, const Executor& executor)
      : base(w),
        argocd(executor, w.cluster),
        workflows(executor, {.address = "127.0.0.1"},
                  [](http::Exchange& exchange) { return serve_workflows(exchange); }) {
    EXPECT_TRUE(argocd.start());
    EXPECT_TRUE(workflows.listen());
    auto& accounts = base.base.platform.accounts();
    for (const auto& [key, id] :
         {std::pair{kViewer, "u-vic"}, {kElsewhere, "u-els"}, {kHere, "u-her"}}) {
      accounts.add(key, FakeAccounts::User{.id = id, .name = id, .account_id = "acc-1"});
    }
    accounts.set_team("viewers", {"u-vic"});
    accounts.set_team("elsewhere", {"u-els"});
    accounts.set_team("here", {"u-her"});
    accounts.set_rules(rules());
    for (const char* app : {"shop-dev", "shop-prod"}) {
      accounts.set_application(app, {"https://git.example.test/acme/shop.git", "HEAD", app});
    }
    put_objects();
  }

  // The Application "shop", which has deployed the Rollout "ui", whose runs are called "run".
  void put_objects() {
    const Json pod{{"kind", "Pod"}, {"namespace", "web"}, {"name", "ui-1"}, {"version", "v1"}};
    argocd.set_tree("shop", {{"nodes", Json::array({pod})}});
    argocd.set_managed_resources("shop", Json::array());
    auto& cluster = base.cluster;
    const k8s::Resource events{"", "v1", "events", "Event"};
    cluster.add_type(events);
    cluster.put(events, {{"apiVersion", "v1"},
                         {"kind", "Event"},
                         {"metadata", {{"name", "e"}, {"namespace", "web"}}},
                         {"involvedObject", {{"kind", "Pod"}, {"name", "ui-1"}}}});
    const Json rollout{{"group", "argoproj.io"},
                       {"version", "v1alpha1"},
                       {"kind", "Rollout"},
                       {"namespace", "web"},
                       {"name", "ui"}};
    cluster.put(k8s::resources::kApplications,
                {{"apiVersion", "argoproj.io/v1alpha1"},
                 {"kind", "Application"},
                 {"metadata", {{"name", "shop"}, {"namespace", "argocd"}}},
                 {"spec", {{"destination", {{"server", "https://kubernetes.default.svc"}}}}},
                 {"status", {{"resources", Json::array({rollout})}}}});
    const Json owner{{"kind", "Rollout"}, {"name", "ui"}, {"uid", "u"}};
    for (const k8s::Resource& run :
         {k8s::resources::kAnalysisRuns,
          k8s::Resource{"argoproj.io", "v1alpha1", "experiments", "Experiment"}}) {
      cluster.add_type(run);
      cluster.put(
          run,
          {{"apiVersion", "argoproj.io/v1alpha1"},
           {"kind", run.kind},
           {"metadata",
            {{"name", "run"}, {"namespace", "web"}, {"ownerReferences", Json::array({owner})}}}});
    }
  }
  Task<> start() {
    base.start({{"ARGO_CD_URL", argocd.url().to_string()},
                {"ARGO_CD_TOKEN", "argocd.double.token"},
                {"ARGO_WORKFLOWS_URL", "http://127.0.0.1:" + std::to_string(workflows.port())},
                {"TRUSTED_PROXIES", "127.0.0.1"},
                {"REPOS_DIR", (folder / "clones").string()},
                {"GIT_USERNAME", "canary-user"},
                {"GIT_PASSWORD", "canary-password"},
                {"USER_CACHE_TTL", "600"}});
    co_await base.base.account_known();
    const auto deadline = deadline_after(std::chrono::seconds(20));
    while (base.base.daemon->status().count_in_state("rules for ", "pending") > 0 &&
           Clock::now() < deadline) {
      co_await sleep_for(std::chrono::milliseconds(20));
    }
  }
  Task<> stop() {
    base.base.client.close_idle();
    co_await workflows.stop(Clock::now());
    co_await argocd.stop();
  }

  GitWorld& base;
  TempDir folder;
  FakeArgoCd argocd;
  http::Server workflows;
};

// A request to a route, and who may have it.
struct RouteCase {
  enum class Who {
    anyone,
    asked,  // as a user; who brings no credential is asked for one by a page
    user,
    ruled,  // whom a rule allows it
    admin,
    runtime,  // the runtime's other programs, by its own token
  };
  const char* method;
  const char* route;  // as route_list() has it
  const char* target;
  Who who;
  const char* body = "";
};

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

TEST(AppProxyPermissions, AC37_EachRouteAsksEachCallerForItsRight) {
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
  in_git_harness([](GitHarness& world) -> Task<> {
    PermissionHarness permission_world(world, co_await asio::this_coro::executor);
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
  in_git_harness([](GitHarness& world) -> Task<> {
    PermissionHarness permission_world(world, co_await asio::this_coro::executor);
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
  in_git_harness([](GitHarness& world) -> Task<> {
    PermissionHarness permission_world(world, co_await asio::this_coro::executor);
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
