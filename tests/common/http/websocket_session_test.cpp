#include "common/http/websocket_session.hpp"

#include <gmock/gmock.h>

namespace gitops::http::websocket {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;

const Clock::time_point kStart{};

// Two ends and the bytes between them, without a connection.
struct Ends {
  explicit Ends(SessionOptions options = {})
      : server(
            with(options, Role::server), [] { return MaskKey{}; }, kStart),
        client(with(options, Role::client), [] { return MaskKey{'a', 'b', 'c', 'd'}; }, kStart) {}

  static SessionOptions with(SessionOptions options, Role role) {
    options.role = role;
    return options;
  }

  // Transfers bytes both ways until neither end has output.
  void carry() {
    while (!server.output().empty() || !client.output().empty()) {
      deliver(client, server, at_server, from_client);
      deliver(server, client, at_client, from_server);
    }
  }
  void deliver(Session& from, Session& to, std::deque<Message>& messages, std::string& pending) {
    pending += std::exchange(from.output(), {});
    pending.erase(0, to.receive(pending, now, messages));
  }

  Clock::time_point now = kStart;
  Session server;
  Session client;
  std::deque<Message> at_server;
  std::deque<Message> at_client;
  std::string from_client;
  std::string from_server;
};

TEST(WebSocketSession, CarriesMessagesBothWays) {
  Ends ends;
  ends.client.send(Opcode::text, "question");
  ends.server.send(Opcode::binary, std::string("\xff\x00", 2));
  ends.server.send(Opcode::text, "");
  ends.carry();
  EXPECT_THAT(ends.at_server, ElementsAre(Message{.is_text = true, .data = "question"}));
  EXPECT_THAT(ends.at_client, ElementsAre(Message{.is_text = false, .data = {"\xff\x00", 2}},
                                          Message{.is_text = true, .data = ""}));
  EXPECT_TRUE(ends.server.is_open());
}

TEST(WebSocketSession, PutsFragmentsTogether) {
  Ends ends;
  std::string bytes;
  append_frame(bytes, Opcode::text, "a", MaskKey{}, false);
  append_frame(bytes, Opcode::ping, "?", MaskKey{});
  append_frame(bytes, Opcode::continuation, "b", MaskKey{});
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    ends.from_client += bytes[i];
    ends.from_client.erase(0, ends.server.receive(ends.from_client, kStart, ends.at_server));
  }
  EXPECT_THAT(ends.at_server, ElementsAre(Message{.data = "ab"}));
  std::string pong;
  append_frame(pong, Opcode::pong, "?", std::nullopt);
  EXPECT_EQ(ends.server.output(), pong);
}

TEST(WebSocketSession, ClosesWithAHandshake) {
  Ends ends;
  ends.client.send(Opcode::text, "last words");
  ends.client.close(4001, "enough", kStart);
  EXPECT_FALSE(ends.client.is_open());
  EXPECT_FALSE(ends.client.ending());
  ends.client.send(Opcode::text, "too late");
  ends.carry();
  EXPECT_THAT(ends.at_server, ElementsAre(Message{.data = "last words"}));
  EXPECT_THAT(ends.server.ending(), Optional(Ending{.code = 4001, .reason = "enough"}));
  EXPECT_THAT(ends.client.ending(), Optional(Ending{.code = 4001, .reason = ""}));
}

TEST(WebSocketSession, BothMayCloseAtOnce) {
  Ends ends;
  ends.client.close(kCloseNormal, "c", kStart);
  ends.server.close(kCloseGoingAway, "s", kStart);
  ends.carry();
  EXPECT_THAT(ends.server.ending(), Optional(Ending{.code = kCloseNormal, .reason = "c"}));
  EXPECT_THAT(ends.client.ending(), Optional(Ending{.code = kCloseGoingAway, .reason = "s"}));
}

TEST(WebSocketSession, StillReadsWhileItWaitsForTheCloseOfThePeer) {
  Ends ends;
  ends.client.send(Opcode::text, "on its way");
  ends.server.close(kCloseGoingAway, "restart", kStart);
  ends.carry();
  EXPECT_THAT(ends.at_server, ElementsAre(Message{.data = "on its way"}));
}

TEST(WebSocketSession, ACloseFrameWithoutACodeIsAnsweredWithoutOne) {
  Ends ends;
  ends.client.close(kCloseNoCode, "", kStart);
  ends.deliver(ends.client, ends.server, ends.at_server, ends.from_client);
  EXPECT_EQ(ends.server.output(), std::string("\x88\x00", 2));
  EXPECT_THAT(ends.server.ending(), Optional(Ending{.code = kCloseNoCode}));
}

TEST(WebSocketSession, TellsThePeerWhatItDidWrong) {
  const auto code_after = [](const std::string& bytes) {
    Ends ends({.max_message = 10});
    std::string text = bytes;
    EXPECT_EQ(ends.server.receive(text, kStart, ends.at_server), bytes.size());
    EXPECT_TRUE(ends.server.ending());
    ends.carry();
    EXPECT_TRUE(ends.client.ending());
    return ends.client.ending() ? ends.client.ending()->code : 0;
  };
  std::string unmasked;
  append_frame(unmasked, Opcode::text, "x", std::nullopt);
  EXPECT_EQ(code_after(unmasked), kCloseProtocolError);
  std::string large;
  append_frame(large, Opcode::binary, "01234567890", MaskKey{});
  EXPECT_EQ(code_after(large), kCloseTooBig);
  std::string wrong_text;
  append_frame(wrong_text, Opcode::text, "\xff", MaskKey{});
  EXPECT_EQ(code_after(wrong_text), kCloseInvalidPayload);
}

TEST(WebSocketSession, PingsAPeerThatIsSilent) {
  Ends ends({.ping_interval = seconds(30), .ping_timeout = seconds(10)});
  EXPECT_EQ(ends.server.due(), kStart + seconds(30));
  ends.server.tick(kStart + seconds(29));
  EXPECT_THAT(ends.server.output(), IsEmpty());
  ends.now = kStart + seconds(30);
  ends.server.tick(ends.now);
  EXPECT_EQ(ends.server.due(), kStart + seconds(40));
  ends.now = kStart + seconds(35);
  ends.carry();
  EXPECT_EQ(ends.server.due(), kStart + seconds(65));
  EXPECT_THAT(ends.at_client, IsEmpty());
  ends.server.tick(kStart + seconds(65));
  ends.server.tick(kStart + seconds(75));
  EXPECT_EQ(ends.server.ending()->code, kCloseAbnormal);
}

TEST(WebSocketSession, WaitsForTheEndNoLongerThanAllowed) {
  Ends ends({.close_timeout = seconds(5)});
  ends.server.close(kCloseNormal, "", kStart + seconds(1));
  EXPECT_EQ(ends.server.due(), kStart + seconds(6));
  ends.server.tick(kStart + seconds(6) - milliseconds(1));
  EXPECT_FALSE(ends.server.ending());
  ends.server.tick(kStart + seconds(6));
  EXPECT_EQ(ends.server.ending()->code, kCloseAbnormal);
}

TEST(WebSocketSession, NothingIsSentOnALostConnection) {
  Ends ends;
  ends.server.send(Opcode::text, "x");
  ends.server.lose("reset");
  EXPECT_THAT(ends.server.output(), IsEmpty());
  EXPECT_THAT(ends.server.ending(), Optional(Ending{.code = kCloseAbnormal, .reason = "reset"}));
  ends.server.send(Opcode::text, "x");
  ends.server.close(kCloseNormal, "", kStart);
  EXPECT_THAT(ends.server.output(), IsEmpty());
}

}  // namespace
}  // namespace gitops::http::websocket
