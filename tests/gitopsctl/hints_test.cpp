// Every row of a check has a section in docs, wherever the page lies.
#include "gitopsctl/hints.hpp"

#include <filesystem>
#include <set>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gitopsctl/report.hpp"
#include "support/process.hpp"

namespace gitops::ctl {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

// The anchors of the headings of a page, as GitHub makes them.
std::set<std::string> anchors_of(const std::string& page) {
  std::set<std::string> anchors;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("## ") && !line.starts_with("### ")) continue;
    std::string anchor;
    for (const char c : line.substr(line.find(' ') + 1)) {
      if (c == ' ') {
        anchor += '-';
      } else if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_') {
        anchor += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      }
    }
    anchors.insert(anchor);
  }
  return anchors;
}

TEST(Hints, TheirSectionsExist) {
  std::string page;
  for (const auto& entry :
       fs::recursive_directory_iterator(std::string(GITOPS_SOURCE_DIR) + "/docs")) {
    if (entry.path().filename() == "gitopsctl-checks.md") page = test::read_file(entry.path());
  }
  ASSERT_FALSE(page.empty()) << "docs has no gitopsctl-checks.md";
  const auto anchors = anchors_of(page);
  for (const Hint& hint : all_hints()) {
    EXPECT_TRUE(anchors.contains(std::string(hint.anchor))) << hint.anchor;
  }
}

TEST(Hints, RowsThatAreNotOkNameTheirSection) {
  const Report report{{.id = "kubernetes",
                       .title = "Kubernetes",
                       .about = {},
                       .rows = {ok("API server", "v1"), denied("credentials", "no", "log in")}},
                      {.id = "rights",
                       .title = "Rights",
                       .about = {},
                       .rows = {skipped("any-daemon", "not asked")}}};
  const auto json = to_json(report);
  EXPECT_THAT(json, HasSubstr(R"("help": "gitopsctl-checks.md#credentials")"));
  EXPECT_THAT(json, HasSubstr(R"("help": "gitopsctl-checks.md#rights")"));
  EXPECT_THAT(json, Not(HasSubstr("#api-server")));
  const auto text = to_text(report, false);
  EXPECT_THAT(text, HasSubstr("hint: log in; see gitopsctl-checks.md#credentials\n"));
  EXPECT_EQ(help_for("nothing", "x"), "");
}

}  // namespace
}  // namespace gitops::ctl
