#include "doubles/fake_platform.hpp"

#include <gtest/gtest.h>

#include "common/core/encoding.hpp"
#include "common/core/task_group.hpp"
#include "common/http/client.hpp"
#include "common/http/gzip.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"

namespace gitops::test {
namespace {

using Json = nlohmann::json;

std::string event(const std::string& kind, const std::string& name, bool as_text = false) {
  const auto object = Json{{"kind", kind}, {"metadata", {{"name", name}}}}.dump();
  return Json{{"data",
               {{"object", as_text ? object : gitops::base64_encode(object)},
                {"source", {{"syncStatus", "Synced"}}}}}}
      .dump();
}

struct Fixture {
  explicit Fixture(const Executor& executor) : platform(executor), client(executor, resolver, {}) {}

  Task<int> post(std::string body, http::Headers headers) {
    const auto response = co_await client.send(
        platform.url(), {"POST", "/2.0/api/events", std::move(headers), std::move(body)}, soon());
    co_return response ? response->status : 0;
  }
  Task<int> post(std::string body) {
    return post(http::gzip_compress(body), {{"Content-Type", "application/json"},
                                            {"Content-Encoding", "gzip"},
                                            {"Authorization", "platform-token"},
                                            {"X-Event-Id", "id-1"}});
  }

  FakePlatform platform;
  Metrics metrics;
  net::Resolver resolver{metrics};
  http::Client client;
};

void on_fixture(const std::function<Task<>(Fixture&)>& body) {
  run_coro([&]() -> Task<> {
    Fixture fixture(co_await asio::this_coro::executor);
    CO_ASSERT_OK(fixture.platform.start());
    co_await body(fixture);
    fixture.client.close_idle();
    co_await fixture.platform.stop();
  });
}

TEST(FakePlatform, KeepsWhatItAcknowledgedInOrder) {
  on_fixture([](Fixture& fixture) -> Task<> {
    EXPECT_EQ(co_await fixture.post(event("Application", "shop")), 200);
    EXPECT_EQ(co_await fixture.post(event("Rollout", "checkout", true)), 200);
    const auto& reports = fixture.platform.reports();
    CO_ASSERT_EQ(reports.size(), 2U);
    EXPECT_EQ(reports[0].kind(), "Application");
    EXPECT_EQ(reports[0].event_id, "id-1");
    EXPECT_EQ(reports[0].source("syncStatus"), "Synced");
    EXPECT_EQ(reports[1].name(), "checkout");
    EXPECT_EQ(fixture.platform.find("Rollout", "").size(), 1U);
    EXPECT_TRUE(fixture.platform.find("Application", "", 1).empty());
    EXPECT_TRUE(fixture.platform.refused().empty());
    const auto record =
        co_await fixture.client.send(fixture.platform.url(), {"GET", "/events", {}, {}}, soon());
    CO_ASSERT_OK(record);
    EXPECT_EQ(Json::parse(record->body).size(), 2U);
  });
}

TEST(FakePlatform, WaitsForAReport) {
  on_fixture([](Fixture& fixture) -> Task<> {
    const auto is_shop = [](const FakePlatform::Report& report) { return report.name() == "shop"; };
    EXPECT_EQ(
        co_await fixture.platform.wait_for(is_shop, deadline_after(std::chrono::milliseconds(50))),
        nullptr);
    const auto executor = co_await asio::this_coro::executor;
    TaskGroup tasks(executor);
    tasks.spawn("late", [&fixture]() -> Task<> {
      co_await sleep_for(std::chrono::milliseconds(20));
      EXPECT_EQ(co_await fixture.post(event("Application", "shop")), 200);
    });
    const auto* report = co_await fixture.platform.wait_for(is_shop, soon());
    CO_ASSERT_TRUE(report != nullptr);
    EXPECT_EQ(report->kind(), "Application");
    EXPECT_TRUE(co_await fixture.platform.wait_for_count(1, soon()));
    EXPECT_TRUE(co_await fixture.platform.wait_until_quiet(std::chrono::milliseconds(30), soon()));
    co_await tasks.join();
  });
}

TEST(FakePlatform, RefusesWhatAReporterMustNotSend) {
  on_fixture([](Fixture& fixture) -> Task<> {
    const http::Headers plain{{"Content-Type", "application/json"},
                              {"Authorization", "platform-token"}};
    const auto good = event("Application", "shop");
    EXPECT_EQ(co_await fixture.post(good, {{"Content-Type", "application/json"}}), 401);
    EXPECT_EQ(co_await fixture.post(good, {{"Content-Type", "application/json"},
                                           {"Authorization", "Bearer platform-token"}}),
              401);
    EXPECT_EQ(co_await fixture.post(good, {{"Authorization", "platform-token"}}), 415);
    auto packed = plain;
    packed.add("Content-Encoding", "gzip");
    EXPECT_EQ(co_await fixture.post("not gzip", packed), 400);
    EXPECT_EQ(co_await fixture.post("{}", plain), 400);
    EXPECT_EQ(co_await fixture.post(R"({"data":{"object":"%%"}})", plain), 400);
    EXPECT_TRUE(fixture.platform.reports().empty());
    EXPECT_EQ(fixture.platform.refused().size(), 6U);
  });
}

TEST(FakePlatform, FailsAsToldWithoutKeepingAnything) {
  on_fixture([](Fixture& fixture) -> Task<> {
    fixture.platform.fail_next(1, 503, std::chrono::seconds(7));
    EXPECT_EQ(co_await fixture.post(event("Application", "shop")), 503);
    EXPECT_TRUE(fixture.platform.reports().empty());
    EXPECT_TRUE(fixture.platform.refused().empty());
    EXPECT_EQ(co_await fixture.post(event("Application", "shop")), 200);
  });
}

}  // namespace
}  // namespace gitops::test
