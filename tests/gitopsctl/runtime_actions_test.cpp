// Rollouts, Workflows, Git sources and clusters: the real gitopsctl, a real control plane, and an app-proxy that answers
// as each test wants.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "gitopsctl/action_bed.hpp"
#include "gitopsctl/runtime_action_cases.hpp"
#include "support/process.hpp"
#include "test_http/raw_http.hpp"

namespace gitops::test {
namespace {

using Json = nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

using Words = std::vector<std::string>;

constexpr const char* kJson = "Content-Type: application/json\r\n";
constexpr const char* kStream = "Content-Type: text/event-stream\r\n";

class RuntimeActions : public testing::Test {
 protected:
  RuntimeActions() {
    bed().app_proxy().forget();
    bed().report_clusters(2);
  }
  static ActionBed& bed() { return action_bed(); }
  CommandResult call(Words words, const std::string& url = {}, const std::string& key = {}) const {
    words.insert(words.begin(), std::string(GITOPS_BIN_DIR) + "/gitopsctl");
    const Environment environment{{"HTTP_PROXY", std::nullopt},
                                  {"http_proxy", std::nullopt},
                                  {"HOME", folder_.path()},
                                  {"CODEFRESH_URL", url.empty() ? bed().program().url() : url},
                                  {"CODEFRESH_TOKEN", key.empty() ? bed().key : key}};
    auto result = run_command(words, environment);
    EXPECT_THAT(result.out + result.err, AllOf(Not(HasSubstr(bed().key)), Not(HasSubstr("\x1b"))));
    return result;
  }
  static Json last_request() {
    const auto requests = bed().app_proxy().requests();
    return requests.empty() ? Json() : Json::parse(requests.back().body);
  }

  TempDir folder_;
};

std::string text_of(const Words& words) {
  std::string text;
  for (const auto& word : words) text += word + ' ';
  return text;
}

TEST_F(RuntimeActions, EachSendsItsRequest) {
  for (const RuntimeAction& one : runtime_actions()) {
    bed().answer_with("200 OK", kJson, R"({"data":)" + one.data + "}");
    const auto result = call(one.words);
    EXPECT_EQ(result.exit_code, 0) << text_of(one.words) << result.err;
    EXPECT_THAT(result.out, StartsWith(one.says)) << text_of(one.words);
    const auto request = last_request();
    EXPECT_THAT(request.value("query", ""), HasSubstr(one.field)) << text_of(one.words);
    for (const auto& [name, value] : Json::parse(one.variables).items()) {
      EXPECT_EQ(request["variables"][name], value) << text_of(one.words);
    }
  }
}

TEST_F(RuntimeActions, ARefusalALostAnswerAndAMissingNameAreToldApart) {
  for (const RuntimeAction& one : runtime_actions()) {
    bed().answer_with("200 OK", kJson,
                      R"({"data":null,"errors":[{"message":"so it is","extensions":403}]})");
    const auto refused = call(one.words);
    EXPECT_EQ(refused.exit_code, 5) << text_of(one.words);
    EXPECT_THAT(refused.err, StartsWith("Refused (Forbidden): so it is. Nothing was changed."));
    bed().answer_with("", "", "");
    const auto lost = call(one.words);
    EXPECT_EQ(lost.exit_code, 3) << text_of(one.words);
    EXPECT_THAT(lost.err, StartsWith("Unknown (")) << text_of(one.words);
    if (one.missing.empty()) continue;
    bed().app_proxy().forget();
    const auto missing = call(one.missing);
    EXPECT_EQ(missing.exit_code, 4) << text_of(one.missing) << missing.err;
    EXPECT_THAT(missing.err, HasSubstr("nothing\" not found")) << text_of(one.missing);
    EXPECT_TRUE(bed().app_proxy().requests().empty()) << text_of(one.missing);
  }
}

TEST_F(RuntimeActions, WithoutAControlPlaneNothingIsKnown) {
  for (const RuntimeAction& one : runtime_actions()) {
    const auto away = call(one.words, "http://127.0.0.1:1");
    EXPECT_EQ(away.exit_code, 3) << text_of(one.words) << away.out;
    EXPECT_EQ(call(one.words, {}, "wrong.key").exit_code, 5) << text_of(one.words);
  }
}

TEST_F(RuntimeActions, WhatCannotBeUndoneIsConfirmed) {
  for (RuntimeAction one : runtime_actions()) {
    if (one.words.back() != "--yes") continue;
    one.words.pop_back();
    const auto result = call(one.words);
    EXPECT_EQ(result.exit_code, 2) << text_of(one.words);
    EXPECT_THAT(result.err, HasSubstr("add --yes to do it")) << text_of(one.words);
  }
  EXPECT_EQ(call({"rollout", "promote", "shop", "canary", "--full", "--skip-all-steps"}).exit_code,
            2);
  EXPECT_EQ(call({"workflow", "submit", "prod", "build"}).exit_code, 2);
  EXPECT_EQ(call({"workflow", "submit", "prod", "ci/build", "--parameter=x"}).exit_code, 2);
  EXPECT_TRUE(bed().app_proxy().requests().empty());
}

TEST_F(RuntimeActions, AValueOfAParameterMayHaveCommas) {
  bed().answer_with(
      "200 OK", kJson,
      R"({"data":{"createWorkflowFromWorkflowTemplate":{"newWorkflowName":"build-9"}}})");
  const auto sent = [this](const std::string& text) {
    bed().app_proxy().forget();
    const auto result = call({"workflow", "submit", "prod", "ci/build", "--parameter", text});
    EXPECT_EQ(result.exit_code, 0) << text << ": " << result.err;
    const auto request = last_request();
    std::string all;
    for (const auto& one : request["variables"]["parameters"]) {
      all += "[" + one["name"].get<std::string>() + "|" + one["value"].get<std::string>() + "]";
    }
    return all;
  };
  EXPECT_EQ(sent("list=a,b"), "[list|a,b]");
  EXPECT_EQ(sent("list=a,,b, branch=main"), "[list|a,,b][branch|main]");
  EXPECT_EQ(sent(R"(config={"a":1,"b":2},x=1)"), R"([config|{"a":1,"b":2}][x|1])");
  EXPECT_EQ(sent(R"(list=a\,b=c,path=C:\x)"), R"([list|a,b=c][path|C:\x])");
  EXPECT_EQ(call({"workflow", "submit", "prod", "ci/build", "--parameter==x"}).exit_code, 2);
}

TEST_F(RuntimeActions, AnAnswerThatNamesNothingIsNotSaidToBeDone) {
  bed().answer_with("200 OK", kJson, R"({"data":{"createWorkflowFromWorkflowTemplate":null}})");
  const auto result = call({"workflow", "submit", "prod", "ci/build"});
  EXPECT_EQ(result.exit_code, 3) << result.out;
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, AllOf(StartsWith("Unknown (Unexpected): the answer names no Workflow"),
                                HasSubstr("gitopsctl workflow list --runtime prod")));
}

// As argo submit takes them. A part of the second flag is none of the first one's value.
TEST_F(RuntimeActions, ParametersMayStandInFlagsOfTheirOwn) {
  bed().answer_with(
      "200 OK", kJson,
      R"({"data":{"createWorkflowFromWorkflowTemplate":{"newWorkflowName":"build-9"}}})");
  const Words words{"workflow",      "submit",      "prod",      "ci/build",
                    "--parameter=a", "--parameter", "hosts=x,y", "--parameter"};
  Words good = words;
  good[4] = R"(--parameter=path=C:\)";
  good.emplace_back("b=2,c=3");
  const auto result = call(good);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const Json expected{{{"name", "path"}, {"value", "C:\\"}},
                      {{"name", "hosts"}, {"value", "x,y"}},
                      {{"name", "b"}, {"value", "2"}},
                      {{"name", "c"}, {"value", "3"}}};
  EXPECT_EQ(last_request()["variables"]["parameters"], expected);
  bed().app_proxy().forget();
  Words bad = words;
  bad[4] = "--parameter=a=1";
  bad.emplace_back("b");
  const auto refused = call(bad);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("flag --parameter: expected NAME=VALUE"));
  EXPECT_TRUE(bed().app_proxy().requests().empty());
}

// Commands that first ask the control plane what they are about, beside those of commands_test.cpp.
TEST_F(RuntimeActions, OthersAreRefusedAndAwayAtTheControlPlane) {
  const std::vector<Words> all = {{"app", "logs", "shop"},
                                  {"app", "diff", "shop"},
                                  {"rollout", "get", "shop", "canary"},
                                  {"workflow", "logs", "build"},
                                  {"runtime", "logs", "prod", "cap-app-proxy"},
                                  {"runtime", "remove", "prod", "--yes"}};
  for (const Words& words : all) {
    const auto refused = call(words, {}, "wrong.key");
    EXPECT_EQ(refused.exit_code, 5) << text_of(words) << refused.out;
    EXPECT_THAT(refused.err, StartsWith("Error from server (Unauthorized): ")) << text_of(words);
    const auto away = call(words, "http://127.0.0.1:1");
    EXPECT_EQ(away.exit_code, 3) << text_of(words) << away.out;
    EXPECT_THAT(away.err, StartsWith("Unable to connect to the server: ")) << text_of(words);
  }
  EXPECT_TRUE(bed().app_proxy().requests().empty());
}

TEST_F(RuntimeActions, RolloutsAreThoseOfAnApplication) {
  const auto list = call({"rollout", "list", "shop"});
  EXPECT_EQ(list.exit_code, 0) << list.err;
  EXPECT_THAT(list.out, AllOf(StartsWith("NAMESPACE  NAME    SYNC"),
                              HasSubstr("\nweb        canary"), Not(HasSubstr("ui"))));
  EXPECT_EQ(call({"rollout", "list", "shop", "-o", "name"}).out, "web/canary\n");
  EXPECT_EQ(call({"rollout", "list", "nothing"}).exit_code, 4);
  EXPECT_EQ(call({"rollout", "list", "shop"}, "http://127.0.0.1:1").exit_code, 3);

  const Json live{
      {"metadata", {{"name", "canary"}, {"namespace", "web"}}},
      {"spec",
       {{"replicas", 5},
        {"strategy", {{"canary", {{"steps", {{{"setWeight", 20}}, {{"pause", Json::object()}}}}}}}},
        {"template", {{"spec", {{"containers", {{{"image", "r/ui:2"}}}}}}}}}},
      {"status",
       {{"phase", "Paused"},
        {"message", "CanaryPauseStep\x1b[31m"},
        {"currentStepIndex", 1},
        {"updatedReplicas", 1},
        {"readyReplicas", 5},
        {"canary", {{"weights", {{"canary", {{"weight", 20}}}}}}}}}};
  bed().answer_with("200 OK", kJson,
                    Json{{"data", {{"resource", {{"liveState", live.dump()}}}}}}.dump());
  const auto shown = call({"rollout", "get", "shop", "canary"});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.out,
              AllOf(HasSubstr("Phase:        Paused\n"), HasSubstr("Step:         1 of 2\n"),
                    HasSubstr("20 % of the new version"), HasSubstr("Image:        r/ui:2\n")));
  const auto json = Json::parse(call({"rollout", "get", "shop", "canary", "-o", "json"}).out);
  EXPECT_EQ(json["schema"], "gitopsctl/rollout/v1");
  EXPECT_EQ(json["weight"], 20);
  EXPECT_EQ(call({"rollout", "get", "shop", "nothing"}).exit_code, 4);
  bed().answer_with("200 OK", kJson, R"({"errors":[{"message":"no","extensions":403}]})");
  EXPECT_EQ(call({"rollout", "get", "shop", "canary"}).exit_code, 5);
}

TEST_F(RuntimeActions, WorkflowsAreShownWithTheirSteps) {
  const auto list = call({"workflow", "list", "--phase=Running"});
  EXPECT_EQ(list.exit_code, 0) << list.err;
  EXPECT_THAT(list.out, AllOf(StartsWith("RUNTIME  NAMESPACE  NAME   PHASE    PROGRESS"),
                              HasSubstr("\nprod     ci         build  Running  1/2")));
  EXPECT_EQ(call({"workflow", "list", "--phase=Failed"}).err, "No resources found\n");
  const auto shown = call({"workflow", "get", "build"});
  EXPECT_THAT(shown.out, AllOf(HasSubstr("Template:  ci\n"), HasSubstr("\nmain  Pod")));
  EXPECT_EQ(Json::parse(call({"workflow", "get", "build", "-o", "json"}).out)["schema"],
            "gitopsctl/workflow/v1");
  EXPECT_EQ(call({"workflow", "get", "nothing"}).exit_code, 4);
  EXPECT_EQ(call({"workflow", "get", "build"}, "http://127.0.0.1:1").exit_code, 3);
}

TEST_F(RuntimeActions, LogsOfWorkflowsAndComponentsAreStreams) {
  const std::string line = "event: log\ndata: {\"podName\":\"p\",\"content\":\"a line\"}\n\n";
  bed().answer_with("200 OK", kStream, line + "event: end\ndata: {}\n\n");
  const auto workflow = call({"workflow", "logs", "build"});
  EXPECT_EQ(workflow.out, "p  a line\n") << workflow.err;
  EXPECT_THAT(bed().app_proxy().requests().back().target(),
              StartsWith("/app-proxy/api/applications/logs?workflowName=build&namespace=ci&"));
  EXPECT_EQ(call({"runtime", "logs", "prod", "cap-app-proxy"}).out, "p  a line\n");
  EXPECT_THAT(bed().app_proxy().requests().back().target(),
              HasSubstr("componentName=cap-app-proxy"));
  EXPECT_EQ(call({"workflow", "logs", "nothing"}).exit_code, 4);
  EXPECT_EQ(call({"runtime", "logs", "nothing", "x"}).exit_code, 4);
  bed().answer_with("403 Forbidden", kJson, R"({"message":"no"})");
  EXPECT_EQ(call({"runtime", "logs", "prod", "x"}).exit_code, 5);
  EXPECT_EQ(call({"runtime", "logs", "prod", "x"}, "http://127.0.0.1:1").exit_code, 3);
}

}  // namespace
}  // namespace gitops::test
