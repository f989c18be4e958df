// Where `gitopsctl demo` finds its program.
#include "gitopsctl/demo.hpp"

#include <filesystem>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "common/core/process.hpp"
#include "support/process.hpp"

namespace gitops::ctl {
namespace {

namespace fs = std::filesystem;

class Demo : public testing::Test {
 protected:
  fs::path put(const std::string& folder, bool is_program = true) {
    const auto path = folder_ / folder / "gitops-demo";
    test::write_file(path, "");
    if (is_program) fs::permissions(path, fs::perms::owner_all);
    return path;
  }
  std::optional<fs::path> find() {
    return find_demo(folder_ / "ctl",
                     "::" + (folder_ / "a").string() + ":" + (folder_ / "b").string());
  }

  test::TempDir folder_;
};

TEST_F(Demo, IsSoughtBesideGitopsctlThenInTheArchiveBesideThenInThePath) {
  EXPECT_EQ(find(), std::nullopt);
  const auto in_path = put("b");
  EXPECT_EQ(find(), in_path);
  put("gitops-runtime-0.0.0-linux-amd64");
  EXPECT_EQ(find(), in_path);
  const auto unpacked = put("gitops-runtime-" + std::string(version()) + "-linux-amd64");
  EXPECT_EQ(find(), unpacked);
  const auto beside = put("ctl");
  EXPECT_EQ(find(), beside);
}

TEST_F(Demo, IsAProgram) {
  put("ctl", false);
  put("a", false);
  const auto in_path = put("b");
  EXPECT_EQ(find(), in_path);
}

}  // namespace
}  // namespace gitops::ctl
