#include "common/http/message.hpp"

#include <gtest/gtest.h>

#include "common/http/wire_text.hpp"

namespace gitops::http {
namespace {

TEST(Headers, FindsWithoutCase) {
  const Headers headers{{"Content-Type", "text/plain"}, {"X-A", "1"}, {"x-a", "2"}};
  EXPECT_EQ(headers.find("content-type"), "text/plain");
  EXPECT_EQ(headers.find("X-A"), "1");
  EXPECT_FALSE(headers.find("content-typ"));
}

TEST(Headers, SetReplacesEveryFieldOfTheName) {
  Headers headers{{"X-A", "1"}, {"B", "x"}, {"x-a", "2"}};
  headers.set("X-a", "3");
  EXPECT_EQ(headers.size(), 2u);
  EXPECT_EQ(headers.find("x-A"), "3");
  headers.erase("b");
  EXPECT_EQ(headers.size(), 1u);
}

TEST(Headers, FindsTokensInLists) {
  const Headers headers{{"Connection", "keep-alive ,\tUpgrade"}, {"connection", "close"}};
  EXPECT_TRUE(headers.has_token("Connection", "KEEP-ALIVE"));
  EXPECT_TRUE(headers.has_token("Connection", "upgrade"));
  EXPECT_TRUE(headers.has_token("Connection", "close"));
  EXPECT_FALSE(headers.has_token("Connection", "clos"));
  EXPECT_FALSE(headers.has_token("Connection", ""));
  EXPECT_FALSE(headers.has_token("TE", "close"));
}

TEST(Headers, JoinTheFieldsOfAList) {
  const Headers headers{{"X-Forwarded-For", "a, b"}, {"Y", "z"}, {"x-forwarded-for", "c"}};
  EXPECT_EQ(joined_values(headers, "X-Forwarded-For"), "a, b, c");
  EXPECT_EQ(joined_values(headers, "Y"), "z");
  EXPECT_EQ(joined_values(headers, "X"), "");
}

TEST(Message, CutsParametersOffAMediaType) {
  EXPECT_EQ(media_type("application/json"), "application/json");
  EXPECT_EQ(media_type("Application/JSON; charset=utf-8"), "Application/JSON");
  EXPECT_EQ(media_type(" text/plain\t ; q=\"a;b\""), "text/plain");
  for (const char* text : {"", " ", ";", " ; charset=utf-8"}) EXPECT_EQ(media_type(text), "");
  const Headers headers{{"content-type", "text/html;charset=utf-8"}};
  EXPECT_EQ(media_type(headers), "text/html");
  EXPECT_EQ(media_type(Headers()), "");
}

TEST(Message, TellsTokens) {
  EXPECT_TRUE(is_token("X-Trace_Id"));
  EXPECT_TRUE(is_token("!#$%&'*+-.^_`|~0aZ"));
  for (const char* text : {"", "a b", "a:", "a\r", "a\n", "\"a\"", "a/b", "\xc3\xa4", "a\t"}) {
    EXPECT_FALSE(is_token(text)) << text;
  }
  EXPECT_FALSE(is_token(std::string_view("a\0b", 3)));
}

TEST(Message, TellsFieldValues) {
  EXPECT_TRUE(is_field_value(""));
  EXPECT_TRUE(is_field_value("a b\tc \xc3\xa4"));
  for (const char* text : {"a\r\nX: y", "a\n", "\r", "\x7f", "\x01"})
    EXPECT_FALSE(is_field_value(text));
  EXPECT_FALSE(is_field_value(std::string_view("a\0b", 3)));
}

TEST(Message, KnowsReasonPhrases) {
  EXPECT_EQ(reason_phrase(200), "OK");
  EXPECT_EQ(reason_phrase(431), "Request Header Fields Too Large");
  EXPECT_EQ(reason_phrase(299), "Unknown");
}

TEST(Message, AC28_RedactsCredentials) {
  EXPECT_EQ(redacted("authorization", "Bearer canary"), "[redacted]");
  EXPECT_EQ(redacted("Cookie", "session=canary"), "[redacted]");
  EXPECT_EQ(redacted("Set-Cookie", "session=canary"), "[redacted]");
  EXPECT_EQ(redacted("Proxy-Authorization", "Basic canary"), "[redacted]");
  EXPECT_EQ(redacted("Accept", "*/*"), "*/*");
}

}  // namespace
}  // namespace gitops::http
