#include "doubles/fake_kube_api.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/http/client.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"

namespace gitops::test {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
namespace r = k8s::resources;

const std::string kMaps = "/api/v1/namespaces/default/configmaps";

// The double, and a plain HTTP client.
struct Fixture {
  explicit Fixture(const Executor& executor, FakeKubeApi::Options options = {})
      : api(executor, std::move(options)), client(executor, resolver, {}) {}

  Task<http::Response> send(std::string method, std::string target, std::string body = {},
                            http::Headers headers = {}) {
    auto response = co_await client.send(
        api.url(), {std::move(method), std::move(target), std::move(headers), std::move(body)},
        soon());
    if (!response) {
      ADD_FAILURE() << response.error().message;
      co_return http::Response{.status = 0, .headers = {}, .body = {}};
    }
    co_return std::move(*response);
  }
  Task<Result<http::ClientExchange>> watch(std::string query) {
    http::Request request;
    request.target = kMaps + "?watch=true&" + query;
    auto exchange = co_await client.open(api.url(), std::move(request), soon());
    if (!exchange) co_return std::unexpected(exchange.error());
    const auto head = co_await exchange->read_head();
    if (!head) co_return std::unexpected(head.error());
    EXPECT_EQ(head->status, 200);
    co_return std::move(exchange);
  }
  void put(const std::string& name, const std::string& value) {
    api.put(r::kConfigMaps, {{"metadata", {{"name", name}}}, {"data", {{"value", value}}}});
  }

  FakeKubeApi api;
  Metrics metrics;
  net::Resolver resolver{metrics};
  http::Client client;
};

void on_fixture(const std::function<Task<>(Fixture&)>& body, FakeKubeApi::Options options = {}) {
  run_coro([&]() -> Task<> {
    Fixture fixture(co_await asio::this_coro::executor, options);
    CO_ASSERT_OK(fixture.api.start());
    std::exception_ptr failure;
    try {
      co_await body(fixture);
    } catch (...) {
      failure = std::current_exception();
    }
    fixture.client.close_idle();
    co_await fixture.api.stop();
    if (failure) std::rethrow_exception(failure);
  });
}

TEST(FakeKubeApi, FailsTheNextRequestsAsTold) {
  on_fixture([](Fixture& fixture) -> Task<> {
    fixture.api.fail_next(2, 429, std::chrono::seconds(3), "configmaps");
    EXPECT_EQ((co_await fixture.send("GET", "/api/v1/namespaces/default/secrets")).status, 200);
    for (int i = 0; i < 2; ++i) {
      const auto refused = co_await fixture.send("GET", kMaps);
      EXPECT_EQ(refused.status, 429);
      EXPECT_EQ(refused.headers.find("Retry-After"), "3");
      EXPECT_EQ(Json::parse(refused.body).value("reason", ""), "TooManyRequests");
    }
    EXPECT_EQ((co_await fixture.send("GET", kMaps)).status, 200);
    EXPECT_EQ(fixture.api.count("GET", "configmaps"), 3U);
  });
}

TEST(FakeKubeApi, AbortsTheNextRequestWithoutAnAnswer) {
  on_fixture([](Fixture& fixture) -> Task<> {
    fixture.api.abort_next(1);
    const auto answer = co_await fixture.client.send(
        fixture.api.url(), {.method = "POST", .target = kMaps, .headers = {}, .body = "{}"},
        soon());
    CO_ASSERT_TRUE(!answer.has_value());
    EXPECT_EQ(answer.error().code, ErrorCode::unavailable) << answer.error().message;
  });
}

TEST(FakeKubeApi, CompactionMakesOldWatchesAndOpenListsGone) {
  on_fixture([](Fixture& fixture) -> Task<> {
    for (const auto* name : {"a", "b", "c"}) fixture.put(name, "1");
    const auto first = Json::parse((co_await fixture.send("GET", kMaps + "?limit=2")).body);
    const auto& metadata = first["metadata"];
    EXPECT_EQ(first["items"].size(), 2U);
    EXPECT_EQ(metadata["remainingItemCount"], 1);
    fixture.put("d", "1");
    fixture.api.compact();

    const auto next = co_await fixture.send(
        "GET", kMaps + "?limit=2&continue=" + metadata["continue"].get<std::string>());
    EXPECT_EQ(next.status, 410);
    const auto gone = Json::parse(next.body);
    EXPECT_EQ(gone["reason"], "Expired");
    // The token in the refusal continues with the present content.
    const auto rest = co_await fixture.send(
        "GET", kMaps + "?limit=5&continue=" + gone["metadata"]["continue"].get<std::string>());
    EXPECT_EQ(Json::parse(rest.body)["items"].size(), 2U);

    auto watch =
        co_await fixture.watch("resourceVersion=" + metadata["resourceVersion"].get<std::string>());
    CO_ASSERT_OK(watch);
    const auto line = co_await watch->read_some();
    CO_ASSERT_OK(line);
    const auto event = Json::parse(*line);
    EXPECT_EQ(event["type"], "ERROR");
    EXPECT_EQ(event["object"]["code"], 410);
    EXPECT_EQ(event["object"]["reason"], "Expired");
    EXPECT_THAT(event["object"]["message"].get<std::string>(),
                HasSubstr("too old resource version"));
    const auto end = co_await watch->read_some();
    CO_ASSERT_OK(end);
    EXPECT_EQ(*end, "");
  });
}

TEST(FakeKubeApi, OpenPagesShowOneMoment) {
  on_fixture([](Fixture& fixture) -> Task<> {
    for (const auto* name : {"a", "b", "c"}) fixture.put(name, "1");
    const auto first = Json::parse((co_await fixture.send("GET", kMaps + "?limit=2")).body);
    fixture.put("bb", "1");
    fixture.api.remove(r::kConfigMaps, {"default", "c"});
    const auto second = Json::parse(
        (co_await fixture.send("GET", kMaps + "?limit=2&continue=" +
                                          first["metadata"]["continue"].get<std::string>()))
            .body);
    CO_ASSERT_EQ(second["items"].size(), 1U);
    EXPECT_EQ(second["items"][0]["metadata"]["name"], "c");
    EXPECT_EQ(second["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    EXPECT_FALSE(second["metadata"].contains("continue"));
  });
}

TEST(FakeKubeApi, StalledWatchSaysNothingUntilReleased) {
  on_fixture([](Fixture& fixture) -> Task<> {
    auto watch =
        co_await fixture.watch("resourceVersion=" + std::to_string(fixture.api.store().version()));
    CO_ASSERT_OK(watch);
    fixture.api.stall_watches(true);
    fixture.put("a", "1");
    watch->set_deadline(deadline_after(std::chrono::milliseconds(100)));
    const auto silence = co_await watch->read_some();
    CO_ASSERT_TRUE(!silence.has_value());
    EXPECT_EQ(silence.error().code, ErrorCode::timeout);

    auto other = co_await fixture.watch("resourceVersion=101");
    CO_ASSERT_OK(other);
    fixture.api.stall_watches(false);
    const auto event = co_await other->read_some();
    CO_ASSERT_OK(event);
    EXPECT_THAT(*event, HasSubstr(R"("name":"a")"));
  });
}

TEST(FakeKubeApi, WatchesEndInOrderOrAreCut) {
  on_fixture([](Fixture& fixture) -> Task<> {
    const auto version = "resourceVersion=" + std::to_string(fixture.api.store().version());
    auto ended = co_await fixture.watch(version);
    CO_ASSERT_OK(ended);
    CO_ASSERT_TRUE(
        co_await fixture.api.wait_until([&] { return fixture.api.open_watches() == 1; }, soon()));
    fixture.api.end_watches();
    const auto end = co_await ended->read_some();
    CO_ASSERT_OK(end);
    EXPECT_EQ(*end, "");

    auto cut = co_await fixture.watch(version);
    CO_ASSERT_OK(cut);
    CO_ASSERT_TRUE(
        co_await fixture.api.wait_until([&] { return fixture.api.open_watches() == 1; }, soon()));
    fixture.api.cut_watches();
    EXPECT_FALSE((co_await cut->read_some()).has_value());
  });
}

TEST(FakeKubeApi, SendsWhatItIsToldOnOpenWatchesAndInLists) {
  on_fixture([](Fixture& fixture) -> Task<> {
    auto watch =
        co_await fixture.watch("resourceVersion=" + std::to_string(fixture.api.store().version()));
    CO_ASSERT_OK(watch);
    CO_ASSERT_TRUE(
        co_await fixture.api.wait_until([&] { return fixture.api.open_watches() == 1; }, soon()));
    fixture.put("a", "1");
    fixture.api.send_on_watches(r::kConfigMaps, "{not json\n");
    std::string text;
    while (!text.ends_with("{not json\n")) {
      const auto part = co_await watch->read_some();
      CO_ASSERT_OK(part);
      CO_ASSERT_TRUE(!part->empty());
      text += *part;
    }
    EXPECT_THAT(text, HasSubstr(R"({"type":"ADDED")"));

    fixture.api.add_list_item(r::kConfigMaps, R"({"metadata":7})");
    EXPECT_THAT((co_await fixture.send("GET", kMaps)).body, HasSubstr(R"(},{"metadata":7}]})"));
    fixture.api.add_list_item(r::kConfigMaps, "");
    EXPECT_EQ(Json::parse((co_await fixture.send("GET", kMaps)).body)["items"].size(), 1U);
  });
}

TEST(FakeKubeApi, RefusesStreamingListsWhenTold) {
  on_fixture([](Fixture& fixture) -> Task<> {
    const auto target =
        kMaps +
        "?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=1";
    fixture.api.refuse_streaming_lists(true);
    EXPECT_EQ((co_await fixture.send("GET", target)).status, 422);
    fixture.api.refuse_streaming_lists(false);
    EXPECT_EQ((co_await fixture.send("GET", target)).status, 200);
  });
}

TEST(FakeKubeApi, RestartKeepsPortAndContent) {
  on_fixture([](Fixture& fixture) -> Task<> {
    fixture.put("a", "1");
    const auto port = fixture.api.url().port;
    co_await fixture.api.stop();
    const auto refused = co_await fixture.client.send(fixture.api.url(), {}, soon());
    CO_ASSERT_TRUE(!refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
    CO_ASSERT_OK(fixture.api.start());
    EXPECT_EQ(fixture.api.url().port, port);
    EXPECT_EQ((co_await fixture.send("GET", kMaps + "/a")).status, 200);
  });
}

TEST(FakeKubeApi, AsksForItsTokenAndObeysItsRules) {
  FakeKubeApi::Options options;
  options.token = "first";
  on_fixture(
      [](Fixture& fixture) -> Task<> {
        EXPECT_EQ((co_await fixture.send("GET", kMaps)).status, 401);
        const http::Headers first{{"Authorization", "Bearer first"}};
        EXPECT_EQ((co_await fixture.send("GET", kMaps, {}, first)).status, 200);
        fixture.api.set_token("second");
        EXPECT_EQ((co_await fixture.send("GET", kMaps, {}, first)).status, 401);

        const http::Headers second{{"Authorization", "Bearer second"}};
        fixture.api.set_access(
            [](const FakeKubeApi::Access& access) { return access.verb != "list"; });
        const auto refused = co_await fixture.send("GET", kMaps, {}, second);
        EXPECT_EQ(refused.status, 403);
        EXPECT_THAT(refused.body, HasSubstr("cannot list resource"));
        const auto review = co_await fixture.send(
            "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            R"({"spec":{"resourceAttributes":{"verb":"list","resource":"configmaps"}}})", second);
        EXPECT_EQ(review.status, 201);
        EXPECT_EQ(Json::parse(review.body)["status"]["allowed"], false);
      },
      options);
}

TEST(FakeKubeApi, FinalizersHoldADeletedObject) {
  on_fixture([](Fixture& fixture) -> Task<> {
    fixture.api.put(r::kConfigMaps,
                    {{"metadata", {{"name", "held"}, {"finalizers", {"test/hold"}}}}});
    const auto removed = co_await fixture.send("DELETE", kMaps + "/held");
    EXPECT_EQ(removed.status, 200);
    EXPECT_TRUE(Json::parse(removed.body)["metadata"].contains("deletionTimestamp"));
    EXPECT_EQ((co_await fixture.send("GET", kMaps + "/held")).status, 200);
    const auto released =
        co_await fixture.send("PATCH", kMaps + "/held", R"({"metadata":{"finalizers":null}})",
                              {{"Content-Type", "application/merge-patch+json"}});
    EXPECT_EQ(released.status, 200);
    EXPECT_EQ((co_await fixture.send("GET", kMaps + "/held")).status, 404);
  });
}

TEST(FakeKubeApi, ServesATypeWhenItsDefinitionAppears) {
  on_fixture([](Fixture& fixture) -> Task<> {
    const std::string path = "/apis/example.test/v1/namespaces/default/widgets";
    EXPECT_EQ((co_await fixture.send("GET", path)).status, 404);
    EXPECT_EQ((co_await fixture.send("GET", "/apis/example.test/v1")).status, 404);
    const Json definition{
        {"apiVersion", "apiextensions.k8s.io/v1"},
        {"kind", "CustomResourceDefinition"},
        {"metadata", {{"name", "widgets.example.test"}}},
        {"spec",
         {{"group", "example.test"},
          {"scope", "Namespaced"},
          {"names", {{"plural", "widgets"}, {"kind", "Widget"}}},
          {"versions", Json::array({{{"name", "v1"}, {"served", true}, {"storage", true}}})}}}};
    const std::string definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    EXPECT_EQ((co_await fixture.send("POST", definitions, definition.dump())).status, 201);
    EXPECT_EQ((co_await fixture.send("GET", path)).status, 200);
    EXPECT_THAT((co_await fixture.send("GET", "/apis/example.test/v1")).body, HasSubstr("widgets"));
    const Json widget{
        {"apiVersion", "example.test/v1"}, {"kind", "Widget"}, {"metadata", {{"name", "one"}}}};
    EXPECT_EQ((co_await fixture.send("POST", path, widget.dump())).status, 201);
    EXPECT_EQ((co_await fixture.send("DELETE", definitions + "/widgets.example.test")).status, 200);
    EXPECT_EQ((co_await fixture.send("GET", path)).status, 404);
  });
}

}  // namespace
}  // namespace gitops::test
