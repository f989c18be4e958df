#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "app-proxy/http/routes.hpp"
#include "app-proxy/resolvers/table.hpp"
#include "common/control_plane/access_rules.hpp"
#include "doubles/fake_argocd.hpp"
#include "e2e/control_plane_side.hpp"
#include "e2e/git_harness.hpp"

// Every field and every route of the API with a request for each, and rules that permit them.
namespace gitops::test {

using namespace nlohmann::literals;

inline constexpr const char* kViewer =
    "cccccccccccccccccccc6666.canary-vic-00000000000000000000000000006666";
inline constexpr const char* kElsewhere =
    "cccccccccccccccccccc7777.canary-els-00000000000000000000000000007777";
inline constexpr const char* kHere =
    "cccccccccccccccccccc8888.canary-her-00000000000000000000000000008888";

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

inline constexpr const char* kApp = R"((applicationName:"shop"))";
inline constexpr const char* kWorkflow = R"((namespace:"web",workflowName:"w"))";
inline constexpr const char* kObject =
    R"(application:"shop",kind:"Rollout",group:"argoproj.io",version:"v1alpha1",resourceName:"ui")";
inline constexpr const char* kRestricted =
    R"((args:{appName:"a",appSpecifier:"https://x.test/a/b.git",sourceNamespace:"cf-a",)"
    R"(destinations:[{server:"https://x.test",namespaces:["a"]}],sourceRepos:["*"]}))";
constexpr const char* kRollout = R"(application:"shop",namespace:"web",rolloutName:"ui")";

// A field of the table without a case here fails the test.
inline const std::map<std::string, Case>& cases() {
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

inline nlohmann::json rule(const char* type, const char* team, const char* ns,
                           std::vector<std::string> actions) {
  return {{"id", std::string(type) + team},
          {"accountId", "acc-1"},
          {"entityType", type},
          {"teams", {team}},
          {"actions", std::move(actions)},
          {"attributes", {{{"name", "NAMESPACE"}, {"value", ns}}}}};
}

// Everything but VIEW.
inline std::vector<std::string> all_actions() {
  std::vector<std::string> names;
  for (int i = 1; i <= static_cast<int>(app_proxy::Action::promote_to); ++i) {
    names.emplace_back(to_string(static_cast<app_proxy::Action>(i)));
  }
  return names;
}

// Applications lie in "argocd", Workflows in "web".
inline nlohmann::json rules() {
  nlohmann::json list = nlohmann::json::array();
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

inline Task<> serve_workflows(http::Exchange& exchange) {
  (void)co_await exchange.read_body(1024 * 1024);
  http::Response answer{.status = 200,
                        .headers = {{"Content-Type", "application/json"}},
                        .body = R"({"metadata":{"name":"w","namespace":"web"}})"};
  (void)co_await exchange.reply(std::move(answer));
}

inline bool is_forbidden(const AppProxyHarness::Answer& answer) {
  return answer.status == 200 &&
         answer.json.value("/errors/0/message"_json_pointer, "") == "Forbidden" &&
         answer.json.value("/errors/0/extensions"_json_pointer, nlohmann::json()) == 403;
}

// A field for administrators says so; a refused object is hidden.
inline bool is_for_administrators(const AppProxyHarness::Answer& answer) {
  return answer.status == 200 && answer.code() == "FORBIDDEN" &&
         answer.json.value("/errors/0/message"_json_pointer, "") ==
             "only an administrator of the account may do this" &&
         answer.json.value("/errors/0/extensions/statusCode"_json_pointer, 0) == 403;
}

// The doubles behind the daemon: what they are asked for is let through.
struct PermissionHarness {
  PermissionHarness(GitHarness& w, const Executor& executor,
                    ControlPlaneKind kind = ControlPlaneKind::fake)
      : base(w),
        side(kind, w.base.platform,
             {.engine = store::Engine::sqlite,
              .flags = {},
              .members = {{"u-vic", kViewer}, {"u-els", kElsewhere}, {"u-her", kHere}},
              .teams = {{"viewers", {"u-vic"}}, {"elsewhere", {"u-els"}}, {"here", {"u-her"}}}}),
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
    side.set_rules(rules());
    for (const char* app : {"shop-dev", "shop-prod"}) {
      side.put_application(app, {"https://git.example.test/acme/shop.git", "HEAD", app});
    }
    put_objects();
  }

  // The Application "shop", which has deployed the Rollout "ui", whose runs are called "run".
  void put_objects() {
    const nlohmann::json pod{
        {"kind", "Pod"}, {"namespace", "web"}, {"name", "ui-1"}, {"version", "v1"}};
    argocd.set_tree("shop", {{"nodes", nlohmann::json::array({pod})}});
    argocd.set_managed_resources("shop", nlohmann::json::array());
    auto& cluster = base.cluster;
    const k8s::Resource events{"", "v1", "events", "Event"};
    cluster.add_type(events);
    cluster.put(events, {{"apiVersion", "v1"},
                         {"kind", "Event"},
                         {"metadata", {{"name", "e"}, {"namespace", "web"}}},
                         {"involvedObject", {{"kind", "Pod"}, {"name", "ui-1"}}}});
    const nlohmann::json rollout{{"group", "argoproj.io"},
                                 {"version", "v1alpha1"},
                                 {"kind", "Rollout"},
                                 {"namespace", "web"},
                                 {"name", "ui"}};
    cluster.put(k8s::resources::kApplications,
                {{"apiVersion", "argoproj.io/v1alpha1"},
                 {"kind", "Application"},
                 {"metadata", {{"name", "shop"}, {"namespace", "argocd"}}},
                 {"spec", {{"destination", {{"server", "https://kubernetes.default.svc"}}}}},
                 {"status", {{"resources", nlohmann::json::array({rollout})}}}});
    const nlohmann::json owner{{"kind", "Rollout"}, {"name", "ui"}, {"uid", "u"}};
    for (const k8s::Resource& run :
         {k8s::resources::kAnalysisRuns,
          k8s::Resource{"argoproj.io", "v1alpha1", "experiments", "Experiment"}}) {
      cluster.add_type(run);
      cluster.put(run, {{"apiVersion", "argoproj.io/v1alpha1"},
                        {"kind", run.kind},
                        {"metadata",
                         {{"name", "run"},
                          {"namespace", "web"},
                          {"ownerReferences", nlohmann::json::array({owner})}}}});
    }
  }
  Task<> start() {
    Environment settings{
        {"ARGO_CD_URL", argocd.url().to_string()},
        {"ARGO_CD_TOKEN", "argocd.double.token"},
        {"ARGO_WORKFLOWS_URL", "http://127.0.0.1:" + std::to_string(workflows.port())},
        {"TRUSTED_PROXIES", "127.0.0.1"},
        {"REPOS_DIR", (folder / "clones").string()},
        {"GIT_USERNAME", "canary-user"},
        {"GIT_PASSWORD", "canary-password"},
        {"USER_CACHE_TTL", "600"}};
    settings.merge(side.environment());
    base.start(std::move(settings));
    co_await base.base.account_known();
    const auto deadline = deadline_after(std::chrono::seconds(20));
    while (base.base.daemon->status().count_in_state("rules for ", "pending") > 0 &&
           Clock::now() < deadline) {
      co_await sleep_for(std::chrono::milliseconds(20));
    }
  }
  Task<> stop() {
    base.base.client.close_idle();
    side.stop();
    co_await workflows.stop(Clock::now());
    co_await argocd.stop();
  }

  [[nodiscard]] std::string logs() const { return side.logs(); }

  GitHarness& base;
  ControlPlaneSide side;
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

}  // namespace gitops::test
