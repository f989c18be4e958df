#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "common/http/gzip.hpp"
#include "common/net/address_list.hpp"
#include "common/net/timer_wheel.hpp"
#include "common/proxy/buffer.hpp"
#include "support/run_coro.hpp"

// Small parts that the proxy core stands on.
namespace gitops::proxy {
namespace {

using std::chrono::milliseconds;

boost::asio::ip::address address(const std::string& text) {
  return boost::asio::ip::make_address(text);
}

TEST(AddressList, HoldsNetworksAndAddresses) {
  const auto list =
      net::AddressList::parse({"10.0.0.0/8", "192.168.1.7", "fd00::/8", "::ffff:1.2.3.4"});
  ASSERT_TRUE(list);
  for (const auto* inside :
       {"10.255.0.1", "192.168.1.7", "fd12::1", "::ffff:10.0.0.1", "1.2.3.4"}) {
    EXPECT_TRUE(list->contains(address(inside))) << inside;
  }
  for (const auto* outside : {"11.0.0.1", "192.168.1.8", "fe00::1", "::a00:1"}) {
    EXPECT_FALSE(list->contains(address(outside))) << outside;
  }
  for (const auto* wrong : {"10.0.0.0/33", "10.0.0/8", "x", "10.0.0.0/", "10.0.0.0/8x", "::/129"}) {
    EXPECT_FALSE(net::AddressList::parse({wrong})) << wrong;
  }
  EXPECT_TRUE(net::AddressList::parse({"0.0.0.0/0"})->contains(address("8.8.8.8")));
}

TEST(AddressList, AC02_KnowsAddressesThatNoServiceHas) {
  for (const auto* special :
       {"127.0.0.1", "127.255.255.255", "0.0.0.0", "169.254.169.254", "224.0.0.1",
        "255.255.255.255", "::1", "::", "fe80::1", "ff02::1", "::ffff:127.0.0.1", "::127.0.0.1",
        "64:ff9b::7f00:1", "2002:7f00:1::", "fd00:ec2::254"}) {
    EXPECT_TRUE(net::is_special_address(address(special))) << special;
  }
  for (const auto* plain : {"10.0.0.1", "8.8.8.8", "fd00::1", "2001:db8::1", "::ffff:10.0.0.1"}) {
    EXPECT_FALSE(net::is_special_address(address(plain))) << plain;
  }
}

TEST(TimerWheel, FiresInOrderAndNotEarly) {
  test::run_coro([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    net::TimerWheel wheel(executor);
    Event fired(executor);
    std::vector<int> order;
    const auto begin = Clock::now();
    net::WheelTimer second(wheel, [&] {
      order.push_back(2);
      EXPECT_GE(Clock::now() - begin, milliseconds(300));
      fired.notify_all();
    });
    net::WheelTimer first(wheel, [&] { order.push_back(1); });
    net::WheelTimer moved(wheel, [&] { order.push_back(3); });
    net::WheelTimer never(wheel, [&] { order.push_back(4); });
    auto destroyed = std::make_unique<net::WheelTimer>(wheel, [&] { order.push_back(5); });
    second.expires_at(begin + milliseconds(300));
    first.expires_at(begin + milliseconds(50));
    moved.expires_at(begin + milliseconds(50));
    moved.expires_at(kNever);
    never.expires_at(kNever);
    destroyed->expires_at(begin + milliseconds(50));
    destroyed.reset();
    while (order.size() < 2) co_await fired.wait();
    EXPECT_THAT(order, testing::ElementsAre(1, 2));
  });
}

TEST(TimerWheel, TimersMayBeMovedAndDestroyedByWhatTheyCall) {
  test::run_coro([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    net::TimerWheel wheel(executor);
    Event fired(executor);
    int count = 0;
    std::unique_ptr<net::WheelTimer> other;
    net::WheelTimer again(wheel, [&] {
      other.reset();
      if (++count < 3) again.expires_at(Clock::now() + milliseconds(10));
      fired.notify_all();
    });
    other = std::make_unique<net::WheelTimer>(wheel, [&] { ADD_FAILURE(); });
    again.expires_at(Clock::now());
    other->expires_at(Clock::now() + milliseconds(500));
    other->expires_at(Clock::now() + milliseconds(400));
    while (count < 3) co_await fired.wait();
  });
}

TEST(ProxyBuffer, TakesItsBlockOnlyWhenItIsNeeded) {
  BlockPool pool;
  ProxyBuffer buffer(pool);
  EXPECT_TRUE(buffer.empty());
  auto room = buffer.room();
  EXPECT_EQ(room.size(), BlockPool::kLarge);
  room[0] = 'a';
  room[1] = 'b';
  buffer.commit(2);
  buffer.consume(1);
  buffer.release();  // not empty: stays
  EXPECT_EQ(buffer.bytes(), "b");
  buffer.compact();
  EXPECT_EQ(buffer.bytes(), "b");
  EXPECT_EQ(buffer.room().size(), BlockPool::kLarge - 1);
  ProxyBuffer other(pool);
  other.swap(buffer);
  EXPECT_EQ(other.bytes(), "b");
  other.consume(1);
  other.release();
  EXPECT_EQ(other.room().size(), BlockPool::kLarge);
}

TEST(ProxyBuffer, GrowsOnceWhenASmallBlockIsFull) {
  BlockPool pool;
  ProxyBuffer buffer(pool, BlockPool::kSmall);
  buffer.room()[0] = 'a';
  buffer.room()[1] = 'b';
  buffer.commit(BlockPool::kSmall - 1);
  EXPECT_FALSE(buffer.grow());
  buffer.commit(1);
  buffer.consume(1);
  EXPECT_TRUE(buffer.room().empty());
  EXPECT_TRUE(buffer.grow());
  EXPECT_EQ(buffer.bytes().size(), BlockPool::kSmall - 1);
  EXPECT_EQ(buffer.bytes().front(), 'b');
  EXPECT_EQ(buffer.room().size(), BlockPool::kLarge - BlockPool::kSmall + 1);
  buffer.commit(buffer.room().size());
  EXPECT_FALSE(buffer.grow());
}

TEST(Deflater, CanBeReadAfterEachSync) {
  http::Deflater deflater(4);
  std::string out;
  deflater.feed("first, ", http::Deflater::Flush::sync, out);
  http::Inflater inflater(1 << 20);
  std::string text;
  ASSERT_TRUE(inflater.feed(out, text));
  EXPECT_EQ(text, "first, ");
  out.clear();
  deflater.feed(std::string(100'000, 'x'), http::Deflater::Flush::none, out);
  deflater.feed({}, http::Deflater::Flush::finish, out);
  ASSERT_TRUE(inflater.feed(out, text));
  EXPECT_TRUE(inflater.finished());
  EXPECT_EQ(text.size(), 100'007U);
}

}  // namespace
}  // namespace gitops::proxy
