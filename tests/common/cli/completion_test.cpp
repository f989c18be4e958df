#include "common/cli/completion.hpp"

#include <cstdlib>
#include <filesystem>
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
  EXPECT_THAT(offered({"sample", "completion", ""}), ElementsAre("bash", "zsh", "fish"));
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

// Groups, and names that a command prints. `sample` on the PATH is a script in their place.
class NameCompletionTest : public CompletionTest {
 protected:
  NameCompletionTest() {
    program_.commands = {{.name = "app get",
                          .summary = "Show one",
                          .operands = {{.name = "APP", .help = "Its name", .target = &server_}},
                          .bind =
                              [this](ConfigReader& reader) {
                                reader.add({.flag = "runtime"}, "RUNTIME", "",
                                           [this](const std::string& text) {
                                             server_ = text;
                                             return std::string();
                                           });
                                reader.add({.flag = "verbose"}, verbose_);
                                add_output_row(reader, format_);
                              },
                          .run = {}},
                         {.name = "app list", .summary = "List them", .run = {}}};
    program_.groups = {{"app", "Applications"}};
    program_.names = {{"APP", "app list -o name"}, {"RUNTIME", "runtime list"}};
    test::write_file(folder_ / "sample",
                     "#!/bin/sh\ncase \"$*\" in\n'app list -o name') "
                     "printf '%s\\n' prod/argocd/shop prod/argocd/shop-api '$(touch hacked)' "
                     "'a b' '-x' ;;\n'runtime list') echo prod ;;\n"
                     "'app list -o name --context stage') echo stage/argocd/web ;;\nesac\n");
    std::filesystem::permissions(folder_ / "sample", std::filesystem::perms::owner_all);
  }
  std::vector<std::string> offered_here(const std::vector<std::string>& words) {
    ::setenv("PATH", (folder_.path().string() + ":" + std::getenv("PATH")).c_str(), 1);
    return offered(words);
  }
};

TEST_F(NameCompletionTest, BashOffersTheCommandsOfAGroup) {
  EXPECT_THAT(offered({"sample", "a"}), ElementsAre("app"));
  EXPECT_THAT(offered({"sample", "app", ""}), ElementsAre("get", "list", "--help"));
  EXPECT_THAT(offered({"sample", "help", "app", "l"}), ElementsAre("list"));
  EXPECT_THAT(offered({"sample", "app", "get", "--v"}), ElementsAre("--verbose"));
}

TEST_F(NameCompletionTest, BashOffersTheNamesThatACommandPrints) {
  EXPECT_THAT(offered_here({"sample", "app", "get", "sh"}), ElementsAre("shop", "shop-api"));
  EXPECT_THAT(offered_here({"sample", "app", "get", "prod/"}),
              ElementsAre("prod/argocd/shop", "prod/argocd/shop-api"));
  EXPECT_THAT(offered_here({"sample", "app", "get", "--runtime", ""}), ElementsAre("prod"));
  EXPECT_THAT(offered_here({"sample", "app", "get", "-o", ""}), ElementsAre("text", "json"));
}

// Else those of the current context were offered for the other one.
TEST_F(NameCompletionTest, BashAsksForTheNamesOfTheContextThatIsNamed) {
  program_.names_of = "context";
  EXPECT_THAT(offered_here({"sample", "app", "get", "--context", "stage", ""}), ElementsAre("web"));
  EXPECT_THAT(offered_here({"sample", "app", "get", "--context", "=", "stage", "w"}),
              ElementsAre("web"));
  EXPECT_THAT(offered_here({"sample", "app", "get", "--runtime", ""}), ElementsAre("prod"));
  EXPECT_THAT(offered_here({"sample", "app", "get", "sh"}), ElementsAre("shop", "shop-api"));
  const std::string zsh = zsh_completion(program_);
  EXPECT_THAT(zsh, HasSubstr("of=(--context \"$words[i+1]\")"));
  EXPECT_THAT(zsh, HasSubstr("sample \"$@\" $of </dev/null"));
  const std::string fish = fish_completion(program_);
  EXPECT_THAT(fish, HasSubstr("set of --context $words[(math $i + 1)]"));
  EXPECT_THAT(fish, HasSubstr("sample $argv $of </dev/null"));
}

TEST_F(NameCompletionTest, BashEvaluatesNoName) {
  EXPECT_THAT(offered_here({"sample", "app", "get", ""}), ElementsAre("shop", "shop-api"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "hacked"));
}

TEST_F(NameCompletionTest, ZshAndFishAskTheSameCommands) {
  const std::string zsh = zsh_completion(program_);
  EXPECT_THAT(zsh, HasSubstr("'1:APP:{_sample_names app list -o name}'"));
  EXPECT_THAT(zsh, HasSubstr("'--runtime=[]:RUNTIME:{_sample_names runtime list}'"));
  const std::string fish = fish_completion(program_);
  EXPECT_THAT(fish, HasSubstr("complete -c sample -n '__sample_needs app' -a get -d 'Show one'\n"));
  EXPECT_THAT(fish, HasSubstr("'__sample_is app get' -a '(__sample_names app list -o name)'\n"));
  EXPECT_THAT(fish, HasSubstr("-l runtime -x -a '(__sample_names runtime list)'"));
}

}  // namespace
}  // namespace gitops::cli
