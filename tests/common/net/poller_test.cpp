#include "common/net/poller.hpp"

#include <array>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/core/task_group.hpp"
#include "common/net/reactor.hpp"
#include "support/run_coro.hpp"

namespace gitops::net {
namespace {

// One end of a pair of sockets, watched by a poller.
struct Watched {
  explicit Watched(Poller& p) : poller(p) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
    socket.fd = ends[0];
    far = ends[1];
    poller.add(socket);
    socket.read.waker = &waker;
  }
  ~Watched() {
    if (watched) poller.remove(socket);
    ::close(socket.fd);
    ::close(far);
  }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

  Poller& poller;
  PolledSocket socket;
  Waker waker;
  int far = -1;
  bool watched = true;
  bool told = false;
};

// The coroutine that is resumed first removes the other's socket, whose event lies in the same batch.
TEST(Poller, ASocketThatIsRemovedWhileEventsAreDeliveredGetsNone) {
  test::run_coro([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    auto& poller = Reactor::of(executor).poller;
    Watched one(poller);
    Watched two(poller);
    const auto wait = [executor](Watched& own, Watched& other) -> Task<> {
      co_await own.waker.wait(executor);
      if (!own.watched) co_return;
      own.told = true;
      other.watched = false;
      own.poller.remove(other.socket);
    };
    TaskGroup tasks(executor);
    tasks.spawn("one", [&] { return wait(one, two); });
    tasks.spawn("two", [&] { return wait(two, one); });
    co_await asio::post(executor, use_task);
    EXPECT_EQ(::write(one.far, "x", 1) + ::write(two.far, "x", 1), 2);
    while (!one.told && !two.told) co_await asio::post(executor, use_task);
    EXPECT_NE(one.told, two.told);
    auto& removed = one.told ? two : one;
    EXPECT_FALSE(removed.socket.read.ready);
    removed.waker.post(executor);
    co_await tasks.join();
  });
}

TEST(Poller, TimeStandsStillWhileEventsAreDelivered) {
  test::run_coro([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    auto& poller = Reactor::of(executor).poller;
    Watched one(poller);
    EXPECT_EQ(::write(one.far, "x", 1), 1);
    co_await one.waker.wait(executor);
    const auto now = poller.now();
    while (Clock::now() == now) {
    }
    EXPECT_EQ(poller.now(), now);
    EXPECT_TRUE(one.socket.read.ready);
    EXPECT_FALSE(one.socket.hung_up);
    ::shutdown(one.far, SHUT_WR);
    co_await one.waker.wait(executor);
    EXPECT_TRUE(one.socket.hung_up);
  });
}

}  // namespace
}  // namespace gitops::net
