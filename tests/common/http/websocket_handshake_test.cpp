#include "common/http/websocket_handshake.hpp"

#include <gmock/gmock.h>

namespace gitops::http::websocket {
namespace {

// RFC 6455 section 1.3.
constexpr std::string_view kKey = "dGhlIHNhbXBsZSBub25jZQ==";
constexpr std::string_view kAccept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

Request sample_request() {
  Request request{.target = "/chat",
                  .headers = {{"Host", "server.example.com"},
                              {"Upgrade", "websocket"},
                              {"Connection", "keep-alive, Upgrade"},
                              {"Sec-WebSocket-Version", "13"}}};
  request.headers.add("Sec-WebSocket-Key", std::string(kKey));
  return request;
}

Response sample_answer() {
  return {.status = 101,
          .headers = {{"Upgrade", "WebSocket"},
                      {"Connection", "upgrade"},
                      {"Sec-WebSocket-Accept", std::string(kAccept)}}};
}

int refused(const Request& request) {
  const auto offer = read_offer(request);
  return offer ? 0 : offer.error().http_status;
}

TEST(WebSocketHandshake, MatchesTheExampleOfTheRfc) {
  EXPECT_EQ(accept_value(kKey), kAccept);
  EXPECT_EQ(make_key(std::span<const char, 16>("the sample nonce", 16)), kKey);
}

TEST(WebSocketHandshake, ServerReadsAnOffer) {
  Request request = sample_request();
  request.headers.add("Sec-WebSocket-Protocol", "chat, superchat");
  request.headers.add("Sec-WebSocket-Protocol", "other");
  const auto offer = read_offer(request);
  ASSERT_TRUE(offer) << offer.error().message;
  EXPECT_THAT(offer->protocols, testing::ElementsAre("chat", "superchat", "other"));
  const std::vector<std::string_view> ours{"other", "superchat"};
  EXPECT_EQ(choose_protocol(*offer, ours), "superchat");
  EXPECT_EQ(choose_protocol(*offer, {}), "");
  const Response answer = acceptance(*offer, "superchat");
  EXPECT_EQ(answer.status, 101);
  EXPECT_EQ(answer.headers.find("Sec-WebSocket-Accept"), kAccept);
  EXPECT_EQ(answer.headers.find("Sec-WebSocket-Protocol"), "superchat");
  EXPECT_EQ(answer.headers.find("Connection"), "Upgrade");  // frpc wants exactly this one token
  EXPECT_FALSE(answer.headers.find("Sec-WebSocket-Extensions"));
  EXPECT_FALSE(acceptance(*offer, "").headers.find("Sec-WebSocket-Protocol"));
}

TEST(WebSocketHandshake, ServerRefusesWhatIsNoOffer) {
  EXPECT_EQ(refused(sample_request()), 0);
  const auto without = [](std::string_view name) {
    Request request = sample_request();
    request.headers.erase(name);
    return refused(request);
  };
  EXPECT_EQ(without("Upgrade"), 400);
  EXPECT_EQ(without("Connection"), 400);
  EXPECT_EQ(without("Sec-WebSocket-Key"), 400);
  EXPECT_EQ(without("Sec-WebSocket-Version"), 426);
  const auto with = [](const std::string& name, const std::string& value) {
    Request request = sample_request();
    request.headers.set(name, value);
    return refused(request);
  };
  EXPECT_EQ(with("Sec-WebSocket-Version", "8"), 426);
  EXPECT_EQ(with("Upgrade", "h2c"), 400);
  EXPECT_EQ(with("Connection", "keep-alive"), 400);
  EXPECT_EQ(with("Sec-WebSocket-Protocol", "a b"), 400);
  for (const char* key : {"", "short", "dGhlIHNhbXBsZSBub25jZQ==X", "AAAA"}) {
    EXPECT_EQ(with("Sec-WebSocket-Key", key), 400) << key;
  }
  Request twice = sample_request();
  twice.headers.add("Sec-WebSocket-Key", std::string(kKey));
  EXPECT_EQ(refused(twice), 400);
  Request post = sample_request();
  post.method = "POST";
  EXPECT_EQ(refused(post), 405);
  const auto answer = refusal(read_offer(Request{}).error());
  EXPECT_EQ(answer.status, 400);
  Request old = sample_request();
  old.headers.set("Sec-WebSocket-Version", "8");
  EXPECT_EQ(refusal(read_offer(old).error()).headers.find("Sec-WebSocket-Version"), "13");
}

TEST(WebSocketHandshake, ClientAsks) {
  const std::vector<std::string_view> protocols{"a", "b"};
  const Request request = upgrade_request(kKey, protocols);
  EXPECT_EQ(request.headers.find("Sec-WebSocket-Protocol"), "a, b");
  EXPECT_TRUE(is_upgrade(request));
  EXPECT_TRUE(read_offer(request));
  EXPECT_FALSE(upgrade_request(kKey, {}).headers.find("Sec-WebSocket-Protocol"));
}

TEST(WebSocketHandshake, ClientChecksTheAnswer) {
  const std::vector<std::string_view> protocols{"a", "b"};
  const auto read = [&](const Response& response) {
    const auto chosen = read_acceptance(response, kKey, protocols);
    return chosen ? "[" + *chosen + "]" : std::string(to_string(chosen.error().code));
  };
  EXPECT_EQ(read(sample_answer()), "[]");
  const auto with = [&](const std::string& name, const std::string& value) {
    Response response = sample_answer();
    response.headers.set(name, value);
    return read(response);
  };
  EXPECT_EQ(with("Sec-WebSocket-Protocol", "b"), "[b]");
  EXPECT_EQ(with("Sec-WebSocket-Protocol", "c"), "protocol");
  EXPECT_EQ(with("Sec-WebSocket-Extensions", "permessage-deflate"), "protocol");
  EXPECT_EQ(with("Sec-WebSocket-Accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOO="), "protocol");
  EXPECT_EQ(with("Upgrade", "h2c"), "protocol");
  EXPECT_EQ(with("Connection", "close"), "protocol");
  Response ok = sample_answer();
  ok.status = 200;
  EXPECT_EQ(read(ok), "protocol");
  Response twice = sample_answer();
  twice.headers.add("Sec-WebSocket-Protocol", "a");
  twice.headers.add("Sec-WebSocket-Protocol", "b");
  EXPECT_EQ(read(twice), "protocol");
}

}  // namespace
}  // namespace gitops::http::websocket
