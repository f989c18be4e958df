#include "common/http/server.hpp"

#include <boost/asio/thread_pool.hpp>
#include <gtest/gtest.h>

#include "common/http/client.hpp"
#include "support/run_coro.hpp"

namespace gitops::http {
namespace {

TEST(Server, AnswersOnAKeptConnection) {
  test::run_coro([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    asio::thread_pool pool(1);
    Resolver resolver(executor, pool);
    Server server(executor, {}, [](Exchange& exchange) -> Task<> {
      auto body = co_await exchange.read_body(100);
      (void)co_await exchange.reply({.status = 200, .headers = {}, .body = "hello " + *body});
    });
    CO_ASSERT_OK(server.listen());
    Client client(executor, resolver, {});
    const Url url{.scheme = "http",
                  .host = "127.0.0.1",
                  .port = server.port(),
                  .path = {},
                  .query = {},
                  .userinfo = {}};
    for (int i = 0; i < 3; ++i) {
      const auto response = co_await client.send(
          url, {.method = "POST", .target = "/x", .headers = {}, .body = "you"},
          deadline_after(std::chrono::seconds(2)));
      CO_ASSERT_OK(response);
      EXPECT_EQ(response->status, 200);
      EXPECT_EQ(response->body, "hello you");
    }
    EXPECT_EQ(server.connections(), 1u);
    EXPECT_EQ(client.idle_connections(), 1u);
    client.close_idle();
    co_await server.stop(deadline_after(std::chrono::seconds(1)));
  });
}

}  // namespace
}  // namespace gitops::http
