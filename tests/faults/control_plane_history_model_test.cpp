// The model that judges the control plane: it finds each kind of loss, and accepts all that a control plane may do.
#include "faults/control_plane_history_model.hpp"

#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gitops::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

PostedEvent event(std::uint64_t sequence, const std::string& content,
                  const std::string& uid = "uid") {
  return {.object = "o", .sequence = sequence, .content = content, .uid = uid};
}

StoredObject stored(std::uint64_t sequence, const std::string& content,
                    const std::string& uid = "uid") {
  return {.object = "o",
          .sequence = sequence,
          .content = content,
          .uid = uid,
          .is_gone = content.empty()};
}

struct ControlPlaneHistoryModelTest : testing::Test {
  void acknowledged(const PostedEvent& event) {
    model.post(event);
    model.acknowledge(event);
  }
  std::vector<std::string> lost(std::vector<StoredObject> rows) const { return model.lost(rows); }
  std::vector<std::string> wrong(std::vector<StoredObject> rows) const { return model.wrong(rows); }

  ControlPlaneHistoryModel model;
};

TEST_F(ControlPlaneHistoryModelTest, AcceptsTheNewestAcknowledgedEvent) {
  acknowledged(event(5, "a"));
  acknowledged(event(7, "b"));
  acknowledged(event(5, "a"));  // a repeat
  EXPECT_THAT(lost({stored(7, "b")}), IsEmpty());
  EXPECT_THAT(wrong({stored(7, "b")}), IsEmpty());
  EXPECT_EQ(model.attempts(), 3U);
  EXPECT_EQ(model.events(), 2U);
  EXPECT_EQ(model.acknowledged(), 2U);
}

TEST_F(ControlPlaneHistoryModelTest, FindsALostEvent) {
  acknowledged(event(5, "a"));
  acknowledged(event(7, "b"));
  acknowledged(event(9, "c"));
  EXPECT_THAT(lost({stored(5, "a")}),
              ElementsAre(HasSubstr("7 (b) was acknowledged"), HasSubstr("stored is 5 (a)")));
  EXPECT_EQ(lost({}).size(), 3U);
}

TEST_F(ControlPlaneHistoryModelTest, AnEventWithoutAnAcknowledgementMayBeStoredOrNot) {
  acknowledged(event(5, "a"));
  model.post(event(7, "b"));
  for (const auto& row : {stored(5, "a"), stored(7, "b")}) {
    EXPECT_THAT(lost({row}), IsEmpty());
    EXPECT_THAT(wrong({row}), IsEmpty());
  }
}

TEST_F(ControlPlaneHistoryModelTest, FindsARevivedDeletion) {
  acknowledged(event(5, "a"));
  acknowledged(event(7, ""));
  EXPECT_THAT(lost({stored(7, "")}), IsEmpty());
  EXPECT_THAT(wrong({stored(7, "")}), IsEmpty());
  // A late state that counted, and a deletion that did not end the object.
  EXPECT_THAT(lost({stored(5, "a")}), ElementsAre(HasSubstr("7 (gone) was acknowledged")));
  EXPECT_THAT(wrong({stored(7, "a")}), ElementsAre(HasSubstr("posted was 7 (gone)")));
}

TEST_F(ControlPlaneHistoryModelTest, FindsAFalseDeletion) {
  acknowledged(event(5, "a"));
  EXPECT_THAT(wrong({stored(5, "")}), ElementsAre(HasSubstr("posted was 5 (a)")));
}

TEST_F(ControlPlaneHistoryModelTest, FindsAWrongState) {
  acknowledged(event(5, "a"));
  acknowledged(event(7, "b"));
  EXPECT_THAT(wrong({stored(7, "a")}), ElementsAre(HasSubstr("posted was 7 (b)")));
  EXPECT_THAT(wrong({stored(7, "b", "another")}), ElementsAre(HasSubstr("with uid another")));
  EXPECT_THAT(wrong({stored(8, "b")}), ElementsAre(HasSubstr("never posted")));
  EXPECT_THAT(wrong({stored(7, "b"), stored(7, "b")}), ElementsAre(HasSubstr("stored twice")));
  auto unknown = stored(7, "b");
  unknown.object = "another";
  EXPECT_THAT(wrong({unknown}), ElementsAre(HasSubstr("unknown object")));
  auto milestones = stored(7, "b");
  milestones.milestones = {5, 6};
  EXPECT_THAT(wrong({milestones}), ElementsAre(HasSubstr("unknown sequence 6")));
}

TEST_F(ControlPlaneHistoryModelTest, ADeletionOfAnEarlierUidChangesNothing) {
  acknowledged(event(5, "a", "first"));
  acknowledged(event(7, "b", "second"));
  auto late = event(9, "", "first");
  late.is_of_earlier_uid = true;
  acknowledged(late);
  EXPECT_THAT(lost({stored(7, "b", "second")}), IsEmpty());
  EXPECT_THAT(wrong({stored(7, "b", "second")}), IsEmpty());
  EXPECT_THAT(wrong({stored(9, "", "second")}), ElementsAre(HasSubstr("an earlier uid")));
}

TEST_F(ControlPlaneHistoryModelTest, OneSequenceHasOneEvent) {
  model.post(event(5, "a"));
  EXPECT_THROW(model.post(event(5, "b")), std::logic_error);
}

}  // namespace
}  // namespace gitops::test
