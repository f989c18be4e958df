// Subscriptions by WebSocket, with live updates of a database in test time.
#include <gmock/gmock.h>

#include "common/graphql/socket.hpp"
#include "common/http/client.hpp"
#include "control-plane/accounts/revocations.hpp"
#include "control-plane/http/routes.hpp"
#include "control-plane/live/live_updates.hpp"
#include "control-plane/resolvers/graphql_fixture.hpp"
#include "control-plane/views/seed.hpp"
#include "support/wait.hpp"

namespace gitops::control_plane_server {
namespace {

using Json = nlohmann::json;

constexpr const char* kSubscription =
    "subscription { readModelEvents { accountId payload { entityType eventType item { runtime "
    "namespace name } } } }";

// The routes of the port with live updates, and a client of them.
struct SocketFixture {
  explicit SocketFixture(GraphqlFixture& on)
      : graphql(on),
        live(on.accounts.executor, on.accounts.database, on.accounts.metrics, {},
             [&on](const std::string& subject) { on.authenticator.forget(subject); }),
        gate(*on.engine, on.rows, on.authenticator, on.accounts.metrics, {}),
        router(all_routes(gate, {})),
        server(on.accounts.executor, {},
               [this](http::Exchange& exchange) { return router.serve(exchange); }),
        resolver(on.accounts.metrics),
        client(on.accounts.executor, resolver, {}) {
    on.dependencies.live = &live;
    on.authenticator.on_forget([this](const std::string& id) { live.check(id); });
    must(server.listen());
    live.start();
  }
  Task<> stop() {
    client.close_idle();
    co_await server.stop(Clock::now());
    co_await live.stop();
  }
  // Runs `body` on a WebSocket of this protocol.
  Task<> connect(std::string_view protocol, http::Headers headers,
                 std::function<Task<>(http::WebSocket&)> body) {
    const http::Url url{.scheme = "ws", .host = "127.0.0.1", .port = server.port()};
    const std::array protocols{protocol};
    const auto ended = co_await http::connect_websocket(
        client, url, {.target = "/2.0/api/broadcaster/graphql", .headers = std::move(headers)},
        protocols, {}, AccountsFixture::soon(), std::move(body));
    CO_ASSERT_OK(ended);
  }
  Task<> store(const std::string& body) {
    must(co_await graphql.accounts.database.with_writer(
        AccountsFixture::soon(), [this, body](store::Connection& db) -> Result<void> {
          seeder.store(db, graphql.sample.acme.number, body);
          return {};
        }));
    live.committed(1);
  }

  GraphqlFixture& graphql;
  Seeder seeder{store::Engine::sqlite};
  LiveUpdates live;
  GraphqlGate gate;
  http::Router router;
  http::Server server;
  net::Resolver resolver;
  http::Client client;
};

void with_socket(const std::function<Task<>(SocketFixture&)>& body) {
  with_graphql([&](GraphqlFixture& graphql) -> Task<> {
    SocketFixture fixture(graphql);
    EXPECT_TRUE(co_await test::eventually([&] { return fixture.live.feed().has_begun(); },
                                          "the first read"));
    co_await body(fixture);
    co_await fixture.stop();
  });
}

// Returns the next message but for those that keep a connection of the older protocol alive.
Task<Json> receive(http::WebSocket& socket) {
  while (true) {
    const auto message = co_await socket.receive();
    auto json = message ? Json::parse(message->data) : Json{{"type", "closed"}};
    if (json["type"] != "ka") co_return json;
  }
}

Task<> send(http::WebSocket& socket, Json message) {
  must(co_await socket.send(message.dump()));
}

// Returns "UPDATED Application argocd/shop" for an event.
std::string event_text(const Json& message) {
  if (!message.contains("payload") || !message["payload"].contains("data")) return message.dump();
  const auto payload = message["payload"]["data"]["readModelEvents"]["payload"];
  auto text = payload["eventType"].get<std::string>();
  if (payload["item"].is_null()) return text;
  return text + " " + payload["entityType"].get<std::string>() + " " +
         payload["item"]["namespace"].get<std::string>() + "/" +
         payload["item"]["name"].get<std::string>();
}

struct Protocol {
  const char* name;
  const char* start;
  const char* next;
};

struct GraphqlSocket : testing::TestWithParam<Protocol> {
  static Task<> open(http::WebSocket& socket, Json payload) {
    co_await send(socket, {{"type", "connection_init"}, {"payload", std::move(payload)}});
    CO_ASSERT_EQ((co_await receive(socket))["type"], "connection_ack");
    co_await send(
        socket, {{"id", "1"}, {"type", GetParam().start}, {"payload", {{"query", kSubscription}}}});
  }
};

TEST_P(GraphqlSocket, TellsWhatHasChangedUntilTheKeyIsRevoked) {
  with_socket([](SocketFixture& fixture) -> Task<> {
    const auto& sample = fixture.graphql.sample;
    const std::string key(sample.bob_key.reveal());
    co_await fixture.connect(GetParam().name, {}, [&](http::WebSocket& socket) -> Task<> {
      co_await open(socket, {{"Authorization", key}});
      const auto first = co_await receive(socket);
      EXPECT_EQ(first["type"], GetParam().next);
      EXPECT_EQ(event_text(first), "RESET");
      co_await fixture.store(app_event(application_of("shop")));
      EXPECT_EQ(event_text(co_await receive(socket)), "UPDATED Application argocd/shop");
      co_await fixture.store(
          app_event(object_of("apps/v1", "Deployment", "shop", "api"), managed_by("shop")));
      EXPECT_EQ(event_text(co_await receive(socket)), "UPDATED Deployment shop/api");
      const auto began = Clock::now();
      must(co_await fixture.graphql.accounts.write([key, &sample](store::Connection& db) {
        const auto id = key.substr(0, 24);
        if (auto revoked = revoke_key(db, sample.acme.number, id); !revoked) return revoked;
        return add_revocation(db, {.account = sample.acme.number, .subject = id, .runtime = {}},
                              micros_at(wall_now()));
      }));
      const auto last = co_await receive(socket);
      EXPECT_THAT(last.dump(), testing::HasSubstr("UNAUTHENTICATED"));
      EXPECT_LE(Clock::now() - began, std::chrono::milliseconds(1'500));
      EXPECT_TRUE(fixture.live.hub().empty());
    });
  });
}

TEST_P(GraphqlSocket, ARuleBeginsWithAReset) {
  with_socket([](SocketFixture& fixture) -> Task<> {
    co_await fixture.connect(
        GetParam().name, authorization(fixture.graphql.sample.bob_key),
        [&](http::WebSocket& socket) -> Task<> {
          co_await open(socket, Json::object());
          EXPECT_EQ(event_text(co_await receive(socket)), "RESET");
          // Bob is not in the team.
          co_await fixture.graphql.ask(
              fixture.graphql.sample.ann_key,
              "mutation{createAbacRule(createAbacRuleInput: {entityType: gitopsApplications, "
              "teams: [\"" +
                  co_await team_id(fixture.graphql, "admins") + "\"], actions: [\"VIEW\"]}){id}}");
          EXPECT_EQ(event_text(co_await receive(socket)), "RESET");
          co_await fixture.store(app_event(application_of("hidden")));
          co_await fixture.store(
              app_event(object_of("apps/v1", "Deployment", "shop", "api"), managed_by("hidden")));
          co_await sleep_for(std::chrono::seconds(5));
          EXPECT_EQ(fixture.live.hub().size(), 1U);
          must(co_await fixture.graphql.accounts.write([&](store::Connection& db) {
            return add_revocation(db,
                                  {.account = fixture.graphql.sample.acme.number,
                                   .subject = fixture.graphql.sample.bob.id,
                                   .runtime = {}},
                                  micros_at(wall_now()));
          }));
          EXPECT_EQ(event_text(co_await receive(socket)), "RESET") << "nothing was told before";
        });
  });
}

INSTANTIATE_TEST_SUITE_P(Protocols, GraphqlSocket,
                         testing::Values(Protocol{"graphql-transport-ws", "subscribe", "next"},
                                         Protocol{"graphql-ws", "start", "data"}),
                         [](const auto& info) {
                           return std::string(info.index == 0 ? "New" : "Legacy");
                         });

TEST(GraphqlSocketCredential, IsNeeded) {
  with_socket([](SocketFixture& fixture) -> Task<> {
    const auto refused = [&](http::Headers headers, Json payload) -> Task<bool> {
      bool was_refused = false;
      co_await fixture.connect(
          "graphql-transport-ws", std::move(headers), [&](http::WebSocket& socket) -> Task<> {
            co_await send(socket, {{"type", "connection_init"}, {"payload", payload}});
            const auto answer = co_await receive(socket);
            was_refused = answer.value("type", "") != "connection_ack";
          });
      co_return was_refused;
    };
    EXPECT_TRUE(co_await refused({}, Json::object()));
    EXPECT_TRUE(co_await refused({}, {{"Authorization", "nobody.0000"}}));
    const auto cookie = "session=" + std::string(fixture.graphql.sample.bob_session.reveal());
    const auto secure = "__Host-" + cookie;
    EXPECT_FALSE(co_await refused({{"Cookie", secure}}, Json::object()));
    EXPECT_TRUE(
        co_await refused({{"Cookie", secure}, {"Origin", "https://evil.example"}}, Json::object()))
        << "a page of another site";
  });
}

}  // namespace
}  // namespace gitops::control_plane_server
