#include "common/control_plane/report_requests.hpp"

#include <cstdint>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gitops::control_plane {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ReportRequests, AHeadIsReadAsItWasWritten) {
  const std::vector<ReportRequest> requests{
      {.uid = "9b2c0a54-0001-4f0e-8c55-3a6e7f1d2b10", .number = 1},
      {.uid = std::string(kMaxRequestedUid, 'Z'),
       .number = std::numeric_limits<std::int64_t>::max()}};
  const auto head = to_head(requests);
  EXPECT_TRUE(head.starts_with("9b2c0a54-0001-4f0e-8c55-3a6e7f1d2b10;1, Z"));
  EXPECT_EQ(read_report_requests(head), requests);
  EXPECT_EQ(to_head({}), "");
  EXPECT_THAT(read_report_requests(" a;1 ,\tb;2"),
              ElementsAre(ReportRequest{"a", 1}, ReportRequest{"b", 2}));
}

TEST(ReportRequests, AnotherTextAsksForNothing) {
  const std::string long_uid(kMaxRequestedUid + 1, 'a');
  for (const std::string& head : {std::string(),
                                  std::string(" "),
                                  std::string("a"),
                                  std::string("a;"),
                                  std::string(";1"),
                                  std::string("a;0"),
                                  std::string("a;-1"),
                                  std::string("a;+1"),
                                  std::string("a; 1"),
                                  std::string("a ;1"),
                                  std::string("a;1;2"),
                                  std::string("a;1x"),
                                  std::string("a;0x1"),
                                  std::string("a;1.5"),
                                  std::string("a;9223372036854775808"),
                                  std::string("a;99999999999999999999999999"),
                                  std::string("a;1,"),
                                  std::string(",a;1"),
                                  std::string("a;1,,b;1"),
                                  std::string("a;1 b;1"),
                                  std::string("a/b;1"),
                                  std::string("a_b;1"),
                                  std::string("*;1"),
                                  std::string("a\r\nX-Other: 1;1"),
                                  std::string("a;1\0", 4),
                                  std::string("\xc3\xa4;1"),
                                  std::string("a;\xd9\xa1"),
                                  std::string("\xff;1"),
                                  long_uid + ";1",
                                  std::string(100'000, ','),
                                  std::string(100'000, 'a'),
                                  std::string(100'000, ';')}) {
    EXPECT_THAT(read_report_requests(head), IsEmpty()) << head.substr(0, 40);
  }
}

TEST(ReportRequests, AWrongEntryTakesTheOthersWithIt) {
  EXPECT_THAT(read_report_requests("a;1, b;x, c;1"), IsEmpty());
}

TEST(ReportRequests, AHeadHasAtMostTwentyOfThem) {
  std::vector<ReportRequest> requests;
  for (std::size_t i = 1; i <= kMaxReportRequests; ++i) {
    requests.push_back({.uid = "u-" + std::to_string(i), .number = static_cast<std::int64_t>(i)});
  }
  EXPECT_EQ(read_report_requests(to_head(requests)), requests);
  EXPECT_THAT(read_report_requests(to_head(requests) + ", more;1"), IsEmpty());
}

TEST(ReportRequests, SomeUidsCannotBeNamed) {
  EXPECT_TRUE(is_requestable("9b2c0a54-0001-4f0e-8c55-3a6e7f1d2b10"));
  for (const std::string& uid :
       {std::string(), std::string("a b"), std::string("a;b"), std::string("a,b"),
        std::string("a\n"), std::string(kMaxRequestedUid + 1, 'a')}) {
    EXPECT_FALSE(is_requestable(uid)) << uid;
  }
}

}  // namespace
}  // namespace gitops::control_plane
