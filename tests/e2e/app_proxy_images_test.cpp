// Reports of images by the running app-proxy, as the public image reporter of a pipeline asks for them. The control
// plane and the API server are doubles; the test plays the controller of the Workflows. One report is sent with the real
// control plane, too, which takes what the report's task sends.
#include <gmock/gmock.h>
#include <zlib.h>

#include "common/core/task_group.hpp"
#include "common/http/sse.hpp"
#include "doubles/fake_kube_api.hpp"
#include "e2e/app_proxy_harness.hpp"
#include "e2e/app_proxy_images_harness.hpp"
#include "k8s-client/resource.hpp"
#include "support/wait.hpp"

namespace gitops::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;
using Answer = AppProxyHarness::Answer;
constexpr auto kAnn = AppProxyHarness::kAnn;

const std::string kQuery =
    "CF_IMAGE=registry.example.test%2Fshop%3A1.0&CF_GIT_PROVIDER=github&CF_GIT_REPO=acme%2Fshop&"
    "CF_GITHUB_TOKEN=canary-git&CF_INSECURE=true";

struct AppProxyImagesAtBoth : testing::TestWithParam<ControlPlaneKind> {};
INSTANTIATE_TEST_SUITE_P(ControlPlane, AppProxyImagesAtBoth,
                         testing::Values(ControlPlaneKind::fake, ControlPlaneKind::program),
                         [](const auto& info) { return kind_name(info.param); });

TEST_P(AppProxyImagesAtBoth, AReportIsAWorkflowWhoseEndIsTold) {
  in_images_harness(GetParam(), [](ImagesHarness& w) -> Task<> {
    co_await w.start();
    EXPECT_EQ((co_await w.report(kQuery, {})).status, 401);
    const auto catalogue = co_await w.report("");
    EXPECT_EQ(catalogue.status, 200);
    EXPECT_TRUE(catalogue.json["sections"].is_array()) << catalogue.body;

    TaskGroup group(co_await asio::this_coro::executor);
    group.spawn("controller", [&w]() -> Task<> {
      co_await w.set_status({{"phase", "Running"}});
      // Until it was read again.
      const auto reads = w.cluster.count("GET", "/workflows/image-report-");
      CO_ASSERT_TRUE(co_await w.cluster.wait_until(
          [&w, reads] { return w.cluster.count("GET", "/workflows/image-report-") >= reads + 2; },
          deadline_after(30s)));
      co_await w.set_status({{"phase", "Succeeded"}});
    });
    const auto answer = co_await w.report("data=" + deflated(kQuery));
    co_await group.join();
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.headers.find("Content-Type").value_or(""), "text/event-stream");
    const auto events = ImagesHarness::events_of(answer);
    CO_ASSERT_TRUE(events.size() >= 4) << answer.body;
    EXPECT_EQ(events.front().event, "info");
    EXPECT_EQ(events.back().event, "end");
    EXPECT_THAT(answer.body, HasSubstr("event: heartbeat\ndata: 1000\n"));
    EXPECT_THAT(answer.body, HasSubstr("event: warn\n"));
    EXPECT_THAT(answer.body, HasSubstr("Running"));

    const auto workflow = w.objects(k8s::resources::kWorkflows).at(0);
    EXPECT_EQ(workflow["spec"]["serviceAccountName"], "reporter");
    EXPECT_THAT(workflow.dump(), Not(HasSubstr("canary")));
    const auto secret = w.objects(k8s::resources::kSecrets).at(0);
    EXPECT_EQ(secret["metadata"]["name"], workflow["metadata"]["name"]);
    EXPECT_EQ(secret["metadata"]["ownerReferences"][0]["uid"], workflow["metadata"]["uid"]);
    EXPECT_EQ(base64_decode(secret["data"]["CF_API_KEY"].get<std::string>()).value(), kBob);
    EXPECT_EQ((co_await w.base.audited("image-report"))["subject"]["image"],
              "registry.example.test/shop:1.0");
    if (!w.side.is_program()) co_return;
    // With the key of the tasks.
    const Json image{{"id", "sha256:1"},
                     {"created", "2026-03-04T09:00:00Z"},
                     {"imageName", "registry.example.test/shop:1.0"},
                     {"workflowName", "build"}};
    EXPECT_EQ(w.side.program().ask(
                  "mutation C($imageBinary: ImageBinaryInput!){createImageBinary(imageBinary: "
                  "$imageBinary){id imageName workflowName}}",
                  {{"imageBinary", image}}, w.task_environment()["CF_API_KEY"]),
              (Json{{"id", "sha256:1"},
                    {"imageName", "registry.example.test/shop:1.0"},
                    {"workflowName", "build"}}));
  });
}

// AC-28: what is named instead of given reaches the tasks, beside nothing that the client chose, and nobody else.
TEST(AppProxyImages, AC28_CredentialsOfTheRuntimeReachTheTasksAlone) {
  in_images_harness([](ImagesHarness& w) -> Task<> {
    w.put_integration("hub", "registry.docker-hub", {{"username", "acme"}},
                      {{"password", "canary-hub"}});
    w.put_integration("my-jira", "issue.jira",
                      {{"host_url", "https://jira.example.test"}, {"email", "a@b.test"}},
                      {{"api_token", "canary-jira"}});
    co_await w.start({{"GIT_USERNAME", "robot"}, {"GIT_PASSWORD", "canary-own"}});
    TaskGroup group(co_await asio::this_coro::executor);
    group.spawn("controller",
                [&w]() -> Task<> { co_await w.set_status({{"phase", "Succeeded"}}); });
    const auto answer = co_await w.report(
        "CF_IMAGE=acme/shop:1&CF_CONTAINER_REGISTRY_INTEGRATION=hub&CF_REGISTRY_DOMAIN=evil.test&"
        "CF_ISSUE_TRACKING_INTEGRATION=my-jira&CF_JIRA_MESSAGE=CR-1&CF_GIT_REPO=acme/shop&"
        "CF_GITHUB_API_HOST_URL=https://evil.test",
        {{"authorization", kAnn}});
    co_await group.join();
    EXPECT_EQ(ImagesHarness::events_of(answer).back().event, "end") << answer.body;
    EXPECT_EQ(w.task_environment(),
              (std::map<std::string, std::string>{{"CF_API_KEY", kAnn},
                                                  {"IMAGE_NAME", "acme/shop:1"},
                                                  {"DOCKERHUB_USERNAME", "acme"},
                                                  {"DOCKERHUB_PASSWORD", "canary-hub"},
                                                  {"JIRA_HOST_URL", "https://jira.example.test"},
                                                  {"JIRA_EMAIL", "a@b.test"},
                                                  {"JIRA_API_TOKEN", "canary-jira"},
                                                  {"JIRA_MESSAGE", "CR-1"},
                                                  {"REPO", "acme/shop"},
                                                  {"GIT_PROVIDER", "github"},
                                                  {"GITHUB_API_HOST_URL", "https://api.github.com"},
                                                  {"GITHUB_TOKEN", "canary-own"}}));
    EXPECT_THAT(w.objects(k8s::resources::kWorkflows).at(0).dump(), Not(HasSubstr("canary")));
    EXPECT_EQ((co_await w.base.audited("image-report"))["subject"]["registry"], "hub");
  });
}

TEST(AppProxyImages, AMissingIntegrationIsToldAndNothingIsMade) {
  in_images_harness([](ImagesHarness& w) -> Task<> {
    co_await w.start();
    for (const char* query :
         {"CF_CONTAINER_REGISTRY_INTEGRATION=none", "CF_CONTAINER_REGISTRY_INTEGRATION=..%2Fx",
          "CF_GIT_REPO=a/b&CF_GIT_INTEGRATION=none"}) {
      const auto answer = co_await w.report(std::string("CF_IMAGE=a&") + query);
      const auto events = ImagesHarness::events_of(answer);
      CO_ASSERT_EQ(events.size(), 1U) << answer.body;
      EXPECT_EQ(events[0].event, "error");
    }
    EXPECT_TRUE(w.objects(k8s::resources::kWorkflows).empty());
    // A failed read is not known: the report is not begun without the credentials.
    w.cluster.set_access(
        [](const FakeKubeApi::Access& access) { return access.resource != "configmaps"; });
    const auto refused = co_await w.report("CF_IMAGE=a&CF_JIRA_INTEGRATION=my-jira");
    EXPECT_THAT(refused.body, HasSubstr("event: error"));
    EXPECT_TRUE(w.objects(k8s::resources::kWorkflows).empty());
    w.cluster.set_access({});
    // An integration of issues that the runtime lacks may be one of the control plane. Commits are no reason to fail,
    // and Bob, who has no Git token here, does not get that of the runtime.
    TaskGroup group(co_await asio::this_coro::executor);
    group.spawn("controller",
                [&w]() -> Task<> { co_await w.set_status({{"phase", "Succeeded"}}); });
    const auto answer =
        co_await w.report("CF_IMAGE=a&CF_JIRA_INTEGRATION=my-jira&CF_GIT_REPO=acme/shop");
    co_await group.join();
    EXPECT_EQ(ImagesHarness::events_of(answer).back().event, "end") << answer.body;
    EXPECT_THAT(answer.body, HasSubstr("event: warn\ndata: no commits are added"));
    EXPECT_EQ(w.task_environment()["JIRA_CONTEXT"], "my-jira");
    std::vector<std::string> templates;
    for (const Json& one : w.objects(k8s::resources::kWorkflows).at(0)["spec"]["templates"]) {
      templates.push_back(one["name"]);
    }
    EXPECT_THAT(templates, testing::ElementsAre("report-image-info", "jira-info", "main"));
  });
}

// As from a balancer whose API server is away. The integration may be there, with its credentials.
TEST(AppProxyImages, A404WithoutAReasonIsNoMissingIntegration) {
  in_images_harness([](ImagesHarness& w) -> Task<> {
    co_await w.start();
    w.cluster.remove_type(k8s::resources::kConfigMaps);
    const auto answer = co_await w.report("CF_IMAGE=a&CF_JIRA_INTEGRATION=my-jira");
    EXPECT_THAT(answer.body, HasSubstr("event: error"));
    EXPECT_THAT(answer.body, HasSubstr("unavailable"));
    EXPECT_TRUE(w.objects(k8s::resources::kWorkflows).empty());
  });
}

TEST(AppProxyImages, AWorkflowWhoseAnswerIsLostIsRemoved) {
  in_images_harness([](ImagesHarness& w) -> Task<> {
    co_await w.start();
    w.cluster.abort_next(1, "/namespaces/default/workflows");
    const auto answer = co_await w.report(kQuery);
    EXPECT_THAT(answer.body, HasSubstr("event: error"));
    EXPECT_EQ(w.cluster.count("DELETE", "/workflows/image-report-"), 1U);
  });
}

TEST(AppProxyImages, TheLogsOfTheTasksAreShown) {
  in_images_harness([](ImagesHarness& w) -> Task<> {
    co_await w.start(
        {{"ARGO_WORKFLOWS_URL", "http://127.0.0.1:" + std::to_string(w.argo.server.port())}});
    TaskGroup group(co_await asio::this_coro::executor);
    group.spawn("controller", [&w]() -> Task<> {
      co_await w.set_status({{"phase", "Running"}});
      EXPECT_TRUE(co_await test::eventually([&] { return w.argo.asked > 0; }, "a request to Argo"));
      co_await w.set_status({{"phase", "Succeeded"}});
    });
    const auto answer = co_await w.report("CF_IMAGE=a");
    co_await group.join();
    const auto events = ImagesHarness::events_of(answer);
    std::vector<std::string> lines;
    for (const auto& event : events) {
      if (event.event == "workflow-log") lines.push_back(event.data);
    }
    EXPECT_THAT(lines, testing::ElementsAre(
                           R"({"content":"starting image reporter","podName":"report-1"})",
                           R"({"content":"image reported successfully","podName":"report-1"})"));
    EXPECT_EQ(events.back().event, "end");
    EXPECT_EQ(w.argo.asked, 1);
  });
}

// AC-07, AC-32: each problem is an event, and nothing was made.
TEST(AppProxyImages, AC07_WhatCannotBeReportedSaysWhy) {
  in_images_harness([](ImagesHarness& w) -> Task<> {
    co_await w.start();
    const auto last = [&](const Answer& answer) {
      EXPECT_EQ(answer.status, 200) << answer.body;
      const auto events = ImagesHarness::events_of(answer);
      EXPECT_FALSE(events.empty());
      return events.empty() ? Json()
                            : Json::parse(events.back().data, nullptr, false)
                                  .value("name", Json(events.back().event));
    };
    EXPECT_EQ(last(co_await w.report("data=" + deflated(std::string(4'000'000, 'a')))),
              "too_large");
    EXPECT_EQ(last(co_await w.report("data=%25")), "invalid_argument");
    EXPECT_EQ(last(co_await w.report("CF_GIT_REPO=a")), "invalid_argument");
    // What a browser adds by itself, to another site's request and to one of our pages.
    http::Headers cookie{{"Cookie", std::string("session=") + kBob}};
    EXPECT_EQ((co_await w.report(kQuery, cookie)).status, 403);
    cookie.add("Origin", AppProxyHarness::kPage);
    EXPECT_EQ(last(co_await w.report(kQuery, cookie)), "forbidden");
    EXPECT_TRUE(w.objects(k8s::resources::kWorkflows).empty());
    EXPECT_TRUE(w.objects(k8s::resources::kSecrets).empty());

    // Without its Secret a Workflow would wait for ever.
    w.cluster.set_access([](const FakeKubeApi::Access& access) {
      return access.resource != "secrets" || access.verb != "create";
    });
    EXPECT_EQ(last(co_await w.report(kQuery)), "forbidden");
    EXPECT_TRUE(w.objects(k8s::resources::kWorkflows).empty());
    // Each user has so many, whether the client waits for the end or not.
    Json name;
    for (int i = 0; i < 400 && name != "too_many_requests"; ++i) {
      name = last(co_await w.report(kQuery));
    }
    EXPECT_EQ(name, "too_many_requests");
    EXPECT_EQ(last(co_await w.report(kQuery, {{"authorization", kAnn}})), "forbidden");

    w.cluster.set_access({});
    TaskGroup group(co_await asio::this_coro::executor);
    group.spawn("controller", [&w]() -> Task<> {
      co_await w.set_status(
          {{"phase", "Failed"},
           {"nodes",
            {{"a",
              {{"outputs",
                {{"parameters", {{{"name", "exit_error"}, {"value", "no such image"}}}}}}}}}}});
    });
    const auto failed = co_await w.report(kQuery, {{"authorization", kAnn}});
    co_await group.join();
    EXPECT_EQ(last(failed), "Failed");
    EXPECT_THAT(failed.body, HasSubstr("no such image"));
  });
}

}  // namespace
}  // namespace gitops::test
