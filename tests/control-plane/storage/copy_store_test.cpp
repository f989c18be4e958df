#include "control-plane/storage/copy_store.hpp"

#include <algorithm>
#include <sstream>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control-plane/accounts/accounts_fixture.hpp"
#include "control-plane/storage/copy_command.hpp"
#include "control-plane/views/object_query.hpp"
#include "control-plane/views/seed.hpp"

namespace gitops::control_plane_server {
namespace {

using store::Engine;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<SchemaTable> tables_of(Engine engine) {
  std::vector<std::string_view> scripts;
  for (const auto& migration : migrations()) {
    scripts.push_back(engine == Engine::sqlite ? migration.sqlite : migration.postgres);
  }
  return schema_tables(scripts);
}

TEST(SchemaTables, BothEnginesHaveTheSame) {
  const auto tables = tables_of(Engine::sqlite);
  EXPECT_EQ(tables, tables_of(Engine::postgres));
  EXPECT_GT(tables.size(), 20U);
  for (const auto& table : tables) {
    EXPECT_FALSE(table.columns.empty()) << table.name;
    EXPECT_FALSE(table.key.empty()) << table.name;
    for (const auto& key : table.key) {
      EXPECT_TRUE(std::ranges::any_of(table.columns,
                                      [&](const auto& column) { return column.name == key; }))
          << table.name << " has no column " << key;
    }
  }
  const auto body = std::ranges::find(tables, "body", &SchemaTable::name);
  ASSERT_NE(body, tables.end());
  EXPECT_EQ(body->columns.back().name, "packed");
  EXPECT_EQ(body->columns.back().type, ColumnType::bytes);
  EXPECT_THAT(body->key, ElementsAre("object"));
}

TEST(SchemaTables, LaterColumnsAreFound) {
  const std::array<std::string_view, 2> scripts{
      "CREATE TABLE a (\n  x INTEGER PRIMARY KEY, -- a comment TEXT\n  y TEXT NOT NULL\n) "
      "STRICT;\n",
      "ALTER TABLE a ADD COLUMN z BLOB NOT NULL DEFAULT x'';\n"};
  const auto tables = schema_tables(scripts);
  ASSERT_EQ(tables.size(), 1U);
  ASSERT_EQ(tables[0].columns.size(), 3U);
  EXPECT_EQ(tables[0].columns[2].name, "z");
  EXPECT_EQ(tables[0].columns[2].type, ColumnType::bytes);
  EXPECT_THAT(tables[0].key, ElementsAre("x"));
}

struct CopyContract : testing::TestWithParam<std::pair<Engine, Engine>> {
  StoreBed from{GetParam().first};
  StoreBed to{GetParam().second};
};

TEST_P(CopyContract, EverythingComesOver) {
  const auto sample = make_sample(from.connection());
  Seeder seeder(GetParam().first);
  for (int i = 0; i < 1'100; ++i) {
    seeder.store(from.connection(), sample.acme.number,
                 app_event(application_of("n" + std::to_string(i % 600))));
  }
  std::string told;
  const auto report = copy_store(from.connection(), to.connection(), migrations(),
                                 [&](std::string_view line) { told += std::string(line) + '\n'; });
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->tables, static_cast<std::int64_t>(tables_of(Engine::sqlite).size()));
  EXPECT_GT(report->rows, 600 * 3);
  EXPECT_THAT(told, HasSubstr("object: 600 rows\n"));
  const auto found =
      must(find_object(to.connection(), sample.acme.number, {.name = "n599"}, BodyUse::read));
  ASSERT_TRUE(found && found->body);
  EXPECT_THAT(found->body->live, HasSubstr("apps/n599"));
  // New objects get ids of their own.
  Seeder next(GetParam().second);
  const auto id =
      next.store(to.connection(), sample.acme.number, app_event(application_of("later")));
  EXPECT_GT(id, found->state.id);
  // New accounts get numbers of their own.
  const auto account = create_account(to.connection(), "later", kNow);
  ASSERT_TRUE(account) << account.error().message;
  EXPECT_GT(account->number, sample.other.number);
  const auto again = copy_store(from.connection(), to.connection(), migrations());
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::conflict);
  EXPECT_THAT(again.error().message, HasSubstr("account"));
}

INSTANTIATE_TEST_SUITE_P(Engines, CopyContract,
                         testing::Values(std::pair(Engine::sqlite, Engine::postgres),
                                         std::pair(Engine::postgres, Engine::sqlite)),
                         [](const auto& info) { return test::engine_name(info.param.first); });

TEST(CopyStore, TheCopyIsTheSourceAtOneMoment) {
  const test::TestDatabase files(Engine::postgres);
  const auto from = must(store::open_postgres(files.location(), "test"));
  must(store::migrate(*from, migrations()));
  const auto server = must(store::open_postgres(files.location(), "server"));
  const auto account = make_sample(*server).acme.number;
  Seeder seeder(Engine::postgres);
  seeder.store(*server, account, app_event(application_of("before")));
  StoreBed to(Engine::sqlite);
  bool is_stored = false;
  const auto report = copy_store(*from, to.connection(), migrations(), [&](std::string_view) {
    if (std::exchange(is_stored, true)) return;
    seeder.store(*server, account, app_event(application_of("meanwhile")));
  });
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(is_stored);
  const auto is_there = [&](const std::string& name) {
    return must(find_object(to.connection(), account, {.name = name}, BodyUse::skip)).has_value();
  };
  EXPECT_TRUE(is_there("before"));
  EXPECT_FALSE(is_there("meanwhile"));
}

TEST(CopyCommand, AFileIsCopiedToPostgres) {
  const test::TestDatabase from(Engine::sqlite);
  const test::TestDatabase to(Engine::postgres);
  {
    auto connection =
        must(store::open_sqlite(from.location().path, store::Access::read_write, 1024 * 1024));
    must(store::migrate(*connection, migrations()));
    make_sample(*connection);
  }
  std::ostringstream out;
  std::ostringstream err;
  cli::Console console{.out = out, .err = err};
  const CopyCommandOptions options{
      .add_location = [&](ConfigReader&, store::Location& location) { location = from.location(); },
      .migrations = migrations()};
  EXPECT_EQ(run_copy_command(options, {"copy", "--to", to.location().dsn}, {}, console), cli::kDone)
      << err.str();
  EXPECT_THAT(out.str(), HasSubstr("copied and compared"));
  EXPECT_EQ(run_copy_command(options, {"copy", "--to", to.location().dsn}, {}, console),
            cli::kFailed);
  EXPECT_THAT(err.str(), HasSubstr("empty database"));
  EXPECT_EQ(run_copy_command(options, {"copy"}, {}, console), cli::kWrongUsage);
  EXPECT_EQ(run_copy_command(options, {"user"}, {}, console), std::nullopt);
}

TEST(CopyCommand, ASourceOfAnOlderVersionStaysAsItIs) {
  const test::TestDatabase from(Engine::postgres);
  const test::TestDatabase to(Engine::sqlite);
  const auto older = migrations().first(migrations().size() - 1);
  must(store::migrate(*must(store::open_postgres(from.location(), "test")), older));
  std::ostringstream out;
  std::ostringstream err;
  cli::Console console{.out = out, .err = err};
  const CopyCommandOptions options{
      .add_location = [&](ConfigReader&, store::Location& location) { location = from.location(); },
      .migrations = migrations()};
  EXPECT_EQ(run_copy_command(options, {"copy", "--to", to.location().path}, {}, console),
            cli::kFailed);
  EXPECT_THAT(err.str(), HasSubstr("older version"));
  constexpr store::Statement kApplied{.name = "test.applied_steps",
                                      .sql = "SELECT count(*) FROM schema_migration"};
  const auto connection = must(store::open_postgres(from.location(), "test"));
  EXPECT_EQ(must(connection->run(kApplied)).number(0, 0), static_cast<std::int64_t>(older.size()));
}

}  // namespace
}  // namespace gitops::control_plane_server
