#include "common/http/websocket_channel.hpp"

#include "common/net/channel_pair.hpp"
#include "common/net/more_follows.hpp"

namespace gitops::http {
namespace {

using net::ChannelPair;
using net::memory_pair;
using net::read;
using net::read_all;
using testing::StartsWith;
using websocket::Opcode;
using websocket::Role;

constexpr websocket::MaskKey kKey{'\x11', '\x22', '\x33', '\x44'};

std::unique_ptr<WebSocketChannel> over(std::unique_ptr<net::Channel> below, Role role,
                                       std::string received = {}) {
  return std::make_unique<WebSocketChannel>(
      Upgraded{.channel = std::move(below), .received = std::move(received)},
      WebSocketChannel::Options{.role = role, .draw_key = [] { return kKey; }});
}

// WebSocket over both ends, the left one being the client.
ChannelPair in_websocket(ChannelPair below) {
  return {over(std::move(below.left), Role::client), over(std::move(below.right), Role::server)};
}

// A channel of a server, and the bare other end of the connection below it.
struct Bare {
  explicit Bare(const Executor& executor, std::size_t capacity = 64 * 1024) {
    auto below = memory_pair(executor, capacity);
    peer = std::move(below.left);
    server = over(std::move(below.right), Role::server);
  }
  Task<> send(std::string bytes) { CO_ASSERT_OK(co_await peer->write(bytes)); }

  std::unique_ptr<net::Channel> peer;
  std::unique_ptr<net::Channel> server;
};

std::string frame(Opcode opcode, std::string_view payload, bool final = true) {
  std::string bytes;
  websocket::append_frame(bytes, opcode, payload, kKey, final);
  return bytes;
}

std::string close_frame(std::uint16_t code, std::string_view reason = "") {
  return frame(Opcode::close, websocket::close_payload(code, reason));
}

// What the server sent up to a close frame, frame by frame: "pong:x close:1000".
std::string frames_in(std::string bytes) {
  websocket::Decoder decoder({.role = Role::client, .text_check = websocket::TextCheck::none});
  std::string seen;
  std::span<char> left(bytes);
  while (!left.empty()) {
    const auto step = decoder.next(left);
    if (!step) return seen + "(" + step.error().message + ")";
    left = left.subspan(step->consumed);
    switch (step->event) {
      case websocket::DecodeStep::Event::more:
        return seen + "(incomplete)";
      case websocket::DecodeStep::Event::data:
        seen.append("data:").append(step->payload);
        break;
      case websocket::DecodeStep::Event::ping:
        seen.append("ping:").append(step->payload);
        break;
      case websocket::DecodeStep::Event::pong:
        seen.append("pong:").append(step->payload);
        break;
      case websocket::DecodeStep::Event::close:
        return seen.append("close:").append(std::to_string(step->close_code));
    }
    seen += ' ';
  }
  return seen;
}

TEST(WebSocketChannel, CarriesBytesBothWays) {
  test::run_coro([]() -> Task<> {
    auto pair = in_websocket(memory_pair(co_await asio::this_coro::executor));
    CO_ASSERT_OK(co_await pair.left->write("question"));
    EXPECT_EQ(co_await read(*pair.right), "question");
    const std::array<asio::const_buffer, 2> parts{asio::buffer("ans", 3), asio::buffer("wer", 3)};
    CO_ASSERT_OK(co_await pair.right->write(parts));
    EXPECT_EQ(co_await read(*pair.left), "answer");
    pair.left->close();
    EXPECT_EQ(co_await read(*pair.right), "(end)");
  });
}

// Old frps sends binary data in text frames, and frames have no meaning to a stream of bytes.
TEST(WebSocketChannel, TypesAndBordersOfMessagesMeanNothing) {
  test::run_coro([]() -> Task<> {
    Bare fixture(co_await asio::this_coro::executor);
    co_await fixture.send(frame(Opcode::text, "\xff\xfe,") + frame(Opcode::binary, "two,", false) +
                          frame(Opcode::continuation, "") + frame(Opcode::text, "three"));
    EXPECT_EQ(co_await read(*fixture.server), "\xff\xfe,two,three");
  });
}

TEST(WebSocketChannel, FramesMayComeByteByByte) {
  test::run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    Bare fixture(executor);
    const auto long_frame = frame(Opcode::binary, std::string(300, 'b'));
    const auto bytes = frame(Opcode::binary, "a") + frame(Opcode::ping, std::string(125, 'p')) +
                       long_frame + close_frame(1000);
    TaskGroup tasks(executor);
    std::string got;
    tasks.spawn("server", [&]() -> Task<> { got = co_await read_all(*fixture.server); });
    for (const char byte : bytes) {
      co_await fixture.send(std::string(1, byte));
      co_await asio::post(executor, use_task);
    }
    co_await tasks.join();
    EXPECT_EQ(got, "a" + std::string(300, 'b') + "(end)");
  });
}

// One byte more would take a second TLS record.
TEST(WebSocketChannel, AFrameAndItsHeadFillATlsRecord) {
  test::run_coro([]() -> Task<> {
    constexpr std::size_t kRecord = 16 * 1024;
    const std::string large(3 * kRecord, 'x');
    const asio::const_buffer buffer(large.data(), large.size());
    for (const auto role : {Role::client, Role::server}) {
      auto below = memory_pair(co_await asio::this_coro::executor);
      const auto channel = over(std::move(below.left), role);
      EXPECT_EQ(channel->write_now(std::span(&buffer, 1)).what, net::Transfer::data);
      std::string room(large.size(), '\0');
      const auto sent = below.right->read_now(std::span(room)).size;
      EXPECT_LE(sent, kRecord);
      EXPECT_GE(sent, kRecord - 8);
    }
  });
}

// Takes everything, and notes of each write whether more was said to follow.
class Watched : public net::Channel {
 public:
  Watched(net::Reactor& reactor, std::vector<bool>& more) : Channel(reactor, own_), more_(more) {
    own_.write.ready = true;
  }
  [[nodiscard]] bool is_open() const override { return true; }
  void shutdown_send() override {}
  void close() override {}
  void abort() override {}
  net::Transfer try_read(std::span<char>) override { return {.what = net::Transfer::nothing}; }
  net::Transfer try_write(std::span<const asio::const_buffer> buffers) override {
    more_.push_back(net::MoreFollows::is_set());
    return {.what = net::Transfer::data, .size = asio::buffer_size(buffers)};
  }

 private:
  net::Readiness own_;
  std::vector<bool>& more_;
};

// So that the frames of a large write are not sent, and do not wake the peer, one by one.
TEST(WebSocketChannel, TellsWhatIsBelowWhetherMoreFollows) {
  test::run_coro([]() -> Task<> {
    const auto pair = memory_pair(co_await asio::this_coro::executor);
    for (const auto& [size, expected] : std::vector<std::pair<std::size_t, std::vector<bool>>>{
             {40'000, {true, true, false}}, {16 * 1024 - 8, {false}}, {10, {false}}}) {
      std::vector<bool> more;
      const auto channel =
          over(std::make_unique<Watched>(pair.left->reactor(), more), Role::server);
      CO_ASSERT_OK(co_await channel->write(std::string(size, 'x')));
      EXPECT_EQ(more, expected) << size;
      EXPECT_FALSE(net::MoreFollows::is_set());
    }
  });
}

TEST(WebSocketChannel, ReadsIntoLittleRoom) {
  test::run_coro([]() -> Task<> {
    Bare fixture(co_await asio::this_coro::executor);
    const auto text = net::long_text(1000);
    co_await fixture.send(frame(Opcode::binary, text) + close_frame(1001));
    std::string got;
    std::array<char, 3> room;
    while (true) {
      const auto size = co_await fixture.server->read_some(room);
      CO_ASSERT_OK(size);
      if (*size == 0) break;
      got.append(room.data(), *size);
    }
    EXPECT_EQ(got, text);
  });
}

TEST(WebSocketChannel, BytesThatCameWithTheHandshakeAreReadFirst) {
  test::run_coro([]() -> Task<> {
    auto below = memory_pair(co_await asio::this_coro::executor);
    const auto bytes = frame(Opcode::binary, "early");
    const auto server = over(std::move(below.right), Role::server, bytes.substr(0, 7));
    CO_ASSERT_OK(co_await below.left->write(bytes.substr(7)));
    EXPECT_EQ(co_await net::read_exactly(*server, 5), "early");
  });
}

TEST(WebSocketChannel, AnswersTheLastPing) {
  test::run_coro([]() -> Task<> {
    Bare fixture(co_await asio::this_coro::executor);
    co_await fixture.send(frame(Opcode::ping, "one") + frame(Opcode::ping, "two") +
                          frame(Opcode::pong, "unasked") + frame(Opcode::binary, "data"));
    EXPECT_EQ(co_await read(*fixture.server), "data");
    EXPECT_EQ(frames_in(co_await read(*fixture.peer)), "pong:two ");
  });
}

// The pong finds no room, and goes out behind the frame that fills it.
TEST(WebSocketChannel, APongNeverSplitsAFrame) {
  test::run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    Bare fixture(executor, 100);
    TaskGroup tasks(executor);
    tasks.spawn("server", [&]() -> Task<> {
      CO_ASSERT_OK(co_await fixture.server->write(std::string(150, 'd')));
      CO_ASSERT_OK(co_await fixture.server->write("more"));
      fixture.server->shutdown_send();
    });
    co_await asio::post(executor, use_task);
    co_await fixture.send(frame(Opcode::ping, "?") + frame(Opcode::binary, "x"));
    EXPECT_EQ(co_await read(*fixture.server), "x");
    const auto seen = frames_in(co_await read_all(*fixture.peer));
    co_await tasks.join();
    EXPECT_EQ(seen, "data:" + std::string(150, 'd') + " pong:? data:more close:1000");
  });
}

TEST(WebSocketChannel, APongThatWasBegunIsCompletedBeforeTheNextOne) {
  test::run_in_test_time([]() -> Task<> {
    Bare fixture(co_await asio::this_coro::executor, 40);
    const std::string long_payload(30, 'a');
    CO_ASSERT_OK(co_await fixture.server->write("0123456789"));  // a part of the pong fits
    std::array<char, 64> room{};
    for (const auto& payload : {long_payload, std::string("b"), std::string("c")}) {
      co_await fixture.send(frame(Opcode::ping, payload));
      EXPECT_EQ(fixture.server->read_now(room).what, net::Transfer::nothing);
    }
    auto seen = co_await read(*fixture.peer);
    co_await fixture.send(frame(Opcode::binary, "x"));
    EXPECT_EQ(co_await read(*fixture.server), "x");  // sends what was pending
    seen += co_await read(*fixture.peer);
    fixture.server->close();
    seen += co_await read_all(*fixture.peer);
    EXPECT_EQ(frames_in(seen), "data:0123456789 pong:" + long_payload + " pong:c close:1000");
  });
}

TEST(WebSocketChannel, ACloseFrameIsAnsweredAndIsTheEnd) {
  test::run_coro([]() -> Task<> {
    Bare fixture(co_await asio::this_coro::executor);
    co_await fixture.send(frame(Opcode::binary, "last") + close_frame(1000));
    EXPECT_EQ(co_await read_all(*fixture.server), "last(end)");
    EXPECT_EQ(frames_in(co_await read(*fixture.peer)), "close:1000");
    const auto written = co_await fixture.server->write("too late");
    CO_ASSERT_TRUE(!written);
    EXPECT_THAT(written.error().message, StartsWith("the peer closed the WebSocket"));
  });
}

TEST(WebSocketChannel, ACloseFrameWithAnErrorIsNoEnd) {
  test::run_coro([]() -> Task<> {
    Bare fixture(co_await asio::this_coro::executor);
    co_await fixture.send(close_frame(1011, "out of memory"));
    EXPECT_EQ(co_await read(*fixture.server),
              "(unavailable: the peer closed the WebSocket with code 1011 (out of memory))");
  });
}

TEST(WebSocketChannel, AnEndWithoutACloseFrameIsNoEnd) {
  test::run_coro([]() -> Task<> {
    Bare fixture(co_await asio::this_coro::executor);
    co_await fixture.send(frame(Opcode::binary, "half"));
    fixture.peer->shutdown_send();
    EXPECT_EQ(co_await read_all(*fixture.server),
              "half(unavailable: the peer closed the connection inside of WebSocket)");
  });
}

TEST(WebSocketChannel, ABreachOfTheProtocolClosesTheConnection) {
  test::run_coro([]() -> Task<> {
    Bare fixture(co_await asio::this_coro::executor);
    std::string unmasked;
    websocket::append_frame(unmasked, Opcode::binary, "x", std::nullopt);
    co_await fixture.send(unmasked);
    EXPECT_THAT(co_await read(*fixture.server), StartsWith("(protocol: "));
    EXPECT_EQ(frames_in(co_await read(*fixture.peer)), "close:1002");
    EXPECT_FALSE(fixture.server->is_open());
  });
}

TEST(WebSocketChannel, AFloodOfPingsEndsTheConnection) {
  test::run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    Bare fixture(executor, 16 * 1024 * 1024);
    std::string flood;
    const auto ping = frame(Opcode::ping, std::string(100, 'p'));
    while (flood.size() < 8 * 1024 * 1024) flood += ping;
    co_await fixture.send(flood);
    EXPECT_EQ(co_await read(*fixture.server), "(protocol: too many frames without data)");
  });
}

// -- what stands on it, and below it --

Task<> expect_long_texts_pass(ChannelPair pair) {
  const auto there = net::long_text(700'000);
  const auto back = net::long_text(300'000);
  TaskGroup tasks(co_await asio::this_coro::executor);
  std::string got_right;
  std::string got_left;
  tasks.spawn("left writes", [&]() -> Task<> { CO_ASSERT_OK(co_await pair.left->write(there)); });
  tasks.spawn("right writes", [&]() -> Task<> { CO_ASSERT_OK(co_await pair.right->write(back)); });
  tasks.spawn("right reads", [&]() -> Task<> {
    got_right = co_await net::read_exactly(*pair.right, there.size());
  });
  tasks.spawn("left reads",
              [&]() -> Task<> { got_left = co_await net::read_exactly(*pair.left, back.size()); });
  co_await tasks.join();
  EXPECT_TRUE(got_right == there);
  EXPECT_TRUE(got_left == back);
}

TEST(WebSocketChannel, LongTextsPassThroughLittleMemory) {
  test::run_coro([]() -> Task<> {
    co_await expect_long_texts_pass(
        in_websocket(memory_pair(co_await asio::this_coro::executor, 1000)));
  });
}

TEST(WebSocketChannel, CarriesTls) {
  test::run_coro([]() -> Task<> {
    co_await expect_long_texts_pass(
        co_await net::secured(in_websocket(memory_pair(co_await asio::this_coro::executor, 5000))));
  });
}

TEST(WebSocketChannel, StandsOnTlsAndCarriesTls) {
  test::run_coro([]() -> Task<> {
    auto outer = co_await net::secured(memory_pair(co_await asio::this_coro::executor, 20'000));
    co_await expect_long_texts_pass(co_await net::secured(in_websocket(std::move(outer))));
  });
}

TEST(WebSocketChannel, StandsOnTlsOverSocketsAndCarriesTls) {
  test::run_coro([]() -> Task<> {
    auto outer = co_await net::secured(co_await net::socket_pair());
    co_await expect_long_texts_pass(co_await net::secured(in_websocket(std::move(outer))));
  });
}

}  // namespace
}  // namespace gitops::http
