#include "common/graphql/lexer.hpp"

#include <vector>

#include <gmock/gmock.h>

namespace gitops::graphql {
namespace {

using testing::ElementsAre;

// The tokens of a text as "kind:value", and its error as "error@place: message".
std::vector<std::string> tokens(std::string_view text) {
  Arena arena;
  Lexer lexer(text, arena);
  std::vector<std::string> found;
  for (;;) {
    const Token token = lexer.next();
    if (lexer.error()) {
      found.push_back("error@" + std::to_string(lexer.error()->at) + ": " + lexer.error()->message);
      return found;
    }
    if (token.kind == TokenKind::end) return found;
    found.push_back(std::string(describe(token.kind)) + ":" + std::string(token.value));
  }
}

TEST(GraphqlLexer, SplitsAtBlanksCommasAndComments) {
  EXPECT_THAT(
      tokens("\xef\xbb\xbf{ a,b # c }\r\n ...on _X1 }"),
      ElementsAre("\"{\":{", "Name:a", "Name:b", "\"...\":...", "Name:on", "Name:_X1", "\"}\":}"));
}

TEST(GraphqlLexer, ReadsNumbers) {
  EXPECT_THAT(tokens("0 -12 1.50 2e3 -1.5E-7"),
              ElementsAre("Int:0", "Int:-12", "Float:1.50", "Float:2e3", "Float:-1.5E-7"));
  EXPECT_THAT(tokens("01"),
              ElementsAre("error@1: Invalid number, unexpected digit after 0: \"1\"."));
  EXPECT_THAT(tokens("1.x"),
              ElementsAre("error@2: Invalid number, expected digit but got: \"x\"."));
  EXPECT_THAT(tokens("-"), ElementsAre("error@1: Invalid number, expected digit but got: <EOF>."));
  EXPECT_THAT(tokens("1a"), ElementsAre("error@1: Invalid number, expected digit but got: \"a\"."));
}

TEST(GraphqlLexer, DecodesEscapes) {
  EXPECT_THAT(tokens(R"("a\n\u00e9\u{1F600}\uD83D\uDE00\"")"),
              ElementsAre("String:a\n\xc3\xa9\xf0\x9f\x98\x80\xf0\x9f\x98\x80\""));
  EXPECT_THAT(tokens(R"("\x")"),
              ElementsAre("error@1: Invalid character escape sequence: \"\\x\"."));
  EXPECT_THAT(tokens(R"("\uD83D")"),
              ElementsAre("error@1: Invalid Unicode escape sequence: \"\\uD83D\"."));
  EXPECT_THAT(tokens(R"("\u{110000}")"),
              ElementsAre("error@1: Invalid Unicode escape sequence: \"\\u{110000}\"."));
  EXPECT_THAT(tokens("\"open"), ElementsAre("error@5: Unterminated string."));
  EXPECT_THAT(tokens("\"a\nb\""), ElementsAre("error@2: Unterminated string."));
}

TEST(GraphqlLexer, TakesCommonIndentationOffBlockStrings) {
  EXPECT_THAT(tokens("\"\"\"\n    one\n      two \\\"\"\"\n\n    three\n  \"\"\""),
              ElementsAre("BlockString:one\n  two \"\"\"\n\nthree"));
  EXPECT_THAT(tokens("\"\"\"\"\"\""), ElementsAre("BlockString:"));
}

TEST(GraphqlLexer, NamesUnexpectedCharacters) {
  EXPECT_THAT(tokens("?"), ElementsAre("error@0: Unexpected character: \"?\"."));
  EXPECT_THAT(tokens("\x07"), ElementsAre("error@0: Unexpected character: U+0007."));
  EXPECT_THAT(tokens("\xf0\x9f\x98\x80"), ElementsAre("error@0: Unexpected character: U+1F600."));
  EXPECT_THAT(tokens("\xff"), ElementsAre("error@0: Invalid character: U+00FF."));
  EXPECT_THAT(tokens("'a'"), ElementsAre("error@0: Unexpected single quote character ('), did you "
                                         "mean to use a double quote (\")?"));
}

}  // namespace
}  // namespace gitops::graphql
