#include "app-proxy/http/request_gate.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "app-proxy/resolvers/arguments.hpp"
#include "app-proxy/resolvers/table.hpp"
#include "app-proxy/users_fixture.hpp"
#include "common/http/websocket.hpp"
#include "support/wait.hpp"

namespace gitops::app_proxy {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr const char* kSchema = R"(
type Query { open: Int slow: String late: String who: String admin: Int broken: Int }
type Mutation { change(name: String, secret: String): Int }
type Subscription { standing: Boolean }
)";

// A gate before a schema of its own. Its fields `slow` and `late` wait, the latter with its user; `standing` says
// every 31 s whether the user is an administrator, three times.
struct Fixture {
  Fixture(UsersFixture& on, RequestGate::Options options)
      : users(on.executor, on.control_plane, on.runtime, on.metrics, {}),
        release(on.executor),
        rows{read("open", Permission::anyone, [] { return 1; }),
             read("slow", Permission::user,
                  [this]() -> Task<std::string> {
                    ++waiting;
                    while (!is_released) co_await release.wait();
                    co_return "done";
                  }),
             read("late", Permission::user,
                  [this](graphql::Call& call) -> Task<std::string> {
                    const User& user = user_of(call);
                    late_user = call.context<Caller>().user;
                    ++waiting;
                    while (!is_released) co_await release.wait();
                    co_return user.name;
                  }),
             read("who", Permission::user,
                  [](graphql::Call& call) { return call.context<Caller>().user->name; }),
             read("admin", Permission::admin, [] { return 2; }),
             read("broken", Permission::user,
                  [] { return Result<int>(fail(ErrorCode::internal, "the shelf is empty")); }),
             change("change", Permission::user, {"name"}, [] { return 3; }),
             subscribe("standing", Permission::user,
                       [](graphql::Call& call) -> Task<Result<graphql::Stream>> {
                         const auto& caller = call.context<Caller>();
                         co_return graphql::Stream::from(
                             [&caller, left = 3]() mutable -> Task<Result<std::optional<bool>>> {
                               if (left-- == 0) co_return std::optional<bool>();
                               co_await sleep_for(31s);
                               co_return std::optional<bool>(caller.user->is_admin);
                             });
                       })},
        engine(graphql::Engine::make(kSchema, guarded(rows, audit)).value()),
        gate(*engine, rows, users, on.metrics, std::move(options)),
        server(on.executor, {}, [this](http::Exchange& exchange) -> Task<> {
          gate.add_common_headers(exchange);
          if (exchange.request().method == "GET") {
            co_await gate.serve_get(exchange);
          } else {
            co_await gate.serve_post(exchange);
          }
        }) {}

  Task<http::Response> ask(UsersFixture& on, std::string query, const std::string& token,
                           http::Headers more = {}) {
    http::Request request{.method = "POST", .target = "/", .headers = std::move(more)};
    request.headers.add("Content-Type", "application/json");
    if (!token.empty()) request.headers.add("Authorization", token);
    request.body = json{{"query", query}}.dump();
    const http::Url url{.scheme = "http", .host = "127.0.0.1", .port = server.port()};
    auto response = co_await on.http.send(url, std::move(request), deadline_after(100s));
    co_return response ? *response : http::Response{.status = 0};
  }

  // Runs `body` on a WebSocket whose session is open.
  Task<> in_session(UsersFixture& on, std::string token,
                    std::function<Task<>(http::WebSocket&)> body) {
    const http::Url url{.scheme = "ws", .host = "127.0.0.1", .port = server.port()};
    const auto ended = co_await http::connect_websocket(
        on.http, url, {.target = "/", .headers = {{"Authorization", token}}},
        graphql::kSocketProtocols, {}, deadline_after(100s),
        [&](http::WebSocket& socket) -> Task<> {
          CO_ASSERT_OK(co_await socket.send(R"({"type":"connection_init"})"));
          const auto opened = co_await socket.receive();
          CO_ASSERT_TRUE(opened);
          CO_ASSERT_EQ(opened->data, R"({"type":"connection_ack"})");
          co_await body(socket);
        });
    CO_ASSERT_OK(ended);
  }

  UserDirectory users;
  Event release;
  bool is_released = false;
  int waiting = 0;
  std::weak_ptr<const User> late_user;  // of the last `late`
  std::vector<FieldRow> rows;
  Audit audit{"/dev/null"};
  std::unique_ptr<graphql::Engine> engine;
  RequestGate gate;
  http::Server server;
};

void with_gate(RequestGate::Options options,
               const std::function<Task<>(UsersFixture&, Fixture&)>& body) {
  with_users_fixture([&](UsersFixture& on) -> Task<> {
    Fixture fixture(on, std::move(options));
    CO_ASSERT_OK(fixture.server.listen());
    fixture.users.start();
    EXPECT_TRUE(co_await test::eventually([&] { return !fixture.users.own().account_id.empty(); },
                                          "the own account"));
    co_await body(on, fixture);
    on.http.close_idle();
    co_await fixture.server.stop(Clock::now());
    co_await fixture.users.stop();
  });
}

// Starts an operation of an open session.
Task<> begin(http::WebSocket& socket, std::string id, std::string query) {
  const json start{{"id", id}, {"type", "subscribe"}, {"payload", {{"query", query}}}};
  CO_ASSERT_OK(co_await socket.send(start.dump()));
}

// The next answer of an operation.
Task<std::string> answer(http::WebSocket& socket) {
  while (auto message = co_await socket.receive()) {
    const auto said = json::parse(message->data);
    if (said["type"] != "complete") co_return said["payload"].dump();
  }
  co_return "(end)";
}

TEST(RequestGate, OneUserHasSoManyOperations) {
  with_gate({.max_operations = 3}, [](UsersFixture& on, Fixture& fixture) -> Task<> {
    TaskGroup group(on.executor);
    std::vector<int> statuses;
    for (int i = 0; i < 3; ++i) {
      group.spawn("slow", [&]() -> Task<> {
        statuses.push_back((co_await fixture.ask(on, "{slow}", "bob.1")).status);
      });
    }
    EXPECT_TRUE(co_await test::eventually([&] { return fixture.waiting >= 3; },
                                          "three operations in progress"));
    const auto more = co_await fixture.ask(on, "{who}", "bob.1");
    EXPECT_EQ(more.status, 429);
    EXPECT_EQ(more.headers.find("Retry-After"), "1");
    // Others, and what needs nobody, are not held up.
    EXPECT_EQ((co_await fixture.ask(on, "{who}", "ann.1")).body, R"({"data":{"who":"Ann"}})");
    EXPECT_EQ((co_await fixture.ask(on, "{open}", "bob.1")).body, R"({"data":{"open":1}})");
    fixture.is_released = true;
    fixture.release.notify_all();
    co_await group.join();
    EXPECT_THAT(statuses, testing::ElementsAre(200, 200, 200));
    EXPECT_EQ((co_await fixture.ask(on, "{who}", "bob.1")).status, 200);
  });
}

TEST(RequestGate, AnOperationEndsInItsTime) {
  with_gate({.timeout = 5s}, [](UsersFixture& on, Fixture& fixture) -> Task<> {
    const auto begun = Clock::now();
    const auto answer = co_await fixture.ask(on, "{slow}", "bob.1");
    EXPECT_LT(Clock::now() - begun, 6s);
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(json::parse(answer.body)["errors"][0]["extensions"]["code"], "TIMEOUT");
    // Its place is free again.
    EXPECT_EQ((co_await fixture.ask(on, "{who}", "bob.1")).status, 200);
  });
}

// Each operation is admitted again, and finds another object for the same user when an answer of the control
// plane has become too old.
TEST(RequestGate, AnOperationOfAWebSocketKeepsItsUserWhileOthersAreAdmitted) {
  with_gate({}, [](UsersFixture& on, Fixture& fixture) -> Task<> {
    co_await fixture.in_session(on, "bob.1", [&](http::WebSocket& socket) -> Task<> {
      co_await begin(socket, "1", "{late}");
      EXPECT_TRUE(co_await test::eventually([&] { return fixture.waiting >= 1; },
                                            "the operation in progress"));
      const auto asked = on.asked("me");
      co_await sleep_for(31s);
      co_await begin(socket, "2", "{who}");
      EXPECT_EQ(co_await answer(socket), R"({"data":{"who":"Bob"}})");
      EXPECT_GT(on.asked("me"), asked);
      EXPECT_FALSE(fixture.late_user.expired());
      fixture.is_released = true;
      fixture.release.notify_all();
      EXPECT_EQ(co_await answer(socket), R"({"data":{"late":"Bob"}})");
    });
  });
}

TEST(RequestGate, ASubscriptionSeesItsUserAsLastChecked) {
  with_gate({}, [](UsersFixture& on, Fixture& fixture) -> Task<> {
    co_await fixture.in_session(on, "ann.1", [&](http::WebSocket& socket) -> Task<> {
      on.platform.accounts().set_admins("a1", {});
      co_await begin(socket, "1", "subscription{standing}");
      // The check comes after the first event.
      EXPECT_EQ(co_await answer(socket), R"({"data":{"standing":true}})");
      EXPECT_EQ(co_await answer(socket), R"({"data":{"standing":false}})");
      // Also when it is not the last that was admitted.
      co_await begin(socket, "2", "{who}");
      EXPECT_EQ(co_await answer(socket), R"({"data":{"who":"Ann"}})");
      EXPECT_EQ(co_await answer(socket), R"({"data":{"standing":false}})");
    });
  });
}

TEST(RequestGate, FieldsAskForWhatTheirRowsSay) {
  with_gate({}, [](UsersFixture& on, Fixture& fixture) -> Task<> {
    EXPECT_EQ((co_await fixture.ask(on, "{open}", "")).status, 200);
    EXPECT_EQ((co_await fixture.ask(on, "{open who}", "")).status, 401);
    EXPECT_EQ((co_await fixture.ask(on, "{admin}", "ann.1")).body, R"({"data":{"admin":2}})");
    const auto refused = json::parse((co_await fixture.ask(on, "{admin open}", "bob.1")).body);
    EXPECT_EQ(refused["data"], (json{{"admin", nullptr}, {"open", 1}}));
    EXPECT_EQ(refused["errors"][0]["message"], "only an administrator of the account may do this");
    EXPECT_EQ(refused["errors"][0]["extensions"],
              (json{{"code", "FORBIDDEN"}, {"statusCode", 403}}));
  });
}

TEST(RequestGate, WhatClientsAreNotToldStandsInTheLog) {
  with_gate({}, [](UsersFixture& on, Fixture& fixture) -> Task<> {
    const auto answer = co_await fixture.ask(on, "{broken}", "bob.1", {{"X-Request-Id", "r-9"}});
    EXPECT_EQ(json::parse(answer.body)["errors"][0]["message"], "Internal server error");
    EXPECT_THAT(on.log.text(), testing::HasSubstr("the shelf is empty"));
    EXPECT_THAT(on.log.text(), testing::HasSubstr("\"request_id\":\"r-9\""));
  });
}

TEST(RequestGate, RequestIdsAreTakenOverWhenTheyAreHarmless) {
  with_gate({}, [](UsersFixture& on, Fixture& fixture) -> Task<> {
    const auto id_for = [&](std::string given) -> Task<std::string> {
      http::Headers more;
      if (!given.empty()) more.add("X-Request-Id", given);
      const auto answer = co_await fixture.ask(on, "{open}", "", more);
      co_return std::string(answer.headers.find("X-Request-Id").value_or(""));
    };
    EXPECT_EQ(co_await id_for("abc-1"), "abc-1");
    const auto first = co_await id_for("");
    const auto second = co_await id_for("");
    EXPECT_FALSE(first.empty());
    EXPECT_NE(first, second);
    EXPECT_NE(co_await id_for("a b\"c"), "a b\"c");
    EXPECT_NE(co_await id_for(std::string(65, 'a')), std::string(65, 'a'));
  });
}

}  // namespace
}  // namespace gitops::app_proxy
