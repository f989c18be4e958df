#include "common/http/json_answer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gitops::http {
namespace {

using ::testing::HasSubstr;

Response answer(const std::string& media_type, std::string body) {
  Response response{.status = 200, .headers = {}, .body = std::move(body)};
  if (!media_type.empty()) response.headers.set("Content-Type", media_type);
  return response;
}

TEST(JsonAnswer, IsToldByItsMediaType) {
  for (const auto* type :
       {"application/json", "Application/JSON; charset=utf-8", " application/json ;a=b",
        "application/problem+json", "application/json;stream=watch", "text/json", ""}) {
    EXPECT_TRUE(may_be_json(answer(type, "{}"))) << type;
  }
  for (const auto* type : {"text/html", "text/plain", "application/xml", "application/jsonp",
                           "application/octet-stream", "json", ";"}) {
    EXPECT_EQ(may_be_json(answer(type, "{}")), type[0] == ';') << type;
  }
}

TEST(JsonAnswer, IsNoPageWhateverItsMediaTypeSays) {
  for (const auto* body : {"<!DOCTYPE html>", "\r\n <html>", "<"}) {
    EXPECT_FALSE(may_be_json(answer("application/json", body))) << body;
    EXPECT_FALSE(may_be_json(answer("", body))) << body;
  }
  for (const auto* body : {"", "{}", "[\"<\"]", "nonsense"}) {
    EXPECT_TRUE(may_be_json(answer("application/json", body))) << body;
  }
}

TEST(JsonAnswer, APageIsToldByItsMediaType) {
  EXPECT_TRUE(is_page({{"content-type", "TEXT/HTML; charset=utf-8"}}));
  EXPECT_TRUE(is_page({{"Content-Type", "application/xhtml+xml"}}));
  EXPECT_FALSE(is_page({{"Content-Type", "text/plain"}}));
  EXPECT_FALSE(is_page({}));
}

TEST(JsonAnswer, TheErrorSaysWhatCame) {
  EXPECT_THAT(not_json(answer("text/html; charset=utf-8", "<html>")),
              HasSubstr("200 with text/html instead of JSON"));
  EXPECT_THAT(not_json(answer("application/json", "<html>")),
              HasSubstr("200 with a page instead of JSON"));
}

}  // namespace
}  // namespace gitops::http
