#include "common/cli/completion.hpp"

#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/cli/command.hpp"
#include "common/cli/table.hpp"
#include "support/process.hpp"

namespace gitops::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class CompletionTest : public testing::Test {
 protected:
  // The completions that bash offers after the last of these words.
  std::vector<std::string> offered(const std::vector<std::string>& words) const {
    std::string script = bash_completion(program_) + "COMP_WORDS=(";
    for (const std::string& word : words) script += "'" + word + "' ";
    script += ")\nCOMP_CWORD=" + std::to_string(words.size() - 1) +
              "\ncompopt() { :; }\n_sample\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n";
    std::vector<std::string> lines;
    std::istringstream out(
        test::run_or_throw({"bash", "-u"}, {}, script, std::chrono::seconds(20), folder_.path()));
    for (std::string line; std::getline(out, line);) {
      if (!line.empty()) lines.push_back(line);
    }
    return lines;
  }

  test::TempDir folder_;
  OutputFormat format_ = OutputFormat::text;
  std::string server_;
  Secret token_;
  bool verbose_ = false;
  Program program_{.name = "sample",
                   .summary = "Shows completion",
                   .commands = {{.name = "check",
                                 .summary = "Look: is it 'well'?",
                                 .bind =
                                     [this](ConfigReader& reader) {
                                       add_output_row(reader, format_);
                                       reader.add({.flag = "server", .help = "[a] it's: b"},
                                                  server_);
                                       reader.add_secret({.flag = "token"}, token_);
                                       reader.add({.flag = "verbose", .letter = 'v'}, verbose_);
                                     },
                                 .run = {}},
                                {.name = "version", .summary = "Print versions", .run = {}}}};
};

TEST_F(CompletionTest, BashOffersCommandsFirst) {
  EXPECT_THAT(offered({"sample", ""}),
              ElementsAre("check", "version", "completion", "help", "--help", "--version"));
  EXPECT_THAT(offered({"sample", "c"}), ElementsAre("check", "completion"));
  EXPECT_THAT(offered({"sample", "help", "v"}), ElementsAre("version"));
  EXPECT_THAT(offered({"sample", "completion", ""}), ElementsAre("bash", "zsh"));
}

TEST_F(CompletionTest, BashOffersTheFlagsOfTheCommand) {
  EXPECT_THAT(
      offered({"sample", "check", "--"}),
      ElementsAre("--output", "--server", "--token-file", "--verbose", "--config", "--help"));
  EXPECT_THAT(offered({"sample", "check", "-v", "--ser"}), ElementsAre("--server"));
  EXPECT_THAT(offered({"sample", "version", "--"}), ElementsAre("--config", "--help"));
  EXPECT_THAT(offered({"sample", "nothing", ""}), IsEmpty());
}

TEST_F(CompletionTest, BashOffersTheChoicesOfAFlag) {
  EXPECT_THAT(offered({"sample", "check", "-o", ""}), ElementsAre("text", "json"));
  EXPECT_THAT(offered({"sample", "check", "--output", "j"}), ElementsAre("json"));
  EXPECT_THAT(offered({"sample", "check", "--output", "=", "j"}), ElementsAre("json"));
  EXPECT_THAT(offered({"sample", "check", "--output", "="}), ElementsAre("text", "json"));
}

TEST_F(CompletionTest, BashOffersFilesWhereAFileIsMeantAndNothingForOtherTexts) {
  test::write_file(folder_ / "my token", "");
  test::write_file(folder_ / "other", "");
  EXPECT_THAT(offered({"sample", "check", "--token-file", "my"}), ElementsAre("my token"));
  EXPECT_THAT(offered({"sample", "check", "--server", ""}), IsEmpty());
}

TEST_F(CompletionTest, ZshScriptHasEveryFlagWithItsExplanation) {
  const std::string script = zsh_completion(program_);
  EXPECT_THAT(script, HasSubstr("'check:Look\\: is it '\\''well'\\''?'"));
  EXPECT_THAT(script,
              HasSubstr("'(-o --output)'{-o+,--output=}'[Output format]:value:(text json)'"));
  EXPECT_THAT(script, HasSubstr("'--server=[\\[a\\] it'\\''s\\: b]:TEXT:'"));
  EXPECT_THAT(script, HasSubstr("'--token-file=[]:FILE:_files'"));
  EXPECT_THAT(script, HasSubstr("'(-v --verbose)'{-v,--verbose}'[]'"));
}

}  // namespace
}  // namespace gitops::cli
