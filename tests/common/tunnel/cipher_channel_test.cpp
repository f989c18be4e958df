#include "common/tunnel/cipher_channel.hpp"

#include <array>

#include <gmock/gmock.h>

#include "common/core/task_group.hpp"
#include "common/net/memory_channel.hpp"
#include "common/tunnel/bytes.hpp"
#include "support/run_coro.hpp"

namespace gitops::tunnel {
namespace {

using net::Channel;

const Secret kKey = control_key(Secret("s3cret"));
const std::string kIv = from_hex("000102030405060708090a0b0c0d0e0f");

Task<std::string> read(Channel& channel, std::size_t limit = 4096) {
  std::string room(limit, '\0');
  const auto size = co_await channel.read_some(room);
  if (!size) co_return "(" + size.error().message + ")";
  co_return *size == 0 ? "(end)" : room.substr(0, *size);
}

// The bytes are those of a real frpc 0.44 with that IV: a Ping.
TEST(CipherChannel, AgreesWithFrp) {
  test::run_in_test_time([]() -> Task<> {
    auto [near, far] = net::MemoryChannel::pair(co_await asio::this_coro::executor);
    CipherChannel cipher(std::move(near), kKey, kIv, "");
    const std::string plain = from_hex("6800000000000000027b7d");
    CO_ASSERT_OK(co_await cipher.write(plain));
    const auto wire = kIv + from_hex("f37848b3103aeeb1a4aaff");
    EXPECT_EQ(hex_encode(co_await read(*far)), hex_encode(wire));
    // Backwards in pieces, so that the IV comes apart from the data and from itself.
    for (const char byte : wire) CO_ASSERT_OK(co_await far->write(std::string_view(&byte, 1)));
    EXPECT_EQ(co_await read(cipher), plain);
    far->shutdown_send();
    EXPECT_EQ(co_await read(cipher), "(end)");
  });
}

TEST(CipherChannel, BeginsWithWhatHasCome) {
  for (std::size_t split = 0; split <= 27; ++split) {
    test::run_in_test_time([split]() -> Task<> {
      auto [near, far] = net::MemoryChannel::pair(co_await asio::this_coro::executor);
      const auto wire = kIv + from_hex("f37848b3103aeeb1a4aaff");
      CipherChannel cipher(std::move(near), kKey, kIv, wire.substr(0, split));
      if (split < wire.size()) CO_ASSERT_OK(co_await far->write(wire.substr(split)));
      std::string plain;
      while (plain.size() < 11) plain += co_await read(cipher);
      EXPECT_EQ(plain, from_hex("6800000000000000027b7d"));
    });
  }
}

TEST(CipherChannel, CarriesMuchThroughLittle) {
  test::run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    auto [near, far] = net::MemoryChannel::pair(executor, 100);
    CipherChannel a(std::move(near), kKey, kIv, "");
    CipherChannel b(std::move(far), kKey, std::string(16, 'b'), "");
    std::string text;
    while (text.size() < 200'000) text += std::to_string(text.size()) + ",";
    TaskGroup tasks(executor);
    tasks.spawn("writer", [&]() -> Task<> {
      EXPECT_TRUE(co_await a.write(text));
      a.shutdown_send();
    });
    std::string came;
    while (came.size() < text.size()) came += co_await read(b, 1000);
    EXPECT_TRUE(came == text);
    EXPECT_EQ(co_await read(b), "(end)");
    co_await tasks.join();
  });
}

TEST(CipherChannel, ALostConnectionIsLost) {
  test::run_in_test_time([]() -> Task<> {
    auto [near, far] = net::MemoryChannel::pair(co_await asio::this_coro::executor);
    CipherChannel cipher(std::move(near), kKey, kIv, "");
    far->abort();
    EXPECT_THAT(co_await read(cipher), testing::StartsWith("("));
    EXPECT_FALSE(co_await cipher.write("x"));
  });
}

}  // namespace
}  // namespace gitops::tunnel
