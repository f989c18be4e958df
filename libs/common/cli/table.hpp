#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/config_reader.hpp"

namespace gitops::cli {

// Form of the output: text for people, json for programs.
enum class OutputFormat { text, json };
// Adds -o, --output.
void add_output_row(ConfigReader& reader, OutputFormat& format);

// The meaning of a text, which terminals show by a colour.
enum class Tone { plain, good, bad, doubtful, faint, strong };

// Returns `text` in the colour of its tone when `colour` is set, otherwise unchanged.
std::string painted(std::string_view text, Tone tone, bool colour);

// Makes text of a peer safe for one line of a terminal: control characters (hence escape sequences
// and newlines) and those that reorder text become blanks, and bytes that are not UTF-8 become U+FFFD.
std::string printable(std::string_view text);

struct Cell {
  std::string text;
  Tone tone = Tone::plain;
};

// A table with aligned columns: each is as wide as its widest cell, two blanks apart. The last cell
// of a row is not padded, and rows may differ in their number of cells. Cells must be printable().
class Table {
 public:
  void add(std::vector<Cell> row) { rows_.push_back(std::move(row)); }
  // Returns the lines of the table; each begins with `indent` blanks. With a `width`, cells of the widest columns are
  // cut, with "…" at the end, until the lines fit into it.
  [[nodiscard]] std::string text(std::size_t indent, bool colour, std::size_t width = 0) const;

 private:
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace gitops::cli
