#include "common/store/database.hpp"

#include <array>
#include <chrono>
#include <future>
#include <utility>

#include <gtest/gtest.h>

#include "common/store/databases.hpp"
#include "common/store/postgres_connection.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"

namespace gitops::store {
namespace {

constexpr std::array<Migration, 1> kSchema{{{.version = 1,
                                             .name = "first",
                                             .sqlite = "CREATE TABLE a (x INTEGER) STRICT",
                                             .postgres = "CREATE TABLE a (x BIGINT)"}}};
constexpr Statement kAdd{.name = "test.add", .sql = "INSERT INTO a (x) VALUES ($1)"};
constexpr Statement kCount{.name = "test.count", .sql = "SELECT count(*) FROM a"};
constexpr Statement kSlow{
    .name = "test.slow",
    .sql =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000) "
        "SELECT count(*) FROM n",
    .postgres = "SELECT 1 FROM pg_sleep(60)"};

Result<std::int64_t> count(Connection& connection) {
  const auto rows = connection.run(kCount);
  if (!rows) return std::unexpected(rows.error());
  return rows->number(0, 0);
}

Result<void> add(Connection& connection, std::int64_t x) {
  if (const auto added = connection.run(kAdd, {x}); !added) return std::unexpected(added.error());
  return {};
}

Deadline soon() {
  return deadline_after(std::chrono::seconds(30));
}

struct DatabaseContract : testing::TestWithParam<Engine> {
  test::TestDatabase files{GetParam()};
  Metrics metrics;
  Database::Options options{.location = files.location(), .name = "test"};
};

TEST_P(DatabaseContract, WhatWasWrittenIsRead) {
  Database database(options, metrics);
  ASSERT_TRUE(database.open(kSchema));
  test::run_coro([&]() -> Task<> {
    CO_ASSERT_OK(co_await database.write(soon(), [](Connection& c) { return add(c, 1); }));
    const auto found = co_await database.read(soon(), count);
    CO_ASSERT_OK(found);
    EXPECT_EQ(*found, 1);
  });
  database.close(std::chrono::seconds(2));
}

TEST_P(DatabaseContract, AFailedWriteLeavesNothing) {
  Database database(options, metrics);
  ASSERT_TRUE(database.open(kSchema));
  test::run_coro([&]() -> Task<> {
    const auto failed = co_await database.write(soon(), [](Connection& c) -> Result<int> {
      (void)add(c, 1);
      return fail(ErrorCode::not_found, "no");
    });
    EXPECT_EQ(failed.error().code, ErrorCode::not_found);
    EXPECT_EQ(*co_await database.read(soon(), count), 0);
  });
}

TEST_P(DatabaseContract, AReadThatTakesTooLongIsInterrupted) {
  // Room for a busy machine to connect again, which counts.
  options.read_limit = std::chrono::milliseconds(500);
  options.readers = 1;
  Database database(options, metrics);
  ASSERT_TRUE(database.open(kSchema));
  test::run_coro([&]() -> Task<> {
    const auto slow = co_await database.read(soon(), [](Connection& c) { return c.run(kSlow); });
    EXPECT_EQ(slow.error().code, ErrorCode::timeout);
    // The thread of the interrupted work is free again.
    Result<std::int64_t> found = fail(ErrorCode::timeout, "");
    while (!found && found.error().code == ErrorCode::timeout) {
      found = co_await database.read(soon(), count);
    }
    CO_ASSERT_OK(found);
  });
}

INSTANTIATE_TEST_SUITE_P(Engines, DatabaseContract,
                         testing::Values(Engine::sqlite, Engine::postgres),
                         [](const auto& info) { return test::engine_name(info.param); });

TEST(Database, ASqliteFileHasOneProcess) {
  test::TestDatabase files(Engine::sqlite);
  Metrics metrics;
  Database first({.location = files.location(), .name = "first"}, metrics);
  ASSERT_TRUE(first.open(kSchema));
  Database second({.location = files.location(), .name = "second"}, metrics);
  const auto refused = second.open(kSchema);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::conflict);
}

TEST(Database, AWriterOutlivesARestartOfPostgres) {
  test::PostgresServer server;
  Metrics metrics;
  Database database(
      {.location = {.engine = Engine::postgres, .dsn = server.new_database()}, .name = "test"},
      metrics);
  ASSERT_TRUE(database.open(kSchema));
  test::run_coro([&]() -> Task<> { EXPECT_EQ(*co_await database.read(soon(), count), 0); });
  server.crash();
  test::run_coro([&]() -> Task<> {
    const auto lost = co_await database.write(soon(), [](Connection& c) { return add(c, 1); });
    EXPECT_EQ(lost.error().code, ErrorCode::unavailable);
  });
  server.start();
  test::run_coro([&]() -> Task<> {
    // By a new connection: the idle one was lost.
    const auto read = co_await database.read(soon(), count);
    CO_ASSERT_OK(read);
    EXPECT_EQ(*read, 0);
    CO_ASSERT_OK(co_await database.write(soon(), [](Connection& c) { return add(c, 1); }));
    EXPECT_EQ(*co_await database.read(soon(), count), 1);
  });
}

// As when its disk hangs: connections stay open, and nothing is answered.
struct SilentPostgres {
  explicit SilentPostgres(std::chrono::milliseconds answer_limit)
      : database({.location = {.engine = Engine::postgres,
                               .dsn = server.new_database(),
                               .answer_limit = answer_limit},
                  .name = "test",
                  .readers = 1,
                  .read_limit = std::chrono::milliseconds(200)},
                 metrics) {
    EXPECT_TRUE(database.open(kSchema));
    test::run_coro([&]() -> Task<> {
      Result<std::int64_t> found = fail(ErrorCode::timeout, "");
      while (!found) found = co_await database.read(soon(), count);
    });
    server.stand_still();
  }

  test::PostgresServer server;
  Metrics metrics;
  Database database;
};

TEST(Database, AReadOfASilentServerTimesOutAndItsThreadIsFreeAgain) {
  SilentPostgres silent(std::chrono::minutes(10));
  test::run_coro([&]() -> Task<> {
    const auto outcome = co_await silent.database.read(soon(), count);
    EXPECT_EQ(outcome.error().code, ErrorCode::timeout);
  });
  auto& busy =
      silent.metrics.gauge("gitops_worker_pool_busy_threads",
                           "Threads of a worker pool that run a job", {{"pool", "test-read"}});
  test::require_until([&] { return busy.Value() == 0; }, std::chrono::seconds(30),
                      "the reader's thread");
  silent.server.go_on();
  test::run_coro([&]() -> Task<> {
    Result<std::int64_t> found = fail(ErrorCode::timeout, "");
    const auto limit = soon();
    while (!found && Clock::now() < limit) found = co_await silent.database.read(soon(), count);
    CO_ASSERT_OK(found);
  });
}

TEST(Database, AWriteToASilentServerHasAnUnknownOutcome) {
  // What follows has to be answered within it, also on a busy machine.
  SilentPostgres silent(std::chrono::milliseconds(3'000));
  test::run_coro([&]() -> Task<> {
    const auto outcome =
        co_await silent.database.write(soon(), [](Connection& c) { return add(c, 1); });
    CO_ASSERT_TRUE(!outcome);
    EXPECT_EQ(outcome.error().code, ErrorCode::unavailable);
    EXPECT_NE(outcome.error().message.find("has not answered for 3000 ms"), std::string::npos)
        << outcome.error().message;
  });
  silent.server.go_on();
  test::run_coro([&]() -> Task<> {
    CO_ASSERT_OK(co_await silent.database.write(soon(), [](Connection& c) { return add(c, 2); }));
  });
}

TEST(Database, AStartWithoutMigrationNoticesASilentServer) {
  SilentPostgres silent(std::chrono::milliseconds(3'000));
  silent.server.go_on();
  const Location location{.engine = Engine::postgres,
                          .dsn = silent.server.dsn("test1"),
                          .answer_limit = std::chrono::milliseconds(3'000)};
  // A lock of another session keeps the start within a statement.
  const auto other = std::move(open_postgres(location, "other")).value();
  ASSERT_TRUE(other->run_script("BEGIN; LOCK TABLE schema_migration"));
  Database database({.location = location, .name = "second"}, silent.metrics);
  auto opening = std::async(std::launch::async, [&] { return database.open(kSchema); });
  test::require_until(
      [&] {
        return opening.wait_for(std::chrono::seconds(0)) == std::future_status::ready ||
               silent.server.query(location.dsn,
                                   "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted") == "t";
      },
      std::chrono::seconds(30), "a start that waits");
  silent.server.stand_still();
  const auto noticed = opening.wait_for(std::chrono::seconds(30));
  silent.server.go_on();
  EXPECT_EQ(noticed, std::future_status::ready);
  const auto opened = opening.get();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::unavailable) << opened.error().message;
}

TEST(Database, AMigrationMayBeSilent) {
  const test::TestDatabase files(Engine::postgres);
  auto location = files.location();
  // What follows has to be answered within it, also on a busy machine.
  location.answer_limit = std::chrono::milliseconds(3'000);
  constexpr std::array<Migration, 1> kLong{
      {{.version = 1,
        .name = "long",
        .sqlite = "SELECT 1",
        .postgres = "CREATE TABLE a (x BIGINT); SELECT pg_sleep(4)"}}};
  Metrics metrics;
  Database database({.location = location, .name = "test"}, metrics);
  const auto opened = database.open(kLong);
  ASSERT_TRUE(opened) << opened.error().message;
  test::run_coro([&]() -> Task<> {
    const auto found = co_await database.read(soon(), count);
    CO_ASSERT_OK(found);
    EXPECT_EQ(*found, 0);
  });
}

// The address names both servers, in an order that helps nobody.
TEST(Database, AWriterGoesToTheServerThatHasBecomeThePrimary) {
  test::PostgresServer first;
  const auto dsn = first.new_database();
  test::PostgresServer second;
  second.follow(first);
  auto both = dsn;
  both.replace(both.find("host="), std::string::npos,
               "host=" + second.folder().string() + "," + first.folder().string());
  Metrics metrics;
  Database database({.location = {.engine = Engine::postgres, .dsn = both}, .name = "test"},
                    metrics);
  ASSERT_TRUE(database.open(kSchema));
  test::run_coro([&]() -> Task<> {
    CO_ASSERT_OK(co_await database.write(soon(), [](Connection& c) { return add(c, 1); }));
  });
  first.crash();
  second.promote();
  test::run_coro([&]() -> Task<> {
    // The writer's idle connection was lost, and nothing is lost with it.
    CO_ASSERT_OK(co_await database.write(soon(), [](Connection& c) { return add(c, 2); }));
    EXPECT_EQ(*co_await database.read(soon(), count), 2);
  });
}

}  // namespace
}  // namespace gitops::store
