#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/config_reader.hpp"

namespace gitops::cli {

// How a command prints: text for people, json for programs.
enum class OutputFormat { text, json };
// The row of -o, --output.
void add_output_row(ConfigReader& reader, OutputFormat& format);

// What a text means to its reader; terminals show it by colour.
enum class Tone { plain, good, bad, doubtful, faint, strong };

// `text` in the colour of its tone when `colour` is set, otherwise as it is.
std::string painted(std::string_view text, Tone tone, bool colour);

// A text from elsewhere as it may be shown on one line of a terminal: control characters, and with
// them escape sequences and line ends, become blanks; what is not UTF-8 is replaced.
std::string printable(std::string_view text);

struct Cell {
  std::string text;
  Tone tone = Tone::plain;
};

// Rows of cells under each other: columns are as wide as their widest cell and two blanks apart.
// The last cell of a row is not padded, and a row may have fewer cells than others. Cells are
// printable() already.
class Table {
 public:
  void add(std::vector<Cell> row) { rows_.push_back(std::move(row)); }
  // Each line begins with `indent` blanks.
  [[nodiscard]] std::string text(std::size_t indent, bool colour) const;

 private:
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace gitops::cli
