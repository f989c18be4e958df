#include "common/net/channel.hpp"

#include "common/net/channel_pair.hpp"

namespace gitops::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::StartsWith;

enum class Kind { memory, socket, tls, tls_over_little, tls_over_socket };

std::string name_of(Kind kind) {
  switch (kind) {
    case Kind::memory:
      return "Memory";
    case Kind::socket:
      return "Socket";
    case Kind::tls:
      return "Tls";
    case Kind::tls_over_little:
      return "TlsOverLittle";
    case Kind::tls_over_socket:
      return "TlsOverSocket";
  }
  return {};
}

// What every kind of channel promises.
class AnyKind : public testing::TestWithParam<Kind> {
 protected:
  using Body = std::function<Task<>(Channel& left, Channel& right)>;

  static Task<ChannelPair> connect(Kind kind) {
    const auto executor = co_await asio::this_coro::executor;
    switch (kind) {
      case Kind::memory:
        co_return memory_pair(executor, 4096);
      case Kind::socket:
        co_return co_await socket_pair();
      case Kind::tls:
        co_return co_await secured(memory_pair(executor));
      case Kind::tls_over_little:  // no record passes in one piece
        co_return co_await secured(memory_pair(executor, 100));
      case Kind::tls_over_socket:
        co_return co_await secured(co_await socket_pair());
    }
    throw std::logic_error("no such kind");
  }

  static void run(const Body& body) {
    test::run_coro([&]() -> Task<> {
      auto pair = co_await connect(GetParam());
      co_await body(*pair.left, *pair.right);
    });
  }
  // Where a deadline passes.
  static void run_in_test_time(const Body& body) {
    test::run_in_test_time([&]() -> Task<> {
      auto pair = co_await connect(GetParam());
      co_await body(*pair.left, *pair.right);
    });
  }
};

INSTANTIATE_TEST_SUITE_P(Channel, AnyKind,
                         testing::Values(Kind::memory, Kind::socket, Kind::tls,
                                         Kind::tls_over_little, Kind::tls_over_socket),
                         [](const auto& info) { return name_of(info.param); });

TEST_P(AnyKind, PassesBytesBothWays) {
  run([](Channel& left, Channel& right) -> Task<> {
    CO_ASSERT_OK(co_await left.write("to the right"));
    CO_ASSERT_OK(co_await right.write("to the left"));
    EXPECT_EQ(co_await read_exactly(right, 12), "to the right");
    EXPECT_EQ(co_await read_exactly(left, 11), "to the left");
    std::array<char, 8> room;
    EXPECT_EQ(left.read_now(room).what, Transfer::nothing);
  });
}

TEST_P(AnyKind, AReaderWaitsForTheWriter) {
  run([](Channel& left, Channel& right) -> Task<> {
    TaskGroup tasks(co_await asio::this_coro::executor);
    std::string got;
    bool reads = false;
    tasks.spawn("reader", [&]() -> Task<> {
      reads = true;
      got = co_await read_exactly(right, 4);
    });
    while (!reads) co_await asio::post(co_await asio::this_coro::executor, use_task);
    CO_ASSERT_OK(co_await left.write("late"));
    co_await tasks.join();
    EXPECT_EQ(got, "late");
  });
}

TEST_P(AnyKind, MuchGoesBothWaysAtOnce) {
  run([](Channel& left, Channel& right) -> Task<> {
    const std::size_t size = GetParam() == Kind::tls_over_little ? 30'000 : 300'000;
    const std::string there = long_text(size);
    const std::string back(there.rbegin(), there.rend());
    TaskGroup tasks(co_await asio::this_coro::executor);
    tasks.spawn("there", [&]() -> Task<> { CO_ASSERT_OK(co_await left.write(there)); });
    tasks.spawn("back", [&]() -> Task<> { CO_ASSERT_OK(co_await right.write(back)); });
    std::string got_back;
    tasks.spawn("read back",
                [&]() -> Task<> { got_back = co_await read_exactly(left, back.size()); });
    EXPECT_TRUE(co_await read_exactly(right, there.size()) == there);
    co_await tasks.join();
    EXPECT_TRUE(got_back == back);
  });
}

TEST_P(AnyKind, MorePartsThanOneAttemptTakesArriveInOrder) {
  run([](Channel& left, Channel& right) -> Task<> {
    const std::string text = long_text(9000);
    std::vector<asio::const_buffer> parts;
    for (std::size_t at = 0; at < text.size(); at += 100) {
      parts.emplace_back(text.data() + at, 100);
      parts.emplace_back(text.data(), 0);
    }
    TaskGroup tasks(co_await asio::this_coro::executor);
    tasks.spawn("write", [&]() -> Task<> { CO_ASSERT_OK(co_await left.write(parts)); });
    EXPECT_EQ(co_await read_exactly(right, text.size()), text);
    co_await tasks.join();
  });
}

TEST_P(AnyKind, AWriterWaitsForTheReader) {
  run([](Channel& left, Channel& right) -> Task<> {
    const auto filled = fill(left);
    if (GetParam() == Kind::memory) EXPECT_EQ(filled, 4096u);
    const std::string block(16 * 1024, 'x');
    TaskGroup tasks(co_await asio::this_coro::executor);
    bool written = false;
    // TLS goes on with the bytes that it was given in vain.
    tasks.spawn("write", [&]() -> Task<> {
      CO_ASSERT_OK(co_await left.write(block));
      written = true;
    });
    co_await asio::post(co_await asio::this_coro::executor, use_task);
    EXPECT_FALSE(written);
    EXPECT_EQ((co_await read_exactly(right, filled + block.size())).size(), filled + block.size());
    co_await tasks.join();
    EXPECT_TRUE(written);
  });
}

TEST_P(AnyKind, OneSideEndsAndTheOtherGoesOn) {
  run([](Channel& left, Channel& right) -> Task<> {
    CO_ASSERT_OK(co_await left.write("last"));
    left.shutdown_send();
    EXPECT_EQ(co_await read_all(right), "last(end)");
    EXPECT_EQ(co_await read(right), "(end)");
    while (!right.peer_closed()) co_await asio::post(right.reactor().executor, use_task);
    CO_ASSERT_OK(co_await right.write("answer"));
    right.shutdown_send();
    EXPECT_EQ(co_await read_all(left), "answer(end)");
    EXPECT_TRUE(left.is_open());
  });
}

TEST_P(AnyKind, AReadDeadlineStopsReadingAlone) {
  run_in_test_time([](Channel& left, Channel& right) -> Task<> {
    const auto begin = Clock::now();
    left.set_read_deadline(begin + seconds(3));
    EXPECT_EQ(co_await read(left), "(timeout: timed out)");
    EXPECT_GE(Clock::now() - begin, seconds(3));
    EXPECT_LE(Clock::now() - begin, seconds(4));
    // It has passed until it is set again, even though there is something to read.
    CO_ASSERT_OK(co_await right.write("late"));
    EXPECT_EQ(co_await read(left), "(timeout: timed out)");
    CO_ASSERT_OK(co_await left.write("still writes"));
    EXPECT_EQ(co_await read_exactly(right, 12), "still writes");
    left.set_deadline(kNever);
    EXPECT_EQ(co_await read_exactly(left, 4), "late");
  });
}

TEST_P(AnyKind, AWriteDeadlineStopsWritingAlone) {
  run_in_test_time([](Channel& left, Channel& right) -> Task<> {
    fill(left);
    left.set_write_deadline(Clock::now() + seconds(3));
    const auto written = co_await left.write(std::string(16 * 1024, 'x'));
    CO_ASSERT_TRUE(!written);
    EXPECT_EQ(written.error().code, ErrorCode::timeout);
    CO_ASSERT_OK(co_await right.write("still reads"));
    EXPECT_EQ(co_await read_exactly(left, 11), "still reads");
  });
}

TEST_P(AnyKind, ADeadlineThatIsMovedDoesNotPass) {
  run_in_test_time([](Channel& left, Channel& right) -> Task<> {
    left.set_deadline(Clock::now() + seconds(1));
    TaskGroup tasks(co_await asio::this_coro::executor);
    tasks.spawn("writer", [&]() -> Task<> {
      for (int i = 0; i < 4; ++i) {
        co_await sleep_for(milliseconds(600));
        left.set_deadline(Clock::now() + seconds(1));
      }
      CO_ASSERT_OK(co_await right.write("in time"));
    });
    EXPECT_EQ(co_await read_exactly(left, 7), "in time");
    co_await tasks.join();
  });
}

TEST_P(AnyKind, ClosingEndsThePendingReadAndWrite) {
  run([](Channel& left, Channel&) -> Task<> {
    fill(left);
    TaskGroup tasks(co_await asio::this_coro::executor);
    std::string got;
    Result<void> written;
    tasks.spawn("reader", [&]() -> Task<> { got = co_await read(left); });
    tasks.spawn("writer",
                [&]() -> Task<> { written = co_await left.write(std::string(16 * 1024, 'x')); });
    tasks.spawn("closer", [&]() -> Task<> {
      co_await asio::post(co_await asio::this_coro::executor, use_task);
      left.close();
    });
    co_await tasks.join();
    EXPECT_EQ(got, "(unavailable: the connection was closed here)");
    CO_ASSERT_TRUE(!written);
    EXPECT_EQ(written.error().code, ErrorCode::unavailable);
    EXPECT_FALSE(left.is_open());
    EXPECT_EQ(co_await read(left), "(unavailable: the connection was closed here)");
  });
}

TEST_P(AnyKind, ACloseOfThePeerIsAnEnd) {
  run([](Channel& left, Channel& right) -> Task<> {
    CO_ASSERT_OK(co_await right.write("bye"));
    right.close();
    EXPECT_EQ(co_await read_all(left), "bye(end)");
    while (!left.peer_closed()) co_await asio::post(left.reactor().executor, use_task);
    Result<void> written;
    while (written) {
      written = co_await left.write("to nobody");
      co_await asio::post(co_await asio::this_coro::executor, use_task);
    }
    EXPECT_EQ(written.error().code, ErrorCode::unavailable);
  });
}

TEST_P(AnyKind, AnAbortIsNoEnd) {
  run([](Channel& left, Channel& right) -> Task<> {
    CO_ASSERT_OK(co_await right.write("part"));
    right.abort();
    EXPECT_FALSE(right.is_open());
    const auto got = co_await read_all(left);
    EXPECT_THAT(got, testing::HasSubstr("(unavailable: ")) << got;
  });
}

TEST_P(AnyKind, AnIdleConnectionIsNotStale) {
  run([](Channel& left, Channel& right) -> Task<> {
    for (int i = 0; i < 3; ++i) {
      CO_ASSERT_OK(co_await left.write("request"));
      EXPECT_EQ(co_await read_exactly(right, 7), "request");
      CO_ASSERT_OK(co_await right.write("answer"));
      EXPECT_EQ(co_await read_exactly(left, 6), "answer");
      // Tickets of TLS 1.3 may lie there.
      EXPECT_FALSE(left.is_stale());
      EXPECT_FALSE(right.is_stale());
    }
  });
}

TEST_P(AnyKind, WhatNobodyExpectedMakesStale) {
  run([](Channel& left, Channel& right) -> Task<> {
    CO_ASSERT_OK(co_await right.write("!"));
    EXPECT_TRUE(left.is_stale());  // before the loop has noticed
  });
}

TEST_P(AnyKind, APeerThatClosedMakesStale) {
  run([](Channel& left, Channel& right) -> Task<> {
    right.close();
    EXPECT_TRUE(left.is_stale());
    left.close();
    EXPECT_TRUE(left.is_stale());
    co_return;
  });
}

// Without reading what comes in, the end would turn into a reset that may overtake the answer.
TEST_P(AnyKind, AGracefulCloseReadsWhatStillComes) {
  run([](Channel& left, Channel& right) -> Task<> {
    TaskGroup tasks(co_await asio::this_coro::executor);
    tasks.spawn("client", [&]() -> Task<> {
      CO_ASSERT_OK(co_await right.write(long_text(20'000)));
      EXPECT_EQ(co_await read_all(right), "answer(end)");
      right.close();
    });
    CO_ASSERT_OK(co_await left.write("answer"));
    co_await left.close_gracefully();
    EXPECT_FALSE(left.is_open());
    co_await tasks.join();
  });
}

// As a large upload that is refused, of a client that writes until it reads.
TEST(Channel, AGracefulCloseReadsAlongWithAFastClient) {
  test::run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    const auto pair = memory_pair(executor);
    TaskGroup tasks(executor);
    tasks.spawn("client", [&]() -> Task<> {
      CO_ASSERT_OK(co_await pair.right->write(std::string(8'000'000, 'x')));
      EXPECT_EQ(co_await read_all(*pair.right), "answer(end)");
      pair.right->close();
    });
    CO_ASSERT_OK(co_await pair.left->write("answer"));
    co_await pair.left->close_gracefully();
    co_await tasks.join();
  });
}

TEST_P(AnyKind, AGracefulCloseEndsWithoutThePeer) {
  run_in_test_time([](Channel& left, Channel& right) -> Task<> {
    const auto begin = Clock::now();
    co_await left.close_gracefully();
    EXPECT_LE(Clock::now() - begin, seconds(3));
    EXPECT_FALSE(left.is_open());
    EXPECT_EQ(co_await read(right), "(end)");
  });
}

TEST_P(AnyKind, ACancelledReaderLeavesTheConnectionUsable) {
  run([](Channel& left, Channel& right) -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    {
      TaskGroup tasks(executor);
      bool reads = false;
      tasks.spawn("reader", [&]() -> Task<> {
        reads = true;
        co_await read(left);
        ADD_FAILURE() << "a cancelled read returned";
      });
      while (!reads) co_await asio::post(executor, use_task);
      tasks.cancel();
      co_await tasks.join();
    }
    CO_ASSERT_OK(co_await right.write("afterwards"));
    EXPECT_EQ(co_await read_exactly(left, 10), "afterwards");
  });
}

TEST_P(AnyKind, OneWaitCoversSeveralChannels) {
  run([](Channel& left, Channel& right) -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    auto other = memory_pair(executor);
    TaskGroup tasks(executor);
    std::array<char, 16> room;
    bool read_left = false;
    bool read_other = false;
    tasks.spawn("waiter", [&]() -> Task<> {
      while (!read_left || !read_other) {
        const bool was_read = read_left;
        read_left = read_left || left.read_now(room).what == Transfer::data;
        read_other = read_other || other.left->read_now(room).what == Transfer::data;
        if (read_left && read_other) co_return;
        if (was_read != read_left) continue;
        AnyChannel either{&left, nullptr, other.left.get()};
        co_await either.happens(executor);
      }
    });
    CO_ASSERT_OK(co_await right.write("1"));
    while (!read_left) co_await asio::post(executor, use_task);
    EXPECT_FALSE(read_other);
    CO_ASSERT_OK(co_await other.right->write("2"));
    co_await tasks.join();
    EXPECT_TRUE(read_other);
  });
}

// A writer whose bytes are always taken at once must not keep the loop to itself.
TEST(Channel, ALongWriteGivesOthersATurn) {
  // Takes whatever it is given.
  class Sink : public Channel {
   public:
    explicit Sink(Reactor& reactor) : Channel(reactor, state_) { state_.write.ready = true; }
    [[nodiscard]] bool is_open() const override { return true; }
    void shutdown_send() override {}
    void close() override {}
    void abort() override {}
    Transfer try_read(std::span<char>) override { return {.what = Transfer::end}; }
    Transfer try_write(std::span<const asio::const_buffer> buffers) override {
      return {.what = Transfer::data, .size = std::min<std::size_t>(buffers[0].size(), 16 * 1024)};
    }

   private:
    Readiness state_;
  };
  test::run_coro([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    Sink sink(Reactor::of(executor));
    TaskGroup tasks(executor);
    bool writes = true;
    int turns = 0;
    tasks.spawn("other", [&]() -> Task<> {
      while (writes) {
        ++turns;
        co_await asio::post(executor, use_task);
      }
    });
    CO_ASSERT_OK(co_await sink.write(std::string(2'000'000, 'x')));
    writes = false;
    co_await tasks.join();
    EXPECT_GE(turns, 3);
  });
}

TEST(SocketChannel, ARefusedConnectionSaysSo) {
  test::run_coro([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    Listener listener(executor);
    const auto port = listener.listen({.address = "127.0.0.1"});
    CO_ASSERT_OK(port);
    listener.close();
    const asio::ip::tcp::endpoint endpoint(asio::ip::address_v4::loopback(), *port);
    const auto refused = co_await SocketChannel::connect(std::span(&endpoint, 1), kNever);
    CO_ASSERT_TRUE(!refused);
    EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
    EXPECT_EQ(refused.error().message, "connection refused");
  });
}

TEST(SocketChannel, TheNextAddressIsTriedWhenOneRefuses) {
  test::run_coro([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    Listener listener(executor);
    const auto port = listener.listen({.address = "127.0.0.1"});
    CO_ASSERT_OK(port);
    const std::array<asio::ip::tcp::endpoint, 2> endpoints{
        {{asio::ip::make_address("127.0.0.2"), *port}, {asio::ip::address_v4::loopback(), *port}}};
    CO_ASSERT_OK(co_await SocketChannel::connect(endpoints, deadline_after(seconds(4))));
    listener.close();
  });
}

}  // namespace
}  // namespace gitops::net
