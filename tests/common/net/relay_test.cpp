#include "common/net/relay.hpp"

#include "common/net/channel_pair.hpp"

namespace gitops::net {
namespace {

using std::chrono::milliseconds;

constexpr auto kIdle = milliseconds(1000);

// A client and a server with a relay between them.
struct Fixture {
  Fixture(const Executor& executor, std::size_t capacity)
      : to_client(memory_pair(executor, capacity)),
        to_server(memory_pair(executor, capacity)),
        from_client(Reactor::of(executor).blocks),
        from_server(Reactor::of(executor).blocks),
        tasks(executor) {}

  Channel& client() { return *to_client.left; }
  Channel& server() { return *to_server.right; }

  void start(bool client_end_closes = false) {
    tasks.spawn("relay", [this, client_end_closes]() -> Task<> {
      co_await relay({*to_client.right, from_client, client_bytes, client_end_closes,
                      [this](std::string_view bytes) { seen += bytes; }},
                     {*to_server.left, from_server, server_bytes}, kIdle);
      ended = true;
    });
  }

  ChannelPair to_client;
  ChannelPair to_server;
  Buffer from_client;
  Buffer from_server;
  std::uint64_t client_bytes = 0;
  std::uint64_t server_bytes = 0;
  std::string seen;  // of the client
  bool ended = false;
  TaskGroup tasks;
};

void run(const std::function<Task<>(Fixture&)>& body, std::size_t capacity = 64 * 1024) {
  test::run_in_test_time([&]() -> Task<> {
    Fixture bed(co_await asio::this_coro::executor, capacity);
    co_await body(bed);
    co_await bed.tasks.join();
  });
}

TEST(Relay, PassesBytesBothWaysUntilBothHaveEnded) {
  run([](Fixture& bed) -> Task<> {
    bed.start();
    CO_ASSERT_OK(co_await bed.client().write("ping"));
    EXPECT_EQ(co_await read_exactly(bed.server(), 4), "ping");
    CO_ASSERT_OK(co_await bed.server().write("pong!"));
    EXPECT_EQ(co_await read_exactly(bed.client(), 5), "pong!");
    bed.client().shutdown_send();
    bed.server().shutdown_send();
    co_await bed.tasks.join();
    EXPECT_EQ(bed.client_bytes, 4u);
    EXPECT_EQ(bed.server_bytes, 5u);
    EXPECT_EQ(co_await read(bed.client()), "(end)");
    EXPECT_EQ(co_await read(bed.server()), "(end)");
  });
}

TEST(Relay, PassesOnFirstWhatWasReceivedBefore) {
  run([](Fixture& bed) -> Task<> {
    const std::string_view early = "early ";
    std::copy(early.begin(), early.end(), bed.from_client.room().begin());
    bed.from_client.commit(early.size());
    bed.start();
    CO_ASSERT_OK(co_await bed.client().write("late"));
    EXPECT_EQ(co_await read_exactly(bed.server(), 10), "early late");
    EXPECT_EQ(bed.client_bytes, 10u);
    bed.client().abort();
  });
}

// Each byte once and in order, early ones included, whatever the other end accepts at a time.
TEST(Relay, ShowsWhatItPassesOn) {
  run(
      [](Fixture& bed) -> Task<> {
        const std::string_view early = "early ";
        std::copy(early.begin(), early.end(), bed.from_client.room().begin());
        bed.from_client.commit(early.size());
        bed.start();
        std::string text;
        while (text.size() < 10'000) text += std::to_string(text.size()) + ",";
        TaskGroup writer(co_await asio::this_coro::executor);
        writer.spawn("writer", [&]() -> Task<> { EXPECT_TRUE(co_await bed.client().write(text)); });
        const auto whole = std::string(early) + text;
        EXPECT_EQ(co_await read_exactly(bed.server(), whole.size()), whole);
        EXPECT_EQ(bed.seen, whole);
        co_await writer.join();
        bed.client().abort();
      },
      100);
}

TEST(Relay, TheEndOfOneSideLetsTheOtherGoOn) {
  run([](Fixture& bed) -> Task<> {
    bed.start();
    CO_ASSERT_OK(co_await bed.client().write("question"));
    bed.client().shutdown_send();
    EXPECT_EQ(co_await read_all(bed.server()), "question(end)");
    CO_ASSERT_OK(co_await bed.server().write("answer"));
    EXPECT_EQ(co_await read_exactly(bed.client(), 6), "answer");
    EXPECT_FALSE(bed.ended);
    bed.server().shutdown_send();
    EXPECT_EQ(co_await read(bed.client()), "(end)");
    co_await bed.tasks.join();
  });
}

// A download that its reader has left: without `end_closes` it would wait for the idle time.
TEST(Relay, TheEndOfASideWithoutHalfCloseEndsBoth) {
  run([](Fixture& bed) -> Task<> {
    bed.start(true);
    CO_ASSERT_OK(co_await bed.client().write("question"));
    EXPECT_EQ(co_await read_exactly(bed.server(), 8), "question");
    fill(bed.server());
    bed.client().shutdown_send();
    const std::string block(100'000, 'x');
    bed.server().set_write_deadline(deadline_after(kIdle / 2));
    Result<void> written;
    while (written) written = co_await bed.server().write(block);
    EXPECT_EQ(written.error().code, ErrorCode::unavailable);
    co_await bed.tasks.join();
    EXPECT_TRUE(bed.ended);
  });
}

TEST(Relay, MuchGoesBothWaysThroughLittleRoom) {
  run(
      [](Fixture& bed) -> Task<> {
        bed.start();
        const std::string there = long_text(100'000);
        const std::string back(there.rbegin(), there.rend());
        bed.tasks.spawn("client", [&]() -> Task<> {
          CO_ASSERT_OK(co_await bed.client().write(there));
          bed.client().shutdown_send();
        });
        bed.tasks.spawn("server", [&]() -> Task<> {
          CO_ASSERT_OK(co_await bed.server().write(back));
          bed.server().shutdown_send();
        });
        std::string got_back;
        bed.tasks.spawn("client reads",
                        [&]() -> Task<> { got_back = co_await read_all(bed.client()); });
        const auto got_there = co_await read_all(bed.server());
        co_await bed.tasks.join();
        EXPECT_TRUE(got_there == there + "(end)");
        EXPECT_TRUE(got_back == back + "(end)");
        EXPECT_EQ(bed.client_bytes, there.size());
        EXPECT_EQ(bed.server_bytes, back.size());
      },
      1000);
}

TEST(Relay, IdleConnectionsAreAborted) {
  run([](Fixture& bed) -> Task<> {
    bed.start();
    const auto begin = Clock::now();
    EXPECT_THAT(co_await read(bed.client()), testing::StartsWith("(unavailable: "));
    EXPECT_THAT(co_await read(bed.server()), testing::StartsWith("(unavailable: "));
    EXPECT_GE(Clock::now() - begin, kIdle);
    EXPECT_LE(Clock::now() - begin, 2 * kIdle);
  });
}

TEST(Relay, OneDirectionThatMovesKeepsBothAlive) {
  run([](Fixture& bed) -> Task<> {
    bed.start();
    for (int i = 0; i < 5; ++i) {
      co_await sleep_for(milliseconds(600));
      CO_ASSERT_OK(co_await bed.server().write("tick"));
      EXPECT_EQ(co_await read_exactly(bed.client(), 4), "tick");
    }
    CO_ASSERT_OK(co_await bed.client().write("still there"));
    EXPECT_EQ(co_await read_exactly(bed.server(), 11), "still there");
    bed.client().abort();
  });
}

// A stalled receiver counts as idle.
TEST(Relay, AReceiverThatStallsIsAborted) {
  run(
      [](Fixture& bed) -> Task<> {
        bed.start();
        const auto written = co_await bed.client().write(std::string(100'000, 'x'));
        CO_ASSERT_TRUE(!written);
        EXPECT_EQ(written.error().code, ErrorCode::unavailable);
        co_await bed.tasks.join();
      },
      1000);
}

// A server that refuses an upload answers and closes, while more of the upload comes.
TEST(Relay, AnEarlyAnswerIsPassedOn) {
  run([](Fixture& bed) -> Task<> {
    bed.start();
    CO_ASSERT_OK(co_await bed.client().write("question"));
    EXPECT_EQ(co_await read_exactly(bed.server(), 8), "question");
    CO_ASSERT_OK(co_await bed.server().write("answer"));
    bed.server().close();
    CO_ASSERT_OK(co_await bed.client().write("more"));
    EXPECT_EQ(co_await read_all(bed.client()), "answer(end)");
    bed.client().close();
    co_await bed.tasks.join();
  });
}

TEST(Relay, AnAnswerThatWasPassedOnIsNotDestroyedByTheRestOfAnUpload) {
  run([](Fixture& bed) -> Task<> {
    bed.start();
    CO_ASSERT_OK(co_await bed.client().write("question"));
    EXPECT_EQ(co_await read_exactly(bed.server(), 8), "question");
    CO_ASSERT_OK(co_await bed.server().write("answer"));
    bed.server().close();
    EXPECT_EQ(co_await read_exactly(bed.client(), 3), "ans");
    CO_ASSERT_OK(co_await bed.client().write("more"));
    co_await sleep_for(kIdle / 10);
    EXPECT_EQ(co_await read_all(bed.client()), "wer(end)");
    bed.client().close();
    co_await bed.tasks.join();
  });
}

// A server that closes with unread input resets the connection behind its answer.
TEST(Relay, AnAnswerBeforeAResetIsPassedOn) {
  test::run_coro([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    auto to_client = memory_pair(executor);
    auto to_server = co_await socket_pair();
    Buffer from_client(Reactor::of(executor).blocks);
    Buffer from_server(Reactor::of(executor).blocks);
    std::uint64_t client_bytes = 0;
    std::uint64_t server_bytes = 0;
    CO_ASSERT_OK(co_await to_server.right->write("answer"));
    to_server.right->abort();
    TaskGroup tasks(executor);
    tasks.spawn("relay", [&]() -> Task<> {
      co_await relay({*to_client.right, from_client, client_bytes},
                     {*to_server.left, from_server, server_bytes}, kIdle);
    });
    EXPECT_EQ(co_await read_exactly(*to_client.left, 6), "answer");
    to_client.left->close();
    co_await tasks.join();
    EXPECT_FALSE(to_server.left->is_open());
  });
}

TEST(Relay, ALostPeerIsPassedOnAsAReset) {
  run([](Fixture& bed) -> Task<> {
    bed.start();
    CO_ASSERT_OK(co_await bed.client().write("half of i"));
    EXPECT_EQ(co_await read_exactly(bed.server(), 9), "half of i");
    bed.client().abort();
    EXPECT_THAT(co_await read(bed.server()), testing::StartsWith("(unavailable: "));
    co_await bed.tasks.join();
  });
}

}  // namespace
}  // namespace gitops::net
