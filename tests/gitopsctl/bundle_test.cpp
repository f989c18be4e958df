// The archive of a bundle, its list and its limits.
#include "gitopsctl/bundle.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/process.hpp"

namespace gitops::ctl {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

const WallTime kNow = parse_rfc3339("2026-03-04T09:15:27Z").value();

TEST(Bundle, HoldsItsPartsAndAListOfThem) {
  const test::TempDir folder;
  Bundle bundle("diag");
  bundle.add({.path = "pods/a/metrics.txt", .about = "metrics of a", .text = "x 1\n"});
  bundle.add({.path = "check.json", .about = "rows", .text = R"({"token":"Canary7Bird"})"});
  bundle.add({.path = "pods/a/log.txt",
              .about = "log of a\x1b[31m",
              .text = fail(ErrorCode::forbidden, "no, password=Canary7Bird")});
  bundle.leave_out("the control plane", "no address was given");
  const auto bytes = bundle.archive({}, kNow);
  EXPECT_EQ(bundle.not_known(), 1U);
  test::write_file(folder / "a.tar.gz", bytes);
  const std::string file = folder / "a.tar.gz";
  const auto read = [&](const std::string& path) {
    return test::run_command({"tar", "-xzOf", file, "diag/" + path}, {}).out;
  };
  EXPECT_EQ(read("pods/a/metrics.txt"), "x 1\n");
  EXPECT_EQ(read("check.json"), R"({"token":"[redacted]"})");
  const auto contents = read("CONTENTS.txt");
  EXPECT_EQ(contents, bundle.contents());
  EXPECT_THAT(contents, AllOf(HasSubstr("pods/a/metrics.txt  4 bytes   metrics of a\n"),
                              HasSubstr("Not known\n  log of a [31m: no, password=[redacted]\n"),
                              HasSubstr("Left out\n  the control plane: no address was given\n"),
                              Not(HasSubstr("Canary"))));
}

TEST(Bundle, LongPartsLoseTheirBeginning) {
  Bundle bundle("diag", {.part = 100, .all = 450});
  std::string text = "first\n";
  while (text.size() <= 100) text += "a line of the log\n";
  for (int i = 0; i < 4; ++i) {
    bundle.add({.path = "log" + std::to_string(i), .about = "log", .text = text + "last\n"});
  }
  static_cast<void>(bundle.archive({}, kNow));
  EXPECT_EQ(bundle.not_known(), 1U) << "the bundle is full";
  EXPECT_THAT(bundle.contents(), HasSubstr("the bundle has its 450 bytes without it"));
  EXPECT_THAT(std::string(last_lines(text + "last\n", 30)),
              AllOf(EndsWith("line of the log\nlast\n"), Not(HasSubstr("first"))));
  EXPECT_EQ(last_lines("abc", 10), "abc");
  EXPECT_EQ(last_lines("abcdef", 3), "") << "no line begins there";
}

TEST(Bundle, NamesOfPeersAreNoPaths) {
  EXPECT_EQ(path_component("app-proxy-1"), "app-proxy-1");
  EXPECT_EQ(path_component("../../etc/passwd"), "_.._.._etc_passwd");
  EXPECT_EQ(path_component(""), "_");
  EXPECT_LE(path_component(std::string(253, 'a')).size(), 80U);
  EXPECT_NE(path_component(std::string(253, 'a')), path_component(std::string(252, 'a')));
}

}  // namespace
}  // namespace gitops::ctl
