#include <algorithm>
#include <sstream>
#include <utility>

#include "common/core/config_common.hpp"
#include "common/core/config_reader.hpp"
#include "common/core/text.hpp"

// Help texts and tables, generated from the rows of a configuration.
namespace gitops {

namespace {

constexpr std::size_t kHelpWidth = 100;

// Returns `text` in lines of at most `width` characters, broken at blanks.
std::vector<std::string> wrap(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  std::string line;
  std::istringstream words{std::string(text)};
  for (std::string word; words >> word;) {
    if (!line.empty() && line.size() + 1 + word.size() > width) {
      lines.push_back(std::exchange(line, {}));
    }
    if (!line.empty()) line += ' ';
    line += word;
  }
  if (!line.empty()) lines.push_back(line);
  return lines;
}

std::string markdown_cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

std::string code(std::string_view text) {
  return "`" + markdown_cell(text) + "`";
}

// Returns "--output", or "-o, --output" with a letter.
std::string flag_names(char letter, const std::string& flag) {
  return (letter == 0 ? "--" : "-" + std::string(1, letter) + ", --") + flag;
}

struct HelpLine {
  std::string left, right;
};
struct HelpGroup {
  std::string title;
  std::vector<HelpLine> lines;
};

HelpGroup common_flags(ProgramKind kind) {
  HelpGroup group{kind == ProgramKind::daemon ? "Start" : "Common", {}};
  for (const CommonFlag& flag : kCommonFlags) {
    if (!is_shown(flag, kind)) continue;
    std::string left = "  --" + std::string(flag.flag);
    if (!flag.kind.empty()) left += ' ' + std::string(flag.kind);
    group.lines.push_back({left, std::string(flag.help)});
  }
  return group;
}

// Returns the column where the help begins: after the widest name that fits. A longer name gets a
// line of its own.
std::size_t right_column(const std::vector<HelpGroup>& groups) {
  constexpr std::size_t kWidestLeft = 34;
  std::size_t column = 0;
  for (const HelpGroup& group : groups) {
    for (const HelpLine& line : group.lines) {
      if (line.left.size() + 2 <= kWidestLeft) column = std::max(column, line.left.size() + 2);
    }
  }
  return column;
}

void append_line(std::string& out, const HelpLine& line, std::size_t column) {
  std::string text = line.left;
  if (text.size() + 2 > column) {
    out += text + '\n';
    text.clear();
  }
  for (const std::string& part : wrap(line.right, kHelpWidth - column)) {
    text.resize(column, ' ');
    out += text + part + '\n';
    text.clear();
  }
}

}  // namespace

std::string ConfigReader::help() const {
  return program_ + ": " + summary_ + "\n\nUsage: " + program_ + " [--name=value ...]\n" +
         flags_help();
}

std::string ConfigReader::flags_help() const {
  std::vector<HelpGroup> groups;
  for (const Row& row : rows_) {
    auto found = std::ranges::find(groups, row.group, &HelpGroup::title);
    if (found == groups.end()) found = groups.insert(groups.end(), HelpGroup{row.group, {}});
    std::string left = "  " + flag_names(row.letter, row.flag);
    if (row.shape != Shape::boolean) left += ' ' + row.kind;
    std::vector<std::string> notes;
    if (!row.env.empty()) {
      const auto* what = row.shape == Shape::secret_file ? " holds the value itself" : "";
      notes.push_back("env " + join(row.env, ", ") + what);
    }
    if (!row.default_text.empty()) notes.push_back("default " + row.default_text);
    found->lines.push_back(
        {left, row.help + (notes.empty() ? "" : " (" + join(notes, "; ") + ")")});
  }
  groups.push_back(common_flags(kind_));

  const std::size_t column = right_column(groups);
  std::string out;
  for (const HelpGroup& group : groups) {
    out += '\n' + (group.title.empty() ? "Settings" : group.title) + ":\n";
    for (const HelpLine& line : group.lines) append_line(out, line, column);
  }
  out +=
      "\nA flag wins over the environment, the environment over the file, the file over the "
      "default.\n"
      "Flags that take no value are switched off by --no-NAME. Durations: 300ms, 10s, 1m30s, "
      "24h.\n";
  return out;
}

std::string ConfigReader::markdown_table() const {
  std::string out = "| Flag | Environment | Default | Meaning |\n|---|---|---|---|\n";
  for (const Row& row : rows_) {
    std::vector<std::string> env;
    for (const std::string& name : row.env) env.push_back(code(name));
    const std::string kind = row.shape == Shape::boolean ? "" : " " + row.kind;
    out +=
        "| " + code(flag_names(row.letter, row.flag) + kind) + " | " + join(env, ", ") + " | " +
        (row.default_text.empty() ? "" : code(row.default_text)) + " | " + markdown_cell(row.help) +
        (row.shape == Shape::secret_file && !env.empty() ? "; the variable holds the value itself"
                                                         : "") +
        " |\n";
  }
  return out;
}

}  // namespace gitops
