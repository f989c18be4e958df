#include "common/argo/workflows_client.hpp"

#include <gmock/gmock.h>

#include "support/run_coro.hpp"
#include "test_http/canned_server.hpp"
#include "test_http/responses.hpp"

namespace gitops::argo {
namespace {

using namespace std::chrono_literals;
using test::CannedServer;
using test::json_response;
using testing::HasSubstr;

void with_server(std::vector<http::Response> answers,
                 const std::function<Task<>(CannedServer&, WorkflowsClient&)>& body) {
  test::run_in_test_time([&]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    CannedServer server(executor, std::move(answers));
    Metrics metrics;
    net::Resolver resolver(metrics);
    http::Client http(executor, resolver, {});
    http::Url url = server.url();
    url.path = "/workflows/";
    WorkflowsClient client(http, {.server = url}, [] { return Secret("abc"); });
    co_await body(server, client);
    co_await server.stop();
  });
}

TEST(WorkflowsClient, APageIsNoAnswer) {
  with_server({{.status = 200, .headers = {{"Content-Type", "text/html"}}, .body = "<html>"}},
              [](CannedServer&, WorkflowsClient& client) -> Task<> {
                const auto removed = co_await client.remove("ci", "w", false, deadline_after(3s));
                CO_ASSERT_TRUE(!removed);
                EXPECT_EQ(removed.error().code, ErrorCode::unavailable);
                EXPECT_THAT(removed.error().message, HasSubstr("text/html"));
              });
}

TEST(WorkflowsClient, SendsEachCallToItsPath) {
  with_server(
      {json_response(200, R"({"metadata":{"name":"x"}})")},
      [](CannedServer& server, WorkflowsClient& client) -> Task<> {
        const auto last = [&] {
          const auto& seen = server.seen().back();
          return seen.method + " " + seen.target + " " + seen.body;
        };
        const Deadline soon = deadline_after(3s);
        CO_ASSERT_OK(co_await client.workflow("ci", "w", "metadata,status.phase", soon));
        EXPECT_EQ(last(), "GET /workflows/api/v1/workflows/ci/w?fields=metadata%2Cstatus.phase ");
        EXPECT_EQ(server.seen().back().headers.find("Authorization"), "Bearer abc");
        CO_ASSERT_OK(co_await client.put("ci", "w", "stop", R"({"message":"m"})", soon));
        EXPECT_EQ(last(),
                  "PUT /workflows/api/v1/workflows/ci/w/stop "
                  R"({"message":"m","name":"w","namespace":"ci"})");
        CO_ASSERT_OK(co_await client.remove("ci", "w", true, soon));
        EXPECT_EQ(last(), "DELETE /workflows/api/v1/workflows/ci/w?force=true ");
        CO_ASSERT_OK(co_await client.submit("ci", "t", R"({"parameters":["a=b"]})", soon));
        EXPECT_EQ(last(),
                  "POST /workflows/api/v1/workflows/ci/submit "
                  R"({"namespace":"ci","resourceKind":"WorkflowTemplate","resourceName":"t",)"
                  R"("submitOptions":{"parameters":["a=b"]}})");
      });
}

TEST(WorkflowsClient, TellsTheServersWords) {
  with_server(
      {json_response(404, R"({"code":5,"message":"workflows.argoproj.io \"w\" not found"})")},
      [](CannedServer&, WorkflowsClient& client) -> Task<> {
        const auto missing = co_await client.workflow("ci", "w", {}, deadline_after(3s));
        EXPECT_EQ(missing.error().code, ErrorCode::not_found);
        EXPECT_THAT(missing.error().message, HasSubstr("\"w\" not found"));
      });
}

}  // namespace
}  // namespace gitops::argo
