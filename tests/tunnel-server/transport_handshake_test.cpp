#include "tunnel-server/transport_handshake.hpp"

#include <array>
#include <optional>

#include <gmock/gmock.h>

#include "common/core/task_group.hpp"
#include "common/http/websocket_channel.hpp"
#include "common/http/websocket_handshake.hpp"
#include "common/net/memory_channel.hpp"
#include "common/net/tls_channel.hpp"
#include "support/run_coro.hpp"
#include "support/test_certs.hpp"

namespace gitops::tunnel_server {
namespace {

using net::Channel;
using std::chrono::seconds;
using testing::HasSubstr;
namespace websocket = http::websocket;

struct Certificates {
  test::CertificateAuthority authority;
  test::Certificate server =
      authority.issue({.common_name = "tunnel", .organization = {}, .alt_names = {"localhost"}});
};
const Certificates& certificates() {
  static const Certificates made;
  return made;
}

TransportHandshake::Options with_certificate() {
  return {.tls = {.certificate_file = certificates().server.cert_file.string(),
                  .key_file = certificates().server.key_file.string()}};
}

// A connection through the handshake: the client's end, and what the server has of it in the end.
struct Fixture {
  explicit Fixture(const Executor& executor,
                   TransportHandshake::Options options = with_certificate())
      : handshake(std::move(options)), tasks(executor) {
    auto [near, far] = net::MemoryChannel::pair(executor);
    client = std::move(near);
    auto shared = std::make_shared<std::unique_ptr<Channel>>(std::move(far));
    tasks.spawn("enter", [this, shared]() -> Task<> {
      entered = co_await handshake.perform(std::move(*shared), deadline_after(seconds(10)));
    });
  }
  Task<> add_tls(const test::Certificate& own = {}) {
    net::TlsContext context(net::TlsContext::Role::client,
                            {.ca_file = certificates().authority.ca_file().string(),
                             .certificate_file = own.cert_file.string(),
                             .key_file = own.key_file.string()});
    auto started = co_await net::start_tls(std::move(client), context.get(Clock::now()).value(),
                                           "localhost", deadline_after(seconds(5)));
    CO_ASSERT_OK(started);
    client = std::move(*started);
  }
  Task<> add_websocket() {
    const std::array<char, 16> nonce{};
    const auto key = websocket::make_key(nonce);
    CO_ASSERT_OK(co_await client->write(
        "GET /~!frp?x HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: " +
        key + "\r\nOrigin: http://h\r\nSec-WebSocket-Version: 13\r\n\r\n"));
    std::string answer;
    while (!answer.contains("\r\n\r\n")) answer += co_await read(*client);
    EXPECT_THAT(answer, HasSubstr("101 Switching Protocols\r\n"));
    EXPECT_THAT(answer, HasSubstr("\r\nConnection: Upgrade\r\n"));
    EXPECT_THAT(answer, HasSubstr(websocket::accept_value(key)));
    client = std::make_unique<http::WebSocketChannel>(
        http::Upgraded{.channel = std::move(client), .received = {}},
        http::WebSocketChannel::Options{.role = websocket::Role::client,
                                        .opcode = websocket::Opcode::text,
                                        .draw_key = [] { return websocket::MaskKey{}; }});
  }
  // Bytes in both directions, the first of which were looked at.
  Task<> carries() {
    CO_ASSERT_OK(co_await client->write(std::string("\0\1\2hello", 8)));
    co_await tasks.join();
    CO_ASSERT_OK(*entered);
    auto& server = *(*entered)->channel;
    std::string received;
    while (received.size() < 8) received += co_await read(server);
    EXPECT_EQ(received, std::string("\0\1\2hello", 8));
    CO_ASSERT_OK(co_await server.write("\xff\xfe answer"));
    EXPECT_EQ(co_await read(*client), "\xff\xfe answer");
  }
  Task<std::string> answer_to(std::string request) {
    EXPECT_TRUE(co_await client->write(request));
    std::string all;
    while (true) {
      const auto part = co_await read(*client);
      if (part.starts_with("(")) break;
      all += part;
    }
    client->close();
    co_await tasks.join();
    EXPECT_FALSE(*entered);
    co_return all;
  }
  static Task<std::string> read(Channel& channel) {
    std::array<char, 4096> room;
    const auto size = co_await channel.read_some(room);
    if (!size) co_return "(" + size.error().message + ")";
    co_return *size == 0 ? "(end)" : std::string(room.data(), *size);
  }

  TransportHandshake handshake;
  TaskGroup tasks;
  std::unique_ptr<Channel> client;
  std::optional<Result<TransportHandshake::Transport>> entered;
};

void run(const std::function<Task<>(const Executor&)>& body) {
  test::run_in_test_time([&]() -> Task<> { co_await body(co_await asio::this_coro::executor); });
}

TEST(TransportHandshake, TakesClientsInClear) {
  run([](const Executor& executor) -> Task<> {
    Fixture bed(executor);
    co_await bed.carries();
  });
}

TEST(TransportHandshake, TellsConnectionsWithoutMux) {
  run([](const Executor& executor) -> Task<> {
    for (const std::string first : {"o", "w", "F"}) {
      Fixture bed(executor);
      co_await bed.add_tls();
      CO_ASSERT_OK(co_await bed.client->write(first));
      co_await bed.tasks.join();
      CO_ASSERT_OK(*bed.entered);
      EXPECT_FALSE((*bed.entered)->has_mux);
      EXPECT_EQ(co_await Fixture::read(*(*bed.entered)->channel), first);
    }
  });
}

TEST(TransportHandshake, TakesTlsWithAndWithoutFrpsByte) {
  run([](const Executor& executor) -> Task<> {
    for (const bool is_marked : {false, true}) {
      Fixture bed(executor);
      if (is_marked) CO_ASSERT_OK(co_await bed.client->write("\x17"));
      co_await bed.add_tls();
      co_await bed.carries();
    }
  });
}

TEST(TransportHandshake, TakesWebSocketWithTextFrames) {
  run([](const Executor& executor) -> Task<> {
    Fixture bed(executor);
    co_await bed.add_websocket();
    co_await bed.carries();
  });
}

// Text frames of bytes that are no text break gateways that look at them.
TEST(TransportHandshake, AnswersInBinaryFrames) {
  run([](const Executor& executor) -> Task<> {
    Fixture bed(executor);
    CO_ASSERT_OK(co_await bed.client->write(
        "GET /~!frp HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n" +
        std::string{'\x81', '\x81', 0, 0, 0, 0, '\0'}));
    co_await bed.tasks.join();
    CO_ASSERT_OK(*bed.entered);
    CO_ASSERT_OK(co_await (*bed.entered)->channel->write("\xff\xfe"));
    std::string received;
    while (!received.ends_with("\xff\xfe")) received += co_await Fixture::read(*bed.client);
    EXPECT_EQ(received.substr(received.find("\r\n\r\n") + 4), "\x82\x02\xff\xfe");
  });
}

TEST(TransportHandshake, TakesTlsInsideAndOutsideOfWebSocket) {
  run([](const Executor& executor) -> Task<> {
    {
      Fixture bed(executor);
      co_await bed.add_websocket();
      CO_ASSERT_OK(co_await bed.client->write("\x17"));
      co_await bed.add_tls();
      co_await bed.carries();
    }
    Fixture bed(executor);
    co_await bed.add_tls();
    co_await bed.add_websocket();
    co_await bed.carries();
  });
}

TEST(TransportHandshake, AC17_BytesBehindTheUpgradeAreTheClients) {
  run([](const Executor& executor) -> Task<> {
    Fixture bed(executor);
    // A frame in the same segment: it is read as a frame, not as the connection's bytes.
    const std::string frame{'\x82', '\x81', 0, 0, 0, 0, '\x17'};
    CO_ASSERT_OK(co_await bed.client->write(
        "GET /~!frp HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n" +
        frame + std::string{'\x82', '\x81', 0, 0, 0, 0, '\0'}));
    co_await bed.tasks.join();
    // frp's byte, and then something other than TLS.
    EXPECT_EQ(bed.entered->error().code, ErrorCode::protocol);
  });
}

TEST(TransportHandshake, AnswersRequestsThatAreNotForTheTunnel) {
  run([](const Executor& executor) -> Task<> {
    const auto status_of = [&](std::string request) -> Task<std::string> {
      Fixture bed(executor);
      const auto answer = co_await bed.answer_to(std::move(request));
      co_return answer.substr(0, 12);
    };
    EXPECT_EQ(co_await status_of("GET / HTTP/1.1\r\nHost: h\r\n\r\n"), "HTTP/1.1 404");
    EXPECT_EQ(co_await status_of("GET /~!frp/x HTTP/1.1\r\nHost: h\r\n\r\n"), "HTTP/1.1 404");
    EXPECT_EQ(co_await status_of("GET /~!frp HTTP/1.1\r\nHost: h\r\n\r\n"), "HTTP/1.1 400");
    EXPECT_EQ(co_await status_of("GET / HTTP/9.0\r\n\r\n"), "HTTP/1.1 505");
    EXPECT_EQ(co_await status_of("GET /~!frp HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\n"
                                 "Connection: Upgrade\r\nSec-WebSocket-Key: "
                                 "AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 8\r\n\r\n"),
              "HTTP/1.1 426");
  });
}

TEST(TransportHandshake, AC15_ARequestWithoutEndIsRefused) {
  run([](const Executor& executor) -> Task<> {
    Fixture bed(executor);
    const auto answer =
        co_await bed.answer_to("GET /~!frp HTTP/1.1\r\nX: " + std::string(10'000, 'x'));
    EXPECT_EQ(answer.substr(0, 12), "HTTP/1.1 431");
  });
}

TEST(TransportHandshake, AC15_AClientThatSaysNothingIsClosedInTime) {
  run([](const Executor& executor) -> Task<> {
    for (const std::string first :
         {"", "\x17", "\x16", "\x16\x03\x01", "G", "GET /~!frp HTTP/1.1\r\n"}) {
      const auto begin = Clock::now();
      Fixture bed(executor);
      if (!first.empty()) CO_ASSERT_OK(co_await bed.client->write(first));
      co_await bed.tasks.join();
      EXPECT_EQ(bed.entered->error().code, ErrorCode::timeout) << first;
      EXPECT_LE(Clock::now() - begin, seconds(11)) << first;
    }
  });
}

TEST(TransportHandshake, RefusesOtherProtocols) {
  run([](const Executor& executor) -> Task<> {
    for (const char* first : {"SSH-2.0-x\r\n", "POST / HTTP/1.1\r\n", "\x17G", "\x01"}) {
      Fixture bed(executor);
      CO_ASSERT_OK(co_await bed.client->write(first));
      co_await bed.tasks.join();
      EXPECT_EQ(bed.entered->error().code, ErrorCode::protocol) << first;
    }
  });
}

TEST(TransportHandshake, CanRequireTls) {
  run([](const Executor& executor) -> Task<> {
    auto options = with_certificate();
    options.require_tls = true;
    {
      Fixture bed(executor, options);
      CO_ASSERT_OK(co_await bed.client->write(std::string(1, '\0')));
      co_await bed.tasks.join();
      EXPECT_EQ(bed.entered->error().code, ErrorCode::forbidden);
    }
    Fixture bed(executor, options);
    co_await bed.add_websocket();
    co_await bed.add_tls();
    co_await bed.carries();
  });
}

// frp maps no name of a certificate to a client: whoever has one of this authority may try to log in.
TEST(TransportHandshake, AC18_CanAskClientsForACertificate) {
  test::CertificateAuthority clients;
  test::CertificateAuthority others;
  const test::CertificateRequest request{
      .common_name = "client", .organization = {}, .alt_names = {"client"}};
  const auto right = clients.issue(request);
  const auto wrong = others.issue(request);
  auto for_servers = request;
  for_servers.usages = "serverAuth";
  const auto misused = clients.issue(for_servers);
  run([&](const Executor& executor) -> Task<> {
    auto options = with_certificate();
    options.tls.ca_file = clients.ca_file().string();
    options.require_tls = true;
    {
      Fixture bed(executor, options);
      co_await bed.add_tls(right);
      co_await bed.carries();
    }
    for (const auto& own : {test::Certificate(), wrong, misused}) {
      Fixture bed(executor, options);
      // In TLS 1.3 the client has finished its handshake before the server refuses it.
      co_await bed.add_tls(own);
      co_await bed.tasks.join();
      EXPECT_EQ(bed.entered->error().code, ErrorCode::tls);
    }
  });
}

TEST(TransportHandshake, SaysThatItHasNoCertificate) {
  run([](const Executor& executor) -> Task<> {
    Fixture bed(executor, {});
    CO_ASSERT_OK(co_await bed.client->write("\x16"));
    co_await bed.tasks.join();
    EXPECT_THAT(bed.entered->error().message, HasSubstr("no certificate"));
    TransportHandshake wrong({.tls = {.certificate_file = "/nowhere"}});
    EXPECT_FALSE(wrong.check());
  });
}

}  // namespace
}  // namespace gitops::tunnel_server
