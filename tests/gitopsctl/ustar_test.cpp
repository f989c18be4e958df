// Archives are read by the real tar.
#include "gitopsctl/ustar.hpp"

#include <stdexcept>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/process.hpp"

namespace gitops::ctl {
namespace {

using testing::HasSubstr;

TEST(Ustar, TarReadsFilesWithTheirModeTimeAndContent) {
  const test::TempDir folder;
  const std::string long_path = std::string(120, 'a') + "/" + std::string(100, 'b');
  const std::string binary("a\0b\n", 4);
  std::string archive;
  const auto time = parse_rfc3339("2026-03-04T09:15:27Z").value();
  append_file(archive, "one/empty", "", time);
  append_file(archive, long_path, binary, time);
  append_file(archive, "one/block", std::string(512, 'x'), time);
  append_end(archive);
  EXPECT_EQ(archive.size() % 512, 0U);
  test::write_file(folder / "a.tar", archive);
  const std::string tar = folder / "a.tar";
  const auto list = test::run_or_throw({"tar", "--utc", "--full-time", "-tvf", tar});
  EXPECT_THAT(list, HasSubstr("-rw------- 0/0               0 2026-03-04 09:15:27 one/empty\n"));
  EXPECT_THAT(list, HasSubstr(long_path));
  EXPECT_EQ(test::run_command({"tar", "-xOf", tar, long_path}, {}).out, binary);
  EXPECT_EQ(test::run_or_throw({"tar", "-xOf", tar, "one/block"}), std::string(512, 'x'));
}

TEST(Ustar, APathThatDoesNotFitIsRefused) {
  EXPECT_TRUE(fits_ustar(std::string(100, 'a')));
  EXPECT_FALSE(fits_ustar(std::string(101, 'a')));
  EXPECT_FALSE(fits_ustar(std::string(156, 'a') + "/" + std::string(100, 'b')));
  EXPECT_TRUE(fits_ustar(std::string(155, 'a') + "/" + std::string(100, 'b')));
  EXPECT_FALSE(fits_ustar(std::string(120, 'a') + "/"));
  EXPECT_FALSE(fits_ustar(""));
  std::string archive;
  EXPECT_THROW(append_file(archive, std::string(101, 'a'), "", {}), std::invalid_argument);
}

}  // namespace
}  // namespace gitops::ctl
