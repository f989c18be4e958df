#include "app-proxy/providers/answer_cache.hpp"

#include <gtest/gtest.h>

namespace gitops::app_proxy {
namespace {

AnswerCache::Entry entry(std::size_t bytes) {
  return {.etag = "\"e\"", .headers = {}, .body = std::string(bytes, 'x')};
}

TEST(AnswerCache, KeepsTheAnswersOfEachTokenApart) {
  AnswerCache cache({});
  cache.put("anna", "/user", {.etag = "1", .headers = {{"Link", "l"}}, .body = "a"});
  cache.put("ben", "/user", {.etag = "2", .headers = {}, .body = "b"});
  ASSERT_NE(cache.find("anna", "/user"), nullptr);
  EXPECT_EQ(cache.find("anna", "/user")->body, "a");
  EXPECT_EQ(cache.find("anna", "/user")->headers.find("Link"), "l");
  EXPECT_EQ(cache.find("ben", "/user")->body, "b");
  EXPECT_EQ(cache.find("ben", "/other"), nullptr);
  cache.forget("anna");
  EXPECT_EQ(cache.find("anna", "/user"), nullptr);
  EXPECT_NE(cache.find("ben", "/user"), nullptr);
  cache.forget("ben", "/user");
  EXPECT_EQ(cache.bytes(), 0U);
}

TEST(AnswerCache, DropsWhatWasUsedLongestAgo) {
  AnswerCache cache({.bytes = 3'000, .bytes_of_owner = 3'000, .bytes_of_answer = 1'000});
  cache.put("a", "/1", entry(700));
  cache.put("a", "/2", entry(700));
  cache.put("a", "/3", entry(700));
  EXPECT_NE(cache.find("a", "/1"), nullptr);
  cache.put("a", "/4", entry(700));
  EXPECT_EQ(cache.find("a", "/2"), nullptr);
  EXPECT_NE(cache.find("a", "/1"), nullptr);
  EXPECT_LE(cache.bytes(), 3'000U);
  cache.put("a", "/large", entry(1'000));
  EXPECT_EQ(cache.find("a", "/large"), nullptr);
}

TEST(AnswerCache, OneTokenDoesNotPushOutTheOthers) {
  AnswerCache cache({.bytes = 10'000, .bytes_of_owner = 3'000, .bytes_of_answer = 1'000});
  cache.put("quiet", "/1", entry(700));
  for (int i = 0; i < 100; ++i) cache.put("loud", "/" + std::to_string(i), entry(700));
  EXPECT_NE(cache.find("quiet", "/1"), nullptr);
  EXPECT_LE(cache.bytes(), 4'000U);
  EXPECT_LE(cache.size(), 4U);
  EXPECT_NE(cache.find("loud", "/99"), nullptr);
}

TEST(AnswerCache, ReplacingCountsOnce) {
  AnswerCache cache({});
  for (int i = 0; i < 50; ++i) cache.put("a", "/1", entry(100));
  EXPECT_EQ(cache.size(), 1U);
  const auto bytes = cache.bytes();
  cache.forget("a");
  EXPECT_EQ(cache.bytes(), 0U);
  EXPECT_LT(bytes, 500U);
}

}  // namespace
}  // namespace gitops::app_proxy
