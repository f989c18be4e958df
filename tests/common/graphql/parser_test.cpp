#include "common/graphql/parser.hpp"

#include <gmock/gmock.h>

namespace gitops::graphql {
namespace {

std::string error_of(std::string text, const ParseOptions& options = {}) {
  const auto document = parse(std::move(text), options);
  return document ? "" : std::to_string(document.error().at) + ": " + document.error().message;
}

TEST(GraphqlParser, ReadsOperationsAndFragments) {
  const auto document = parse(
      "query Q($a: [Int!]! = [1] @d) @e(x: {k: $a}) { alias: field(v: ENUM) { ...F ... on T { x } "
      "... @include(if: true) { y } } }\nfragment F on T { z }");
  ASSERT_TRUE(document);
  ASSERT_EQ((*document)->definitions().size(), 2u);
  const Operation& operation = *(*document)->definitions()[0].operation;
  EXPECT_EQ(operation.name.text, "Q");
  ASSERT_EQ(operation.variables.size(), 1u);
  EXPECT_EQ(operation.variables[0].type->form, TypeNode::Form::non_null);
  EXPECT_EQ(operation.variables[0].default_value->items.size(), 1u);
  const Selection& field = operation.selection_set->selections[0];
  EXPECT_EQ(field.response_key(), "alias");
  EXPECT_EQ(field.arguments[0].value.kind, LiteralKind::enumeration);
  ASSERT_EQ(field.selection_set->selections.size(), 3u);
  EXPECT_EQ(field.selection_set->selections[0].kind, Selection::Kind::spread);
  EXPECT_EQ(field.selection_set->selections[1].type_condition.text, "T");
  EXPECT_EQ(field.selection_set->selections[2].type_condition.text, "");
  EXPECT_EQ((*document)->fragment("F")->type_condition.text, "T");
}

TEST(GraphqlParser, SaysWhatItExpected) {
  EXPECT_EQ(error_of(""), "0: Unexpected <EOF>.");
  EXPECT_EQ(error_of("{"), "1: Expected Name, found <EOF>.");
  EXPECT_EQ(error_of("{}"), "1: Expected Name, found \"}\".");
  EXPECT_EQ(error_of("{ a(b: $) }"), "8: Expected Name, found \")\".");
  EXPECT_EQ(error_of("query ($a: Int = $b) { a }"),
            "17: Unexpected variable \"$b\" in constant value.");
  EXPECT_EQ(error_of("fragment on on T { a }"), "9: Unexpected Name \"on\".");
  EXPECT_EQ(error_of("notAKeyword { a }"), "0: Unexpected Name \"notAKeyword\".");
  EXPECT_EQ(error_of("\"text\" { a }"),
            "0: Unexpected description, descriptions are not supported on shorthand queries.");
}

TEST(GraphqlParser, CountsColumnsInUtf16) {
  const auto document = parse("{ a(b: \"\xf0\x9f\x98\x80\xc3\xbc\") c\r\n d }");
  ASSERT_TRUE(document);
  const auto& fields = (*document)->definitions()[0].operation->selection_set->selections;
  EXPECT_EQ((*document)->locate(fields[1].at), (Location{1, 15}));
  EXPECT_EQ((*document)->locate(fields[2].at), (Location{2, 2}));
}

TEST(GraphqlParser, FindsPlacesInLongDocuments) {
  std::string text = "{";
  for (int i = 0; i < 150; ++i) text += i % 20 == 0 ? "\r\n\xc3\xbc" : " #\xc3\xbc a\n b";
  const Document document{std::string(text)};
  Location expected;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\n' && at > 0 && text[at - 1] == '\r') continue;  // within a line end
    if ((static_cast<unsigned char>(text[at]) & 0xc0U) == 0x80U) continue;
    ASSERT_EQ(document.locate(static_cast<std::uint32_t>(at)), expected) << at;
    if (text[at] == '\n' || text[at] == '\r') {
      expected = {expected.line + 1, 1};
    } else {
      ++expected.column;
    }
  }
}

TEST(GraphqlParser, BoundsTokensAndNesting) {
  EXPECT_EQ(error_of("{ a b c }", {.max_tokens = 5}), "");
  EXPECT_EQ(error_of("{ a b c }", {.max_tokens = 4}),
            "8: Document contains more that 4 tokens. Parsing aborted.");
  const std::string deep = "{ a(b: " + std::string(100'000, '[');
  EXPECT_EQ(error_of(deep), "206: Document is nested more than 200 levels deep.");
  std::string sets;
  for (int i = 0; i < 100'000; ++i) sets += "{a";
  EXPECT_EQ(error_of(sets), "400: Document is nested more than 200 levels deep.");
  EXPECT_EQ(error_of("query($a:" + std::string(100'000, '[')),
            "209: Document is nested more than 200 levels deep.");
}

}  // namespace
}  // namespace gitops::graphql
