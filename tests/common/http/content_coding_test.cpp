#include "common/http/content_coding.hpp"

#include <algorithm>
#include <array>

#include <gmock/gmock.h>
#include <zlib.h>

#include "common/http/gzip.hpp"

namespace gitops::http {
namespace {

constexpr std::size_t kLimit = 100'000;

std::string zlib_compress(const std::string& text) {
  uLongf size = ::compressBound(text.size());
  std::string out(size, '\0');
  ::compress(reinterpret_cast<Bytef*>(out.data()), &size,
             reinterpret_cast<const Bytef*>(text.data()), text.size());
  out.resize(size);
  return out;
}

// The body, or the status of the error.
std::string decode(const Headers& headers, std::string_view body, std::size_t limit = kLimit,
                   std::size_t step = 7) {
  auto decoder = ContentDecoder::make(headers, limit);
  if (!decoder) return std::to_string(decoder.error().http_status);
  std::string out;
  while (!body.empty()) {
    if (auto fed = decoder->feed(body.substr(0, step), out); !fed) {
      return std::to_string(fed.error().http_status);
    }
    EXPECT_LE(out.size(), limit);
    body.remove_prefix(std::min(step, body.size()));
  }
  if (auto finished = decoder->finish(); !finished) {
    return std::to_string(finished.error().http_status);
  }
  return out;
}

TEST(ContentDecoder, UndoesTheCodingsThatARequestMayHave) {
  EXPECT_EQ(decode({}, "plain"), "plain");
  EXPECT_EQ(decode({{"Content-Encoding", "Identity"}}, "plain"), "plain");
  EXPECT_EQ(decode({{"content-encoding", " gzip "}}, gzip_compress("text")), "text");
  EXPECT_EQ(decode({{"Content-Encoding", "x-gzip"}}, gzip_compress("text")), "text");
  EXPECT_EQ(decode({{"Content-Encoding", "deflate"}}, zlib_compress("text")), "text");
  EXPECT_EQ(decode({{"Content-Encoding", "gzip"}}, ""), "");
}

TEST(ContentDecoder, RefusesOtherCodings) {
  for (const char* coding : {"br", "zstd", "gzip, gzip", "gzip,", "", "chunked", "compress"}) {
    EXPECT_EQ(decode({{"Content-Encoding", coding}}, "x"), "415") << coding;
  }
  EXPECT_EQ(decode({{"Content-Encoding", "gzip"}, {"Content-Encoding", "gzip"}}, "x"), "415");
}

// A coding of its own that a program may add: it leaves the bytes as they are.
class CopyingDecompressor final : public Decompressor {
 public:
  Result<void> feed(std::string_view bytes, std::string& out) override {
    out += bytes;
    return {};
  }
  [[nodiscard]] bool finished() const override { return true; }
};
constexpr std::array<ContentCoding, 1> kMore{
    {{"copy", [](std::size_t) -> std::unique_ptr<Decompressor> {
        return std::make_unique<CopyingDecompressor>();
      }}}};

TEST(ContentDecoder, AProgramMayAddACoding) {
  auto decoder = ContentDecoder::make({{"Content-Encoding", "Copy"}}, kLimit, kMore);
  ASSERT_TRUE(decoder);
  std::string out;
  EXPECT_TRUE(decoder->feed("text", out));
  EXPECT_EQ(out, "text");
  EXPECT_TRUE(decoder->finish());
  EXPECT_TRUE(ContentDecoder::make({{"Content-Encoding", "gzip"}}, kLimit, kMore));
  const auto refused = ContentDecoder::make({{"Content-Encoding", "br"}}, kLimit, kMore);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("gzip, deflate, copy, identity"));
}

TEST(ContentDecoder, RefusesWhatIsCorrupt) {
  const std::string good = gzip_compress("some text that is long enough");
  EXPECT_EQ(decode({{"Content-Encoding", "gzip"}}, "plain text"), "400");
  EXPECT_EQ(decode({{"Content-Encoding", "gzip"}}, good.substr(0, good.size() - 1)), "400");
  EXPECT_EQ(decode({{"Content-Encoding", "gzip"}}, good + "tail"), "400");
}

TEST(ContentDecoder, AC07_ABombIsNotInflated) {
  const std::string bomb = gzip_compress(std::string(20'000'000, '\0'), 9);
  ASSERT_LT(bomb.size(), kLimit);
  EXPECT_EQ(decode({{"Content-Encoding", "gzip"}}, bomb, kLimit, bomb.size()), "413");
  EXPECT_EQ(decode({}, std::string(11, 'x'), 10), "413");
  EXPECT_EQ(decode({}, std::string(10, 'x'), 10), std::string(10, 'x'));
  EXPECT_EQ(decode({{"Content-Encoding", "gzip"}}, gzip_compress(std::string(10, 'x')), 10),
            std::string(10, 'x'));
}

}  // namespace
}  // namespace gitops::http
