#include "common/net/connector.hpp"

#include "common/net/channel_pair.hpp"

namespace gitops::net {
namespace {

using namespace std::string_literals;

const std::string kConnected = "\x05\x00\x00\x01\x7f\x00\x00\x01\x1f\x90"s;

// A client that asks for api.example:6443, and a proxy whose replies the test writes.
struct Bed {
  explicit Bed(const Executor& executor) : ends(memory_pair(executor)), tasks(executor) {}

  Channel& client() { return *ends.left; }
  Channel& proxy() { return *ends.right; }

  void start(std::string user = {}, std::string password = {}) {
    client().set_deadline(deadline_after(std::chrono::seconds(10)));
    Socks5Request request{.host = "api.example",
                          .port = 6443,
                          .user = std::move(user),
                          .password = Secret(std::move(password))};
    tasks.spawn("client", [this, request = std::move(request)]() -> Task<> {
      outcome = co_await connect_through_socks5(client(), request);
      ended = true;
    });
  }

  ChannelPair ends;
  TaskGroup tasks;
  Result<void> outcome;
  bool ended = false;
};

void run(const std::function<Task<>(Bed&)>& body) {
  test::run_in_test_time([&]() -> Task<> {
    Bed bed(co_await asio::this_coro::executor);
    co_await body(bed);
    co_await bed.tasks.join();
    EXPECT_TRUE(bed.ended);
  });
}

TEST(ConnectThroughSocks5, LeavesTheDestinationsBytesOnTheChannel) {
  run([](Bed& bed) -> Task<> {
    bed.start();
    EXPECT_EQ(co_await read_exactly(bed.proxy(), 3), "\x05\x01\x00"s);
    CO_ASSERT_OK(co_await bed.proxy().write("\x05\x00"s));
    EXPECT_EQ(co_await read_exactly(bed.proxy(), 18),
              "\x05\x01\x00\x03\x0b"s + "api.example\x19\x2b");
    CO_ASSERT_OK(co_await bed.proxy().write(kConnected + "hello"));
    co_await bed.tasks.join();
    CO_ASSERT_OK(bed.outcome);
    EXPECT_EQ(co_await read_exactly(bed.client(), 5), "hello");
    CO_ASSERT_OK(co_await bed.client().write("hi"));
    EXPECT_EQ(co_await read(bed.proxy()), "hi");
  });
}

TEST(ConnectThroughSocks5, AuthenticatesWhenTheProxyAsks) {
  run([](Bed& bed) -> Task<> {
    bed.start("me", "secret");
    EXPECT_EQ(co_await read_exactly(bed.proxy(), 4), "\x05\x02\x00\x02"s);
    CO_ASSERT_OK(co_await bed.proxy().write("\x05\x02"s));
    EXPECT_EQ(co_await read_exactly(bed.proxy(), 11), "\x01\x02me\x06secret"s);
    for (const char byte : "\x01\x00"s) CO_ASSERT_OK(co_await bed.proxy().write({&byte, 1}));
    EXPECT_EQ((co_await read_exactly(bed.proxy(), 18)).size(), 18U);
    for (const char byte : kConnected) CO_ASSERT_OK(co_await bed.proxy().write({&byte, 1}));
    co_await bed.tasks.join();
    EXPECT_TRUE(bed.outcome.has_value());
  });
}

TEST(ConnectThroughSocks5, FailsWhenTheProxyRefuses) {
  run([](Bed& bed) -> Task<> {
    bed.start();
    CO_ASSERT_OK(co_await bed.proxy().write("\x05\x00\x05\x02"s));
    co_await bed.tasks.join();
    CO_ASSERT_TRUE(!bed.outcome);
    EXPECT_EQ(bed.outcome.error().code, ErrorCode::forbidden);
  });
}

TEST(ConnectThroughSocks5, FailsWhenTheProxyClosesInEachPhase) {
  for (const std::string& said :
       {""s, "\x05"s, "\x05\x00"s, "\x05\x00"s + kConnected.substr(0, 9)}) {
    run([&](Bed& bed) -> Task<> {
      bed.start();
      CO_ASSERT_OK(co_await bed.proxy().write(said));
      bed.proxy().shutdown_send();
      co_await bed.tasks.join();
      CO_ASSERT_TRUE(!bed.outcome);
      EXPECT_EQ(bed.outcome.error().code, ErrorCode::unavailable);
    });
  }
}

TEST(ConnectThroughSocks5, FailsAtTheDeadlineOfTheChannel) {
  run([](Bed& bed) -> Task<> {
    bed.start();
    CO_ASSERT_OK(co_await bed.proxy().write("\x05\x00"s));
    co_await bed.tasks.join();
    CO_ASSERT_TRUE(!bed.outcome);
    EXPECT_EQ(bed.outcome.error().code, ErrorCode::timeout);
  });
}

TEST(ConnectThroughSocks5, SendsNothingForADestinationThatDoesNotFit) {
  run([](Bed& bed) -> Task<> {
    bed.ended = true;
    const auto outcome = co_await connect_through_socks5(bed.client(), {.host = "", .port = 1});
    CO_ASSERT_TRUE(!outcome);
    EXPECT_EQ(outcome.error().code, ErrorCode::invalid_argument);
    bed.client().close();
    EXPECT_EQ(co_await read(bed.proxy()), "(end)");
  });
}

}  // namespace
}  // namespace gitops::net
