#include "app-proxy/actions/rollout_patches.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace gitops::app_proxy {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;

const WallTime kNow = parse_rfc3339("2026-11-23T12:00:00Z").value();

// A canary of three steps whose new version is not the stable one yet, with these members of spec and status.
std::string canary(const Json& status = Json::object(), const Json& spec = Json::object()) {
  Json rollout{
      {"metadata", {{"name", "shop"}, {"namespace", "web"}, {"uid", "u-1"}}},
      {"spec",
       {{"strategy",
         {{"canary",
           {{"steps",
             {{{"setWeight", 25}}, {{"pause", Json::object()}}, {{"setWeight", 50}}}}}}}}}},
      {"status", {{"currentPodHash", "b"}, {"stableRS", "a"}, {"currentStepIndex", 1}}}};
  rollout["status"].merge_patch(status);
  rollout["spec"].merge_patch(spec);
  return rollout.dump();
}

std::vector<std::string> sent(RolloutAction action, const std::string& rollout) {
  const auto plan = plan_rollout(action, rollout, kNow);
  if (!plan) return {"error: " + plan.error().message};
  std::vector<std::string> out;
  for (const auto& patch : plan->patches) {
    out.push_back((patch.of_status ? "status " : "spec ") + patch.body);
  }
  EXPECT_EQ(plan->patches.empty(), !plan->note.empty());
  return out;
}

const Json kPaused{{"pauseConditions", {{{"reason", "CanaryPauseStep"}}}},
                   {"controllerPause", true}};

TEST(RolloutPatches, PauseAndResume) {
  using enum RolloutAction;
  EXPECT_THAT(sent(pause, canary()), ElementsAre(R"(spec {"spec":{"paused":true}})"));
  EXPECT_THAT(sent(pause, canary({}, {{"paused", true}})), IsEmpty());
  EXPECT_THAT(sent(resume, canary()), IsEmpty());
  EXPECT_THAT(sent(resume, canary(kPaused)),
              ElementsAre(R"(status {"status":{"pauseConditions":null}})"));
  EXPECT_THAT(sent(resume, canary(kPaused, {{"paused", true}})),
              ElementsAre(R"(status {"status":{"pauseConditions":null}})",
                          R"(spec {"spec":{"paused":false}})"));
}

TEST(RolloutPatches, PromoteEndsAPauseOrPassesAStep) {
  using enum RolloutAction;
  EXPECT_THAT(sent(promote, canary(kPaused)),
              ElementsAre(R"(status {"status":{"pauseConditions":null}})"));
  EXPECT_THAT(sent(promote, canary()),
              ElementsAre(R"(status {"status":{"pauseConditions":null,"currentStepIndex":2}})"));
  // After an analysis without a clear result the pause and the step go together.
  Json inconclusive = kPaused;
  inconclusive["canary"] = {{"currentStepAnalysisRunStatus", {{"status", "Inconclusive"}}}};
  EXPECT_THAT(
      sent(promote, canary(inconclusive)),
      ElementsAre(
          R"(status {"status":{"pauseConditions":null,"controllerPause":false,"currentStepIndex":2}})"));
  EXPECT_THAT(sent(promote, canary({{"stableRS", "b"}, {"currentStepIndex", 3}})), IsEmpty());
}

TEST(RolloutPatches, StepsAreThoseOfCanaries) {
  using enum RolloutAction;
  EXPECT_THAT(sent(skip_current_step, canary()),
              ElementsAre(R"(status {"status":{"pauseConditions":null,"currentStepIndex":2}})"));
  EXPECT_THAT(sent(skip_all_steps, canary()),
              ElementsAre(R"(status {"status":{"pauseConditions":null,"currentStepIndex":3}})"));
  EXPECT_THAT(sent(skip_current_step, canary({{"currentStepIndex", 3}})), IsEmpty());
  EXPECT_THAT(sent(skip_current_step, canary({{"currentStepIndex", -7}})),
              ElementsAre(R"(status {"status":{"pauseConditions":null,"currentStepIndex":1}})"));
  EXPECT_THAT(
      sent(skip_current_step, canary({}, {{"strategy", {{"canary", {{"steps", nullptr}}}}}})),
      ElementsAre("error: the rollout has no steps"));
  EXPECT_THAT(
      sent(skip_all_steps,
           canary({}, {{"strategy", {{"canary", nullptr}, {"blueGreen", Json::object()}}}})),
      ElementsAre("error: only a canary has steps"));
}

TEST(RolloutPatches, WhatIsSoAlreadyIsNotSent) {
  using enum RolloutAction;
  EXPECT_THAT(sent(promote_full, canary()),
              ElementsAre(R"(status {"status":{"promoteFull":true}})"));
  EXPECT_THAT(sent(promote_full, canary({{"stableRS", "b"}})), IsEmpty());
  EXPECT_THAT(sent(promote_full, canary({{"promoteFull", true}})), IsEmpty());
  EXPECT_THAT(sent(abort, canary()), ElementsAre(R"(status {"status":{"abort":true}})"));
  EXPECT_THAT(sent(abort, canary({{"abort", true}})), IsEmpty());
  EXPECT_THAT(sent(abort, canary({{"stableRS", "b"}})), IsEmpty());
  EXPECT_THAT(sent(retry, canary({{"abort", true}})),
              ElementsAre(R"(status {"status":{"abort":false}})"));
  EXPECT_THAT(sent(retry, canary()), IsEmpty());
  EXPECT_THAT(sent(restart, canary()),
              ElementsAre(R"(spec {"spec":{"restartAt":"2026-11-23T12:00:00Z"}})"));
}

TEST(RolloutPatches, WhatIsNoRolloutIsRefused) {
  for (const char* text : {"", "[]", "{", "null", "7"}) {
    EXPECT_FALSE(plan_rollout(RolloutAction::pause, text, kNow)) << text;
    EXPECT_FALSE(template_owner(text)) << text;
    EXPECT_FALSE(plan_undo(text, "{}", 0, "/spec/template")) << text;
    EXPECT_FALSE(plan_undo("{}", text, 0, "/spec/template")) << text;
    EXPECT_FALSE(plan_image(text, "/spec/template", "*", "i")) << text;
  }
  EXPECT_TRUE(plan_rollout(RolloutAction::pause, R"({"spec":7,"status":[]})", kNow));
}

std::string with_revision(std::string rollout, const char* revision) {
  Json json = Json::parse(rollout);
  json["metadata"]["annotations"] = {{"rollout.argoproj.io/revision", revision}};
  return json.dump();
}

Json replica_set(const char* revision, const char* image, const char* owner = "u-1") {
  return {{"metadata",
           {{"name", std::string("shop-") + revision},
            {"annotations", {{"rollout.argoproj.io/revision", revision}}},
            {"ownerReferences", {{{"kind", "Rollout"}, {"uid", owner}}}}}},
          {"spec",
           {{"template",
             {{"metadata", {{"labels", {{"app", "shop"}, {"rollouts-pod-template-hash", "x"}}}}},
              {"spec", {{"containers", {{{"name", "main"}, {"image", image}}}}}}}}}}};
}

TEST(RolloutUndo, TakesTheTemplateOfAnEarlierRevision) {
  const auto rollout = with_revision(canary(), "4");
  const std::string sets = Json{{"items",
                                 {replica_set("1", "a:1"), replica_set("4", "a:4"),
                                  replica_set("3", "a:3"), replica_set("2", "other", "u-2")}}}
                               .dump();
  const auto before = plan_undo(rollout, sets, 0, "/spec/template");
  ASSERT_TRUE(before) << before.error().message;
  EXPECT_EQ(before->from_revision, 3);
  EXPECT_EQ(before->new_revision, 5);
  EXPECT_EQ(
      Json::parse(before->patch),
      (Json::array({{{"op", "replace"},
                     {"path", "/spec/template"},
                     {"value",
                      {{"metadata", {{"labels", {{"app", "shop"}}}}},
                       {"spec", {{"containers", {{{"name", "main"}, {"image", "a:3"}}}}}}}}}})));
  const auto first = plan_undo(rollout, sets, 1, "/template");
  ASSERT_TRUE(first);
  EXPECT_EQ(Json::parse(first->patch)[0]["path"], "/template");
  EXPECT_EQ(Json::parse(first->patch)[0]["value"]["spec"]["containers"][0]["image"], "a:1");
  const auto same = plan_undo(rollout, sets, 4, "/spec/template");
  ASSERT_TRUE(same);
  EXPECT_FALSE(same->changes);
  EXPECT_FALSE(plan_undo(rollout, sets, 2, "/spec/template")) << "of another rollout";
  EXPECT_FALSE(plan_undo(rollout, sets, 9, "/spec/template"));
  EXPECT_FALSE(plan_undo(with_revision(canary(), "1"), sets, 0, "/spec/template"));
}

TEST(RolloutUndo, NumbersThatAreNoRevisionsAreLeftOut) {
  const auto rollout = with_revision(canary(), "2");
  for (const char* odd : {"9223372036854775807", "99999999999999999999", "-1", "1x", ""}) {
    const std::string sets =
        Json{{"items", {replica_set("1", "a:1"), replica_set(odd, "b")}}}.dump();
    const auto plan = plan_undo(rollout, sets, 0, "/spec/template");
    ASSERT_TRUE(plan) << odd;
    EXPECT_EQ(plan->from_revision, 1) << odd;
    EXPECT_EQ(plan->new_revision, 3) << odd;
  }
}

TEST(RolloutUndo, KnowsWhereTheTemplateIs) {
  EXPECT_EQ(template_owner(canary())->resource.kind, "Rollout");
  EXPECT_EQ(template_owner(canary())->name, "shop");
  const auto ref = [](const char* kind) {
    return template_owner(canary({}, {{"workloadRef", {{"kind", kind}, {"name", "d"}}}}));
  };
  EXPECT_EQ(ref("Deployment")->resource.plural, "deployments");
  EXPECT_EQ(ref("Deployment")->name, "d");
  EXPECT_EQ(ref("PodTemplate")->path, "/template");
  EXPECT_EQ(ref("CronJob").error().code, ErrorCode::unsupported);
  EXPECT_EQ(pod_selector(canary({{"selector", "app=shop"}})), "app=shop");
  EXPECT_EQ(pod_selector(canary({}, {{"selector", {{"matchLabels", {{"a", "b"}, {"c", "d"}}}}}})),
            "a=b,c=d");
}

TEST(RolloutImage, IsSetWhereTheContainerIs) {
  const std::string owner = Json{{"spec",
                                  {{"template",
                                    {{"spec",
                                      {{"initContainers", {{{"name", "init"}, {"image", "i:1"}}}},
                                       {"containers",
                                        {{{"name", "main"}, {"image", "a:1"}},
                                         {{"name", "side"}, {"image", "s:1"}}}}}}}}}}}
                                .dump();
  const auto set = [&](const char* container, const char* image) {
    return plan_image(owner, "/spec/template", container, image);
  };
  EXPECT_EQ(Json::parse(*set("side", "s:2")),
            Json::parse(
                R"([{"op":"test","path":"/spec/template/spec/containers/1/name","value":"side"},
              {"op":"replace","path":"/spec/template/spec/containers/1/image","value":"s:2"}])"));
  EXPECT_EQ(Json::parse(*set("*", "n:1")).size(), 6U);
  EXPECT_EQ(*set("main", "a:1"), "");
  EXPECT_EQ(set("none", "a:1").error().code, ErrorCode::conflict);
  for (const char* image : {"", "a b", "a\n"}) {
    EXPECT_EQ(set("main", image).error().code, ErrorCode::invalid_argument);
  }
}

}  // namespace
}  // namespace gitops::app_proxy
