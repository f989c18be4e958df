#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "common/core/error.hpp"

// Tests of state machines as scripts with recorded output, in a folder `testdata` beside the test.
// A script is a text of blocks with an empty line between them:
//
//   # Comments stand where blocks stand.
//   open
//   write 1 "hello" most=3
//   ---
//   open
//     stream 1
//   write 1 "hello" most=3
//     > data 1 "hel"
//
// The directives stand above `---`, their output below, up to the next empty line. In a block of
// several directives, each one with output is repeated before it. A run compares the output. With GITOPS_REWRITE_SCRIPTS=1 in the environment it writes the output of the run to
// the file, and fails if that changed the file, so that nobody takes such a run for a test.
namespace gitops::test {

// One directive: a name, then words and options `key=value`. Text in quotes is one word, with the
// escapes \r, \n, \t, \", \\ and \xHH; "x"*100 repeats it. An interpreter takes all of them; the
// functions throw std::invalid_argument for a missing or malformed word.
class Directive {
 public:
  explicit Directive(std::string_view line);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] bool has_word() const { return !words_.empty(); }
  // Takes the next word.
  std::string word();
  std::uint64_t number();
  std::chrono::milliseconds duration();
  // Takes the word `name` if it is among the words.
  bool flag(std::string_view name);
  std::optional<std::string> option(const std::string& key);
  std::uint64_t number_option(const std::string& key, std::uint64_t otherwise);
  std::chrono::milliseconds duration_option(const std::string& key,
                                            std::chrono::milliseconds otherwise);
  // Names the first word or option that was not taken; empty: none.
  [[nodiscard]] std::string untaken() const;
  // Reports that the interpreter does not know the name.
  [[noreturn]] void unknown() const;

 private:
  std::string name_;
  std::deque<std::string> words_;
  std::map<std::string, std::string> options_;
};

// Returns the code with this name. Throws std::invalid_argument if there is none.
ErrorCode error_code(std::string_view name);
// Joins the texts of its arguments, for lines of output.
template <class... Parts>
std::string concat(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}
// Renders bytes as a word in quotes. Text of one repeated character is rendered as "x"*100, and
// other long text by its begin and its size.
std::string in_quotes(std::string_view bytes);

using Lines = std::vector<std::string>;
// Performs a directive. Returns its output, without empty lines.
using Interpreter = std::function<Lines(Directive&)>;

struct ScriptResult {
  struct Mismatch {
    std::size_t line = 0;  // of the first directive
    std::string recorded;
    std::string output;
  };
  std::vector<Mismatch> mismatches;
  // The error that ended the run, "LINE: text"; empty: none.
  std::string error;
  // The script with the output of this run; complete if there was no error.
  std::string rewritten;
};
// Runs a script. Errors: no block, a block without `---`, an exception of the interpreter, words or
// options that it did not take, an empty line in its output.
ScriptResult run_script_text(std::string_view text, const Interpreter& interpreter);

// Returns whether the environment asks for new recordings.
bool rewrites_scripts();
// Runs the script in a file and reports mismatches, errors and a changed recording as failures.
void run_script(const std::filesystem::path& file, const Interpreter& interpreter,
                bool rewrite = rewrites_scripts());

// Returns the files *.txt of a folder, sorted. Throws if there is none.
std::vector<std::filesystem::path> scripts_in(const std::filesystem::path& folder);
// Names a test after its script, for INSTANTIATE_TEST_SUITE_P.
std::string name_of_script(const testing::TestParamInfo<std::filesystem::path>& script);

}  // namespace gitops::test
