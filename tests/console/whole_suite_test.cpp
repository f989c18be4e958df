// A commit and a sync on an open page, over all programs as processes. In the tier `suite`
// Kubernetes, Argo CD, Argo Events and PostgreSQL are real; in the tier `e2e` they are doubles.
#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "console/node_program.hpp"
#ifdef GITOPS_SUITE_REAL
#include "peers/peer_bed.hpp"
#include "peers/peer_events.hpp"
#endif

namespace gitops::test {
namespace {

TEST(Console, ShowsACommitAndDoesASyncOverTheWholeSuite) {
  std::vector<std::string> arguments{std::string(GITOPS_BIN_DIR) + "/gitops-demo"};
#ifdef GITOPS_SUITE_REAL
  for (const auto& lacking : {PeerBed::missing(), PeerEvents::missing()}) {
    if (lacking) GTEST_SKIP() << "peers: " << *lacking;
  }
  arguments.emplace_back("--real");
#endif
  expect_in_chromium("whole_suite.mjs", arguments, std::chrono::seconds(600));
}

}  // namespace
}  // namespace gitops::test
