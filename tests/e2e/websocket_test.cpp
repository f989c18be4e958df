// Our WebSocket client and server against python3-websockets, which shares no code with them.
#include "common/http/websocket.hpp"

#include <array>
#include <filesystem>

#include <gmock/gmock.h>

#include "common/net/resolve.hpp"
#include "support/process.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"

namespace gitops::http {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using websocket::Ending;
using websocket::Message;

constexpr std::array<std::string_view, 1> kProtocols{"graphql-transport-ws"};

std::vector<std::string> python(const std::string& command) {
  return {"/usr/bin/python3",  // the Python that has Debian's modules
          (std::filesystem::path(GITOPS_SOURCE_DIR) / "tests/e2e/websocket_peers.py").string(),
          command};
}

// Sends every message back; "close" closes.
Task<> echo(WebSocket& socket) {
  while (auto message = co_await socket.receive()) {
    if (message->is_text && message->data == "close") socket.close(4001, "as you wish");
    const auto sent = message->is_text ? co_await socket.send(message->data)
                                       : co_await socket.send_binary(message->data);
    if (!sent) co_return;
  }
}

TEST(WebSocketPeers, TalkToOurServer) {
  test::run_coro(
      []() -> Task<> {
        Server server(co_await asio::this_coro::executor, {}, [](Exchange& exchange) {
          return serve_websocket(exchange, kProtocols, {}, echo);
        });
        CO_ASSERT_OK(server.listen());
        auto command = python("talk");
        command.push_back("ws://127.0.0.1:" + std::to_string(server.port()) + "/ws");
        command.push_back("plain");
        const test::TempDir folder;
        test::Process peer({.argv = command, .log_file = folder / "log"});
        std::optional<int> code;
        const Deadline deadline = deadline_after(seconds(60));
        while (!(code = peer.wait(milliseconds(0))) && Clock::now() < deadline) {
          co_await sleep_for(milliseconds(10));
        }
        EXPECT_EQ(code, 0) << test::read_file(folder / "log");
        co_await server.stop(deadline_after(seconds(5)));
      },
      seconds(90));
}

TEST(WebSocketPeers, AnswerOurClient) {
  const test::TempDir folder;
  test::Process peer({.argv = python("serve"), .log_file = folder / "log"});
  std::string port;
  ASSERT_TRUE(test::wait_until(
      [&] {
        port = test::read_file(folder / "log");
        return port.ends_with('\n');
      },
      seconds(60), "the port of the echo server"));
  port.pop_back();
  test::run_coro(
      [&]() -> Task<> {
        const auto executor = co_await asio::this_coro::executor;
        Metrics metrics;
        net::Resolver resolver(metrics);
        Client client(executor, resolver, {});
        const auto url = parse_url("ws://127.0.0.1:" + port + "/");
        CO_ASSERT_OK(url);
        const auto ending = co_await connect_websocket(
            client, *url, {}, kProtocols, {}, deadline_after(seconds(10)),
            [](WebSocket& socket) -> Task<> {
              EXPECT_EQ(socket.protocol(), "graphql-transport-ws");
              for (const std::size_t size : {0U, 1U, 125U, 126U, 65535U, 65536U, 900'000U}) {
                const std::string text(size, 'x');
                CO_ASSERT_OK(co_await socket.send(text));
                EXPECT_EQ(co_await socket.receive(), Message({.is_text = true, .data = text}));
                CO_ASSERT_OK(co_await socket.send_binary(text));
                EXPECT_EQ(co_await socket.receive(), Message({.is_text = false, .data = text}));
              }
              CO_ASSERT_OK(co_await socket.send("close"));
              EXPECT_EQ(co_await socket.receive(), std::nullopt);
            });
        CO_ASSERT_OK(ending);
        EXPECT_EQ(*ending, (Ending{.code = 4001, .reason = "as you wish"}));
      },
      seconds(60));
}

}  // namespace
}  // namespace gitops::http
