#include "common/cli/man_pages.hpp"

#include <filesystem>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/cli/command.hpp"
#include "support/process.hpp"

namespace gitops::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string g_name;
bool g_deep = false;

Program program() {
  return {.name = "sample",
          .summary = "does things",
          .commands = {{.name = "thing list",
                        .summary = "List things",
                        .description = "All of them,\n.as they are with \\ in.\n\nExamples:\n"
                                       "  sample thing list x\n",
                        .operands = {{.name = "NAME", .help = "Its name", .target = &g_name}},
                        .bind =
                            [](ConfigReader& reader) {
                              reader.add({.flag = "deep-look", .help = "Look deep", .letter = 'd'},
                                         g_deep);
                            },
                        .run = [](const Environment&, Console&) { return int{kDone}; }}}};
}

TEST(ManPages, AreMadeFromTheTable) {
  const auto pages = man_pages(program());
  ASSERT_EQ(pages.size(), 2U);
  EXPECT_EQ(pages[0].first, "sample.1");
  EXPECT_THAT(pages[0].second, HasSubstr(".TP\n\\fBthing list\\fR\nList things\n"));
  EXPECT_EQ(pages[1].first, "sample-thing-list.1");
  EXPECT_THAT(pages[1].second, AllOf(HasSubstr(".SH NAME\nsample\\-thing\\-list \\- List things\n"),
                                     HasSubstr("\\fBsample thing list\\fR \\fINAME\\fR [flags]\n"),
                                     HasSubstr("\n\\&.as they are with \\e in.\n"),
                                     HasSubstr("\\fB\\-d, \\-\\-deep\\-look\\fR\nLook deep\n"),
                                     HasSubstr(".SH EXAMPLES\n.nf\n  sample thing list x\n.fi\n"),
                                     Not(HasSubstr("\n.as"))));
}

TEST(ManPages, AreWrittenIntoAFolder) {
  const test::TempDir folder;
  std::ostringstream out;
  std::ostringstream err;
  Console console{.out = out, .err = err};
  const std::string into = folder / "new";
  EXPECT_EQ(run(program(), {"help", "--man", into}, {}, console), kDone) << err.str();
  EXPECT_EQ(test::read_file(folder / "new" / "sample.1"), man_pages(program())[0].second);
  EXPECT_TRUE(std::filesystem::exists(folder / "new" / "sample-thing-list.1"));
  test::write_file(folder / "file", "");
  EXPECT_EQ(run(program(), {"help", "--man", folder / "file"}, {}, console), kFailed);
  EXPECT_EQ(run(program(), {"help", "--man"}, {}, console), kWrongUsage);
}

}  // namespace
}  // namespace gitops::cli
