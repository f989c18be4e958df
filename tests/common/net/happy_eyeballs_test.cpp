#include "common/net/happy_eyeballs.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gitops::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;

const Clock::time_point kStart = Clock::time_point(std::chrono::hours(1));

Endpoint at(const char* address, std::uint16_t port = 443) {
  return {boost::asio::ip::make_address(address), port};
}

std::vector<std::string> order(const std::vector<const char*>& addresses,
                               const FailedEndpoints& failed = {}, Clock::time_point now = kStart) {
  Endpoints endpoints;
  for (const auto* address : addresses) endpoints.push_back(at(address));
  std::vector<std::string> texts;
  for (const auto& endpoint : attempt_order(endpoints, failed, now)) {
    texts.push_back(endpoint.address().to_string());
  }
  return texts;
}

Error refused() {
  return {.code = ErrorCode::unavailable, .message = "connection refused"};
}

TEST(AttemptOrder, FamiliesAlternateBeginningWithThatOfTheFirst) {
  EXPECT_THAT(order({"fd00::1", "fd00::2", "fd00::3", "10.0.0.1", "10.0.0.2"}),
              ElementsAre("fd00::1", "10.0.0.1", "fd00::2", "10.0.0.2", "fd00::3"));
  EXPECT_THAT(order({"10.0.0.1", "10.0.0.2", "fd00::1"}),
              ElementsAre("10.0.0.1", "fd00::1", "10.0.0.2"));
  EXPECT_THAT(order({"10.0.0.2", "10.0.0.1"}), ElementsAre("10.0.0.2", "10.0.0.1"))
      << "the system's order counts within a family";
  EXPECT_THAT(order({}), ElementsAre());
}

TEST(AttemptOrder, EndpointsThatFailedLatelyComeLastForAMinute) {
  FailedEndpoints failed;
  failed.note(at("fd00::1"), false, kStart);
  failed.note(at("10.0.0.1"), false, kStart);
  failed.note(at("10.0.0.2", 80), false, kStart);  // another port
  const std::vector<const char*> addresses{"fd00::1", "fd00::2", "10.0.0.1", "10.0.0.2"};
  EXPECT_THAT(order(addresses, failed), ElementsAre("fd00::2", "10.0.0.2", "fd00::1", "10.0.0.1"));
  EXPECT_THAT(order(addresses, failed, kStart + seconds(61)),
              ElementsAre("fd00::1", "10.0.0.1", "fd00::2", "10.0.0.2"));
  failed.note(at("fd00::1"), true, kStart);
  EXPECT_THAT(order(addresses, failed), ElementsAre("fd00::1", "10.0.0.2", "fd00::2", "10.0.0.1"));
}

TEST(FailedEndpoints, ABoundedNumberIsRememberedAndTheOldestGoFirst) {
  FailedEndpoints failed;
  auto now = kStart;
  for (std::uint16_t port = 1; port <= 1'010; ++port) {
    failed.note(at("10.0.0.1", port), false, now += milliseconds(1));
  }
  EXPECT_FALSE(failed.contains(at("10.0.0.1", 10), now));
  EXPECT_TRUE(failed.contains(at("10.0.0.1", 11), now));
  EXPECT_TRUE(failed.contains(at("10.0.0.1", 1'010), now));
}

TEST(ConnectRace, TheNextAttemptBeginsAfterADelay) {
  ConnectRace race(3, kStart, kStart + seconds(5));
  EXPECT_EQ(race.begin(kStart), 0U);
  EXPECT_EQ(race.begin(kStart), std::nullopt);
  EXPECT_EQ(race.next(), kStart + milliseconds(250));
  EXPECT_EQ(race.begin(kStart + milliseconds(249)), std::nullopt);
  EXPECT_EQ(race.begin(kStart + milliseconds(260)), 1U);
  EXPECT_EQ(race.next(), kStart + milliseconds(510));
  EXPECT_EQ(race.begin(kStart + milliseconds(510)), 2U);
  EXPECT_EQ(race.next(), kStart + seconds(5)) << "all have begun";
  EXPECT_EQ(race.given_up(kStart + milliseconds(4'999)), std::nullopt);
}

TEST(ConnectRace, TheNextAttemptBeginsAtOnceWhenOneHasFailed) {
  ConnectRace race(2, kStart, kNever);
  EXPECT_EQ(race.begin(kStart), 0U);
  race.failed(0, refused());
  EXPECT_EQ(race.given_up(kStart), std::nullopt);
  EXPECT_EQ(race.begin(kStart + milliseconds(1)), 1U);
  EXPECT_EQ(race.next(), kNever);
}

TEST(ConnectRace, IsOverWhenAllAttemptsHaveFailed) {
  ConnectRace race(2, kStart, kNever);
  EXPECT_EQ(race.begin(kStart), 0U);
  EXPECT_EQ(race.begin(kStart + milliseconds(250)), 1U);
  race.failed(1, refused());
  EXPECT_EQ(race.given_up(kStart + seconds(1)), std::nullopt) << "the first is under way";
  race.failed(0, {.code = ErrorCode::unavailable, .message = "no route to host"});
  const auto why = race.given_up(kStart + seconds(1));
  ASSERT_TRUE(why);
  EXPECT_EQ(why->message, "no route to host");
}

TEST(ConnectRace, IsOverAtTheDeadline) {
  ConnectRace race(2, kStart, kStart + seconds(1));
  EXPECT_EQ(race.begin(kStart), 0U);
  EXPECT_EQ(race.begin(kStart + seconds(1)), std::nullopt);
  const auto why = race.given_up(kStart + seconds(1));
  ASSERT_TRUE(why);
  EXPECT_EQ(why->code, ErrorCode::timeout);
  EXPECT_EQ(ConnectRace(0, kStart, kNever).given_up(kStart)->message, "no address to connect to");
}

TEST(ConnectRace, EachEndpointHasItsTurnBeforeTheDeadline) {
  constexpr std::size_t kEndpoints = 64;
  ConnectRace race(kEndpoints, kStart, kStart + seconds(2));
  auto now = kStart;
  std::size_t begun = 0;
  while (!race.given_up(now)) {
    if (race.begin(now)) {
      ++begun;
    } else {
      now = race.next();
    }
  }
  EXPECT_EQ(begun, kEndpoints);
  EXPECT_EQ(now, kStart + seconds(2));
}

// Another connection was made, or the time is up: those that had as long as the delay are to blame.
TEST(ConnectRace, NamesTheAttemptsThatAreTooSlow) {
  ConnectRace race(3, kStart, kStart + seconds(5));
  EXPECT_EQ(race.begin(kStart), 0U);
  EXPECT_EQ(race.begin(kStart + milliseconds(250)), 1U);
  EXPECT_EQ(race.begin(kStart + milliseconds(500)), 2U);
  race.failed(1, refused());
  EXPECT_THAT(race.slow(kStart + milliseconds(510)), ElementsAre(0U));
  EXPECT_THAT(race.slow(kStart + milliseconds(750)), ElementsAre(0U, 2U));
}

}  // namespace
}  // namespace gitops::net
