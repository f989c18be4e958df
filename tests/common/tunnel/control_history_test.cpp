// Both sides of a control stream, joined in memory. The bytes between them arrive in pieces of any
// size; the server answers late, refuses, asks for work or falls silent; bytes are damaged, and the
// connection is cut. When the faults end, the client's proxies run again: there is no state that it
// cannot leave. GITOPS_SEED replays a seed; GITOPS_LONG=1 makes ten million steps.
#include <cstdlib>

#include <gtest/gtest.h>

#include "common/tunnel/client_control.hpp"
#include "common/tunnel/control_history_fixture.hpp"
#include "common/tunnel/server_control.hpp"

namespace gitops::tunnel {
namespace {

using std::chrono::milliseconds;
using ClientEvent = ClientControl::Event;
using ServerEvent = ServerControl::Event;

TEST(ControlHistory, TheClientLeavesEveryState) {
  constexpr unsigned kStepsOfOne = 2'000;
  const char* only = std::getenv("GITOPS_SEED");
  const unsigned count = std::getenv("GITOPS_LONG") != nullptr ? 10'000'000 / kStepsOfOne : 12;
  int logins = 0;
  for (unsigned seed = 1; seed <= count; ++seed) {
    if (only != nullptr && std::to_string(seed) != only) continue;
    SCOPED_TRACE("GITOPS_SEED=" + std::to_string(seed));
    ControlHistory history(seed);
    for (unsigned i = 0; i < kStepsOfOne; ++i) history.step();
    history.recover();
    logins += history.logins();
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(logins, 10);
}

}  // namespace
}  // namespace gitops::tunnel
