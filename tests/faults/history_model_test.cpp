#include "faults/history_model.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace gitops::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr WallTime kNoon{std::chrono::milliseconds(1'772'625'600'000)};

// An event about the application "web" of uid "u".
struct Event {
  std::string version = "1";
  std::string content = "a";  // empty: it is gone
  std::chrono::milliseconds at{0};
  std::string sender = "pod-0";
  std::chrono::hours clock{0};  // by which the sender is wrong

  [[nodiscard]] FakePlatform::Report report() const {
    const nlohmann::json manifest{
        {"status", {{"content", content}, {"sync", {{"revision", "r0"}}}}}};
    FakePlatform::Report report;
    report.headers.set("User-Agent", sender);
    report.event_id = "u/" + version + "/application/" + (content.empty() ? "gone" : content);
    report.data = {{"timestamp", format_rfc3339_millis(kNoon + at + clock)},
                   {"source",
                    {{"actualManifest", content.empty() ? "" : manifest.dump()},
                     {"syncStatus", "Synced"},
                     {"healthStatus", "Healthy"}}}};
    report.object = {{"kind", "Application"}, {"metadata", {{"name", "web"}}}};
    return report;
  }
};

struct HistoryModelTest : testing::Test {
  HistoryModelTest() {
    model.add("u", "web").state = {
        .content = "a", .revision = "r0", .sync = "Synced", .health = "Healthy"};
  }
  void receive(const Event& event) { model.receive(event.report(), kNoon + event.at); }

  HistoryModel model;
};

TEST_F(HistoryModelTest, SeesWhatWasNeverReportedAndWhatIsOutdated) {
  EXPECT_THAT(model.lost(), ElementsAre(HasSubstr("never reported")));
  receive({});
  EXPECT_THAT(model.lost(), IsEmpty());
  model.app("u").state.content = "b";
  EXPECT_THAT(model.lost(), ElementsAre(HasSubstr("is b")));
}

TEST_F(HistoryModelTest, SeesADeletionThatWasNotReported) {
  receive({});
  model.app("u").deleting = true;
  EXPECT_THAT(model.lost(), ElementsAre(HasSubstr("is being deleted")));
  model.remove("u");
  EXPECT_THAT(model.lost(), ElementsAre(HasSubstr("was not reported gone")));
  receive({.version = "2", .content = ""});
  EXPECT_THAT(model.lost(), IsEmpty());
}

TEST_F(HistoryModelTest, CountsEventsThatCameTwice) {
  receive({});
  receive({.version = "2"});
  EXPECT_EQ(model.duplicates(), 0U);
  receive({});
  EXPECT_EQ(model.duplicates(), 1U);
  EXPECT_EQ(model.events(), 3U);
}

TEST_F(HistoryModelTest, SeesASenderThatGoesBack) {
  receive({.version = "5", .at = std::chrono::seconds(1)});
  receive({.version = "4", .at = std::chrono::seconds(2), .sender = "pod-1"});
  EXPECT_THAT(model.wrong(), IsEmpty()) << "another one may be behind";
  receive({.version = "3", .at = std::chrono::seconds(3)});
  EXPECT_THAT(model.wrong(), ElementsAre(HasSubstr("resourceVersion 3 after 5")));
}

TEST_F(HistoryModelTest, TakesOffTheHoursThatAClockIsWrongBy) {
  receive({.version = "3", .at = std::chrono::seconds(1), .clock = std::chrono::hours(7)});
  receive({.version = "4", .at = std::chrono::seconds(2), .clock = std::chrono::hours(-30)});
  EXPECT_THAT(model.wrong(), IsEmpty());
  EXPECT_THAT(model.lost(), IsEmpty());
}

}  // namespace
}  // namespace gitops::test
