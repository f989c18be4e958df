#include "control-plane/storage/stale_objects.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/core/crypto.hpp"
#include "control-plane/accounts/accounts_fixture.hpp"
#include "control-plane/views/seed.hpp"

namespace gitops::control_plane_server {
namespace {

using store::Engine;

constexpr Micros kMinute = 60LL * 1'000'000;

void store_event(EventStore& events, store::Connection& db, std::int64_t account,
                 const std::string& name, Micros at, std::int64_t sequence = 0) {
  JsonParser parser(EventLimits().max_depth);
  auto event = must(read_event(
      parser, app_event(application_of(name)),
      {.event_id = {}, .sequence = sequence, .runtime = "prod", .arrived_at = kSeedTime + at}));
  Incoming incoming{.account = account,
                    .reporter = sequence > 0 ? "application/0/ledger" : "application",
                    .event = std::move(event)};
  must(events.store(db, std::span(&incoming, 1)));
}

struct StaleObjects : testing::TestWithParam<Engine> {
  StaleObjects() { account = must(create_account(db(), "acme", kSeedTime)).number; }
  store::Connection& db() { return bed.connection(); }

  void send(const std::string& name, Micros at, std::int64_t sequence = 0) {
    store_event(*events, db(), account, name, at, sequence);
  }
  std::int64_t mark(Micros at, std::int64_t most = 100) {
    return must(mark_stale_objects(db(), kSeedTime + at, most)).objects;
  }
  Presence presence(const std::string& name) {
    const auto found = must(find_object(db(), account, {.name = name}, BodyUse::skip));
    return found ? found->state.presence : Presence::gone;
  }

  StoreBed bed{GetParam()};
  std::unique_ptr<EventStore> events = make_event_store(GetParam(), "test");
  std::int64_t account = 0;
};

TEST_P(StaleObjects, WhatAReporterNoLongerSendsIsStaleUntilItsNextEvent) {
  send("shop", 0);
  send("cart", 0);
  EXPECT_EQ(mark(59 * kMinute), 0);
  send("shop", 60 * kMinute);
  EXPECT_EQ(mark(61 * kMinute), 1);
  EXPECT_EQ(presence("shop"), Presence::live);
  EXPECT_EQ(presence("cart"), Presence::stale);
  send("cart", 62 * kMinute);
  EXPECT_EQ(presence("cart"), Presence::live);
}

TEST_P(StaleObjects, WhileNothingIsHeardOfAReporterNothingIsConcluded) {
  send("shop", 0);
  EXPECT_EQ(mark(600 * kMinute), 0);
  EXPECT_EQ(presence("shop"), Presence::live);
}

TEST_P(StaleObjects, ReportersWithSequencesTellDeletionsThemselves) {
  send("shop", 0, 1);
  send("cart", 600 * kMinute, 2);
  EXPECT_EQ(mark(601 * kMinute), 0);
}

TEST_P(StaleObjects, OneCallMarksABoundedNumber) {
  for (const auto* name : {"a", "b", "c"}) send(name, 0);
  send("d", 90 * kMinute);
  EXPECT_EQ(mark(91 * kMinute, 2), 2);
  EXPECT_EQ(mark(91 * kMinute, 2), 1);
}

TEST_P(StaleObjects, TheAccountsWhosePagesHaveToHearOfItAreKnown) {
  must(create_account(db(), "other", kSeedTime));
  send("shop", 0);
  send("cart", 60 * kMinute);
  const auto at = kSeedTime + 61 * kMinute;
  EXPECT_THAT(must(mark_stale_objects(db(), at, 100)).accounts, testing::ElementsAre(account));
  EXPECT_THAT(must(mark_stale_objects(db(), at, 100)).accounts, testing::IsEmpty());
}

TEST(StaleObjectsAtReplicas, AnObjectThatIsBeingStoredIsPassedOver) {
  const test::TestDatabase files(Engine::postgres);
  const auto marking = must(store::open_postgres(files.location(), "test"));
  const auto storing = must(store::open_postgres(files.location(), "test"));
  must(store::migrate(*marking, migrations()));
  const auto account = must(create_account(*marking, "acme", kSeedTime)).number;
  const auto events = make_event_store(Engine::postgres, "test");
  for (const auto* name : {"shop", "cart"}) store_event(*events, *marking, account, name, 0);
  store_event(*events, *marking, account, "new", 60 * kMinute);
  constexpr store::Statement kHold{.name = "test.hold_object",
                                   .sql = "SELECT id FROM object WHERE name = 'shop' FOR UPDATE"};
  must(storing->run_script("BEGIN"));
  must(storing->run(kHold));
  const auto at = kSeedTime + 61 * kMinute;
  EXPECT_EQ(must(mark_stale_objects(*marking, at, 100)).objects, 1);
  must(storing->run_script("ROLLBACK"));
  EXPECT_EQ(must(mark_stale_objects(*marking, at, 100)).objects, 1);
}

INSTANTIATE_TEST_SUITE_P(Engines, StaleObjects, testing::Values(Engine::sqlite, Engine::postgres),
                         [](const auto& info) {
                           return info.param == Engine::sqlite ? "sqlite" : "postgres";
                         });

}  // namespace
}  // namespace gitops::control_plane_server
