#include "support/script.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "common/core/encoding.hpp"
#include "common/core/time.hpp"

namespace gitops::test {
namespace {

constexpr std::string_view kSeparator = "---";
constexpr std::size_t kMaxShown = 64;

[[noreturn]] void refuse(std::string_view what, std::string_view text) {
  throw std::invalid_argument(concat(what, ": ", text));
}

std::uint64_t to_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) refuse("not a number", text);
  return value;
}

std::chrono::milliseconds to_duration(std::string_view text) {
  const auto value = parse_duration(text);
  if (!value) refuse("not a duration", text);
  return *value;
}

// Reads the words of a line from its front.
class WordReader {
 public:
  explicit WordReader(std::string_view line) : rest_(line) {}

  struct Word {
    std::string key;  // of an option
    std::string text;
  };
  std::optional<Word> next() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size()));
    if (rest_.empty()) return std::nullopt;
    Word word;
    while (!rest_.empty() && rest_.front() != ' ') {
      if (rest_.front() == '"') {
        word.text += take_quoted();
      } else if (rest_.front() == '=' && word.key.empty() && !word.text.empty()) {
        rest_.remove_prefix(1);
        word.key = std::exchange(word.text, {});
      } else {
        word.text += rest_.front();
        rest_.remove_prefix(1);
      }
    }
    return word;
  }

 private:
  char take() {
    if (rest_.empty()) throw std::invalid_argument("a text without its second quote");
    const char first = rest_.front();
    rest_.remove_prefix(1);
    return first;
  }
  char take_escape() {
    switch (const char code = take()) {
      case 'r':
        return '\r';
      case 'n':
        return '\n';
      case 't':
        return '\t';
      case 'x': {
        const char high = take();
        const char low = take();
        if (hex_value(high) < 0 || hex_value(low) < 0) refuse("no escape", {&high, 1});
        return static_cast<char>(hex_value(high) * 16 + hex_value(low));
      }
      case '"':
      case '\\':
        return code;
      default:
        refuse("no escape", {&code, 1});
    }
  }
  std::string take_quoted() {
    std::string text;
    take();
    for (char next = take(); next != '"'; next = take()) {
      text += next == '\\' ? take_escape() : next;
    }
    if (!rest_.starts_with('*')) return text;
    rest_.remove_prefix(1);
    const auto digits = rest_.substr(0, rest_.find_first_not_of("0123456789"));
    rest_.remove_prefix(digits.size());
    std::string all;
    for (auto count = to_number(digits); count > 0; --count) all += text;
    return all;
  }

  std::string_view rest_;
};

std::string escaped(std::string_view bytes) {
  std::string out;
  for (const char byte : bytes) {
    switch (byte) {
      case '\r':
        out += "\\r";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += "\\t";
        break;
      case '"':
      case '\\':
        out.append("\\").append(1, byte);
        break;
      default:
        if (byte < ' ' || byte > '~') {
          out.append("\\x" + hex_encode({&byte, 1}));
        } else {
          out += byte;
        }
    }
  }
  return out;
}

std::string joined(const Lines& lines) {
  std::string text;
  for (const auto& line : lines) text.append(line).append("\n");
  return text;
}

// The lines of a script, from its front.
class ScriptReader {
 public:
  explicit ScriptReader(std::string_view text) : rest_(text) {}

  [[nodiscard]] bool empty() const { return rest_.empty(); }
  [[nodiscard]] std::size_t line() const { return line_; }
  [[nodiscard]] std::string_view front() const { return rest_.substr(0, rest_.find('\n')); }
  std::string_view take() {
    const auto first = front();
    rest_.remove_prefix(std::min(first.size() + 1, rest_.size()));
    ++line_;
    return first;
  }

 private:
  std::string_view rest_;
  std::size_t line_ = 1;  // of front()
};

Lines run_directive(std::string_view line, const Interpreter& interpreter) {
  Directive directive(line);
  auto output = interpreter(directive);
  if (const auto word = directive.untaken(); !word.empty()) refuse("unknown word", word);
  for (const auto& text : output) {
    if (text.empty() || text.contains('\n')) refuse("not one line of output", escaped(text));
  }
  return output;
}

// Returns the output of a block: that of its directive, or of each after the directive itself.
Lines output_of_block(std::vector<std::pair<std::string_view, Lines>> outputs) {
  if (outputs.size() == 1) return std::move(outputs[0].second);
  Lines all;
  for (const auto& [directive, lines] : outputs) {
    if (lines.empty()) continue;
    all.emplace_back(directive);
    for (const auto& line : lines) all.push_back("  " + line);
  }
  return all;
}

// Runs the block at the front. Throws what the interpreter throws.
void run_block(ScriptReader& reader, const Interpreter& interpreter, std::size_t& line,
               ScriptResult& result) {
  const auto first = reader.line();
  std::vector<std::pair<std::string_view, Lines>> outputs;
  while (reader.front() != kSeparator) {
    line = reader.line();
    if (reader.front().empty()) throw std::invalid_argument("no --- after the directives");
    const auto text = reader.take();
    result.rewritten.append(text).append("\n");
    if (!text.starts_with('#')) outputs.emplace_back(text, run_directive(text, interpreter));
  }
  const auto output = output_of_block(std::move(outputs));
  result.rewritten.append(reader.take()).append("\n");
  Lines recorded;
  while (!reader.front().empty()) recorded.emplace_back(reader.take());
  result.rewritten += joined(output);
  if (output != recorded) result.mismatches.push_back({first, joined(recorded), joined(output)});
}

std::string read_text(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + file.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

Directive::Directive(std::string_view line) {
  WordReader reader(line);
  const auto name = reader.next();
  if (!name || !name->key.empty()) refuse("no directive", line);
  name_ = name->text;
  while (auto word = reader.next()) {
    if (word->key.empty()) {
      words_.push_back(std::move(word->text));
    } else if (!options_.emplace(word->key, word->text).second) {
      refuse("an option twice", word->key);
    }
  }
}

std::string Directive::word() {
  if (words_.empty()) refuse("a word is missing", name_);
  auto first = std::move(words_.front());
  words_.pop_front();
  return first;
}

std::uint64_t Directive::number() {
  return to_number(word());
}

std::chrono::milliseconds Directive::duration() {
  return to_duration(word());
}

bool Directive::flag(std::string_view name) {
  const auto found = std::ranges::find(words_, name);
  if (found == words_.end()) return false;
  words_.erase(found);
  return true;
}

std::optional<std::string> Directive::option(const std::string& key) {
  auto found = options_.extract(key);
  if (found.empty()) return std::nullopt;
  return std::move(found.mapped());
}

std::uint64_t Directive::number_option(const std::string& key, std::uint64_t otherwise) {
  const auto text = option(key);
  return text ? to_number(*text) : otherwise;
}

std::chrono::milliseconds Directive::duration_option(const std::string& key,
                                                     std::chrono::milliseconds otherwise) {
  const auto text = option(key);
  return text ? to_duration(*text) : otherwise;
}

std::string Directive::untaken() const {
  if (!words_.empty()) return words_.front();
  return options_.empty() ? "" : options_.begin()->first + "=";
}

void Directive::unknown() const {
  refuse("unknown directive", name_);
}

ErrorCode error_code(std::string_view name) {
  for (int value = 0; value <= static_cast<int>(ErrorCode::internal); ++value) {
    const auto code = static_cast<ErrorCode>(value);
    if (to_string(code) == name) return code;
  }
  refuse("no error code", name);
}

std::string in_quotes(std::string_view bytes) {
  const bool one_character =
      std::ranges::all_of(bytes, [&](char byte) { return byte == bytes.front(); });
  if (one_character && bytes.size() > 4) {
    return concat("\"", escaped(bytes.substr(0, 1)), "\"*", bytes.size());
  }
  if (bytes.size() <= kMaxShown) return '"' + escaped(bytes) + '"';
  return concat("\"", escaped(bytes.substr(0, kMaxShown / 2)), "\"... of ", bytes.size(), " bytes");
}

ScriptResult run_script_text(std::string_view text, const Interpreter& interpreter) {
  ScriptResult result;
  ScriptReader reader(text);
  std::size_t blocks = 0;
  std::size_t line = 0;
  try {
    while (!reader.empty()) {
      if (reader.front().empty() || reader.front().starts_with('#')) {
        result.rewritten.append(reader.take()).append("\n");
        continue;
      }
      run_block(reader, interpreter, line, result);
      ++blocks;
    }
    if (blocks == 0) throw std::invalid_argument("a script without a directive");
  } catch (const std::exception& thrown) {
    result.error = concat(line, ": ", thrown.what());
  }
  return result;
}

bool rewrites_scripts() {
  const char* value = std::getenv("GITOPS_REWRITE_SCRIPTS");
  return value != nullptr && std::string_view(value) == "1";
}

void run_script(const std::filesystem::path& file, const Interpreter& interpreter, bool rewrite) {
  const auto text = read_text(file);
  const auto result = run_script_text(text, interpreter);
  if (!result.error.empty()) {
    ADD_FAILURE() << file.string() << ":" << result.error;
    return;
  }
  if (!rewrite) {
    // EXPECT_EQ prints the difference line by line.
    for (const auto& [line, recorded, output] : result.mismatches) {
      EXPECT_EQ(recorded, output) << file.string() << ":" << line;
    }
    return;
  }
  if (result.rewritten == text) return;
  std::ofstream out(file, std::ios::binary);
  out << result.rewritten;
  out.flush();
  if (!out) throw std::runtime_error("cannot write " + file.string());
  ADD_FAILURE() << file.string() << " has a new recording; review it, then run without rewriting";
}

std::vector<std::filesystem::path> scripts_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".txt") files.push_back(entry.path());
  }
  if (files.empty()) throw std::runtime_error("no script in " + folder.string());
  std::ranges::sort(files);
  return files;
}

std::string name_of_script(const testing::TestParamInfo<std::filesystem::path>& script) {
  auto name = script.param.stem().string();
  std::ranges::replace_if(
      name, [](unsigned char letter) { return std::isalnum(letter) == 0; }, '_');
  return name;
}

}  // namespace gitops::test
