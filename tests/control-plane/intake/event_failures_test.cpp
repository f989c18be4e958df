#include "control-plane/intake/event_failures.hpp"

#include <gtest/gtest.h>

namespace gitops::control_plane_server {
namespace {

using Verdict = EventFailures::Verdict;

Incoming event_of(const std::string& name, const std::string& event_id = "") {
  Incoming incoming{.account = 1, .reporter = "application", .event = {}};
  incoming.event.state.key = {.runtime = "prod", .kind = "Application", .name = name};
  incoming.event.state.event_id = event_id;
  incoming.event.state.body_digest = "digest";
  return incoming;
}

TEST(EventFailures, AnEventIsGivenUpAfterSomeTriesWhileOthersAreStored) {
  EventFailures failures;
  EXPECT_EQ(failures.add(event_of("bad")), Verdict::unknown);
  for (int tries = 2; tries < EventFailures::kMaxTries; ++tries) {
    failures.add_stored(event_of("good"));
    EXPECT_EQ(failures.add(event_of("bad")), Verdict::of_event) << tries;
  }
  failures.add_stored(event_of("good"));
  EXPECT_EQ(failures.add(event_of("bad")), Verdict::permanent);
  failures.add_stored(event_of("good"));
  EXPECT_EQ(failures.add(event_of("bad")), Verdict::permanent) << "an acknowledgement may be lost";
}

TEST(EventFailures, NothingIsKnownWhileNoOtherEventIsStored) {
  EventFailures failures;
  failures.add_stored(event_of("good"));
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(failures.add(event_of("a")), Verdict::unknown);
    EXPECT_EQ(failures.add(event_of("b")), Verdict::unknown);
  }
}

TEST(EventFailures, AnEventThatIsStoredStartsAgain) {
  EventFailures failures;
  for (int i = 0; i < EventFailures::kMaxTries - 1; ++i) {
    failures.add_stored(event_of("good"));
    failures.add(event_of("bad"));
  }
  failures.add_stored(event_of("bad"));
  EXPECT_EQ(failures.add(event_of("bad")), Verdict::unknown);
}

TEST(EventFailures, EventsAreKnownByTheirIdsElseByTheirContent) {
  const auto after_many = [](const Incoming& failed, const Incoming& asked) {
    EventFailures failures;
    for (int i = 0; i < EventFailures::kMaxTries; ++i) {
      failures.add_stored(event_of("good"));
      failures.add(failed);
    }
    failures.add_stored(event_of("good"));
    return failures.add(asked);
  };
  EXPECT_EQ(after_many(event_of("x", "e1"), event_of("x", "e1")), Verdict::permanent);
  EXPECT_EQ(after_many(event_of("x", "e1"), event_of("x", "e2")), Verdict::unknown);
  EXPECT_EQ(after_many(event_of("x"), event_of("x")), Verdict::permanent);
  auto changed = event_of("x");
  changed.event.state.body_digest = "another";
  EXPECT_EQ(after_many(event_of("x"), changed), Verdict::unknown);
  auto theirs = event_of("x", "e1");
  theirs.account = 2;
  EXPECT_EQ(after_many(event_of("x", "e1"), theirs), Verdict::unknown);
}

}  // namespace
}  // namespace gitops::control_plane_server
