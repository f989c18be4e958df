#include "common/tunnel/link.hpp"

#include <array>
#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/http/websocket_channel.hpp"
#include "common/net/channel_pair.hpp"
#include "common/net/relay.hpp"

// Absent without a sanitizer.
extern "C" std::size_t __sanitizer_get_current_allocated_bytes() __attribute__((weak));

namespace gitops::tunnel {
namespace {

using net::Channel;
using std::chrono::seconds;
using testing::HasSubstr;

// What a link stands on, both ends.
using Below = std::function<Task<net::ChannelPair>(const Executor&)>;

Task<net::ChannelPair> memory(const Executor& executor) {
  co_return net::memory_pair(executor);
}

net::ChannelPair over_websocket(net::ChannelPair below) {
  using http::websocket::Role;
  const auto key = [] { return http::websocket::MaskKey{'a', 'b', 'c', 'd'}; };
  return {std::make_unique<http::WebSocketChannel>(
              http::Upgraded{.channel = std::move(below.left), .received = {}},
              http::WebSocketChannel::Options{.role = Role::client, .draw_key = key}),
          std::make_unique<http::WebSocketChannel>(
              http::Upgraded{.channel = std::move(below.right), .received = {}},
              http::WebSocketChannel::Options{.role = Role::server})};
}

// Two links on one connection. The server's side keeps the streams that the client opens.
struct Fixture {
  Fixture(const Executor& executor, net::ChannelPair below, const yamux::SessionOptions& options)
      : client(std::move(below.left), with_role(options, yamux::Role::client), {}),
        server(std::move(below.right), with_role(options, yamux::Role::server),
               [this](std::unique_ptr<Channel> stream) {
                 accepted.push_back(std::move(stream));
                 changed.notify_all();
               }),
        changed(executor),
        tasks(executor) {}

  static yamux::SessionOptions with_role(yamux::SessionOptions options, yamux::Role role) {
    options.role = role;
    return options;
  }

  void start() {
    tasks.spawn("client", [this]() -> Task<> { client_end = (co_await client.run()).message; });
    tasks.spawn("server", [this]() -> Task<> { server_end = (co_await server.run()).message; });
  }

  std::unique_ptr<Channel> open() {
    auto opened = client.open();
    if (!opened) throw std::runtime_error(opened.error().message);
    return std::move(*opened);
  }
  Task<std::unique_ptr<Channel>> accept() {
    while (accepted.empty()) co_await changed.wait();
    auto stream = std::move(accepted.front());
    accepted.pop_front();
    co_return stream;
  }

  Link client;
  Link server;
  std::deque<std::unique_ptr<Channel>> accepted;
  Event changed;
  TaskGroup tasks;
  std::string client_end;
  std::string server_end;
};

void run(const std::function<Task<>(Fixture&)>& body, const Below& below = memory,
         const yamux::SessionOptions& options = {}) {
  test::run_in_test_time([&]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    Fixture bed(executor, co_await below(executor), options);
    bed.start();
    co_await body(bed);
    bed.client.close();
    bed.server.close();
    co_await bed.tasks.join();
  });
}

TEST(Link, StreamsCarryBytesBothWays) {
  run([](Fixture& bed) -> Task<> {
    auto left = bed.open();
    CO_ASSERT_OK(co_await left->write("ping"));
    auto right = co_await bed.accept();
    EXPECT_EQ(co_await net::read(*right), "ping");
    CO_ASSERT_OK(co_await right->write("pong"));
    EXPECT_EQ(co_await net::read(*left), "pong");
  });
}

TEST(Link, AHalfCloseEndsOneDirection) {
  run([](Fixture& bed) -> Task<> {
    auto left = bed.open();
    CO_ASSERT_OK(co_await left->write("last"));
    left->shutdown_send();
    auto right = co_await bed.accept();
    EXPECT_EQ(co_await net::read_all(*right), "last(end)");
    CO_ASSERT_OK(co_await right->write("still here"));
    right->shutdown_send();
    EXPECT_EQ(co_await net::read_all(*left), "still here(end)");
    left->close();
    right->close();
    EXPECT_FALSE(left->is_open());
  });
}

TEST(Link, WhatWasWrittenArrivesBeforeTheEnd) {
  run([](Fixture& bed) -> Task<> {
    const auto text = net::long_text(1'000'000);
    auto left = bed.open();
    TaskGroup writer(co_await asio::this_coro::executor);
    writer.spawn("writer", [&]() -> Task<> {
      EXPECT_TRUE(co_await left->write(text));
      left->close();
    });
    auto right = co_await bed.accept();
    EXPECT_EQ(co_await net::read_all(*right), text + "(end)");
    co_await writer.join();
  });
}

TEST(Link, AnAbortIsALossAtThePeer) {
  run([](Fixture& bed) -> Task<> {
    auto left = bed.open();
    CO_ASSERT_OK(co_await left->write("x"));
    auto right = co_await bed.accept();
    left->abort();
    EXPECT_THAT(co_await net::read_all(*right), HasSubstr("reset by the peer"));
    EXPECT_FALSE(right->is_open());
    EXPECT_EQ(bed.client.stream_count() + bed.server.stream_count(), 0u);
  });
}

// The user of a stream that was closed is not kept waiting.
TEST(Link, ACloseResumesItsOwnWaiters) {
  run([](Fixture& bed) -> Task<> {
    auto left = bed.open();
    TaskGroup reader(co_await asio::this_coro::executor);
    std::string outcome;
    reader.spawn("reader", [&]() -> Task<> { outcome = co_await net::read(*left); });
    auto right = co_await bed.accept();
    left->close();
    co_await reader.join();
    EXPECT_THAT(outcome, HasSubstr("unavailable"));
  });
}

// AC-21: a stream that nobody reads holds no more than its window, and stops no other one.
TEST(Link, AC21_AStalledStreamStopsNoOther) {
  run([](Fixture& bed) -> Task<> {
    auto stalled = bed.open();
    const auto text = net::long_text(4'000'000);
    TaskGroup writer(co_await asio::this_coro::executor);
    bool written = false;
    writer.spawn("writer", [&]() -> Task<> {
      EXPECT_TRUE(co_await stalled->write(text));
      written = true;
    });
    auto unread = co_await bed.accept();
    for (int i = 0; i < 20; ++i) {
      auto left = bed.open();
      CO_ASSERT_OK(co_await left->write("ping"));
      auto right = co_await bed.accept();
      EXPECT_EQ(co_await net::read(*right), "ping");
      CO_ASSERT_OK(co_await right->write(std::string(100'000, 'x')));
      EXPECT_EQ((co_await net::read_exactly(*left, 100'000)).size(), 100'000u);
    }
    EXPECT_FALSE(written);
    EXPECT_EQ(co_await net::read_exactly(*unread, text.size()), text);
    co_await writer.join();
  });
}

// As a user whose path is slower than the link: some of the window is unread all the time.
TEST(Link, AReaderThatIsAlwaysBehindHoldsNoMoreThanAFewWindows) {
  if (__sanitizer_get_current_allocated_bytes == nullptr) GTEST_SKIP() << "counted by a sanitizer";
  run([](Fixture& bed) -> Task<> {
    constexpr std::size_t kRead = 8UL * 1024 * 1024;
    constexpr std::size_t kHeld = 3UL * 1024 * 1024;
    const auto executor = co_await asio::this_coro::executor;
    const std::string part(64UL * 1024, 'x');
    auto left = bed.open();
    TaskGroup writer(executor);
    writer.spawn("writer", [&]() -> Task<> {
      while (co_await left->write(part)) {
      }
    });
    auto right = co_await bed.accept();
    const auto before = __sanitizer_get_current_allocated_bytes();
    std::array<char, 4096> room;
    for (std::size_t read = 0; read < kRead;) {
      const auto size = co_await right->read_some(room);
      CO_ASSERT_OK(size);
      CO_ASSERT_TRUE(*size > 0);
      read += *size;
      co_await asio::post(executor, use_task);
    }
    EXPECT_LT(__sanitizer_get_current_allocated_bytes(), before + kHeld);
    right->abort();
    co_await writer.join();
  });
}

TEST(Link, AStreamMeetsItsOwnDeadline) {
  run([](Fixture& bed) -> Task<> {
    auto left = bed.open();
    left->set_read_deadline(deadline_after(seconds(3)));
    EXPECT_THAT(co_await net::read(*left), HasSubstr("timeout"));
    left->set_read_deadline(kNever);
    CO_ASSERT_OK(co_await left->write("later"));
    auto right = co_await bed.accept();
    EXPECT_EQ(co_await net::read(*right), "later");
  });
}

TEST(Link, ItsEndIsTheLossOfItsStreams) {
  run([](Fixture& bed) -> Task<> {
    auto left = bed.open();
    CO_ASSERT_OK(co_await left->write("x"));
    auto right = co_await bed.accept();
    EXPECT_EQ(co_await net::read(*right), "x");
    bed.client.close();
    EXPECT_THAT(co_await net::read(*left), HasSubstr("closed here"));
    EXPECT_THAT(co_await net::read(*right), HasSubstr("closed the connection"));
    co_await bed.tasks.join();
    EXPECT_FALSE(bed.client.open());
    EXPECT_EQ(bed.client.stream_count(), 0u);
  });
}

TEST(Link, AStreamMayOutliveItsLink) {
  test::run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    auto [near, far] = net::memory_pair(executor);
    std::unique_ptr<Channel> stream;
    {
      Link link(std::move(near), {}, {});
      auto opened = link.open();
      CO_ASSERT_OK(opened);
      stream = std::move(*opened);
    }
    EXPECT_FALSE(stream->is_open());
    EXPECT_FALSE(co_await stream->write("x"));
  });
}

// AC-20: a connection that was cut without a reset.
TEST(Link, AC20_ASilentPeerIsFoundWithin15Seconds) {
  test::run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    auto [near, far] = net::memory_pair(executor);
    Link link(std::move(near), {}, {});
    const auto start = Clock::now();
    const auto error = co_await link.run();
    EXPECT_EQ(error.code, ErrorCode::timeout);
    EXPECT_LE(Clock::now() - start, seconds(15));
  });
}

// When only our packets are lost, an end would wait behind bytes that the peer cannot acknowledge.
TEST(Link, APeerThatIsNotHeardGetsAReset) {
  test::run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    auto [near, far] = net::memory_pair(executor);
    Link link(std::move(near), {}, {});
    TaskGroup tasks(executor);
    tasks.spawn("link", [&]() -> Task<> { co_await link.run(); });
    EXPECT_THAT(co_await net::read_all(*far), Not(testing::EndsWith("(end)")));
    co_await tasks.join();
  });
}

// A connection whose other end is read by hand, little by little.
class ThinPath {
 public:
  ThinPath() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int size = 16 * 1024;  // connections inherit it
    ::setsockopt(listener_, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(where);
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&where), length) != 0 ||
        ::listen(listener_, 1) != 0 ||
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&where), &length) != 0) {
      throw std::runtime_error("no listener");
    }
    port_ = ntohs(where.sin_port);
  }
  ~ThinPath() {
    ::close(listener_);
    if (far_ >= 0) ::close(far_);
  }
  ThinPath(const ThinPath&) = delete;
  ThinPath& operator=(const ThinPath&) = delete;

  Task<std::unique_ptr<Channel>> connect() {
    const asio::ip::tcp::endpoint endpoint(asio::ip::address_v4::loopback(), port_);
    auto near = co_await net::SocketChannel::connect(std::span(&endpoint, 1), kNever);
    far_ = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    co_return std::move(near.value());
  }
  // The next bytes; empty while there are none.
  std::string read() {
    std::string room(4 * 1024, '\0');
    const auto size = ::recv(far_, room.data(), room.size(), 0);
    room.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
    return room;
  }
  // All that there is until this text.
  Task<std::string> read_until(std::string_view text) {
    std::string all;
    while (!all.contains(text)) {
      const auto more = read();
      all += more;
      if (more.empty()) co_await sleep_for(std::chrono::milliseconds(1));
    }
    co_return all;
  }

 private:
  int listener_;
  int far_ = -1;
  std::uint16_t port_ = 0;
};

TEST(Link, ASmallRequestIsNotFarBehindLargeOnesOnAThinPath) {
  test::run_coro([]() -> Task<> {
    ThinPath path;
    auto near = co_await path.connect();
    hold_little(*near);
    Link link(std::move(near), {}, {});
    TaskGroup tasks(co_await asio::this_coro::executor);
    tasks.spawn("link", [&]() -> Task<> { co_await link.run(); });
    std::vector<std::unique_ptr<Channel>> streams;
    for (int i = 0; i < 21; ++i) streams.push_back(std::move(link.open().value()));
    for (int i = 0; i < 20; ++i) {
      tasks.spawn("large", [&stream = *streams[static_cast<std::size_t>(i)]]() -> Task<> {
        while (co_await stream.write(std::string(64 * 1024, 'x'))) {
        }
      });
    }
    std::size_t passed = 0;
    while (passed < 500'000) {
      passed += path.read().size();
      co_await sleep_for(std::chrono::microseconds(100));
    }
    CO_ASSERT_OK(co_await streams.back()->write("small request"));
    EXPECT_LE((co_await path.read_until("small request")).size(), 128U * 1024);
    link.close();
    co_await tasks.join();
  });
}

TEST(Link, APeerThatSendsAndNeverReadsIsGivenUp) {
  test::run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    auto [near, far] = net::memory_pair(executor, 1000);
    Link link(std::move(near), {}, {});
    TaskGroup tasks(executor);
    tasks.spawn("peer", [&]() -> Task<> {
      std::string ping_answer;
      yamux::append_frame_head(ping_answer, {.type = yamux::FrameType::ping, .flags = yamux::kAck});
      while (co_await far->write(ping_answer)) co_await sleep_for(seconds(1));
    });
    auto stream = link.open();
    CO_ASSERT_OK(stream);
    net::fill(**stream);
    const auto error = co_await link.run();
    EXPECT_EQ(error.message, "the peer takes no bytes");
    co_await tasks.join();
  });
}

TEST(Link, ANonsensicalPeerIsTold) {
  test::run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    auto [near, far] = net::memory_pair(executor);
    Link link(std::move(near), {}, {});
    CO_ASSERT_OK(co_await far->write("GET / HTTP/1.1\r\n\r\n"));
    const auto error = co_await link.run();
    EXPECT_EQ(error.code, ErrorCode::protocol);
    std::string expected;
    yamux::append_frame_head(expected,
                             {.type = yamux::FrameType::go_away, .length = yamux::kProtocolError});
    EXPECT_EQ(co_await net::read_exactly(*far, expected.size()), expected);
  });
}

TEST(Link, CancellationEndsIt) {
  test::run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    auto [near, far] = net::memory_pair(executor);
    Link link(std::move(near), {}, {});
    auto stream = link.open();
    CO_ASSERT_OK(stream);
    TaskGroup tasks(executor);
    tasks.spawn("link", [&]() -> Task<> { co_await link.run(); });
    tasks.spawn("cancel", [&]() -> Task<> {
      tasks.cancel();
      co_return;
    });
    co_await tasks.join();
    EXPECT_FALSE((*stream)->is_open());
    EXPECT_TRUE(far->peer_closed());
  });
}

// A relay between two streams of a link: what a tunnel's client does.
TEST(Link, StreamsCanBeRelayed) {
  run([](Fixture& bed) -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    auto first = bed.open();
    auto second = bed.open();
    CO_ASSERT_OK(co_await first->write(">"));
    CO_ASSERT_OK(co_await second->write(">"));
    auto first_end = co_await bed.accept();
    auto second_end = co_await bed.accept();
    EXPECT_EQ(co_await net::read(*second_end), ">");

    TaskGroup relays(executor);
    relays.spawn("relay", [&]() -> Task<> {
      net::Buffer from_first(net::Reactor::of(executor).blocks);
      net::Buffer from_second(net::Reactor::of(executor).blocks);
      std::uint64_t bytes = 0;
      co_await net::relay({*first_end, from_first, bytes}, {*second_end, from_second, bytes},
                          seconds(10));
    });
    const auto text = net::long_text(3'000'000);
    relays.spawn("writer", [&]() -> Task<> {
      EXPECT_TRUE(co_await first->write(text));
      first->shutdown_send();
    });
    EXPECT_EQ(co_await net::read_all(*second), ">" + text + "(end)");
    second->shutdown_send();
    EXPECT_EQ(co_await net::read_all(*first), "(end)");
    co_await relays.join();
  });
}

// The stacks of real deployments carry large windows in both directions at once.
void exchange_over(const Below& below) {
  run(
      [](Fixture& bed) -> Task<> {
        const auto text = net::long_text(2'000'000);
        auto left = bed.open();
        CO_ASSERT_OK(co_await left->write("!"));
        auto right = co_await bed.accept();
        EXPECT_EQ(co_await net::read(*right), "!");
        TaskGroup writers(co_await asio::this_coro::executor);
        for (auto* end : {left.get(), right.get()}) {
          writers.spawn("writer", [&text, end]() -> Task<> {
            EXPECT_TRUE(co_await end->write(text));
            end->shutdown_send();
          });
        }
        EXPECT_EQ(co_await net::read_all(*right), text + "(end)");
        EXPECT_EQ(co_await net::read_all(*left), text + "(end)");
        co_await writers.join();
      },
      below, {.receive_window = 6 * 1024 * 1024});
}

TEST(Link, WorksOverWebSocketOverTls) {
  exchange_over([](const Executor& executor) -> Task<net::ChannelPair> {
    co_return over_websocket(co_await net::secured(net::memory_pair(executor)));
  });
}

TEST(Link, WorksOverTlsOverWebSocket) {
  exchange_over([](const Executor& executor) -> Task<net::ChannelPair> {
    co_return co_await net::secured(over_websocket(net::memory_pair(executor)));
  });
}

TEST(Link, WorksOverTlsAlone) {
  exchange_over([](const Executor& executor) -> Task<net::ChannelPair> {
    co_return co_await net::secured(net::memory_pair(executor, 1000));
  });
}

}  // namespace
}  // namespace gitops::tunnel
