#include "common/graphql/print.hpp"

#include <array>
#include <cstdio>
#include <map>

#include <gmock/gmock.h>

namespace gitops::graphql {
namespace {

using testing::ElementsAre;

TEST(GraphqlPrint, WritesNumbersAsJavaScriptDoes) {
  EXPECT_EQ(print_number(0), "0");
  EXPECT_EQ(print_number(-12), "-12");
  EXPECT_EQ(print_number(0.1), "0.1");
  EXPECT_EQ(print_number(1e20), "100000000000000000000");
  EXPECT_EQ(print_number(1e21), "1e+21");
  EXPECT_EQ(print_number(1.5e300), "1.5e+300");
  EXPECT_EQ(print_number(0.000001), "0.000001");
  EXPECT_EQ(print_number(1e-7), "1e-7");
  EXPECT_EQ(print_number(123.456), "123.456");
}

TEST(GraphqlPrint, SuggestsCloseNamesFirst) {
  EXPECT_THAT(suggestions("nam", {"size", "name", "names", "NAM"}),
              ElementsAre("NAM", "name", "names"));
  EXPECT_THAT(suggestions("zzz", {"name"}), ElementsAre());
  EXPECT_EQ(did_you_mean({}), "");
  EXPECT_EQ(did_you_mean({"a"}, "the enum value"), " Did you mean the enum value \"a\"?");
  EXPECT_EQ(did_you_mean({"a", "b"}), " Did you mean \"a\" or \"b\"?");
  EXPECT_EQ(did_you_mean({"a", "b", "c", "d", "e", "f"}),
            " Did you mean \"a\", \"b\", \"c\", \"d\", or \"e\"?");
}

TEST(GraphqlPrint, ComparesNumbersInNames) {
  EXPECT_TRUE(comes_before("a2", "a10"));
  EXPECT_FALSE(comes_before("a10", "a2"));
  EXPECT_TRUE(comes_before("a", "ab"));
}

TEST(Print, QuotesEveryByteAtEveryPlace) {
  for (int byte = 0; byte < 256; ++byte) {
    for (std::size_t before = 0; before < 20; ++before) {
      for (const std::size_t after : {std::size_t{0}, std::size_t{3}, std::size_t{17}}) {
        const auto c = static_cast<char>(byte);
        std::string expected;
        if (c == '"' || c == '\\') {
          expected = {'\\', c};
        } else if (byte >= 0x20) {
          expected = c;
        } else {
          const std::map<char, std::string> kShort = {
              {'\b', "\\b"}, {'\f', "\\f"}, {'\n', "\\n"}, {'\r', "\\r"}, {'\t', "\\t"}};
          const auto found = kShort.find(c);
          std::array<char, 8> code{};
          std::snprintf(code.data(), code.size(), "\\u%04x", static_cast<unsigned>(byte));
          expected = found != kShort.end() ? found->second : code.data();
        }
        const std::string a(before, 'a');
        const std::string z(after, '~');
        EXPECT_EQ(in_quotes(a + c + z), '"' + a + expected + z + '"')
            << byte << " after " << before;
      }
    }
  }
}

}  // namespace
}  // namespace gitops::graphql
