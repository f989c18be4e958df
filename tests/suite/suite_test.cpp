// The truth of the whole suite: commits in Git, by a real Git server, become rows on open pages of the control plane's
// console, and users reach app-proxy through the tunnel, while faults are played in pairs. After each pair, and a calm of
// at most ten seconds, a model compares every row (SuiteModel), and no request may have failed that could have been
// answered (SuiteUsers). In the tier `suite` Kubernetes and Argo CD are real; in the tier `faults` they are doubles.
// GITOPS_SEED replays a seed, GITOPS_FAULTS sets how many faults there are, GITOPS_LONG=1 makes it 500.
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "demo/narrator.hpp"
#include "demo/world.hpp"
#include "peers/peer_bed.hpp"
#include "peers/peer_events.hpp"
#include "suite/suite_history.hpp"
#include "support/play.hpp"
#include "support/run_coro.hpp"

namespace gitops::test {
namespace {

std::string environment_or(const char* name, std::string otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? std::string(value) : std::move(otherwise);
}

std::uint64_t take_seed() {
  const auto seed =
      std::stoull(environment_or("GITOPS_SEED", std::to_string(std::random_device{}())));
  std::cout << "GITOPS_SEED=" << seed << " replays this history" << std::endl;
  return seed;
}

// Ends at the first failure: what follows from it says nothing.
Task<> play(SuiteHistory& history, std::size_t faults) {
  co_await history.start();
  while (history.faults() < faults && !testing::Test::HasFailure()) co_await history.play_pair();
  std::cout << history.figures();
}

TEST(Suite, ShowsEveryCommitAndAnswersItsUsersWhateverFails) {
  const bool is_long = environment_or("GITOPS_LONG", "") == "1";
#ifdef GITOPS_SUITE_REAL
  constexpr const char* kShort = "20";
#else
  constexpr const char* kShort = "12";
#endif
  const auto faults = std::stoul(environment_or("GITOPS_FAULTS", is_long ? "500" : kShort));
  const auto seed = take_seed();
#ifdef GITOPS_SUITE_REAL
  for (const auto& lacking : {PeerBed::missing(), PeerEvents::missing()}) {
    if (lacking) GTEST_SKIP() << "peers: " << *lacking;
  }
  demo::Narrator narrator;
  const auto begin_world = demo::real_world(narrator);
#else
  if (const auto lacking = GitServer::missing()) GTEST_SKIP() << *lacking;
#endif
  run_coro(
      [&]() -> Task<> {
        GitServer git;
#ifdef GITOPS_SUITE_REAL
        asio::thread_pool pool(2);
        auto world = co_await begin_world(pool, git);
#else
        auto world = co_await demo::embedded_world(git);
#endif
        SuiteHistory history(co_await asio::this_coro::executor, world, git, seed);
        co_await play_in(history, [&](SuiteHistory& played) { return play(played, faults); });
        co_await world.stop();
      },
      std::chrono::seconds(300 + 30 * faults));
}

}  // namespace
}  // namespace gitops::test
