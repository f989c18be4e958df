#include "event-reporter/delivery/intake_history.hpp"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "event-reporter/delivery/delivery_fixture.hpp"

namespace gitops::reporter {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct IntakeHistoryTest : testing::Test {
  Loop loop;
  IntakeHistory history{loop.get_executor()};
  std::vector<std::string> kept;

  void begin(const std::string& position = {}) {
    history.begin("app/0/1", position, [this](const std::string& now) { kept.push_back(now); });
  }
};

TEST_F(IntakeHistoryTest, TheLastPositionIsKept) {
  begin("e:1");
  EXPECT_EQ(history.position(), "e:1");
  history.acknowledged("e:2", "");
  history.acknowledged("", "");
  history.acknowledged("e:2", "");
  EXPECT_EQ(history.position(), "e:2");
  EXPECT_THAT(kept, ElementsAre("e:2"));
}

TEST_F(IntakeHistoryTest, HeadsThatCannotBeSentAgainAreIgnored) {
  begin("a\nb");
  EXPECT_EQ(history.position(), "");
  history.acknowledged(std::string(201, 'e'), std::string(201, 't'));
  history.acknowledged("a\nb", "a\nb");
  EXPECT_EQ(history.position(), "");
  EXPECT_EQ(history.resync(), "");
  EXPECT_THAT(kept, IsEmpty());
}

TEST_F(IntakeHistoryTest, NothingIsHeardWithoutAName) {
  history.acknowledged("e:1", "t");
  EXPECT_EQ(history.position(), "");
  EXPECT_EQ(history.resync(), "");
}

TEST_F(IntakeHistoryTest, AnEndedResyncIsNotAskedForAgain) {
  begin();
  history.acknowledged("e:1", "t");
  EXPECT_EQ(history.resync(), "t");
  history.end_resync("t");
  history.acknowledged("e:2", "t");
  EXPECT_EQ(history.resync(), "") << "the answer was under way";
  history.acknowledged("e:3", "u");
  EXPECT_EQ(history.resync(), "u");
  history.end_resync("t");
  EXPECT_EQ(history.resync(), "u");
}

TEST(DeliveryHeads, AnEventTellsItsReporterAndThePositionOfTheLastAnswer) {
  with_delivery([](DeliveryFixture& fixture) -> Task<> {
    auto& history = fixture.delivery.history();
    CO_ASSERT_OK(co_await fixture.deliver(event("before")));
    history.begin("app/0/1", "", [](const std::string&) {});
    fixture.platform.acknowledge_with("e:1", "t");
    CO_ASSERT_OK(co_await fixture.deliver(event("first")));
    EXPECT_EQ(co_await history.next_resync(), "t");
    CO_ASSERT_OK(co_await fixture.deliver(event("second")));
    const auto& reports = fixture.platform.reports();
    EXPECT_FALSE(reports[0].headers.find("X-Reporter"));
    EXPECT_EQ(reports[1].headers.find("X-Reporter"), "app/0/1");
    EXPECT_FALSE(reports[1].headers.find("X-Intake-Seen"));
    EXPECT_EQ(reports[2].headers.find("X-Intake-Seen"), "e:1");
  });
}

}  // namespace
}  // namespace gitops::reporter
