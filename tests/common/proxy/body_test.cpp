#include "common/proxy/body.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>

namespace gitops::proxy {
namespace {

using Kind = BodyFraming::Kind;

// Feeds `input` in pieces of `size` and gives what would be sent.
Result<std::string> relay(const std::string& input, BodyFraming in, Kind out, std::size_t size,
                          bool* done = nullptr) {
  BodyRelay body(1024);
  body.start(in, out);
  std::string sent;
  for (std::size_t at = 0; at < input.size() && !body.done();) {
    const auto fed = body.feed(std::string_view(input).substr(at, size));
    if (!fed) return std::unexpected(fed.error());
    for (const auto& buffer : body.buffers()) {
      sent.append(static_cast<const char*>(buffer.data()), buffer.size());
    }
    at += *fed;
  }
  if (done != nullptr) *done = body.done();
  return sent;
}

TEST(BodyRelay, PassesACountedBody) {
  for (std::size_t size = 1; size < 8; ++size) {
    bool done = false;
    EXPECT_EQ(relay("hello, next", {Kind::length, 5}, Kind::length, size, &done), "hello");
    EXPECT_TRUE(done);
  }
  EXPECT_EQ(relay("hello", {Kind::length, 5}, Kind::chunked, 9), "5\r\nhello\r\n0\r\n\r\n");
}

TEST(BodyRelay, FramesChunksAgain) {
  const std::string chunks = "3;x=y\r\nabc\r\n04\r\ndefg\r\n0\r\n\r\n";
  EXPECT_EQ(relay(chunks, {Kind::chunked}, Kind::chunked, 1000), "7\r\nabcdefg\r\n0\r\n\r\n");
  EXPECT_EQ(relay(chunks, {Kind::chunked}, Kind::until_close, 1000), "abcdefg");
  for (std::size_t size = 1; size < chunks.size(); ++size) {
    const auto sent = relay(chunks, {Kind::chunked}, Kind::chunked, size);
    ASSERT_TRUE(sent);
    EXPECT_EQ(relay(*sent, {Kind::chunked}, Kind::until_close, 1000), "abcdefg") << size;
  }
}

TEST(BodyRelay, ManyTinyChunksNeedSeveralTurns) {
  std::string chunks;
  for (int i = 0; i < 100; ++i) chunks += "1\r\nx\r\n";
  chunks += "0\r\n\r\n";
  const auto sent = relay(chunks, {Kind::chunked}, Kind::until_close, chunks.size());
  EXPECT_EQ(sent, std::string(100, 'x'));
}

TEST(BodyRelay, TinyChunksGoOutTogether) {
  std::string chunks;
  std::string data;
  for (int i = 0; i < 1'000; ++i) {
    const std::string piece = std::to_string(i % 10);
    chunks += "1\r\n" + piece + "\r\n";
    data += piece;
  }
  BodyRelay body(1024);
  body.start({Kind::chunked}, Kind::chunked);
  EXPECT_EQ(body.feed(chunks), chunks.size());  // in one turn
  EXPECT_EQ(body.fed(), 1'000U);
  std::string sent;
  for (const auto& buffer : body.buffers()) {
    sent.append(static_cast<const char*>(buffer.data()), buffer.size());
  }
  EXPECT_EQ(sent, "3e8\r\n" + data + "\r\n");
}

TEST(BodyRelay, TinyAndLargeChunksKeepTheirOrder) {
  std::string chunks;
  std::string data;
  for (int i = 0; i < 200; ++i) {
    const std::string piece(i % 7 == 0 ? 0x400 : 1, static_cast<char>('a' + i % 26));
    chunks += (piece.size() == 1 ? "1\r\n" : "400\r\n") + piece + "\r\n";
    data += piece;
  }
  chunks += "0\r\n\r\n";
  for (const std::size_t size : {std::size_t{100}, std::size_t{5'000}, chunks.size()}) {
    EXPECT_EQ(relay(chunks, {Kind::chunked}, Kind::until_close, size), data);
  }
}

TEST(BodyRelay, AC07_ChunkExtensionsAreBoundedTogether) {
  const std::string extension(200, 'e');
  std::string tiny;
  for (int i = 0; i < 100; ++i) tiny += "1;" + extension + "\r\nx\r\n";
  EXPECT_FALSE(relay(tiny, {Kind::chunked}, Kind::until_close, tiny.size()));
  std::string large;  // as object stores are sent signed chunks
  for (int i = 0; i < 100; ++i) {
    large += "1000;" + extension + "\r\n" + std::string(0x1000, 'x') + "\r\n";
  }
  EXPECT_TRUE(relay(large, {Kind::chunked}, Kind::until_close, 5'000));
}

TEST(BodyRelay, PassesHarmlessTrailersOnly) {
  const std::string chunks =
      "1\r\nx\r\n0\r\nX-Checksum: 1\r\nAuthorization: a\r\nX-Forwarded-For: b\r\nCookie: c\r\n\r\n";
  EXPECT_EQ(relay(chunks, {Kind::chunked}, Kind::chunked, 1000),
            "1\r\nx\r\n0\r\nX-Checksum: 1\r\n\r\n");
  EXPECT_FALSE(relay("0\r\nContent-Length: 1\r\n\r\n", {Kind::chunked}, Kind::chunked, 1000));
}

TEST(BodyRelay, AC04_RefusesBadChunks) {
  for (const std::string chunks :
       {"x\r\n", "3\nabc\r\n", "3\r\nabcd\r\n", "\r\n", "-1\r\n", " 1\r\n", "1 \r\nx\r\n",
        "00000000000000001\r\nx", "3;\r\n", "3;a\nb\r\n"}) {
    const auto sent = relay(chunks, {Kind::chunked}, Kind::chunked, 1000);
    ASSERT_FALSE(sent) << chunks;
    EXPECT_EQ(sent.error().http_status, 400);
  }
}

TEST(BodyRelay, EndsWithTheConnectionWhenNothingElseTells) {
  BodyRelay body(1024);
  body.start({Kind::until_close}, Kind::chunked);
  EXPECT_EQ(body.feed("abc"), 3U);
  EXPECT_FALSE(body.done());
  EXPECT_TRUE(body.feed_eof());
  EXPECT_TRUE(body.done());
  ASSERT_EQ(body.buffers().size(), 1U);
  body.start({Kind::length, 5}, Kind::length);
  EXPECT_EQ(body.feed("abc"), 3U);
  EXPECT_FALSE(body.feed_eof());
}

TEST(BodyRelay, TakesOtherDataInPlaceOfItsOwn) {
  BodyRelay body(1024);
  body.start({Kind::length, 3}, Kind::chunked);
  EXPECT_EQ(body.feed("abc"), 3U);
  body.replace_data("longer text");
  std::string sent;
  for (const auto& buffer : body.buffers()) {
    sent.append(static_cast<const char*>(buffer.data()), buffer.size());
  }
  EXPECT_EQ(sent, "b\r\nlonger text\r\n0\r\n\r\n");
  EXPECT_EQ(body.total(), 3U);
}

}  // namespace
}  // namespace gitops::proxy
