#include "common/core/encoding.hpp"

#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace gitops {
namespace {

using namespace std::string_literals;

TEST(Base64, AgreesWithRfc4648) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", ""},
      {"f", "Zg=="},
      {"fo", "Zm8="},
      {"foo", "Zm9v"},
      {"foob", "Zm9vYg=="},
      {"fooba", "Zm9vYmE="},
      {"foobar", "Zm9vYmFy"},
      {"\xfb\xff\xbf"s, "+/+/"},
  };
  for (const auto& [bytes, text] : cases) {
    EXPECT_EQ(base64_encode(bytes), text);
    EXPECT_EQ(base64_decode(text).value(), bytes);
  }
}

TEST(Base64, EveryByteSurvives) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) {
    bytes += static_cast<char>(i);
    EXPECT_EQ(base64_decode(base64_encode(bytes)).value(), bytes);
  }
}

TEST(Base64, PaddingMayBeMissingAndBlanksAreIgnored) {
  EXPECT_EQ(base64_decode("Zg").value(), "f");
  EXPECT_EQ(base64_decode("Zm8").value(), "fo");
  EXPECT_EQ(base64_decode(" Zm9v\r\n\tYmFy\n").value(), "foobar");
  EXPECT_EQ(base64_decode("Zg=\n=").value(), "f");
  // Blanks and errors at each place of a group, behind groups that are decoded as a whole.
  const auto text = base64_encode("0123456789abcdef");
  for (std::size_t at = 0; at <= text.size(); ++at) {
    auto blank = text;
    EXPECT_EQ(base64_decode(blank.insert(at, "\n")).value(), "0123456789abcdef") << at;
    auto wrong = text;
    EXPECT_FALSE(base64_decode(wrong.insert(at, "-"))) << at;
  }
}

TEST(Base64, RefusesEverythingElse) {
  for (const std::string_view text :
       {"Z", "Zm9vY", "Zg=", "Zg===", "=", "====", "Z===", "Zm8==", "Zm9v=", "Zg==Zg==", "Zm9-",
        "Zm9_", "Zm9!", "Zh==", "Zm9=", "Z\xc3\xa4=="}) {
    const auto decoded = base64_decode(text);
    ASSERT_FALSE(decoded) << text;
    EXPECT_EQ(decoded.error().code, ErrorCode::invalid_data);
  }
}

TEST(Base64Url, HasNoPaddingAndIsSafeInUrls) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", ""},        {"f", "Zg"},        {"fo", "Zm8"},
      {"foo", "Zm9v"}, {"foob", "Zm9vYg"}, {"\xfb\xff\xbf"s, "-_-_"},
      {"\xff"s, "_w"},
  };
  for (const auto& [bytes, text] : cases) {
    EXPECT_EQ(base64url_encode(bytes), text);
    EXPECT_EQ(base64url_decode(text).value(), bytes);
  }
}

TEST(Base64Url, EveryByteSurvives) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) {
    bytes += static_cast<char>(i);
    EXPECT_EQ(base64url_decode(base64url_encode(bytes)).value(), bytes);
  }
}

TEST(Base64Url, RefusesWhatItDoesNotWrite) {
  for (const std::string_view text : {"Z", "Zm9vY", "Zg==", "Zm8=", "=", "Zm9+", "Zm9/", "Zm9!",
                                      "Zm9v Zm9v", "Zm9v\n", "Zh", "Zm9", "Z\xc3\xa4"}) {
    EXPECT_FALSE(base64url_decode(text)) << text;
  }
}

TEST(PercentEncode, KeepsOnlyUnreservedCharacters) {
  EXPECT_EQ(percent_encode("AZaz09-._~"), "AZaz09-._~");
  EXPECT_EQ(percent_encode("a/b?c=d&e f+g%"), "a%2Fb%3Fc%3Dd%26e%20f%2Bg%25");
  EXPECT_EQ(percent_encode("\xc3\xa4\0"s), "%C3%A4%00");
  EXPECT_EQ(percent_encode(""), "");
}

TEST(PercentDecode, ReversesAndIsStrict) {
  EXPECT_EQ(percent_decode("a%2Fb%3fc+d").value(), "a/b?c+d");
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  EXPECT_EQ(percent_decode(percent_encode(bytes)).value(), bytes);
  for (const std::string_view text : {"%", "a%", "%1", "%zz", "%1g", "%%20", "% 1"}) {
    EXPECT_FALSE(percent_decode(text)) << text;
  }
}

TEST(JsonString, EscapesLikeGo) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", R"("")"},
      {"plain", R"("plain")"},
      {"quote \" and \\ back", R"("quote \" and \\ back")"},
      {"\b\f\n\r\t", R"("\b\f\n\r\t")"},
      {"\0\x01\x1f\x7f"s, "\"\\u0000\\u0001\\u001f\x7f\""},
      {"<script>&</script>", R"("\u003cscript\u003e\u0026\u003c/script\u003e")"},
      {"a\u2028b\u2029c", R"("a\u2028b\u2029c")"},
      {"\u00e4\u20ac\U0001f600", "\"\u00e4\u20ac\U0001f600\""},
      {"\ufffd", "\"\ufffd\""},
  };
  for (const auto& [text, json] : cases) EXPECT_EQ(json_string(text), json) << text;
}

TEST(JsonString, ReplacesEachInvalidByte) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"a\xff"
       "b",
       R"("a\ufffdb")"},
      {"\xc0\xaf", R"("\ufffd\ufffd")"},                      // overlong '/'
      {"\xe0\x80\xaf", R"("\ufffd\ufffd\ufffd")"},            // overlong
      {"\xed\xa0\x80", R"("\ufffd\ufffd\ufffd")"},            // surrogate
      {"\xf4\x90\x80\x80", R"("\ufffd\ufffd\ufffd\ufffd")"},  // above U+10FFFF
      {"\xf0\x9f\x98", R"("\ufffd\ufffd\ufffd")"},            // cut off
      {"\xe2\x82", R"("\ufffd\ufffd")"},                      // cut off
      {"\x80", R"("\ufffd")"},                                // lone continuation
      {"\xc3(", R"("\ufffd(")"},                              // wrong continuation
  };
  for (const auto& [text, json] : cases) EXPECT_EQ(json_string(text), json);
}

TEST(JsonString, MinimalKeepsHtmlReadable) {
  std::string out = "x=";
  append_json_string(out, "<a href=\"?a&b\">\n", JsonEscape::minimal);
  EXPECT_EQ(out, R"(x="<a href=\"?a&b\">\n")");
}

TEST(Utf8Length, KnowsTheBoundsOfEachLength) {
  const std::vector<std::pair<std::string, std::size_t>> cases = {
      {"", 0},
      {"a", 1},
      {"\x7f", 1},
      {"\xc2\x80", 2},
      {"\xdf\xbf", 2},
      {"\xe0\xa0\x80", 3},
      {"\xed\x9f\xbf", 3},
      {"\xee\x80\x80", 3},
      {"\xef\xbf\xbf", 3},
      {"\xf0\x90\x80\x80", 4},
      {"\xf4\x8f\xbf\xbf", 4},
      {"\xc1\xbf", 0},
      {"\xe0\x9f\xbf", 0},
      {"\xf0\x8f\xbf\xbf", 0},
      {"\xf5\x80\x80\x80", 0},
      {"\xc2", 0},
  };
  for (const auto& [text, length] : cases) EXPECT_EQ(utf8_length(text), length);
}

TEST(IsUtf8, LooksAtAllOfTheText) {
  EXPECT_TRUE(is_utf8(""));
  EXPECT_TRUE(is_utf8("a\xc2\x80z"));
  EXPECT_FALSE(is_utf8("a\xc2\x80z\xc2"));
  EXPECT_FALSE(
      is_utf8("\xff"
              "a"));
}

// The published vectors, and shard owners as the peer computes them (name modulo 3, 5 and 7).
TEST(Fnv1a, AgreesWithPublishedVectors) {
  EXPECT_EQ(fnv1a_32(""), 0x811c9dc5U);
  EXPECT_EQ(fnv1a_32("a"), 0xe40c292cU);
  EXPECT_EQ(fnv1a_32("foobar"), 0xbf9cf968U);
}

TEST(Fnv1a, AgreesWithThePeersShards) {
  struct Case {
    std::string_view name;
    std::uint32_t hash;
    std::uint32_t of3, of5, of7;
  };
  const std::vector<Case> cases = {
      {"app-0", 0xe1204e99U, 2, 3, 5},
      {"app-1", 0xe0204d06U, 0, 4, 0},
      {"app-2", 0xdf204b73U, 1, 0, 2},
      {"app-3", 0xde2049e0U, 2, 1, 4},
      {"app-4", 0xe52054e5U, 1, 4, 4},
      {"app-5", 0xe4205352U, 2, 0, 6},
      {"app-6", 0xe32051bfU, 0, 1, 1},
      {"app-7", 0xe220502cU, 1, 2, 3},
      {"app-8", 0xe9205b31U, 0, 0, 3},
      {"app-9", 0xe820599eU, 1, 1, 5},
      {"app-10", 0x08d98c02U, 1, 2, 3},
      {"app-11", 0x09d98d95U, 0, 1, 1},
      {"app-12", 0x06d988dcU, 0, 4, 0},
      {"app-13", 0x07d98a6fU, 2, 3, 5},
      {"app-14", 0x04d985b6U, 2, 1, 4},
      {"app-15", 0x05d98749U, 1, 0, 2},
      {"app-16", 0x02d98290U, 1, 3, 1},
      {"app-17", 0x03d98423U, 0, 2, 6},
      {"app-18", 0x10d9989aU, 2, 4, 1},
      {"app-19", 0x11d99a2dU, 1, 3, 6},
      {"in-cluster", 0xae0bd6c9U, 0, 0, 0},
      {"cf-gitops-runtime", 0x80a051d6U, 1, 3, 6},
      {"default-git-source", 0x2ceb3a63U, 1, 1, 5},
      {"guestbook", 0x5727742eU, 0, 3, 3},
      {"payments-prod", 0x488d2df0U, 0, 3, 4},
      {"payments-staging", 0xb712ef7aU, 1, 2, 2},
      {"a", 0xe40c292cU, 1, 0, 5},
      {"app_0", 0xee3b03bbU, 1, 2, 2},
      {"приложение", 0x0e25618fU, 0, 1, 3},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(fnv1a_32(c.name), c.hash) << c.name;
    EXPECT_EQ(c.hash % 3, c.of3) << c.name;
    EXPECT_EQ(c.hash % 5, c.of5) << c.name;
    EXPECT_EQ(c.hash % 7, c.of7) << c.name;
  }
}

}  // namespace
}  // namespace gitops
