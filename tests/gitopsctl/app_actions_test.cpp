// Actions on Applications: the real gitopsctl, a real control plane, and an app-proxy that answers as each test wants.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "daemons/control_plane_bed.hpp"
#include "gitopsctl/action_bed.hpp"
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

class AppActions : public testing::Test {
 protected:
  AppActions() { bed().app_proxy().forget(); }
  static ActionBed& bed() { return action_bed(); }
  CommandResult call(Words words, const std::string& url = {}) const {
    words.insert(words.begin(), std::string(GITOPS_BIN_DIR) + "/gitopsctl");
    const Environment environment{{"HTTP_PROXY", std::nullopt},
                                  {"http_proxy", std::nullopt},
                                  {"HOME", folder_.path()},
                                  {"CODEFRESH_URL", url.empty() ? bed().program().url() : url},
                                  {"CODEFRESH_TOKEN", bed().key}};
    auto result = run_command(words, environment);
    EXPECT_THAT(result.out + result.err, AllOf(Not(HasSubstr(bed().key)), Not(HasSubstr("\x1b"))));
    return result;
  }
  // The variables of the last request to the app-proxy.
  static Json variables() {
    const auto requests = bed().app_proxy().requests();
    return requests.empty() ? Json() : Json::parse(requests.back().body)["variables"];
  }

  TempDir folder_;
};

const std::vector<Words>& actions() {
  static const std::vector<Words> all = {{"app", "sync", "shop"},
                                         {"app", "rollback", "shop", "3"},
                                         {"app", "terminate", "shop"},
                                         {"app", "refresh", "shop", "--hard"}};
  return all;
}

TEST_F(AppActions, DoneIsSaidWithTheKeyOfTheUserAndTheNamesOfTheApplication) {
  bed().answer_with("200 OK", kJson, R"({"data":{"sync":{"metadata":{"name":"shop"}}}})");
  bed().begin_operation_at_next_request();
  const auto synced = call({"app", "sync", "shop", "--prune", "--revision=v2"});
  EXPECT_EQ(synced.exit_code, 0) << synced.err;
  EXPECT_EQ(synced.out, "Done: the sync of prod/argocd/shop has begun\n");
  const auto request = bed().app_proxy().requests().back();
  EXPECT_EQ(request.target(), "/app-proxy/api/graphql");
  EXPECT_EQ(request.header("Authorization"), bed().key) << "raw, as public clients send it";
  EXPECT_EQ(variables(), Json::parse(R"({"name":"shop","namespace":"argocd","options":
    {"prune":true,"dryRun":false,"revision":"v2"}})"));

  bed().answer_with("200 OK", kJson, R"({"data":{"appRollback":null}})");
  bed().begin_operation_at_next_request();
  EXPECT_EQ(call({"app", "rollback", "shop", "3"}).exit_code, 0);
  EXPECT_EQ(variables()["id"], 3);
  bed().answer_with("200 OK", kJson,
                    R"({"data":{"terminateApplicationOperation":{"terminated":false}}})");
  EXPECT_THAT(call({"app", "terminate", "shop"}).out,
              HasSubstr("no operation of prod/argocd/shop ran"));
  bed().answer_with("200 OK", kJson, R"({"data":{"refresh":{"metadata":{"name":"shop"}}}})");
  EXPECT_EQ(call({"app", "refresh", "shop", "--hard"}).out,
            "Done: prod/argocd/shop is compared with Git again\n");
  EXPECT_EQ(variables()["options"]["refresh"], "hard");
}

TEST_F(AppActions, RefusedFailedAndUnknownAreToldApart) {
  struct Case {
    std::string status, fields, body;
    int exit_code;
    std::string says;
  };
  const auto error = [](const char* extensions) {
    return std::string(R"({"data":null,"errors":[{"message":"so it is","extensions":)") +
           extensions + "}]}";
  };
  const std::vector<Case> cases = {
      {"200 OK", kJson, error("403"), 5, "Refused (Forbidden): so it is. Nothing was changed."},
      {"200 OK", kJson, error(R"({"code":"CONFLICT","statusCode":409})"), 5,
       "Refused (Conflict): "},
      {"200 OK", kJson, error(R"({"code":"NOT_FOUND_ERROR","statusCode":404})"), 4,
       "Refused (NotFound): "},
      {"401 Unauthorized", kJson, R"({"error":"no"})", 5, "Refused (Unauthorized): no"},
      {"200 OK", kJson, error(R"({"statusCode":500})"), 1, "Failed (InternalError): so it is\n"},
      {"200 OK", kJson, error(R"({"code":"INTERNAL_SERVER_ERROR"})"), 1, "Failed (Unexpected): "},
      {"503 Service Unavailable", "", "", 3, "Unknown (ServiceUnavailable): "},
      {"429 Too Many Requests", kJson, R"({"message":"later"})", 5, "Refused (TooManyRequests): "},
      {"200 OK", kJson, error(R"({"statusCode":504})"), 3, "Unknown (ServiceUnavailable): "},
      {"200 OK", "Content-Type: text/html\r\n", "<html>hello</html>", 3, "Unknown (Unexpected): "},
      {"502 Bad Gateway", "", "", 3, "Unknown (ServiceUnavailable): "},
      {"", "", "", 3, "Unknown ("},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Case& one = cases[i];
    const Words& words = actions()[i % actions().size()];
    bed().answer_with(one.status, one.fields, one.body);
    const auto result = call(words);
    EXPECT_EQ(result.exit_code, one.exit_code) << words[1] << one.status << one.body << result.err;
    EXPECT_THAT(result.err, StartsWith(one.says)) << words[1];
    EXPECT_EQ(result.out, "") << words[1];
  }
}

TEST_F(AppActions, WhatIsMissingIsNotAskedFor) {
  for (Words words : actions()) {
    words[2] = "nothing";
    EXPECT_EQ(call(words).exit_code, 4) << words[1];
    words[2] = "nowhere/argocd/shop";
    EXPECT_EQ(call(words).exit_code, 4) << words[1];
  }
  EXPECT_EQ(call({"app", "rollback", "shop", "three"}).exit_code, 2);
  const auto silent = call({"app", "sync", "quiet"});
  EXPECT_EQ(silent.exit_code, 5);
  EXPECT_THAT(silent.err, AllOf(HasSubstr("has no ingress host"),
                                HasSubstr("docs/guides/access-modes.md gives it one")));
  EXPECT_TRUE(bed().app_proxy().requests().empty());
}

// A full name is not looked up, so the address of the runtime is the first thing that is asked for.
TEST_F(AppActions, WithoutAControlPlaneNothingIsSaidToBeDone) {
  for (Words words : actions()) {
    words[2] = "prod/argocd/shop";
    const auto away = call(words, "http://127.0.0.1:1");
    EXPECT_EQ(away.exit_code, 3) << words[1] << away.out;
    EXPECT_EQ(away.out, "") << words[1];
    EXPECT_THAT(away.err,
                AllOf(StartsWith("Unable to connect to the server: "),
                      HasSubstr(". Nothing was changed.\n"), Not(HasSubstr("may have been done"))))
        << words[1];
  }
  EXPECT_TRUE(bed().app_proxy().requests().empty());
}

TEST_F(AppActions, LogsAreLinesWithoutEscapes) {
  constexpr const char* kStream = "Content-Type: text/event-stream\r\n";
  const std::string line =
      "event: log\ndata: {\"podName\":\"ui-1\",\"content\":\"a \\u001b[1;31mli\\u001b[0mne [31m] "
      "\\u001b]0;x\"}\n\n";
  bed().answer_with("200 OK", kStream, line + line + "event: end\ndata: {}\n\n");
  const auto whole = call({"app", "logs", "shop", "--tail=5", "--pod=ui-1"});
  EXPECT_EQ(whole.exit_code, 0) << whole.err;
  EXPECT_EQ(whole.out, "ui-1  a line [31m]  ]0;x\nui-1  a line [31m]  ]0;x\n");
  EXPECT_THAT(bed().app_proxy().requests().back().target(),
              AllOf(StartsWith("/app-proxy/api/applications/logs?applicationName=shop&"
                               "appNamespace=argocd&podName=ui-1"),
                    HasSubstr("tailLines=5")));

  bed().answer_with("200 OK", kStream,
                    line + "event: trouble\ndata: pod ui-2: gone\n\nevent: end\ndata: {}\n\n");
  const auto part = call({"app", "logs", "shop"});
  EXPECT_EQ(part.exit_code, 3);
  EXPECT_EQ(part.err, "pod ui-2: gone\n");
  bed().answer_with("200 OK", kStream, line);
  EXPECT_EQ(call({"app", "logs", "shop"}).exit_code, 3) << "the end did not come";
  bed().answer_with("403 Forbidden", kJson, R"({"message":"no"})");
  EXPECT_EQ(call({"app", "logs", "shop"}).exit_code, 5);
  bed().answer_with("200 OK", "Content-Type: text/html\r\n", "<html>");
  EXPECT_EQ(call({"app", "logs", "shop"}).exit_code, 3);
}

TEST_F(AppActions, ADifferenceIsThatOfYaml) {
  const Json states{{"normalizedLiveState", R"({"spec":{"replicas":1,"paused":false}})"},
                    {"predictedLiveState", R"({"spec":{"replicas":2,"paused":false}})"}};
  bed().answer_with("200 OK", kJson, Json{{"data", {{"resource", states}}}}.dump());
  const auto result = call({"app", "diff", "shop"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out,
            "--- live Deployment web/ui\n+++ git  Deployment web/ui\n@@ -1,3 +1,3 @@\n spec:\n"
            "   paused: false\n-  replicas: 1\n+  replicas: 2\n");
  EXPECT_EQ(variables()["appNamespace"], "argocd");
  bed().answer_with("200 OK", kJson, R"({"errors":[{"message":"no","extensions":403}]})");
  EXPECT_EQ(call({"app", "diff", "shop"}).exit_code, 5);
  bed().answer_with("200 OK", kJson, R"({"data":{"resource":null}})");
  const auto unknown = call({"app", "diff", "shop"});
  EXPECT_EQ(unknown.exit_code, 3) << "nothing is not the same as no difference";
  EXPECT_THAT(unknown.err, HasSubstr("Deployment web/ui is out of sync"));
  bed().answer_with(
      "200 OK", kJson,
      R"({"data":{"resource":{"normalizedLiveState":null,"predictedLiveState":""}}})");
  const auto empty = call({"app", "diff", "shop"});
  EXPECT_EQ(empty.exit_code, 3) << empty.out;
  EXPECT_THAT(empty.err, HasSubstr("Deployment web/ui is out of sync"));
}

TEST_F(AppActions, TextsOfTheClusterAreShownWithoutEscapes) {
  EXPECT_THAT(call({"app", "get", "shop"}).out, HasSubstr("Healthy: red  [31m text"));
  EXPECT_THAT(call({"app", "get", "shop", "-o", "yaml"}).out, HasSubstr("[31m text"));
}

// The control plane is asked by TLS, so the user does not expect the key in clear text anywhere.
TEST(AppActionsWithoutTls, TheKeyIsNotSent) {
  const ControlPlaneBed bed;
  const Json runtime{{"runtimeName", "clear"},
                     {"runtimeNamespace", "gitops"},
                     {"cluster", "https://kubernetes.default.svc"},
                     {"installationType", "HELM"},
                     {"runtimeVersion", "0.2.0"},
                     {"ingressHost", "http://runtime.example.test"},
                     {"componentNames", Json::array()}};
  const auto created = bed.ask(
      "mutation($a: RuntimeInstallationArgs!){createRuntime(installationArgs: "
      "$a){newAccessToken}}",
      {{"a", runtime}});
  static_cast<void>(bed.program().post_application(created["newAccessToken"],
                                                   ActionBed::application("shop", "Healthy"), 1));
  const TempDir home;
  const auto result = run_command({std::string(GITOPS_BIN_DIR) + "/gitopsctl", "app", "sync",
                                   "shop", "--control-plane-ca-file", bed.ca_file().string()},
                                  {{"HTTP_PROXY", std::nullopt},
                                   {"http_proxy", std::nullopt},
                                   {"HOME", home.path()},
                                   {"CODEFRESH_URL", bed.url()},
                                   {"CODEFRESH_TOKEN", kAnnKey}});
  EXPECT_EQ(result.exit_code, 5) << result.out << result.err;
  EXPECT_THAT(result.err, AllOf(HasSubstr("http://runtime.example.test without TLS"),
                                HasSubstr("Nothing was changed")));
}

}  // namespace
}  // namespace gitops::test
