#include "common/graphql/socket.hpp"

#include <gmock/gmock.h>

#include "common/net/memory_channel.hpp"
#include "support/run_coro.hpp"

namespace gitops::graphql {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

struct User {
  std::string name;
};

// Counts the streams that are open, and the contexts of operations.
struct Streams {
  int open = 0;
  int contexts = 0;
};

// The context of one operation.
struct Owned {
  explicit Owned(Streams& all) : all_(all) { ++all_.contexts; }
  ~Owned() { --all_.contexts; }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;

  User user{.name = "ann"};

 private:
  Streams& all_;
};

std::unique_ptr<Engine> make(Streams& streams) {
  struct Guard {
    explicit Guard(Streams& all) : all_(all) { ++all_.open; }
    ~Guard() { --all_.open; }
    Streams& all_;
  };
  Resolvers to;
  to.query({{"me", [](Call& call) { return call.context<User>().name; }}});
  to.subscription({{"ticks", [&streams](Call& call) -> Task<Result<Stream>> {
                      const auto last = call["upTo"].integer();
                      auto guard = std::make_shared<Guard>(streams);
                      co_return Stream::from(
                          [guard, last, next = 0]() mutable -> Task<Result<std::optional<int>>> {
                            co_await sleep_for(milliseconds(10));
                            if (next == last) co_return std::optional<int>();
                            co_return std::optional<int>(++next);
                          });
                    }}});
  auto engine =
      Engine::make("type Query { me: String } type Subscription { ticks(upTo: Int!): Int }", to);
  return std::move(*engine);
}

// A client and a server on two ends of a connection in memory.
void with_client(const std::string& protocol, Streams& streams,
                 const std::function<Task<>(http::WebSocket&)>& client,
                 const SocketOptions& served = {}) {
  const auto engine = make(streams);
  test::run_in_test_time([&]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    auto [mine, its] = net::MemoryChannel::pair(executor);
    TaskGroup group(executor);
    group.spawn(
        "server",
        [&,
         end = std::make_shared<std::unique_ptr<net::MemoryChannel>>(std::move(its))]() -> Task<> {
          co_await http::WebSocket::run(
              {.channel = std::move(*end), .received = {}}, protocol, {},
              [&](http::WebSocket& socket) -> Task<> {
                return run_socket(
                    socket, *engine,
                    [&](std::string_view payload) -> Task<Result<MakeContext>> {
                      if (payload.contains("bad"))
                        co_return fail(ErrorCode::unauthenticated, "bad token");
                      co_return MakeContext([&streams] {
                        auto owned = std::make_shared<Owned>(streams);
                        const Context context(owned->user);
                        return OperationContext{.context = context, .owner = std::move(owned)};
                      });
                    },
                    served);
              });
        });
    http::WebSocketOptions options;
    options.session.role = http::websocket::Role::client;
    co_await http::WebSocket::run({.channel = std::move(mine), .received = {}}, protocol, options,
                                  client);
    co_await group.join();
  });
}

Task<std::string> hear(http::WebSocket& socket) {
  const auto message = co_await socket.receive();
  co_return message ? message->data : "(end)";
}
Task<> say(http::WebSocket& socket, std::string text) {
  CO_ASSERT_OK(co_await socket.send(text));
}

TEST(GraphqlSocket, ServesBothProtocols) {
  for (const bool is_transport : {true, false}) {
    Streams streams;
    with_client(
        is_transport ? "graphql-transport-ws" : "graphql-ws", streams,
        [&](http::WebSocket& socket) -> Task<> {
          co_await say(socket, R"({"type":"connection_init"})");
          EXPECT_EQ(co_await hear(socket), R"({"type":"connection_ack"})");
          if (!is_transport) EXPECT_EQ(co_await hear(socket), R"({"type":"ka"})");
          const std::string start = is_transport ? "subscribe" : "start";
          const std::string next = is_transport ? "next" : "data";
          co_await say(socket,
                       "{\"id\":\"1\",\"type\":\"" + start + R"(","payload":{"query":"{ me }"}})");
          EXPECT_EQ(co_await hear(socket),
                    "{\"type\":\"" + next + R"(","id":"1","payload":{"data":{"me":"ann"}}})");
          EXPECT_EQ(co_await hear(socket), R"({"type":"complete","id":"1"})");
          co_await say(socket, "{\"id\":\"2\",\"type\":\"" + start +
                                   R"(","payload":{"query":"subscription { ticks(upTo: 2) }"}})");
          for (const std::string tick : {"1", "2"}) {
            EXPECT_EQ(
                co_await hear(socket),
                "{\"type\":\"" + next + R"(","id":"2","payload":{"data":{"ticks":)" + tick + "}}}");
          }
          EXPECT_EQ(co_await hear(socket), R"({"type":"complete","id":"2"})");
          EXPECT_EQ(streams.open, 0);
        });
  }
}

TEST(GraphqlSocket, StopsAnOperationForItsClient) {
  Streams streams;
  with_client("graphql-transport-ws", streams, [&](http::WebSocket& socket) -> Task<> {
    co_await say(socket, R"({"type":"connection_init"})");
    co_await hear(socket);
    co_await say(
        socket,
        R"({"id":"1","type":"subscribe","payload":{"query":"subscription { ticks(upTo: 1000000) }"}})");
    EXPECT_THAT(co_await hear(socket), HasSubstr("\"ticks\":1"));
    EXPECT_EQ(streams.open, 1);
    co_await say(socket, R"({"id":"1","type":"complete"})");
    co_await say(socket, R"({"type":"ping"})");
    std::string heard;
    do heard = co_await hear(socket);
    while (heard != R"({"type":"pong"})" && heard != "(end)");
    EXPECT_EQ(heard, R"({"type":"pong"})");
    co_await say(socket, R"({"type":"ping"})");
    EXPECT_EQ(co_await hear(socket), R"({"type":"pong"})");
    EXPECT_EQ(streams.open, 0);
  });
}

TEST(GraphqlSocket, EndsOperationsWithTheWebSocket) {
  Streams streams;
  with_client("graphql-transport-ws", streams, [&](http::WebSocket& socket) -> Task<> {
    co_await say(socket, R"({"type":"connection_init"})");
    co_await hear(socket);
    for (const char* id : {"a", "b"}) {
      co_await say(
          socket,
          "{\"id\":\"" + std::string(id) +
              R"(","type":"subscribe","payload":{"query":"subscription { ticks(upTo: 1000000) }"}})");
    }
    co_await hear(socket);
    EXPECT_EQ(streams.open, 2);
  });
  EXPECT_EQ(streams.open, 0);
}

TEST(GraphqlSocket, ClosesARefusedSession) {
  Streams streams;
  with_client("graphql-transport-ws", streams, [&](http::WebSocket& socket) -> Task<> {
    co_await say(socket, R"({"type":"connection_init","payload":{"token":"bad"}})");
    EXPECT_EQ(co_await hear(socket), "(end)");
    EXPECT_EQ(socket.ending()->code, 4403);
    EXPECT_EQ(socket.ending()->reason, "bad token");
  });
  with_client("", streams, [&](http::WebSocket& socket) -> Task<> {
    EXPECT_EQ(co_await hear(socket), "(end)");
    EXPECT_EQ(socket.ending()->code, 4406);
  });
  with_client("graphql-transport-ws", streams, [&](http::WebSocket& socket) -> Task<> {
    EXPECT_EQ(co_await hear(socket), "(end)");  // says nothing for ten seconds
    EXPECT_EQ(socket.ending()->code, 4408);
  });
}

TEST(GraphqlSocket, RefusedDocumentsAreErrors) {
  Streams streams;
  with_client("graphql-transport-ws", streams, [&](http::WebSocket& socket) -> Task<> {
    co_await say(socket, R"({"type":"connection_init"})");
    co_await hear(socket);
    co_await say(socket, R"({"id":"1","type":"subscribe","payload":{"query":"{ you }"}})");
    EXPECT_THAT(
        co_await hear(socket),
        testing::StartsWith(
            R"({"type":"error","id":"1","payload":[{"message":"Cannot query field \"you\")"));
  });
}

TEST(GraphqlSocket, EachOperationIsAdmitted) {
  Streams streams;
  int asked = 0;
  int places = 0;
  SocketOptions options;
  options.admission = [&](const Prepared& operation,
                          const Context&) -> Task<Result<std::shared_ptr<void>>> {
    if (++asked == 3) co_return fail(ErrorCode::unauthenticated, "not any more");
    EXPECT_EQ(operation.root_fields().size(), 1u);
    ++places;
    co_return std::shared_ptr<void>(&places, [](void* count) { --*static_cast<int*>(count); });
  };
  // The stream's ticks come every 10 ms: it is asked about again before the third.
  options.recheck_interval = milliseconds(25);
  with_client(
      "graphql-transport-ws", streams,
      [&](http::WebSocket& socket) -> Task<> {
        co_await say(socket, R"({"type":"connection_init"})");
        co_await hear(socket);
        co_await say(socket, R"({"id":"1","type":"subscribe","payload":{"query":"{ me }"}})");
        EXPECT_THAT(co_await hear(socket), HasSubstr(R"({"data":{"me":"ann"}})"));
        EXPECT_THAT(co_await hear(socket), HasSubstr("complete"));
        EXPECT_EQ(places, 0);
        co_await say(
            socket,
            R"({"id":"2","type":"subscribe","payload":{"query":"subscription { ticks(upTo: 9) }"}})");
        EXPECT_THAT(co_await hear(socket), HasSubstr("\"ticks\":1"));
        EXPECT_EQ(places, 1);
        EXPECT_THAT(co_await hear(socket), HasSubstr("\"ticks\":2"));
        EXPECT_THAT(co_await hear(socket),
                    testing::StartsWith(
                        R"({"type":"error","id":"2","payload":[{"message":"not any more")"));
        EXPECT_EQ(places, 0);
      },
      options);
  EXPECT_EQ(asked, 3);
  EXPECT_EQ(streams.open, 0);
}

TEST(GraphqlSocket, EachOperationHasItsOwnContext) {
  Streams streams;
  std::vector<const User*> users;
  SocketOptions options;
  options.admission = [&](const Prepared&,
                          const Context& context) -> Task<Result<std::shared_ptr<void>>> {
    auto& user = context.get<User>();
    users.push_back(&user);
    user.name = "user " + std::to_string(users.size());
    co_return std::shared_ptr<void>();
  };
  with_client(
      "graphql-transport-ws", streams,
      [&](http::WebSocket& socket) -> Task<> {
        co_await say(socket, R"({"type":"connection_init"})");
        co_await hear(socket);
        co_await say(
            socket,
            R"({"id":"1","type":"subscribe","payload":{"query":"subscription { ticks(upTo: 1000000) }"}})");
        EXPECT_THAT(co_await hear(socket), HasSubstr("\"ticks\":1"));
        co_await say(socket, R"({"id":"2","type":"subscribe","payload":{"query":"{ me }"}})");
        std::string heard;
        do heard = co_await hear(socket);
        while (heard.contains("ticks"));
        EXPECT_EQ(heard, R"({"type":"next","id":"2","payload":{"data":{"me":"user 2"}}})");
        CO_ASSERT_EQ(users.size(), 2U);
        EXPECT_EQ(users[0]->name, "user 1");
        co_await say(socket, R"({"id":"1","type":"complete"})");
        for (int i = 0; i < 2; ++i) {
          co_await say(socket, R"({"type":"ping"})");
          do heard = co_await hear(socket);
          while (heard != R"({"type":"pong"})" && heard != "(end)");
        }
        EXPECT_EQ(streams.contexts, 0);
      },
      options);
}

// The older protocol's client sends operations at once.
TEST(GraphqlSocket, OperationsWaitForTheAcknowledgement) {
  Streams streams;
  with_client("graphql-ws", streams, [&](http::WebSocket& socket) -> Task<> {
    co_await say(socket, R"({"type":"connection_init"})");
    co_await say(socket, R"({"id":"1","type":"start","payload":{"query":"{ me }"}})");
    EXPECT_EQ(co_await hear(socket), R"({"type":"connection_ack"})");
    EXPECT_EQ(co_await hear(socket), R"({"type":"ka"})");
    EXPECT_EQ(co_await hear(socket), R"({"type":"data","id":"1","payload":{"data":{"me":"ann"}}})");
    EXPECT_EQ(co_await hear(socket), R"({"type":"complete","id":"1"})");
  });
}

}  // namespace
}  // namespace gitops::graphql
