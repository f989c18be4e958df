#include "common/http/router.hpp"

#include <stdexcept>
#include <utility>

#include "common/http/loopback.hpp"
#include "support/log_capture.hpp"

namespace gitops::http {
namespace {

Guard only_with_token() {
  return [](Exchange& exchange) -> Task<Result<void>> {
    const auto& headers = exchange.request().headers;
    if (headers.find("Authorization") == "Bearer good") co_return Result<void>{};
    co_return std::unexpected(Error{.code = ErrorCode::unauthenticated,
                                    .message = "a token is needed",
                                    .http_status = headers.find("Authorization") ? 0 : 401});
  };
}

std::vector<Route> sample_routes() {
  return {
      {"GET", "/hello/{name}", open_to_all(),
       answer_with([](const Exchange& exchange, const RouteParameters& parameters) {
         return text_response(200,
                              "hello " + parameters.at("name") + std::string(exchange.query()));
       })},
      {"POST", "/bodies", open_to_all(),
       [](Exchange& exchange, const RouteParameters&) -> Task<> {
         const auto body = co_await exchange.read_body();
         co_await answer(exchange, body ? std::to_string(body->size()) : body.error().message,
                         body ? 200 : body.error().http_status);
       },
       100},
      {"GET", "/secret", only_with_token(),
       [](Exchange& exchange, const RouteParameters&) -> Task<> { co_await answer(exchange); }},
  };
}

void with_router(const std::function<Task<>(TestServer&, Client&)>& body) {
  test::run_in_test_time([&]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    const Router router(sample_routes());
    TestServer server(executor, [&](Exchange& exchange) { return router.serve(exchange); });
    {
      TestClient client(executor);
      co_await body(server, client.client);
    }
    co_await server.stop();
  });
}

Task<Response> ask(TestServer& server, Client& client, Request request) {
  auto response =
      co_await client.send(server.url(), std::move(request), deadline_after(seconds(5)));
  EXPECT_TRUE(response) << response.error().message;
  co_return response.value_or(Response{.status = 0});
}

TEST(Router, CallsTheHandlerOfTheRow) {
  with_router([](TestServer& server, Client& client) -> Task<> {
    const auto hello = co_await ask(server, client, {.target = "/hello/w%C3%B6rld?!"});
    EXPECT_EQ(hello.status, 200);
    EXPECT_EQ(hello.body, "hello w\xc3\xb6rld!");
    const auto head = co_await ask(server, client, {.method = "HEAD", .target = "/hello/x"});
    EXPECT_EQ(head.status, 200);
    EXPECT_EQ(head.headers.find("Content-Length"), "7");
    EXPECT_EQ(head.body, "");
  });
}

// A secret in a path may look as any other word of it.
TEST(Router, ALogLineHasThePatternInPlaceOfThePath) {
  const test::LogCapture log;
  test::run_in_test_time([&]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    std::vector<Route> routes{{"GET", "/plugin/{token}", open_to_all(),
                               answer_with([](const Exchange&, const RouteParameters&) -> Response {
                                 throw std::runtime_error("handler bug");
                               })}};
    const Router router(std::move(routes));
    TestServer server(executor, [&](Exchange& exchange) { return router.serve(exchange); });
    {
      TestClient client(executor);
      EXPECT_EQ((co_await client.get(server.url(), "/plugin/canary"))->status, 500);
    }
    co_await server.stop();
  });
  EXPECT_EQ(log.count("handler bug"), 1U);
  EXPECT_EQ(log.count(R"("/plugin/{token}")"), 1U);
  EXPECT_EQ(log.count("canary"), 0U);
}

TEST(Router, AnswersWhatNoRowTakes) {
  with_router([](TestServer& server, Client& client) -> Task<> {
    EXPECT_EQ((co_await ask(server, client, {.target = "/nothing"})).status, 404);
    EXPECT_EQ((co_await ask(server, client, {.target = "/hello/%2e%2e"})).status, 400);
    const auto wrong = co_await ask(server, client, {.method = "DELETE", .target = "/hello/x"});
    EXPECT_EQ(wrong.status, 405);
    EXPECT_EQ(wrong.headers.find("Allow"), "GET, HEAD, OPTIONS");
    const auto options = co_await ask(server, client, {.method = "OPTIONS", .target = "/bodies"});
    EXPECT_EQ(options.status, 204);
    EXPECT_EQ(options.headers.find("Allow"), "OPTIONS, POST");
  });
}

TEST(Router, KeepsBodiesWithinTheLimitOfTheirRow) {
  with_router([](TestServer& server, Client& client) -> Task<> {
    const auto post = [&](std::size_t size) -> Task<Response> {
      co_return co_await ask(
          server, client, {.method = "POST", .target = "/bodies", .body = std::string(size, 'x')});
    };
    EXPECT_EQ((co_await post(100)).body, "100");
    EXPECT_EQ((co_await post(101)).status, 413);
    // Without a length the limit shows while the body is read.
    auto exchange = co_await client.open(server.url(), {.method = "POST", .target = "/bodies"},
                                         deadline_after(seconds(5)), Client::Body::streamed);
    CO_ASSERT_OK(exchange);
    CO_ASSERT_OK(co_await exchange->write(std::string(101, 'x')));
    CO_ASSERT_OK(co_await exchange->finish());
    const auto head = co_await exchange->read_head();
    CO_ASSERT_OK(head);
    EXPECT_EQ(head->status, 413);
  });
}

TEST(Router, AsksTheGuardFirst) {
  with_router([](TestServer& server, Client& client) -> Task<> {
    EXPECT_EQ((co_await ask(server, client, {.target = "/secret"})).status, 401);
    const auto with = [&](std::string token) -> Task<int> {
      Request request{.target = "/secret", .headers = {{"Authorization", std::move(token)}}};
      co_return (co_await ask(server, client, std::move(request))).status;
    };
    EXPECT_EQ(co_await with("Bearer bad"), 403);
    EXPECT_EQ(co_await with("Bearer good"), 200);
  });
}

TEST(Router, RoutesByAnotherPathThanTheRequests) {
  test::run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    const Router router(sample_routes());
    TestServer server(executor, [&](Exchange& exchange) -> Task<> {
      const std::string path = "/hello/you";
      co_await router.serve(exchange, path);
    });
    {
      TestClient client(executor);
      const auto answer = co_await client.get(server.url(), "/elsewhere?!");
      CO_ASSERT_OK(answer);
      EXPECT_EQ(answer->body, "hello you!");
    }
    co_await server.stop();
  });
}

}  // namespace
}  // namespace gitops::http
