// Reports of images by the running app-proxy, as the public image reporter of a pipeline asks for them. The control
// plane and the API server are doubles; the test plays the controller of the Workflows.
#include <gmock/gmock.h>
#include <zlib.h>

#include "common/core/task_group.hpp"
#include "common/http/sse.hpp"
#include "doubles/fake_kube_api.hpp"
#include "e2e/app_proxy_world.hpp"
#include "k8s-client/resource.hpp"

namespace gitops::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;
using Answer = AppProxyWorld::Answer;
constexpr auto kBob = AppProxyWorld::kBob;
const std::string kQuery =
    "CF_IMAGE=registry.example.test%2Fshop%3A1.0&CF_GIT_PROVIDER=github&CF_GIT_REPO=acme%2Fshop&"
    "CF_GITHUB_TOKEN=canary-git&CF_CONTAINER_REGISTRY_INTEGRATION=hub";

std::string deflated(const std::string& text) {
  uLongf size = compressBound(text.size());
  std::string out(size, '\0');
  EXPECT_EQ(compress2(reinterpret_cast<Bytef*>(out.data()), &size,
                      reinterpret_cast<const Bytef*>(text.data()), text.size(), 9),
            Z_OK);
  out.resize(size);
  return percent_encode(base64_encode(out));
}

struct ImagesWorld {
  explicit ImagesWorld(const Executor& executor) : base(executor), cluster(executor) {
    base.platform.accounts().add(
        {.id = "acc-1", .name = "acme", .admins = {"u-ann"}, .git_provider = {}});
    EXPECT_TRUE(cluster.start());
    cluster.add_type(k8s::resources::kWorkflows);
    write_file(folder / "kubeconfig", cluster.kubeconfig());
  }
  Task<> start() {
    base.start({{"KUBECONFIG", (folder / "kubeconfig").string()},
                {"NAMESPACE", "default"},
                {"IRW_HEARTBEAT_INTERVAL_IN_SECONDS", "1"},
                {"IRW_SERVICE_ACCOUNT", "reporter"},
                {"RUNTIME_STORE_IV", "canary-iv"}});
    co_await base.account_known();
  }
  Task<Answer> report(std::string query, http::Headers headers = {{"authorization", kBob}}) {
    co_return co_await base.send(
        {.method = "GET",
         .target = "/app-proxy/api/image-report" + (query.empty() ? "" : "?" + query),
         .headers = std::move(headers)});
  }
  static std::vector<http::ServerSentEvent> events_of(const Answer& answer) {
    http::ServerSentEventParser parser(1024 * 1024);
    auto events = parser.feed(answer.body);
    EXPECT_TRUE(events);
    return events ? std::move(*events) : std::vector<http::ServerSentEvent>();
  }
  [[nodiscard]] std::vector<Json> objects(const k8s::Resource& resource) const {
    std::vector<Json> found;
    const auto* type = cluster.store().find_type(resource.group, resource.version, resource.plural);
    for (const auto& object : cluster.store().list(*type, "default")) {
      if (object->json["metadata"]["name"].get<std::string>().starts_with("image-report-")) {
        found.push_back(object->json);
      }
    }
    return found;
  }
  // Gives the first Workflow this status when its Secret is there, too.
  Task<> set_status(Json status) {
    const auto deadline = deadline_after(30s);
    while (objects(k8s::resources::kSecrets).empty() && Clock::now() < deadline) {
      co_await sleep_for(20ms);
    }
    auto workflows = objects(k8s::resources::kWorkflows);
    CO_ASSERT_EQ(workflows.size(), 1U);
    workflows[0]["status"] = std::move(status);
    cluster.put(k8s::resources::kWorkflows, workflows[0]);
  }

  [[nodiscard]] std::string logs() const { return base.logs(); }
  Task<> stop() {
    co_await base.stop();
    co_await cluster.stop();
  }

  AppProxyWorld base;
  FakeKubeApi cluster;
  TempDir folder;
};

void in_images_world(const std::function<Task<>(ImagesWorld&)>& body) {
  run_coro(
      [&]() -> Task<> {
        ImagesWorld world(co_await asio::this_coro::executor);
        co_await play_in(world, body);
      },
      std::chrono::seconds(60));
}

TEST(AppProxyImages, AReportIsAWorkflowWhoseEndIsTold) {
  in_images_world([](ImagesWorld& w) -> Task<> {
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
    const auto events = ImagesWorld::events_of(answer);
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
    bool is_in_audit = false;
    for (const Json& line : w.base.audit()) {
      is_in_audit = is_in_audit || (line["action"] == "image-report" && line["result"] == "ok" &&
                                    line["subject"]["image"] == "registry.example.test/shop:1.0");
    }
    EXPECT_TRUE(is_in_audit);
  });
}

// AC-07, AC-32: each problem is an event, and nothing was made.
TEST(AppProxyImages, AC07_WhatCannotBeReportedSaysWhy) {
  in_images_world([](ImagesWorld& w) -> Task<> {
    co_await w.start();
    const auto last = [&](const Answer& answer) {
      EXPECT_EQ(answer.status, 200) << answer.body;
      const auto events = ImagesWorld::events_of(answer);
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
    cookie.add("Origin", AppProxyWorld::kPage);
    EXPECT_EQ(last(co_await w.report(kQuery, cookie)), "forbidden");
    EXPECT_TRUE(w.objects(k8s::resources::kWorkflows).empty());
    EXPECT_TRUE(w.objects(k8s::resources::kSecrets).empty());

    // Without its Secret a Workflow would wait for ever.
    w.cluster.set_access([](const FakeKubeApi::Access& access) {
      return access.resource != "secrets" || access.verb != "create";
    });
    EXPECT_EQ(last(co_await w.report(kQuery)), "forbidden");
    EXPECT_TRUE(w.objects(k8s::resources::kWorkflows).empty());

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
    const auto failed = co_await w.report(kQuery);
    co_await group.join();
    EXPECT_EQ(last(failed), "Failed");
    EXPECT_THAT(failed.body, HasSubstr("no such image"));
  });
}

}  // namespace
}  // namespace gitops::test
