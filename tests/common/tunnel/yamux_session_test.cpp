#include "common/tunnel/yamux_session.hpp"

#include <gmock/gmock.h>

#include "common/tunnel/bytes.hpp"

namespace gitops::tunnel::yamux {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using Event = Session::Step::Event;

std::string frame(FrameHead head, std::string_view payload = {}) {
  std::string out;
  append_frame_head(out, head);
  return out.append(payload);
}
std::string data(StreamId stream, std::string_view payload, std::uint16_t flags = 0) {
  return frame({.type = FrameType::data,
                .flags = flags,
                .stream = stream,
                .length = static_cast<std::uint32_t>(payload.size())},
               payload);
}
std::string update(StreamId stream, std::uint16_t flags, std::uint32_t length = 0) {
  return frame(
      {.type = FrameType::window_update, .flags = flags, .stream = stream, .length = length});
}
std::string ping(std::uint16_t flags, std::uint32_t id) {
  return frame({.type = FrameType::ping, .flags = flags, .length = id});
}
std::string go_away(std::uint32_t reason) {
  return frame({.type = FrameType::go_away, .length = reason});
}

// A session at a time that the test moves, and what it says.
class Fixture {
 public:
  explicit Fixture(SessionOptions options = {}) : session(options, now) {}

  // Receives `bytes` in pieces of `piece`; describes the events: "opened 2, data 2 abc, ended 2".
  // Data of one frame is joined.
  std::string receive(std::string_view bytes, std::size_t piece = 1'000'000) {
    std::string out;
    std::string last;
    while (!bytes.empty()) {
      auto part = bytes.substr(0, piece);
      bytes.remove_prefix(part.size());
      while (true) {
        const auto step = session.receive(part, now);
        if (step.event == Event::more) break;
        const auto id = " " + std::to_string(step.stream);
        if (step.event == Event::data && last == "data" + id) {
          out += step.data;
          continue;
        }
        last = name_of(step.event) + (step.event == Event::draining ? "" : id);
        out += (out.empty() ? "" : ", ") + last;
        if (step.event == Event::data) out.append(" ").append(step.data);
      }
      EXPECT_TRUE(part.empty());
    }
    return out;
  }
  // All that there is to send.
  std::string output() {
    std::string all;
    while (!session.output().empty()) {
      all += session.output();
      session.sent(session.output().size());
    }
    return all;
  }
  std::string failure() {
    return session.failure() ? std::string(to_string(session.failure()->code)) : "none";
  }
  void advance(Clock::duration duration) {
    now += duration;
    session.tick(now);
  }
  // A stream that the peer has accepted.
  StreamId open() {
    const auto id = session.open(now);
    EXPECT_TRUE(id);
    receive(update(id.value_or(0), kAck));
    output();
    return id.value_or(0);
  }

  Clock::time_point now{};
  Session session;

 private:
  static std::string name_of(Event event) {
    switch (event) {
      case Event::opened:
        return "opened";
      case Event::data:
        return "data";
      case Event::ended:
        return "ended";
      case Event::reset:
        return "reset";
      case Event::draining:
        return "leaving";
      case Event::more:
        break;
    }
    return "more";
  }
};

constexpr SessionOptions kServer{.role = Role::server};
constexpr SessionOptions kLarge{.receive_window = 6 * 1024 * 1024};

TEST(YamuxFrame, AgreesWithRealPeers) {
  EXPECT_EQ(hex_encode(update(1, kSyn)), "000100010000000100000000");
  EXPECT_EQ(hex_encode(update(1, kSyn, 0x5c0000)), "0001000100000001005c0000");
  EXPECT_EQ(hex_encode(update(1, kAck, 0x5c0000)), "0001000200000001005c0000");
  EXPECT_EQ(hex_encode(frame({.type = FrameType::data, .stream = 1, .length = 146})),
            "000000000000000100000092");
  EXPECT_EQ(hex_encode(update(3, 0, 131'072)), "000100000000000300020000");
  EXPECT_EQ(hex_encode(update(3, kFin)), "000100040000000300000000");
  EXPECT_EQ(hex_encode(update(3, kRst)), "000100080000000300000000");
  EXPECT_EQ(hex_encode(ping(kSyn, 7)), "000200010000000000000007");
  EXPECT_EQ(hex_encode(ping(kAck, 7)), "000200020000000000000007");
  EXPECT_EQ(hex_encode(go_away(kNormal)), "000300000000000000000000");
  EXPECT_EQ(hex_encode(go_away(kProtocolError)), "000300000000000000000001");
}

TEST(YamuxFrame, IsReadAsItWasWritten) {
  const FrameHead head{.type = FrameType::window_update,
                       .flags = kFin | kAck,
                       .stream = 0xfedcba98,
                       .length = 0x01020304};
  const auto bytes = frame(head);
  const auto read = read_frame_head(std::span<const char, FrameHead::kSize>(bytes));
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, head);
}

// -- opening --

TEST(YamuxSession, OpensStreamsWithOddIdsAsTheClient) {
  Fixture bed;
  EXPECT_EQ(bed.session.open(bed.now), 1u);
  EXPECT_EQ(bed.session.open(bed.now), 3u);
  EXPECT_EQ(bed.output(), update(1, kSyn) + update(3, kSyn));
  Fixture server(kServer);
  EXPECT_EQ(server.session.open(server.now), 2u);
}

TEST(YamuxSession, TellsTheWindowWhenAStreamBegins) {
  Fixture opener(kLarge);
  opener.session.open(opener.now);
  EXPECT_EQ(opener.output(), update(1, kSyn, 0x5c0000));
  Fixture accepter(kLarge);
  EXPECT_EQ(accepter.receive(update(2, kSyn)), "opened 2");
  EXPECT_EQ(accepter.output(), update(2, kAck, 0x5c0000));
}

TEST(YamuxSession, DataMayFollowAtOnce) {
  Fixture bed;
  const auto id = *bed.session.open(bed.now);
  EXPECT_EQ(bed.session.write(id, "hello"), 5u);
  EXPECT_EQ(bed.output(), update(1, kSyn) + data(1, "hello"));
}

TEST(YamuxSession, AcceptsAStreamThatBeginsWithData) {
  Fixture bed(kServer);
  EXPECT_EQ(bed.receive(data(1, "hello", kSyn)), "opened 1, data 1 hello");
  EXPECT_EQ(bed.output(), update(1, kAck));
}

TEST(YamuxSession, ReadsFramesHoweverTheyAreSplit) {
  const std::string bytes = update(1, kSyn) + data(1, "one") + ping(kSyn, 7) + data(1, "") +
                            data(3, "x", kSyn | kFin) + update(1, kFin);
  for (const std::size_t piece : {1U, 2U, 5U, 12U, 13U, 100U}) {
    Fixture bed(kServer);
    EXPECT_EQ(bed.receive(bytes, piece),
              "opened 1, data 1 one, opened 3, data 3 x, ended 3, ended 1")
        << "in pieces of " << piece;
    EXPECT_EQ(bed.output(), ping(kAck, 7) + update(1, kAck) + update(3, kAck));
  }
}

TEST(YamuxSession, OpensAtMost256StreamsWithoutAnAck) {
  Fixture bed;
  for (int i = 0; i < 256; ++i) ASSERT_TRUE(bed.session.open(bed.now));
  EXPECT_FALSE(bed.session.open(bed.now));
  bed.receive(update(1, kAck));
  EXPECT_TRUE(bed.session.open(bed.now));
  EXPECT_FALSE(bed.session.open(bed.now));
  bed.receive(update(3, kRst));
  EXPECT_TRUE(bed.session.open(bed.now));
}

TEST(YamuxSession, ResetsStreamsBeyondTheLimit) {
  Fixture bed({.role = Role::server, .max_streams = 1});
  EXPECT_EQ(bed.receive(update(1, kSyn) + data(3, "abc", kSyn) + data(3, "def") + data(1, "x")),
            "opened 1, data 1 x");
  EXPECT_EQ(bed.output(), update(3, kRst) + update(1, kAck));
  EXPECT_FALSE(bed.session.open(bed.now));
}

// -- windows --

TEST(YamuxSession, SendsNoMoreThanTheWindow) {
  Fixture bed;
  const auto id = bed.open();
  const std::string block(kMaxQueue, 'x');
  std::size_t taken = 0;
  std::size_t sent = 0;
  while (const auto size = bed.session.write(id, block)) {
    taken += size;
    sent += bed.output().size();
  }
  const auto frames = kInitialWindow / kMaxPayload;
  EXPECT_EQ(sent, kInitialWindow + frames * FrameHead::kSize);
  EXPECT_EQ(taken, kInitialWindow + kMaxQueue);
  EXPECT_THAT(bed.session.take_writable(), testing::Each(id));
  bed.receive(update(id, 0, 100));
  EXPECT_EQ(bed.output(), data(id, std::string(100, 'x')));
  EXPECT_THAT(bed.session.take_writable(), ElementsAre(id));
  EXPECT_EQ(bed.session.write(id, block), 100u);
}

TEST(YamuxSession, GivesCreditWhenHalfOfTheWindowWasReleased) {
  Fixture bed(kServer);
  bed.receive(update(1, kSyn));
  bed.output();
  const std::string half(kInitialWindow / 2, 'x');
  bed.receive(data(1, half));
  bed.session.release(1, half.size() - 1);
  EXPECT_EQ(bed.output(), "");
  bed.session.release(1, 1);
  EXPECT_EQ(bed.output(), update(1, 0, kInitialWindow / 2));
}

TEST(YamuxSession, ReleasesNoMoreThanWasReceived) {
  Fixture bed(kServer);
  bed.receive(update(1, kSyn) + data(1, "abc"));
  bed.session.release(1, 1'000'000);
  bed.output();
  bed.receive(data(1, std::string(kInitialWindow, 'x')));
  EXPECT_EQ(bed.failure(), "none");
  bed.receive(data(1, "x"));
  EXPECT_EQ(bed.failure(), "protocol");
}

TEST(YamuxSession, AcceptsTheWholeWindowAndNotOneByteMore) {
  for (const auto& options :
       {kServer, SessionOptions{.role = Role::server, .receive_window = kLarge.receive_window}}) {
    Fixture bed(options);
    bed.receive(update(1, kSyn));
    bed.receive(data(1, std::string(options.receive_window, 'x')));
    EXPECT_EQ(bed.failure(), "none");
    bed.output();
    bed.receive(data(1, "x"));
    EXPECT_EQ(bed.failure(), "protocol");
    EXPECT_EQ(bed.output(), go_away(kProtocolError));
  }
}

// AC-21: what one stream cannot send does not stand in the way of another.
TEST(YamuxSession, AC21_AStreamWithoutAWindowDoesNotStopOthers) {
  Fixture bed;
  const auto stalled = bed.open();
  const auto other = bed.open();
  while (bed.session.write(stalled, std::string(kMaxQueue, 'x')) > 0) bed.output();
  EXPECT_EQ(bed.session.write(other, "hello"), 5u);
  EXPECT_EQ(bed.output(), data(other, "hello"));
}

TEST(YamuxSession, StreamsTakeTurns) {
  Fixture bed;
  const auto large = bed.open();
  const auto small = bed.open();
  bed.session.write(large, std::string(kMaxQueue, 'x'));
  bed.session.write(small, "hello");
  const std::string turn(kMaxPayload, 'x');
  EXPECT_EQ(bed.output(), data(large, turn) + data(small, "hello") + data(large, turn));
}

// How many bytes are sent before this text, on a path that takes little at a time.
std::size_t bytes_before(Session& session, std::string_view text) {
  std::string all;
  while (!all.contains(text)) {
    const auto output = session.output(8 * 1024);
    if (output.empty()) return std::string::npos;
    all += output;
    session.sent(output.size());
  }
  return all.find(text);
}

TEST(YamuxSession, AStreamWithLittleToSendIsNotBehindThoseWithMuch) {
  Fixture bed;
  std::vector<StreamId> large;
  for (int i = 0; i < 60; ++i) large.push_back(bed.open());
  const auto small = bed.open();
  const auto fill = [&] {
    for (const auto id : large) bed.session.write(id, std::string(kMaxQueue, 'x'));
  };
  // Each has had a turn.
  for (int i = 0; i < 100; ++i) {
    fill();
    bed.session.sent(bed.session.output(8 * 1024).size());
  }
  fill();
  bed.session.write(small, "hello");
  EXPECT_LE(bytes_before(bed.session, "hello"), 64U * 1024);
  // One that comes back at once is not before all others again: everybody has a turn in between.
  const auto left = [&] {
    std::size_t count = 0;
    for (const auto id : large) count += bed.session.write(id, "x") == 0 ? 1 : 0;
    return count;
  };
  std::size_t rounds = 0;
  while (left() > 0 && rounds < 1'000) {
    bed.session.write(small, "again");
    const auto size = bed.session.output(8 * 1024).size();
    bed.session.sent(size);
    ++rounds;
  }
  EXPECT_LT(rounds, 1'000U) << "those with much to send get their turns";
}

TEST(YamuxSession, NewStreamsDoNotHoldUpOldOnesForEver) {
  Fixture bed;
  const auto large = bed.open();
  bed.session.write(large, std::string(kMaxQueue, 'x'));
  bed.session.sent(bed.session.output(8 * 1024).size());
  std::vector<StreamId> small;
  for (int i = 0; i < 200; ++i) small.push_back(bed.open());
  bed.session.write(large, "the end");
  for (const auto id : small) bed.session.write(id, std::string(4 * 1024, 'y'));
  EXPECT_LT(bytes_before(bed.session, "the end"), 300U * 1024);
}

TEST(YamuxSession, PreparesLittleOutputForAConnectionThatTakesNone) {
  Fixture bed;
  std::vector<StreamId> streams;
  for (int i = 0; i < 100; ++i) streams.push_back(bed.open());
  for (const auto id : streams) {
    EXPECT_EQ(bed.session.write(id, std::string(2 * kMaxQueue, 'x')), kMaxQueue);
    EXPECT_LE(bed.session.output().size(), 64u * 1024);
  }
  const auto before = std::string(bed.session.output());
  bed.session.sent(1000);
  EXPECT_TRUE(bed.session.output().starts_with(std::string_view(before).substr(1000)));
}

// -- ending --

TEST(YamuxSession, EndsBehindWhatIsQueued) {
  Fixture bed;
  const auto id = bed.open();
  bed.session.write(id, "last words");
  bed.session.end(id);
  EXPECT_EQ(bed.session.write(id, "more"), 0u);
  EXPECT_EQ(bed.output(), data(id, "last words") + update(id, kFin));
  EXPECT_EQ(bed.receive(data(id, "still here")), "data 1 still here");
}

// A second FIN ends the whole session of a Go peer.
TEST(YamuxSession, SendsOneFinWhateverHappens) {
  Fixture bed;
  const auto id = bed.open();
  bed.session.end(id);
  bed.session.end(id);
  bed.session.close(id, bed.now);
  bed.session.end(id);
  EXPECT_EQ(bed.output(), update(id, kFin));
  EXPECT_EQ(bed.receive(update(id, kFin)), "");
  bed.session.end(id);
  bed.session.close(id, bed.now);
  bed.session.abort(id);
  EXPECT_EQ(bed.output(), "");
  EXPECT_EQ(bed.session.stream_count(), 0u);
}

TEST(YamuxSession, SendsNoFinBehindAReset) {
  Fixture bed;
  const auto id = bed.open();
  bed.session.abort(id);
  bed.session.close(id, bed.now);
  EXPECT_EQ(bed.output(), update(id, kRst));
  const auto other = bed.open();
  EXPECT_EQ(bed.receive(update(other, kRst)), "reset 3");
  bed.session.close(other, bed.now);
  EXPECT_EQ(bed.output(), "");
  EXPECT_EQ(bed.session.stream_count(), 0u);
}

TEST(YamuxSession, AClosedStreamIsResetWhenThePeerGoesOn) {
  Fixture bed;
  const auto id = bed.open();
  bed.session.close(id, bed.now);
  EXPECT_EQ(bed.output(), update(id, kFin));
  EXPECT_EQ(bed.receive(data(id, "more") + data(id, "and more")), "");
  EXPECT_EQ(bed.output(), update(id, kRst));
  EXPECT_EQ(bed.session.stream_count(), 0u);
}

TEST(YamuxSession, AClosedStreamIsResetWhenThePeerNeverEndsIt) {
  Fixture bed;
  const auto id = bed.open();
  bed.session.close(id, bed.now);
  bed.output();
  for (int i = 0; i < 29; ++i) {
    bed.advance(seconds(1));
    bed.receive(ping(kAck, 0));
  }
  EXPECT_EQ(bed.output(), "");
  bed.advance(seconds(2));
  EXPECT_EQ(bed.output(), update(id, kRst));
  EXPECT_EQ(bed.session.stream_count(), 0u);
}

TEST(YamuxSession, ForgetsAStreamThatWasNeverAnnounced) {
  Fixture bed;
  const auto id = *bed.session.open(bed.now);
  bed.session.abort(id);
  EXPECT_EQ(bed.output(), "");
  EXPECT_EQ(bed.session.stream_count(), 0u);
}

TEST(YamuxSession, IgnoresLateFrames) {
  Fixture bed;
  const auto id = bed.open();
  bed.session.abort(id);
  bed.output();
  EXPECT_EQ(bed.receive(data(id, "late") + update(id, 0, 5) + update(id, kFin) + update(id, kRst) +
                        data(99, "never known")),
            "");
  EXPECT_EQ(bed.failure(), "none");
  EXPECT_EQ(bed.output(), "");
}

// One thread of a Go peer can close a stream while another one writes to it.
TEST(YamuxSession, DropsDataBehindTheEnd) {
  Fixture bed;
  const auto id = bed.open();
  EXPECT_EQ(bed.receive(update(id, kFin) + data(id, "late") + update(id, kFin)), "ended 1");
  EXPECT_EQ(bed.failure(), "none");
}

// -- what ends a session --

TEST(YamuxSession, EndsWithAPeerThatBreaksTheProtocol) {
  const struct {
    std::string bytes;
    std::string why;
  } cases[] = {
      {from_hex("010000000000000100000000"), "version"},
      {from_hex("000400000000000100000000"), "type"},
      {update(1, kSyn) + update(1, kSyn), "a stream that is open"},
      {update(2, kSyn), "an id of this side"},
      {data(0, "x"), "no stream"},
      {update(1, kSyn) + update(1, 0, 0xffff'ffff), "overflow"},
  };
  for (const auto& [bytes, why] : cases) {
    Fixture bed(kServer);
    bed.receive(bytes);
    EXPECT_EQ(bed.failure(), "protocol") << why;
    EXPECT_THAT(bed.output(), testing::EndsWith(go_away(kProtocolError))) << why;
    EXPECT_EQ(bed.receive(update(3, kSyn)), "");
    EXPECT_FALSE(bed.session.open(bed.now));
    EXPECT_EQ(bed.session.due(), kNever);
  }
}

TEST(YamuxSession, EndsWhenThePeerSaysSo) {
  for (const auto reason : {kProtocolError, kInternalError}) {
    Fixture bed;
    bed.receive(go_away(reason));
    EXPECT_EQ(bed.failure(), "unavailable");
  }
}

// AC-15: a peer that reads nothing cannot make us hold answers without end.
TEST(YamuxSession, AC15_BoundsTheAnswersToAPeerThatTakesNone) {
  Fixture pings;
  for (std::uint32_t i = 0; i < 16; ++i) pings.receive(ping(kSyn, i));
  EXPECT_EQ(pings.failure(), "none");
  pings.receive(ping(kSyn, 16));
  EXPECT_EQ(pings.failure(), "protocol");

  Fixture streams({.role = Role::server, .max_streams = 0});
  for (StreamId i = 0; i < 1024; ++i) streams.receive(update(2 * i + 1, kSyn));
  EXPECT_EQ(streams.failure(), "none");
  streams.receive(update(4001, kSyn));
  EXPECT_EQ(streams.failure(), "protocol");
}

// -- leaving --

TEST(YamuxSession, OpensNoStreamWhenThePeerLeaves) {
  Fixture bed;
  const auto id = bed.open();
  EXPECT_EQ(bed.receive(go_away(kNormal) + go_away(kNormal) + data(id, "on")),
            "leaving, data 1 on");
  EXPECT_FALSE(bed.session.open(bed.now));
  EXPECT_EQ(bed.session.write(id, "on"), 2u);
}

TEST(YamuxSession, AcceptsNoStreamWhenItLeaves) {
  Fixture bed(kServer);
  EXPECT_EQ(bed.receive(update(1, kSyn)), "opened 1");
  bed.session.drain();
  bed.session.drain();
  EXPECT_EQ(bed.receive(update(3, kSyn)), "");
  EXPECT_EQ(bed.output(), go_away(kNormal) + update(3, kRst) + update(1, kAck));
}

// -- signs of life --

TEST(YamuxSession, PingsASilentPeerAndGivesItUp) {
  Fixture bed;
  EXPECT_EQ(bed.session.due(), bed.now + seconds(9));
  bed.advance(seconds(8));
  EXPECT_EQ(bed.output(), "");
  bed.advance(seconds(1));
  EXPECT_EQ(bed.output(), ping(kSyn, 1));
  EXPECT_EQ(bed.session.due(), bed.now + seconds(5));
  bed.advance(seconds(5));
  EXPECT_EQ(bed.failure(), "timeout");
}

TEST(YamuxSession, AsksAPeerThatWasSentSomethingAndSaysNothing) {
  Fixture bed({.answer_timeout = std::chrono::milliseconds(250)});
  const auto id = bed.open();
  EXPECT_GE(bed.session.due(), bed.now + seconds(9)) << "nothing was sent";
  bed.session.write(id, "request");
  EXPECT_EQ(bed.output(), data(id, "request"));
  EXPECT_LE(bed.session.due(), bed.now) << "to take the time";
  bed.advance({});
  EXPECT_EQ(bed.session.due(), bed.now + std::chrono::milliseconds(250));
  bed.advance(std::chrono::milliseconds(249));
  EXPECT_EQ(bed.output(), "");
  bed.advance(std::chrono::milliseconds(1));
  EXPECT_EQ(bed.output(), ping(kSyn, 1));
  EXPECT_EQ(bed.session.due(), bed.now + seconds(5));
  bed.receive(ping(kAck, 1));
  EXPECT_GE(bed.session.due(), bed.now + seconds(9)) << "the answer may take its time";
  bed.session.write(id, "another");
  bed.output();
  bed.advance({});
  bed.advance(std::chrono::milliseconds(250));
  bed.advance(seconds(5));
  EXPECT_EQ(bed.failure(), "timeout");
}

TEST(YamuxSession, IsWornOutWhenThreeQuartersOfItsIdsAreUsedUp) {
  Fixture bed({.first_stream = Session::kWornOut - 3});
  EXPECT_FALSE(bed.session.is_worn_out());
  EXPECT_EQ(bed.open(), Session::kWornOut - 3);
  EXPECT_FALSE(bed.session.is_worn_out());
  EXPECT_EQ(bed.open(), Session::kWornOut - 1);
  EXPECT_TRUE(bed.session.is_worn_out());
  EXPECT_EQ(bed.open(), Session::kWornOut + 1) << "it goes on meanwhile";
}

TEST(YamuxSession, TakesAnyByteAsASignOfLife) {
  Fixture bed;
  bed.advance(seconds(9));
  bed.receive(std::string(1, '\0'));  // the first byte of a head
  bed.advance(seconds(8));
  EXPECT_EQ(bed.failure(), "none");
  EXPECT_EQ(bed.output(), ping(kSyn, 1));
  bed.advance(seconds(1));
  EXPECT_EQ(bed.output(), ping(kSyn, 2));
}

TEST(YamuxSession, GivesUpAPeerThatLeavesAStreamWithoutAnAck) {
  Fixture bed;
  bed.session.open(bed.now);
  for (int i = 0; i < 74; ++i) {
    bed.advance(seconds(1));
    bed.receive(ping(kAck, 0));
    ASSERT_EQ(bed.failure(), "none");
  }
  bed.advance(seconds(1));
  EXPECT_EQ(bed.failure(), "timeout");
}

}  // namespace
}  // namespace gitops::tunnel::yamux
