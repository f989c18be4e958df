#include "event-reporter/delivery/journal.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace gitops::reporter {
namespace {

using Json = nlohmann::json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

Journal::Entry entry(const std::string& id, std::string_view result = "acknowledged") {
  return {.time = WallTime(std::chrono::milliseconds(1'772'615'727'412)),
          .part = "resource",
          .event_id = id,
          .attempt = 2,
          .result = result,
          .http_status = 200,
          .bytes = 1234,
          .took = std::chrono::milliseconds(56)};
}

std::vector<std::string> ids(const std::string& text) {
  std::vector<std::string> out;
  for (const auto& delivery : Json::parse(text)["deliveries"]) out.push_back(delivery["event_id"]);
  return out;
}

TEST(Journal, TellsEverythingButTheContent) {
  Journal journal({});
  journal.add("shop/web apps/Deployment:shop/web", entry("uid/7/x"));
  EXPECT_EQ(Json::parse(journal.json("shop/web")), Json::parse(R"({"deliveries":[{
              "subject": "shop/web apps/Deployment:shop/web", "time": "2026-03-04T09:15:27.412Z",
              "part": "resource", "event_id": "uid/7/x", "attempt": 2, "result": "acknowledged",
              "http_status": 200, "bytes": 1234, "milliseconds": 56}]})"));
}

TEST(Journal, ShowsWhatWasRefused) {
  Journal journal({});
  journal.add("shop/web", entry("1"));
  const auto refused = [](std::string_view object) { return "[\"" + std::string(object) + "\"]"; };
  EXPECT_EQ(Json::parse(journal.answer("object=shop/web", refused))["refused"][0], "shop/web");
  EXPECT_EQ(Json::parse(journal.answer("limit=5", refused))["refused"][0], "");
  EXPECT_FALSE(Json::parse(journal.answer("limit=5")).contains("refused"));
}

TEST(Journal, KeepsTheLastFewOfEachObjectNewestFirst) {
  Journal journal({.per_object = 3});
  for (const char* id : {"1", "2", "3", "4", "5"}) journal.add("shop/web", entry(id));
  journal.add("shop/api", entry("6"));
  EXPECT_THAT(ids(journal.json("shop/web")), ElementsAre("5", "4", "3"));
  EXPECT_THAT(ids(journal.json_all(10)), ElementsAre("6", "5", "4", "3"));
  EXPECT_THAT(ids(journal.json_all(1)), ElementsAre("6"));
}

TEST(Journal, AnObjectIsTheApplicationWithItsResources) {
  Journal journal({});
  journal.add("shop/web", entry("application"));
  journal.add("shop/web-2", entry("another"));
  journal.add("shop/web /Service:shop/web", entry("service"));
  journal.add("shop/we", entry("shorter"));
  journal.add("shop/web apps/Deployment:shop/web", entry("deployment"));
  journal.add("shop/web.x", entry("dotted"));
  EXPECT_THAT(ids(journal.json("shop/web")), ElementsAre("deployment", "service", "application"));
  EXPECT_THAT(ids(journal.json("shop/web /Service:shop/web")), ElementsAre("service"));
  EXPECT_THAT(ids(journal.json("shop/w")), IsEmpty());
  EXPECT_THAT(ids(journal.json("zzz")), IsEmpty());
}

TEST(Journal, ForgetsTheObjectDeliveredLongestAgoFirst) {
  Journal journal({.per_object = 5, .max_bytes = 20'000});
  for (int i = 0; i < 1000; ++i) {
    journal.add("ns/app-" + std::to_string(i), entry("first"));
    journal.add("ns/busy", entry("again " + std::to_string(i)));
    ASSERT_LE(journal.bytes(), 20'000U);
  }
  EXPECT_GT(journal.subjects(), 10U);
  EXPECT_THAT(ids(journal.json("ns/app-0")), IsEmpty());
  EXPECT_THAT(ids(journal.json("ns/app-999")), ElementsAre("first"));
  EXPECT_EQ(ids(journal.json("ns/busy")).size(), 5U);
}

TEST(Journal, AnObjectThatIsTooLargeIsForgottenWhole) {
  Journal journal({.per_object = 5, .max_bytes = 1000});
  journal.add("ns/app", entry(std::string(5000, 'x')));
  EXPECT_EQ(journal.subjects(), 0U);
  EXPECT_EQ(journal.bytes(), 0U);
}

TEST(Journal, AnswersAQuery) {
  Journal journal({});
  for (int i = 0; i < 150; ++i) journal.add("ns/app-" + std::to_string(i), entry("e"));
  journal.add("shop/web /ConfigMap:shop/a", entry("map"));
  EXPECT_THAT(ids(journal.answer("object=shop%2Fweb")), ElementsAre("map"));
  EXPECT_THAT(ids(journal.answer("x=1&object=shop/web+%2FConfigMap:shop/a&limit=0")),
              ElementsAre("map"));
  EXPECT_THAT(ids(journal.answer("object=nobody/nothing")), IsEmpty());
  EXPECT_EQ(ids(journal.answer("")).size(), 100U);
  EXPECT_EQ(ids(journal.answer("limit=7")).size(), 7U);
  for (const char* odd :
       {"limit=-1", "limit=x", "limit=", "limit", "object=%zz", "&&=&", "object"}) {
    EXPECT_EQ(ids(journal.answer(odd)).size(), 100U) << odd;
  }
}

TEST(Journal, WritesJsonWhateverTheNames) {
  Journal journal({});
  const std::string odd = "a\"b\\\n\xff/x";
  journal.add(odd, entry(odd));
  EXPECT_EQ(ids(journal.json_all(1)).at(0), "a\"b\\\n\xef\xbf\xbd/x");
}

}  // namespace
}  // namespace gitops::reporter
