#include <gmock/gmock.h>

#include "common/tunnel/authentication.hpp"
#include "common/tunnel/bytes.hpp"
#include "common/tunnel/client_control.hpp"
#include "common/tunnel/server_control.hpp"

namespace gitops::tunnel {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using What = ClientControl::Event::What;
using ServerWhat = ServerControl::Event::What;

const std::string kIv = from_hex("000102030405060708090a0b0c0d0e0f");
const Secret kToken("s3cret");

NewWorkConn work_of(std::string_view bytes) {
  return std::get<NewWorkConn>(MessageReader().next(bytes).value().value());
}

NewProxy proxy(std::string name) {
  return {.proxy_name = std::move(name), .proxy_type = "http", .subdomain = "sub"};
}

// A client and, once it has logged in, a server at a time that the test moves.
class Fixture {
 public:
  explicit Fixture(ClientControlOptions options = {.proxies = {proxy("a")}})
      : client(
            [&] {
              options.login.version = "1.0.0";
              options.login.pool_count = 2;
              options.token = kToken;
              return std::move(options);
            }(),
            {.iv = kIv, .seed = 1}, WallTime(seconds(1'700'000'000)), now) {}

  // The client's Login.
  Login login() {
    MessageReader reader;
    std::string_view bytes = client.output();
    auto message = reader.next(bytes);
    if (!message || !*message) return {};
    client.output().erase(0, client.output().size() - bytes.size());
    return std::get<Login>(**message);
  }
  // Accepts the login and passes on what follows it.
  void log_in(ServerControlOptions options = {}) {
    options.version = "0.44.0";
    options.token = kToken;
    server.emplace(options, login(), "0123456789abcdef", kIv);
    exchange();
  }
  // Passes bytes on until nobody has any.
  void exchange() {
    while (!client.output().empty() || !server->output().empty()) {
      auto to_server = std::exchange(client.output(), {});
      server->receive(to_server, server_events);
      to_client(std::exchange(server->output(), {}));
    }
  }
  void to_client(std::string bytes) { client.receive(bytes, now, events); }
  // The messages of a server that keeps to no protocol, in clear.
  void to_client_in_clear(const Message& message) {
    std::string bytes;
    EXPECT_TRUE(append_message(bytes, message));
    to_client(bytes);
  }
  void advance(Clock::duration duration) {
    now += duration;
    client.tick(now);
    if (server) exchange();
  }
  [[nodiscard]] std::string failure() const {
    if (!client.failure()) return "none";
    return std::string(to_string(client.failure()->code)) + ": " + client.failure()->message;
  }
  [[nodiscard]] std::vector<What> event_kinds() const {
    std::vector<What> kinds;
    for (const auto& event : events) kinds.push_back(event.what);
    return kinds;
  }

  Clock::time_point now{};
  ClientControl client;
  std::optional<ServerControl> server;
  std::vector<ClientControl::Event> events;
  std::vector<ServerControl::Event> server_events;
};

TEST(Control, LogsInAndRegistersItsProxies) {
  Fixture bed;
  bed.log_in();
  EXPECT_TRUE(bed.client.is_logged_in());
  EXPECT_EQ(bed.client.run_id(), "0123456789abcdef");
  EXPECT_EQ(bed.client.server_version(), "0.44.0");
  ASSERT_EQ(bed.server_events.size(), 1u);
  EXPECT_EQ(bed.server_events[0].what, ServerWhat::new_proxy);
  EXPECT_EQ(bed.server_events[0].proxy, proxy("a"));
  bed.server->accept_proxy("a", "sub.example.test");
  bed.exchange();
  EXPECT_THAT(bed.events,
              ElementsAre(ClientControl::Event{What::logged_in, "", "0123456789abcdef"},
                          ClientControl::Event{What::work_wanted, "", ""},
                          ClientControl::Event{What::work_wanted, "", ""},
                          ClientControl::Event{What::proxy_started, "a", "sub.example.test"}));
  EXPECT_EQ(bed.failure(), "none");
}

TEST(Control, LoginCarriesTheKeyOfTheToken) {
  Fixture bed;
  const auto login = bed.login();
  EXPECT_EQ(login.timestamp, 1'700'000'000);
  EXPECT_EQ(login.privilege_key.reveal(), "5d75c9c422f888a6fc13fe10cfd4b30e");
  EXPECT_TRUE(is_privilege_key(login.privilege_key, kToken, login.timestamp));
}

// The server's first encrypted bytes can come in the same read as LoginResp, or be split anywhere.
TEST(Control, SwitchesToTheCipherAtTheRightByte) {
  for (std::size_t piece = 1; piece < 120; piece += 7) {
    Fixture bed;
    bed.server.emplace(ServerControlOptions{.token = kToken}, bed.login(), "run", kIv);
    bed.server->want_work();
    const auto bytes = std::exchange(bed.server->output(), {});
    for (std::size_t at = 0; at < bytes.size(); at += piece) bed.to_client(bytes.substr(at, piece));
    EXPECT_THAT(bed.event_kinds(), ElementsAre(What::logged_in, What::work_wanted,
                                               What::work_wanted, What::work_wanted))
        << "in pieces of " << piece;
  }
}

TEST(Control, AWrongTokenEndsBothSides) {
  Fixture bed;
  bed.server.emplace(ServerControlOptions{.token = Secret("another")}, bed.login(), "run", kIv);
  bed.exchange();
  EXPECT_TRUE(bed.client.failure());
  // The proxies that it sent meanwhile are nonsense to the server.
  EXPECT_THAT(bed.server_events, IsEmpty());
}

TEST(Control, ARefusedLoginIsToldWithItsReason) {
  Fixture bed;
  std::string bytes;
  refuse_login(bytes, "0.44.0", "token in login doesn't match");
  bed.to_client(bytes);
  EXPECT_EQ(bed.failure(), "forbidden: the server refuses the login: token in login doesn't match");
  EXPECT_EQ(bed.client.due(), kNever);
}

TEST(Control, ALoginWithoutAnAnswerFails) {
  Fixture bed;
  bed.login();
  EXPECT_EQ(bed.client.due(), bed.now + seconds(10));
  bed.advance(seconds(9));
  EXPECT_EQ(bed.failure(), "none");
  bed.advance(seconds(1));
  EXPECT_EQ(bed.failure(), "timeout: the server does not answer the login");
}

TEST(Control, ARefusedProxyIsAskedForAgain) {
  Fixture bed;
  bed.log_in();
  bed.server->refuse_proxy("a", "proxy name is in use");
  bed.exchange();
  EXPECT_EQ(bed.events.back(),
            (ClientControl::Event{What::proxy_refused, "a", "proxy name is in use"}));
  EXPECT_EQ(bed.client.proxies()[0].state, ClientControl::Proxy::State::refused);
  EXPECT_EQ(bed.client.proxies()[0].text, "proxy name is in use");
  bed.advance(seconds(3));
  ASSERT_EQ(bed.server_events.size(), 2u);
  bed.server->accept_proxy("a", "");
  bed.exchange();
  EXPECT_EQ(bed.client.proxies()[0].state, ClientControl::Proxy::State::running);
  EXPECT_EQ(bed.failure(), "none");
}

TEST(Control, ARefusedProxyIsAskedForLessAndLess) {
  Fixture bed;
  bed.log_in();
  for (int i = 0; i < 20; ++i) {
    bed.server->refuse_proxy("a", "no");
    bed.exchange();
    const auto asked = bed.server_events.size();
    const auto wait = bed.client.proxies()[0].due - bed.now;
    EXPECT_GE(wait, seconds(1));
    EXPECT_LE(wait, seconds(34));
    bed.advance(wait - std::chrono::milliseconds(1));
    EXPECT_EQ(bed.server_events.size(), asked);
    bed.advance(std::chrono::milliseconds(1));
    EXPECT_EQ(bed.server_events.size(), asked + 1);
  }
}

TEST(Control, AProxyWithoutAnAnswerIsAskedForAgain) {
  Fixture bed;
  bed.log_in();
  bed.advance(seconds(20));
  // The server knows that it still owes an answer.
  EXPECT_EQ(bed.server_events.size(), 1u);
  bed.server->accept_proxy("a", "");
  bed.exchange();
  EXPECT_EQ(bed.client.proxies()[0].state, ClientControl::Proxy::State::running);
}

// AC-16: names belong to a session; whoever asks twice does not get two.
TEST(Control, AC16_AProxyThatIsRunningIsNotRegisteredTwice) {
  Fixture bed({.proxies = {proxy("a"), proxy("a")}});
  bed.log_in();
  ASSERT_EQ(bed.server_events.size(), 1u);
  bed.server->accept_proxy("a", "");
  bed.exchange();
  bed.advance(seconds(20));
  EXPECT_EQ(bed.server_events.size(), 1u);
}

// A history of damaged answers showed a server that refused for ever what it thought to be running.
TEST(Control, AnAnswerThatWasMissedIsGivenAgain) {
  ServerControl server({.token = kToken}, Login{}, "run", kIv);
  ControlEncryptor encryptor(control_key(kToken), kIv);
  const auto ask = [&](const NewProxy& request) {
    std::string bytes;
    EXPECT_TRUE(append_message(bytes, request));
    encryptor.encrypt(bytes, 0);
    std::vector<ServerControl::Event> events;
    server.receive(bytes, events);
    return events;
  };
  EXPECT_EQ(ask(proxy("a")).size(), 1u);
  server.accept_proxy("a", "here");
  const auto before = server.output().size();
  EXPECT_THAT(ask(proxy("a")), IsEmpty());
  EXPECT_GT(server.output().size(), before);

  auto another = proxy("a");
  another.locations = {"/api"};
  const auto events = ask(another);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].what, ServerWhat::proxy_closed);
  EXPECT_EQ(events[1].proxy, another);
}

TEST(Control, AServerTakesOnlySoManyProxies) {
  Fixture bed({.proxies = {proxy("a"), proxy("b"), proxy("c")}});
  bed.log_in({.max_proxies = 2});
  EXPECT_EQ(bed.server_events.size(), 2u);
  EXPECT_EQ(bed.client.proxies()[2].text, "too many proxies");
}

TEST(Control, AProxyThatNoServerCouldReadIsNotSent) {
  auto large = proxy("a");
  large.metas["Authorization"] = Secret(std::string(kMaxBody, 'x'));
  Fixture bed({.proxies = {large, proxy("b")}});
  bed.log_in();
  EXPECT_EQ(bed.server_events.size(), 1u);
  EXPECT_EQ(bed.client.proxies()[0].state, ClientControl::Proxy::State::unusable);
  EXPECT_THAT(bed.client.proxies()[0].text, HasSubstr("10240"));
  EXPECT_EQ(bed.failure(), "none");
}

TEST(Control, StopClosesTheProxies) {
  Fixture bed({.proxies = {proxy("a"), proxy("b")}});
  bed.log_in();
  bed.server->accept_proxy("a", "");
  bed.server->refuse_proxy("b", "no");
  bed.exchange();
  bed.server_events.clear();
  bed.client.stop(bed.now);
  bed.exchange();
  ASSERT_EQ(bed.server_events.size(), 1u);
  EXPECT_EQ(bed.server_events[0].what, ServerWhat::proxy_closed);
  EXPECT_EQ(bed.server_events[0].proxy.proxy_name, "a");
  bed.events.clear();
  bed.server->want_work();
  bed.advance(seconds(40));
  EXPECT_THAT(bed.events, IsEmpty());
  EXPECT_EQ(bed.server_events.size(), 1u);
}

// Another session can have the names from then on, not before.
TEST(Control, TellsWhenTheServerHasClosedTheProxies) {
  Fixture bed;
  bed.log_in();
  bed.advance(seconds(31));  // an earlier Pong proves nothing
  bed.client.tick(bed.now + seconds(31));
  bed.client.stop(bed.now + seconds(31));
  EXPECT_FALSE(bed.client.has_withdrawn());
  std::string pong;
  bed.server_events.clear();
  auto sent = std::exchange(bed.client.output(), {});
  bed.server->receive(sent, bed.server_events);
  pong = std::exchange(bed.server->output(), {});
  ASSERT_EQ(bed.server_events.size(), 1u);
  EXPECT_EQ(bed.server_events[0].what, ServerWhat::proxy_closed);
  const auto half = pong.size() / 2;
  bed.to_client(pong.substr(0, half));
  EXPECT_FALSE(bed.client.has_withdrawn());
  bed.to_client(pong.substr(half));
  EXPECT_TRUE(bed.client.has_withdrawn());
}

TEST(Control, HeldProxiesWaitForTheOffer) {
  Fixture bed({.proxies = {proxy("a")}, .hold_proxies = true});
  bed.log_in();
  bed.advance(seconds(60));
  EXPECT_THAT(bed.server_events, IsEmpty());
  bed.client.offer(bed.now);
  bed.client.offer(bed.now);
  bed.exchange();
  ASSERT_EQ(bed.server_events.size(), 1u);
  EXPECT_EQ(bed.server_events[0].proxy.proxy_name, "a");
}

TEST(Control, SignsPingsAndWorkStreamsWhenBothSidesAskForIt) {
  Fixture bed({.sign_pings = true, .sign_work = true});
  bed.log_in();
  const auto offer = work_of(bed.client.work_offer(bed.now + seconds(100)).value());
  EXPECT_EQ(offer.run_id, "0123456789abcdef");
  EXPECT_EQ(offer.timestamp, 1'700'000'100);
  EXPECT_TRUE(is_privilege_key(offer.privilege_key, kToken, offer.timestamp));
  bed.client.tick(bed.now + seconds(30));
  auto bytes = std::exchange(bed.client.output(), {});
  // With the IV in front, since no proxy was sent.
  ControlDecryptor decryptor(control_key(kToken));
  const auto plain = decryptor.decrypt(bytes);
  MessageReader reader;
  std::string_view input(plain.data(), plain.size());
  const auto message = reader.next(input);
  ASSERT_TRUE(message && *message);
  const auto ping = std::get<Ping>(**message);
  EXPECT_EQ(ping.timestamp, 1'700'000'030);
  EXPECT_TRUE(is_privilege_key(ping.privilege_key, kToken, ping.timestamp));
}

TEST(Control, OurServerTellsOfLinksAndServers) {
  Fixture bed;
  bed.to_client_in_clear(LoginResp{.run_id = "r", .links = 2, .servers = {"b.example.test:443"}});
  EXPECT_EQ(bed.client.links(), 2);
  EXPECT_THAT(bed.client.servers(), ElementsAre("b.example.test:443"));
  Fixture other;
  other.to_client_in_clear(LoginResp{.run_id = "r", .links = 1'000'000});
  EXPECT_EQ(other.client.links(), 8);
  EXPECT_THAT(other.client.servers(), IsEmpty());
  Fixture frp;
  frp.to_client_in_clear(LoginResp{.run_id = "r"});
  EXPECT_EQ(frp.client.links(), 1);
}

TEST(Control, StopBeforeTheLoginEndsTheSession) {
  Fixture bed;
  bed.client.stop(bed.now);
  EXPECT_EQ(bed.failure(), "unavailable: stopped before the login");
  EXPECT_EQ(bed.client.output(), "");
}

TEST(Control, PingsTheServer) {
  Fixture bed;
  bed.log_in();
  bed.server->accept_proxy("a", "");
  bed.exchange();
  for (int i = 0; i < 10; ++i) bed.advance(seconds(30));
  EXPECT_EQ(bed.failure(), "none");
  bed.server.reset();
  bed.advance(seconds(89));
  EXPECT_EQ(bed.failure(), "none");
  bed.advance(seconds(1));
  EXPECT_EQ(bed.failure(), "timeout: the server does not answer pings");
}

TEST(Control, APongWithAnErrorEndsTheSession) {
  Fixture bed;
  bed.log_in();
  ControlEncryptor encryptor(control_key(kToken), kIv);
  // The server's direction began with two requests for work.
  std::string bytes;
  for (const Message& message : {Message(ReqWorkConn{}), Message(ReqWorkConn{})}) {
    ASSERT_TRUE(append_message(bytes, message));
  }
  encryptor.encrypt(bytes, 0);
  std::string pong;
  ASSERT_TRUE(append_message(pong, Pong{.error = "who are you"}));
  encryptor.encrypt(pong, 0);
  bed.to_client(pong);
  EXPECT_EQ(bed.failure(), "forbidden: the server refuses a ping: who are you");
}

TEST(Control, AMessageThatIsNotTheServersEndsTheSession) {
  for (const Message& message :
       {Message(Login{}), Message(Pong{}), Message(ReqWorkConn{}), Message(NewProxyResp{})}) {
    Fixture bed;
    bed.to_client_in_clear(message);
    EXPECT_THAT(bed.failure(), HasSubstr("protocol: "));
  }
}

TEST(Control, AMessageThatIsNotTheClientsEndsTheServersSide) {
  ServerControl server({.token = kToken}, Login{}, "run", kIv);
  ControlEncryptor encryptor(control_key(kToken), kIv);
  std::string bytes;
  ASSERT_TRUE(append_message(bytes, LoginResp{}));
  encryptor.encrypt(bytes, 0);
  std::vector<ServerControl::Event> events;
  server.receive(bytes, events);
  ASSERT_TRUE(server.failure());
  EXPECT_EQ(server.failure()->code, ErrorCode::protocol);
  EXPECT_EQ(server.output(), "");
}

TEST(Control, TheServersTextsAreCut) {
  Fixture bed;
  bed.to_client_in_clear(LoginResp{.error = std::string(5000, 'x')});
  EXPECT_LT(bed.failure().size(), 600u);
}

TEST(Control, ThePoolIsTheServersToLimit) {
  for (const auto& [wanted, given] : {std::pair{0, 0}, {3, 3}, {100, 5}, {-7, 0}}) {
    ServerControl server({}, Login{.pool_count = wanted}, "run", kIv);
    EXPECT_EQ(server.pool_size(), given);
  }
}

}  // namespace
}  // namespace gitops::tunnel
