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

TEST(AnswerCache, AnAnswerIsFreshAsLongAsItsHostSays) {
  const auto fresh = [](const char* cache_control) {
    return fresh_for({{"Cache-Control", cache_control}}).count();
  };
  EXPECT_EQ(fresh("private, max-age=60, s-maxage=60"), 60) << "GitHub";
  EXPECT_EQ(fresh("max-age=0, private, must-revalidate, no-transform"), 0) << "Gitea, GitLab";
  EXPECT_EQ(fresh_for({}).count(), 0);
  EXPECT_EQ(fresh("max-age=7"), 7);
  EXPECT_EQ(fresh("Max-Age = \"7\""), 7);
  EXPECT_EQ(fresh("max-age=86400"), 60) << "people see a change after a minute";
  EXPECT_EQ(fresh("max-age=30, max-age=5"), 5);
  for (const char* never :
       {"", "private", "no-store, max-age=60", "max-age=60,NO-CACHE",
        "no-cache=\"Set-Cookie\", max-age=60", "max-age", "max-age=", "max-age=-1", "max-age=1x",
        "max-age=99999999999999999999", "s-maxage=60"}) {
    EXPECT_EQ(fresh(never), 0) << never;
  }
  EXPECT_EQ(fresh_for({{"Cache-Control", "max-age=60"}, {"Age", "50"}}).count(), 10);
  EXPECT_EQ(fresh_for({{"Cache-Control", "max-age=60"}, {"Age", "60"}}).count(), 0);
  EXPECT_EQ(fresh_for({{"Cache-Control", "max-age=60"}, {"Age", "old"}}).count(), 0);
  EXPECT_EQ(fresh_for({{"Cache-Control", "max-age=60"}, {"cache-control", "no-store"}}).count(), 0);
}

TEST(AnswerCache, APageCountsWithItsTexts) {
  AnswerCache cache({.bytes = 100'000, .bytes_of_owner = 20'000, .bytes_of_answer = 10'000});
  const auto page = [](std::size_t texts) {
    auto made = std::make_shared<HostPage>();
    made->repositories.emplace_back().full_name = std::string(texts, 'x');
    return AnswerCache::Entry{.etag = {}, .headers = {}, .body = {}, .page = made};
  };
  cache.put("a", "/large", page(10'000));
  EXPECT_EQ(cache.find("a", "/large"), nullptr);
  for (int i = 0; i < 100; ++i) cache.put("a", "/" + std::to_string(i), page(5'000));
  EXPECT_LE(cache.bytes(), 20'000U);
  EXPECT_GT(cache.bytes(), 10'000U);
  EXPECT_EQ(cache.find("a", "/0"), nullptr);
  EXPECT_NE(cache.find("a", "/99"), nullptr);
}

TEST(AnswerCache, WhatATokenChangesEndsItsFreshnessOnly) {
  AnswerCache cache({});
  const auto later = Clock::now() + std::chrono::seconds(60);
  for (const char* owner : {"anna", "ben"}) {
    cache.put(owner, "/1", {.etag = "1", .headers = {}, .body = "b", .fresh_until = later});
  }
  cache.expire("anna");
  EXPECT_EQ(cache.find("anna", "/1")->fresh_until, Clock::time_point());
  EXPECT_EQ(cache.find("anna", "/1")->body, "b");
  EXPECT_EQ(cache.find("ben", "/1")->fresh_until, later);
  cache.renew("anna", "/1", later);
  EXPECT_EQ(cache.find("anna", "/1")->fresh_until, later);
  cache.renew("anna", "/unknown", later);
  EXPECT_EQ(cache.size(), 2U);
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
