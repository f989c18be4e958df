#include "common/sqlite/file_guard.hpp"

#include <filesystem>
#include <functional>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "support/process.hpp"

namespace gitops::sqlite {
namespace {

namespace fs = std::filesystem;

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

TEST(FileGuard, MakesAMissingFileThatOnlyItsOwnerReads) {
  const test::TempDir folder;
  const auto path = folder / "book.db";
  const FileGuard guard(path.string(), "book");
  ASSERT_TRUE(guard.prepare());
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  test::write_file(path, "12345");
  ASSERT_TRUE(guard.prepare());
  EXPECT_EQ(test::read_file(path), "12345");
  test::write_file(path.string() + "-wal", "123");
  EXPECT_EQ(guard.bytes(), 8U);
}

TEST(FileGuard, RefusesWhatIsNoFile) {
  const test::TempDir folder;
  fs::create_directory(folder / "folder");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  for (const auto* name : {"folder", "pipe"}) {
    const auto refused = FileGuard((folder / name).string(), "book").prepare();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, Fault::Kind::other);
    EXPECT_EQ(refused.error().message, "book " + (folder / name).string() + ": not a regular file");
  }
  const auto nowhere = FileGuard((folder / "no" / "book.db").string(), "book").prepare();
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().kind, Fault::Kind::io);
  EXPECT_THAT(nowhere.error().message, HasSubstr("No such file or directory"));
}

TEST(FileGuard, LocksForOneHolder) {
  const test::TempDir folder;
  const auto path = (folder / "book.db").string();
  FileGuard first(path, "book");
  ASSERT_TRUE(first.lock());
  FileGuard second(path, "book");
  const auto refused = second.lock();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Fault::Kind::locked);
  EXPECT_EQ(refused.error().message, "book " + path + ": in use by another process");
  first.unlock();
  EXPECT_TRUE(second.lock());
  // A link in place of the lock is not followed.
  fs::create_symlink(folder / "elsewhere", folder / "other.db.lock");
  EXPECT_FALSE(FileGuard((folder / "other.db").string(), "book").lock());
  EXPECT_FALSE(fs::exists(folder / "elsewhere"));
}

TEST(FileGuard, KeepsAMarkThroughRestarts) {
  const test::TempDir folder;
  const auto path = (folder / "book.db").string();
  const auto reopened = [&](const std::function<void(FileGuard&)>& use) {
    FileGuard guard(path, "book");
    ASSERT_TRUE(guard.lock());
    use(guard);
  };
  test::write_file(path + ".lock", "");  // of an earlier version
  reopened([](FileGuard& guard) {
    EXPECT_EQ(guard.mark(), "");
    EXPECT_TRUE(guard.set_mark("12345678901234567890"));
    EXPECT_TRUE(guard.set_mark("a mark"));
    EXPECT_EQ(guard.mark(), "a mark");
  });
  const auto size = fs::file_size(path + ".lock");
  reopened([](FileGuard& guard) {
    EXPECT_EQ(guard.mark(), "a mark");
    EXPECT_TRUE(guard.set_mark(""));
  });
  reopened([](FileGuard& guard) { EXPECT_EQ(guard.mark(), ""); });
  EXPECT_EQ(fs::file_size(path + ".lock"), size) << "it is overwritten in place";
  EXPECT_TRUE(FileGuard("", "book").set_mark("in memory"));
}

TEST(FileGuard, SetsADamagedFileAsideWithWhatBelongsToIt) {
  const test::TempDir folder;
  const auto path = (folder / "book.db").string();
  const FileGuard guard(path, "book");
  for (const auto* side : {"", "-wal", "-shm"}) test::write_file(path + side, side);
  ASSERT_TRUE(guard.set_aside());
  const auto names = names_in(folder.path());
  ASSERT_THAT(names, SizeIs(3));
  const auto aside = *names.begin();
  EXPECT_THAT(aside, ::testing::MatchesRegex(R"(book\.db\.corrupt-[0-9]{8}T[0-9]{6}\.[0-9]{3}Z)"));
  EXPECT_THAT(names, ElementsAre(aside, aside + "-shm", aside + "-wal"));
  EXPECT_EQ(test::read_file(folder / (aside + "-wal")), "-wal");
  // There is nothing to do for a file that is not there.
  EXPECT_TRUE(guard.set_aside());
}

TEST(FileGuard, KeepsTheNewestThreeThatWereSetAside) {
  const test::TempDir folder;
  const auto path = (folder / "book.db").string();
  for (const auto* year : {"2019", "2020", "2021", "2022"}) {
    test::write_file(path + ".corrupt-" + year + "0101T000000.000Z", year);
    test::write_file(path + ".corrupt-" + year + "0101T000000.000Z-wal", year);
  }
  test::write_file(path, "newest");
  ASSERT_TRUE(FileGuard(path, "book").set_aside());
  std::set<std::string> contents;
  for (const auto& name : names_in(folder.path())) {
    if (!name.ends_with("-wal")) contents.insert(test::read_file(folder / name));
  }
  EXPECT_THAT(contents, ElementsAre("2021", "2022", "newest"));
  EXPECT_THAT(names_in(folder.path()), SizeIs(5));
}

TEST(FileGuard, HasNothingToDoForMemory) {
  FileGuard guard("", "book");
  EXPECT_TRUE(guard.lock());
  EXPECT_TRUE(guard.prepare());
  EXPECT_TRUE(guard.set_aside());
  EXPECT_EQ(guard.bytes(), 0U);
  EXPECT_FALSE(fs::exists(".lock"));
}

}  // namespace
}  // namespace gitops::sqlite
