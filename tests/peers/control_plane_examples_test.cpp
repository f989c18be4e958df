// The Workflows, Rollouts and AnalysisRuns of the upstream examples at our own control plane: each of them is stored with
// its phase, and shown without an error.
#include "peers/control_plane_examples.hpp"

#include <iostream>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "common/store/sqlite_connection.hpp"
#include "control-plane/projection/event.hpp"
#include "daemons/control_plane_process.hpp"

namespace gitops::test {
namespace {

using nlohmann::json;

constexpr const char* kCommit = "c0ffee0000000000000000000000000000000001";
constexpr const char* kWorkflow =
    "query($uid: String!){workflow(uid: $uid){metadata{name namespace uid kind group version "
    "runtime "
    "cluster labels{key value} annotations{key value} created lastUpdated description account} "
    "spec{entrypoint templates{name} workflowTemplateRef{name kind namespace}} status{phase "
    "progress "
    "message startedAt finishedAt runningPodsCount nodes{type name displayName templateName "
    "children "
    "phase progress message startedAt finishedAt id hostNodeName templateScope}} projects "
    "initiator{name avatarUrl} eventsPayload pipeline{metadata{name}} url ingressHost "
    "runtimeVersion "
    "originatedFrom}}";
constexpr const char* kStep =
    "query($app: String!, $rollout: String!, $commit: String!, $step: Int!){rolloutStepStatus("
    "runtime: \"prod\", appNamespace: \"argocd\", appName: $app, commitSHA: $commit, rollout: "
    "$rollout, stepIndex: $step){status}}";
constexpr const char* kRelease =
    "query($filters: GitopsReleaseFilterArgs){gitopsReleases(filters: $filters, pagination: "
    "{first: "
    "1}){edges{node{toState{rollouts{name uid phase steps currentStepIndex currentStepSpec "
    "currentStrategyName services isComplete paused abort weightOfNew currentRevision message "
    "stepsAnalysisRunStatuses{name phase stepIndex}}}}}}}";

struct UpstreamExamplesAtControlPlane : testing::Test {
  void SetUp() override {
    GITOPS_REQUIRE_PEER(UpstreamExamples);
    program.add_account("acme");
    program.add_user("ann", "acme", {"--admin"});
    key = program.create_key("ann", "acme");
    program.start();
    token = program.register_runtime(key, "prod");
  }

  void post(const json& data) {
    const auto reply =
        http_call({.method = "POST",
                   .url = program.url() + "/2.0/api/events",
                   .headers = {"Authorization: " + token, "Content-Type: application/json",
                               "X-Event-Sequence: " + std::to_string(++sequence)},
                   .body = json{{"data", data}}.dump()});
    EXPECT_EQ(reply.status, 200) << reply.body << data.dump().substr(0, 500);
  }
  void post_object(const json& object) { post({{"object", object.dump()}}); }
  void post_managed(const json& object, const json& manager) {
    json source{{"actualManifest", object.dump()}, {"desiredManifest", ""}, {"gitManifest", ""}};
    if (!manager.is_null()) {
      source["appName"] = manager["metadata"]["name"];
      source["appNamespace"] = "argocd";
      source["appUID"] = manager["metadata"]["uid"];
    }
    post({{"object", base64_encode(object.dump())}, {"source", std::move(source)}});
  }
  // The field's value; a failure of the test for any error.
  json ask(const char* document, const json& variables, const std::string& field) {
    const auto reply = program.graphql(key, document, variables.dump());
    const auto answer = json::parse(reply.body, nullptr, false);
    if (!answer.is_object() || answer.contains("errors")) {
      ADD_FAILURE() << field << " of " << variables << ": " << reply.body;
      return {};
    }
    return answer["data"][field];
  }
  // Objects by kind and phase, as they are stored.
  std::map<std::pair<std::string, control_plane_server::Phase>, std::size_t> stored_phases() {
    constexpr store::Statement kPhases{
        .name = "examples.phases",
        .sql = "SELECT kind, phase FROM object WHERE origin = 1 AND presence = 0"};
    auto connection =
        store::open_sqlite(program.database_path(), store::Access::read_only, 1 << 20).value();
    const auto rows = connection->run(kPhases).value();
    std::map<std::pair<std::string, control_plane_server::Phase>, std::size_t> found;
    for (std::size_t row = 0; row < rows.size(); ++row) {
      ++found[{rows.string(row, 0), static_cast<control_plane_server::Phase>(rows.number(row, 1))}];
    }
    return found;
  }

  ControlPlaneProcess program;
  std::string key;
  std::string token;
  std::int64_t sequence = 0;
};

TEST_F(UpstreamExamplesAtControlPlane, EveryWorkflowIsStoredAndShown) {
  constexpr std::array kPhases{"", "Pending", "Running", "Succeeded", "Failed", "Error"};
  const auto examples = UpstreamExamples::of_kinds({"Workflow"});
  std::map<std::pair<std::string, control_plane_server::Phase>, std::size_t> expected;
  std::vector<json> workflows;
  for (const auto& example : examples) {
    const std::string phase = kPhases.at(workflows.size() % kPhases.size());
    workflows.push_back(live_object(example, workflows.size(), phase));
    add_nodes(workflows.back(), phase);
    post_object(workflows.back());
    ++expected[{"Workflow", control_plane_server::phase_of(phase)}];
  }
  EXPECT_EQ(stored_phases(), expected);
  for (const auto& workflow : workflows) {
    const auto& metadata = workflow["metadata"];
    const auto shown = ask(kWorkflow, {{"uid", metadata["uid"]}}, "workflow");
    ASSERT_TRUE(shown.is_object()) << workflow;
    EXPECT_EQ(shown["metadata"]["name"], metadata["name"]);
    EXPECT_EQ(shown["metadata"]["namespace"], metadata["namespace"]);
    const std::string phase = workflow["status"]["phase"];
    EXPECT_EQ(shown["status"]["phase"], phase.empty() ? "Pending" : phase);
    EXPECT_EQ(shown["status"]["nodes"].size(), workflow["status"]["nodes"].size());
  }
  std::cout << workflows.size() << " Workflows\n";
  EXPECT_GE(workflows.size(), 380U);
}

TEST_F(UpstreamExamplesAtControlPlane, EveryRolloutAndAnalysisRunIsStoredAndShown) {
  constexpr std::array kPhases{"Healthy", "Progressing", "Paused", "Degraded"};
  constexpr std::array kRunPhases{"Pending", "Running", "Successful",
                                  "Failed",  "Error",   "Inconclusive"};
  std::map<std::pair<std::string, control_plane_server::Phase>, std::size_t> expected;
  std::vector<json> rollouts;
  std::vector<json> runs = UpstreamExamples::of_kinds({"AnalysisRun"});
  std::size_t steps = 0;
  for (const auto& example : UpstreamExamples::of_kinds({"Rollout"})) {
    const auto number = rollouts.size();
    const std::string phase = kPhases.at(number % kPhases.size());
    auto rollout = live_object(example, number, phase);
    rollout["status"]["observedGeneration"] = "1";
    rollout["status"]["currentStepIndex"] = 0;
    rollout["status"]["currentPodHash"] = "7c9";
    const json application{
        {"apiVersion", "argoproj.io/v1alpha1"},
        {"kind", "Application"},
        {"metadata",
         {{"name", "app-" + std::to_string(number)},
          {"namespace", "argocd"},
          {"uid", "uid-app-" + std::to_string(number)}}},
        {"status",
         {{"sync", {{"status", "Synced"}, {"revision", kCommit}}},
          {"health", {{"status", "Healthy"}}},
          {"history",
           {{{"id", 1}, {"revision", kCommit}, {"deployedAt", "2026-03-04T09:00:00Z"}}}}}}};
    post_managed(application, {});
    post_managed(rollout, application);
    post_object(rollout);
    ++expected[{"Rollout", control_plane_server::phase_of(phase)}];
    rollouts.push_back(std::move(rollout));
  }
  // Each run belongs to a step of one of the Rollouts.
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::string phase = kRunPhases.at(i % kRunPhases.size());
    auto run = live_object(runs[i], rollouts.size() + i, phase);
    const auto& owner = rollouts[i]["metadata"];
    run["metadata"]["namespace"] = owner["namespace"];
    run["metadata"]["labels"] = {{"step-index", "0"}, {"rollouts-pod-template-hash", "7c9"}};
    run["metadata"]["ownerReferences"] = {{{"kind", "Rollout"},
                                           {"name", owner["name"]},
                                           {"uid", owner["uid"]},
                                           {"controller", true}}};
    post_object(run);
    ++expected[{"AnalysisRun", control_plane_server::phase_of(phase)}];
    runs[i] = std::move(run);
  }
  EXPECT_EQ(stored_phases(), expected);
  for (std::size_t i = 0; i < rollouts.size(); ++i) {
    const auto& rollout = rollouts[i];
    const auto app = "app-" + std::to_string(i);
    const auto count =
        rollout.value("/spec/strategy/canary/steps"_json_pointer, json::array()).size();
    for (std::size_t step = 0; step < std::max<std::size_t>(count, 1); ++step) {
      const auto shown = ask(kStep,
                             {{"app", app},
                              {"rollout", rollout["metadata"]["name"]},
                              {"commit", kCommit},
                              {"step", step}},
                             "rolloutStepStatus");
      EXPECT_TRUE(shown.is_object() && shown["status"].is_string()) << rollout;
      ++steps;
    }
    const auto releases = ask(kRelease, {{"filters", {{"name", app}}}}, "gitopsReleases");
    const auto shown =
        releases.value("/edges/0/node/toState/rollouts/0"_json_pointer, json::object());
    EXPECT_EQ(shown.value("name", ""), rollout["metadata"]["name"].get<std::string>()) << releases;
    EXPECT_EQ(shown.value("phase", ""), rollout["status"]["phase"].get<std::string>());
    if (i >= runs.size()) continue;
    const auto run = shown.value("/stepsAnalysisRunStatuses/0"_json_pointer, json::object());
    EXPECT_EQ(run.value("name", ""), runs[i]["metadata"]["name"].get<std::string>()) << shown;
    EXPECT_EQ(run.value("phase", ""), runs[i]["status"]["phase"].get<std::string>());
  }
  std::cout << rollouts.size() << " Rollouts with " << steps << " steps, " << runs.size()
            << " AnalysisRuns\n";
  EXPECT_GE(rollouts.size() + runs.size(), 80U);
}

}  // namespace
}  // namespace gitops::test
