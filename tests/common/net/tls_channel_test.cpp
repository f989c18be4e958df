#include "common/net/tls_channel.hpp"

#include "common/net/channel_pair.hpp"

namespace gitops::net {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

// A client that writes as soon as it may sends its first bytes together with the end of its
// handshake, and one read of the socket takes both.
TEST(TlsChannel, DataMayComeWithTheEndOfTheHandshake) {
  test::run_in_test_time([]() -> Task<> {
    TlsEnds ends(co_await socket_pair());
    TaskGroup tasks(co_await asio::this_coro::executor);
    std::string got;
    tasks.spawn("server", [&]() -> Task<> {
      CO_ASSERT_OK(co_await ends.right->handshake_server());
      ends.right->set_read_deadline(deadline_after(seconds(2)));
      got = co_await read_exactly(*ends.right, 5);
    });
    CO_ASSERT_OK(co_await ends.left->handshake_client("localhost"));
    CO_ASSERT_OK(co_await ends.left->write("first"));
    co_await tasks.join();
    EXPECT_EQ(got, "first");
  });
}

TEST(TlsChannel, SmallPartsShareARecord) {
  test::run_in_test_time([]() -> Task<> {
    auto pair = co_await secured(memory_pair(co_await asio::this_coro::executor));
    const std::string body(1000, 'b');
    const std::array<asio::const_buffer, 3> parts{asio::buffer("head,", 5), asio::buffer(body),
                                                  asio::buffer("!", 1)};
    CO_ASSERT_OK(co_await pair.left->write(parts));
    // A read returns what one record holds.
    EXPECT_EQ(co_await read(*pair.right), "head," + body + "!");
  });
}

TEST(TlsChannel, AnEndBelowIsNoEndOfTls) {
  test::run_in_test_time([]() -> Task<> {
    auto below = memory_pair(co_await asio::this_coro::executor);
    Channel& under_left = *below.left;
    auto pair = co_await secured(std::move(below));
    CO_ASSERT_OK(co_await pair.left->write("half of i"));
    under_left.shutdown_send();
    EXPECT_EQ(co_await read_all(*pair.right),
              "half of i(unavailable: the peer closed the connection inside of TLS)");
    EXPECT_THAT(co_await read(*pair.right), testing::StartsWith("(unavailable: "));
  });
}

TEST(TlsChannel, ForeignBytesAreAnErrorOfTls) {
  test::run_in_test_time([]() -> Task<> {
    auto below = memory_pair(co_await asio::this_coro::executor);
    Channel& under_left = *below.left;
    auto pair = co_await secured(std::move(below));
    CO_ASSERT_OK(co_await under_left.write("this is no record of TLS"));
    EXPECT_THAT(co_await read(*pair.right), testing::StartsWith("(tls: "));
  });
}

// The outcome of a handshake as a client over a channel whose other end is played by `peer`.
Error refusal(const std::function<Task<>(Channel& peer)>& peer) {
  Error error;
  test::run_in_test_time([&]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    auto below = memory_pair(executor);
    TaskGroup tasks(executor);
    tasks.spawn("peer", [&]() -> Task<> { co_await peer(*below.right); });
    const auto secured =
        co_await start_tls(std::move(below.left), tls_context(TlsContext::Role::client),
                           "localhost", Clock::now() + seconds(1));
    co_await tasks.join();
    CO_ASSERT_TRUE(!secured);
    error = secured.error();
  });
  return error;
}

TEST(TlsChannel, ASilentPeerIsGivenUp) {
  const auto error = refusal([](Channel& peer) -> Task<> {
    co_await read(peer);                      // the client's hello
    EXPECT_EQ(co_await read(peer), "(end)");  // the client has closed
  });
  EXPECT_EQ(error.code, ErrorCode::timeout);
  EXPECT_EQ(error.message, "the TLS handshake timed out");
}

TEST(TlsChannel, APeerThatSpeaksPlainTextIsToldApart) {
  const auto error = refusal([](Channel& peer) -> Task<> {
    CO_ASSERT_OK(co_await peer.write("HTTP/1.1 400 Bad Request\r\n\r\n"));
  });
  EXPECT_EQ(error.code, ErrorCode::tls);
  EXPECT_THAT(error.message, HasSubstr("the peer does not speak TLS"));
}

TEST(TlsChannel, APeerThatClosesDuringTheHandshakeIsToldApart) {
  for (const bool hard : {false, true}) {
    const auto error = refusal([hard](Channel& peer) -> Task<> {
      co_await read(peer);
      hard ? peer.abort() : peer.close();
    });
    EXPECT_EQ(error.code, ErrorCode::tls);
    EXPECT_EQ(error.message, "the peer closed the connection during the TLS handshake");
  }
}

TEST(TlsChannel, BothEndsLearnThatTheNameIsWrong) {
  test::run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    TlsEnds ends(memory_pair(executor));
    TaskGroup tasks(executor);
    std::string told;
    tasks.spawn("server", [&]() -> Task<> {
      const auto accepted = co_await ends.right->handshake_server();
      told = accepted ? co_await read(*ends.right) : accepted.error().message;
    });
    const auto connected = co_await ends.left->handshake_client("other.example");
    co_await tasks.join();
    CO_ASSERT_TRUE(!connected);
    EXPECT_EQ(connected.error().code, ErrorCode::tls);
    EXPECT_EQ(connected.error().message, "certificate verify failed: hostname mismatch");
    EXPECT_FALSE(ends.left->is_open());
    EXPECT_THAT(told, HasSubstr("certificate"));
  });
}

// A proxy's tunnel sets its deadline on the connection below.
TEST(TlsChannel, DeadlinesOfTheChannelBelowNoLongerCount) {
  test::run_in_test_time([]() -> Task<> {
    auto below = memory_pair(co_await asio::this_coro::executor);
    below.left->set_deadline(Clock::now() + seconds(1));
    auto pair = co_await secured(std::move(below));
    co_await sleep_for(seconds(2));
    CO_ASSERT_OK(co_await pair.left->write("request"));
    EXPECT_EQ(co_await read_exactly(*pair.right, 7), "request");
    CO_ASSERT_OK(co_await pair.right->write("answer"));
    EXPECT_EQ(co_await read_exactly(*pair.left, 6), "answer");
  });
}

}  // namespace
}  // namespace gitops::net
