#include "common/core/small_file.hpp"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "support/process.hpp"

namespace gitops {
namespace {

namespace fs = std::filesystem;

class SmallFile : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return (folder_ / name).string();
  }
  static std::string mistake(const std::string& path, ErrorCode code, std::size_t limit = 100) {
    const auto read = read_small_file(path, limit);
    if (read) return "read";
    EXPECT_EQ(read.error().code, code);
    return read.error().message;
  }

  test::TempDir folder_;
};

TEST_F(SmallFile, IsReadWhole) {
  const std::string text("a\0b\r\n", 5);
  EXPECT_EQ(*read_small_file(write("some", text)), text);
  EXPECT_EQ(*read_small_file(write("empty", "")), "");
  EXPECT_EQ(*read_small_file(write("full", std::string(100, 'x')), 100), std::string(100, 'x'));
}

TEST_F(SmallFile, AnEmptyFileCountsAtTheSecondLookAtOneVersion) {
  EmptyFileWatch watch;
  EXPECT_FALSE(watch.stays_empty(false, "1"));
  EXPECT_FALSE(watch.stays_empty(true, "2"));
  EXPECT_FALSE(watch.stays_empty(true, "3")) << "written again";
  EXPECT_TRUE(watch.stays_empty(true, "3"));
  EXPECT_TRUE(watch.stays_empty(true, "3"));
  EXPECT_FALSE(watch.stays_empty(false, "4"));
  EXPECT_FALSE(watch.stays_empty(true, "5"));
  EXPECT_FALSE(watch.stays_empty(true, "")) << "no version";
}

TEST_F(SmallFile, AnythingElseIsRefused) {
  EXPECT_EQ(mistake(write("big", std::string(2049, 'x')), ErrorCode::too_large, 2048),
            "is larger than 2 KiB");
  EXPECT_EQ(mistake(folder_ / "none", ErrorCode::not_found),
            "cannot be read: No such file or directory");
  EXPECT_EQ(mistake(write("file", "") + "/below", ErrorCode::not_found),
            "cannot be read: Not a directory");
  EXPECT_EQ(mistake(folder_.path(), ErrorCode::invalid_data), "is not a file");
  EXPECT_EQ(mistake("/dev/zero", ErrorCode::invalid_data), "is not a file");
}

TEST_F(SmallFile, APipeIsNotWaitedFor) {
  const auto path = (folder_ / "pipe").string();
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(mistake(path, ErrorCode::invalid_data), "is not a file");
}

TEST_F(SmallFile, TheFingerprintTellsOfEveryReplacement) {
  const auto path = write("token", "one");
  const auto first = file_fingerprint(path);
  EXPECT_FALSE(first.empty());
  EXPECT_EQ(file_fingerprint(path), first);
  // As Kubernetes does it: a link that moves to another file of the same size.
  write("other", "two");
  fs::create_symlink("other", folder_ / "link");
  fs::rename(folder_ / "link", path);
  EXPECT_NE(file_fingerprint(path), first);
  fs::remove(path);
  EXPECT_EQ(file_fingerprint(path), "");
}

}  // namespace
}  // namespace gitops
