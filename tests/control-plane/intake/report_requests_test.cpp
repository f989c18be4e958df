#include "control-plane/intake/report_requests.hpp"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gitops::control_plane_server {
namespace {

using control_plane::ReportRequest;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

ReportRequestRow row_of(const std::string& uid, std::int64_t number, std::int64_t sequence = 10) {
  return {
      .runtime = "prod", .uid = uid, .application = uid, .number = number, .sequence = sequence};
}

ReportArrival event_of(const std::string& uid, std::int64_t sequence,
                       const std::string& reporter = "app/0/1") {
  return {.runtime = "prod", .reporter = reporter, .uid = uid, .sequence = sequence};
}

struct OpenRequests : testing::Test {
  OpenReportRequests requests;
  bool closes(const ReportArrival& arrival) { return requests.close(arrival).has_value(); }
};

TEST_F(OpenRequests, AReporterIsToldWithEachAnswerUntilItsEventArrives) {
  requests.replace({row_of("a", 7)});
  EXPECT_FALSE(closes(event_of("a", 11))) << "it was not told";
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(requests.tell(event_of("other", 50)), ElementsAre(ReportRequest{"a", 7}));
    requests.replace({row_of("a", 7)});
  }
  EXPECT_FALSE(closes(event_of("other", 51)));
  EXPECT_FALSE(closes(event_of("a", 10))) << "the event that was stored before, once more";
  EXPECT_FALSE(closes(event_of("a", 11, "app/1/2"))) << "of a reporter that was not told";
  const auto closed = requests.close(event_of("a", 11));
  ASSERT_TRUE(closed);
  EXPECT_EQ(*closed, row_of("a", 7));
  EXPECT_THAT(requests.tell(event_of("a", 11)), IsEmpty());
  EXPECT_TRUE(requests.is_empty());
}

TEST_F(OpenRequests, ALaterRequestIsToldAgain) {
  requests.replace({row_of("a", 7)});
  EXPECT_THAT(requests.tell(event_of("a", 10)), SizeIs(1));
  requests.replace({row_of("a", 8, 11)});
  EXPECT_FALSE(closes(event_of("a", 12))) << "nobody was told of the later one";
  EXPECT_THAT(requests.tell(event_of("a", 12)), ElementsAre(ReportRequest{"a", 8}));
}

TEST_F(OpenRequests, ReportersOfOtherRuntimesAndModesAreNotTold) {
  auto rollout = row_of("rollout", 7);
  rollout.application = "a";
  requests.replace({row_of("a", 7), rollout});
  auto elsewhere = event_of("a", 11);
  elsewhere.runtime = "stage";
  EXPECT_THAT(requests.tell(elsewhere), IsEmpty());
  EXPECT_THAT(requests.tell(event_of("x", 1)), ElementsAre(ReportRequest{"a", 7}));
  auto event = event_of("rollout", 11, "resource/0/3");
  EXPECT_FALSE(closes(event)) << "mode app reports the Rollout as a resource";
  event.origin = Origin::resource;
  EXPECT_THAT(requests.tell(event), ElementsAre(ReportRequest{"rollout", 7}));
  EXPECT_TRUE(closes(event));
}

TEST_F(OpenRequests, EachIsToldInTurnWhenThereAreMoreThanAHeadHolds) {
  std::vector<ReportRequestRow> rows;
  for (int i = 0; i < 50; ++i) rows.push_back(row_of("u-" + std::to_string(i), i + 1));
  requests.replace(rows);
  std::set<std::string> told;
  for (int i = 0; i < 3; ++i) {
    const auto some = requests.tell(event_of("x", 1));
    EXPECT_THAT(some, SizeIs(control_plane::kMaxReportRequests));
    EXPECT_EQ(control_plane::read_report_requests(control_plane::to_head(some)), some);
    for (const auto& one : some) told.insert(one.uid);
  }
  EXPECT_THAT(told, SizeIs(50));
}

TEST_F(OpenRequests, NamesOfReportersAreRememberedUpToALimit) {
  requests.replace({row_of("a", 7)});
  for (int i = 0; i < 1'000; ++i) {
    EXPECT_THAT(requests.tell(event_of("x", 1, "app/0/" + std::to_string(i))), SizeIs(1));
  }
  EXPECT_FALSE(closes(event_of("a", 11, "app/0/999")));
  EXPECT_TRUE(closes(event_of("a", 11, "app/0/0")));
}

TEST(ReportArrival, OnlyApplicationsAndObjectsOfModeResourceAreAskedFor) {
  ObjectState state{.key = {.runtime = "prod", .kind = "Application"}, .uid = "a", .sequence = 3};
  EXPECT_EQ(report_arrival(state, "app/0/1").uid, "a");
  state.key.owner_uid = "parent";
  state.key.kind = "Rollout";
  EXPECT_EQ(report_arrival(state, "app/0/1").uid, "");
  state.key = {.runtime = "prod", .origin = Origin::resource, .kind = "Rollout"};
  const auto arrival = report_arrival(state, "resource/0/1");
  EXPECT_EQ(arrival.uid, "a");
  EXPECT_EQ(arrival.origin, Origin::resource);
  EXPECT_EQ(arrival.sequence, 3);
}

}  // namespace
}  // namespace gitops::control_plane_server
