#include "common/http/websocket.hpp"

#include <algorithm>
#include <array>

#include "common/http/loopback.hpp"
#include "common/http/websocket_handshake.hpp"
#include "common/net/memory_channel.hpp"
#include "support/wait.hpp"

namespace gitops::http {
namespace {

using websocket::Ending;
using websocket::Message;

constexpr std::array<std::string_view, 2> kProtocols{"graphql-transport-ws", "graphql-ws"};

// Sends every message back; "close" closes.
Task<> echo(WebSocket& socket) {
  while (auto message = co_await socket.receive()) {
    if (message->is_text && message->data == "close") socket.close(4001, "as you wish");
    const auto sent = message->is_text ? co_await socket.send(message->data)
                                       : co_await socket.send_binary(message->data);
    if (!sent) co_return;
  }
}

Handler serve(WebSocket::Body body, WebSocketOptions options = {}) {
  return [=](Exchange& exchange) { return serve_websocket(exchange, kProtocols, options, body); };
}

// In test time, so that the load of the machine has no effect.
void with_server(const Handler& handler, const std::function<Task<>(TestServer&, Client&)>& body) {
  test::run_in_test_time(
      [&]() -> Task<> {
        const auto executor = co_await asio::this_coro::executor;
        TestServer server(executor, handler);
        TestClient client(executor);
        co_await body(server, client.client);
        co_await server.stop();
      },
      seconds(100));
}

Task<Result<Ending>> connect(TestServer& server, Client& client, WebSocket::Body body,
                             WebSocketOptions options = {}) {
  co_return co_await connect_websocket(client, server.url(), {.target = "/ws"}, kProtocols, options,
                                       deadline_after(seconds(10)), std::move(body));
}

TEST(WebSocket, CarriesMessagesBothWays) {
  with_server(serve(echo), [](TestServer& server, Client& client) -> Task<> {
    const auto ending = co_await connect(server, client, [](WebSocket& socket) -> Task<> {
      EXPECT_EQ(socket.protocol(), "graphql-transport-ws");
      for (const std::string text : {"short", "", "\xc3\xbc", "more"}) {
        CO_ASSERT_OK(co_await socket.send(text));
        EXPECT_EQ(co_await socket.receive(), Message({.is_text = true, .data = text}));
      }
      const std::string large(300'000, '\xff');
      CO_ASSERT_OK(co_await socket.send_binary(large));
      EXPECT_EQ(co_await socket.receive(), Message({.is_text = false, .data = large}));
    });
    CO_ASSERT_OK(ending);
    EXPECT_EQ(ending->code, websocket::kCloseNormal);
  });
}

TEST(WebSocket, TheServerMayClose) {
  with_server(serve(echo), [](TestServer& server, Client& client) -> Task<> {
    const auto ending = co_await connect(server, client, [](WebSocket& socket) -> Task<> {
      CO_ASSERT_OK(co_await socket.send("close"));
      while (co_await socket.receive()) {
      }
      const auto late = co_await socket.send("x");
      EXPECT_EQ(late.error().code, ErrorCode::unavailable);
    });
    CO_ASSERT_OK(ending);
    EXPECT_EQ(*ending, (Ending{.code = 4001, .reason = "as you wish"}));
  });
}

TEST(WebSocket, RefusesWhatIsNoWebSocketRequest) {
  with_server(serve(echo), [](TestServer& server, Client& client) -> Task<> {
    const auto plain =
        co_await client.send(server.url(), {.target = "/"}, deadline_after(seconds(5)));
    CO_ASSERT_OK(plain);
    EXPECT_EQ(plain->status, 400);
    const auto old = co_await client.upgrade(
        server.url(), {.headers = {{"Upgrade", "websocket"}, {"Connection", "Upgrade"}}},
        deadline_after(seconds(5)));
    CO_ASSERT_TRUE(!old);
    EXPECT_EQ(old.error().http_status, 426);
  });
}

// Records when server bodies begin and end.
struct Witness {
  std::size_t begun = 0;
  std::size_t ended = 0;
  struct Guard {
    Witness& witness;
    ~Guard() { ++witness.ended; }
  };
};

// A subscription: sends nothing and never receives.
WebSocket::Body subscription(Witness& witness) {
  return [&witness](WebSocket&) -> Task<> {
    const Witness::Guard guard{witness};
    ++witness.begun;
    co_await sleep_until(kNever);
  };
}

Task<> wait_for(const std::size_t& count, std::size_t value) {
  EXPECT_TRUE(co_await test::eventually([&] { return count >= value; },
                                        std::to_string(value) + " subscriptions"));
}

TEST(WebSocket, ASubscriptionEndsWhenItsClientLeaves) {
  Witness witness;
  with_server(serve(subscription(witness)), [&](TestServer& server, Client& client) -> Task<> {
    const auto wait_and_leave = [&](WebSocket&) { return wait_for(witness.begun, 1); };
    (void)co_await connect(server, client, wait_and_leave);
    auto left = Clock::now();
    co_await wait_for(witness.ended, 1);
    EXPECT_EQ(witness.ended, 1U) << "after a close frame";
    EXPECT_LT(Clock::now() - left, seconds(1));
    {
      auto upgraded = co_await client.upgrade(
          server.url(), websocket::upgrade_request("dGhlIHNhbXBsZSBub25jZQ==", {}),
          deadline_after(seconds(5)));
      CO_ASSERT_OK(upgraded);
      co_await wait_for(witness.begun, 2);
      upgraded->channel->abort();
    }
    left = Clock::now();
    co_await wait_for(witness.ended, 2);
    EXPECT_EQ(witness.ended, 2U) << "after a reset";
    EXPECT_LT(Clock::now() - left, seconds(1));
  });
}

TEST(WebSocket, HundredsOfSubscriptionsDoNotHoldADrain) {
  constexpr std::size_t kSubscriptions = 300;
  Witness witness;
  std::vector<Ending> endings;
  with_server(serve(subscription(witness)), [&](TestServer& server, Client& client) -> Task<> {
    TaskGroup clients(co_await asio::this_coro::executor);
    for (std::size_t i = 0; i < kSubscriptions; ++i) {
      clients.spawn("client", [&]() -> Task<> {
        const auto ending = co_await connect(server, client, [](WebSocket& socket) -> Task<> {
          while (co_await socket.receive()) {
          }
        });
        if (ending) endings.push_back(*ending);
      });
      co_await wait_for(witness.begun, i);
    }
    co_await wait_for(witness.begun, kSubscriptions);
    const auto began = Clock::now();
    co_await server.server.stop(deadline_after(seconds(60)));
    EXPECT_LT(Clock::now() - began, seconds(2)) << "the drain waited for the subscriptions";
    co_await clients.join();
  });
  EXPECT_EQ(witness.ended, kSubscriptions);
  EXPECT_THAT(
      endings,
      testing::AllOf(testing::SizeIs(kSubscriptions),
                     testing::Each(testing::Field(&Ending::code, websocket::kCloseGoingAway))));
}

TEST(WebSocket, ABodyThatThrowsClosesWith1011) {
  const auto bad = [](WebSocket&) -> Task<> {
    co_await sleep_for(milliseconds(1));
    throw std::runtime_error("broken");
  };
  with_server(serve(bad), [](TestServer& server, Client& client) -> Task<> {
    const auto ending = co_await connect(server, client, echo);
    CO_ASSERT_OK(ending);
    EXPECT_EQ(ending->code, websocket::kCloseInternalError);
  });
}

TEST(WebSocket, ASenderWaitsForASlowPeer) {
  std::size_t queued = 0;
  const auto flood = [&](WebSocket& socket) -> Task<> {
    while (co_await socket.send(std::string(100'000, 'x'))) ++queued;
  };
  with_server(serve(flood, {.max_queued = 200'000}),
              [&](TestServer& server, Client& client) -> Task<> {
                auto upgraded = co_await client.upgrade(
                    server.url(), websocket::upgrade_request("dGhlIHNhbXBsZSBub25jZQ==", {}),
                    deadline_after(seconds(5)));
                CO_ASSERT_OK(upgraded);
                // The client reads nothing: sockets and queue fill up, then the sender waits.
                std::size_t before = 0;
                do {
                  before = queued;
                  co_await sleep_for(milliseconds(200));
                } while (queued != before);
                EXPECT_LT(queued, 200U) << "20 MB";
                upgraded->channel->abort();
              });
}

// Returns how much of the text "~~~…" that `body` sends comes to a peer that reads 100 KB a second,
// and sends nothing.
std::size_t received_slowly(const WebSocket::Body& body, const WebSocketOptions& options,
                            std::size_t expected) {
  std::size_t received = 0;
  with_server(serve(body, options), [&](TestServer& server, Client&) -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    auto [client, served] = net::MemoryChannel::pair(executor);
    server.server.adopt(std::move(served), asio::ip::make_address("192.0.2.1"));
    CO_ASSERT_OK(co_await client->write(
        "GET /ws HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"));
    std::array<char, 20'000> room{};
    while (received < expected) {
      const auto size = co_await client->read_some(room);
      if (!size || *size == 0) break;
      received += static_cast<std::size_t>(
          std::count(room.begin(), room.begin() + static_cast<std::ptrdiff_t>(*size), '~'));
      co_await sleep_for(milliseconds(200));
    }
    client->abort();
  });
  return received;
}

// The peer reads for longer than each time limit, but it reads.
TEST(WebSocket, AMessageMayBeReadSlowly) {
  const std::string text(2'000'000, '~');
  const auto stays = [&](WebSocket& socket) -> Task<> {
    (void)co_await socket.send(text);
    while (co_await socket.receive()) {
    }
  };
  const auto closes = [&](WebSocket& socket) -> Task<> { (void)co_await socket.send(text); };
  EXPECT_EQ(received_slowly(stays, {.write_timeout = seconds(5)}, text.size()), text.size());
  WebSocketOptions options;
  options.session.ping_interval = seconds(2);
  options.session.ping_timeout = seconds(5);
  EXPECT_EQ(received_slowly(stays, options, text.size()), text.size()) << "its ping waits";
  options = {};
  options.session.close_timeout = seconds(5);
  EXPECT_EQ(received_slowly(closes, options, text.size()), text.size()) << "the close waits";
}

TEST(WebSocket, APeerThatIsNotReadIsNotGivenUp) {
  WebSocketOptions options{.max_received = 1};
  options.session.ping_interval = milliseconds(20);
  options.session.ping_timeout = milliseconds(20);
  bool lost = false;
  const auto slow = [&](WebSocket& socket) -> Task<> {
    for (int i = 0; i < 3; ++i) {
      co_await sleep_for(milliseconds(200));
      lost = lost || socket.ending();
      (void)co_await socket.receive();
    }
  };
  with_server(serve(slow, options), [&](TestServer& server, Client& client) -> Task<> {
    (void)co_await connect(server, client, [](WebSocket& socket) -> Task<> {
      for (int i = 0; i < 3; ++i) (void)co_await socket.send("x");
      while (co_await socket.receive()) {
      }
    });
    EXPECT_FALSE(lost);
  });
}

TEST(WebSocket, GivesUpAPeerThatDoesNotAnswerPings) {
  WebSocketOptions options;
  options.session.ping_interval = milliseconds(20);
  options.session.ping_timeout = milliseconds(20);
  Witness witness;
  with_server(serve(subscription(witness), options),
              [&](TestServer& server, Client& client) -> Task<> {
                auto upgraded = co_await client.upgrade(
                    server.url(), websocket::upgrade_request("dGhlIHNhbXBsZSBub25jZQ==", {}),
                    deadline_after(seconds(5)));
                CO_ASSERT_OK(upgraded);
                co_await wait_for(witness.ended, 1);
                EXPECT_EQ(witness.ended, 1U);
              });
}

TEST(WebSocket, ACancelledServerLeavesNothingBehind) {
  Witness witness;
  with_server(serve(subscription(witness)), [&](TestServer& server, Client& client) -> Task<> {
    auto upgraded = co_await client.upgrade(
        server.url(), websocket::upgrade_request("dGhlIHNhbXBsZSBub25jZQ==", {}),
        deadline_after(seconds(5)));
    CO_ASSERT_OK(upgraded);
    co_await wait_for(witness.begun, 1);
    co_await server.server.stop(Clock::now());
    EXPECT_EQ(witness.ended, 1U);
  });
}

}  // namespace
}  // namespace gitops::http
