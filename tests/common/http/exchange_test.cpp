// Handlers that do more than answer: streams that end with their client or the server, upgrades,
// bounded bodies.
#include <array>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/write.hpp>

#include "common/core/process.hpp"
#include "common/http/gzip.hpp"
#include "common/http/loopback.hpp"
#include "common/http/upgraded.hpp"
#include "support/wait.hpp"

namespace gitops::http {
namespace {

// In test time, so that the load of the machine has no effect.
void with_server(const Handler& handler, const std::function<Task<>(TestServer&)>& body) {
  test::run_in_test_time(
      [&]() -> Task<> {
        TestServer server(co_await asio::this_coro::executor, handler);
        co_await body(server);
        co_await server.stop();
      },
      std::chrono::minutes(5));
}

// A connection whose bytes the test controls.
struct Peer {
  Peer(const Executor& executor, std::uint16_t port) : socket(executor) {
    socket.connect({asio::ip::make_address("127.0.0.1"), port});
  }
  Task<> send(std::string_view bytes) {
    co_await asio::async_write(socket, asio::buffer(bytes.data(), bytes.size()), use_task);
  }
  // Reads until `mark` or the end.
  Task<std::string> read_until(std::string_view mark) {
    std::array<char, 4096> part;
    while (!text.contains(mark)) {
      boost::system::error_code ec;
      const auto size =
          co_await socket.async_read_some(asio::buffer(part), asio::redirect_error(use_task, ec));
      if (ec) break;
      text.append(part.data(), size);
    }
    co_return text;
  }
  asio::basic_stream_socket<asio::ip::tcp, Executor> socket;
  std::string text;
};

constexpr std::string_view kGet = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

// Records how streams end.
struct Ends {
  explicit Ends(const Executor& executor) : changed(executor) {}
  Task<> wait_for(std::size_t count) {
    const Deadline deadline = deadline_after(seconds(10));
    while (seen.size() < count && Clock::now() < deadline) co_await changed.wait(deadline);
  }
  Event changed;
  std::vector<StreamEnd> seen;
  std::size_t begun = 0;
};

// Starts an answer and streams until something ends it.
Handler endless(std::shared_ptr<Ends>& ends) {
  return [&ends](Exchange& exchange) -> Task<> {
    if (!ends) ends = std::make_shared<Ends>(co_await asio::this_coro::executor);
    if (!co_await exchange.start({.headers = {{"Content-Type", "text/event-stream"}}})) co_return;
    ++ends->begun;
    ends->changed.notify_all();
    ends->seen.push_back(co_await exchange.stream(sleep_until(kNever)));
    ends->changed.notify_all();
    if (ends->seen.back() != StreamEnd::client_left) (void)co_await exchange.finish();
  };
}

TEST(Exchange, AStreamEndsWithItsClient) {
  std::shared_ptr<Ends> ends;
  with_server(endless(ends), [&](TestServer& server) -> Task<> {
    {
      Peer leaver(co_await asio::this_coro::executor, server.port());
      co_await leaver.send(kGet);
      co_await leaver.read_until("\r\n\r\n");
    }
    const auto left = Clock::now();
    co_await ends->wait_for(1);
    EXPECT_THAT(ends->seen, testing::ElementsAre(StreamEnd::client_left));
    EXPECT_LT(Clock::now() - left, seconds(1));
  });
}

TEST(Exchange, AWaitingHandlerLearnsThatItsClientLeft) {
  std::shared_ptr<Ends> ends;
  const auto wait = [&](Exchange& exchange) -> Task<> {
    ends = std::make_shared<Ends>(co_await asio::this_coro::executor);
    co_await exchange.gone();
    ends->seen.push_back(StreamEnd::client_left);
    ends->changed.notify_all();
    co_await answer(exchange);
  };
  with_server(wait, [&](TestServer& server) -> Task<> {
    auto peer = std::make_unique<Peer>(co_await asio::this_coro::executor, server.port());
    // The server drops a body that the handler does not read.
    co_await peer->send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello");
    CO_ASSERT_TRUE(
        co_await test::eventually([&] { return ends != nullptr; }, "the request at its handler"));
    peer.reset();
    co_await ends->wait_for(1);
    EXPECT_EQ(ends->seen.size(), 1U);
  });
}

TEST(Exchange, AStreamThatEndsByItselfLeavesTheConnectionAsItWas) {
  const auto three = [](Exchange& exchange) -> Task<> {
    (void)co_await exchange.start({});
    const auto end = co_await exchange.stream([](Exchange& ex) -> Task<> {
      for (int i = 0; i < 3; ++i) (void)co_await ex.write("part ");
    }(exchange));
    EXPECT_EQ(end, StreamEnd::finished);
    (void)co_await exchange.finish();
  };
  with_server(three, [](TestServer& server) -> Task<> {
    Peer peer(co_await asio::this_coro::executor, server.port());
    // The second request comes while the first is streamed, and is kept.
    co_await peer.send(std::string(kGet) +
                       "GET /2 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    const auto text = co_await peer.read_until("nothing but the end");
    std::size_t answers = 0;
    for (auto at = text.find("HTTP/1.1 200"); at != text.npos;
         at = text.find("HTTP/1.1 200", at + 1))
      ++answers;
    EXPECT_EQ(answers, 2U) << text;
  });
}

TEST(Exchange, WhatAStreamThrowsGoesOn) {
  const auto bad = [](Exchange& exchange) -> Task<> {
    co_await exchange.stream([]() -> Task<> {
      co_await sleep_for(milliseconds(1));
      throw std::runtime_error("broken");
    }());
  };
  with_server(bad, [](TestServer& server) -> Task<> {
    TestClient client(co_await asio::this_coro::executor);
    const auto response = co_await client.get(server.url());
    CO_ASSERT_OK(response);
    EXPECT_EQ(response->status, 500);
  });
}

TEST(Exchange, AThousandStreamsDoNotHoldADrain) {
  constexpr std::size_t kStreams = 1000;
  ASSERT_GE(raise_open_files(2 * kStreams + 100), 2 * kStreams + 100) << "both ends are here";
  std::shared_ptr<Ends> ends;
  with_server(endless(ends), [&](TestServer& server) -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    std::vector<std::unique_ptr<Peer>> peers;
    for (std::size_t i = 0; i < kStreams; ++i) {
      peers.push_back(std::make_unique<Peer>(executor, server.port()));
      co_await peers.back()->send(kGet);
      CO_ASSERT_TRUE(
          co_await test::eventually([&] { return ends && ends->begun > i; }, "the stream"));
    }
    const auto began = Clock::now();
    co_await server.server.stop(deadline_after(seconds(60)));
    EXPECT_LT(Clock::now() - began, seconds(1)) << "the drain waited for the streams";
    EXPECT_THAT(ends->seen,
                testing::AllOf(testing::SizeIs(kStreams), testing::Each(StreamEnd::draining)));
    // No stream was cut off.
    EXPECT_THAT(co_await peers.front()->read_until("0\r\n\r\n"), testing::EndsWith("0\r\n\r\n"));
  });
}

TEST(Exchange, HandsOverTheConnection) {
  const auto upgrade = [](Exchange& exchange) -> Task<> {
    const auto later = 2 * ServerOptions{}.body_timeout;
    auto upgraded =
        co_await exchange.upgrade({.headers = {{"Connection", "Upgrade"}, {"Upgrade", "upper"}}});
    CO_ASSERT_OK(upgraded);
    (void)co_await upgraded->channel->write("<" + upgraded->received + ">");
    std::array<char, 16> more;
    const auto size = co_await upgraded->channel->read_some(more);
    CO_ASSERT_OK(size);
    co_await sleep_for(later);  // the server's deadlines no longer hold
    (void)co_await upgraded->channel->write("<" + std::string(more.data(), *size) + ">");
  };
  with_server(upgrade, [](TestServer& server) -> Task<> {
    Peer peer(co_await asio::this_coro::executor, server.port());
    co_await peer.send(std::string(kGet) + "early");
    EXPECT_THAT(co_await peer.read_until("<early>"),
                testing::StartsWith("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
                                    "Upgrade: upper\r\n\r\n"));
    co_await peer.send("late");
    EXPECT_THAT(co_await peer.read_until("nothing but the end"),
                testing::EndsWith("<early><late>"));
  });
}

TEST(Exchange, ClientsSwitchToo) {
  const auto upgrade = [](Exchange& exchange) -> Task<> {
    if (exchange.path() == "/no") co_return co_await answer(exchange, "no", 403);
    auto upgraded = co_await exchange.upgrade({.headers = {{"Upgrade", "x"}}});
    CO_ASSERT_OK(upgraded);
    (void)co_await upgraded->channel->write("hello");
  };
  with_server(upgrade, [](TestServer& server) -> Task<> {
    TestClient client(co_await asio::this_coro::executor);
    auto upgraded = co_await client.client.upgrade(
        server.url(), {.headers = {{"Upgrade", "x"}, {"Connection", "Upgrade"}}},
        deadline_after(seconds(5)));
    CO_ASSERT_OK(upgraded);
    EXPECT_EQ(upgraded->head.headers.find("Upgrade"), "x");
    std::string text = upgraded->received;
    std::array<char, 16> more;
    while (text.size() < 5) {
      const auto size = co_await upgraded->channel->read_some(more);
      CO_ASSERT_TRUE(size && *size > 0);
      text.append(more.data(), *size);
    }
    EXPECT_EQ(text, "hello");
    const auto refused =
        co_await client.client.upgrade(server.url(), {.target = "/no"}, deadline_after(seconds(5)));
    CO_ASSERT_TRUE(!refused);
    EXPECT_EQ(refused.error().http_status, 403);
    EXPECT_EQ(refused.error().code, ErrorCode::forbidden);
    EXPECT_EQ(client.client.idle_connections(), 0U);
  });
}

TEST(Exchange, ARequestWithABodyDoesNotSwitch) {
  const auto upgrade = [](Exchange& exchange) -> Task<> {
    const auto upgraded = co_await exchange.upgrade({});
    CO_ASSERT_TRUE(!upgraded);
    co_await answer(exchange, upgraded.error().message, 400);
  };
  with_server(upgrade, [](TestServer& server) -> Task<> {
    TestClient client(co_await asio::this_coro::executor);
    const auto response = co_await client.post(server.url(), "body");
    CO_ASSERT_OK(response);
    EXPECT_EQ(response->status, 400);
  });
}

TEST(Exchange, ReadsBodiesWithACodingWithinTheLimit) {
  const auto decode = [](Exchange& exchange) -> Task<> {
    (void)exchange.limit_body(1000);
    const auto body = co_await exchange.read_decoded_body();
    co_await answer(exchange, body ? *body : body.error().message,
                    body ? 200 : body.error().http_status);
  };
  with_server(decode, [](TestServer& server) -> Task<> {
    TestClient client(co_await asio::this_coro::executor);
    const auto status = [&](std::string body, std::string coding) -> Task<int> {
      Request request{.method = "POST", .body = std::move(body)};
      if (!coding.empty()) request.headers.add("Content-Encoding", std::move(coding));
      const auto response =
          co_await client.client.send(server.url(), std::move(request), deadline_after(seconds(5)));
      co_return response ? response->status : 0;
    };
    EXPECT_EQ(co_await status("plain", ""), 200);
    EXPECT_EQ(co_await status(gzip_compress(std::string(1000, 'x')), "gzip"), 200);
    EXPECT_EQ(co_await status(gzip_compress(std::string(1001, 'x')), "gzip"), 413);
    EXPECT_EQ(co_await status(std::string(1001, 'x'), ""), 413);
    EXPECT_EQ(co_await status("x", "br"), 415);
    EXPECT_EQ(co_await status("x", "gzip"), 400);
  });
}

TEST(Exchange, FieldsAreAddedToWhateverAnswerItGets) {
  const auto handler = [](Exchange& exchange) -> Task<> {
    if (exchange.path() != "/plain") {
      exchange.add_to_answer("X-Added", "yes");
      exchange.add_to_answer("X-Bad", "no\r\nX-Injected: yes");
    }
    if (exchange.path() == "/stream") {
      CO_ASSERT_OK(co_await exchange.start({}));
      CO_ASSERT_OK(co_await exchange.finish());
    } else if (exchange.path() != "/nothing") {
      co_await answer(exchange);
    }
  };
  with_server(handler, [](TestServer& server) -> Task<> {
    TestClient client(co_await asio::this_coro::executor);
    for (const auto& [path, added] :
         std::vector<std::pair<std::string, bool>>{{"/", true},
                                                   {"/plain", false},
                                                   {"/stream", true},
                                                   {"/plain", false},
                                                   {"/nothing", true}}) {
      const auto response = co_await client.get(server.url(), path);
      CO_ASSERT_OK(response);
      EXPECT_EQ(response->headers.find("X-Added").has_value(), added) << path;
      EXPECT_EQ(response->headers.find("X-Bad"), std::nullopt);
      EXPECT_EQ(response->headers.find("X-Injected"), std::nullopt);
    }
  });
}

}  // namespace
}  // namespace gitops::http
