// Two sessions joined in memory. Their streams are opened, written, read, ended, closed and aborted
// at random while the bytes between them arrive in pieces of any size and in any order of the two
// directions. GITOPS_SEED replays a seed; GITOPS_LONG=1 makes ten million steps.
#include <gtest/gtest.h>

#include "common/tunnel/yamux_history_fixture.hpp"

namespace gitops::tunnel::yamux {
namespace {

using std::chrono::milliseconds;
using Event = Session::Step::Event;

TEST(YamuxHistory, EveryByteArrivesOnceAndEveryStreamEnds) {
  std::uint64_t bytes = 0;
  for_each_seed([&](unsigned seed) {
    YamuxHistory history(seed);
    for (unsigned i = 0; i < kStepsOfOne; ++i) history.step();
    history.settle();
    bytes += history.bytes_read();
  });
  EXPECT_GT(bytes, 1'000'000u) << "the histories carry next to nothing";
}

// AC-20: a session whose peer has gone, or talks nonsense, is never half open for ever.
TEST(YamuxHistory, AC20_ASessionWithADamagedOrSilentPeerEnds) {
  int damaged = 0;
  for_each_seed([&](unsigned seed) {
    YamuxHistory history(seed);
    for (unsigned i = 0; i < kStepsOfOne; ++i) {
      history.step();
      if (i % 200 == 199) history.damage();
    }
    damaged += history.damaged() ? 1 : 0;
    history.go_silent();
  });
  EXPECT_GT(damaged, 0);
}

}  // namespace
}  // namespace gitops::tunnel::yamux
