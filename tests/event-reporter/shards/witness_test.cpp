#include "event-reporter/shards/witness.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/run_coro.hpp"

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

// A Witness that remembers for ten minutes what is gone.
struct World {
  explicit World(const Executor& executor)
      : ledger(executor, {}, metrics),
        witness(executor, ledger, minutes(10)),
        tasks(executor,
              [](const auto& task, const auto& what) { ADD_FAILURE() << task << ": " << what; }) {}

  Metrics metrics;
  Ledger ledger;
  Witness witness;
  TaskGroup tasks;
  Clock::time_point begin = Clock::now();

  void sees(std::string_view uid, std::vector<ResourceId> parts, minutes when = {}) {
    witness.sees("ns/web", uid, parts, begin + when);
  }
  Task<LedgerEntry> row(std::string_view uid) {
    auto loaded = co_await ledger.load(witness_row("ns/web", uid));
    co_return loaded.value();
  }
  Task<> wait_for_parts(std::size_t count) {
    while ((co_await row("u")).resources.size() != count) {
      co_await sleep_for(std::chrono::milliseconds(1));
    }
  }
};

void play(const std::function<Task<>(World&)>& body) {
  test::run_in_test_time([&]() -> Task<> {
    World world(co_await asio::this_coro::executor);
    CO_ASSERT_OK(co_await world.ledger.open());
    world.ledger.start(world.tasks);
    world.witness.start(world.tasks);
    co_await body(world);
    world.tasks.cancel();
    co_await world.tasks.join();
  });
}

TEST(Witness, WritesDownWhatItSeesAtOnce) {
  play([](World& world) -> Task<> {
    world.sees("u", {config_map("a"), config_map("b")});
    EXPECT_THAT(names(co_await world.row("u")), ElementsAre("a", "b"));
    EXPECT_TRUE(world.ledger.known().empty()) << "it is not what this process reported";
    EXPECT_TRUE(world.witness.knows("ns/web"));
    EXPECT_FALSE(world.witness.knows("ns/we"));
    EXPECT_FALSE(world.witness.knows("ns/web2"));
  });
}

TEST(Witness, RemembersPartsThatAreGoneForAWhile) {
  play([](World& world) -> Task<> {
    world.sees("u", {config_map("a"), config_map("b")});
    world.sees("u", {config_map("b"), config_map("c")}, minutes(1));
    co_await world.wait_for_parts(3);
    world.witness.expire(world.begin + minutes(10));
    EXPECT_THAT(names(co_await world.row("u")), ElementsAre("a", "b", "c"));
    world.witness.expire(world.begin + minutes(11));
    EXPECT_THAT(names(co_await world.row("u")), ElementsAre("b", "c"));
  });
}

TEST(Witness, WritesNothingWhenNothingChanged) {
  play([](World& world) -> Task<> {
    world.sees("u", {config_map("a")});
    CO_ASSERT_OK(co_await world.ledger.flush(deadline_after(std::chrono::seconds(5))));
    world.sees("u", {config_map("a")}, minutes(1));
    EXPECT_EQ(world.ledger.pending(), 0U);
    world.sees("u", {config_map("b")}, minutes(2));
    co_await world.wait_for_parts(2);
    CO_ASSERT_OK(co_await world.ledger.flush(deadline_after(std::chrono::seconds(5))));
    world.sees("u", {config_map("b")}, minutes(9));
    EXPECT_EQ(world.ledger.pending(), 0U);
    world.witness.expire(world.begin + minutes(12));
    EXPECT_THAT(names(co_await world.row("u")), ElementsAre("b"))
        << "the same once more does not make it newer";
  });
}

TEST(Witness, RemembersWhatIsGoneForAWhile) {
  play([](World& world) -> Task<> {
    world.sees("u", {config_map("a")});
    EXPECT_THAT(world.witness.gone("ns/web"), IsEmpty());
    world.witness.misses("ns/web", world.begin + minutes(1));
    world.witness.misses("ns/web", world.begin + minutes(5));
    EXPECT_THAT(world.witness.gone("ns/web"), ElementsAre("u"));
    world.witness.expire(world.begin + minutes(10));
    EXPECT_THAT(names(co_await world.row("u")), ElementsAre("a"));
    world.witness.expire(world.begin + minutes(11));
    EXPECT_FALSE(world.witness.knows("ns/web"));
  });
}

TEST(Witness, KeepsApartWhatHadTheSameName) {
  play([](World& world) -> Task<> {
    world.sees("u", {config_map("a")});
    world.witness.misses_others("ns/web", "v", world.begin + minutes(1));
    world.sees("v", {config_map("b")}, minutes(1));
    EXPECT_THAT(world.witness.gone("ns/web"), ElementsAre("u"));
    world.witness.misses_others("ns/web", "w", world.begin + minutes(2));
    EXPECT_THAT(world.witness.gone("ns/web"), ElementsAre("u", "v"));
    EXPECT_THAT(names(co_await world.row("u")), ElementsAre("a"));
    world.witness.expire(world.begin + minutes(11));
    EXPECT_THAT(world.witness.gone("ns/web"), ElementsAre("v"));
  });
}

TEST(Witness, DoesNotBringBackWhatSomebodyMadeHisOwn) {
  play([](World& world) -> Task<> {
    world.sees("u", {config_map("a")});
    world.sees("u", {config_map("b")});
    world.ledger.erase(witness_row("ns/web", "u"));
    world.witness.expire(world.begin + minutes(11));
    EXPECT_FALSE(world.witness.knows("ns/web"));
    // Given back, it is written anew, and not replaced by what was due before.
    world.sees("u", {config_map("c")}, minutes(12));
    world.witness.expire(world.begin + minutes(30));
    EXPECT_THAT(names(co_await world.row("u")), ElementsAre("c"));
  });
}

}  // namespace
}  // namespace gitops::reporter
