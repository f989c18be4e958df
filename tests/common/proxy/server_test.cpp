#include "common/proxy/server.hpp"

#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/net/memory_channel.hpp"
#include "common/net/socket_channel.hpp"
#include "common/proxy/upstream.hpp"
#include "support/run_coro.hpp"

// What only real sockets show.
namespace gitops::proxy {
namespace {

using namespace std::chrono_literals;
using testing::EndsWith;
using testing::HasSubstr;

// A connection to a port of this machine, blocking.
int connect_to(std::uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(port);
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(fd, reinterpret_cast<const sockaddr*>(&where), sizeof(where)), 0);
  return fd;
}

TEST(ProxyServer, AClientThatWasConnectedBeforeADrainIsServed) {
  test::run_coro([&]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    Policy policy;
    policy.decide = [](const http::RequestHead&, const PeerInfo&) {
      return http::Response{.status = 200, .headers = {}, .body = "served"};
    };
    Server server(executor, {}, policy);
    CO_ASSERT_OK(server.listen());
    const int fd = connect_to(server.port());
    constexpr std::string_view kRequest = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    EXPECT_EQ(::send(fd, kRequest.data(), kRequest.size(), 0), std::ssize(kRequest));
    server.drain();  // the loop has not run since: the system holds the connection
    net::SocketChannel client(net::Reactor::of(executor), fd);
    std::string answer;
    std::array<char, 4096> room;
    while (true) {
      const auto size = co_await client.read_some(room);
      CO_ASSERT_OK(size);
      if (*size == 0) break;
      answer.append(room.data(), *size);
    }
    EXPECT_THAT(answer, HasSubstr("Connection: close"));
    EXPECT_THAT(answer, EndsWith("served"));
    co_await server.stop(deadline_after(5s));
  });
}

// The loop learns of the end of a connection only when it polls.
TEST(Upstream, AConnectionThatWasIdleForLongIsLookedAt) {
  test::run_in_test_time([&]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    std::array<int, 2> ends{};
    CO_ASSERT_TRUE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()) == 0);
    Upstream upstream({}, {});
    upstream.put(std::make_unique<UpstreamConnection>(
        std::make_unique<net::SocketChannel>(net::Reactor::of(executor), ends[0])));
    co_await sleep_for(2s);
    ::close(ends[1]);
    EXPECT_EQ(upstream.take(), nullptr);
    EXPECT_EQ(upstream.idle(), 0U);
  });
}

TEST(Upstream, AConnectionMadeDuringARotationOfCertificatesIsNotPooled) {
  test::run_in_test_time([&]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    std::vector<std::unique_ptr<net::Channel>> peers;
    unsigned certificates = 1;
    bool rotates = true;
    Dialer dialer;
    dialer.dial = [&](Deadline, net::LookupClient) -> Task<Result<std::unique_ptr<net::Channel>>> {
      auto [near, far] = net::MemoryChannel::pair(executor, 1024);
      peers.push_back(std::move(far));
      if (std::exchange(rotates, false)) ++certificates;
      co_return std::move(near);
    };
    dialer.generation = [&](Clock::time_point) { return certificates; };
    Upstream upstream(std::move(dialer), {});
    for (std::size_t pooled = 0; pooled < 2; ++pooled) {
      auto connection = co_await upstream.connect();
      CO_ASSERT_OK(connection);
      upstream.put(std::move(*connection));
      EXPECT_EQ(upstream.idle(), pooled);
    }
  });
}

TEST(Upstream, ClosesWhatItMayNotUseAnyMore) {
  test::run_in_test_time([&]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    Upstream upstream({}, {});
    std::vector<int> far;
    for (const int keeps : {2, 10, 0, 3}) {  // 0: it does not tell
      std::array<int, 2> ends{};
      CO_ASSERT_TRUE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()) == 0);
      far.push_back(ends[1]);
      auto connection = std::make_unique<UpstreamConnection>(
          std::make_unique<net::SocketChannel>(net::Reactor::of(executor), ends[0]));
      if (keeps > 0) connection->kept_for = std::chrono::seconds(keeps);
      upstream.put(std::move(connection));
    }
    EXPECT_EQ(upstream.idle(), 4U);
    const auto now = Clock::now();
    upstream.sweep(now + 2500ms);  // those of 1 s and of 2 s are gone
    EXPECT_EQ(upstream.idle(), 2U);
    upstream.sweep(now + 5s);
    EXPECT_EQ(upstream.idle(), 1U);
    upstream.sweep(now + 10s);
    EXPECT_EQ(upstream.idle(), 0U);
    for (const int fd : far) ::close(fd);
  });
}

}  // namespace
}  // namespace gitops::proxy
