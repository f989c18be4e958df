#include "common/tunnel/control_cipher.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "common/tunnel/bytes.hpp"
#include "common/tunnel/message.hpp"

namespace gitops::tunnel {
namespace {

const std::string kIv = from_hex("000102030405060708090a0b0c0d0e0f");

TEST(ControlKey, IsDerivedFromTheToken) {
  EXPECT_EQ(hex_encode(control_key(Secret("s3cret")).reveal()), "98d40315f7ae4d22a12d1f4879bd5ca9");
  EXPECT_EQ(hex_encode(control_key(Secret()).reveal()), "cdc9dc4c472c37331281df4c232a8407");
}

// What a real frpc 0.44 writes with that IV: a Ping; what a Pong after it would be.
TEST(ControlEncryptor, AgreesWithFrp) {
  const struct {
    std::string token;
    std::string_view ping;
    std::string_view pong;
  } cases[] = {
      {"s3cret", "f37848b3103aeeb1a4aaff", "72b482973d3ee7bb99c6f4"},
      {"", "9130610abcb682c5556510", "0804400c673fafcb04e39d"},
  };
  for (const auto& expected : cases) {
    ControlEncryptor encryptor(control_key(Secret(expected.token)), kIv);
    std::string out = "clear";
    ASSERT_TRUE(append_message(out, Ping{}));
    encryptor.encrypt(out, 5);
    EXPECT_EQ(hex_encode(out), hex_encode("clear" + kIv) + std::string(expected.ping));
    out.clear();
    ASSERT_TRUE(append_message(out, Pong{}));
    encryptor.encrypt(out, 0);
    EXPECT_EQ(hex_encode(out), expected.pong);
  }
}

TEST(ControlEncryptor, AgreesWithFrpOnNewProxy) {
  ControlEncryptor encryptor(control_key(Secret()), kIv);
  std::string out;
  ASSERT_TRUE(append_message(out, NewProxy{.proxy_name = "a-rt",
                                           .proxy_type = "http",
                                           .metas = {{"Authorization", Secret("tok")}},
                                           .subdomain = "a-rt",
                                           .locations = {"/"}}));
  encryptor.encrypt(out, 0);
  EXPECT_EQ(
      hex_encode(out),
      "000102030405060708090a0b0c0d0e0f8930610abcb682c539654f4c762f741e19d722e33e9dd6e51a1d67"
      "c752b9baa77e237424751cbba1dcd17b95842bd82faf355a149e1b9229556a4c4f904f14be6feade8bf5dd3e"
      "d40a2c4baf345a28f83b455c5dda1bf966f1495629c7dcec6c03db357a12b39877b46ffeba75fca03165ba8d"
      "4734173d");
}

TEST(ControlEncryptor, SendsTheIvWithTheFirstBytes) {
  ControlEncryptor encryptor(control_key(Secret()), kIv);
  std::string out;
  encryptor.encrypt(out, 0);
  EXPECT_EQ(out, "");
  out = "x";
  encryptor.encrypt(out, 0);
  EXPECT_EQ(out.size(), 17u);
  out = "x";
  encryptor.encrypt(out, 0);
  EXPECT_EQ(out.size(), 1u);
}

TEST(ControlDecryptor, ReadsTheStreamHoweverItIsSplit) {
  const auto key = control_key(Secret("s3cret"));
  const std::string plain = "some messages, one after the other";
  for (const std::size_t piece : {1U, 3U, 15U, 16U, 17U, 100U}) {
    ControlEncryptor encryptor(key, kIv);
    ControlDecryptor decryptor(key);
    std::string wire = plain;
    encryptor.encrypt(wire, 0);
    std::string read;
    for (std::size_t at = 0; at < wire.size(); at += piece) {
      const auto part =
          decryptor.decrypt(std::span(wire).subspan(at, std::min(piece, wire.size() - at)));
      read.append(part.data(), part.size());
    }
    EXPECT_EQ(read, plain) << "in pieces of " << piece;
  }
}

}  // namespace
}  // namespace gitops::tunnel
