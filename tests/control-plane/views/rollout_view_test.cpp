#include "control-plane/views/rollout_view.hpp"

#include <gtest/gtest.h>

#include "control-plane/views/seed.hpp"

namespace gitops::control_plane_server {
namespace {

using Json = nlohmann::json;

// A canary of four steps at its second one, as the controller of Argo Rollouts keeps it.
Json canary() {
  auto object = object_of("argoproj.io/v1alpha1", "Rollout", "shop", "web");
  object["metadata"]["generation"] = 4;
  object["metadata"]["annotations"] = {{"rollout.argoproj.io/revision", "3"}};
  object["spec"]["strategy"]["canary"] = {
      {"canaryService", "web-canary"},
      {"stableService", "web"},
      {"steps",
       {{{"setWeight", 20}},
        {{"pause", Json::object()}},
        {{"analysis", {{"templates", {{{"templateName", "success-rate"}}}}}}},
        {{"pause", {{"duration", "10m"}}}}}}};
  object["status"] = {{"phase", "Paused"},
                      {"observedGeneration", "4"},
                      {"currentStepIndex", 1},
                      {"currentPodHash", "new"},
                      {"stableRS", "old"},
                      {"controllerPause", true},
                      {"pauseConditions",
                       {{{"reason", "CanaryPauseStep"}, {"startTime", "2026-03-04T09:11:00Z"}}}}};
  return object;
}

std::optional<StepStatus> status_of(const Json& rollout, std::int64_t step,
                                    std::vector<AnalysisRun> runs = {}) {
  const SeenObject seen(resource_event(rollout));
  return step_status(seen.parsed.live(), step, runs);
}

TEST(StepStatus, StepsBeforePassAndStepsBehindWait) {
  EXPECT_EQ(status_of(canary(), 0), StepStatus::passed);
  EXPECT_EQ(status_of(canary(), 1), StepStatus::paused_indefinite);
  EXPECT_EQ(status_of(canary(), 2), StepStatus::pending);
  EXPECT_EQ(status_of(canary(), 4), std::nullopt) << "there is no such step";
  EXPECT_EQ(status_of(canary(), -1), std::nullopt);
}

TEST(StepStatus, APauseThatEndsByItselfIsActive) {
  auto rollout = canary();
  rollout["status"]["currentStepIndex"] = 3;
  EXPECT_EQ(status_of(rollout, 3), StepStatus::active);
  EXPECT_EQ(status_of(rollout, 2), StepStatus::passed);
  rollout["spec"]["paused"] = true;
  EXPECT_EQ(status_of(rollout, 3), StepStatus::paused_indefinite);
}

TEST(StepStatus, AnInconclusiveAnalysisPauses) {
  auto rollout = canary();
  rollout["status"]["currentStepIndex"] = 2;
  rollout["status"]["pauseConditions"] = {{{"reason", "InconclusiveAnalysisRun"}}};
  EXPECT_EQ(status_of(rollout, 2), StepStatus::paused_inconclusive);
}

TEST(StepStatus, AnAbortEndsAllStepsAndAFailedAnalysisItsOwn) {
  auto rollout = canary();
  // The controller sets the index back when it aborts.
  rollout["status"]["abort"] = true;
  rollout["status"]["currentStepIndex"] = 0;
  EXPECT_EQ(status_of(rollout, 0), StepStatus::terminated);
  EXPECT_EQ(status_of(rollout, 3), StepStatus::terminated);
  auto run = object_of("argoproj.io/v1alpha1", "AnalysisRun", "shop", "web-new-2");
  run["metadata"]["labels"] = {
      {"rollout-type", "Step"}, {"step-index", "2"}, {"rollouts-pod-template-hash", "new"}};
  run["status"] = {{"phase", "Failed"}, {"message", "error rate"}};
  const auto read = analysis_run(SeenObject(resource_event(run)).parsed.live());
  EXPECT_EQ(read.step, 2);
  EXPECT_EQ(status_of(rollout, 2, {read}), StepStatus::failed);
  EXPECT_EQ(status_of(rollout, 1, {read}), StepStatus::terminated);
}

TEST(StepStatus, ACompleteRolloutHasPassedAllSteps) {
  auto rollout = canary();
  rollout["status"]["stableRS"] = "new";
  EXPECT_EQ(status_of(rollout, 0), StepStatus::passed);
  EXPECT_EQ(status_of(rollout, 3), StepStatus::passed);
}

TEST(StepStatus, WhatTheControllerHasNotSeenIsNotThereYet) {
  auto rollout = canary();
  rollout["metadata"]["generation"] = 5;
  EXPECT_EQ(status_of(rollout, 0), std::nullopt);
  rollout.erase("status");
  EXPECT_EQ(status_of(rollout, 0), std::nullopt);
}

TEST(StepStatus, ABlueGreenRolloutHasOneStep) {
  auto rollout = canary();
  rollout["spec"]["strategy"] = {{"blueGreen", {{"activeService", "web"}}}};
  rollout["status"].erase("currentStepIndex");
  rollout["status"]["pauseConditions"] = {{{"reason", "BlueGreenPause"}}};
  EXPECT_EQ(status_of(rollout, 0), StepStatus::paused_indefinite);
  EXPECT_EQ(status_of(rollout, 1), std::nullopt);
  rollout["status"]["pauseConditions"] = Json::array();
  rollout["status"]["phase"] = "Degraded";
  EXPECT_EQ(status_of(rollout, 0), StepStatus::failed);
}

TEST(RolloutView, TheStateOfARolloutIsShown) {
  auto rollout = canary();
  rollout["status"]["canary"] = {
      {"currentBackgroundAnalysisRunStatus", {{"name", "web-new"}, {"status", "Running"}}},
      {"weights", {{"canary", {{"weight", 20}}}}}};
  const SeenObject seen(resource_event(rollout));
  const std::vector<AnalysisRun> runs{
      {.name = "web-new-2", .type = "Step", .step = 2, .pod_hash = "new", .phase = ""},
      {.name = "web-old-2", .type = "Step", .step = 2, .pod_hash = "old", .phase = "Failed"}};
  const auto json = appended([&](std::string& out) {
    append_rollout_state(out, seen.event.state, seen.parsed.live(), runs);
  });
  EXPECT_EQ(json["phase"], "Paused");
  EXPECT_EQ(json["currentRevision"], 3);
  EXPECT_EQ(json["currentStrategyName"], "canary");
  EXPECT_EQ(json["steps"], 4);
  EXPECT_EQ(json["currentStepIndex"], 1);
  EXPECT_EQ(json["currentStepSpec"], R"({"pause":{}})");
  EXPECT_EQ(json["services"], Json({"web", "web-canary"}));
  EXPECT_EQ(json["backgroundAnalysisRunStatus"]["phase"], "Running");
  ASSERT_EQ(json["stepsAnalysisRunStatuses"].size(), 1U) << "those of this revision";
  EXPECT_EQ(json["stepsAnalysisRunStatuses"][0]["phase"], "Pending");
  EXPECT_EQ(json["weightOfNew"], 20);
  EXPECT_EQ(json["isComplete"], false);
  EXPECT_EQ(json["paused"], true);
  EXPECT_TRUE(json["prePromotionAnalysisRunStatus"].is_null());
}

TEST(RolloutView, AnAbortedRolloutIsTerminated) {
  auto rollout = canary();
  rollout["status"]["abort"] = true;
  rollout["status"]["phase"] = "Degraded";
  const SeenObject seen(resource_event(rollout));
  const auto json = appended([&](std::string& out) {
    append_rollout_state(out, seen.event.state, seen.parsed.live(), {});
  });
  EXPECT_EQ(json["phase"], "Terminated");
  EXPECT_EQ(json["weightOfNew"], 0);
}

}  // namespace
}  // namespace gitops::control_plane_server
