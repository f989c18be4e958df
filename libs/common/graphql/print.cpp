#include "common/graphql/print.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>

#include <simdjson.h>

namespace gitops::graphql {
namespace {

bool is_printable_block(char c) {
  return c == '\t' || c == '\n' || c == ' ';
}

std::string replace_all(std::string_view text, std::string_view what, std::string_view by) {
  std::string out;
  for (std::size_t at = 0;;) {
    const auto found = text.find(what, at);
    out += text.substr(at, found - at);
    if (found == std::string_view::npos) return out;
    out += by;
    at = found + what.size();
  }
}

std::string print_block(std::string_view value) {
  const std::string escaped = replace_all(value, "\"\"\"", "\\\"\"\"");
  const bool is_one_line = escaped.find('\n') == std::string::npos;
  bool needs_leading_line = !is_one_line;
  for (auto at = escaped.find('\n'); at != std::string::npos; at = escaped.find('\n', at + 1)) {
    const char after = at + 1 < escaped.size() ? escaped[at + 1] : '\n';
    needs_leading_line = needs_leading_line && is_printable_block(after);
  }
  const bool ends_with_quotes = escaped.ends_with("\\\"\"\"");
  const bool needs_trailing_line =
      (value.ends_with('"') && !ends_with_quotes) || value.ends_with('\\');
  const bool is_multiline = !is_one_line || value.size() > 70 || needs_trailing_line ||
                            needs_leading_line || ends_with_quotes;
  const bool skips_leading_line =
      is_one_line && (value.starts_with(' ') || value.starts_with('\t'));
  std::string out = "\"\"\"";
  if ((is_multiline && !skips_leading_line) || needs_leading_line) out += '\n';
  out += escaped;
  if (is_multiline || needs_trailing_line) out += '\n';
  return out + "\"\"\"";
}

// Returns a string as GraphQL text: control characters are escaped by \u with capital digits.
std::string print_string(std::string_view value) {
  static constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out = "\"";
  for (std::size_t i = 0; i < value.size(); ++i) {
    const char c = value[i];
    const auto code = static_cast<unsigned char>(c);
    const auto unicode = [&](unsigned value_of) {
      out += "\\u00";
      out += kDigits[value_of >> 4U];
      out += kDigits[value_of & 0xfU];
    };
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (code < 0x20) {
      static constexpr std::string_view kShort = "btnfr";
      static constexpr std::string_view kCodes = "\b\t\n\f\r";
      const auto which = kCodes.find(c);
      if (which == std::string_view::npos) {
        unicode(code);
      } else {
        out += '\\';
        out += kShort[which];
      }
    } else if (code == 0x7f) {
      unicode(code);
    } else if (code == 0xc2 && i + 1 < value.size() &&
               static_cast<unsigned char>(value[i + 1]) < 0xa0) {  // U+0080 to U+009F
      unicode(static_cast<unsigned char>(value[++i]));
    } else {
      out += c;
    }
  }
  return out + '"';
}

void print_into(std::string& out, const Literal& literal) {
  switch (literal.kind) {
    case LiteralKind::variable:
      out += '$';
      [[fallthrough]];
    case LiteralKind::integer:
    case LiteralKind::floating:
    case LiteralKind::enumeration:
    case LiteralKind::boolean:
    case LiteralKind::null:
      out += literal.text;
      return;
    case LiteralKind::string:
      out += literal.is_block ? print_block(literal.text) : print_string(literal.text);
      return;
    case LiteralKind::list: {
      out += '[';
      const char* separator = "";
      for (const Literal& item : literal.items) {
        out += separator;
        separator = ", ";
        print_into(out, item);
      }
      out += ']';
      return;
    }
    case LiteralKind::object: {
      out += '{';
      const char* separator = "";
      for (const LiteralField& field : literal.fields) {
        out += separator;
        separator = ", ";
        out += field.name.text;
        out += ": ";
        print_into(out, field.value);
      }
      out += '}';
      return;
    }
  }
}

constexpr int kInspectedLevels = 2;
constexpr std::size_t kInspectedItems = 10;

void inspect_into(std::string& out, const simdjson::dom::element& value, int level) {
  using Kind = simdjson::dom::element_type;
  switch (value.type()) {
    case Kind::ARRAY: {
      const simdjson::dom::array array = value.get_array().value_unsafe();
      if (array.size() == 0) {
        out += "[]";
        return;
      }
      if (level >= kInspectedLevels) {
        out += "[Array]";
        return;
      }
      out += '[';
      std::size_t shown = 0;
      for (const auto& item : array) {
        if (shown == kInspectedItems) break;
        if (shown++ > 0) out += ", ";
        inspect_into(out, item, level + 1);
      }
      const std::size_t rest = array.size() - shown;
      if (rest == 1) out += ", ... 1 more item";
      if (rest > 1) out += ", ... " + std::to_string(rest) + " more items";
      out += ']';
      return;
    }
    case Kind::OBJECT: {
      const simdjson::dom::object object = value.get_object().value_unsafe();
      if (object.size() == 0) {
        out += "{}";
        return;
      }
      if (level >= kInspectedLevels) {
        out += "[Object]";
        return;
      }
      out += "{ ";
      const char* separator = "";
      for (const auto& member : object) {
        out += separator;
        separator = ", ";
        out += member.key;
        out += ": ";
        inspect_into(out, member.value, level + 1);
      }
      out += " }";
      return;
    }
    case Kind::STRING:
      append_quoted(out, value.get_string().value_unsafe());
      return;
    case Kind::BOOL:
      out += value.get_bool().value_unsafe() ? "true" : "false";
      return;
    case Kind::NULL_VALUE:
      out += "null";
      return;
    default:
      out += print_number(value.get_double().value_unsafe());
      return;
  }
}

// Returns the number of edits (insert, delete, replace, swap of neighbours) between two lower-case
// names if it is at most `threshold`.
std::optional<std::size_t> distance(std::string_view a, std::string_view b, std::size_t threshold) {
  if (a.size() < b.size()) std::swap(a, b);
  if (a.size() - b.size() > threshold) return std::nullopt;
  std::array<std::vector<std::size_t>, 3> rows;
  for (auto& row : rows) row.resize(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) rows[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    const auto& above = rows[(i - 1) % 3];
    auto& row = rows[i % 3];
    std::size_t smallest = row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t cost = a[i - 1] == b[j - 1] ? 0 : 1;
      std::size_t cell = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + cost});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cell = std::min(cell, rows[(i - 2) % 3][j - 2] + 1);
      }
      smallest = std::min(smallest, cell);
      row[j] = cell;
    }
    if (smallest > threshold) return std::nullopt;
  }
  const std::size_t found = rows[a.size() % 3][b.size()];
  if (found > threshold) return std::nullopt;
  return found;
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

}  // namespace

std::string print(const Literal& literal) {
  std::string out;
  print_into(out, literal);
  return out;
}

std::string print(const TypeNode& type) {
  switch (type.form) {
    case TypeNode::Form::list:
      return "[" + print(*type.of) + "]";
    case TypeNode::Form::non_null:
      return print(*type.of) + "!";
    case TypeNode::Form::named:
      break;
  }
  return std::string(type.name);
}

std::string inspect(const simdjson::dom::element& value) {
  std::string out;
  inspect_into(out, value, 0);
  return out;
}

std::string print_number(double number) {
  if (number == 0) return "0";
  if (!std::isfinite(number)) return number > 0 ? "Infinity" : number < 0 ? "-Infinity" : "NaN";
  // The shortest digits that represent this number, as d.ddd…e±x.
  std::array<char, 40> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number,
                                 std::chars_format::scientific)
                       .ptr;
  const std::string_view text(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
  const auto mark = text.find('e');
  std::string digits;
  for (const char c : text.substr(0, mark)) {
    if (is_digit(c)) digits += c;
  }
  int exponent = 0;
  const std::string_view power = text.substr(mark + 1);
  std::from_chars(power.data() + (power.starts_with('+') ? 1 : 0), power.data() + power.size(),
                  exponent);
  const int count = static_cast<int>(digits.size());
  const int point = exponent + 1;  // digits before the decimal point
  std::string out = number < 0 ? "-" : "";
  const auto upto = [&](int places) { return digits.substr(0, static_cast<std::size_t>(places)); };
  if (count <= point && point <= 21) {
    out += digits + std::string(static_cast<std::size_t>(point - count), '0');
  } else if (0 < point && point <= 21) {
    out += upto(point) + "." + digits.substr(static_cast<std::size_t>(point));
  } else if (-6 < point && point <= 0) {
    out += "0." + std::string(static_cast<std::size_t>(-point), '0') + digits;
  } else {
    out += upto(1);
    if (count > 1) out += "." + digits.substr(1);
    out += exponent < 0 ? "e-" : "e+";
    out += std::to_string(std::abs(exponent));
  }
  return out;
}

std::string in_quotes(std::string_view text) {
  std::string out;
  append_quoted(out, text);
  return out;
}

namespace {

// Returns whether one of the bytes is below 0x20, a quote or a backslash. May return true for
// others above 0x7F, but never misses one.
bool has_special(std::uint64_t eight) {
  constexpr std::uint64_t kOnes = 0x0101010101010101U;
  constexpr std::uint64_t kHigh = 0x8080808080808080U;
  const auto has_below = [](std::uint64_t bytes, std::uint64_t limit) {
    return (bytes - kOnes * limit) & ~bytes & kHigh;
  };
  return (has_below(eight, 0x20) | has_below(eight ^ (kOnes * '"'), 1) |
          has_below(eight ^ (kOnes * '\\'), 1)) != 0;
}

}  // namespace

void append_quoted(std::string& out, std::string_view text) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  out += '"';
  std::size_t plain = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    // Copies eight bytes at a time while none is special.
    std::uint64_t eight = 0;
    while (i + sizeof(eight) <= text.size()) {
      std::memcpy(&eight, text.data() + i, sizeof(eight));
      if (has_special(eight)) break;
      i += sizeof(eight);
    }
    if (i == text.size()) break;
    const char c = text[i];
    if (static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\') continue;
    out.append(text, plain, i - plain);
    plain = i + 1;
    out += '\\';
    switch (c) {
      case '"':
      case '\\':
        out += c;
        break;
      case '\b':
        out += 'b';
        break;
      case '\f':
        out += 'f';
        break;
      case '\n':
        out += 'n';
        break;
      case '\r':
        out += 'r';
        break;
      case '\t':
        out += 't';
        break;
      default:
        out += "u00";
        out += kDigits[static_cast<unsigned char>(c) >> 4U];
        out += kDigits[static_cast<unsigned char>(c) & 0xfU];
    }
  }
  out.append(text, plain);
  out += '"';
}

std::vector<std::string_view> suggestions(std::string_view input,
                                          const std::vector<std::string_view>& options) {
  struct Found {
    std::string_view name;
    std::size_t distance;
  };
  std::vector<Found> found;
  const auto threshold = static_cast<std::size_t>(static_cast<double>(input.size()) * 0.4) + 1;
  const std::string lower = lower_case(input);
  for (const std::string_view option : options) {
    if (option == input) {
      found.push_back({option, 0});
      continue;
    }
    const std::string lower_option = lower_case(option);
    if (lower_option == lower) {
      found.push_back({option, 1});
    } else if (const auto edits = distance(lower_option, lower, threshold)) {
      found.push_back({option, *edits});
    }
  }
  std::ranges::sort(found, [](const Found& a, const Found& b) {
    return a.distance != b.distance ? a.distance < b.distance : comes_before(a.name, b.name);
  });
  std::vector<std::string_view> names;
  for (const Found& one : found) {
    if (std::ranges::find(names, one.name) == names.end()) names.push_back(one.name);
  }
  return names;
}

std::string did_you_mean(const std::vector<std::string_view>& names, std::string_view what) {
  if (names.empty()) return {};
  std::string out = " Did you mean ";
  if (!what.empty()) (out += what) += ' ';
  const std::size_t count = std::min<std::size_t>(names.size(), 5);
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) out += count == 2 ? " or " : i + 1 == count ? ", or " : ", ";
    ((out += '"') += names[i]) += '"';
  }
  return out + '?';
}

bool comes_before(std::string_view a, std::string_view b) {
  std::size_t i = 0;
  std::size_t j = 0;
  const auto number = [](std::string_view text, std::size_t& at) {
    double value = 0;
    do {
      value = value * 10 + (text[at++] - '0');
    } while (at < text.size() && is_digit(text[at]) && value > 0);
    return value;
  };
  while (i < a.size() && j < b.size()) {
    if (is_digit(a[i]) && is_digit(b[j])) {
      const double left = number(a, i);
      const double right = number(b, j);
      if (left != right) return left < right;
    } else {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i;
      ++j;
    }
  }
  return a.size() < b.size();
}

}  // namespace gitops::graphql
