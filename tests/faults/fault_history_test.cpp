#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "faults/application_history.hpp"
#include "faults/history_events.hpp"
#include "faults/resource_history.hpp"
#include "support/play.hpp"
#include "support/run_coro.hpp"

// The real event-reporter runs through a history of changes and faults that a seed determines. Every
// second step is two faults at once.
// After the last fault a model checks whether every change was reported to the control plane.
// GITOPS_SEED replays a seed, GITOPS_FAULTS sets how many faults there are, GITOPS_LONG=1 makes it
// 1,000 in mode `app` and 500 in mode `resource`.
namespace gitops::test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::size_t kShardFaultEvery = 5;
constexpr std::size_t kCheckEvery = 10;

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

template <class Kind>
void play(std::chrono::seconds limit, std::size_t replicas,
          const std::function<Task<>(Kind&)>& body) {
  const auto seed = take_seed();
  run_coro(
      [&]() -> Task<> {
        Kind history(co_await asio::this_coro::executor, seed, replicas);
        co_await play_in(history, [&](Kind&) -> Task<> {
          co_await history.start();
          if (!::testing::Test::HasFailure()) co_await body(history);
        });
      },
      limit);
}

// Of both histories of a mode; among several shards there is one in ten.
std::size_t number_of_faults(const char* of_long, const char* of_short) {
  const bool is_long = environment_or("GITOPS_LONG", "") == "1";
  return std::stoul(environment_or("GITOPS_FAULTS", is_long ? of_long : of_short));
}

// Ends at the first failure: what follows from it says nothing.
Task<> play_faults(History& history, std::size_t faults) {
  const bool sharded = history.pods().size() > 1;
  const auto begin = Clock::now();
  for (std::size_t i = 1; i <= faults; ++i) {
    co_await history.live(1);
    if (sharded && i % kShardFaultEvery == 1) {
      co_await history.shard_fault();
    } else if (i % 2 == 0) {
      co_await history.fault_pair();
    } else {
      co_await history.fault();
    }
    if (::testing::Test::HasFailure()) co_return;
    // A later change may hide a loss, so check now.
    if (i % kCheckEvery == 0 || i == faults) {
      CO_ASSERT_TRUE(co_await history.settled(History::kSettle));
      if (i % (2 * kCheckEvery) == 0) co_await history.calm();
      if (::testing::Test::HasFailure()) co_return;
      CO_ASSERT_EQ(history.model.wrong(), std::vector<std::string>{});
    }
  }
  const std::chrono::duration<double> took = Clock::now() - begin;
  const auto& figures = history.figures;
  const auto& allowed = figures.allowed;
  std::cout << "faults " << faults << ", restarts " << figures.restarts << ", shards taken "
            << figures.takings << ", disturbed calms " << figures.disturbed_calms << ", changes "
            << figures.changes << ", events " << history.model.events() << ", duplicates "
            << history.model.duplicates() << " of at most " << allowed.total() << " (unanswered "
            << allowed.unanswered << ", uncommitted " << allowed.uncommitted << ", taken "
            << allowed.taken << ", deleted " << allowed.deleted << "), lost "
            << history.model.lost().size() << ", wrong " << history.model.wrong().size() << "; "
            << took.count() << " s" << std::endl;
  for (const auto& [name, count] : figures.faults)
    std::cout << "  " << name << ": " << count << "\n";
  std::cout << "  pairs of classes at once: " << figures.pairs.size() << "\n";
  const auto pairs = History::pairs_of_classes();
  if (!sharded && faults >= 2 * pairs.size()) EXPECT_EQ(figures.pairs.size(), pairs.size());
  EXPECT_THAT(history.model.lost(), IsEmpty());
  EXPECT_THAT(history.model.wrong(), IsEmpty());
  EXPECT_THAT(history.platform.refused(), IsEmpty());
  EXPECT_LE(history.model.duplicates(), allowed.total());
  EXPECT_GT(history.model.events(), faults);
}

template <class Kind>
void play_single(std::size_t all) {
  const auto faults = all - all / 10;
  play<Kind>(std::chrono::seconds(900 + 4 * faults), 1,
             [faults](Kind& history) { return play_faults(history, faults); });
}

template <class Kind>
void play_shards(std::size_t all) {
  const auto faults = all / 10;
  play<Kind>(std::chrono::seconds(900 + 40 * faults), 3,
             [faults](Kind& history) { return play_faults(history, faults); });
}

TEST(FaultHistory, NothingIsLostWhateverFails) {
  play_single<ApplicationHistory>(number_of_faults("1000", "30"));
}

TEST(FaultHistory, NothingIsLostAmongSeveralShards) {
  play_shards<ApplicationHistory>(number_of_faults("1000", "30"));
}

TEST(FaultHistory, NoResourceIsLostWhateverFails) {
  play_single<ResourceHistory>(number_of_faults("500", "20"));
}

TEST(FaultHistory, NoResourceIsLostAmongSeveralShards) {
  play_shards<ResourceHistory>(number_of_faults("500", "20"));
}

TEST(FaultHistory, AReplicaThatComesBackDoesNotTrustItsLedgerFromBefore) {
  play<ApplicationHistory>(std::chrono::seconds(100), 3, [](ApplicationHistory& history) -> Task<> {
    history.create_all();
    history.turn_all();
    history.turn_all();
    CO_ASSERT_TRUE(co_await history.settled(std::chrono::seconds(30)));
    for (const std::size_t fewer : {2U, 1U}) {
      co_await history.restart_as(fewer, [&] { history.turn_all(); });
      CO_ASSERT_TRUE(co_await history.settled(std::chrono::seconds(30)));
      // The state is again that of the third report.
      co_await history.restart_as(3, [&] { history.turn_all(); });
      CO_ASSERT_TRUE(co_await history.settled(std::chrono::seconds(30)));
    }
    EXPECT_THAT(history.model.wrong(), IsEmpty());
  });
}

TEST(FaultHistory, ADamagedLedgerMeansThatEverythingIsReportedAgain) {
  play<ApplicationHistory>(std::chrono::seconds(100), 1, [](ApplicationHistory& history) -> Task<> {
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
    constexpr auto kEvents =
        ApplicationHistory::kApplications * (1 + ApplicationHistory::kResources);
    CO_ASSERT_TRUE(co_await history.platform.wait_for_count(
        before + kEvents, deadline_after(std::chrono::seconds(30))));
    // The ledger works again.
    history.change_all();
    CO_ASSERT_TRUE(co_await history.settled(std::chrono::seconds(30)));
    EXPECT_THAT(history.model.wrong(), IsEmpty());
    EXPECT_EQ(history.model.duplicates(), 0U) << "new events, since the old ones are not known";
  });
}

// The next process sees the states that its ledger has, and a clock from before.
TEST(FaultHistory, AKillOnAFullDiskLosesNothingAndRepeatsNoSequence) {
  play<ApplicationHistory>(std::chrono::seconds(100), 1, [](ApplicationHistory& history) -> Task<> {
    history.create_all();
    history.change_all();
    CO_ASSERT_TRUE(co_await history.settled(std::chrono::seconds(30)));
    history.pod().limit_files(4096);
    history.turn_all();
    CO_ASSERT_TRUE(co_await history.settled(std::chrono::seconds(30)));
    EXPECT_NE(history.pod().ledger_pending(), "0");
    history.kill(history.pod());
    history.pod().set_clock(-std::chrono::hours(7));
    history.turn_all();
    history.start_pod(history.pod());
    CO_ASSERT_TRUE(co_await history.settled(std::chrono::seconds(30)));
    history.change_all();
    CO_ASSERT_TRUE(co_await history.settled(std::chrono::seconds(30)));
    EXPECT_THAT(history.model.wrong(), IsEmpty());
  });
}

// -- the oracle itself, on events of the real program --

using Reports = std::vector<FakePlatform::Report>;

// What a model finds that takes these events instead.
std::vector<std::string> judge(const History& history, const Reports& reports) {
  auto model = history.model.without_events();
  for (const auto& report : reports) model.receive(read_application_event(report));
  auto found = model.lost();
  found.insert(found.end(), model.wrong().begin(), model.wrong().end());
  return found;
}

TEST(FaultHistory, TheModelSeesEachKindOfFaultOfAReporter) {
  play<ApplicationHistory>(std::chrono::seconds(60), 1, [](ApplicationHistory& history) -> Task<> {
    history.create_all();
    history.change_all();
    CO_ASSERT_TRUE(co_await history.settled(std::chrono::seconds(30)));
    history.change_all();
    CO_ASSERT_TRUE(co_await history.settled(std::chrono::seconds(30)));
    const Reports all(history.platform.reports().begin(), history.platform.reports().end());
    EXPECT_THAT(judge(history, all), IsEmpty());
    const auto object = [](const FakePlatform::Report& report) {
      return read_application_event(report).object;
    };
    const auto& newest = all.back();
    const auto older = std::ranges::find_if(
        all, [&](const auto& report) { return object(report) == object(newest); });
    CO_ASSERT_TRUE(older->sequence < newest.sequence);

    // Also a refusal that is taken for an acknowledgement: the control plane does not have the event.
    Reports dropped(all.begin(), all.end() - 1);
    EXPECT_THAT(judge(history, dropped), Contains(HasSubstr(object(newest))));
    Reports swapped = all;
    std::swap(swapped.back().sequence,
              swapped[static_cast<std::size_t>(older - all.begin())].sequence);
    EXPECT_THAT(judge(history, swapped), Contains(HasSubstr("was reported as")));
    Reports deleted = all;
    deleted.push_back(newest);
    deleted.back().sequence += 1;
    deleted.back().event_id += "/gone";
    for (const auto* manifest : {"actualManifest", "desiredManifest"}) {
      deleted.back().data["source"][manifest] = "";
    }
    EXPECT_THAT(judge(history, deleted), Contains(HasSubstr("never was deleted")));
    // As of a replica that lost its shard: in a later term, so above everything before.
    Reports stale = all;
    stale.push_back(*older);
    stale.back().sequence = newest.sequence + 1;
    stale.back().event_id += "/again";
    EXPECT_THAT(judge(history, stale), Contains(HasSubstr("goes back")));
    // One that is healed at once is seen, too.
    stale.push_back(newest);
    stale.back().sequence = newest.sequence + 2;
    stale.back().event_id += "/and again";
    EXPECT_THAT(judge(history, stale), Contains(HasSubstr("goes back")));
  });
}

TEST(FaultHistory, TheModelSeesALostEvent) {
  play<ApplicationHistory>(std::chrono::seconds(60), 1, [](ApplicationHistory& history) -> Task<> {
    history.create_all();
    history.change_all();
    CO_ASSERT_TRUE(co_await history.settled(std::chrono::seconds(30)));
    // Each event is the last about its object, and one in 50 gets lost.
    const auto before = history.platform.reports().size();
    history.platform.forget_every(50);
    history.change_all();
    constexpr auto kEvents =
        ApplicationHistory::kApplications * (1 + ApplicationHistory::kResources);
    CO_ASSERT_TRUE(co_await history.platform.wait_for_count(
        before + kEvents - kEvents / 50, deadline_after(std::chrono::seconds(30))));
    CO_ASSERT_TRUE(co_await history.platform.wait_until_quiet(
        std::chrono::milliseconds(500), deadline_after(std::chrono::seconds(30))));
    history.receive();
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
