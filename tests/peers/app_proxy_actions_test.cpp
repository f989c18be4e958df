// State changes by the running app-proxy on the real controllers: Argo CD, Argo Workflows and Argo Rollouts
// on one cluster, which the daemon enters with the permissions of its ServiceAccount. The control plane is the double,
// to which the running event-reporter tells what has changed.
#include <iostream>
#include <thread>

#include <gmock/gmock.h>

#include "chart/helm.hpp"
#include "common/graphql/socket_session.hpp"
#include "common/http/websocket.hpp"
#include "daemons/reporter_process.hpp"
#include "e2e/app_proxy_harness.hpp"
#include "peers/app_proxy_actions_bed.hpp"
#include "peers/peer_bed.hpp"
#include "peers/peer_rollouts.hpp"
#include "peers/peer_workflows.hpp"
#include "peers/permission_audit.hpp"
#include "support/wait.hpp"

namespace gitops::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;
using Answer = AppProxyHarness::Answer;
using Pointer = Json::json_pointer;
constexpr auto kAnn = AppProxyHarness::kAnn;

// As the step gitops-argocd-sync sends them.
constexpr const char* kSync =
    "query sync($applicationName: String!, $options: SyncOptions, $applicationNamespace: String) "
    "{ sync(applicationName: $applicationName, options: $options, appNamespace: "
    "$applicationNamespace) { metadata { name __typename } __typename } }";

constexpr const char* kRollback =
    "query appRollback($appName: String!, $appNamespace: String!, $historyId: Int!, $dryRun: "
    "Boolean, $prune: Boolean) { appRollback(appName: $appName, appNamespace: $appNamespace, "
    "historyId: $historyId, dryRun: $dryRun, prune: $prune) }";

TEST(ArgoCdActions, SyncRefreshAndRollback) {
  GITOPS_REQUIRE_PEER(Programs);
  const App app("actions-sync");
  in_actions_bed([&](ActionsBed& w) -> Task<> {
    w.allow("argocd", {"VIEW", "SYNC", "APP_ROLLBACK", "TERMINATE_SYNC"});
    co_await w.start();
    co_await w.start_reporters();
    Json asked = co_await w.data(kBob, kSync,
                                 {{"applicationName", app.name},
                                  {"options", {{"prune", true}}},
                                  {"applicationNamespace", "argocd"}});
    EXPECT_EQ(asked, (Json{{"metadata", {{"name", app.name}, {"__typename", "NameOnly"}}},
                           {"__typename", "SyncResponse"}}));
    EXPECT_TRUE(co_await healthy_and_synced(w, app.name));
    EXPECT_EQ(app.image(), "example.test/ui:1");
    EXPECT_EQ(text_at(app.read(), "/status/operationState/operation/sync/prune"), "true");

    bed().git().commit(app.name, {{"ui.yaml", deployment("example.test/ui:2")}}, "second");
    EXPECT_EQ((co_await w.data(kBob,
                               "mutation($n: String!){refresh(applicationName:$n, options:{refresh:"
                               "hard}){metadata{name}}}",
                               {{"n", app.name}}))["metadata"]["name"],
              app.name);
    EXPECT_EQ((co_await w.data(kBob, kStatus, {{"name", app.name}}))["status"]["sync"]["status"],
              "OUT_OF_SYNC");
    (void)co_await w.data(kBob, kSync,
                          {{"applicationName", app.name}, {"options", Json::object()}});
    EXPECT_TRUE(co_await eventually([&] { return app.image() == "example.test/ui:2"; },
                                    "the second image", kTimeLimit));
    EXPECT_TRUE(co_await healthy_and_synced(w, app.name));
    (void)co_await w.data(kBob, kRollback,
                          {{"appName", app.name}, {"appNamespace", "argocd"}, {"historyId", 0}});
    EXPECT_TRUE(co_await eventually([&] { return app.image() == "example.test/ui:1"; },
                                    "the first image again", kTimeLimit));
    constexpr const char* kHistory = "/status/history/2/id";
    co_await w.shown("Application", app.name, "/status/sync/status", "Synced");
    co_await w.shown("Application", app.name, "/status/sync/status", "OutOfSync");
    co_await w.shown("Application", app.name, kHistory, text_at(app.read(), kHistory));
    // Who asked for what stands in the audit stream, also of a query that changes state.
    std::vector<std::string> actions;
    for (const auto& line : co_await w.base.audit(4)) {
      EXPECT_EQ(line["user"], "u-bob");
      actions.push_back(line.value("action", "") + " " + line.value("result", ""));
    }
    EXPECT_THAT(actions, ElementsAre("sync ok", "refresh ok", "sync ok", "appRollback ok"));
    EXPECT_EQ(w.base.audit().back()["subject"]["historyId"], "0");
    EXPECT_THAT(w.base.daemon->log(), Not(HasSubstr(bed().argocd().token())));
  });
}

TEST(ArgoCdActions, AnOperationThatNeverEndsIsTerminated) {
  GITOPS_REQUIRE_PEER(Programs);
  const App app("actions-terminate",
                {{"job.yaml",
                  "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: wait\n  annotations: "
                  "{argocd.argoproj.io/hook: PreSync}\nspec:\n  template:\n    spec:\n"
                  "      restartPolicy: Never\n      nodeSelector: {no: where}\n"
                  "      containers: [{name: main, image: \"example.test/x:1\"}]\n"},
                 {"ui.yaml", deployment("example.test/ui:1")}});
  in_actions_bed([&](ActionsBed& w) -> Task<> {
    w.allow("argocd", {"VIEW", "SYNC", "TERMINATE_SYNC"});
    co_await w.start();
    co_await w.start_reporters();
    constexpr const char* kTerminate =
        "mutation($n: String!){terminateApplicationOperation(applicationName:$n){terminated}}";
    EXPECT_EQ(co_await w.data(kBob, kTerminate, {{"n", app.name}}), (Json{{"terminated", false}}));
    (void)co_await w.data(kBob, kSync, {{"applicationName", app.name}});
    EXPECT_TRUE(co_await eventually(
        [&] { return text_at(app.read(), "/status/operationState/phase") == "Running"; },
        "the operation to run", kTimeLimit));
    const auto second = co_await w.ask(kBob, kSync, {{"applicationName", app.name}});
    EXPECT_EQ(second.code(), "ARGO_CD_OPERATION_IN_PROGRESS") << second.body;
    EXPECT_EQ((co_await w.data(kBob, kStatus, {{"name", app.name}}))["status"]["sync"]["status"],
              "SYNCING");
    EXPECT_EQ(co_await w.data(kBob, kTerminate, {{"n", app.name}}), (Json{{"terminated", true}}));
    EXPECT_TRUE(co_await eventually(
        [&] { return text_at(app.read(), "/status/operationState/phase") == "Failed"; },
        "the operation to fail", kTimeLimit));
    EXPECT_THAT(text_at(app.read(), "/status/operationState/message"), HasSubstr("terminated"));
    co_await w.shown("Application", app.name, "/status/operationState/phase", "Running");
    co_await w.shown("Application", app.name, "/status/operationState/phase", "Failed");
  });
}

TEST(ArgoCdActions, ObjectsAreReadPatchedActedOnAndDeleted) {
  GITOPS_REQUIRE_PEER(Programs);
  const App app("actions-objects");
  in_actions_bed([&](ActionsBed& w) -> Task<> {
    w.allow("argocd", {"VIEW", "SYNC", "RESTART", "DELETE_RESOURCE"});
    co_await w.start();
    co_await w.start_reporters();
    (void)co_await w.data(kBob, kSync, {{"applicationName", app.name}});
    EXPECT_TRUE(co_await healthy_and_synced(w, app.name));
    const Json names{{"application", app.name}, {"kind", "Deployment"}, {"name", "ui"},
                     {"resourceName", "ui"},    {"version", "v1"},      {"group", "apps"}};
    const std::string given =
        "($application: String!, $kind: String!, $name: String, $resourceName: String, $version: "
        "String, $group: String)";
    const std::string passed =
        "application: $application, kind: $kind, name: $name, resourceName: $resourceName, "
        "version: $version, group: $group";
    // As the rollout monitor step asks.
    Json live = co_await w.data(
        kBob,
        "query resource" + given + "{ resource(" + passed + ") { liveState status managed } }",
        names);
    EXPECT_EQ(Json::parse(live.value("liveState", "{}"))["metadata"]["name"], "ui");
    EXPECT_EQ(live["status"], "SYNCED");
    EXPECT_EQ(live["managed"], true);
    Json actions = co_await w.data(
        kBob, "query" + given + "{ resourceActions(" + passed + ") { name disabled } }", names);
    EXPECT_THAT(actions.dump(), HasSubstr(R"({"disabled":false,"name":"restart"})"));
    const std::string act = "mutation" + given + "{ runResourceAction(" + passed + ", action: ";
    (void)co_await w.data(kBob, act + "\"restart\") }", names);
    EXPECT_TRUE(co_await eventually(
        [&] {
          return object("/apis/apps/v1/namespaces/" + app.name + "/deployments/ui")
              .contains(Pointer("/spec/template/metadata/annotations/"
                                "kubectl.kubernetes.io~1restartedAt"));
        },
        "the restart", kTimeLimit));
    constexpr const char* kRestarted =
        "/spec/template/metadata/annotations/kubectl.kubernetes.io~1restartedAt";
    co_await w.shown(
        "Deployment", "ui", kRestarted,
        text_at(object("/apis/apps/v1/namespaces/" + app.name + "/deployments/ui"), kRestarted));
    EXPECT_TRUE(ActionsBed::is_forbidden(co_await w.ask(kBob, act + "\"pause\") }", names)));
    // No rule is about patches.
    const std::string patch = "mutation" + given + "{ patchResource(" + passed +
                              ", patch: \"{\\\"spec\\\":{\\\"replicas\\\":2}}\") { manifest } }";
    EXPECT_EQ((co_await w.ask(kBob, patch, names)).code(), "FORBIDDEN");
    Json patched = co_await w.data(kAnn, patch, names);
    EXPECT_EQ(Json::parse(patched.value("manifest", "{}"))["spec"]["replicas"], 2);
    co_await w.shown("Deployment", "ui", "/spec/replicas", "2");
    EXPECT_EQ(
        co_await w.data(kBob, "mutation" + given + "{ deleteResource(" + passed + ") }", names),
        Json());
    EXPECT_TRUE(
        co_await eventually([&] { return app.image().empty(); }, "the deletion", kTimeLimit));
    co_await w.shown("Application", app.name, "/status/sync/status", "OutOfSync");

    constexpr const char* kDelete =
        "mutation($n: String!){deleteArgoApplication(applicationName:$n)}";
    EXPECT_EQ((co_await w.ask(kBob, kDelete, {{"n", app.name}})).code(), "FORBIDDEN");
    EXPECT_EQ(co_await w.data(kAnn, kDelete, {{"n", app.name}}), Json());
    EXPECT_TRUE(co_await eventually([&] { return app.read().is_null(); },
                                    "the end of the application", kTimeLimit));
    co_await w.shown("Application", app.name, "deleted", "");
    const auto gone = co_await w.ask(kAnn, kDelete, {{"n", app.name}});
    EXPECT_EQ(gone.code(), "NOT_FOUND_ERROR") << gone.body;
  });
}

TEST(ArgoCdActions, AC34_RefusalsAreClearAndTellStrangersNothing) {
  GITOPS_REQUIRE_PEER(Programs);
  const App app("actions-automated", {{"ui.yaml", deployment("example.test/ui:1")}}, true);
  in_actions_bed([&](ActionsBed& w) -> Task<> {
    w.allow("argocd", {"VIEW", "APP_ROLLBACK"});
    co_await w.start();
    EXPECT_TRUE(co_await healthy_and_synced(w, app.name));
    const auto rollback = co_await w.ask(
        kBob, kRollback, {{"appName", app.name}, {"appNamespace", "argocd"}, {"historyId", 0}});
    EXPECT_EQ(rollback.code(), "ARGO_CD_AUTO_SYNC") << rollback.body;
    // Without the right, and without the application: the same.
    const auto denied = co_await w.ask(kBob, kSync, {{"applicationName", app.name}});
    const auto absent = co_await w.ask(kBob, kSync, {{"applicationName", "absent"}});
    EXPECT_TRUE(ActionsBed::is_forbidden(denied)) << denied.body;
    EXPECT_EQ(denied.body, absent.body);
    EXPECT_TRUE(ActionsBed::is_forbidden(co_await w.ask(kAnn, kStatus, {{"name", "absent"}})));
    const auto missing = co_await w.ask(kAnn, kSync, {{"applicationName", "absent"}});
    EXPECT_THAT(missing.body, HasSubstr("NOT_FOUND_ERROR"));
    for (const char* name : {"../x", "a/b", "", "%2e%2e", "A"}) {
      const auto odd = co_await w.ask(kAnn, kSync, {{"applicationName", name}});
      EXPECT_EQ(odd.code(), "INVALID_ARGUMENT") << name;
    }
    // A rule that is taken back counts after the next refresh.
    w.allow("argocd", {"VIEW"});
    EXPECT_TRUE(co_await eventually(
        [&, begun = Clock::now()] { return Clock::now() - begun > std::chrono::seconds(2); },
        "two refreshes of the rules", kTimeLimit));
    EXPECT_TRUE(ActionsBed::is_forbidden(co_await w.ask(
        kBob, kRollback, {{"appName", app.name}, {"appNamespace", "argocd"}, {"historyId", 0}})));
  });
}

TEST(ArgoCdActions, AC28_WithoutAnArgoCdTheAnswerSaysSoAndQuotesNoToken) {
  GITOPS_REQUIRE_PEER(Programs);
  in_actions_bed([](ActionsBed& w) -> Task<> {
    co_await w.start({{"ARGO_CD_URL", ""}, {"ARGO_CD_TOKEN", ""}});
    const auto answer = co_await w.ask(kAnn, kSync, {{"applicationName", "x"}});
    EXPECT_EQ(answer.code(), "ARGO_NOT_AVAILABLE");
    EXPECT_THAT(answer.body, HasSubstr("ARGO_CD_URL"));
  });
  in_actions_bed([](ActionsBed& w) -> Task<> {
    co_await w.start({{"ARGO_CD_URL", "http://127.0.0.1:1"}});
    EXPECT_EQ((co_await w.ask(kAnn, kSync, {{"applicationName", "x"}})).code(),
              "ARGO_NOT_AVAILABLE");
  });
  in_actions_bed([](ActionsBed& w) -> Task<> {
    co_await w.start({{"ARGO_CD_TOKEN", "canary.no-such.token"}});
    const auto answer = co_await w.ask(kAnn, kSync, {{"applicationName", "x"}});
    EXPECT_EQ(answer.status, 200) << "the caller's own session is fine";
    EXPECT_EQ(answer.code(), "ARGO_NOT_AVAILABLE");
    EXPECT_TRUE(
        co_await eventually([&] { return w.base.daemon->log().contains("an action failed"); },
                            "the line about it", kTimeLimit));
  });
}

TEST(ArgoCdActions, AnAccountsPasswordServesInPlaceOfAToken) {
  GITOPS_REQUIRE_PEER(Programs);
  const App app("actions-password");
  in_actions_bed([&](ActionsBed& w) -> Task<> {
    co_await w.start({{"ARGO_CD_TOKEN", ""},
                      {"ARGO_CD_USERNAME", "admin"},
                      {"ARGO_CD_PASSWORD", bed().argocd().admin_password()}});
    EXPECT_TRUE(co_await eventually(
        [&] { return w.base.daemon->status().state("Argo CD") == "ok"; }, "the login", kTimeLimit));
    (void)co_await w.data(kAnn, kSync, {{"applicationName", app.name}});
    EXPECT_TRUE(co_await eventually([&] { return !app.image().empty(); }, "the sync", kTimeLimit));
    EXPECT_THAT(w.base.daemon->log(), Not(HasSubstr(bed().argocd().admin_password())));
  });
}

#ifndef GITOPS_ARGOCD_2

constexpr const char* kImages = "app-proxy.image-enrichment.enabled=true";

constexpr const char* kReportAccount = "codefresh-image-enrichment-sa";

std::set<PermissionUse> permissions(const std::string& ns, const std::vector<std::string>& values) {
  std::set<PermissionUse> named;
  for (auto [account, group, resource, verb] : permissions_granted(rendered(ns, values), ns)) {
    // The Role that is not named after its account.
    if (account == "cap-app-proxy-enrichment") account = kReportAccount;
    named.emplace(account, group, resource, verb);
  }
  return named;
}

PeerRollouts& rollouts() {
  static PeerRollouts peer(bed().cluster());
  return peer;
}
PeerWorkflows& workflows() {
  static PeerWorkflows peer(bed().cluster(), {PeerWorkflows::Auth::client});
  return peer;
}

// --- Argo Workflows ----------------------------------------------------------------------------

struct Space {
  explicit Space(const std::string& prefix) : ns(prefix + "-" + random_hex(6)) {
    bed().cluster().create_namespace(ns);
  }
  std::string ns;
};

Environment with_workflows() {
  return {{"ARGO_WORKFLOWS_URL", workflows().url(PeerWorkflows::Auth::client)},
          {"ARGO_WORKFLOWS_TOKEN", account().token},
          {"NODE_EXTRA_CA_CERTS", bed().cluster().ca_file().string()}};
}
Json workflow(const Space& space, const std::string& name) {
  return object("/apis/argoproj.io/v1alpha1/namespaces/" + space.ns + "/workflows/" + name);
}
Task<bool> has_phase(const Space& space, std::string name, std::string phase) {
  const bool came = co_await eventually(
      [&] { return text_at(workflow(space, name), "/status/phase") == phase; }, phase, kTimeLimit);
  if (!came) std::cerr << workflow(space, name).dump() << "\n";
  co_return came;
}
// Its labels for the role of a user: id, address and name.
std::string labels_of(const Json& workflow, const std::string& role) {
  const auto label = [&](const std::string& suffix) {
    return text_at(workflow, ("/metadata/labels/workflows.argoproj.io~1" + role + suffix).c_str());
  };
  return label("") + " " + label("-email") + " " + label("-preferred-username");
}
constexpr const char* kTwoWaits = R"({"entrypoint":"main","templates":[
  {"name":"main","steps":[[{"name":"one","template":"wait"}],[{"name":"two","template":"wait"}]]},
  {"name":"wait","suspend":{}}]})";

// A step whose pod gets no node, so that the test says how it ends.
constexpr const char* kNoRoom = R"({"entrypoint":"main","templates":[
  {"name":"main","nodeSelector":{"no":"where"},
   "container":{"image":"example.test/x:1","command":["true"]}}]})";

TEST(WorkflowActionsOfUsers, TheServiceNowPluginResumesAndTerminates) {
  GITOPS_REQUIRE_PEER(Programs);
  (void)workflows();
  const Space space("wf");
  workflows().submit(space.ns, "one", PeerWorkflows::one_wait());
  workflows().submit(space.ns, "two", PeerWorkflows::one_wait());
  in_actions_bed([&](ActionsBed& w) -> Task<> {
    w.allow(space.ns, {"TERMINATE", "RESTART"});
    co_await w.start(with_workflows());
    co_await w.start_reporters();
    for (const char* name : {"one", "two"}) EXPECT_TRUE(co_await has_phase(space, name, "Running"));
    const auto plugin = [&](const std::string& verb, const char* name) {
      return w.data(kBob,
                    "mutation($namespace: String!, $workflowName: String!){" + verb +
                        "(namespace: $namespace, workflowName: $workflowName)}",
                    {{"namespace", space.ns}, {"workflowName", name}});
    };
    EXPECT_EQ(co_await plugin("resumeWorkflow", "one"),
              (Json{{"metadata", {{"name", "one"}, {"namespace", space.ns}}},
                    {"changed", true},
                    {"message", ""}}));
    EXPECT_TRUE(co_await has_phase(space, "one", "Succeeded"));
    (void)co_await plugin("terminateWorkflow", "two");
    EXPECT_TRUE(co_await has_phase(space, "two", "Failed"));
    EXPECT_EQ(text_at(workflow(space, "two"), "/spec/shutdown"), "Terminate");
    // Who did it, where the server alone would have named app-proxy's account.
    EXPECT_EQ(labels_of(workflow(space, "two"), "actor"), "u-bob  Bob");
    EXPECT_EQ(text_at(workflow(space, "two"), "/metadata/labels/workflows.argoproj.io~1action"),
              "Terminate");
    EXPECT_EQ((co_await plugin("terminateWorkflow", "two"))["changed"], false);
    co_await w.shown("Workflow", "one", "/status/phase", "Succeeded");
    co_await w.shown("Workflow", "two", "/status/phase", "Failed");
    co_await w.shown("Workflow", "two", "/metadata/labels/workflows.argoproj.io~1actor", "u-bob");
  });
}

TEST(WorkflowActionsOfUsers, EveryOtherActionChangesTheObjectAsArgoDoes) {
  GITOPS_REQUIRE_PEER(Programs);
  (void)workflows();
  const Space space("wf");
  for (const char* name : {"stopped", "suspended", "deleted", "set"}) {
    workflows().submit(space.ns, name, kTwoWaits);
  }
  workflows().submit(space.ns, "retried", kNoRoom);
  in_actions_bed([&](ActionsBed& w) -> Task<> {
    w.allow(space.ns, {"TERMINATE", "STOP", "RESTART", "RESUBMIT", "CREATE"});
    co_await w.start(with_workflows());
    co_await w.start_reporters();
    for (const char* name : {"stopped", "suspended", "deleted", "set"}) {
      EXPECT_TRUE(co_await has_phase(space, name, "Running"));
    }
    const auto act = [&](const std::string& verb, const std::string& name,
                         const std::string& more = {}, const std::string& selection = {}) {
      return w.data(kBob, "mutation{" + verb + "(namespace:\"" + space.ns + "\",workflowName:\"" +
                              name + "\"" + more + ")" + selection + "}");
    };
    (void)co_await act("suspendWorkflow", "suspended");
    EXPECT_EQ(text_at(workflow(space, "suspended"), "/spec/suspend"), "true");
    EXPECT_EQ((co_await act("suspendWorkflow", "suspended"))["changed"], false);
    co_await w.shown("Workflow", "suspended", "/spec/suspend", "true");
    const auto before = w.base.platform.reports().size();
    (void)co_await act("resumeWorkflow", "suspended");
    EXPECT_EQ(text_at(workflow(space, "suspended"), "/spec/suspend"), "");
    co_await w.shown("Workflow", "suspended", "/spec/suspend", "null", before);

    (void)co_await act("stopWorkflow", "stopped", ",message:\"enough\"");
    EXPECT_TRUE(co_await has_phase(space, "stopped", "Failed"));
    EXPECT_EQ(text_at(workflow(space, "stopped"), "/spec/shutdown"), "Stop");

    (void)co_await act("setWorkflow", "set",
                       ",nodeFieldSelector:\"displayName=one\",phase:\"Failed\",message:\"no\"");
    EXPECT_TRUE(co_await has_phase(space, "set", "Failed"));

    const auto early = co_await w.ask(
        kBob, "mutation{retryWorkflow(namespace:\"" + space.ns + "\",workflowName:\"deleted\")}");
    EXPECT_EQ(early.code(), "NOT_POSSIBLE_NOW") << early.body;
    EXPECT_TRUE(co_await eventually(
        [&] {
          return bed()
              .cluster()
              .request("PATCH", "/api/v1/namespaces/" + space.ns + "/pods/retried/status",
                       R"({"status":{"phase":"Failed","message":"broken"}})",
                       "application/merge-patch+json")
              .ok();
        },
        "the pod of the step", kTimeLimit));
    EXPECT_TRUE(co_await eventually(
        [&] {
          const auto phase = text_at(workflow(space, "retried"), "/status/phase");
          return phase == "Failed" || phase == "Error";
        },
        "the failure", kTimeLimit));
    (void)co_await act("retryWorkflow", "retried");
    EXPECT_TRUE(co_await has_phase(space, "retried", "Running"));

    Json again = co_await act("resubmitWorkflow", "stopped", "", "{newWorkflowName}");
    const auto name = again.value("newWorkflowName", "");
    EXPECT_THAT(name, testing::StartsWith("stopped-"));
    EXPECT_TRUE(co_await has_phase(space, name, "Running"));
    EXPECT_EQ(text_at(workflow(space, name),
                      "/metadata/labels/workflows.argoproj.io~1resubmitted-from-workflow"),
              "stopped");
    EXPECT_EQ(labels_of(workflow(space, name), "creator"), "u-bob  Bob");

    (void)co_await act("deleteWorkflow", "deleted");
    EXPECT_TRUE(co_await eventually([&] { return workflow(space, "deleted").is_null(); },
                                    "the deletion", kTimeLimit));

    bed().cluster().apply(
        "apiVersion: argoproj.io/v1alpha1\nkind: WorkflowTemplate\nmetadata: {name: tpl, "
        "namespace: " +
        space.ns +
        "}\nspec:\n  entrypoint: main\n  arguments: {parameters: [{name: who, value: nobody}]}\n"
        "  templates: [{name: main, suspend: {}}]\n");
    Json made = co_await w.data(
        kBob, "mutation{createWorkflowFromWorkflowTemplate(namespace:\"" + space.ns +
                  "\",workflowTemplateName:\"tpl\",parameters:[{name:\"who\",value:\"bob\"}]){"
                  "newWorkflowName}}");
    const auto submitted = made.value("newWorkflowName", "");
    EXPECT_THAT(submitted, testing::StartsWith("tpl-"));
    EXPECT_EQ(text_at(workflow(space, submitted), "/spec/arguments/parameters/0/value"), "bob");
    EXPECT_EQ(labels_of(workflow(space, submitted), "creator"), "u-bob  Bob");
    // A user with an address, after one without.
    (void)co_await w.data(kAnn, "mutation{stopWorkflow(namespace:\"" + space.ns +
                                    "\",workflowName:\"" + submitted + "\")}");
    EXPECT_EQ(labels_of(workflow(space, submitted), "actor"), "u-ann ann.at.example.test Ann");

    co_await w.shown("Workflow", "stopped", "/spec/shutdown", "Stop");
    co_await w.shown("Workflow", "stopped", "/status/phase", "Failed");
    co_await w.shown("Workflow", "set", "/status/phase", "Failed");
    co_await w.shown("Workflow", "retried", "/status/phase", "Running");
    co_await w.shown("Workflow", "deleted", "deleted", "");
    for (const auto& made_by_bob : {name, submitted}) {
      co_await w.shown("Workflow", made_by_bob, "/metadata/labels/workflows.argoproj.io~1creator",
                       "u-bob");
    }
  });
}

TEST(WorkflowActionsOfUsers, NeedARuleForTheNamespace) {
  GITOPS_REQUIRE_PEER(Programs);
  (void)workflows();
  const Space space("wf");
  workflows().submit(space.ns, "one", PeerWorkflows::one_wait());
  in_actions_bed([&](ActionsBed& w) -> Task<> {
    w.allow("elsewhere", {"TERMINATE"});
    co_await w.start(with_workflows());
    EXPECT_TRUE(co_await has_phase(space, "one", "Running"));
    const auto terminate = [&](const char* user, const std::string& name) {
      return w.ask(user, "mutation{terminateWorkflow(namespace:\"" + space.ns +
                             "\",workflowName:\"" + name + "\")}");
    };
    const auto denied = co_await terminate(kBob, "one");
    EXPECT_TRUE(ActionsBed::is_forbidden(denied)) << denied.body;
    EXPECT_EQ(denied.body, (co_await terminate(kBob, "absent")).body);
    EXPECT_EQ((co_await terminate(kAnn, "absent")).code(), "NOT_FOUND_ERROR");
    EXPECT_EQ(text_at(workflow(space, "one"), "/status/phase"), "Running");
    const auto off = co_await w.ask(
        kAnn, "mutation{terminateWorkflow(namespace:\"../x\",workflowName:\"one\")}");
    EXPECT_EQ(off.code(), "INVALID_ARGUMENT");
  });
}

// --- Argo Rollouts -----------------------------------------------------------------------------

Json rollout(const Space& space) {
  return object("/apis/argoproj.io/v1alpha1/namespaces/" + space.ns + "/rollouts/shop");
}
void apply_rollout(const Space& space, const std::string& image) {
  bed().cluster().kubectl_ok(
      {"--namespace", space.ns, "apply", "--server-side", "--force-conflicts", "--filename", "-"},
      PeerRollouts::canary("shop", image));
}
Task<bool> is_in(const Space& space, std::string phase) {
  co_return co_await eventually([&] { return rollouts().phase(space.ns, "shop") == phase; }, phase,
                                kTimeLimit);
}
std::string image_of(const Space& space) {
  return text_at(rollout(space), "/spec/template/spec/containers/0/image");
}

TEST(RolloutActionsOfUsers, EveryActionChangesTheRolloutAsTheCommandLineDoes) {
  GITOPS_REQUIRE_PEER(Programs);
  (void)rollouts();
  const Space space("ro");
  apply_rollout(space, "example.test/shop:1");
  in_actions_bed([&](ActionsBed& w) -> Task<> {
    co_await w.start();
    co_await w.start_reporters();
    const auto act = [&](const std::string& action) {
      return w.data(kAnn, "mutation{rolloutAction(namespace:\"" + space.ns +
                              "\",rolloutName:\"shop\",action:" + action + "){changed message}}");
    };
    EXPECT_TRUE(co_await is_in(space, "Healthy"));
    EXPECT_EQ((co_await act("PROMOTE_FULL"))["changed"], false);
    EXPECT_EQ((co_await act("ABORT"))["changed"], false);
    EXPECT_EQ((co_await act("RESUME"))["message"], "the rollout is not paused");

    // A new version by its image; the first step, then a pause.
    const auto set_image = [&](const std::string& image) {
      return w.data(kAnn, "mutation{setRolloutImage(namespace:\"" + space.ns +
                              "\",rolloutName:\"shop\",container:\"main\",image:\"" + image +
                              "\"){changed}}");
    };
    EXPECT_EQ((co_await set_image("example.test/shop:2"))["changed"], true);
    EXPECT_EQ((co_await set_image("example.test/shop:2"))["changed"], false);
    EXPECT_TRUE(co_await is_in(space, "Paused"));
    EXPECT_EQ((co_await act("PROMOTE"))["changed"], true);
    EXPECT_TRUE(co_await is_in(space, "Healthy"));

    (void)co_await set_image("example.test/shop:3");
    EXPECT_TRUE(co_await is_in(space, "Paused"));
    EXPECT_EQ((co_await act("ABORT"))["changed"], true);
    EXPECT_TRUE(co_await is_in(space, "Degraded"));
    EXPECT_EQ((co_await act("ABORT"))["changed"], false);
    EXPECT_EQ((co_await act("RETRY"))["changed"], true);
    EXPECT_TRUE(co_await is_in(space, "Paused"));
    EXPECT_EQ((co_await act("PROMOTE_FULL"))["changed"], true);
    EXPECT_TRUE(co_await is_in(space, "Healthy"));

    (void)co_await set_image("example.test/shop:4");
    EXPECT_TRUE(co_await is_in(space, "Paused"));
    EXPECT_EQ((co_await act("SKIP_CURRENT_STEP"))["changed"], true);
    EXPECT_TRUE(co_await is_in(space, "Healthy"));
    (void)co_await set_image("example.test/shop:5");
    EXPECT_TRUE(co_await is_in(space, "Paused"));
    EXPECT_EQ((co_await act("SKIP_ALL_STEPS"))["changed"], true);
    EXPECT_TRUE(co_await is_in(space, "Healthy"));

    EXPECT_EQ((co_await act("PAUSE"))["changed"], true);
    EXPECT_EQ(text_at(rollout(space), "/spec/paused"), "true");
    EXPECT_EQ((co_await act("PAUSE"))["changed"], false);
    EXPECT_TRUE(co_await is_in(space, "Paused"));
    EXPECT_EQ((co_await act("RESUME"))["changed"], true);
    EXPECT_TRUE(co_await is_in(space, "Healthy"));

    EXPECT_EQ((co_await act("RESTART"))["changed"], true);
    EXPECT_TRUE(co_await eventually(
        [&] {
          const auto wanted = text_at(rollout(space), "/spec/restartAt");
          return !wanted.empty() && text_at(rollout(space), "/status/restartedAt") == wanted;
        },
        "the restart", kTimeLimit));

    // Back to the version before, then to the first one.
    const auto undo = [&](const std::string& revision) {
      return w.data(kAnn, "mutation{rolloutRollback(namespace:\"" + space.ns +
                              "\",rolloutName:\"shop\"" + revision + "){rollout newRevision}}");
    };
    EXPECT_EQ(co_await undo(""), (Json{{"rollout", "shop"}, {"newRevision", 6}}));
    EXPECT_EQ(image_of(space), "example.test/shop:4");
    EXPECT_TRUE(co_await eventually(
        [&] {
          return text_at(rollout(space), "/metadata/annotations/rollout.argoproj.io~1revision") ==
                 "6";
        },
        "the sixth revision", kTimeLimit));
    EXPECT_EQ((co_await undo(",rolloutRevision:1"))["newRevision"], 7);
    EXPECT_EQ(image_of(space), "example.test/shop:1");
    const auto none =
        co_await w.ask(kAnn, "mutation{rolloutRollback(namespace:\"" + space.ns +
                                 "\",rolloutName:\"shop\",rolloutRevision:99){newRevision}}");
    EXPECT_EQ(none.code(), "NOT_POSSIBLE_NOW") << none.body;

    const std::string image = "/spec/template/spec/containers/0/image";
    for (int version = 1; version <= 5; ++version) {
      co_await w.shown("Rollout", "shop", image, "example.test/shop:" + std::to_string(version));
    }
    for (const char* phase : {"Paused", "Healthy", "Degraded"}) {
      co_await w.shown("Rollout", "shop", "/status/phase", phase);
    }
    co_await w.shown("Rollout", "shop", "/status/abort", "true");
    co_await w.shown("Rollout", "shop", "/spec/paused", "true");
    co_await w.shown("Rollout", "shop", "/spec/restartAt",
                     text_at(rollout(space), "/spec/restartAt"));
    co_await w.shown("Rollout", "shop", "/metadata/annotations/rollout.argoproj.io~1revision", "7");
  });
}

TEST(RolloutActionsOfUsers, UndoChangesTheDeploymentThatARolloutRefersTo) {
  GITOPS_REQUIRE_PEER(Programs);
  (void)rollouts();
  const Space space("ro");
  const auto apply = [&](const std::string& image) {
    bed().cluster().kubectl_ok(
        {"--namespace", space.ns, "apply", "--server-side", "--force-conflicts", "--filename", "-"},
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: base}\nspec:\n  replicas: 0\n"
        "  selector: {matchLabels: {app: shop}}\n  template:\n    metadata: {labels: {app: shop}}\n"
        "    spec: {containers: [{name: main, image: \"" +
            image +
            "\"}]}\n---\napiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: "
            "shop}\nspec:\n  replicas: 1\n  selector: {matchLabels: {app: shop}}\n"
            "  workloadRef: {apiVersion: apps/v1, kind: Deployment, name: base}\n"
            "  strategy: {canary: {steps: [{setWeight: 100}]}}\n");
  };
  const auto revision = [&] {
    return text_at(rollout(space), "/metadata/annotations/rollout.argoproj.io~1revision");
  };
  apply("example.test/shop:1");
  in_actions_bed([&](ActionsBed& w) -> Task<> {
    co_await w.start();
    co_await w.start_reporters();
    EXPECT_TRUE(co_await is_in(space, "Healthy"));
    apply("example.test/shop:2");
    EXPECT_TRUE(co_await eventually([&] { return revision() == "2"; }, "revision 2", kTimeLimit));
    EXPECT_TRUE(co_await is_in(space, "Healthy"));
    (void)co_await w.data(kAnn, "mutation{rolloutRollback(namespace:\"" + space.ns +
                                    "\",rolloutName:\"shop\"){newRevision}}");
    EXPECT_EQ(text_at(object("/apis/apps/v1/namespaces/" + space.ns + "/deployments/base"),
                      "/spec/template/spec/containers/0/image"),
              "example.test/shop:1");
    EXPECT_TRUE(co_await eventually([&] { return revision() == "3"; }, "revision 3", kTimeLimit));
    // The pod template is the Deployment's; of the Rollout its revision tells the change.
    constexpr const char* kRevision = "/metadata/annotations/rollout.argoproj.io~1revision";
    co_await w.shown("Rollout", "shop", kRevision, "3");
    (void)co_await w.data(kAnn, "mutation{setRolloutImage(namespace:\"" + space.ns +
                                    "\",rolloutName:\"shop\",container:\"*\",image:"
                                    "\"example.test/shop:9\"){changed}}");
    EXPECT_EQ(text_at(object("/apis/apps/v1/namespaces/" + space.ns + "/deployments/base"),
                      "/spec/template/spec/containers/0/image"),
              "example.test/shop:9");
    co_await w.shown("Rollout", "shop", kRevision, "4");
  });
}

TEST(RolloutActionsOfUsers, TheImageIsSetInWhateverARolloutRefersTo) {
  GITOPS_REQUIRE_PEER(Programs);
  (void)rollouts();
  const Space space("ro");
  const Json pod{
      {"metadata", {{"labels", {{"app", "shop"}}}}},
      {"spec", {{"containers", {{{"name", "main"}, {"image", "example.test/shop:1"}}}}}}};
  const Json selector{{"matchLabels", {{"app", "shop"}}}};
  const auto make = [&](const char* version, const char* kind, const char* name, Json rest) {
    rest["apiVersion"] = version;
    rest["kind"] = kind;
    rest["metadata"] = {{"name", name}, {"namespace", space.ns}};
    bed().cluster().apply(rest.dump());
  };
  make("apps/v1", "ReplicaSet", "set",
       {{"spec", {{"replicas", 0}, {"selector", selector}, {"template", pod}}}});
  make("v1", "PodTemplate", "template", {{"template", pod}});
  struct Reference {
    const char* rollout;
    const char* version;
    const char* kind;
    const char* name;
    std::string path;
    const char* image;
  };
  const std::vector<Reference> references{
      {"by-set", "apps/v1", "ReplicaSet", "set",
       "/apis/apps/v1/namespaces/" + space.ns + "/replicasets/set",
       "/spec/template/spec/containers/0/image"},
      {"by-template", "v1", "PodTemplate", "template",
       "/api/v1/namespaces/" + space.ns + "/podtemplates/template",
       "/template/spec/containers/0/image"}};
  for (const auto& one : references) {
    make("argoproj.io/v1alpha1", "Rollout", one.rollout,
         {{"spec",
           {{"replicas", 0},
            {"selector", selector},
            {"workloadRef", {{"apiVersion", one.version}, {"kind", one.kind}, {"name", one.name}}},
            {"strategy", {{"canary", Json::object()}}}}}});
  }
  in_actions_bed([&](ActionsBed& w) -> Task<> {
    co_await w.start();
    for (const auto& one : references) {
      const auto done = co_await w.data(
          kAnn, "mutation{setRolloutImage(namespace:\"" + space.ns + "\",rolloutName:\"" +
                    one.rollout + "\",container:\"main\",image:\"example.test/shop:2\"){changed}}");
      EXPECT_EQ(done, (Json{{"changed", true}})) << one.kind;
      EXPECT_EQ(text_at(object(one.path), one.image), "example.test/shop:2") << one.kind;
    }
  });
}

// Experiments are no kind of mode `resource`; an Application reports those that it deploys.
TEST(RolloutActionsOfUsers, AnExperimentIsTerminated) {
  GITOPS_REQUIRE_PEER(Programs);
  (void)rollouts();
  const Json pod{{"metadata", {{"labels", {{"app", "try"}}}}},
                 {"spec", {{"containers", {{{"name", "main"}, {"image", "example.test/try:1"}}}}}}};
  const Json experiment{{"apiVersion", "argoproj.io/v1alpha1"},
                        {"kind", "Experiment"},
                        {"metadata", {{"name", "try"}}},
                        {"spec",
                         {{"templates",
                           {{{"name", "one"},
                             {"selector", {{"matchLabels", {{"app", "try"}}}}},
                             {"template", pod}}}}}}};
  const App app("actions-experiment", {{"try.json", experiment.dump()}});
  in_actions_bed([&](ActionsBed& w) -> Task<> {
    co_await w.start();
    co_await w.start_reporters();
    (void)co_await w.data(kAnn, kSync, {{"applicationName", app.name}});
    const auto path = "/apis/argoproj.io/v1alpha1/namespaces/" + app.name + "/experiments/try";
    EXPECT_TRUE(
        co_await eventually([&] { return text_at(object(path), "/status/phase") == "Running"; },
                            "the experiment", kTimeLimit));
    const auto done = co_await w.data(kAnn, "mutation{terminateExperiment(namespace:\"" + app.name +
                                                "\",name:\"try\"){changed message}}");
    EXPECT_EQ(done["changed"], true) << done;
    EXPECT_TRUE(
        co_await eventually([&] { return text_at(object(path), "/status/phase") == "Successful"; },
                            "its end", kTimeLimit));
    co_await w.shown("Experiment", "try", "/spec/terminate", "true");
    co_await w.shown("Experiment", "try", "/status/phase", "Successful");
  });
}

TEST(RolloutActionsOfUsers, AUsersRightIsThatForTheApplicationWhichHasDeployedIt) {
  GITOPS_REQUIRE_PEER(Programs);
  (void)rollouts();
  const App app("actions-rollout",
                {{"shop.json", PeerRollouts::canary("shop", "example.test/shop:1")}});
  const App other("actions-other");
  in_actions_bed([&](ActionsBed& w) -> Task<> {
    w.allow("argocd", {"VIEW", "SYNC", "ROLLOUT_PAUSE"});
    co_await w.start();
    (void)co_await w.data(kBob, kSync, {{"applicationName", app.name}});
    EXPECT_TRUE(co_await healthy_and_synced(w, app.name));
    const auto act = [&](const std::string& named, const std::string& action) {
      return w.ask(kBob, "mutation{rolloutAction(" + named + "namespace:\"" + app.name +
                             "\",rolloutName:\"shop\",action:" + action + "){changed}}");
    };
    const std::string own = "application:\"" + app.name + "\",";
    EXPECT_TRUE(ActionsBed::is_forbidden(co_await act("", "PAUSE")));
    EXPECT_TRUE(ActionsBed::is_forbidden(co_await act(own, "ABORT")));
    const auto paused = co_await act(own, "PAUSE");
    EXPECT_EQ(paused.json.value(Pointer("/data/rolloutAction/changed"), false), true)
        << paused.body;
    EXPECT_EQ(
        text_at(object("/apis/argoproj.io/v1alpha1/namespaces/" + app.name + "/rollouts/shop"),
                "/spec/paused"),
        "true");
    // An object that another application has deployed.
    EXPECT_TRUE(
        ActionsBed::is_forbidden(co_await act("application:\"" + other.name + "\",", "PAUSE")));
  });
}

TEST(RolloutActionsOfUsers, AnAnalysisRunIsTerminated) {
  GITOPS_REQUIRE_PEER(Programs);
  (void)rollouts();
  const Space space("ro");
  Json run = Json::parse(PeerRollouts::job_analysis("check"));
  run["spec"]["metrics"][0]["interval"] = "1h";
  run["spec"]["metrics"][0]["count"] = 5;
  bed().cluster().kubectl_ok({"--namespace", space.ns, "create", "--filename", "-"}, run.dump());
  in_actions_bed([&](ActionsBed& w) -> Task<> {
    co_await w.start();
    co_await w.start_reporters();
    const auto path = "/apis/argoproj.io/v1alpha1/namespaces/" + space.ns + "/analysisruns/check";
    EXPECT_TRUE(
        co_await eventually([&] { return text_at(object(path), "/status/phase") == "Running"; },
                            "the run", kTimeLimit));
    const auto end = [&] {
      return w.data(kAnn, "mutation{terminateAnalysisRun(namespace:\"" + space.ns +
                              "\",name:\"check\"){changed message}}");
    };
    EXPECT_EQ((co_await end())["changed"], true);
    EXPECT_TRUE(
        co_await eventually([&] { return text_at(object(path), "/status/phase") != "Running"; },
                            "its end", kTimeLimit));
    EXPECT_EQ(text_at(object(path), "/spec/terminate"), "true");
    EXPECT_EQ((co_await end())["changed"], false);
    co_await w.shown("AnalysisRun", "check", "/spec/terminate", "true");
    co_await w.shown("AnalysisRun", "check", "/status/phase",
                     text_at(object(path), "/status/phase"));
    const auto absent = co_await w.ask(
        kAnn, "mutation{terminateExperiment(namespace:\"" + space.ns + "\",name:\"x\"){changed}}");
    EXPECT_EQ(absent.code(), "NOT_FOUND_ERROR") << absent.body;
  });
}

// --- logs ---------------------------------------------------------------------------------------

// A route that answers with server-sent events, while they are read.
struct Followed {
  static Task<std::unique_ptr<Followed>> log(ActionsBed& w, const char* user, std::string query) {
    return open(w, user, "/app-proxy/api/applications/logs?follow=true&" + query);
  }
  static Task<std::unique_ptr<Followed>> open(ActionsBed& w, const char* user, std::string target) {
    const http::Url url{.scheme = "http", .host = "127.0.0.1", .port = w.base.daemon->port()};
    auto exchange = co_await w.base.client.open(
        url,
        {.method = "GET",
         .target = target,
         .headers = {{"Authorization", user}, {"Accept", "text/event-stream"}}},
        deadline_after(kTimeLimit));
    if (!exchange) co_return nullptr;
    const auto head = co_await exchange->read_head();
    EXPECT_TRUE(head && head->status == 200) << target;
    co_return std::make_unique<Followed>(std::move(*exchange));
  }
  explicit Followed(http::ClientExchange opened) : exchange(std::move(opened)) {}
  Task<bool> sees(std::string line) {
    exchange.set_deadline(deadline_after(kTimeLimit));
    while (!text.contains(line)) {
      auto piece = co_await exchange.read_some();
      if (!piece || piece->empty()) co_return false;
      text += *piece;
    }
    co_return true;
  }
  http::ClientExchange exchange;
  std::string text;
};

TEST(LogsOfUsers, ComeFromArgoCdArgoServerAndTheApiServer) {
  GITOPS_REQUIRE_PEER(Programs);
  (void)workflows();
  (void)account();  // makes the namespace app-proxy
  const App app("actions-logs");
  const Space space("wf-logs");
  workflows().submit(space.ns, "work",
                     R"({"entrypoint":"main","templates":[{"name":"main","steps":[
    [{"name":"work","template":"work"}],[{"name":"wait","template":"wait"}]]},
    {"name":"work","container":{"image":"example.test/step:1","command":["true"]}},
    {"name":"wait","suspend":{}}]})");
  bed().cluster().apply(
      "apiVersion: v1\nkind: Pod\nmetadata: {name: one-component, namespace: app-proxy}\n"
      "spec: {containers: [{name: main, image: \"example.test/x:1\"}]}\n");
  in_actions_bed([&](ActionsBed& w) -> Task<> {
    w.allow("argocd", {"VIEW", "SYNC", "VIEW_POD_LOGS"});
    co_await w.start(with_workflows());
    (void)co_await w.data(kBob, kSync, {{"applicationName", app.name}});
    EXPECT_TRUE(co_await healthy_and_synced(w, app.name));
    EXPECT_TRUE(co_await has_phase(space, "work", "Running"));
    // The pod of the first step is there once the second one waits.
    EXPECT_TRUE(co_await eventually(
        [&] { return workflow(space, "work").dump().contains("\"type\":\"Suspend\""); },
        "the second step", kTimeLimit));
    auto application = co_await Followed::log(w, kBob, "applicationName=" + app.name);
    auto of_workflow = co_await Followed::log(w, kAnn, "workflowName=work&namespace=" + space.ns);
    auto component = co_await Followed::log(w, kAnn, "componentName=one-component");
    CO_ASSERT_TRUE(application && of_workflow && component);
    for (const std::string line : {"first", "second"}) {
      const auto text = line + " line of " + space.ns;
      bed().cluster().append_pod_log(text);
      EXPECT_TRUE(co_await application->sees(text)) << application->text;
      EXPECT_TRUE(co_await of_workflow->sees(text)) << of_workflow->text;
      EXPECT_TRUE(co_await component->sees(text)) << component->text;
    }
    EXPECT_THAT(application->text, HasSubstr("\"podName\":\"ui-"));
    EXPECT_THAT(of_workflow->text, HasSubstr("\"podName\":\"work"));
    EXPECT_THAT(component->text, HasSubstr("\"podName\":\"one-component\""));
    // Events of pods, as a subscription.
    for (const auto& [token, ns, owner] :
         {std::tuple(kBob, app.name, "applicationName:\"" + app.name + "\""),
          std::tuple(kAnn, space.ns, std::string("workflowName:\"work\""))}) {
      const auto pods = object("/api/v1/namespaces/" + ns + "/pods");
      const auto pod = text_at(pods, "/items/0/metadata/name");
      const auto events = co_await w.base.subscribe(
          "subscription{podEvents(namespace:\"" + ns + "\",podName:\"" + pod + "\"," + owner +
              "){data{reason message type timestamp podName} error done}}",
          AppProxyHarness::as(token));
      EXPECT_THAT(events.body, HasSubstr("Scheduled")) << owner;
    }
  });
}

// --- reports of images --------------------------------------------------------------------------

// The settings that the chart hands over.
Environment image_settings() {
  const auto objects = rendered(kReports, {kImages});
  const auto& data = test::object(objects, "ConfigMap", "cap-app-proxy-cm").at("data");
  const auto& deployment = test::object(objects, "Deployment", "cap-app-proxy");
  Environment settings;
  for (const Json& one : deployment.at(Pointer("/spec/template/spec/containers/0/env"))) {
    const std::string name = one["name"];
    if (!name.starts_with("IRW_")) continue;
    settings[name] = data.at(one.at(Pointer("/valueFrom/configMapKeyRef/key")));
  }
  return settings;
}

// Tells the result of the only Workflow's pod as the executor in it does, with the permissions of its account.
void end_task() {
  auto& cluster = bed().cluster();
  const std::string base = "/apis/argoproj.io/v1alpha1/namespaces/" + std::string(kReports);
  std::string workflow;
  std::string node;
  for (const auto end = Clock::now() + kTimeLimit; node.empty() && Clock::now() < end;) {
    for (const Json& one : object(base + "/workflows")["items"]) {
      workflow = text_at(one, "/metadata/name");
      for (const auto& [id, state] : one.value("/status/nodes"_json_pointer, Json()).items()) {
        if (state["type"] == "Pod") node = id;
      }
    }
  }
  const auto token = cluster.service_account_token(kReports, kReportAccount);
  const auto send = [&](const char* method, const std::string& path, const char* type,
                        const Json& body) {
    const auto reply = http_call(
        {.method = method,
         .url = cluster.server_url() + base + "/workflowtaskresults" + path,
         .headers = {"Authorization: Bearer " + token, std::string("Content-Type: ") + type},
         .body = body.dump(),
         .ca_file = cluster.ca_file()});
    EXPECT_TRUE(reply.ok()) << reply.body;
  };
  send("POST", "", "application/json",
       {{"apiVersion", "argoproj.io/v1alpha1"},
        {"kind", "WorkflowTaskResult"},
        {"metadata",
         {{"name", node},
          {"labels",
           {{"workflows.argoproj.io/workflow", workflow},
            {"workflows.argoproj.io/report-outputs-completed", "false"}}}}}});
  send("PATCH", "/" + node, "application/merge-patch+json",
       {{"metadata", {{"labels", {{"workflows.argoproj.io/report-outputs-completed", "true"}}}}},
        {"outputs", {{"parameters", {{{"name", "exit_error"}, {"value", ""}}}}}}});
}

TEST(ImageReportsOfPipelines, RunAsTheAccountOfTheChartWithinItsLimit) {
  GITOPS_REQUIRE_PEER(Programs);
  (void)workflows();
  const auto reports = make_account(kReports, {kImages});
  auto settings = image_settings();
  EXPECT_EQ(settings.size(), 10U);
  settings["KUBECONFIG"] = reports.kubeconfig;
  settings["NAMESPACE"] = kReports;
  settings.merge(with_workflows());  // for the logs of the tasks
  settings["IRW_HEARTBEAT_INTERVAL_IN_SECONDS"] = "1";
  // The controller of the peer knows its command without a registry.
  settings["IRW_REPORT_IMAGE_TASK_IMAGE"] = "registry.test/report-image-info:1";
  // As Argo CD and Sealed Secrets leave an integration.
  bed().cluster().apply(
      "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: codefresh-integration-hub\n  namespace: "
      "image-reports\n  labels: {io.codefresh.integration-type: registry.docker-hub}\n"
      "data: {username: acme}\n");
  bed().cluster().apply(
      "apiVersion: v1\nkind: Secret\nmetadata: {name: codefresh-integration-hub, namespace: "
      "image-reports}\nstringData: {password: canary-hub}\n");
  in_actions_bed([&](ActionsBed& w) -> Task<> {
    co_await w.start(settings);
    const std::string target =
        "/app-proxy/api/image-report?CF_IMAGE=acme/shop:1&CF_CONTAINER_REGISTRY_INTEGRATION=hub";
    const auto report = co_await Followed::open(w, kBob, target);
    CO_ASSERT_TRUE(report);
    // The simulated node gives all pods the same log.
    bed().cluster().append_pod_log("a line of the task");
    EXPECT_TRUE(
        co_await report->sees("event: workflow-log\ndata: {\"content\":\"a line of the task"))
        << report->text;
    std::jthread pod(end_task);
    EXPECT_TRUE(co_await report->sees("event: end\ndata: the image is reported")) << report->text;
    pod.join();
    const auto all = object("/apis/argoproj.io/v1alpha1/namespaces/image-reports/workflows");
    CO_ASSERT_EQ(all["items"].size(), 1U);
    const Json& made = all["items"][0];
    EXPECT_EQ(text_at(made, "/spec/serviceAccountName"), kReportAccount);
    EXPECT_EQ(text_at(made, "/spec/synchronization/semaphore/configMapKeyRef/name"),
              "workflow-synchronization-semaphores");
    const auto secret =
        object("/api/v1/namespaces/image-reports/secrets/" + text_at(made, "/metadata/name"));
    EXPECT_EQ(base64_decode(text_at(secret, "/data/DOCKERHUB_PASSWORD")).value_or(""),
              "canary-hub");
    // Where its Secret is refused, no Workflow is left.
    bed().cluster().apply(
        "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: none, namespace: image-reports}\n"
        "spec: {hard: {secrets: \"0\"}}\n");
    EXPECT_TRUE(co_await eventually(
        [] {
          return text_at(object("/api/v1/namespaces/image-reports/resourcequotas/none"),
                         "/status/hard/secrets") == "0";
        },
        "the quota", kTimeLimit));
    const auto refused = co_await w.base.send(
        {.method = "GET", .target = target, .headers = {{"authorization", kBob}}});
    EXPECT_THAT(refused.body, HasSubstr("the report's Secret"));
    EXPECT_EQ(
        object("/apis/argoproj.io/v1alpha1/namespaces/image-reports/workflows")["items"].size(),
        1U);
  });
}

// --- the permissions ---------------------------------------------------------------------------------

// After all others: each right of the chart was needed, and none was wanting.
TEST(PermissionsOfActions, AreThoseThatCallsNeedAndNoOther) {
  GITOPS_REQUIRE_PEER(Programs);
  const auto& run = *testing::UnitTest::GetInstance();
  if (run.test_to_run_count() != run.total_test_count()) GTEST_SKIP() << "needs the calls of all";
  std::set<PermissionUse> everywhere;
  for (const Json& one : rendered(kNamespace, {kActions})) {
    if (one["kind"] == "ClusterRole") everywhere.merge(permissions_granted({one}, kNamespace));
  }
  // An argo-server of this version reads templates with its own account.
  std::erase_if(everywhere,
                [](const PermissionUse& use) { return std::get<2>(use) == "workflowtemplates"; });
  expect_each_used(everywhere, audit().used_outside(kNamespace));
  expect_each_granted(audit().used(kNamespace), permissions(kNamespace, {kActions}));
  EXPECT_THAT(audit().refused(kNamespace), testing::IsEmpty());

  auto of_reports = permissions(kReports, {kImages});
  for (const auto& without : permissions(kReports, {})) of_reports.erase(without);
  expect_each_used(of_reports, audit().used(kReports));
  expect_each_granted(audit().used(kReports), permissions(kReports, {kImages}));
  EXPECT_THAT(audit().refused(kReports), testing::IsEmpty());
}

#endif

}  // namespace
}  // namespace gitops::test
