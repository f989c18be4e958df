#include "common/core/json_value.hpp"

#include <limits>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace gitops {
namespace {

TEST(JsonValue, ReadsWhatIsThere) {
  const auto json = parse_json_object(R"({"a":{"b":"text","n":-7},"list":[1]})");
  EXPECT_EQ(string_at(json, {"a", "b"}), "text");
  EXPECT_EQ(integer_at(json, {"a", "n"}), -7);
  EXPECT_EQ(value_at(json, {"list"}).size(), 1U);
  EXPECT_EQ(&value_at(json, {}), &json);
}

TEST(JsonValue, GivesNothingForWhatIsMissingOrOfAnotherType) {
  const auto json = parse_json_object(R"({"a":{"b":"text"},"n":1.5,"s":[]})");
  EXPECT_TRUE(value_at(json, {"x"}).is_null());
  EXPECT_TRUE(value_at(json, {"a", "b", "c"}).is_null());
  EXPECT_TRUE(value_at(json, {"s", "0"}).is_null());
  EXPECT_EQ(string_at(json, {"n"}), "");
  EXPECT_EQ(string_at(json, {"a"}), "");
  EXPECT_EQ(integer_at(json, {"n"}), std::nullopt);
  EXPECT_EQ(integer_at(json, {"a", "b"}), std::nullopt);
}

TEST(JsonValue, GivesNoIntegerThatDoesNotFit) {
  const auto json = parse_json_object(
      R"({"most":9223372036854775807,"more":9223372036854775808,"least":-9223372036854775808})");
  EXPECT_EQ(integer_at(json, {"most"}), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(integer_at(json, {"more"}), std::nullopt);
  EXPECT_EQ(integer_at(json, {"least"}), std::numeric_limits<std::int64_t>::min());
}

TEST(JsonValue, TakesOnlyObjects) {
  for (const std::string_view text : {"", "[1]", "\"a\"", "null", "{", "{}x"}) {
    EXPECT_TRUE(parse_json_object(text).is_null()) << text;
  }
  EXPECT_TRUE(parse_json_object("{}").is_object());
}

TEST(JsonValue, WritesValidTextWhateverTheBytes) {
  EXPECT_EQ(to_text({{"a", "\xff"}}), "{\"a\":\"\xEF\xBF\xBD\"}");
}

}  // namespace
}  // namespace gitops
