#include "control-plane/intake/zstd_coding.hpp"

#include <algorithm>
#include <zstd.h>

#include <gtest/gtest.h>

namespace gitops::control_plane_server {
namespace {

constexpr std::size_t kLimit = 100'000;

std::string zstd_compress(std::string_view text, int window_log = 0) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  if (window_log > 0) ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, window_log);
  std::string out(ZSTD_compressBound(text.size()) + 100, '\0');
  // A stream of unknown size, whose frame states its window.
  ZSTD_inBuffer in{.src = text.data(), .size = text.size(), .pos = 0};
  ZSTD_outBuffer to{.dst = out.data(), .size = out.size(), .pos = 0};
  ZSTD_compressStream2(context, &to, &in, ZSTD_e_flush);
  ZSTD_compressStream2(context, &to, &in, ZSTD_e_end);
  ZSTD_freeCCtx(context);
  out.resize(to.pos);
  return out;
}

// The body, or the status of the error.
std::string decode(std::string_view body, std::size_t limit = kLimit, std::size_t step = 7) {
  auto decoder =
      http::ContentDecoder::make({{"Content-Encoding", "zstd"}}, limit, {&kZstdCoding, 1});
  if (!decoder) return std::to_string(decoder.error().http_status);
  std::string out;
  while (!body.empty()) {
    if (const auto fed = decoder->feed(body.substr(0, step), out); !fed) {
      return std::to_string(fed.error().http_status);
    }
    EXPECT_LE(out.size(), limit);
    body.remove_prefix(std::min(step, body.size()));
  }
  if (const auto finished = decoder->finish(); !finished) {
    return std::to_string(finished.error().http_status);
  }
  return out;
}

TEST(ZstdCoding, ABodyIsDecodedInPartsOfAnySize) {
  std::string text;
  for (int i = 0; i < 8'000; ++i) text += std::to_string(i * 7919);
  text.resize(60'000);
  const auto packed = zstd_compress(text);
  for (const std::size_t step : {std::size_t{1}, std::size_t{7}, packed.size()}) {
    EXPECT_EQ(decode(packed, kLimit, step), text) << step;
  }
  EXPECT_EQ(decode(""), "") << "a request without a body may name a coding";
}

TEST(ZstdCoding, SeveralFramesAreOneBody) {
  EXPECT_EQ(decode(zstd_compress("some ") + zstd_compress("text")), "some text");
  EXPECT_EQ(decode(zstd_compress("a") + zstd_compress("b"), kLimit, 1), "ab");
}

TEST(ZstdCoding, RefusesWhatIsCorrupt) {
  const auto good = zstd_compress("some text that is long enough");
  EXPECT_EQ(decode("plain text"), "400");
  EXPECT_EQ(decode(good.substr(0, good.size() - 1)), "400");
  EXPECT_EQ(decode(good + "tail"), "400");
}

TEST(ZstdCoding, AC07_ABombIsNotInflated) {
  const auto bomb = zstd_compress(std::string(20'000'000, '\0'));
  ASSERT_LT(bomb.size(), kLimit);
  EXPECT_EQ(decode(bomb, kLimit, bomb.size()), "413");
  EXPECT_EQ(decode(zstd_compress(std::string(10, 'x')), 10), std::string(10, 'x'));
  EXPECT_EQ(decode(zstd_compress(std::string(11, 'x')), 10), "413");
}

TEST(ZstdCoding, AFrameMayNotAskForALargeWindow) {
  EXPECT_EQ(decode(zstd_compress("text", 23)), "text");
  EXPECT_EQ(decode(zstd_compress("text", 24)), "400");
}

}  // namespace
}  // namespace gitops::control_plane_server
