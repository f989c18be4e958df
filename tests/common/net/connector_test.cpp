#include "common/net/connector.hpp"

#include <tuple>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/net/channel_pair.hpp"

namespace gitops::net {
namespace {

using namespace std::string_literals;
using std::chrono::milliseconds;
using std::chrono::seconds;

const std::string kConnected = "\x05\x00\x00\x01\x7f\x00\x00\x01\x1f\x90"s;

// A client that asks for api.example:6443, and a proxy whose replies the test writes.
struct Fixture {
  explicit Fixture(const Executor& executor) : ends(memory_pair(executor)), tasks(executor) {}

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

void run(const std::function<Task<>(Fixture&)>& body) {
  test::run_in_test_time([&]() -> Task<> {
    Fixture bed(co_await asio::this_coro::executor);
    co_await body(bed);
    co_await bed.tasks.join();
    EXPECT_TRUE(bed.ended);
  });
}

TEST(ConnectThroughSocks5, LeavesTheDestinationsBytesOnTheChannel) {
  run([](Fixture& bed) -> Task<> {
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
  run([](Fixture& bed) -> Task<> {
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
  run([](Fixture& bed) -> Task<> {
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
    run([&](Fixture& bed) -> Task<> {
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
  run([](Fixture& bed) -> Task<> {
    bed.start();
    CO_ASSERT_OK(co_await bed.proxy().write("\x05\x00"s));
    co_await bed.tasks.join();
    CO_ASSERT_TRUE(!bed.outcome);
    EXPECT_EQ(bed.outcome.error().code, ErrorCode::timeout);
  });
}

TEST(ConnectThroughSocks5, SendsNothingForADestinationThatDoesNotFit) {
  run([](Fixture& bed) -> Task<> {
    bed.ended = true;
    const auto outcome = co_await connect_through_socks5(bed.client(), {.host = "", .port = 1});
    CO_ASSERT_TRUE(!outcome);
    EXPECT_EQ(outcome.error().code, ErrorCode::invalid_argument);
    bed.client().close();
    EXPECT_EQ(co_await read(bed.proxy()), "(end)");
  });
}

// Name servers that know one host, and clients of it. Stop the listeners first.
struct Names {
  Names() : resolver(metrics, {.look_up = [this](const std::string&) { return answer; }}) {}

  Task<Result<std::unique_ptr<Channel>>> connect(std::uint16_t port) {
    co_return co_await connect_host(resolver, "peer.example", port, {}, deadline_after(seconds(5)));
  }

  // Read by the resolver's thread while a lookup is awaited.
  Result<Addresses> answer = fail(ErrorCode::unavailable, "server failure");
  Metrics metrics;
  Resolver resolver;
};

asio::ip::address address(const char* text) {
  return asio::ip::make_address(text);
}

// A port that takes no more connections: clients get no answer, as from an address that leads
// nowhere.
class SilentPort {
 public:
  SilentPort(std::uint32_t host, std::uint16_t port) : listener_(socket()), client_(socket()) {
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_addr.s_addr = htonl(host);
    where.sin_port = htons(port);
    const auto* name = reinterpret_cast<const sockaddr*>(&where);
    // The queue has one place, which this client takes.
    if (::bind(listener_, name, sizeof(where)) != 0 || ::listen(listener_, 0) != 0 ||
        ::connect(client_, name, sizeof(where)) != 0) {
      throw std::runtime_error("no silent port");
    }
  }
  ~SilentPort() {
    ::close(client_);
    ::close(listener_);
  }
  SilentPort(const SilentPort&) = delete;
  SilentPort& operator=(const SilentPort&) = delete;

 private:
  static int socket() { return ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); }

  int listener_;
  int client_;
};

constexpr std::uint32_t kSecondLoopback = 0x7f000002;

// Accepts connections on 127.0.0.1 until it goes.
struct Peer {
  explicit Peer(const Executor& executor, std::uint16_t wanted = 0)
      : listener(executor), tasks(executor) {
    const auto listening = listener.listen({.address = "127.0.0.1", .port = wanted});
    if (!listening) throw std::runtime_error(listening.error().message);
    port = *listening;
    tasks.spawn("accept", [this] {
      return listener.run(
          [this](std::unique_ptr<Channel>, const asio::ip::address&) { ++accepted; });
    });
  }
  Task<> stop() {
    listener.close();
    co_await tasks.join();
  }
  Listener listener;
  TaskGroup tasks;
  std::uint16_t port = 0;
  int accepted = 0;
};

// The name servers and the peer restart at once.
TEST(ConnectHost, ARefusedConnectionDoesNotEraseTheLastGoodAnswer) {
  test::run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    Names names;
    names.answer = Addresses{address("127.0.0.1")};
    std::uint16_t port = 0;
    {
      Peer peer(executor);
      port = peer.port;
      CO_ASSERT_OK(co_await names.connect(port));
      co_await peer.stop();
    }
    names.answer = fail(ErrorCode::unavailable, "server failure");
    const auto refused = co_await names.connect(port);
    CO_ASSERT_TRUE(!refused);
    EXPECT_EQ(refused.error().message, "connection refused");
    // Further ones, while the name servers fail, too.
    EXPECT_FALSE(co_await names.connect(port));
    co_await sleep_for(std::chrono::minutes(4));
    EXPECT_FALSE(co_await names.connect(port));
    Peer peer(executor, port);
    CO_ASSERT_OK(co_await names.connect(port));
    co_await peer.stop();
  });
}

TEST(ConnectHost, ARefusedConnectionHasTheNextOneAskTheNameServers) {
  test::run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    Names names;
    names.answer = Addresses{address("127.0.0.2")};
    Peer peer(executor);
    EXPECT_FALSE(co_await names.connect(peer.port));
    names.answer = Addresses{address("127.0.0.1")};
    CO_ASSERT_OK(co_await names.connect(peer.port));
    co_await peer.stop();
  });
}

TEST(ConnectHost, AnAddressThatLeadsNowhereCostsAQuarterOfASecondOnce) {
  test::run_in_test_time([]() -> Task<> {
    Peer peer(co_await asio::this_coro::executor);
    const SilentPort nowhere(kSecondLoopback, peer.port);
    Names names;
    names.answer = Addresses{address("127.0.0.2"), address("127.0.0.1")};
    auto began = Clock::now();
    CO_ASSERT_OK(co_await names.connect(peer.port));
    EXPECT_GE(Clock::now() - began, milliseconds(250));
    EXPECT_LT(Clock::now() - began, milliseconds(500));
    // It is remembered, also when the name is looked up again.
    for (int i = 0; i < 2; ++i) {
      began = Clock::now();
      CO_ASSERT_OK(co_await names.connect(peer.port));
      EXPECT_LT(Clock::now() - began, milliseconds(250));
      co_await sleep_for(seconds(35));
    }
    co_await peer.stop();
  });
}

TEST(ConnectHost, AllAddressesThatLeadNowhereAreATimeout) {
  test::run_in_test_time([]() -> Task<> {
    Peer peer(co_await asio::this_coro::executor);
    const SilentPort nowhere(kSecondLoopback, peer.port);
    co_await peer.stop();
    Names names;
    names.answer = Addresses{address("127.0.0.2")};
    const auto late = co_await names.connect(peer.port);
    CO_ASSERT_TRUE(!late);
    EXPECT_EQ(late.error().code, ErrorCode::timeout);
    // Refused by the other one: the first may still answer.
    names.answer = Addresses{address("127.0.0.2"), address("127.0.0.1")};
    const auto began = Clock::now();
    const auto again = co_await names.connect(peer.port);
    CO_ASSERT_TRUE(!again);
    EXPECT_EQ(again.error().code, ErrorCode::timeout);
    EXPECT_GE(Clock::now() - began, seconds(5));
  });
}

TEST(ConnectHost, ACancelledConnectEnds) {
  test::run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    Peer peer(executor);
    const SilentPort nowhere(kSecondLoopback, peer.port);
    co_await peer.stop();
    Names names;
    names.answer = Addresses{address("127.0.0.2")};
    const auto began = Clock::now();
    bool returned = false;
    TaskGroup tasks(executor);
    tasks.spawn("connect", [&]() -> Task<> {
      std::ignore = co_await names.connect(peer.port);
      returned = true;
    });
    co_await sleep_for(milliseconds(100));
    tasks.cancel();
    co_await tasks.join();
    EXPECT_FALSE(returned);
    EXPECT_LT(Clock::now() - began, seconds(1));
  });
}

}  // namespace
}  // namespace gitops::net
