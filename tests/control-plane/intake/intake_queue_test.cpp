#include "control-plane/intake/intake_queue.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gitops::control_plane_server {
namespace {

using testing::ElementsAre;

QueuedEvent event_of(std::int64_t account, const std::string& runtime, std::int64_t sequence,
                     std::size_t bytes = 10) {
  QueuedEvent queued{.incoming = {.account = account, .reporter = {}, .event = {}}, .bytes = bytes};
  queued.incoming.event.state.key.runtime = runtime;
  queued.incoming.event.state.sequence = sequence;
  return queued;
}

// Queues an event, or returns the reason for its refusal.
std::optional<IntakeQueue::Refusal> push(IntakeQueue& queue, QueuedEvent event) {
  const auto& incoming = event.incoming;
  const auto refusal =
      queue.refusal(incoming.account, incoming.event.state.key.runtime, event.bytes);
  if (!refusal) queue.push(std::move(event));
  return refusal;
}

std::vector<std::string> names(const std::vector<QueuedEvent>& batch) {
  std::vector<std::string> found;
  for (const auto& event : batch) {
    const auto& state = event.incoming.event.state;
    found.push_back(std::to_string(event.incoming.account) + state.key.runtime +
                    std::to_string(state.sequence));
  }
  return found;
}

TEST(IntakeQueue, AccountsAndRuntimesTakeTurns) {
  IntakeQueue queue({});
  for (int i = 1; i <= 3; ++i) ASSERT_FALSE(push(queue, event_of(1, "a", i)));
  ASSERT_FALSE(push(queue, event_of(1, "b", 1)));
  ASSERT_FALSE(push(queue, event_of(2, "c", 1)));
  EXPECT_THAT(names(queue.take_batch()), ElementsAre("1a1", "2c1", "1b1", "1a2", "1a3"));
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.bytes(), 0U);
}

TEST(IntakeQueue, ABatchIsBoundedInEventsAndBytes) {
  IntakeQueue few({.max_batch_events = 2});
  for (int i = 1; i <= 3; ++i) ASSERT_FALSE(push(few, event_of(1, "a", i)));
  EXPECT_EQ(few.take_batch().size(), 2U);
  EXPECT_EQ(few.take_batch().size(), 1U);
  IntakeQueue small({.max_batch_bytes = 25});
  for (int i = 1; i <= 3; ++i) ASSERT_FALSE(push(small, event_of(1, "a", i)));
  EXPECT_EQ(small.take_batch().size(), 2U);
  // An event that is larger than a batch is still taken.
  ASSERT_FALSE(push(small, event_of(1, "b", 9, 1000)));
  EXPECT_EQ(small.take_batch().size(), 1U);
  EXPECT_EQ(small.take_batch().size(), 1U);
}

TEST(IntakeQueue, ARuntimeWithABacklogIsRefusedAndItsNeighbourIsNot) {
  IntakeQueue queue({.max_events_per_runtime = 2});
  ASSERT_FALSE(push(queue, event_of(1, "a", 1)));
  ASSERT_FALSE(push(queue, event_of(1, "a", 2)));
  EXPECT_EQ(push(queue, event_of(1, "a", 3)), IntakeQueue::Refusal::runtime_is_full);
  EXPECT_FALSE(push(queue, event_of(1, "b", 1)));
}

TEST(IntakeQueue, AnAccountHasAQuarterWhileOthersWait) {
  IntakeQueue queue({.max_bytes = 400});
  for (int i = 1; i <= 20; ++i) ASSERT_FALSE(push(queue, event_of(1, "a", i)));  // the only account
  ASSERT_FALSE(push(queue, event_of(2, "b", 1)));
  EXPECT_EQ(push(queue, event_of(1, "a", 21)), IntakeQueue::Refusal::account_is_full);
  EXPECT_FALSE(push(queue, event_of(2, "b", 2)));
}

TEST(IntakeQueue, AFullQueueRefusesAndAnEmptyOneTakesAnything) {
  IntakeQueue queue({.max_bytes = 100});
  ASSERT_FALSE(push(queue, event_of(1, "a", 1, 1000)));
  EXPECT_EQ(push(queue, event_of(2, "b", 1)), IntakeQueue::Refusal::queue_is_full);
}

TEST(IntakeQueue, WhoWouldWaitLongIsRefused) {
  IntakeQueue queue({.max_wait = std::chrono::milliseconds(100)});
  queue.note_stored(1, std::chrono::seconds(1));  // says nothing about full batches
  for (int i = 1; i <= 101; ++i) ASSERT_FALSE(push(queue, event_of(1, "a", i)));
  queue.note_stored(100, std::chrono::milliseconds(100));  // a thousand a second
  EXPECT_EQ(push(queue, event_of(1, "a", 102)), IntakeQueue::Refusal::wait_is_long);
  // The backlog of the other runtime does not delay this one.
  for (int i = 1; i <= 50; ++i) ASSERT_FALSE(push(queue, event_of(1, "b", i))) << i;
  EXPECT_EQ(push(queue, event_of(1, "b", 51)), IntakeQueue::Refusal::wait_is_long);
  EXPECT_FALSE(push(queue, event_of(2, "c", 1)));
  while (!queue.empty()) queue.take_batch();
  EXPECT_FALSE(push(queue, event_of(1, "a", 102)));
}

TEST(IntakeQueue, ASlowTimeIsForgottenThoughBatchesStaySmall) {
  IntakeQueue queue({.max_wait = std::chrono::milliseconds(100)});
  queue.note_stored(100, std::chrono::seconds(10));
  for (int i = 1; i <= 2; ++i) ASSERT_FALSE(push(queue, event_of(1, "a", i)));
  ASSERT_EQ(push(queue, event_of(1, "a", 3)), IntakeQueue::Refusal::wait_is_long);
  queue.note_stored(1, std::chrono::seconds(10));  // shows no more
  ASSERT_EQ(push(queue, event_of(1, "a", 3)), IntakeQueue::Refusal::wait_is_long);
  for (int i = 0; i < 20; ++i) queue.note_stored(2, std::chrono::milliseconds(2));
  EXPECT_FALSE(push(queue, event_of(1, "a", 3)));
}

TEST(IntakeQueue, TheExpectedWaitFollowsTheDatabase) {
  IntakeQueue queue({.max_wait = std::chrono::milliseconds(100)});
  queue.note_stored(100, std::chrono::seconds(1));
  for (int i = 1; i <= 11; ++i) ASSERT_FALSE(push(queue, event_of(1, "a", i)));
  ASSERT_EQ(push(queue, event_of(1, "a", 12)), IntakeQueue::Refusal::wait_is_long);
  for (int i = 0; i < 20; ++i) queue.note_stored(100, std::chrono::milliseconds(10));
  EXPECT_FALSE(push(queue, event_of(1, "a", 12)));
}

}  // namespace
}  // namespace gitops::control_plane_server
