#include "common/tunnel/message.hpp"

#include <gtest/gtest.h>

#include "common/tunnel/authentication.hpp"
#include "common/tunnel/bytes.hpp"

namespace gitops::tunnel {
namespace {

// The bytes of a message, in hex.
std::string written(const Message& message) {
  std::string out;
  EXPECT_TRUE(append_message(out, message));
  return hex_encode(out);
}

std::string framed(char type, std::string_view body) {
  std::string out(1, type);
  for (unsigned shift = 64; shift > 0; shift -= 8) {
    out += static_cast<char>(std::uint64_t{body.size()} >> (shift - 8));
  }
  return out.append(body);
}

// The messages in `bytes`, which arrive in pieces of `piece` bytes; stops at the first error.
struct Outcome {
  std::vector<Message> messages;
  std::string error;
};
Outcome read_in_pieces(std::string_view bytes, std::size_t piece) {
  MessageReader reader;
  Outcome outcome;
  while (!bytes.empty()) {
    auto part = bytes.substr(0, piece);
    bytes.remove_prefix(part.size());
    while (true) {
      auto next = reader.next(part);
      if (!next) {
        outcome.error = to_string(next.error().code);
        return outcome;
      }
      if (!*next) break;
      outcome.messages.push_back(std::move(**next));
    }
    EXPECT_TRUE(part.empty());
  }
  if (reader.in_message()) outcome.error = "incomplete";
  return outcome;
}

// The outcome, which must not depend on how the bytes arrive.
Outcome read(std::string_view bytes) {
  auto whole = read_in_pieces(bytes, bytes.size());
  for (const std::size_t piece : {1U, 2U, 9U, 10U}) {
    const auto outcome = read_in_pieces(bytes, piece);
    EXPECT_EQ(outcome.messages, whole.messages) << "in pieces of " << piece;
    EXPECT_EQ(outcome.error, whole.error) << "in pieces of " << piece;
  }
  return whole;
}

const Login kLogin{.version = "0.44.0",
                   .os = "linux",
                   .arch = "amd64",
                   .privilege_key = Secret("24920decf83f6960b80f737a28eeafc1"),
                   .timestamp = 1'700'000'000,
                   .pool_count = 1};

// What a real frpc and frps 0.44 wrote; the first bytes are type and length.
const struct {
  Message message;
  std::string_view bytes;
} kVectors[] = {
    {Ping{}, "6800000000000000027b7d"},
    {ReqWorkConn{}, "7200000000000000027b7d"},
    {LoginResp{.version = "0.70.1", .run_id = "0123456789abcdef"},
     "3100000000000000307b2276657273696f6e223a22302e37302e31222c2272756e5f6964223a22303132333435"
     "36373839616263646566227d"},
    {NewWorkConn{.run_id = "0123456789abcdef"},
     "77000000000000001d7b2272756e5f6964223a2230313233343536373839616263646566227d"},
    {StartWorkConn{.proxy_name = "a-rt", .src_addr = "10.1.2.3", .src_port = 5555},
     "73000000000000003b7b2270726f78795f6e616d65223a22612d7274222c227372635f61646472223a2231302e"
     "312e322e33222c227372635f706f7274223a353535357d"},
    {kLogin,
     "6f00000000000000897b2276657273696f6e223a22302e34342e30222c226f73223a226c696e7578222c226172"
     "6368223a22616d643634222c2270726976696c6567655f6b6579223a2232343932306465636638336636393630"
     "62383066373337613238656561666331222c2274696d657374616d70223a313730303030303030302c22706f6f"
     "6c5f636f756e74223a317d"},
};

TEST(TunnelMessage, IsWrittenAsFrpWritesIt) {
  for (const auto& [message, bytes] : kVectors) EXPECT_EQ(written(message), bytes);
}

TEST(TunnelMessage, IsReadAsFrpWritesItHoweverTheBytesAreSplit) {
  std::string all;
  std::vector<Message> messages;
  for (const auto& [message, bytes] : kVectors) {
    all += from_hex(bytes);
    messages.push_back(message);
  }
  const auto outcome = read(all);
  EXPECT_EQ(outcome.error, "");
  EXPECT_EQ(outcome.messages, messages);
}

TEST(TunnelMessage, CarriesEveryMember) {
  const Message messages[] = {
      Login{.version = "1.0.0",
            .hostname = "node-1",
            .os = "linux",
            .arch = "arm64",
            .user = "ada",
            .privilege_key = Secret("key"),
            .timestamp = -1,
            .run_id = "run",
            .metas = {{"a", Secret("1")}, {"b", Secret("2")}},
            .pool_count = 5},
      LoginResp{.version = "1.0.0", .run_id = "run", .error = "no"},
      NewProxy{.proxy_name = "name",
               .proxy_type = "http",
               .use_encryption = true,
               .use_compression = true,
               .group = "g",
               .group_key = Secret("k"),
               .metas = {{"Authorization", Secret("token \"quoted\"")}},
               .remote_port = 6000,
               .custom_domains = {"a.example.test", "b.example.test"},
               .subdomain = "sub",
               .locations = {"/", "/api"},
               .http_user = "user",
               .http_pwd = Secret("password"),
               .host_header_rewrite = "host",
               .headers = {{"X-A", "1"}},
               .response_headers = {{"X-B", "2"}},
               .route_by_http_user = "u",
               .ips_allow_list = {"10.0.0.0/8"}},
      NewProxyResp{.proxy_name = "name", .remote_addr = "sub.example.test:80", .error = "taken"},
      CloseProxy{.proxy_name = "name"},
      NewWorkConn{.run_id = "run", .privilege_key = Secret("key"), .timestamp = 7},
      StartWorkConn{.proxy_name = "name",
                    .src_addr = "10.1.2.3",
                    .dst_addr = "10.1.2.4",
                    .src_port = 1,
                    .dst_port = 2,
                    .error = "no"},
      Ping{.privilege_key = Secret("key"), .timestamp = 7},
      Pong{.error = "no"},
  };
  for (const auto& message : messages) {
    const auto outcome = read(from_hex(written(message)));
    EXPECT_EQ(outcome.error, "");
    EXPECT_EQ(outcome.messages, std::vector{message});
  }
}

TEST(TunnelMessage, IsReadLeniently) {
  const auto outcome = read(framed('1', R"({"unknown":{"a":[1]},"run_id":null,"version":"0.48.0",)"
                                        R"("server_udp_port":0})") +
                            framed('p', R"({"metas":null,"locations":null})") + framed('4', "{}"));
  EXPECT_EQ(outcome.error, "");
  EXPECT_EQ(outcome.messages,
            (std::vector<Message>{LoginResp{.version = "0.48.0"}, NewProxy{}, Pong{}}));
}

TEST(TunnelMessage, OfTheWrongShapeIsRefused) {
  for (const auto* body : {"", "{", "[]", "null", "7", R"({"version":5})", R"({"metas":[]})",
                           R"({"metas":{"a":1}})", R"({"timestamp":"1"})", R"({"timestamp":1.5})",
                           R"({"timestamp":9223372036854775808})", R"({"pool_count":[]})"}) {
    EXPECT_EQ(read(framed('o', body)).error, "protocol") << body;
  }
  EXPECT_EQ(read(framed('p', R"({"locations":["/",7]})")).error, "protocol");
  EXPECT_EQ(read(framed('p', R"({"use_encryption":"yes"})")).error, "protocol");
}

TEST(TunnelMessage, OfAnUnknownTypeIsRefused) {
  // 'F' begins the magic of wire protocol v2, 'v' a visitor.
  for (const char type : {'F', 'v', '\0', '\xff'}) {
    EXPECT_EQ(read(framed(type, "{}")).error, "protocol");
  }
}

// AC-15: the length comes from a peer that may not have logged in.
TEST(TunnelMessage, AC15_TakesNoMoreThanTenKilobytes) {
  const std::string longest = R"({"error":")" + std::string(kMaxBody - 12, 'x') + R"("})";
  ASSERT_EQ(longest.size(), kMaxBody);
  EXPECT_EQ(read(framed('4', longest)).messages.size(), 1u);
  EXPECT_EQ(read(framed('4', longest + " ")).error, "too_large");
  EXPECT_EQ(read(from_hex("34ffffffffffffffff")).error, "too_large");
  EXPECT_EQ(read(from_hex("348000000000000000")).error, "too_large");
  EXPECT_EQ(read(from_hex("340000000100000000")).error, "too_large");
}

TEST(TunnelMessage, TooLongForItsReaderIsNotSent) {
  std::string out = "before";
  const NewProxy proxy{.proxy_name = "p",
                       .metas = {{"Authorization", Secret(std::string(kMaxBody, 'x'))}}};
  const auto appended = append_message(out, proxy);
  ASSERT_FALSE(appended);
  EXPECT_EQ(appended.error().code, ErrorCode::too_large);
  EXPECT_EQ(out, "before");
}

TEST(TunnelMessage, SurvivesDeepNesting) {
  EXPECT_EQ(read(framed('o', std::string(kMaxBody, '['))).error, "protocol");
  const std::string deep = R"({"x":)" + std::string(5000, '[') + std::string(5000, ']') + "}";
  EXPECT_EQ(read(framed('h', deep)).messages.size(), 1u);
}

TEST(Authentication, IsTheMd5SumOfTokenAndTimestamp) {
  EXPECT_EQ(privilege_key(Secret("s3cret"), 1'700'000'000).reveal(),
            "5d75c9c422f888a6fc13fe10cfd4b30e");
  EXPECT_EQ(privilege_key(Secret(), 1'700'000'000).reveal(), "24920decf83f6960b80f737a28eeafc1");
}

TEST(Authentication, TakesNoOtherKey) {
  const Secret token("s3cret");
  EXPECT_TRUE(is_privilege_key(privilege_key(token, 7), token, 7));
  EXPECT_FALSE(is_privilege_key(privilege_key(token, 7), token, 8));
  EXPECT_FALSE(is_privilege_key(privilege_key(Secret(), 7), token, 7));
  EXPECT_FALSE(is_privilege_key(Secret(), token, 7));
}

}  // namespace
}  // namespace gitops::tunnel
