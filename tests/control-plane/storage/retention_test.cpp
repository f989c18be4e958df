#include "control-plane/storage/retention.hpp"

#include <atomic>
#include <map>
#include <thread>

#include <gtest/gtest.h>

#include "common/core/crypto.hpp"
#include "control-plane/accounts/accounts_fixture.hpp"
#include "control-plane/storage/source_report_store.hpp"
#include "control-plane/views/seed.hpp"

namespace gitops::control_plane_server {
namespace {

using Json = nlohmann::json;
using store::Engine;
using store::Statement;

constexpr Micros kDay = 24 * kHour;

struct RetentionContract : testing::TestWithParam<Engine> {
  RetentionContract() { account = must(create_account(db(), "acme", kSeedTime)).number; }
  store::Connection& db() { return bed.connection(); }
  std::int64_t send(const std::string& body) { return seeder.store(db(), account, body); }
  std::int64_t count(const char* table) {
    // A connection knows a statement by the address of its name.
    static std::map<std::string, std::string, std::less<>> texts;
    const auto& [name, sql] =
        *texts.emplace(table, std::string("SELECT count(*) FROM ") + table).first;
    return must(db().run({.name = name, .sql = sql})).number(0, 0);
  }
  std::int64_t remove(Micros now, std::int64_t most = 1'000) {
    return must(remove_expired(db(), retention_cuts({}, now), most));
  }
  StoreBed bed{GetParam()};
  Seeder seeder{GetParam()};
  std::int64_t account = 0;
};

TEST_P(RetentionContract, HistoryIsForgottenAndTheNewestReleaseStays) {
  for (int id = 1; id <= 3; ++id) {
    auto application = application_of("shop");
    application["status"]["sync"]["revision"] = "r" + std::to_string(id);
    application["status"]["history"] = {
        {{"id", id}, {"revision", "r"}, {"deployedAt", "2026-03-04T09:00:00Z"}}};
    send(app_event(application));
  }
  EXPECT_EQ(count("timeline"), 3);
  EXPECT_EQ(count("app_release"), 3);
  EXPECT_EQ(remove(kSeedTime + 89 * kDay), 3) << "the outbox alone";
  EXPECT_EQ(count("change"), 0);
  EXPECT_EQ(count("timeline"), 3);
  EXPECT_EQ(remove(kSeedTime + 91 * kDay), 5);
  EXPECT_EQ(count("timeline"), 0);
  EXPECT_EQ(count("app_release"), 1);
  EXPECT_EQ(count("object"), 1) << "what is there stays";
  EXPECT_EQ(count("body"), 1);
}

TEST_P(RetentionContract, DeletedObjectsGoWithAllTheyHad) {
  auto application = application_of("shop");
  application["metadata"]["labels"] = {{"team", "a"}};
  application["status"]["history"] = {{{"id", 1}, {"revision", "r"}}};
  send(app_event(application));
  send(app_event(application_of("cart")));
  send(app_event(application, {{"actualManifest", ""}}));
  remove(kSeedTime + 29 * kDay);
  EXPECT_EQ(count("object"), 2);
  remove(kSeedTime + 31 * kDay);
  EXPECT_EQ(count("object"), 1);
  EXPECT_EQ(count("body"), 1);
  EXPECT_EQ(count("label"), 0);
  EXPECT_EQ(count("app_release"), 0);
  EXPECT_EQ(count("timeline"), 1);
}

TEST_P(RetentionContract, TheReleaseOfAnApplicationThatWasCreatedAgainStays) {
  const auto deployed = [](const char* uid, int id, const char* at) {
    auto application = application_of("shop");
    application["metadata"]["uid"] = uid;
    application["status"]["history"] = {{{"id", id}, {"revision", "r"}, {"deployedAt", at}}};
    return app_event(application);
  };
  send(deployed("uid-1", 7, "2026-03-04T09:00:00Z"));
  send(deployed("uid-2", 0, "2026-03-04T10:00:00Z"));
  EXPECT_EQ(count("app_release"), 2);
  remove(kSeedTime + 91 * kDay);
  EXPECT_EQ(count("app_release"), 1);
  EXPECT_EQ(
      must(db().run({.name = "test.release_left", .sql = "SELECT history_id FROM app_release"}))
          .number(0, 0),
      0);
}

TEST_P(RetentionContract, ObjectsOfADeletedRuntimeGo) {
  must(db().run(kTestAddRuntime, {account, "prod", kSeedTime}));
  auto application = application_of("shop");
  application["metadata"]["labels"] = {{"team", "a"}};
  application["status"]["history"] = {{{"id", 1}, {"revision", "r"}}};
  send(app_event(application));
  seeder.store(db(), account, app_event(application), "gone");
  seeder.store(db(), account, app_event(application_of("cart")), "gone");
  EXPECT_EQ(must(remove_orphans(db(), kSeedTime, 1'000)), 0) << "it may be registered just now";
  EXPECT_EQ(must(remove_orphans(db(), kSeedTime + kHour, 1)), 1);
  EXPECT_EQ(must(remove_orphans(db(), kSeedTime + kHour, 1'000)), 1);
  EXPECT_EQ(must(remove_orphans(db(), kSeedTime + kHour, 1'000)), 0);
  for (const auto* table : {"object", "body", "label", "timeline", "app_release"}) {
    EXPECT_EQ(count(table), 1) << table;
  }
}

TEST_P(RetentionContract, ACallRemovesAtMostSoMany) {
  for (int i = 0; i < 25; ++i) send(app_event(application_of("n" + std::to_string(i))));
  const auto now = kSeedTime + 91 * kDay;
  EXPECT_EQ(remove(now, 1), 21) << "twenty changes, which do not keep the timeline waiting";
  EXPECT_EQ(count("change"), 5);
  EXPECT_EQ(count("timeline"), 24);
  EXPECT_EQ(remove(now, 10), 15);
  EXPECT_EQ(remove(now, 10), 10);
  EXPECT_EQ(remove(now, 10), 4);
  EXPECT_EQ(remove(now, 10), 0);
}

TEST_P(RetentionContract, SessionsGoWhenTheyExpire) {
  constexpr Statement kAdd{.name = "test.add_session",
                           .sql =
                               "INSERT INTO session (hash, user_id, created_at, seen_at, "
                               "expires_at) VALUES ($1, 'u', 1, 1, $2)"};
  must(db().run(kAdd, {store::Param::bytes("a"), kSeedTime - 1}));
  must(db().run(kAdd, {store::Param::bytes("b"), kSeedTime + 1}));
  EXPECT_EQ(remove(kSeedTime), 1);
  EXPECT_EQ(count("session"), 1);
}

TEST_P(RetentionContract, ReportsOfEventSourcesAreForgotten) {
  EventPayload payload{.id = "e1", .source = "github", .type = "github", .at = kSeedTime};
  must(put_event_payload(db(), account, "prod", payload));
  must(put_source_error(db(), account, "prod", {.kind = "EventSource", .name = "github"},
                        kSeedTime));
  remove(kSeedTime + 6 * kDay);
  EXPECT_EQ(count("event_payload"), 1);
  EXPECT_EQ(count("source_error"), 1);
  remove(kSeedTime + 8 * kDay);
  EXPECT_EQ(count("event_payload"), 0);
  EXPECT_EQ(count("source_error"), 0);
}

TEST_P(RetentionContract, ARuntimeKeepsItsNewestReportsOfEventSources) {
  must(db().transact([&]() -> Result<void> {
    for (std::int64_t i = 0; i < kMaxSourceReports + 3; ++i) {
      const auto name = "n" + std::to_string(i);
      EventPayload payload{.id = name, .source = "github", .type = "github", .at = kSeedTime + i};
      must(put_event_payload(db(), account, "prod", payload));
      must(
          put_source_error(db(), account, "prod", {.kind = "Sensor", .name = name}, kSeedTime + i));
    }
    return put_event_payload(db(), account, "stage",
                             {.id = "old", .source = "github", .at = kSeedTime - 1});
  }));
  EXPECT_EQ(count("event_payload"), kMaxSourceReports + 1) << "and one of another runtime";
  EXPECT_EQ(count("source_error"), kMaxSourceReports);
  EXPECT_EQ(must(list_event_payloads(db(), account, "prod", 1)).front().id, "n1002");
  EXPECT_EQ(must(list_source_errors(db(), account, "prod", 1)).front().error.name, "n1002");
}

TEST_P(RetentionContract, TheOldestHistoryIsCutByShare) {
  const auto other = must(create_account(db(), "other", kSeedTime)).number;
  for (int i = 0; i < 9; ++i) send(app_event(application_of("n" + std::to_string(i))));
  for (int i = 0; i < 3; ++i) {
    seeder.store(db(), other, app_event(application_of("n" + std::to_string(i))));
  }
  EXPECT_EQ(must(cut_oldest_history(db(), 4)), 4);
  EXPECT_EQ(count("timeline"), 8);
  EXPECT_EQ(must(cut_oldest_history(db(), 100)), 8);
  EXPECT_EQ(must(cut_oldest_history(db(), 100)), 0);
}

TEST_P(RetentionContract, LargeHistoriesAreNotCountedToTheirEnd) {
  const auto other = must(create_account(db(), "other", kSeedTime)).number;
  for (int i = 0; i < 30; ++i) send(app_event(application_of("n" + std::to_string(i))));
  for (int i = 0; i < 6; ++i) {
    seeder.store(db(), other, app_event(application_of("n" + std::to_string(i))));
  }
  EXPECT_EQ(must(cut_oldest_history(db(), 10, 5)), 10);
  constexpr Statement kLeft{.name = "test.history_left",
                            .sql = "SELECT count(*) FROM timeline WHERE account = $1"};
  EXPECT_EQ(must(db().run(kLeft, {account})).number(0, 0), 25);
  EXPECT_EQ(must(db().run(kLeft, {other})).number(0, 0), 1);
}

TEST_P(RetentionContract, WhatWasCutIsKnownUntilTheFilesGrow) {
  EXPECT_EQ(must(storage_room(db())), StorageRoom());
  must(keep_size(db(), 1'000'000));
  for (int i = 0; i < 4; ++i) send(app_event(application_of("n" + std::to_string(i))));
  EXPECT_EQ(must(cut_oldest_history(db(), 3)), 3);
  EXPECT_EQ(must(cut_oldest_history(db(), 3)), 1);
  EXPECT_EQ(must(storage_room(db())).freed, 800);
  must(keep_size(db(), 1'000'000));
  EXPECT_EQ(must(storage_room(db())).freed, 800) << "another process has measured the same";
  must(keep_size(db(), 1'000'300));
  EXPECT_EQ(must(storage_room(db())).freed, 500);
  must(keep_size(db(), 1'009'000));
  EXPECT_EQ(must(storage_room(db())).bytes, 1'009'000);
  EXPECT_EQ(must(storage_room(db())).freed, 0);
}

TEST_P(RetentionContract, TheSizeIsTold) {
  const auto before = must(database_size(db()));
  EXPECT_GT(before, 100'000);
  for (int i = 0; i < 50; ++i) {
    auto application = application_of("n" + std::to_string(i));
    application["spec"]["noise"] = hex_encode(random_bytes(4'000));
    send(app_event(application));
  }
  EXPECT_GT(must(database_size(db())), before + 50 * 2'000);
}

INSTANTIATE_TEST_SUITE_P(Engines, RetentionContract,
                         testing::Values(Engine::sqlite, Engine::postgres),
                         [](const auto& info) { return test::engine_name(info.param); });

TEST(StorageBound, StatesFollowTheShare) {
  StorageBound bound(1'000'000);
  EXPECT_EQ(bound.update(790'000), SizeState::normal);
  EXPECT_EQ(bound.update(800'000), SizeState::warning);
  EXPECT_EQ(bound.rows_to_cut(1'000), 0);
  EXPECT_EQ(bound.update(900'000), SizeState::trimming);
  EXPECT_EQ(bound.rows_to_cut(1'000), 251) << "down to 85 %";
  EXPECT_EQ(bound.rows_to_cut(100), 100);
  EXPECT_EQ(bound.update(970'000), SizeState::full);
  EXPECT_EQ(bound.percent(), 97);
  EXPECT_EQ(bound.update(860'000), SizeState::trimming) << "until there is room again";
  EXPECT_EQ(bound.update(840'000), SizeState::warning);
  EXPECT_EQ(bound.update(700'000), SizeState::normal);
}

TEST(StorageBound, WhatWasDeletedCountsAsFreeWhileFilesKeepTheirSize) {
  StorageBound bound(1'000'000);
  EXPECT_EQ(bound.update(900'000), SizeState::trimming);
  bound.add_cut(400);
  EXPECT_EQ(bound.update(900'000), SizeState::warning) << "80,000 bytes may be used again";
  EXPECT_EQ(bound.rows_to_cut(1'000), 0);
  // The files grow once the room has been used.
  EXPECT_EQ(bound.update(980'000), SizeState::full);
}

TEST(StorageBound, WithoutALimitNothingIsCut) {
  StorageBound bound(0);
  EXPECT_EQ(bound.update(std::int64_t{1} << 60), SizeState::normal);
  EXPECT_EQ(bound.rows_to_cut(10), 0);
  EXPECT_EQ(bound.percent(), 0);
}

// Another replica stores an event of a deleted object while this one forgets it.
TEST(Retention, AnObjectThatComesBackMeanwhileKeepsItsBody) {
  const test::TestDatabase files(Engine::postgres);
  const auto open = [&files] { return must(store::open_postgres(files.location(), "test")); };
  const auto forgetting = open();
  const auto storing = open();
  must(store::migrate(*forgetting, migrations()));
  const auto account = must(create_account(*forgetting, "acme", kSeedTime)).number;
  Seeder seeder(Engine::postgres);
  const auto application = application_of("shop");
  seeder.store(*storing, account, app_event(application));
  const auto id = seeder.store(*storing, account, app_event(application, {{"actualManifest", ""}}));
  constexpr Statement kReturn{.name = "test.return",
                              .sql = "UPDATE object SET presence = 0 WHERE id = $1"};
  constexpr Statement kBody{.name = "test.new_body",
                            .sql = "UPDATE body SET size = size WHERE object = $1"};
  must(storing->run_script("BEGIN"));
  must(storing->run(kReturn, {id}));
  must(storing->run(kBody, {id}));
  std::atomic<bool> is_over = false;
  Result<void> forgotten;
  std::thread thread([&] {
    forgotten = forgetting->transact([&]() -> Result<void> {
      const auto removed =
          remove_expired(*forgetting, retention_cuts({}, kSeedTime + 31 * kDay), 1'000);
      if (!removed) return std::unexpected(removed.error());
      return {};
    });
    is_over = true;
  });
  constexpr Statement kWaits{.name = "test.waits",
                             .sql = "SELECT count(*) FROM pg_locks WHERE NOT granted"};
  while (!is_over && must(storing->run(kWaits)).number(0, 0) == 0) std::this_thread::yield();
  must(storing->run_script("COMMIT"));
  thread.join();
  ASSERT_TRUE(forgotten) << forgotten.error().message;
  constexpr Statement kLeft{
      .name = "test.left",
      .sql = "SELECT o.presence, b.object FROM object o LEFT JOIN body b ON b.object = o.id"};
  const auto left = must(storing->run(kLeft));
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left.number(0, 0), 0);
  EXPECT_FALSE(left.is_null(0, 1)) << "the page has no manifest any more";
}

}  // namespace
}  // namespace gitops::control_plane_server
