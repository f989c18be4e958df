#include "request-router/webhook_store.hpp"

#include <map>
#include <set>
#include <string>

#include <gmock/gmock.h>

namespace gitops::router {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using Hastened = WebhookStore::Hastened;

const Clock::time_point kStart = Clock::time_point(1h);
const SourceName kGithub{"argo", "github"};
const SourceName kGitlab{"argo", "gitlab"};

bool anyone(const SourceName&) {
  return true;
}

class Fixture {
 public:
  explicit Fixture(WebhookStore::Limits limits = {}) : store(limits) {}

  bool add(const SourceName& source, std::size_t size = 100, Clock::time_point since = kStart) {
    auto webhook = std::make_shared<KeptWebhook>();
    webhook->id = ++last_id;
    webhook->source = source;
    webhook->bytes = std::string(size, 'x');
    webhook->since = since;
    return store.add(std::move(webhook));
  }
  // The id of the next one to try; 0: none.
  std::uint64_t next(Clock::time_point now, const WebhookStore::Enter& enter = anyone) {
    const auto webhook = store.next(now, enter);
    return webhook ? webhook->id : 0;
  }

  WebhookStore store;
  std::uint64_t last_id = 0;
};

TEST(WebhookStore, EventSourcesTakeTurnsAndEachKeepsItsOrder) {
  Fixture bed;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(bed.add(kGithub));  // 1, 2, 3
  EXPECT_TRUE(bed.add(kGitlab));                              // 4
  EXPECT_EQ(bed.next(kStart), 1U);
  EXPECT_EQ(bed.next(kStart), 4U);
  EXPECT_EQ(bed.next(kStart), 2U);
  EXPECT_EQ(bed.next(kStart), 3U);
  EXPECT_EQ(bed.next(kStart), 0U);
  for (const std::uint64_t id : {1U, 2U, 3U, 4U}) bed.store.delivered(id);
  EXPECT_EQ(bed.store.size(), 0U);
  EXPECT_EQ(bed.store.bytes(), 0U);
  EXPECT_EQ(bed.next(kStart), 0U);
  EXPECT_EQ(bed.store.due(kStart), kNever);
}

TEST(WebhookStore, OneWithoutAPlaceAtItsSourceHoldsUpNoOther) {
  Fixture bed;
  EXPECT_TRUE(bed.add(kGithub));
  EXPECT_TRUE(bed.add(kGitlab));
  const auto not_github = [](const SourceName& source) { return source != kGithub; };
  EXPECT_EQ(bed.next(kStart, not_github), 2U);
  EXPECT_EQ(bed.next(kStart, not_github), 0U);
  EXPECT_EQ(bed.store.due(kStart), kStart + WebhookStore::kGateInterval);
  EXPECT_EQ(bed.next(kStart), 1U);
}

TEST(WebhookStore, ASlowSourceLeavesAttemptsForOtherSources) {
  Fixture bed({.attempts = 8});
  const auto tried = [&bed] {
    int count = 0;
    while (bed.next(kStart) != 0) ++count;
    return count;
  };
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(bed.add(kGithub));
  EXPECT_EQ(tried(), 4);
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(bed.add(kGitlab));
  EXPECT_EQ(tried(), 2) << "of the new source";
  bed.store.delivered(1);
  bed.store.delivered(2);
  EXPECT_EQ(tried(), 0);
  bed.store.delivered(3);
  EXPECT_EQ(tried(), 1);
}

TEST(WebhookStore, IsBoundedAndLeavesRoomForOtherSources) {
  Fixture bed({.bytes = 1'000'000});
  std::size_t of_one = 0;
  while (bed.add(kGithub, 1'000)) ++of_one;
  EXPECT_GT(of_one, 600U);
  EXPECT_LE(bed.store.bytes(), 1'000'000U * 31 / 32);
  EXPECT_TRUE(bed.add(kGitlab, 1'000));
  EXPECT_FALSE(bed.add(kGithub, 1'000));
  EXPECT_FALSE(bed.add({"argo", "third"}, 2'000'000));
  std::size_t others = 0;
  for (int i = 0; i < 10'000; ++i) {
    others += bed.add({"argo", "source-" + std::to_string(i)}, 1'000) ? 1 : 0;
  }
  EXPECT_GT(others, 10U);
  EXPECT_LE(bed.store.bytes(), 1'000'000U);
}

TEST(WebhookStore, RoomThatIsGivenBackCanBeUsed) {
  Fixture bed({.bytes = 100'000});
  while (bed.add(kGithub, 1'000)) {
  }
  const auto id = bed.next(kStart);
  bed.store.delivered(id);
  EXPECT_TRUE(bed.add(kGithub, 1'000));
  EXPECT_FALSE(bed.add(kGithub, 1'000));
}

TEST(WebhookStore, ASourceThatCannotBeReachedIsTriedByOneAtATime) {
  Fixture bed;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(bed.add(kGithub));
  EXPECT_EQ(bed.next(kStart), 1U);
  EXPECT_EQ(bed.next(kStart), 2U);
  bed.store.unreachable(1, "refused", kStart);
  bed.store.unreachable(2, "refused", kStart);  // tells nothing new
  EXPECT_FALSE(bed.store.is_reachable(kGithub));
  EXPECT_TRUE(bed.store.must_wait(kGithub));
  EXPECT_EQ(bed.next(kStart + 999ms), 0U);
  EXPECT_EQ(bed.store.due(kStart), kStart + 1s);
  EXPECT_EQ(bed.next(kStart + 1s), 2U);
  EXPECT_EQ(bed.next(kStart + 1s), 0U) << "one at a time";
  bed.store.unreachable(2, "refused", kStart + 1s);
  EXPECT_EQ(bed.next(kStart + 2999ms), 0U);
  EXPECT_EQ(bed.next(kStart + 3s), 2U);
  bed.store.delivered(2);
  EXPECT_TRUE(bed.store.is_reachable(kGithub));
  EXPECT_EQ(bed.next(kStart + 3s), 1U);
  EXPECT_EQ(bed.next(kStart + 3s), 3U);
  EXPECT_FALSE(bed.store.must_wait(kGithub)) << "none waits for its turn";
}

TEST(WebhookStore, ASourceIsTriedEveryTenSecondsAtLeast) {
  Fixture bed;
  EXPECT_TRUE(bed.add(kGithub));
  auto now = kStart;
  for (int i = 0; i < 30; ++i) {
    EXPECT_EQ(bed.next(now), 1U);
    bed.store.unreachable(1, "refused", now);
    const auto due = bed.store.due(now);
    EXPECT_LE(due, now + 10s);
    now = due;
  }
}

TEST(WebhookStore, OneThatItsSourceRefusesHoldsUpNoOther) {
  Fixture bed;
  EXPECT_TRUE(bed.add(kGithub));
  EXPECT_TRUE(bed.add(kGithub));
  EXPECT_EQ(bed.next(kStart), 1U);
  bed.store.refused(1, "the event source answered 500", kStart);
  EXPECT_EQ(bed.store.refusals(1), 1U);
  EXPECT_EQ(bed.next(kStart), 2U);
  bed.store.delivered(2);
  EXPECT_FALSE(bed.store.must_wait(kGithub));
  EXPECT_EQ(bed.next(kStart + 999ms), 0U);
  EXPECT_EQ(bed.next(kStart + 1s), 1U);
  bed.store.refused(1, "the event source answered 500", kStart + 1s);
  EXPECT_EQ(bed.store.due(kStart + 1s), kStart + 3s);
  EXPECT_EQ(bed.store.sources().at(0).last_error, "the event source answered 500");
}

// A webhook at which its source crashes or hangs: the source can be connected to, but this webhook
// gets no response.
TEST(WebhookStore, OneThatGetsNoAnswerHoldsUpNoOther) {
  Fixture bed;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(bed.add(kGithub));
  EXPECT_EQ(bed.next(kStart), 1U);
  bed.store.unanswered(1, "it closed the connection", kStart);
  EXPECT_FALSE(bed.store.is_reachable(kGithub));
  EXPECT_EQ(bed.next(kStart + 999ms), 0U);
  EXPECT_EQ(bed.next(kStart + 1s), 2U) << "another one first";
  EXPECT_EQ(bed.next(kStart + 1s), 0U) << "one at a time";
  bed.store.delivered(2);
  EXPECT_TRUE(bed.store.is_reachable(kGithub));
  EXPECT_EQ(bed.next(kStart + 1s), 3U);
  EXPECT_EQ(bed.next(kStart + 1s), 1U);
  bed.store.delivered(3);
  bed.store.unanswered(1, "it closed the connection", kStart + 1s);
  EXPECT_TRUE(bed.add(kGithub));  // 4
  EXPECT_EQ(bed.next(kStart + 2s), 4U) << "the other one waits two seconds";
  bed.store.delivered(4);
  EXPECT_EQ(bed.next(kStart + 2999ms), 0U);
  EXPECT_FALSE(bed.store.must_wait(kGithub)) << "new ones pass it";
  EXPECT_EQ(bed.next(kStart + 3s), 1U);
  bed.store.delivered(1);
  EXPECT_EQ(bed.store.size(), 0U);
}

TEST(WebhookStore, TheOnlyOneThatGetsNoAnswerIsTriedEveryTenSecondsAndOnRequest) {
  Fixture bed;
  EXPECT_TRUE(bed.add(kGithub));
  auto now = kStart;
  for (int i = 0; i < 30; ++i) {
    EXPECT_EQ(bed.next(now), 1U);
    bed.store.unanswered(1, "timed out", now);
    EXPECT_TRUE(bed.store.must_wait(kGithub));
    const auto due = bed.store.due(now);
    EXPECT_LE(due, now + 10s);
    now = due;
  }
  EXPECT_EQ(bed.next(now), 1U);
  bed.store.unanswered(1, "timed out", now);
  EXPECT_EQ(bed.next(now + 2s), 0U);
  EXPECT_EQ(bed.store.hasten(kGithub, now + 2s), Hastened::now);
  EXPECT_EQ(bed.next(now + 2s), 1U);
}

TEST(WebhookStore, AHastenedSourceThatCannotBeReachedIsTriedOnceAndAtMostOnceASecond) {
  Fixture bed;
  EXPECT_EQ(bed.store.hasten(kGithub, kStart), Hastened::not_waiting);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(bed.add(kGithub));
  EXPECT_EQ(bed.store.hasten(kGithub, kStart), Hastened::not_waiting) << "they are due";
  auto now = kStart;
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(bed.next(now), 1U);
    bed.store.unreachable(1, "refused", now);
    now = bed.store.due(now);
  }
  EXPECT_EQ(bed.next(now), 1U);
  bed.store.unreachable(1, "refused", now);  // the next attempt is in ten seconds
  EXPECT_EQ(bed.next(now + 2s), 0U);
  EXPECT_EQ(bed.store.hasten(kGithub, now + 2s), Hastened::now);
  EXPECT_EQ(bed.next(now + 2s), 1U);
  EXPECT_EQ(bed.next(now + 2s), 0U) << "one at a time";
  bed.store.unreachable(1, "refused", now + 2s);
  EXPECT_EQ(bed.store.hasten(kGithub, now + 2999ms), Hastened::too_soon);
  EXPECT_EQ(bed.next(now + 2999ms), 0U);
  EXPECT_EQ(bed.store.due(now + 2s), now + 12s) << "as after any other attempt";
  EXPECT_EQ(bed.store.hasten(kGithub, now + 3s), Hastened::now);
  EXPECT_EQ(bed.next(now + 3s), 1U);
  bed.store.delivered(1);
  EXPECT_EQ(bed.next(now + 3s), 2U);
}

TEST(WebhookStore, OfRefusedOnesTheFirstIsHastenedAndTheOthersFollowWhenItIsDelivered) {
  Fixture bed;
  for (std::uint64_t id = 1; id <= 3; ++id) {
    EXPECT_TRUE(bed.add(kGithub));
    EXPECT_EQ(bed.next(kStart), id);
    bed.store.refused(id, "the event source answered 500", kStart + id * 1ms);
  }
  EXPECT_TRUE(bed.add(kGitlab));  // 4
  bed.store.drop(1);
  EXPECT_EQ(bed.store.hasten(kGithub, kStart + 100ms), Hastened::now);
  EXPECT_EQ(bed.next(kStart + 100ms), 2U) << "the first of those that are left";
  EXPECT_EQ(bed.next(kStart + 100ms), 4U) << "of another source";
  EXPECT_EQ(bed.next(kStart + 100ms), 0U);
  bed.store.refused(2, "the event source answered 500", kStart + 100ms);
  EXPECT_EQ(bed.next(kStart + 200ms), 0U) << "the others stay";
  EXPECT_EQ(bed.store.hasten(kGithub, kStart + 200ms), Hastened::too_soon);
  EXPECT_EQ(bed.store.hasten(kGitlab, kStart + 200ms), Hastened::not_waiting) << "it is under way";

  EXPECT_EQ(bed.next(kStart + 1003ms), 3U) << "at its own time";
  bed.store.refused(3, "the event source answered 500", kStart + 1003ms);
  EXPECT_EQ(bed.store.hasten(kGithub, kStart + 1100ms), Hastened::now);
  EXPECT_EQ(bed.next(kStart + 1100ms), 2U);
  EXPECT_EQ(bed.next(kStart + 1100ms), 0U);
  bed.store.delivered(2);
  EXPECT_EQ(bed.next(kStart + 1100ms), 3U) << "the source takes them again";
}

TEST(WebhookStore, ForgetsWhatIsTooOldButNotWhatIsUnderWay) {
  Fixture bed({.age = 1h});
  EXPECT_TRUE(bed.add(kGithub, 100, kStart));
  EXPECT_TRUE(bed.add(kGithub, 100, kStart + 1min));
  EXPECT_TRUE(bed.add(kGitlab, 100, kStart - 1min));  // was taken over
  EXPECT_EQ(bed.next(kStart + 1min), 1U);
  EXPECT_TRUE(bed.store.expire(kStart + 59min - 1ms).empty());
  const auto gone = bed.store.expire(kStart + 61min);
  std::set<std::uint64_t> ids;
  for (const auto& webhook : gone) ids.insert(webhook->id);
  EXPECT_THAT(ids, ElementsAre(2, 3));
  EXPECT_EQ(bed.store.size(), 1U);
  bed.store.unreachable(1, "refused", kStart + 61min);
  EXPECT_EQ(bed.store.expire(kStart + 61min).size(), 1U);
  EXPECT_EQ(bed.store.bytes(), 0U);
  EXPECT_EQ(bed.next(kStart + 2h), 0U);
}

}  // namespace
}  // namespace gitops::router
