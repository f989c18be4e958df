#include <cstdlib>
#include <iostream>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "faults/history.hpp"
#include "support/play.hpp"
#include "support/run_coro.hpp"

// The real event-reporter runs through a history of changes and faults that a seed determines.
// After the last fault a model checks whether every change was reported to the control plane.
// GITOPS_SEED replays a seed, GITOPS_FAULTS sets how many faults there are, GITOPS_LONG=1 makes it
// 1,000.
namespace gitops::test {
namespace {

using ::testing::IsEmpty;
using ::testing::Not;

constexpr auto kSettle = std::chrono::seconds(80);
constexpr std::size_t kShardFaultEvery = 5;

std::string environment_or(const char* name, std::string otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? std::string(value) : std::move(otherwise);
}

// Chooses and prints the seed of this run.
std::uint64_t take_seed() {
  const auto seed =
      std::stoull(environment_or("GITOPS_SEED", std::to_string(std::random_device{}())));
  std::cout << "GITOPS_SEED=" << seed << " replays this history" << std::endl;
  return seed;
}

void play(std::chrono::seconds limit, std::size_t replicas,
          const std::function<Task<>(History&)>& body) {
  const auto seed = take_seed();
  run_coro(
      [&]() -> Task<> {
        History history(co_await asio::this_coro::executor, seed, replicas);
        co_await play_in(history, [&](History&) -> Task<> {
          co_await history.start();
          if (!::testing::Test::HasFailure()) co_await body(history);
        });
      },
      limit);
}

// Of both histories; among several shards there is one in ten.
std::size_t number_of_faults() {
  const bool is_long = environment_or("GITOPS_LONG", "") == "1";
  return std::stoul(environment_or("GITOPS_FAULTS", is_long ? "1000" : "50"));
}

Task<> play_faults(History& history, std::size_t faults) {
  const bool sharded = history.pods().size() > 1;
  const auto begin = Clock::now();
  bool settled = true;
  for (std::size_t i = 1; i <= faults && settled; ++i) {
    co_await history.live(1);
    if (sharded && i % kShardFaultEvery == 0) {
      co_await history.shard_fault();
    } else {
      co_await history.fault();
    }
    if (::testing::Test::HasFatalFailure()) co_return;
    // A later change may hide a loss, so check now.
    if (i % 10 == 0) settled = co_await history.settled(kSettle);
  }
  settled = settled && co_await history.settled(kSettle);
  const std::chrono::duration<double> took = Clock::now() - begin;
  const auto lost = history.model.lost();
  const auto& figures = history.figures;
  const auto& allowed = figures.allowed;
  std::cout << "faults " << faults << ", restarts " << figures.restarts << ", shards taken "
            << figures.takings << ", changes " << figures.changes << ", events "
            << history.model.events() << ", duplicates " << history.model.duplicates()
            << " of at most " << allowed.total() << " (unanswered " << allowed.unanswered
            << ", uncommitted " << allowed.uncommitted << ", taken " << allowed.taken
            << ", deleted " << allowed.deleted << "), lost " << lost.size() << "; " << took.count()
            << " s" << std::endl;
  for (const auto& [name, count] : figures.faults)
    std::cout << "  " << name << ": " << count << "\n";
  EXPECT_TRUE(settled);
  EXPECT_THAT(lost, IsEmpty());
  EXPECT_THAT(history.model.wrong(), IsEmpty());
  EXPECT_THAT(history.platform.refused(), IsEmpty());
  EXPECT_LE(history.model.duplicates(), allowed.total());
  EXPECT_GT(history.model.events(), faults);
}

TEST(FaultHistory, NothingIsLostWhateverFails) {
  const auto faults = number_of_faults() - number_of_faults() / 10;
  play(std::chrono::seconds(120 + 2 * faults), 1,
       [faults](History& history) { return play_faults(history, faults); });
}

TEST(FaultHistory, NothingIsLostAmongSeveralShards) {
  const auto faults = number_of_faults() / 10;
  play(std::chrono::seconds(120 + 15 * faults), 3,
       [faults](History& history) { return play_faults(history, faults); });
}

TEST(FaultHistory, AReplicaThatComesBackDoesNotTrustItsLedgerFromBefore) {
  play(std::chrono::seconds(100), 3, [](History& history) -> Task<> {
    history.create_all();
    history.turn_all();
    history.turn_all();
    CO_ASSERT_TRUE(co_await history.settled(std::chrono::seconds(30)));
    for (const std::size_t fewer : {2U, 1U}) {
      co_await history.restart_as(fewer, [&] { history.turn_all(); });
      CO_ASSERT_TRUE(co_await history.settled(std::chrono::seconds(30)));
      // The state is again that of the third report.
      co_await history.restart_as(3, [&] { history.turn_all(); });
      EXPECT_TRUE(co_await history.settled(std::chrono::seconds(30)));
      EXPECT_THAT(history.model.lost(), IsEmpty());
    }
    EXPECT_THAT(history.model.wrong(), IsEmpty());
  });
}

TEST(FaultHistory, ADamagedLedgerMeansThatEverythingIsReportedAgain) {
  play(std::chrono::seconds(100), 1, [](History& history) -> Task<> {
    history.create_all();
    history.change_all();
    CO_ASSERT_TRUE(co_await history.settled(std::chrono::seconds(30)));
    history.kill(history.pod());
    const auto before = history.platform.reports().size();
    write_file(history.pod().ledger(), std::string(8192, 'x'));
    for (const auto* rest : {"-wal", "-shm"}) {
      std::filesystem::remove(history.pod().ledger().string() + rest);
    }
    history.start_pod(history.pod());
    constexpr auto kEvents = History::kApplications * (1 + History::kResources);
    CO_ASSERT_TRUE(co_await history.platform.wait_for_count(
        before + kEvents, deadline_after(std::chrono::seconds(30))));
    // The ledger works again.
    history.change_all();
    CO_ASSERT_TRUE(co_await history.settled(std::chrono::seconds(30)));
    EXPECT_THAT(history.model.wrong(), IsEmpty());
    EXPECT_EQ(history.model.duplicates(), 0U) << "new events, since the old ones are not known";
  });
}

TEST(FaultHistory, TheModelSeesALostEvent) {
  play(std::chrono::seconds(60), 1, [](History& history) -> Task<> {
    history.create_all();
    history.change_all();
    CO_ASSERT_TRUE(co_await history.settled(std::chrono::seconds(30)));
    // Each event is the last about its object, and one in 50 gets lost.
    history.platform.forget_every(50);
    history.change_all();
    EXPECT_FALSE(co_await history.settled(std::chrono::seconds(5)));
    EXPECT_THAT(history.platform.forgotten(), Not(IsEmpty()));
    EXPECT_EQ(history.model.lost().size(), history.platform.forgotten().size());
    // A new state of every object repairs the loss.
    history.platform.forget_every(0);
    history.change_all();
    EXPECT_TRUE(co_await history.settled(std::chrono::seconds(30)));
  });
}

}  // namespace
}  // namespace gitops::test
