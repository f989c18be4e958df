// The runner of scripts must fail when it should: for a wrong recording, an error, a word that
// nobody read, a script or a folder without content, and after it wrote a new recording.
#include "support/script.hpp"

#include <fstream>
#include <sstream>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest-spi.h>

#include "support/process.hpp"

namespace gitops::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// A counter: `add 2`, `show`, `say TEXT lines=2`, `break`.
Interpreter counter() {
  return [count = std::uint64_t{0}](Directive& directive) mutable -> Lines {
    if (directive.name() == "add") {
      count += directive.number();
      return {};
    }
    if (directive.name() == "show") return {std::to_string(count)};
    if (directive.name() == "say") {
      return Lines(directive.number_option("lines", 1), directive.word());
    }
    if (directive.name() == "break") throw std::runtime_error("broken");
    directive.unknown();
  };
}

ScriptResult run(std::string_view text) {
  return run_script_text(text, counter());
}

constexpr std::string_view kGood =
    "# A story.\n\nshow\n---\n0\n\n# Its end.\nadd 5\n# Five now.\nshow\nsay x lines=2\n---\n"
    "show\n  5\nsay x lines=2\n  x\n  x\n";

class TemporaryScript {
 public:
  explicit TemporaryScript(std::string_view text) {
    std::filesystem::create_directories(folder);
    std::ofstream(file) << text;
  }
  ~TemporaryScript() { std::filesystem::remove_all(folder); }
  TemporaryScript(const TemporaryScript&) = delete;
  TemporaryScript& operator=(const TemporaryScript&) = delete;

  [[nodiscard]] std::string text() const {
    std::ostringstream all;
    all << std::ifstream(file).rdbuf();
    return all.str();
  }
  std::filesystem::path folder = std::filesystem::path(testing::TempDir()) /
                                 testing::UnitTest::GetInstance()->current_test_info()->name();
  std::filesystem::path file = folder / "a-story.txt";
};

TEST(Script, ARecordingThatIsRightPassesAndIsKept) {
  const auto result = run(kGood);
  EXPECT_EQ(result.error, "");
  EXPECT_TRUE(result.mismatches.empty());
  EXPECT_EQ(result.rewritten, kGood);
}

TEST(Script, EveryOtherOutputIsAMismatch) {
  for (const std::string recorded : {"", "3\n", "0\n0\n", "0 \n", " 0\n"}) {
    const auto result = run("show\n---\n" + recorded + "\nshow\n---\n0\n");
    EXPECT_EQ(result.error, "");
    ASSERT_EQ(result.mismatches.size(), 1U) << recorded;
    EXPECT_EQ(result.mismatches[0].line, 1U);
    EXPECT_EQ(result.mismatches[0].recorded, recorded);
    EXPECT_EQ(result.mismatches[0].output, "0\n");
    EXPECT_EQ(result.rewritten, "show\n---\n0\n\nshow\n---\n0\n");
  }
}

TEST(Script, ErrorsNameTheirLine) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "0: a script without a directive"},
      {"# Nothing.\n\n", "0: a script without a directive"},
      {"show\n", "2: no --- after the directives"},
      {"show\n\n---\n0\n", "2: no --- after the directives"},
      {"show\n---\n0\n\nadd 1\nbreak\n---\n", "6: broken"},
      {"jump\n---\n", "1: unknown directive: jump"},
      {"show now\n---\n0\n", "1: unknown word: now"},
      {"say x line=2\n---\nx\n", "1: unknown word: line="},
      {"say x lines=2 lines=2\n---\nx\n", "1: an option twice: lines"},
      {"add\n---\n", "1: a word is missing: add"},
      {"add two\n---\n", "1: not a number: two"},
      {"say \"x\n---\n", "1: a text without its second quote"},
      {"say \"\"\n---\n", "1: not one line of output: "},
      {"say \"a\\nb\"\n---\na\nb\n", "1: not one line of output: a\\nb"},
  };
  for (const auto& [text, error] : cases) EXPECT_EQ(run(text).error, error) << text;
}

TEST(Script, AFailedComparisonPrintsTheDifference) {
  const TemporaryScript script("show\nsay same\n---\nshow\n  3\nsay same\n  same\n");
  testing::TestPartResultArray failures;
  {
    const testing::ScopedFakeTestPartResultReporter reporter(
        testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &failures);
    run_script(script.file, counter(), false);
  }
  ASSERT_EQ(failures.size(), 1);
  const std::string message = failures.GetTestPartResult(0).message();
  EXPECT_THAT(message, HasSubstr(" show\n-  3\n+  0\n say same"));
  EXPECT_THAT(message, HasSubstr("a-story.txt:1"));
}

TEST(Script, AnErrorFailsTheTestAndWritesNothing) {
  for (const bool rewrite : {false, true}) {
    const TemporaryScript script("show\n---\n1\n\nbreak\n---\n");
    EXPECT_NONFATAL_FAILURE(run_script(script.file, counter(), rewrite), "a-story.txt:5: broken");
    EXPECT_THAT(script.text(), StartsWith("show\n---\n1\n"));
  }
}

TEST(Script, ANewRecordingIsWrittenAndFailsTheTestOnce) {
  const TemporaryScript script("# Kept.\nshow\n---\n\nadd 2\nshow\n---\n7\n");
  EXPECT_NONFATAL_FAILURE(run_script(script.file, counter(), true), "has a new recording");
  EXPECT_EQ(script.text(), "# Kept.\nshow\n---\n0\n\nadd 2\nshow\n---\nshow\n  2\n");
  run_script(script.file, counter(), true);
  run_script(script.file, counter(), false);
}

TEST(Script, AFolderWithoutAScriptIsAnError) {
  const TemporaryScript script("show\n---\n0\n");
  EXPECT_THAT(scripts_in(script.folder), testing::ElementsAre(script.file));
  std::filesystem::remove(script.file);
  EXPECT_THROW(scripts_in(script.folder), std::runtime_error);
  EXPECT_THROW(run_script(script.file, counter(), false), std::runtime_error);
}

TEST(Directive, ReadsWordsQuotesAndOptions) {
  Directive directive(R"(write  1 "a \"b\"\r\n\x00\\" half"way"=5s "x"*3"y" last limit=20)");
  EXPECT_EQ(directive.name(), "write");
  EXPECT_EQ(directive.number(), 1U);
  EXPECT_EQ(directive.word(), std::string("a \"b\"\r\n\0\\", 9));
  EXPECT_TRUE(directive.flag("last"));
  EXPECT_FALSE(directive.flag("last"));
  EXPECT_EQ(directive.word(), "xxxy");
  EXPECT_FALSE(directive.has_word());
  EXPECT_EQ(directive.untaken(), "halfway=");
  EXPECT_EQ(directive.duration_option("halfway", {}), std::chrono::seconds(5));
  EXPECT_EQ(directive.number_option("limit", 1), 20U);
  EXPECT_EQ(directive.number_option("limit", 1), 1U);
  EXPECT_EQ(directive.option("limit"), std::nullopt);
  EXPECT_EQ(directive.untaken(), "");
}

TEST(Directive, RefusesMalformedText) {
  for (const auto* line :
       {"", "a=b", R"(a "\q")", R"(a "\x0g")", R"(a ")", R"(a "x"*)", R"(a "x"*many)"}) {
    EXPECT_THROW(Directive{line}, std::invalid_argument) << line;
  }
  Directive directive("wait soon until=later");
  EXPECT_THROW(directive.duration(), std::invalid_argument);
  EXPECT_THROW(directive.number_option("until", 1), std::invalid_argument);
}

TEST(InQuotes, IsReadBackAsItWas) {
  for (const std::string& bytes :
       {std::string(), std::string("ab"), std::string("\r\n\t\"\\ \0\xff", 8),
        std::string(300, 'x'), std::string(5, '\n')}) {
    EXPECT_EQ(Directive("a " + in_quotes(bytes)).word(), bytes);
  }
  EXPECT_EQ(in_quotes(std::string(300, 'x')), R"("x"*300)");
  EXPECT_EQ(in_quotes("body" + std::string(100, 'x')),
            R"("bodyxxxxxxxxxxxxxxxxxxxxxxxxxxxx"... of 104 bytes)");
}

}  // namespace
}  // namespace gitops::test
