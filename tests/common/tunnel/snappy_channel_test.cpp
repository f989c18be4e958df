#include "common/tunnel/snappy_channel.hpp"

#include <gmock/gmock.h>

#include "common/core/task_group.hpp"
#include "common/net/memory_channel.hpp"
#include "common/tunnel/bytes.hpp"
#include "common/tunnel/work_channel.hpp"
#include "support/run_coro.hpp"

namespace gitops::tunnel {
namespace {

using net::Channel;

// "hello", by frp's own library.
const std::string kHello = from_hex("ff060000734e6150705901090000bb1f1c1968656c6c6f");

Task<std::string> read(Channel& channel, std::size_t limit = 4096) {
  std::string room(limit, '\0');
  const auto size = co_await channel.read_some(room);
  if (!size) co_return "(" + size.error().message + ")";
  co_return *size == 0 ? "(end)" : room.substr(0, *size);
}

TEST(SnappyChannel, AgreesWithFrp) {
  test::run_in_test_time([]() -> Task<> {
    auto [near, far] = net::MemoryChannel::pair(co_await asio::this_coro::executor);
    SnappyChannel channel(std::move(near), "");
    CO_ASSERT_OK(co_await channel.write("hello"));
    EXPECT_EQ(hex_encode(co_await read(*far)), hex_encode(kHello));
    for (const char byte : kHello) CO_ASSERT_OK(co_await far->write(std::string_view(&byte, 1)));
    EXPECT_EQ(co_await read(channel, 3), "hel");
    EXPECT_TRUE(channel.holds_bytes());
    EXPECT_EQ(co_await read(channel), "lo");
    far->shutdown_send();
    EXPECT_EQ(co_await read(channel), "(end)");
  });
}

TEST(SnappyChannel, BeginsWithWhatHasCome) {
  for (std::size_t split = 0; split <= kHello.size(); ++split) {
    test::run_in_test_time([split]() -> Task<> {
      auto [near, far] = net::MemoryChannel::pair(co_await asio::this_coro::executor);
      SnappyChannel channel(std::move(near), kHello.substr(0, split));
      if (split < kHello.size()) CO_ASSERT_OK(co_await far->write(kHello.substr(split)));
      EXPECT_EQ(co_await read(channel), "hello");
    });
  }
}

// Through little, so that each side waits for the other one, alone and over the cipher.
TEST(SnappyChannel, CarriesMuchThroughLittle) {
  for (const bool encryption : {false, true}) {
    test::run_in_test_time([encryption]() -> Task<> {
      const auto executor = co_await asio::this_coro::executor;
      auto [near, far] = net::MemoryChannel::pair(executor, 100);
      const WorkCoding coding{.encryption = encryption, .compression = true};
      const auto a = work_channel(std::move(near), coding, Secret("s3cret"), "");
      const auto b = work_channel(std::move(far), coding, Secret("s3cret"), "");
      std::string text;
      while (text.size() < 500'000) text += std::to_string(text.size() * text.size()) + ",";
      TaskGroup tasks(executor);
      tasks.spawn("writer", [&]() -> Task<> {
        EXPECT_TRUE(co_await a->write(text));
        a->shutdown_send();
      });
      std::string came;
      while (came.size() < text.size()) came += co_await read(*b, 1000);
      EXPECT_TRUE(came == text);
      EXPECT_EQ(co_await read(*b), "(end)");
      co_await tasks.join();
    });
  }
}

TEST(SnappyChannel, AC15_AMalformedStreamIsLost) {
  test::run_in_test_time([]() -> Task<> {
    for (const auto& bytes : {std::string("GET / HTTP/1.1\r\n"), kHello.substr(0, 12)}) {
      auto [near, far] = net::MemoryChannel::pair(co_await asio::this_coro::executor);
      SnappyChannel channel(std::move(near), "");
      CO_ASSERT_OK(co_await far->write(bytes));
      far->shutdown_send();
      EXPECT_THAT(co_await read(channel), testing::StartsWith("(a compressed stream"));
      EXPECT_FALSE(channel.is_open());
    }
  });
}

TEST(SnappyChannel, ALostConnectionIsLost) {
  test::run_in_test_time([]() -> Task<> {
    auto [near, far] = net::MemoryChannel::pair(co_await asio::this_coro::executor);
    SnappyChannel channel(std::move(near), "");
    far->abort();
    EXPECT_THAT(co_await read(channel), testing::StartsWith("("));
    EXPECT_FALSE(co_await channel.write("x"));
  });
}

}  // namespace
}  // namespace gitops::tunnel
