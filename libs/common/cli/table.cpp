#include "common/cli/table.hpp"

#include <algorithm>

#include "common/core/encoding.hpp"

namespace gitops::cli {

namespace {

// Returns the width of valid UTF-8 text, counted as one column for each character.
std::size_t columns(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

// Returns the text in at most `most` columns.
std::string cut(std::string_view text, std::size_t most) {
  if (columns(text) <= most) return std::string(text);
  std::size_t end = 0;
  for (std::size_t kept = 0; kept + 1 < most; ++kept) end += utf8_length(text.substr(end));
  return std::string(text.substr(0, end)) + "…";
}

// Narrows the widest columns until a line of all fits into `width`, but none below kNarrowest.
void narrow(std::vector<std::size_t>& widths, std::size_t indent, std::size_t width) {
  constexpr std::size_t kNarrowest = 6;
  std::size_t total = indent;
  for (const std::size_t column : widths) total += column + 2;
  while (total > width + 2) {
    const auto widest = std::ranges::max_element(widths);
    if (widest == widths.end() || *widest <= kNarrowest) return;
    --*widest;
    --total;
  }
}

std::string_view colour_of(Tone tone) {
  switch (tone) {
    case Tone::plain:
      return {};
    case Tone::good:
      return "\x1b[32m";
    case Tone::bad:
      return "\x1b[31m";
    case Tone::doubtful:
      return "\x1b[33m";
    case Tone::faint:
      return "\x1b[2m";
    case Tone::strong:
      return "\x1b[1m";
  }
  std::unreachable();
}

// A control character, or one that reorders or breaks the text around it: Unicode's bidirectional controls (UAX 9, 2) and
// its separators of lines and paragraphs.
bool is_control(std::string_view character) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(character[i]); };
  if (character.size() == 1) return at(0) < 0x20 || at(0) == 0x7F;
  if (at(0) == 0xC2) return at(1) < 0xA0;  // U+0080 to U+009F
  if (character == "\u061C") return true;  // Arabic letter mark
  if (character.size() != 3 || at(0) != 0xE2) return false;
  if (at(1) == 0x81) return at(2) >= 0xA6 && at(2) <= 0xA9;  // U+2066 to U+2069
  // U+200E, U+200F, U+2028 to U+202E
  return at(1) == 0x80 && (at(2) == 0x8E || at(2) == 0x8F || (at(2) >= 0xA8 && at(2) <= 0xAE));
}

}  // namespace

void add_output_row(ConfigReader& reader, OutputFormat& format) {
  reader.add_choice({.flag = "output", .help = "Output format", .letter = 'o'}, format,
                    {"text", "json"});
}

std::string painted(std::string_view text, Tone tone, bool colour) {
  const std::string_view begin = colour_of(tone);
  if (!colour || begin.empty()) return std::string(text);
  return std::string(begin) + std::string(text) + "\x1b[0m";
}

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(length, 1));
    if (length == 0) {
      out += "\uFFFD";
    } else if (is_control(character)) {
      out += ' ';
    } else {
      out += character;
    }
    text.remove_prefix(character.size());
  }
  return out;
}

std::string Table::text(std::size_t indent, bool colour, std::size_t width) const {
  std::vector<std::size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) {
      // The last cell is not padded, so it counts only for the width of the lines.
      const bool is_last = i + 1 == row.size();
      if (is_last && width == 0) continue;
      widths[i] = std::max(widths[i], columns(row[i].text));
    }
  }
  if (width > 0) narrow(widths, indent, width);
  std::string out;
  for (const auto& row : rows_) {
    out.append(indent, ' ');
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string text = width == 0 ? row[i].text : cut(row[i].text, widths[i]);
      out += painted(text, row[i].tone, colour);
      if (i + 1 < row.size()) out.append(widths[i] + 2 - columns(text), ' ');
    }
    out += '\n';
  }
  return out;
}

}  // namespace gitops::cli
