#include "common/store/connection.hpp"

#include <array>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/store/databases.hpp"
#include "common/store/postgres_connection.hpp"
#include "common/store/sqlite_connection.hpp"

namespace gitops::store {
namespace {

using test::TestDatabase;
using testing::HasSubstr;

constexpr Statement kAdd{.name = "test.add",
                         .sql = "INSERT INTO thing (id, name, bytes) VALUES ($1, $2, $3)"};
constexpr Statement kAll{.name = "test.all",
                         .sql = "SELECT id, name, bytes FROM thing ORDER BY id"};
constexpr Statement kSame{.name = "test.same",
                          .sql = "SELECT name FROM thing WHERE $2 = id AND name <> $1"};
constexpr Statement kWithPart{
    .name = "test.with_part",
    .sql = "SELECT id, 'strpos(' FROM thing WHERE strpos(name, $1) > 0 ORDER BY id"};
constexpr Statement kNamed{.name = "test.named", .sql = "SELECT id FROM thing WHERE name = $1"};
constexpr Statement kWrong{.name = "test.wrong", .sql = "SELECT nothing FROM nowhere"};
constexpr Statement kDrop{.name = "test.drop", .sql = "DELETE FROM thing WHERE id >= $1"};

std::unique_ptr<Connection> open(const Location& location) {
  if (location.engine == Engine::sqlite) {
    return std::move(open_sqlite(location.path, Access::read_write, 1024 * 1024)).value();
  }
  return std::move(open_postgres(location, "test")).value();
}

// Every case runs on both engines.
struct ConnectionContract : testing::TestWithParam<Engine> {
  ConnectionContract() : database(GetParam()), connection(open(database.location())) {
    const auto made = connection->run_script(
        GetParam() == Engine::sqlite
            ? "CREATE TABLE thing (id INTEGER PRIMARY KEY, name TEXT NOT NULL, bytes BLOB) STRICT"
            : "CREATE TABLE thing (id BIGINT PRIMARY KEY, name TEXT NOT NULL, bytes BYTEA)");
    if (!made) throw std::runtime_error(made.error().message);
  }
  TestDatabase database;
  std::unique_ptr<Connection> connection;
};

TEST_P(ConnectionContract, RowsHaveTheTypesOfTheirColumns) {
  const std::string bytes("a\0b\xff'\\", 6);
  const auto added = connection->run(kAdd, {1, "O'Hara", Param::bytes(bytes)});
  ASSERT_TRUE(added) << added.error().message;
  EXPECT_EQ(added->changed(), 1);
  ASSERT_TRUE(connection->run(kAdd, {2, "", Param()}));
  const auto rows = connection->run(kAll);
  ASSERT_TRUE(rows);
  ASSERT_EQ(rows->size(), 2U);
  EXPECT_EQ(rows->number(0, 0), 1);
  EXPECT_EQ(rows->text(0, 1), "O'Hara");
  EXPECT_EQ(rows->text(0, 2), bytes);
  EXPECT_TRUE(rows->is_null(1, 2));
  EXPECT_EQ(rows->text(1, 1), "");
  EXPECT_FALSE(rows->is_null(1, 1));
  EXPECT_THROW((void)rows->number(0, 1), std::logic_error);
  EXPECT_THROW((void)rows->text(0, 0), std::logic_error);
  EXPECT_THROW((void)rows->text(2, 0), std::logic_error);
}

TEST_P(ConnectionContract, ParametersAreFoundByTheirNumbers) {
  ASSERT_TRUE(connection->run(kAdd, {7, "x", Param()}));
  const auto rows = connection->run(kSame, {"y", 7});
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_EQ(rows->size(), 1U);
}

TEST_P(ConnectionContract, StrposFindsAPartOfAText) {
  ASSERT_TRUE(connection->run(kAdd, {1, "shop-web", Param()}));
  ASSERT_TRUE(connection->run(kAdd, {2, "cart", Param()}));
  const auto rows = connection->run(kWithPart, {"p-w"});
  ASSERT_TRUE(rows) << rows.error().message;
  ASSERT_EQ(rows->size(), 1U);
  EXPECT_EQ(rows->number(0, 0), 1);
  EXPECT_EQ(rows->text(0, 1), "strpos(");  // a text is not changed
}

TEST_P(ConnectionContract, ATextIsNotFoundByItsBeginBeforeANul) {
  ASSERT_TRUE(connection->run(kAdd, {1, "shop", Param()}));
  const std::string text("shop\0web", 8);
  const auto found = connection->run(kNamed, {text});
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_TRUE(found->empty());
  ASSERT_TRUE(connection->run(kAdd, {2, text, Param()}));
  const auto stored = connection->run(kNamed, {text});
  ASSERT_TRUE(stored) << stored.error().message;
  ASSERT_EQ(stored->size(), 1U);
  EXPECT_EQ(stored->number(0, 0), 2);
}

TEST_P(ConnectionContract, ATransactionCountsAsAWhole) {
  const auto failed = connection->transact([this]() -> Result<void> {
    if (auto added = connection->run(kAdd, {1, "a", Param()}); !added) {
      return std::unexpected(added.error());
    }
    return fail(ErrorCode::conflict, "no");
  });
  EXPECT_EQ(failed.error().message, "no");
  EXPECT_TRUE(connection->run(kAll)->empty());
  EXPECT_THROW((void)connection->transact([this]() -> Result<void> {
    (void)connection->run(kAdd, {1, "a", Param()});
    throw std::runtime_error("thrown");
  }),
               std::runtime_error);
  EXPECT_TRUE(connection->run(kAll)->empty());
  const auto done = connection->transact([this]() -> Result<void> {
    if (auto added = connection->run(kAdd, {1, "a", Param()}); !added) {
      return std::unexpected(added.error());
    }
    return {};
  });
  EXPECT_TRUE(done);
  EXPECT_EQ(connection->run(kAll)->size(), 1U);
}

TEST_P(ConnectionContract, ATakenKeyIsAConflict) {
  ASSERT_TRUE(connection->run(kAdd, {1, "a", Param()}));
  const auto again = connection->run(kAdd, {1, "b", Param()});
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::conflict);
  // The connection is still usable.
  EXPECT_EQ(connection->run(kAll)->size(), 1U);
}

TEST_P(ConnectionContract, AMistakeInAStatementIsInternalAndNamesIt) {
  const auto wrong = connection->run(kWrong);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, ErrorCode::internal);
  EXPECT_THAT(wrong.error().message, HasSubstr("test.wrong"));
  EXPECT_TRUE(connection->run(kAll));
  EXPECT_TRUE(connection->is_usable());
}

TEST_P(ConnectionContract, ChangedRowsAreCounted) {
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(connection->run(kAdd, {i, "a", Param()}));
  EXPECT_EQ(connection->run(kDrop, {2})->changed(), 3);
  EXPECT_EQ(connection->run(kDrop, {2})->changed(), 0);
}

INSTANTIATE_TEST_SUITE_P(Engines, ConnectionContract,
                         testing::Values(Engine::sqlite, Engine::postgres),
                         [](const auto& info) { return test::engine_name(info.param); });

struct PostgresConnectionTest : testing::Test {
  TestDatabase database{Engine::postgres};
  std::unique_ptr<PostgresConnection> connection =
      std::move(open_postgres(database.location(), "test")).value();
};

TEST_F(PostgresConnectionTest, APipelineHasItsResultsInOrder) {
  static constexpr Statement kBegin{.name = "p.begin", .sql = "BEGIN"};
  static constexpr Statement kNumbers{.name = "p.numbers",
                                      .sql = "SELECT sum(n)::bigint FROM unnest($1::bigint[]) n"};
  static constexpr Statement kTexts{
      .name = "p.texts",
      .sql = "SELECT t FROM unnest($1::text[]) WITH ORDINALITY x(t, at) ORDER BY at"};
  static constexpr Statement kBytes{.name = "p.bytes",
                                    .sql = "SELECT b FROM unnest($1::bytea[]) b"};
  static constexpr Statement kCommit{.name = "p.commit", .sql = "COMMIT"};
  const std::array<std::int64_t, 3> numbers{1, 2, -4};
  const std::array<std::string_view, 2> texts{"a,\"{}", ""};
  const std::array<std::string_view, 1> bytes{std::string_view("\0\1", 2)};
  const auto results = connection->run_pipeline(std::array<PostgresConnection::Step, 5>{
      {{&kBegin, {}},
       {&kNumbers, {ArrayParam(std::span<const std::int64_t>(numbers))}},
       {&kTexts, {ArrayParam(std::span<const std::string_view>(texts))}},
       {&kBytes, {BytesArray{bytes}}},
       {&kCommit, {}}}});
  ASSERT_TRUE(results) << results.error().message;
  EXPECT_EQ(results->at(1).number(0, 0), -1);
  EXPECT_EQ(results->at(2).text(0, 0), "a,\"{}");
  EXPECT_EQ(results->at(2).text(1, 0), "");
  EXPECT_EQ(results->at(3).text(0, 0), bytes[0]);
}

TEST_F(PostgresConnectionTest, AFailedStepFailsThePipelineAndTheConnectionGoesOn) {
  static constexpr Statement kGood{.name = "p.good", .sql = "SELECT 1"};
  static constexpr Statement kZero{.name = "p.zero", .sql = "SELECT 1 / $1::bigint"};
  const auto results = connection->run_pipeline(
      std::array<PostgresConnection::Step, 3>{{{&kGood, {}}, {&kZero, {Param(0)}}, {&kGood, {}}}});
  ASSERT_FALSE(results);
  EXPECT_EQ(results.error().code, ErrorCode::invalid_data);
  EXPECT_THAT(results.error().message, HasSubstr("p.zero"));
  EXPECT_TRUE(connection->run(kGood));
}

TEST_F(PostgresConnectionTest, ALostServerIsUnavailableAndTheConnectionIsNotUsable) {
  test::PostgresServer server;
  Location location{.engine = Engine::postgres, .dsn = server.new_database()};
  auto own = std::move(open_postgres(location, "test")).value();
  server.crash();
  static constexpr Statement kGood{.name = "p.good", .sql = "SELECT 1"};
  const auto lost = own->run(kGood);
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, ErrorCode::unavailable);
  EXPECT_FALSE(own->is_usable());
  const auto refused = open_postgres(location, "test");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
}

TEST_F(PostgresConnectionTest, AServerThatIsReadOnlyIsAnOutage) {
  ASSERT_TRUE(connection->run_script("CREATE TABLE t (x BIGINT)"));
  ASSERT_TRUE(connection->run_script("SET default_transaction_read_only = on"));
  const auto written =
      connection->run({.name = "test.read_only", .sql = "INSERT INTO t VALUES (1)"});
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ErrorCode::unavailable);
}

TEST_F(PostgresConnectionTest, RefusesAServerThatWouldLoseCommits) {
  auto& server = test::PostgresServer::shared();
  const auto dsn = server.new_database();
  server.query(server.dsn("postgres"), "ALTER ROLE test SET synchronous_commit = off");
  const auto refused = open_postgres({.engine = Engine::postgres, .dsn = dsn}, "test");
  server.query(server.dsn("postgres"), "ALTER ROLE test RESET synchronous_commit");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("synchronous_commit"));
}

TEST_F(PostgresConnectionTest, HearsNotifications) {
  ASSERT_TRUE(connection->run_script("LISTEN changes"));
  EXPECT_TRUE(connection->wait_for_notifications(0)->empty());
  test::PostgresServer::shared().query(database.location().dsn, "NOTIFY changes, 'a/1'");
  const auto heard = connection->wait_for_notifications(10'000);
  ASSERT_TRUE(heard);
  EXPECT_THAT(*heard, testing::ElementsAre("a/1"));
}

}  // namespace
}  // namespace gitops::store
