#include "common/graphql/socket_session.hpp"

#include <gmock/gmock.h>

namespace gitops::graphql {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using Kind = SocketAction::Kind;
using Close = SocketSession::Close;

const Clock::time_point kStart{};

struct Fixture {
  explicit Fixture(SocketProtocol protocol, SocketSessionOptions options = {})
      : session(protocol, options, kStart) {}

  std::vector<SocketAction> say(std::string_view text) { return session.receive(text, kStart); }
  std::vector<std::string> heard() { return std::exchange(session.output(), {}); }
  // A session that is open.
  Fixture& opened() {
    say(R"({"type":"connection_init"})");
    session.accept(kStart);
    heard();
    return *this;
  }
  SocketSession session;
};

TEST(GraphqlSocketSession, TransportRunsOperations) {
  Fixture fixture(SocketProtocol::transport);
  EXPECT_THAT(fixture.say(R"({"type":"connection_init","payload":{"token": "t"}})"),
              ElementsAre(SocketAction{Kind::open, "", R"({"token":"t"})"}));
  EXPECT_THAT(fixture.heard(), IsEmpty());
  fixture.session.accept(kStart);
  EXPECT_THAT(fixture.heard(), ElementsAre(R"({"type":"connection_ack"})"));

  EXPECT_THAT(fixture.say(R"({"id":"1","type":"subscribe","payload":{"query":"{ a }"}})"),
              ElementsAre(SocketAction{Kind::start, "1", R"({"query":"{ a }"})"}));
  fixture.session.next("1", R"({"data":{"a":1}})");
  fixture.session.complete("1");
  fixture.session.next("1", "late");
  EXPECT_THAT(fixture.heard(), ElementsAre(R"({"type":"next","id":"1","payload":{"data":{"a":1}}})",
                                           R"({"type":"complete","id":"1"})"));

  fixture.say(R"({"id":"2","type":"subscribe","payload":{"query":"x"}})");
  fixture.session.fail("2", {{"no"}});
  EXPECT_THAT(fixture.heard(),
              ElementsAre(R"({"type":"error","id":"2","payload":[{"message":"no"}]})"));

  fixture.say(R"({"id":"3","type":"subscribe","payload":{"query":"x"}})");
  EXPECT_THAT(fixture.say(R"({"id":"3","type":"complete"})"),
              ElementsAre(SocketAction{Kind::stop, "3", ""}));
  fixture.session.complete("3");
  EXPECT_THAT(fixture.heard(), IsEmpty());
  EXPECT_EQ(fixture.session.operations(), 0u);
  fixture.say(R"({"type":"ping","payload":{"n":1}})");
  fixture.say(R"({"type":"pong"})");
  EXPECT_THAT(fixture.heard(), ElementsAre(R"({"type":"pong","payload":{"n":1}})"));
  EXPECT_FALSE(fixture.session.closing());
}

TEST(GraphqlSocketSession, TransportClosesWithTheCodesOfTheProtocol) {
  const auto code = [](auto&& act, bool is_open = true) {
    Fixture fixture(SocketProtocol::transport, {.max_id = 5});
    if (is_open) fixture.opened();
    act(fixture);
    return fixture.session.closing().value_or(Close{0, ""});
  };
  EXPECT_EQ(code([](Fixture& s) { s.say("nonsense"); }).code, 4400);
  EXPECT_EQ(code([](Fixture& s) { s.say("[]"); }).code, 4400);
  EXPECT_EQ(code([](Fixture& s) { s.say(R"({"type":"hello"})"); }).code, 4400);
  EXPECT_EQ(code([](Fixture& s) { s.say(R"({"type":"subscribe","id":"1"})"); }).code, 4400);
  EXPECT_EQ(code([](Fixture& s) { s.say(R"({"type":"subscribe","payload":{}})"); }).code, 4400);
  EXPECT_EQ(
      code([](Fixture& s) { s.say(R"({"type":"subscribe","id":"123456","payload":{}})"); }).code,
      4400);
  EXPECT_EQ(code([](Fixture& s) { s.session.receive_binary(); }).code, 4400);
  EXPECT_EQ(code([](Fixture& s) { s.say(R"({"type":"connection_init"})"); }),
            (Close{4429, "Too many initialisation requests"}));
  EXPECT_EQ(code([](Fixture& s) { s.say(R"({"type":"subscribe","id":"1","payload":{}})"); }, false),
            (Close{4401, "Unauthorized"}));
  EXPECT_EQ(code([](Fixture& s) {
              s.say(R"({"type":"subscribe","id":"1","payload":{}})");
              s.say(R"({"type":"subscribe","id":"1","payload":{}})");
            }),
            (Close{4409, "Subscriber for 1 already exists"}));
  EXPECT_EQ(code([](Fixture& s) { s.session.tick(kStart + seconds(10)); }, false),
            (Close{4408, "Connection initialisation timeout"}));
  EXPECT_EQ(code(
                [](Fixture& s) {
                  s.say(R"({"type":"connection_init"})");
                  s.session.refuse("bad token");
                },
                false),
            (Close{4403, "bad token"}));
}

TEST(GraphqlSocketSession, LegacyRunsOperations) {
  Fixture fixture(SocketProtocol::legacy);
  EXPECT_THAT(fixture.say(R"({"type":"connection_init","payload":{}})"),
              ElementsAre(SocketAction{Kind::open, "", "{}"}));
  fixture.session.accept(kStart);
  EXPECT_THAT(fixture.heard(), ElementsAre(R"({"type":"connection_ack"})", R"({"type":"ka"})"));
  fixture.say(R"({"id":"1","type":"start","payload":{"query":"{ a }"}})");
  fixture.session.next("1", R"({"data":1})");
  fixture.session.complete("1");
  EXPECT_THAT(fixture.heard(), ElementsAre(R"({"type":"data","id":"1","payload":{"data":1}})",
                                           R"({"type":"complete","id":"1"})"));
  fixture.say(R"({"id":"2","type":"start","payload":{"query":"x"}})");
  fixture.session.fail("2", {{"no"}});
  EXPECT_THAT(fixture.heard(),
              ElementsAre(R"({"type":"data","id":"2","payload":{"errors":[{"message":"no"}]}})",
                          R"({"type":"complete","id":"2"})"));
  fixture.say(R"({"id":"3","type":"start","payload":{"query":"x"}})");
  EXPECT_THAT(fixture.say(R"({"id":"3","type":"start","payload":{"query":"y"}})"),
              ElementsAre(SocketAction{Kind::stop, "3", ""},
                          SocketAction{Kind::start, "3", R"({"query":"y"})"}));
  EXPECT_THAT(fixture.say(R"({"id":"3","type":"stop"})"),
              ElementsAre(SocketAction{Kind::stop, "3", ""}));
  fixture.heard();
  fixture.session.tick(kStart + seconds(25));
  EXPECT_THAT(fixture.heard(), ElementsAre(R"({"type":"ka"})"));
  fixture.say(R"({"type":"connection_terminate"})");
  EXPECT_EQ(fixture.session.closing(), (Close{1000, ""}));
}

// subscriptions-transport-ws sends its operations right behind connection_init.
TEST(GraphqlSocketSession, LegacyClientsDoNotWaitForTheAcknowledgement) {
  const auto start = [](const std::string& id) {
    return R"({"type":"start","id":")" + id + R"(","payload":{"query":"{a}"}})";
  };
  SocketSession session(SocketProtocol::legacy, {}, kStart);
  EXPECT_EQ(session.receive(R"({"type":"connection_init"})", kStart).size(), 1U);
  for (const char* id : {"1", "2", "3"}) EXPECT_TRUE(session.receive(start(id), kStart).empty());
  // One of them is taken back: nothing of it is left to stop.
  EXPECT_TRUE(session.receive(R"({"type":"stop","id":"2"})", kStart).empty());
  EXPECT_EQ(session.operations(), 2U);
  const auto begun = session.accept(kStart);
  ASSERT_EQ(begun.size(), 2U);
  EXPECT_EQ(begun[0], (SocketAction{Kind::start, "1", R"({"query":"{a}"})"}));
  EXPECT_EQ(begun[1].id, "3");
  EXPECT_EQ(session.closing(), std::nullopt);

  // So much and no more, as nobody knows yet who it is.
  SocketSession full(SocketProtocol::legacy, {.max_waiting = 30}, kStart);
  (void)full.receive(R"({"type":"connection_init"})", kStart);
  for (const char* id : {"1", "2"}) (void)full.receive(start(id), kStart);
  EXPECT_EQ(full.closing(), std::nullopt);
  (void)full.receive(start("3"), kStart);
  ASSERT_TRUE(full.closing());

  // The other protocol has clients wait.
  SocketSession transport(SocketProtocol::transport, {}, kStart);
  (void)transport.receive(R"({"type":"connection_init"})", kStart);
  (void)transport.receive(R"({"type":"subscribe","id":"1","payload":{"query":"{a}"}})", kStart);
  ASSERT_TRUE(transport.closing());
  EXPECT_EQ(transport.closing()->code, 4401);
}

TEST(GraphqlSocketSession, LegacyTellsWhyItRefuses) {
  Fixture fixture(SocketProtocol::legacy);
  fixture.say(R"({"type":"connection_init"})");
  fixture.session.refuse("bad token");
  EXPECT_THAT(fixture.heard(),
              ElementsAre(R"({"type":"connection_error","payload":{"message":"bad token"}})"));
  EXPECT_EQ(fixture.session.closing()->code, 4403);
}

TEST(GraphqlSocketSession, BoundsOperations) {
  Fixture fixture(SocketProtocol::transport, {.max_operations = 1});
  fixture.opened();
  EXPECT_EQ(fixture.say(R"({"type":"subscribe","id":"1","payload":{}})").size(), 1u);
  EXPECT_THAT(fixture.say(R"({"type":"subscribe","id":"2","payload":{}})"), IsEmpty());
  EXPECT_THAT(fixture.heard(), ElementsAre(testing::HasSubstr("TOO_MANY_OPERATIONS")));
  EXPECT_EQ(fixture.session.operations(), 1u);
}

}  // namespace
}  // namespace gitops::graphql
