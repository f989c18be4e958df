#include "control-plane/storage/reporter_row.hpp"

#include <gtest/gtest.h>

namespace gitops::control_plane_server {
namespace {

const std::string kEpoch = epoch_of("here");
const std::string kOther = epoch_of("there");

ReporterContact seen(const std::string& epoch, std::int64_t number) {
  return {.seen = IntakePosition{epoch, number}, .sequence = 5, .at = 100};
}

TEST(IntakePosition, IsReadAsItWasWritten) {
  const IntakePosition position{kEpoch, 42};
  EXPECT_EQ(read_position(to_string(position)), position);
  for (const auto* text :
       {"", ":", "1:2", "0123456789abcdef", "0123456789abcdef:", "0123456789abcdef:-1",
        "0123456789abcdef:1x", "0123456789abcdef:9223372036854775807"}) {
    EXPECT_FALSE(read_position(text)) << text;
  }
}

TEST(ReporterRow, ANewReporterIsAskedForNothing) {
  const auto row = advanced({}, {.sequence = 5, .at = 100}, kEpoch);
  EXPECT_EQ(row.position, 1);
  EXPECT_EQ(row.resync, "");
  EXPECT_EQ(row.sequence, 5);
  EXPECT_EQ(row.seen_at, 100);
}

TEST(ReporterRow, OneThatHasSeenTheStoredPositionIsAskedForNothing) {
  const ReporterRow stored{.position = 7, .sequence = 9, .seen_at = 200};
  for (const std::int64_t number : {0, 6, 7}) {
    const auto row = advanced(stored, seen(kEpoch, number), kEpoch);
    EXPECT_EQ(row.position, 8);
    EXPECT_EQ(row.resync, "") << number;
    EXPECT_EQ(row.sequence, 9);
    EXPECT_EQ(row.seen_at, 200);
  }
}

TEST(ReporterRow, OneThatHasSeenMoreThanIsStoredIsAskedForAResync) {
  const auto row = advanced(ReporterRow{.position = 7}, seen(kEpoch, 8), kEpoch);
  EXPECT_EQ(row.position, 9) << "no number is told twice";
  EXPECT_EQ(row.resync, kEpoch + "-9");
  EXPECT_EQ(advanced({}, seen(kEpoch, 1), kEpoch).resync, kEpoch + "-2") << "its row is lost, too";
}

TEST(ReporterRow, OneThatHasSeenAnotherEpochIsAskedForAResync) {
  const auto row = advanced(ReporterRow{.position = 7}, seen(kOther, 3), kEpoch);
  EXPECT_EQ(row.position, 8);
  EXPECT_EQ(row.resync, kEpoch + "-8");
}

TEST(ReporterRow, AResyncIsAskedForUntilItEnds) {
  const auto asked = advanced(ReporterRow{.position = 7}, seen(kOther, 3), kEpoch);
  const auto later = advanced(asked, seen(kEpoch, 8), kEpoch);
  EXPECT_EQ(later.resync, asked.resync);
  const auto late = advanced(later, seen(kOther, 3), kEpoch);
  EXPECT_EQ(late.resync, asked.resync) << "an event that was under way";
}

// The database went back twice, the second time to a moment at which the first resync had not ended. The reporter has
// ended it, and does not serve the same token again.
TEST(ReporterRow, AResyncOfALostTimeIsAnotherOne) {
  const auto restored =
      advanced(ReporterRow{.position = 7, .resync = kOther + "-4"}, seen(kOther, 9), kEpoch);
  EXPECT_EQ(restored.resync, kEpoch + "-8");
  const auto rolled_back =
      advanced(ReporterRow{.position = 7, .resync = kEpoch + "-5"}, seen(kEpoch, 20), kEpoch);
  EXPECT_EQ(rolled_back.resync, kEpoch + "-21");
}

TEST(ReporterContact, ThePresentEpochCountsInABatch) {
  const auto both = joined(seen(kOther, 90), seen(kEpoch, 3), kEpoch);
  EXPECT_EQ(both.seen, (IntakePosition{kEpoch, 3}));
  EXPECT_EQ(joined(seen(kEpoch, 4), seen(kEpoch, 3), kEpoch).seen, (IntakePosition{kEpoch, 4}));
  EXPECT_EQ(joined({}, seen(kOther, 3), kEpoch).seen, (IntakePosition{kOther, 3}));
}

}  // namespace
}  // namespace gitops::control_plane_server
