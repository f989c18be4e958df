#include "common/core/json_text.hpp"

#include <gtest/gtest.h>

namespace gitops::reporter {
namespace {

TEST(JsonText, VisitsMembersWithTheirTextAsWritten) {
  std::vector<std::string> seen;
  for_each_member(R"( { "a" : 1.50 , "b":{"x":[1,"}"]} ,"c":"q\"," , "d":null } )",
                  [&](std::string_view key, std::string_view value) {
                    seen.push_back(std::string(key) + "=" + std::string(value));
                    return true;
                  });
  EXPECT_EQ(seen,
            (std::vector<std::string>{"a=1.50", R"(b={"x":[1,"}"]})", R"(c="q\",")", "d=null"}));
}

TEST(JsonText, ReplacesOneMemberAndLeavesTheRestAsItWas) {
  const auto edited =
      edit_member(R"({"a": 1, "b" :{"c":2} ,"d":3})", "b",
                  [](std::string_view old) { return "[" + std::string(old) + "]"; });
  EXPECT_EQ(edited, R"({"a": 1, "b" :[{"c":2}] ,"d":3})");
}

TEST(JsonText, AddsAMissingMember) {
  const auto one = [](std::string_view old) {
    EXPECT_TRUE(old.empty());
    return std::string("1");
  };
  EXPECT_EQ(edit_member("{}", "a", one), R"({"a":1})");
  EXPECT_EQ(edit_member(R"({ "b":2})", "a", one), R"({"a":1, "b":2})");
  EXPECT_EQ(edit_member(R"({"b":{"a":2}})", "a", one), R"({"a":1,"b":{"a":2}})");
}

TEST(JsonText, LeavesAnObjectWithoutTheMemberAlone) {
  const auto one = [](std::string_view) { return std::string("1"); };
  EXPECT_EQ(edit_present_member(R"({"b":{"a":2}})", "a", one), R"({"b":{"a":2}})");
  EXPECT_EQ(edit_present_member(R"({"b":{"a":2}})", "b", one), R"({"b":1})");
}

TEST(JsonText, WritesMembersInTheOrderOfTheCalls) {
  std::string out;
  ObjectWriter writer(out);
  writer.text("z", "a\"b");
  ObjectWriter inner(writer.begin("inner"));
  inner.end();
  writer.raw("a", "[1]");
  writer.end();
  EXPECT_EQ(out, R"({"z":"a\"b","inner":{},"a":[1]})");
}

TEST(JsonText, SetsStringsInAnObjectThatMayBeMissing) {
  EXPECT_EQ(with_strings("", {{"k", "v<\"x"}}), R"({"k":"v\u003c\"x"})");
  EXPECT_EQ(with_strings("null", {{"k", "v"}}), R"({"k":"v"})");
  EXPECT_EQ(with_strings(R"({"k":"old","z":""})", {{"k", "new"}}), R"({"k":"new","z":""})");
}

TEST(JsonText, VisitsTheItemsOfAnArray) {
  const auto items = [](std::string_view array) {
    std::vector<std::string> out;
    for_each_item(array, [&out](std::string_view item) { out.emplace_back(item); });
    return out;
  };
  EXPECT_EQ(items(R"( [ {"a":"],"} ,[1, 2],"x\"," ,3 ] )"),
            (std::vector<std::string>{R"({"a":"],"})", "[1, 2]", R"("x\",")", "3"}));
  EXPECT_TRUE(items("[]").empty());
  EXPECT_TRUE(items("null").empty());
}

TEST(JsonText, AC25_GarbageIsNotReadBeyondItsEnd) {
  for (const std::string text : {"",        "{",           "{\"",  "{\"a",      "{\"a\"",
                                 "{\"a\":", "{\"a\":\"\\", "[1]",  "{\"a\":1,", "{\"a\":{\"b\":[",
                                 "}",       "{]}",         "null", "{\"a\"}",   "[",
                                 "[1",      "[1,",         "[,",   "[\"",       "[}",
                                 "[[",      "[1 2"}) {
    for_each_member(text, [](std::string_view, std::string_view) { return true; });
    for_each_item(text, [](std::string_view) {});
    edit_member(text, "x", [](std::string_view) { return std::string("1"); });
  }
}

TEST(JsonText, AbsentPlacesReadAsNothing) {
  simdjson::dom::parser parser;
  const JsonView root(parser.parse(std::string_view(R"({"a":{"b":"x","n":7,"z":null}})")).value());
  EXPECT_EQ(root["a"]["b"].text(), "x");
  EXPECT_EQ(root["a"]["n"].number(), 7);
  EXPECT_FALSE(root["a"]["z"].exists());
  EXPECT_EQ(root["no"]["such"]["place"].text(), "");
  EXPECT_EQ(root["a"]["b"].items().size(), 0U);
  EXPECT_EQ(root["a"]["b"].members().size(), 0U);
}

}  // namespace
}  // namespace gitops::reporter
