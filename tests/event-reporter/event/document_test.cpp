#include "event-reporter/event/document.hpp"

#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <simdjson.h>

namespace gitops::reporter {
namespace {

TEST(Document, HoldsEveryKindOfValue) {
  const std::string text =
      R"({"empty":"","text":"a \"quoted\" é","true":true,"false":false,"null":null,)"
      R"("negative":-9223372036854775808,"large":18446744073709551615,"double":0.5,)"
      R"("quote":34,"array":[1,[],{}],"object":{"a":{"b":["c"]}},"last":"end"})";
  Document document;
  const auto root = document.parse(text, "the text");
  ASSERT_TRUE(root);
  simdjson::dom::parser parser;
  EXPECT_EQ(root->to_text(), simdjson::minify(parser.parse(text).value()));
  EXPECT_EQ((*root)["last"].text(), "end");
  EXPECT_EQ((*root)["object"]["a"]["b"].items().size(), 1u);
}

TEST(Document, KeepsNumbersBeyond64BitsAsTheirText) {
  const std::string text = R"({"a":"b","n":[32000000000000000000,"x"],"z":18446744073709552000})";
  Document document;
  const auto root = document.parse(text, "the text");
  ASSERT_TRUE(root) << root.error().message;
  Document other;
  ASSERT_TRUE(other.parse(R"({"name":"another"})", "the text"));
  EXPECT_EQ(root->to_text(), text);
}

TEST(Document, StaysValidWhenItMovesAndWhenOthersAreParsed) {
  Document first;
  const auto root = first.parse(R"({"name":"first","list":["one","two"]})", "the text");
  ASSERT_TRUE(root);
  const auto name = (*root)["name"].text();
  const auto moved = std::move(first);
  const std::string longer = R"({"name":")" + std::string(std::size_t{1} << 20, 'x') + R"("})";
  Document second;
  const auto other = second.parse(longer, "the text");
  ASSERT_TRUE(other);
  EXPECT_EQ(name, "first");
  EXPECT_EQ(root->to_text(), R"({"name":"first","list":["one","two"]})");
  EXPECT_EQ((*other)["name"].text().size(), std::size_t{1} << 20);
}

TEST(Document, AnythingButAnObjectIsAnError) {
  for (const char* text : {"", "[]", "1", "{", R"({"a":})"}) {
    Document document;
    EXPECT_EQ(document.parse(text, "the text").error().code, ErrorCode::invalid_data) << text;
  }
  Document document;
  EXPECT_TRUE(document.parse("{}", "the text"));
}

}  // namespace
}  // namespace gitops::reporter
