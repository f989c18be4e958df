#include "event-reporter/shards/peer_inventory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/run_coro.hpp"
#include "support/wait.hpp"

namespace gitops::reporter {
namespace {

using std::chrono::minutes;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

ResourceId config_map(std::string name) {
  return {.group = "", .version = "v1", .kind = "ConfigMap", .ns = "shop", .name = std::move(name)};
}

std::vector<std::string> names(const LedgerEntry& entry) {
  std::vector<std::string> out;
  for (const auto& id : entry.resource_ids()) out.push_back(id.name);
  return out;
}

// A PeerInventory that remembers for ten minutes what is gone.
struct Fixture {
  explicit Fixture(const Executor& executor)
      : ledger(executor, {}, metrics),
        inventory(executor, ledger, minutes(10), [this] { return takes_events; }),
        tasks(executor,
              [](const auto& task, const auto& what) { ADD_FAILURE() << task << ": " << what; }) {}

  Metrics metrics;
  Ledger ledger;
  bool takes_events = true;
  PeerInventory inventory;
  TaskGroup tasks;
  Clock::time_point begin = Clock::now();

  void sees(std::string_view uid, std::vector<ResourceId> parts, minutes when = {}) {
    inventory.add("ns/web", uid, parts, begin + when);
  }
  Task<LedgerEntry> row(std::string_view uid) {
    auto loaded = co_await ledger.load(inventory_row("ns/web", uid));
    co_return loaded.value();
  }
  Task<> wait_for_parts(std::size_t count) {
    const auto has_parts = [&]() -> Task<bool> {
      co_return (co_await row("u")).resources.size() == count;
    };
    EXPECT_TRUE(co_await test::eventually(has_parts, std::to_string(count) + " parts in the row"));
  }
};

void play(const std::function<Task<>(Fixture&)>& body) {
  test::run_in_test_time([&]() -> Task<> {
    Fixture fixture(co_await asio::this_coro::executor);
    CO_ASSERT_OK(co_await fixture.ledger.open());
    fixture.ledger.start(fixture.tasks);
    fixture.inventory.start(fixture.tasks);
    co_await body(fixture);
    fixture.tasks.cancel();
    co_await fixture.tasks.join();
  });
}

TEST(PeerInventory, WritesDownWhatItSeesAtOnce) {
  play([](Fixture& fixture) -> Task<> {
    fixture.sees("u", {config_map("a"), config_map("b")});
    EXPECT_THAT(names(co_await fixture.row("u")), ElementsAre("a", "b"));
    EXPECT_TRUE(fixture.ledger.known().empty()) << "it is not what this process reported";
    EXPECT_TRUE(fixture.inventory.contains("ns/web"));
    EXPECT_FALSE(fixture.inventory.contains("ns/we"));
    EXPECT_FALSE(fixture.inventory.contains("ns/web2"));
  });
}

TEST(PeerInventory, AFlushWaitsForThePartsOfLaterStates) {
  play([](Fixture& fixture) -> Task<> {
    fixture.sees("u", {config_map("a")});
    fixture.sees("u", {config_map("b")});
    co_await fixture.inventory.flush(deadline_after(minutes(1)));
    EXPECT_THAT(names(co_await fixture.row("u")), ElementsAre("a", "b"));
    co_await fixture.inventory.flush(deadline_after(minutes(1)));
  });
}

TEST(PeerInventory, RemembersPartsThatAreGoneForAWhile) {
  play([](Fixture& fixture) -> Task<> {
    fixture.sees("u", {config_map("a"), config_map("b")});
    fixture.sees("u", {config_map("b"), config_map("c")}, minutes(1));
    co_await fixture.wait_for_parts(3);
    fixture.inventory.expire(fixture.begin + minutes(10));
    EXPECT_THAT(names(co_await fixture.row("u")), ElementsAre("a", "b", "c"));
    fixture.inventory.expire(fixture.begin + minutes(11));
    EXPECT_THAT(names(co_await fixture.row("u")), ElementsAre("b", "c"));
  });
}

// The replica that reported them may be removed with its ledger.
TEST(PeerInventory, RemembersPartsThatAreThereForAMoment) {
  play([](Fixture& fixture) -> Task<> {
    fixture.sees("u", {config_map("a")});
    fixture.sees("u", {config_map("a"), config_map("b")});
    fixture.sees("u", {config_map("a"), config_map("c")});
    fixture.sees("u", {config_map("a")});
    co_await fixture.wait_for_parts(3);
    fixture.sees("u", {config_map("a"), config_map("d")}, minutes(1));
    fixture.inventory.remove("ns/web", fixture.begin + minutes(1));
    co_await fixture.wait_for_parts(4);
    EXPECT_THAT(fixture.inventory.deleted_uids("ns/web"), ElementsAre("u"));
    fixture.inventory.expire(fixture.begin + minutes(11));
    EXPECT_FALSE(fixture.inventory.contains("ns/web"));
  });
}

TEST(PeerInventory, ForgetsPartsThatWereThereForAMoment) {
  play([](Fixture& fixture) -> Task<> {
    fixture.sees("u", {config_map("a")});
    fixture.sees("u", {config_map("a"), config_map("b")});
    fixture.sees("u", {config_map("a")});
    co_await fixture.wait_for_parts(2);
    fixture.inventory.expire(fixture.begin + minutes(10));
    EXPECT_THAT(names(co_await fixture.row("u")), ElementsAre("a"));
  });
}

TEST(PeerInventory, WritesNothingWhenNothingChanged) {
  play([](Fixture& fixture) -> Task<> {
    fixture.sees("u", {config_map("a")});
    CO_ASSERT_OK(co_await fixture.ledger.flush(deadline_after(std::chrono::seconds(5))));
    fixture.sees("u", {config_map("a")}, minutes(1));
    EXPECT_EQ(fixture.ledger.pending(), 0U);
    fixture.sees("u", {config_map("b")}, minutes(2));
    co_await fixture.wait_for_parts(2);
    CO_ASSERT_OK(co_await fixture.ledger.flush(deadline_after(std::chrono::seconds(5))));
    fixture.sees("u", {config_map("b")}, minutes(9));
    EXPECT_EQ(fixture.ledger.pending(), 0U);
    fixture.inventory.expire(fixture.begin + minutes(12));
    EXPECT_THAT(names(co_await fixture.row("u")), ElementsAre("b"))
        << "the same once more does not make it newer";
  });
}

// Nobody can report the deletion then.
TEST(PeerInventory, RemembersWhatIsGoneWhileTheControlPlaneTakesNoEvents) {
  play([](Fixture& fixture) -> Task<> {
    fixture.sees("u", {config_map("a")});
    fixture.inventory.remove("ns/web", fixture.begin + minutes(1));
    fixture.inventory.expire(fixture.begin + minutes(1));
    fixture.takes_events = false;
    for (int minute = 2; minute <= 60; ++minute) {
      fixture.inventory.expire(fixture.begin + minutes(minute));
    }
    EXPECT_TRUE(fixture.inventory.contains("ns/web"));
    fixture.takes_events = true;
    fixture.inventory.expire(fixture.begin + minutes(69));
    EXPECT_TRUE(fixture.inventory.contains("ns/web"));
    fixture.inventory.expire(fixture.begin + minutes(70));
    EXPECT_FALSE(fixture.inventory.contains("ns/web"));
    co_return;
  });
}

TEST(PeerInventory, RemembersADeletionThatWasRefused) {
  play([](Fixture& fixture) -> Task<> {
    fixture.sees("u", {});
    fixture.inventory.remove("ns/web", fixture.begin + minutes(1));
    auto entry = co_await fixture.row("u");
    entry.announce(kGone, 5);
    entry.refuse(400, {}, "no");
    fixture.ledger.store(inventory_row("ns/web", "u"), entry);
    fixture.inventory.expire(fixture.begin + minutes(60));
    EXPECT_TRUE(fixture.inventory.contains("ns/web"));
  });
}

TEST(PeerInventory, RemembersWhatIsGoneForAWhile) {
  play([](Fixture& fixture) -> Task<> {
    fixture.sees("u", {config_map("a")});
    EXPECT_THAT(fixture.inventory.deleted_uids("ns/web"), IsEmpty());
    fixture.inventory.remove("ns/web", fixture.begin + minutes(1));
    fixture.inventory.remove("ns/web", fixture.begin + minutes(5));
    EXPECT_THAT(fixture.inventory.deleted_uids("ns/web"), ElementsAre("u"));
    fixture.inventory.expire(fixture.begin + minutes(10));
    EXPECT_THAT(names(co_await fixture.row("u")), ElementsAre("a"));
    fixture.inventory.expire(fixture.begin + minutes(11));
    EXPECT_FALSE(fixture.inventory.contains("ns/web"));
  });
}

TEST(PeerInventory, KeepsApartWhatHadTheSameName) {
  play([](Fixture& fixture) -> Task<> {
    fixture.sees("u", {config_map("a")});
    fixture.inventory.remove_others("ns/web", "v", fixture.begin + minutes(1));
    fixture.sees("v", {config_map("b")}, minutes(1));
    EXPECT_THAT(fixture.inventory.deleted_uids("ns/web"), ElementsAre("u"));
    fixture.inventory.remove_others("ns/web", "w", fixture.begin + minutes(2));
    EXPECT_THAT(fixture.inventory.deleted_uids("ns/web"), ElementsAre("u", "v"));
    EXPECT_THAT(names(co_await fixture.row("u")), ElementsAre("a"));
    fixture.inventory.expire(fixture.begin + minutes(11));
    EXPECT_THAT(fixture.inventory.deleted_uids("ns/web"), ElementsAre("v"));
  });
}

// A read is ahead of the watch, which tells of the predecessor and its end after that.
TEST(PeerInventory, WhatTheWatchDeliversIsNotGone) {
  play([](Fixture& fixture) -> Task<> {
    fixture.sees("v", {config_map("a")});
    fixture.inventory.remove_others("ns/web", "u", fixture.begin + minutes(1));
    fixture.inventory.remove("ns/web", fixture.begin + minutes(2));
    EXPECT_THAT(fixture.inventory.deleted_uids("ns/web"), ElementsAre("v"));
    fixture.inventory.remove_others("ns/web", "v", fixture.begin + minutes(3));
    EXPECT_THAT(fixture.inventory.deleted_uids("ns/web"), IsEmpty());
    fixture.inventory.expire(fixture.begin + minutes(60));
    EXPECT_THAT(names(co_await fixture.row("v")), ElementsAre("a"));
  });
}

TEST(PeerInventory, DoesNotBringBackWhatSomebodyMadeHisOwn) {
  play([](Fixture& fixture) -> Task<> {
    fixture.sees("u", {config_map("a")});
    fixture.sees("u", {config_map("b")});
    fixture.ledger.erase(inventory_row("ns/web", "u"));
    fixture.inventory.expire(fixture.begin + minutes(11));
    EXPECT_FALSE(fixture.inventory.contains("ns/web"));
    // Given back, it is rewritten, and not replaced by what was due before.
    fixture.sees("u", {config_map("c")}, minutes(12));
    fixture.inventory.expire(fixture.begin + minutes(30));
    EXPECT_THAT(names(co_await fixture.row("u")), ElementsAre("c"));
  });
}

}  // namespace
}  // namespace gitops::reporter
