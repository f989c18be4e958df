#include "faults/history_model.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace gitops::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// An event about the application "web" of uid "u".
struct Event {
  std::uint64_t sequence = 1;
  std::string content = "a";  // empty: it is gone
  std::string sender = "pod-0";

  [[nodiscard]] FakePlatform::Report report() const {
    const nlohmann::json manifest{
        {"status", {{"content", content}, {"sync", {{"revision", "r0"}}}}}};
    FakePlatform::Report report;
    report.headers.set("User-Agent", sender);
    report.sequence = sequence;
    report.event_id =
        "u/application/" + std::to_string(sequence) + "/" + (content.empty() ? "gone" : content);
    report.data = {{"source",
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
  void receive(const Event& event) { model.receive(event.report()); }

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
  receive({.sequence = 2, .content = ""});
  EXPECT_THAT(model.lost(), IsEmpty());
}

TEST_F(HistoryModelTest, CountsEventsThatCameTwice) {
  receive({});
  receive({.sequence = 2});
  EXPECT_EQ(model.duplicates(), 0U);
  receive({});
  EXPECT_EQ(model.duplicates(), 1U);
  EXPECT_EQ(model.events(), 3U);
}

// As docs/events.md asks of a receiver.
TEST_F(HistoryModelTest, IgnoresAnEventWhoseSequenceIsNotAboveTheLastOne) {
  receive({.sequence = 5, .content = "a"});
  receive({.sequence = 4, .content = "b", .sender = "pod-1"});
  receive({.sequence = 3, .content = ""});
  EXPECT_THAT(model.lost(), IsEmpty());
  EXPECT_THAT(model.wrong(), IsEmpty()) << "another replica may be behind";
}

// Whatever the order in which the states were made.
TEST_F(HistoryModelTest, SeesAStaleStateThatIsAboveTheLastOne) {
  receive({.sequence = 5, .content = "a"});
  receive({.sequence = 6, .content = "b", .sender = "pod-1"});
  EXPECT_THAT(model.lost(), ElementsAre(HasSubstr("was reported as b")));
}

TEST_F(HistoryModelTest, SeesASwapOfTwoSequences) {
  model.app("u").state.content = "b";
  receive({.sequence = 6, .content = "a"});
  receive({.sequence = 5, .content = "b"});
  EXPECT_THAT(model.lost(), ElementsAre(HasSubstr("was reported as a")));
}

TEST_F(HistoryModelTest, SeesAFalseDeletion) {
  receive({.sequence = 5, .content = "a"});
  receive({.sequence = 6, .content = ""});
  EXPECT_THAT(model.lost(), ElementsAre(HasSubstr("exists, was reported gone")));
}

TEST_F(HistoryModelTest, SeesOneSequenceForTwoContents) {
  receive({.sequence = 5, .content = "a"});
  receive({.sequence = 5, .content = "b"});
  EXPECT_THAT(model.wrong(), ElementsAre(HasSubstr("one sequence for a")));
}

TEST_F(HistoryModelTest, SeesAnEventWithoutASequence) {
  receive({.sequence = 0});
  EXPECT_THAT(model.wrong(), ElementsAre(HasSubstr("without a sequence")));
}

}  // namespace
}  // namespace gitops::test
