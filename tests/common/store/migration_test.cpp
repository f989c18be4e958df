#include "common/store/migration.hpp"

#include <array>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/store/databases.hpp"
#include "common/store/postgres_connection.hpp"
#include "common/store/sqlite_connection.hpp"

namespace gitops::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Migration kFirst{.version = 1,
                           .name = "first",
                           .sqlite = "CREATE TABLE a (x INTEGER) STRICT",
                           .postgres = "CREATE TABLE a (x BIGINT)"};
constexpr Migration kSecond{.version = 2,
                            .name = "second",
                            .sqlite = "CREATE TABLE b (x INTEGER) STRICT; INSERT INTO b VALUES (4)",
                            .postgres = "CREATE TABLE b (x BIGINT); INSERT INTO b VALUES (4)"};
constexpr Migration kBroken{.version = 2,
                            .name = "broken",
                            .sqlite = "CREATE TABLE c (x INTEGER) STRICT; SELECT nothing FROM c",
                            .postgres = "CREATE TABLE c (x BIGINT); SELECT nothing FROM c"};
constexpr Statement kReadB{.name = "test.b", .sql = "SELECT x FROM b"};
constexpr Statement kReadC{.name = "test.c", .sql = "SELECT x FROM c"};

struct Migrations : testing::TestWithParam<Engine> {
  Result<void> run(std::vector<Migration> migrations) {
    seen.clear();
    return migrate(*connection, migrations,
                   [this](std::string_view what) { seen.emplace_back(what); });
  }
  test::TestDatabase database{GetParam()};
  std::unique_ptr<Connection> connection =
      GetParam() == Engine::sqlite
          ? std::move(open_sqlite(database.location().path, Access::read_write, 1024 * 1024))
                .value()
          : std::move(open_postgres(database.location(), "test")).value();
  std::vector<std::string> seen;
};

TEST_P(Migrations, RunOnceInOrder) {
  ASSERT_TRUE(run({kFirst}));
  EXPECT_THAT(seen, ElementsAre("migration 1 of 1: first"));
  ASSERT_TRUE(run({kFirst, kSecond}));
  EXPECT_THAT(seen, ElementsAre("migration 2 of 2: second"));
  EXPECT_EQ(connection->run(kReadB)->number(0, 0), 4);
  ASSERT_TRUE(run({kFirst, kSecond}));
  EXPECT_THAT(seen, IsEmpty());
}

TEST_P(Migrations, AStepThatFailsLeavesNothingBehind) {
  const auto failed = run({kFirst, kBroken});
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, HasSubstr("migration 2 of 2: broken"));
  EXPECT_FALSE(connection->run(kReadC));
  EXPECT_TRUE(run({kFirst, kSecond}));
}

TEST_P(Migrations, AChangedStepIsRefused) {
  ASSERT_TRUE(run({kFirst}));
  auto changed = kFirst;
  changed.sqlite = changed.postgres = "CREATE TABLE z (x BIGINT)";
  const auto refused = run({changed});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("the checksums differ"));
}

TEST_P(Migrations, ANewerDatabaseIsRefused) {
  ASSERT_TRUE(run({kFirst, kSecond}));
  const auto refused = run({kFirst});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
  EXPECT_THAT(refused.error().message, HasSubstr("migration 2 (second)"));
}

TEST(PostgresMigrations, AStepMayTakeLongerThanOtherStatements) {
  const test::TestDatabase database(Engine::postgres);
  const auto connection = std::move(open_postgres(database.location(), "test")).value();
  // The other statements of the migration have this time, also on a busy machine.
  ASSERT_TRUE(connection->run_script("SET statement_timeout = 3000"));
  constexpr std::array<Migration, 1> kLong{
      {{.version = 1,
        .name = "long",
        .sqlite = "SELECT 1",
        .postgres = "SELECT pg_sleep(4); CREATE TABLE a (x BIGINT)"}}};
  const auto done = migrate(*connection, kLong);
  ASSERT_TRUE(done) << done.error().message;
  const auto later = connection->run_script("SELECT pg_sleep(30)");
  ASSERT_FALSE(later);
  EXPECT_EQ(later.error().code, ErrorCode::timeout);
}

INSTANTIATE_TEST_SUITE_P(Engines, Migrations, testing::Values(Engine::sqlite, Engine::postgres),
                         [](const auto& info) { return test::engine_name(info.param); });

}  // namespace
}  // namespace gitops::store
