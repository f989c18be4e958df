#include "tunnel-server/api.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "common/core/json_value.hpp"
#include "common/core/task_group.hpp"
#include "common/http/client.hpp"
#include "common/net/memory_channel.hpp"
#include "common/tunnel/client_control.hpp"
#include "common/tunnel/link.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"
#include "test_http/http_script.hpp"

namespace gitops::tunnel_server {
namespace {

using testing::HasSubstr;

// The API of a server with one client, which offers acc-rt.example.test.
struct Fixture {
  explicit Fixture(const Executor& executor)
      : names(metrics),
        authorizer(executor, names, {}),
        clients(executor, authorizer, table, metrics, {.subdomain_host = "example.test"}),
        api(executor, clients, table, {.address = "127.0.0.1", .token = Secret("operator")}),
        http(executor, names, {}),
        tasks(executor) {}

  Task<> start() {
    CO_ASSERT_OK(api.listen());
    auto [near, far] = net::MemoryChannel::pair(co_await asio::this_coro::executor);
    clients.adopt(std::move(far), asio::ip::make_address("10.0.0.1"));
    link.emplace(std::move(near), tunnel::yamux::SessionOptions{}, tunnel::Link::OnStream{});
    tasks.spawn("link", [this]() -> Task<> {
      co_await link->run();
      is_cut = true;
    });
    control_stream = link->open().value();
    tunnel::ClientControl control(
        {.login = {.version = "0.70.0", .hostname = "pod-1", .run_id = "the-run-id"},
         .proxies = {{.proxy_name = "acc-rt", .proxy_type = "http", .subdomain = "acc-rt"}}},
        {.iv = std::string(16, 'i'), .seed = 1}, wall_now(), Clock::now());
    std::array<char, 4096> room;
    while (table.size() == 0) {
      CO_ASSERT_OK(co_await control_stream->write(std::exchange(control.output(), {})));
      const auto size = co_await control_stream->read_some(room);
      CO_ASSERT_OK(size);
      std::vector<tunnel::ClientControl::Event> events;
      control.receive(std::span(room).first(*size), Clock::now(), events);
      CO_ASSERT_OK(co_await control_stream->write(std::exchange(control.output(), {})));
      for (int i = 0; i < 20; ++i) co_await sleep_for(std::chrono::milliseconds(1));
    }
  }
  Task<> stop() {
    link->close();
    tasks.cancel();
    co_await tasks.join();
    co_await clients.stop();
    co_await api.stop(Clock::now());
  }
  Task<http::Response> call(std::string method, std::string target, std::string body = {},
                            std::string token = "operator") {
    http::Request request{.method = std::move(method), .target = std::move(target)};
    if (!token.empty()) request.headers.add("Authorization", "Bearer " + token);
    request.body = std::move(body);
    auto url = http::parse_url("http://127.0.0.1:" + std::to_string(api.port())).value();
    auto response =
        co_await http.send(url, std::move(request), deadline_after(std::chrono::seconds(30)));
    EXPECT_TRUE(response);
    co_return response ? std::move(*response) : http::Response{.status = 0};
  }

  Metrics metrics;
  net::Resolver names;
  Authorizer authorizer;
  HostTable table;
  ClientRegistry clients;
  Api api;
  http::Client http;
  TaskGroup tasks;
  std::optional<tunnel::Link> link;
  std::unique_ptr<net::Channel> control_stream;
  bool is_cut = false;
};

void run(const std::function<Task<>(Fixture&)>& body) {
  test::run_coro([&]() -> Task<> {
    Fixture bed(co_await asio::this_coro::executor);
    co_await bed.start();
    co_await body(bed);
    co_await bed.stop();
  });
}

TEST(Api, ListsClientsWithTheirState) {
  run([](Fixture& bed) -> Task<> {
    const auto response = co_await bed.call("GET", "/v1/clients");
    EXPECT_EQ(response.status, 200);
    const auto list = parse_json_object(response.body)["clients"];
    CO_ASSERT_EQ(list.size(), 1u);
    EXPECT_EQ(list[0]["state"], "serving");
    EXPECT_EQ(list[0]["address"], "10.0.0.1");
    EXPECT_EQ(list[0]["hostname"], "pod-1");
    EXPECT_EQ(list[0]["hosts"][0]["host"], "acc-rt.example.test");
    EXPECT_EQ(list[0]["hosts"][0]["serving"], true);
    EXPECT_EQ(list[0]["carrying"], 0);
    EXPECT_THAT(response.body, testing::Not(HasSubstr("the-run-id")));
  });
}

TEST(Api, DisconnectsAClient) {
  run([](Fixture& bed) -> Task<> {
    const auto id = bed.clients.sessions()[0]->id();
    EXPECT_EQ((co_await bed.call("POST", "/v1/clients/99/disconnect")).status, 404);
    EXPECT_EQ((co_await bed.call("POST", "/v1/clients/x/disconnect")).status, 404);
    EXPECT_EQ(
        (co_await bed.call("POST", "/v1/clients/" + std::to_string(id) + "/disconnect")).status,
        204);
    EXPECT_TRUE(co_await test::eventually([&] { return bed.is_cut; }, "the end of the session"));
    EXPECT_EQ(bed.table.size(), 0u);
  });
}

TEST(Api, BansAHostUntilATime) {
  run([](Fixture& bed) -> Task<> {
    const auto until = format_rfc3339(wall_now() + std::chrono::hours(1));
    EXPECT_EQ((co_await bed.call("PUT", "/v1/bans/ACC-RT.example.test",
                                 R"({"until":")" + until + R"(","reason":"abuse"})"))
                  .status,
              204);
    EXPECT_TRUE(co_await test::eventually([&] { return bed.is_cut; }, "the end of the session"));
    EXPECT_THAT((co_await bed.call("GET", "/v1/bans")).body,
                HasSubstr(R"({"host":"acc-rt.example.test","reason":"abuse","until":")" + until));
    EXPECT_EQ(bed.clients.ban_of("acc-rt.example.test"), "abuse");
    EXPECT_EQ((co_await bed.call("DELETE", "/v1/bans/acc-rt.example.test")).status, 204);
    EXPECT_EQ((co_await bed.call("DELETE", "/v1/bans/acc-rt.example.test")).status, 404);
    EXPECT_EQ(bed.clients.ban_of("acc-rt.example.test"), "");
  });
}

TEST(Api, RefusesMalformedBans) {
  run([](Fixture& bed) -> Task<> {
    for (const char* body : {"", "{}", "[]", R"({"until":"tomorrow"})"}) {
      EXPECT_EQ((co_await bed.call("PUT", "/v1/bans/acc-rt.example.test", body)).status, 400);
    }
    EXPECT_EQ(
        (co_await bed.call("PUT", "/v1/bans/a_b", R"({"until":"2030-01-01T00:00:00Z"})")).status,
        400);
    EXPECT_EQ((co_await bed.call("PUT", "/v1/bans/a.test", std::string(5'000, 'x'))).status, 413);
    EXPECT_TRUE(bed.clients.bans().empty());
  });
}

// A length that is not announced.
TEST(Api, SaysWhyTheBodyOfABanCannotBeRead) {
  run([](Fixture& bed) -> Task<> {
    const std::string head =
        "PUT /v1/bans/a.test HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer operator\r\n"
        "Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n";
    const auto too_large = co_await test::raw_exchange(
        bed.api.port(), head + "1388\r\n" + std::string(5'000, 'x') + "\r\n0\r\n\r\n");
    EXPECT_THAT(too_large, testing::StartsWith("HTTP/1.1 413 "));
    EXPECT_THAT(too_large, HasSubstr("the request body is larger than"));
    const auto malformed = co_await test::raw_exchange(bed.api.port(), head + "z\r\n");
    EXPECT_THAT(malformed, testing::StartsWith("HTTP/1.1 400 "));
    EXPECT_TRUE(bed.clients.bans().empty());
  });
}

TEST(Api, AC23_DoesNothingWithoutItsToken) {
  run([](Fixture& bed) -> Task<> {
    const auto id = std::to_string(bed.clients.sessions()[0]->id());
    for (const char* token : {"", "guess", "operator2", "operato"}) {
      EXPECT_EQ((co_await bed.call("GET", "/v1/clients", {}, token)).status, 401);
      EXPECT_EQ((co_await bed.call("POST", "/v1/clients/" + id + "/disconnect", {}, token)).status,
                401);
      EXPECT_EQ((co_await bed.call("PUT", "/v1/bans/acc-rt.example.test",
                                   R"({"until":"2030-01-01T00:00:00Z"})", token))
                    .status,
                401);
      EXPECT_EQ((co_await bed.call("DELETE", "/v1/bans/acc-rt.example.test", {}, token)).status,
                401);
    }
    EXPECT_FALSE(bed.is_cut);
    EXPECT_EQ(bed.table.size(), 1u);
  });
}

}  // namespace
}  // namespace gitops::tunnel_server
