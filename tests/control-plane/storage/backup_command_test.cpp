#include "control-plane/storage/backup_command.hpp"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/sqlite/file_guard.hpp"
#include "common/store/sqlite_connection.hpp"
#include "control-plane/accounts/accounts_fixture.hpp"
#include "control-plane/storage/schema.hpp"
#include "support/process.hpp"

namespace gitops::control_plane_server {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr store::Statement kInstance{
    .name = "test.instance",
    .sql = "INSERT INTO instance (one, id, restores, created_at) VALUES (1, 'i', 0, 1)"};
constexpr store::Statement kAddAccount{
    .name = "test.account", .sql = "INSERT INTO account (id, name, created_at) VALUES ($1, $1, 1)"};
constexpr store::Statement kState{
    .name = "test.state",
    .sql =
        "SELECT restores, (SELECT count(*) FROM account), (SELECT integrity_check FROM "
        "pragma_integrity_check) FROM instance"};

// A database in a folder of its own.
struct BackupCommand : testing::Test {
  test::TempDir folder;
  store::Location location{.path = (folder / "control-plane.db").string()};
  std::string backup = (folder / "backup.db").string();
  std::ostringstream out;
  std::ostringstream err;

  void SetUp() override {
    std::ofstream(location.path).close();
    must(store::migrate(*open(), migrations()));
    must(open()->execute(kInstance));
    add_account("acme");
  }
  [[nodiscard]] std::unique_ptr<store::Connection> open() const {
    return must(store::open_sqlite(location.path, store::Access::read_write, 1024 * 1024));
  }
  void add_account(const std::string& name) { must(open()->execute(kAddAccount, {name})); }
  std::string state() {
    const auto rows = must(open()->run(kState));
    return std::to_string(rows.number(0, 0)) + " restores, " + std::to_string(rows.number(0, 1)) +
           " accounts, " + rows.string(0, 2);
  }
  int run(const std::vector<std::string>& arguments) {
    out.str("");
    err.str("");
    cli::Console console{.out = out, .err = err};
    const BackupCommandOptions options{
        .add_location = [this](ConfigReader&, store::Location& at) { at = location; },
        .migrations = migrations()};
    return run_backup_command(options, arguments, {}, console).value_or(-1);
  }
};

TEST_F(BackupCommand, ABackupIsMadeWhileTheDatabaseIsUsedAndPutBack) {
  sqlite::FileGuard daemon(location.path, "database");
  ASSERT_TRUE(daemon.lock());
  const auto used = open();
  must(used->run_script("BEGIN IMMEDIATE"));
  ASSERT_EQ(run({"backup", "--to", backup}), cli::kDone) << err.str();
  must(used->run_script("COMMIT"));
  EXPECT_THAT(out.str(), testing::MatchesRegex("[0-9a-f]+  .*backup.db\n"));
  EXPECT_EQ(test::run_or_throw({"sha256sum", backup}) + "\n", out.str());
  EXPECT_EQ(fs::status(backup).permissions() & fs::perms::others_read, fs::perms::none);
  add_account("later");
  EXPECT_EQ(run({"restore", "--from", backup}), cli::kFailed);
  EXPECT_THAT(err.str(), HasSubstr("stop control-plane first"));
  EXPECT_EQ(state(), "0 restores, 2 accounts, ok");
  daemon.unlock();
  ASSERT_EQ(run({"restore", "--from", backup}), cli::kDone) << err.str();
  EXPECT_EQ(state(), "1 restores, 1 accounts, ok");
  EXPECT_TRUE(fs::exists(location.path + ".before-restore"));
  ASSERT_EQ(run({"restore", "--from", location.path + ".before-restore"}), cli::kDone) << err.str();
  EXPECT_EQ(state(), "1 restores, 2 accounts, ok");
}

// Otherwise SQLite would apply the log of the database before to the backup.
TEST_F(BackupCommand, ALogThatCannotBeMovedAwayStopsARestore) {
  ASSERT_EQ(run({"backup", "--to", backup}), cli::kDone) << err.str();
  auto used = open();
  must(used->execute(kAddAccount, {"later"}));
  const auto in_the_way = location.path + ".before-restore-wal";
  fs::create_directories(fs::path(in_the_way) / "folder");
  EXPECT_EQ(run({"restore", "--from", backup}), cli::kFailed);
  EXPECT_THAT(err.str(), HasSubstr(in_the_way));
  used.reset();
  EXPECT_EQ(state(), "0 restores, 2 accounts, ok");
  fs::remove_all(in_the_way);
  ASSERT_EQ(run({"restore", "--from", backup}), cli::kDone) << err.str();
  EXPECT_EQ(state(), "1 restores, 1 accounts, ok");
  ASSERT_EQ(run({"restore", "--from", location.path + ".before-restore"}), cli::kDone) << err.str();
  EXPECT_EQ(state(), "1 restores, 2 accounts, ok");
}

TEST_F(BackupCommand, ABackupLeavesAPodByStandardOutput) {
  ASSERT_EQ(run({"backup", "--to=-"}), cli::kDone) << err.str();
  std::ofstream(backup, std::ios::binary) << out.str();
  const auto sum = test::run_or_throw({"sha256sum", backup}).substr(0, 64);
  EXPECT_THAT(err.str(), HasSubstr(sum + "  -\n"));
  EXPECT_FALSE(fs::exists(location.path + ".backup"));
  add_account("later");
  ASSERT_EQ(run({"restore", "--from", backup}), cli::kDone) << err.str();
  EXPECT_EQ(state(), "1 restores, 1 accounts, ok");
}

TEST_F(BackupCommand, ADamagedBackupReplacesNothing) {
  ASSERT_EQ(run({"backup", "--to", backup}), cli::kDone) << err.str();
  {
    std::fstream file(backup, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(3 * 4096);
    file << std::string(4096, 'x');
  }
  EXPECT_EQ(run({"restore", "--from", backup}), cli::kFailed);
  EXPECT_EQ(state(), "0 restores, 1 accounts, ok");
  std::ofstream(backup) << "no database";
  EXPECT_EQ(run({"restore", "--from", backup}), cli::kFailed);
  EXPECT_EQ(run({"restore", "--from", (folder / "none").string()}), cli::kFailed);
  EXPECT_THAT(err.str(), HasSubstr("No such file"));
  EXPECT_EQ(state(), "0 restores, 1 accounts, ok");
}

TEST_F(BackupCommand, AFileThatExistsIsNotOverwritten) {
  std::ofstream(backup) << "mine";
  EXPECT_EQ(run({"backup", "--to", backup}), cli::kFailed);
  EXPECT_THAT(err.str(), HasSubstr("exists"));
  EXPECT_EQ(test::read_file(backup), "mine");
}

TEST_F(BackupCommand, WrongUsesAreToldApart) {
  EXPECT_EQ(run({"backup"}), cli::kWrongUsage);
  EXPECT_EQ(run({"restore"}), cli::kWrongUsage);
  EXPECT_EQ(run({"copy"}), -1) << "another command";
  location = {.engine = store::Engine::postgres, .dsn = "postgresql:///x"};
  EXPECT_EQ(run({"backup", "--to", backup}), cli::kFailed);
  EXPECT_THAT(err.str(), HasSubstr("pg_dump"));
  EXPECT_EQ(run({"restore", "--from", backup}), cli::kFailed);
  EXPECT_THAT(err.str(), HasSubstr("pg_restore"));
}

}  // namespace
}  // namespace gitops::control_plane_server
