#include "common/sqlite/database.hpp"

#include <cerrno>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/sqlite/file_guard.hpp"
#include "common/sqlite/sqlite_probe.hpp"
#include "support/process.hpp"

namespace gitops::sqlite {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class InMemory : public testing::Environment {
  void SetUp() override { test::use_memory_for_temporary_files(); }
};
[[maybe_unused]] const auto* const kInMemory = testing::AddGlobalTestEnvironment(new InMemory);

constexpr int kMaxValue = 10'000;

Database::Options in_memory() {
  return {.path = {}, .what = "book", .max_value_bytes = kMaxValue};
}

Database::Options of_file(const std::string& path) {
  EXPECT_TRUE(FileGuard(path, "book").prepare());
  return {.path = path, .what = "book", .max_value_bytes = kMaxValue};
}

TEST(Database, KeepsTextsAndBytes) {
  Database database(in_memory());
  database.run("CREATE TABLE line(name TEXT PRIMARY KEY, bytes BLOB)");
  auto put = database.prepare("INSERT INTO line VALUES(?1, ?2)");
  const std::map<std::string, std::string> lines = {
      {"empty", ""}, {"text", "two words"}, {"zero", std::string("a\0b", 3)}};
  for (const auto& [name, bytes] : lines) {
    put.bind_text(1, name);
    put.bind_blob(2, bytes);
    put.execute();
  }
  std::map<std::string, std::string> read;
  database.each("SELECT name, bytes FROM line",
                [&read](const Statement& row) { read.emplace(row.column(0), row.column(1)); });
  EXPECT_EQ(read, lines);
  EXPECT_EQ(database.value("SELECT count(*) FROM line"), "3");
  EXPECT_EQ(database.value("SELECT name FROM line WHERE name = 'no'"), "");
  EXPECT_TRUE(database.good());
}

TEST(Database, DoesNothingAfterAFailureUntilItIsTaken) {
  Database database(in_memory());
  database.run("CREATE TABLE line(name TEXT)");
  database.run("NONSENSE");
  database.run("INSERT INTO line VALUES('lost')");
  auto put = database.prepare("INSERT INTO line VALUES('lost, too')");
  put.execute();
  EXPECT_FALSE(database.good());
  const auto fault = database.take_failure();
  EXPECT_EQ(fault.kind, Fault::Kind::other);
  EXPECT_THAT(fault.message, StartsWith("book : near \"NONSENSE\""));
  EXPECT_TRUE(database.good());
  EXPECT_EQ(database.value("SELECT count(*) FROM line"), "0");
}

TEST(Database, TheFirstFailureIsKept) {
  Database database(in_memory());
  database.fail(Fault::Kind::damaged, "a page is missing");
  database.fail(Fault::Kind::other, "something else");
  const auto fault = database.take_failure();
  EXPECT_EQ(fault.kind, Fault::Kind::damaged);
  EXPECT_EQ(fault.message, "book : a page is missing");
}

TEST(Database, ATransactionCountsWhollyOrNotAtAll) {
  Database database(in_memory());
  database.run("CREATE TABLE line(name TEXT UNIQUE)");
  database.transact([&] { database.run("INSERT INTO line VALUES('a')"); });
  database.transact([&] {
    database.run("INSERT INTO line VALUES('b')");
    database.run("INSERT INTO line VALUES('a')");
  });
  EXPECT_EQ(database.take_failure().kind, Fault::Kind::other);
  EXPECT_EQ(database.value("SELECT group_concat(name) FROM line"), "a");
  database.transact([&] { database.run("INSERT INTO line VALUES('c')"); });
  EXPECT_EQ(database.value("SELECT group_concat(name) FROM line"), "a,c");
}

TEST(Database, RefusesValuesOverItsLimit) {
  Database database(in_memory());
  database.run("CREATE TABLE line(bytes BLOB)");
  auto put = database.prepare("INSERT INTO line VALUES(?1)");
  const std::string large(kMaxValue + 1, 'x');
  put.bind_blob(1, large);
  put.execute();
  database.take_statement_errors_for_damage();
  EXPECT_EQ(database.take_failure().kind, Fault::Kind::damaged);
}

TEST(Database, RunsNothingThatAFileAsksFor) {
  const test::TempDir folder;
  const auto path = (folder / "book.db").string();
  test::SqlSession(path).run(
      "CREATE TABLE line(name TEXT); CREATE TABLE seen(name TEXT);"
      "CREATE TRIGGER spy AFTER INSERT ON line BEGIN INSERT INTO seen VALUES(new.name); END;"
      "CREATE VIEW all_lines AS SELECT name FROM line");
  Database database(of_file(path));
  database.run("INSERT INTO line VALUES('a')");
  EXPECT_EQ(database.value("SELECT count(*) FROM seen"), "0");
  EXPECT_TRUE(database.good());
  database.value("SELECT count(*) FROM all_lines");
  EXPECT_FALSE(database.good());
  EXPECT_THAT(database.take_failure().message, HasSubstr("all_lines"));
  database.run("PRAGMA writable_schema=ON");
  database.run("DELETE FROM sqlite_schema");
  EXPECT_THAT(database.take_failure().message, HasSubstr("may not be modified"));
}

TEST(Database, TellsWhyTheDiskRefuses) {
  const test::TempDir folder;
  Database database(of_file((folder / "book.db").string()));
  database.run("CREATE TABLE line(name TEXT)");
  ASSERT_TRUE(database.good());
  const std::map<int, Fault::Kind> refusals = {{ENOSPC, Fault::Kind::full},
                                               {EDQUOT, Fault::Kind::full},
                                               {EROFS, Fault::Kind::read_only},
                                               {EIO, Fault::Kind::io}};
  for (const auto& [error, kind] : refusals) {
    {
      const test::BrokenDisk broken(error);
      database.transact([&] { database.run("INSERT INTO line VALUES('a')"); });
    }
    ASSERT_FALSE(database.good()) << error;
    const auto fault = database.take_failure();
    EXPECT_EQ(fault.kind, kind) << fault.message;
    EXPECT_THAT(fault.message, StartsWith("book " + (folder / "book.db").string() + ": "));
  }
  database.transact([&] { database.run("INSERT INTO line VALUES('b')"); });
  EXPECT_EQ(database.value("SELECT group_concat(name) FROM line"), "b");
}

TEST(Database, KnowsWhatIsNoDatabase) {
  const test::TempDir folder;
  const auto path = folder / "book.db";
  test::write_file(path, std::string(4096, '#'));
  Database database(of_file(path.string()));
  database.value("SELECT count(*) FROM sqlite_schema");
  EXPECT_EQ(database.take_failure().kind, Fault::Kind::damaged);
}

TEST(Database, KnowsThatAnotherProgramHoldsIt) {
  const test::TempDir folder;
  const auto path = folder / "book.db";
  test::SqlSession other(path);
  other.run("CREATE TABLE line(name TEXT); BEGIN EXCLUSIVE");
  Database database(of_file(path.string()));
  database.run("INSERT INTO line VALUES('a')");
  EXPECT_EQ(database.take_failure().kind, Fault::Kind::locked);
}

TEST(Database, LeavesItsLogUnlessItMayWriteItAtTheEnd) {
  const test::TempDir folder;
  const auto path = (folder / "book.db").string();
  for (const bool on : {false, true}) {
    {
      Database database(of_file(path));
      database.run("PRAGMA journal_mode=WAL");
      database.run("CREATE TABLE IF NOT EXISTS line(name TEXT)");
      database.write_at_close(on);
      EXPECT_TRUE(database.good());
      EXPECT_FALSE(database.is_read_only());
    }
    EXPECT_EQ(std::filesystem::exists(path + "-wal"), !on);
  }
}

TEST(Fault, BecomesAnErrorForCallers) {
  EXPECT_EQ(error_of({.kind = Fault::Kind::locked, .message = "m"}).code, ErrorCode::conflict);
  EXPECT_EQ(error_of({.kind = Fault::Kind::other, .message = "m"}).code, ErrorCode::unsupported);
  EXPECT_EQ(error_of({.kind = Fault::Kind::full, .message = "m"}).code, ErrorCode::unavailable);
  EXPECT_EQ(error_of({.kind = Fault::Kind::io, .message = "m"}).message, "m");
  EXPECT_EQ(to_string(Fault::Kind::read_only), "read_only");
}

}  // namespace
}  // namespace gitops::sqlite
