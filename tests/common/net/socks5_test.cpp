#include "common/net/socks5.hpp"

#include <stdexcept>
#include <vector>

#include <gmock/gmock.h>

namespace gitops::net {
namespace {

using namespace std::string_literals;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kReply = "\x05\x00\x00\x01\x7f\x00\x00\x01\x1f\x90";
const std::string kConnected(kReply, 10);

Socks5Handshake start(Socks5Request request) {
  auto handshake = Socks5Handshake::start(request);
  if (!handshake) throw std::runtime_error(handshake.error().message);
  return std::move(*handshake);
}

std::string output(Socks5Handshake& handshake) {
  return std::string(handshake.output().reveal());
}

Error error_after(Socks5Handshake handshake, const std::string& bytes) {
  const auto fed = handshake.feed(bytes);
  EXPECT_FALSE(handshake.done());
  return fed ? Error{.message = "accepted"} : fed.error();
}

TEST(Socks5, ConnectsByNameWithoutAuthentication) {
  auto handshake = start({.host = "api.example", .port = 6443});
  EXPECT_EQ(output(handshake), "\x05\x01\x00"s);
  EXPECT_EQ(output(handshake), "");
  EXPECT_EQ(handshake.feed("\x05\x00"s), 2U);
  EXPECT_EQ(output(handshake), "\x05\x01\x00\x03\x0b"s + "api.example" + "\x19\x2b");
  EXPECT_FALSE(handshake.done());
  EXPECT_EQ(handshake.feed(kConnected), kConnected.size());
  EXPECT_TRUE(handshake.done());
  EXPECT_EQ(output(handshake), "");
}

TEST(Socks5, GivesAddressesAsSuch) {
  auto four = start({.host = "10.0.0.1", .port = 80});
  EXPECT_EQ(four.feed("\x05\x00"s), 2U);
  EXPECT_EQ(output(four), "\x05\x01\x00\x01\x0a\x00\x00\x01\x00\x50"s);
  auto six = start({.host = "fd00::1", .port = 80});
  EXPECT_EQ(six.feed("\x05\x00"s), 2U);
  EXPECT_EQ(output(six), "\x05\x01\x00\x04\xfd\x00"s + std::string(13, '\0') + "\x01\x00\x50"s);
}

TEST(Socks5, GivesUserAndPasswordWhenAsked) {
  auto handshake = start({.host = "a", .port = 1, .user = "me", .password = Secret("secret")});
  EXPECT_EQ(output(handshake), "\x05\x02\x00\x02"s);
  EXPECT_EQ(handshake.feed("\x05\x02"s), 2U);
  EXPECT_EQ(output(handshake), "\x01\x02me\x06secret"s);
  EXPECT_EQ(handshake.feed("\x01\x00"s), 2U);
  EXPECT_EQ(output(handshake), "\x05\x01\x00\x03\x01\x61\x00\x01"s);
  EXPECT_EQ(handshake.feed(kConnected), kConnected.size());
  EXPECT_TRUE(handshake.done());
}

TEST(Socks5, KeepsThemWhenNotAsked) {
  auto handshake = start({.host = "a", .port = 1, .user = "me", .password = Secret("CANARY")});
  EXPECT_EQ(handshake.feed("\x05\x00"s), 2U);
  EXPECT_THAT(output(handshake), Not(HasSubstr("CANARY")));
}

TEST(Socks5, ReadsAnswersInAnyPieces) {
  const std::string name = "\x05\x00\x00\x03\x04host\x00\x50"s;
  const std::string six = "\x05\x00\x00\x04"s + std::string(18, '\x07');
  for (const std::string& reply : {kConnected, name, six}) {
    const std::string all = "\x05\x00"s + reply;
    auto handshake = start({.host = "a", .port = 1});
    for (const char byte : all) {
      EXPECT_FALSE(handshake.done());
      EXPECT_EQ(handshake.feed(std::string(1, byte)), 1U);
    }
    EXPECT_TRUE(handshake.done());
  }
}

TEST(Socks5, LeavesWhatTheDestinationSays) {
  auto handshake = start({.host = "a", .port = 1});
  EXPECT_EQ(handshake.feed("\x05\x00"s + kConnected + "hello"), 2 + kConnected.size());
  EXPECT_TRUE(handshake.done());
  EXPECT_EQ(handshake.feed("more"), 0U);
}

TEST(Socks5, TellsWhyItFailed) {
  const auto anonymous = [] { return start({.host = "a", .port = 1}); };
  const auto person = [] {
    return start({.host = "a", .port = 1, .user = "me", .password = Secret("CANARY")});
  };
  EXPECT_EQ(error_after(anonymous(), "HTTP/1.1 400").code, ErrorCode::protocol);
  EXPECT_EQ(error_after(anonymous(), "\x04\x5a"s).code, ErrorCode::protocol);
  EXPECT_EQ(error_after(anonymous(), "\x05\x01"s).code, ErrorCode::protocol);
  EXPECT_EQ(error_after(anonymous(), "\x05\x02"s).code, ErrorCode::protocol) << "was not offered";
  EXPECT_EQ(error_after(anonymous(), "\x05\xff"s).code, ErrorCode::unauthenticated);
  EXPECT_THAT(error_after(anonymous(), "\x05\xff"s).message, HasSubstr("requires a user name"));
  const Error wrong = error_after(person(), "\x05\x02\x01\x01"s);
  EXPECT_EQ(wrong.code, ErrorCode::unauthenticated);
  EXPECT_THAT(wrong.message, Not(HasSubstr("CANARY")));
  EXPECT_EQ(error_after(person(), "\x05\x02\x05\x00"s).code, ErrorCode::protocol);

  const std::vector<ErrorCode> codes{
      ErrorCode::unavailable, ErrorCode::forbidden,   ErrorCode::unavailable,
      ErrorCode::unavailable, ErrorCode::unavailable, ErrorCode::unavailable,
      ErrorCode::unsupported, ErrorCode::unsupported, ErrorCode::unavailable};
  for (std::size_t code = 1; code <= codes.size(); ++code) {
    std::string reply = "\x05\x00"s + kConnected;
    reply[3] = static_cast<char>(code);
    EXPECT_EQ(error_after(anonymous(), reply).code, codes[code - 1]) << code;
  }
}

TEST(Socks5, RefusesWhatDoesNotFit) {
  const std::string longest(255, 'a');
  EXPECT_TRUE(Socks5Handshake::start(
      {.host = longest, .port = 1, .user = longest, .password = Secret(longest)}));
  EXPECT_FALSE(Socks5Handshake::start({.host = longest + "a", .port = 1}));
  EXPECT_FALSE(Socks5Handshake::start({.host = "", .port = 1}));
  EXPECT_FALSE(Socks5Handshake::start({.host = "a", .port = 0}));
  EXPECT_FALSE(Socks5Handshake::start(
      {.host = "a", .port = 1, .user = longest + "a", .password = Secret("p")}));
  EXPECT_FALSE(Socks5Handshake::start({.host = "a", .port = 1, .user = "u"}));
}

}  // namespace
}  // namespace gitops::net
