#include "event-reporter/ledger/ledger_file.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/sqlite/sqlite_probe.hpp"
#include "support/process.hpp"

namespace gitops::reporter {
namespace {

namespace fs = std::filesystem;

class InMemory : public testing::Environment {
  void SetUp() override { test::use_memory_for_temporary_files(); }
};
[[maybe_unused]] const auto* const kInMemory = testing::AddGlobalTestEnvironment(new InMemory);

using test::TempDir;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

LedgerEntry entry_of(int number, int resources = 5) {
  LedgerEntry entry{.uid = "uid-" + std::to_string(number),
                    .change = Digest{static_cast<std::uint8_t>(number)},
                    .application = LedgerEntry::Part{.digest = Digest{1}},
                    .resources = {}};
  for (int i = 0; i < resources; ++i) {
    entry.acknowledge({"apps", "v1", "Deployment", "shop", "web-" + std::to_string(i)},
                      Digest{static_cast<std::uint8_t>(i)});
  }
  return entry;
}

std::string key_of(int number) {
  return "argocd/app-" + std::to_string(number);
}

LedgerBatch batch_of(int from, int to, int resources = 5) {
  LedgerBatch batch;
  for (int i = from; i < to; ++i) batch.rows[key_of(i)] = encode(entry_of(i, resources));
  return batch;
}

void put(LedgerFile& file, const LedgerBatch& batch) {
  const auto written = file.write(batch);
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_EQ(written->rebuilt, "");
}

// A closed ledger with so many rows.
fs::path make(const TempDir& folder, int rows, int resources = 5) {
  const auto path = folder / "ledger.db";
  LedgerFile file(path);
  EXPECT_TRUE(file.open());
  put(file, batch_of(0, rows, resources));
  return path;
}

// Opens the ledger and checks that it does not say anything wrong: a row is missing or right.
struct Opened {
  std::string error = {};
  std::size_t rows = 0;
  std::size_t damaged = 0;
  std::string rebuilt = {};
};
Opened open_and_check(const fs::path& path, int resources = 5) {
  LedgerFile file(path);
  auto contents = file.open();
  if (!contents) return {.error = contents.error().message};
  for (const auto& [key, head] : contents->heads) {
    const auto number = std::atoi(key.substr(key.rfind('-') + 1).c_str());
    EXPECT_EQ(key, key_of(number));
    EXPECT_EQ(head.uid, entry_of(number).uid);
    const auto read = file.read(key);
    EXPECT_TRUE(read) << read.error().message;
    if (read) {
      EXPECT_EQ(read->entry, entry_of(number, resources));
    }
  }
  // Whatever it was, it is a good ledger now.
  put(file, batch_of(900, 901));
  EXPECT_EQ(file.read(key_of(900))->entry, entry_of(900));
  return {.rows = contents->heads.size(),
          .damaged = contents->damaged_rows,
          .rebuilt = contents->rebuilt};
}

std::set<std::string> names_in(const TempDir& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

std::vector<std::string> set_aside(const TempDir& folder) {
  std::vector<std::string> names;
  for (const auto& name : names_in(folder)) {
    if (name.starts_with("ledger.db.corrupt-") && !name.ends_with("-wal")) names.push_back(name);
  }
  return names;
}

std::string sql_text(const RowChecksum& sum) {
  Digest digest{};
  std::ranges::copy(sum, digest.begin());
  return "x'" + to_hex(digest, sum.size()) + "'";
}

TEST(LedgerFile, MakesAMissingFileThatOnlyItsOwnerReads) {
  const TempDir folder;
  const auto path = folder / "ledger.db";
  {
    LedgerFile file(path);
    const auto contents = file.open();
    ASSERT_TRUE(contents) << contents.error().message;
    EXPECT_THAT(contents->heads, IsEmpty());
    EXPECT_EQ(contents->rebuilt, "");
    put(file, batch_of(0, 1));
    for (const auto& name : names_in(folder)) {
      struct stat found{};
      ASSERT_EQ(::stat((folder / name).c_str(), &found), 0);
      EXPECT_EQ(found.st_mode & 0777U, 0600U) << name;
    }
    EXPECT_GT(file.bytes(), 0U);
  }
  EXPECT_THAT(names_in(folder), ::testing::ElementsAre("ledger.db", "ledger.db.lock"));

  LedgerFile nowhere((folder / "no" / "ledger.db").string());
  const auto refused = nowhere.open();
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("No such file or directory"));
}

TEST(LedgerFile, KeepsWhatWasWritten) {
  const TempDir folder;
  const auto path = make(folder, 50);
  {
    LedgerFile file(path);
    ASSERT_TRUE(file.open());
    LedgerBatch batch = batch_of(40, 60, 7);
    batch.rows[key_of(0)] = std::nullopt;
    batch.rows["never/was"] = std::nullopt;
    batch.notes = {{"epoch", "3"}, {"empty", ""}};
    put(file, batch);
  }
  LedgerFile file(path);
  const auto contents = file.open();
  ASSERT_TRUE(contents) << contents.error().message;
  EXPECT_THAT(contents->heads, SizeIs(59));
  EXPECT_EQ(contents->heads.at(key_of(7)), (LedgerHead{.uid = "uid-7", .change = Digest{7}}));
  EXPECT_EQ(contents->notes, (std::map<std::string, std::string>{{"empty", ""}, {"epoch", "3"}}));
  EXPECT_EQ(file.read(key_of(7))->entry, entry_of(7));
  EXPECT_EQ(file.read(key_of(41))->entry, entry_of(41, 7));
  EXPECT_EQ(file.read(key_of(0))->entry, std::nullopt);
  EXPECT_FALSE(file.read(key_of(0))->damaged);
}

TEST(LedgerFile, ErasedRowsFreeTheirSpace) {
  const TempDir folder;
  const auto path = make(folder, 1000, 30);
  const auto full = fs::file_size(path);
  {
    LedgerFile file(path);
    ASSERT_TRUE(file.open());
    LedgerBatch batch;
    for (int i = 0; i < 990; ++i) batch.rows[key_of(i)] = std::nullopt;
    put(file, batch);
  }
  EXPECT_LT(fs::file_size(path) * 20, full);
}

TEST(LedgerFile, WithoutAPathEverythingStaysInMemory) {
  LedgerFile file("");
  ASSERT_TRUE(file.open());
  put(file, batch_of(0, 3));
  EXPECT_EQ(file.read(key_of(1))->entry, entry_of(1));
  EXPECT_GT(file.bytes(), 0U);
  EXPECT_FALSE(fs::exists(".lock"));
}

TEST(LedgerFile, ANameThatSqliteGivesAMeaningIsANameLikeAnyOther) {
  const TempDir folder;
  const auto before = fs::current_path();
  fs::current_path(folder.path());
  for (const auto* name : {":memory:", "file:x?mode=memory"}) {
    LedgerFile file(name);
    ASSERT_TRUE(file.open());
    EXPECT_TRUE(fs::exists(name));
  }
  fs::current_path(before);
}

// -- damage --

TEST(LedgerFile, AC31_ADamagedRowIsLostAlone) {
  const TempDir folder;
  const auto path = make(folder, 20);
  test::SqlSession(path).run("UPDATE application SET entry = x'010000' WHERE key = 'argocd/app-3'");
  test::SqlSession(path).run(
      "UPDATE application SET checksum = x'00' WHERE key = 'argocd/app-4';"
      "UPDATE application SET key = 'argocd/app-800' WHERE key = 'argocd/app-5';"
      "INSERT INTO meta VALUES('note.epoch', '7', x'00')");
  const auto opened = open_and_check(path);
  EXPECT_EQ(opened.error, "");
  EXPECT_EQ(opened.rows, 17U);
  EXPECT_EQ(opened.damaged, 4U);
  EXPECT_EQ(opened.rebuilt, "");
  EXPECT_EQ(open_and_check(path).damaged, 0U);
  EXPECT_THAT(set_aside(folder), IsEmpty());
}

TEST(LedgerFile, AC31_ARowThatIsDamagedLaterIsFoundWhenItIsRead) {
  const TempDir folder;
  const auto path = make(folder, 3);
  LedgerFile file(path);
  ASSERT_TRUE(file.open());
  LedgerBatch batch;
  batch.rows[key_of(1)] = encode(entry_of(1)) + "x";
  put(file, batch);
  EXPECT_TRUE(file.read(key_of(1))->damaged);
  EXPECT_EQ(file.read(key_of(1))->entry, std::nullopt);
  EXPECT_EQ(file.read(key_of(2))->entry, entry_of(2));
}

TEST(LedgerFile, AC31_WhatIsNoDatabaseIsSetAsideAndRecreated) {
  const TempDir folder;
  const auto path = make(folder, 5);
  const std::string garbage(10'000, '#');
  test::write_file(path, garbage);
  test::write_file(path.string() + "-wal", "a log of something else");
  const auto opened = open_and_check(path);
  EXPECT_EQ(opened.error, "");
  EXPECT_EQ(opened.rows, 0U);
  EXPECT_THAT(opened.rebuilt, HasSubstr("not a database"));
  const auto aside = set_aside(folder);
  ASSERT_THAT(aside, SizeIs(1));
  EXPECT_EQ(test::read_file(folder / aside[0]), garbage);
  EXPECT_EQ(test::read_file(folder / (aside[0] + "-wal")), "a log of something else");
  EXPECT_EQ(open_and_check(path).rows, 1U);
}

TEST(LedgerFile, AC31_OnlyTheNewestDamagedFilesAreKept) {
  const TempDir folder;
  const auto path = folder / "ledger.db";
  for (int i = 0; i < 6; ++i) {
    test::write_file(path, "garbage number " + std::to_string(i) + std::string(600, ' '));
    EXPECT_EQ(open_and_check(path).error, "");
  }
  const auto aside = set_aside(folder);
  ASSERT_THAT(aside, SizeIs(3));
  std::set<char> kept;
  for (const auto& name : aside) kept.insert(test::read_file(folder / name).at(15));
  EXPECT_EQ(kept, (std::set<char>{'3', '4', '5'}));
}

TEST(LedgerFile, AC31_AClockThatWentBackDoesNotLoseTheNewestDamagedFile) {
  const TempDir folder;
  const auto path = folder / "ledger.db";
  for (const auto* year : {"2997", "2998", "2999"}) {
    test::write_file(path.string() + ".corrupt-" + year + "0101T000000Z", year);
  }
  test::write_file(path, std::string(600, 'g'));
  EXPECT_EQ(open_and_check(path).error, "");
  const auto aside = set_aside(folder);
  ASSERT_THAT(aside, SizeIs(3));
  EXPECT_EQ(test::read_file(folder / aside[0]), std::string(600, 'g'));
  EXPECT_THAT(aside[1], HasSubstr("2998"));
}

TEST(LedgerFile, AC31_ATornFileNeverTellsWrongThings) {
  const TempDir folder;
  const auto whole = test::read_file(make(folder, 40, 30));
  std::size_t rebuilt = 0;
  std::size_t rounds = 0;
  for (std::size_t size = 0; size < whole.size(); size += size < 1024 ? 97 : 8111) {
    const TempDir torn;
    test::write_file(torn / "ledger.db", whole.substr(0, size));
    const auto opened = open_and_check(torn / "ledger.db", 30);
    EXPECT_EQ(opened.error, "") << size;
    rebuilt += opened.rebuilt.empty() ? 0 : 1;
    ++rounds;
  }
  EXPECT_EQ(rebuilt + 1, rounds);  // an empty file is a new one
}

TEST(LedgerFile, AC31_AFlippedByteNeverTellsWrongThings) {
  const TempDir folder;
  const auto whole = test::read_file(make(folder, 12, 30));
  std::size_t lost_rows = 0;
  std::size_t rebuilt = 0;
  std::size_t refused = 0;
  for (std::size_t at = 0; at < whole.size(); at += at < 128 ? 1 : 401) {
    const TempDir flipped;
    auto bytes = whole;
    bytes[at] = static_cast<char>(static_cast<unsigned char>(bytes[at]) ^ (1U << (at % 8)));
    test::write_file(flipped / "ledger.db", bytes);
    const auto opened = open_and_check(flipped / "ledger.db", 30);
    if (!opened.error.empty()) {
      // The four bytes that say whose database it is.
      EXPECT_THAT(opened.error, HasSubstr("another program")) << at;
      EXPECT_TRUE(at >= 68 && at < 72) << at << opened.error;
      ++refused;
    } else if (!opened.rebuilt.empty()) {
      ++rebuilt;
    } else {
      EXPECT_EQ(opened.rows + opened.damaged, 12U) << at;
      lost_rows += opened.damaged;
    }
  }
  EXPECT_EQ(refused, 4U);
  EXPECT_GT(rebuilt, 0U);
  EXPECT_GT(lost_rows, 0U);
}

TEST(LedgerFile, AC31_OfATornLogTheWholeCommitsCount) {
  const TempDir folder;
  std::string base;
  std::string log;
  {
    const auto path = folder / "ledger.db";
    LedgerFile file(path);
    ASSERT_TRUE(file.open());
    for (int i = 0; i < 20; ++i) put(file, batch_of(2 * i, 2 * i + 2));
    base = test::read_file(path);
    log = test::read_file(path.string() + "-wal");
  }
  const auto rows_with = [&](const std::string& torn_log) {
    const TempDir torn;
    test::write_file(torn / "ledger.db", base);
    test::write_file(torn / "ledger.db-wal", torn_log);
    const auto opened = open_and_check(torn / "ledger.db");
    EXPECT_EQ(opened.error, "");
    EXPECT_EQ(opened.damaged, 0U);
    EXPECT_EQ(opened.rows % 2, 0U);
    return opened.rows;
  };
  EXPECT_EQ(rows_with(log), 40U);
  std::size_t before = 0;
  for (std::size_t size = 0; size < log.size(); size += 1777) {
    const auto rows = rows_with(log.substr(0, size));
    EXPECT_GE(rows, before);
    before = rows;
  }
  EXPECT_GE(before, 36U);
  for (std::size_t at = 0; at < log.size(); at += at < 64 ? 1 : 1777) {
    auto flipped = log;
    flipped[at] = static_cast<char>(static_cast<unsigned char>(flipped[at]) ^ 0x10U);
    EXPECT_LE(rows_with(flipped), 40U);
  }
}

TEST(LedgerFile, AC31_WhatAFileWouldRunIsNotRun) {
  for (const std::string sql :
       {"CREATE TRIGGER t AFTER INSERT ON application BEGIN DELETE FROM application; END",
        "CREATE VIEW v AS SELECT 1", "CREATE INDEX i ON application(length(entry))",
        "DROP TABLE application",
        "DROP TABLE application; CREATE VIEW application AS SELECT 'a/b' AS key, x'' AS checksum, "
        "x'' AS entry",
        "ALTER TABLE application ADD COLUMN more TEXT", "DELETE FROM meta",
        "UPDATE meta SET checksum = x'00'", "DROP TABLE meta"}) {
    const TempDir folder;
    const auto path = make(folder, 5);
    test::SqlSession(path).run(sql);
    const auto opened = open_and_check(path);
    EXPECT_EQ(opened.error, "") << sql;
    EXPECT_NE(opened.rebuilt, "") << sql;
    EXPECT_THAT(set_aside(folder), SizeIs(1));
  }
}

// -- what is left alone --

TEST(LedgerFile, AFileOfANewerVersionIsLeftAlone) {
  const TempDir folder;
  const auto path = make(folder, 5);
  test::SqlSession(path).run(
      "UPDATE meta SET value = '2', checksum = " + sql_text(row_checksum("schema", "2")) +
      " WHERE name = 'schema'; CREATE TABLE more(x)");
  const auto before = test::read_file(path);
  const auto opened = open_and_check(path);
  EXPECT_THAT(opened.error, HasSubstr("written by a newer version (schema 2"));
  EXPECT_EQ(test::read_file(path), before);
  EXPECT_THAT(set_aside(folder), IsEmpty());
}

TEST(LedgerFile, ADatabaseOfAnotherProgramIsLeftAlone) {
  const TempDir folder;
  const auto path = folder / "ledger.db";
  test::SqlSession(path).run("CREATE TABLE application(key, checksum, entry)");
  const auto before = test::read_file(path);
  EXPECT_THAT(open_and_check(path).error, HasSubstr("of another program"));
  EXPECT_EQ(test::read_file(path), before);
}

TEST(LedgerFile, WhatIsNoFileIsLeftAlone) {
  const TempDir folder;
  fs::create_directory(folder / "folder");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  for (const auto* name : {"folder", "pipe"}) {
    EXPECT_THAT(open_and_check(folder / name).error, HasSubstr("not a regular file"));
  }
}

// Permissions mean nothing to root, so root becomes somebody else for a while.
class SomebodyElse {
 public:
  explicit SomebodyElse(const fs::path& folder) {
    if (::geteuid() != 0) return;
    for (const auto& entry : fs::directory_iterator(folder)) chown(entry.path());
    chown(folder);
    EXPECT_EQ(::seteuid(kNobody), 0);
  }
  ~SomebodyElse() {
    if (::getuid() == 0) EXPECT_EQ(::seteuid(0), 0);
  }
  SomebodyElse(const SomebodyElse&) = delete;
  SomebodyElse& operator=(const SomebodyElse&) = delete;

 private:
  static constexpr uid_t kNobody = 65534;
  static void chown(const fs::path& path) { EXPECT_EQ(::chown(path.c_str(), kNobody, kNobody), 0); }
};

TEST(LedgerFile, AReadOnlyFileOrFolderIsRefused) {
  const TempDir folder;
  const auto path = make(folder, 5);
  const SomebodyElse nobody(folder.path());
  fs::permissions(path, fs::perms::owner_read);
  EXPECT_THAT(open_and_check(path).error, HasSubstr("Permission denied"));
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);

  fs::remove(path.string() + ".lock");
  fs::permissions(folder.path(), fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_THAT(open_and_check(path).error, HasSubstr("Permission denied"));
  fs::permissions(folder.path(), fs::perms::owner_all);
  EXPECT_EQ(open_and_check(path).rows, 5U);
}

// -- two writers --

TEST(LedgerFile, AC31_ASecondWriterIsRefused) {
  const TempDir folder;
  const auto path = folder / "ledger.db";
  LedgerFile first(path);
  ASSERT_TRUE(first.open());
  put(first, batch_of(0, 5));
  {
    LedgerFile second(path);
    const auto opened = second.open();
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ErrorCode::conflict);
    EXPECT_THAT(opened.error().message, HasSubstr("in use by another process"));
  }
  const auto child = ::fork();
  if (child == 0) {
    LedgerFile second(path);
    const auto opened = second.open();
    ::_exit(!opened && opened.error().code == ErrorCode::conflict ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  // Nor does one that comes when the file is damaged take it away.
  test::write_file(path, std::string(4096, '#'));
  EXPECT_THAT(open_and_check(path).error, HasSubstr("in use"));
  EXPECT_THAT(set_aside(folder), IsEmpty());
}

TEST(LedgerFile, AC31_AProgramThatHoldsTheDatabaseIsNotDisturbed) {
  const TempDir folder;
  const auto path = make(folder, 5);
  {
    test::SqlSession other(path);
    other.run("BEGIN IMMEDIATE; DELETE FROM application");
    EXPECT_THAT(open_and_check(path).error, HasSubstr("locked"));
    other.run("ROLLBACK");
  }
  EXPECT_EQ(open_and_check(path).rows, 5U);
}

}  // namespace
}  // namespace gitops::reporter
