// frp's wire protocol v2: frames, hellos, keys, records. The bytes were made by frp's own functions.
#include <gmock/gmock.h>

#include "common/core/crypto.hpp"
#include "common/tunnel/bytes.hpp"
#include "common/tunnel/client_control.hpp"
#include "common/tunnel/hello.hpp"
#include "common/tunnel/record_cipher.hpp"
#include "common/tunnel/server_control.hpp"

namespace gitops::tunnel {
namespace {

using testing::HasSubstr;

const std::string kClientHello =
    R"({"bootstrap":{"transport":"wss","tls":true,"tcpMux":true},"capabilities":{"message":)"
    R"({"codecs":["json"]},"crypto":{"algorithms":["aes-256-gcm","xchacha20-poly1305"],)"
    R"("clientRandom":"ERERERERERERERERERERERERERERERERERERERERERE="}}})";
const std::string kServerHello =
    R"({"selected":{"message":{"codec":"json"},"crypto":{"algorithm":"aes-256-gcm",)"
    R"("serverRandom":"IiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiI="}}})";
const std::string kNonce = from_hex("000102030405060708090a0b");

TEST(WireV2, MessagesAreFrames) {
  std::string bytes;
  EXPECT_TRUE(append_message(bytes, Ping{}, Wire::v2));
  EXPECT_EQ(hex_encode(bytes), "0010000000000004000b7b7d");
  const std::vector<Message> messages{Login{.version = "1.0.0"},
                                      LoginResp{.run_id = "r"},
                                      NewProxy{.proxy_name = "a"},
                                      NewProxyResp{.proxy_name = "a"},
                                      CloseProxy{.proxy_name = "a"},
                                      NewWorkConn{.run_id = "r"},
                                      ReqWorkConn{},
                                      StartWorkConn{.proxy_name = "a"},
                                      Ping{.timestamp = 1},
                                      Pong{.error = "x"}};
  std::string wire;
  for (const auto& message : messages) EXPECT_TRUE(append_message(wire, message, Wire::v2));
  for (const std::size_t piece : {1U, 2U, 9U, 10'000U}) {
    MessageReader reader(Wire::v2);
    std::vector<Message> read;
    for (std::size_t at = 0; at < wire.size(); at += piece) {
      auto part = std::string_view(wire).substr(at, piece);
      while (true) {
        auto next = reader.next(part);
        ASSERT_TRUE(next);
        if (!*next) break;
        read.push_back(std::move(**next));
      }
    }
    EXPECT_EQ(read, messages) << "in pieces of " << piece;
  }
}

TEST(WireV2, AC15_FramesHaveLimits) {
  const auto error_of = [](const std::string& hex) {
    const auto bytes = from_hex(hex);
    std::string_view input = bytes;
    const auto next = MessageReader(Wire::v2).next(input);
    return next ? std::string("none") : next.error().message;
  };
  EXPECT_THAT(error_of("0010000000010001"), HasSubstr("too long"));
  EXPECT_THAT(error_of("00100000ffffffff"), HasSubstr("too long"));
  EXPECT_THAT(error_of("0010000100000004"), HasSubstr("unknown flags"));
  EXPECT_THAT(error_of("0003000000000004"), HasSubstr("unknown type"));
  EXPECT_THAT(error_of("001000000000000100"), HasSubstr("no message"));
  EXPECT_THAT(error_of("0001000000000004000b7b7d"), HasSubstr("no message"));
  EXPECT_THAT(error_of("0010000000000004ffff7b7d"), HasSubstr("unknown number"));
  EXPECT_THAT(error_of("0010000000000004000b7b7b"), HasSubstr("malformed body"));
  EXPECT_EQ(error_of("0010000000010000"), "none");
}

TEST(WireV2, TheKeysFollowFromBothHellosAndTheToken) {
  const auto client = ClientHello::read(kClientHello).value();
  const auto server = ServerHello::read(kServerHello).value();
  EXPECT_TRUE(client.is_supported);
  EXPECT_EQ(server.error, "");
  const auto keys = control_keys(Secret("s3cret"), client, server);
  EXPECT_EQ(hex_encode(keys.to_server.reveal()),
            "f1cdc4ce7e45c388f1e1782f89f43e51b2d8df852f6d992f359d4cfbef2c68d4");
  EXPECT_EQ(hex_encode(keys.to_client.reveal()),
            "e13d19dacb4e3238551fba1f790dcb0622fa67a5113ced7c0c38121621556a29");
  EXPECT_EQ(ServerHello::make(std::string(32, '\x22')).payload, kServerHello);
  std::string frame;
  append_hello(frame, client);
  EXPECT_EQ(hex_encode(frame.substr(0, 15)), "46525000020d0a00010000000000e4");
  // An empty token is a token, too.
  EXPECT_NE(control_keys(Secret(), client, server).to_server, keys.to_server);
}

TEST(WireV2, HellosAreChecked) {
  const auto changed = [](std::string text, std::string_view from, const std::string& to) {
    return text.replace(text.find(from), from.size(), to);
  };
  EXPECT_FALSE(ClientHello::read("[]"));
  EXPECT_FALSE(ClientHello::read(changed(kClientHello, "ERER", "")));
  EXPECT_FALSE(ClientHello::read(changed(kClientHello, "\"ERER", "7,\"x")));
  EXPECT_FALSE(ClientHello::read(changed(kClientHello, "[\"json\"]", "7"))->is_supported);
  EXPECT_FALSE(ClientHello::read(changed(kClientHello, "aes-256-gcm", "aes"))->is_supported);
  EXPECT_FALSE(ServerHello::read("{}"));
  EXPECT_FALSE(ServerHello::read(changed(kServerHello, "aes-256-gcm", "xchacha20-poly1305")));
  EXPECT_FALSE(ServerHello::read(changed(kServerHello, "json", "gob")));
  EXPECT_EQ(ServerHello::read(R"({"error":"no"})")->error, "no");
  const auto own = ClientHello::make("wss", true, true, std::string(32, '\x11'));
  EXPECT_TRUE(ClientHello::read(own.payload)->is_supported);
}

TEST(WireV2, RecordsAreThoseOfFrp) {
  const Secret key(from_hex("f1cdc4ce7e45c388f1e1782f89f43e51b2d8df852f6d992f359d4cfbef2c68d4"));
  RecordSealer sealer(key, kNonce);
  std::string wire;
  for (const char* text : {"hello", "world"}) {
    const auto start = wire.size();
    wire += text;
    sealer.seal(wire, start);
  }
  EXPECT_EQ(
      hex_encode(wire),
      "000102030405060708090a0b000000156cd1b23d68c58784be728f712ea11aa68cf372e03b00000015f3fccc"
      "9299c77dc45b6498087bade405dc82a2a72d");
  for (const std::size_t piece : {1U, 5U, 17U, 1000U}) {
    RecordOpener opener(key);
    std::string plain;
    for (std::size_t at = 0; at < wire.size(); at += piece) {
      plain += opener.open(std::string_view(wire).substr(at, piece)).value();
    }
    EXPECT_EQ(plain, "helloworld") << "in pieces of " << piece;
  }
  // Whatever is changed on the way, taken out or doubled is noticed.
  for (std::size_t at = 0; at < wire.size(); ++at) {
    auto bad = wire;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    RecordOpener opener(key);
    const auto opened = opener.open(bad);
    EXPECT_TRUE(!opened || opened->size() < 10) << at;
  }
  const auto first = wire.substr(12, 25);
  EXPECT_FALSE(RecordOpener(key).open(wire.substr(0, 12) + wire.substr(37)));
  EXPECT_FALSE(RecordOpener(key).open(wire.substr(0, 12) + first + first));
}

TEST(WireV2, AC15_ARecordHasALimit) {
  const Secret key(std::string(32, 'k'));
  EXPECT_EQ(RecordOpener(key).open(kNonce + from_hex("00010011")).error().code,
            ErrorCode::too_large);
  EXPECT_EQ(RecordOpener(key).open(kNonce + from_hex("ffffffff")).error().code,
            ErrorCode::too_large);
  EXPECT_EQ(RecordOpener(key).open(kNonce + from_hex("0000000f")).error().code,
            ErrorCode::protocol);
  RecordSealer sealer(key, kNonce);
  std::string wire(200'000, 'x');
  sealer.seal(wire, 0);
  EXPECT_TRUE(RecordOpener(key).open(wire).value() == std::string(200'000, 'x'));
}

TEST(WireV2, AnOpeningIsToldFromV1ByItsFirstByte) {
  std::string v1;
  EXPECT_TRUE(append_message(v1, Login{.version = "1.0.0"}));
  std::string control;
  append_hello(control, ClientHello::read(kClientHello).value());
  EXPECT_TRUE(append_message(control, Login{.version = "1.0.0"}, Wire::v2));
  std::string work(kWireMagic);
  EXPECT_TRUE(append_message(work, NewWorkConn{.run_id = "r"}, Wire::v2));
  for (const auto* wire : {&v1, &control, &work}) {
    for (const std::size_t piece : {1U, 8U, 10'000U}) {
      OpeningReader reader;
      std::optional<OpeningReader::Opening> opening;
      for (std::size_t at = 0; at < wire->size(); at += piece) {
        EXPECT_FALSE(opening);
        auto part = std::string_view(*wire).substr(at, piece);
        auto next = reader.next(part);
        ASSERT_TRUE(next);
        opening = std::move(*next);
        EXPECT_TRUE(part.empty());
      }
      ASSERT_TRUE(opening);
      EXPECT_EQ(opening->wire, wire == &v1 ? Wire::v1 : Wire::v2);
      EXPECT_EQ(opening->hello.has_value(), wire == &control);
      EXPECT_EQ(std::holds_alternative<NewWorkConn>(opening->message), wire == &work);
    }
  }
  std::string_view wrong("FRP\0\1\r\n", 7);
  EXPECT_FALSE(OpeningReader().next(wrong));
  auto twice = control;
  append_hello(twice, ClientHello::read(kClientHello).value());
  const auto again = control.substr(0, 7 + 8 + 228) + control.substr(7);
  std::string_view two = again;
  EXPECT_FALSE(OpeningReader().next(two));
}

struct Pair {
  explicit Pair(const Secret& server_token)
      : client({.login = {.version = "1.0.0", .pool_count = 1},
                .token = Secret("s3cret"),
                .proxies = {{.proxy_name = "a"}},
                .opening = ClientOpening{.transport = "wss"}},
               {.iv = {}, .seed = 1, .random = std::string(32, 'c'), .nonce = std::string(12, 'c')},
               WallTime{}, {}) {
    OpeningReader reader;
    std::string_view bytes = client.output();
    auto opening = reader.next(bytes).value().value();
    EXPECT_TRUE(bytes.empty());
    client.output().clear();
    server.emplace(ServerControlOptions{.token = server_token,
                                        .opening = ServerOpening{.hello = *opening.hello,
                                                                 .random = std::string(32, 's'),
                                                                 .nonce = std::string(12, 's')}},
                   std::get<Login>(opening.message), "run", std::string(16, 'i'));
  }
  void exchange(std::size_t piece = 10'000) {
    while (!client.output().empty() || !server->output().empty()) {
      auto to_server = std::exchange(client.output(), {});
      server->receive(to_server, server_events);
      const auto to_client = std::exchange(server->output(), {});
      for (std::size_t at = 0; at < to_client.size(); at += piece) {
        auto part = to_client.substr(at, piece);
        client.receive(part, {}, events);
      }
    }
  }

  ClientControl client;
  std::optional<ServerControl> server;
  std::vector<ClientControl::Event> events;
  std::vector<ServerControl::Event> server_events;
};

TEST(WireV2, BothSidesOfAControlStreamAgree) {
  for (const std::size_t piece : {1U, 7U, 100U, 10'000U}) {
    Pair pair{Secret("s3cret")};
    pair.exchange(piece);
    EXPECT_FALSE(pair.client.failure());
    EXPECT_TRUE(pair.client.is_logged_in());
    ASSERT_EQ(pair.server_events.size(), 1u);
    pair.server->accept_proxy("a", "here");
    pair.exchange(piece);
    ASSERT_EQ(pair.events.size(), 3u);  // logged in, work wanted, proxy started
    EXPECT_EQ(pair.events[2].text, "here");
    EXPECT_TRUE(pair.client.work_offer({})->starts_with(kWireMagic));
  }
}

TEST(WireV2, AServerOfAnotherTokenIsNoticed) {
  Pair pair{Secret("another")};
  pair.exchange();
  ASSERT_TRUE(pair.client.failure());
  EXPECT_THAT(pair.client.failure()->message, HasSubstr("another token"));
}

TEST(WireV2, AServerThatRefusesTheHelloSaysWhy) {
  Pair pair{Secret("s3cret")};
  std::string bytes;
  append_hello(bytes, ServerHello::refusal("no common cipher"));
  pair.client.receive(bytes, {}, pair.events);
  ASSERT_TRUE(pair.client.failure());
  EXPECT_EQ(pair.client.failure()->message, "the server refuses the hello: no common cipher");
}

}  // namespace
}  // namespace gitops::tunnel
