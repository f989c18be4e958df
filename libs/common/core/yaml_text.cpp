#include "common/core/yaml_text.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "common/core/encoding.hpp"
#include "common/core/json_text.hpp"

namespace gitops {
namespace {

// The longest key that may be written as "key: value" (YAML 1.2, 7.4: 1,024 characters).
constexpr std::size_t kMaxImplicitKey = 1000;

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool all(std::string_view text, std::string_view allowed) {
  return !text.empty() && text.find_first_not_of(allowed) == std::string_view::npos;
}

bool is_word_of_another_type(std::string_view text) {
  if (text.size() > 5) return false;
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  static constexpr std::array<std::string_view, 14> words = {
      "null", "~", "true", "false", "yes", "no", "on", "off", "y", "n", "<<", "=", ".inf", ".nan"};
  return std::ranges::find(words, lower) != words.end() || lower == "+.inf" || lower == "-.inf";
}

// Returns true when some YAML reader takes the text for an integer, a float, a date or a base-60
// number.
bool looks_like_number(std::string_view text) {
  if (text.front() == '+' || text.front() == '-') text.remove_prefix(1);
  if (text.empty() || !(is_digit(text.front()) || text.front() == '.')) return false;
  if (text.size() > 2 && text[0] == '0') {
    const auto digits = text.substr(2);
    if ((text[1] == 'x' || text[1] == 'X') && all(digits, "0123456789abcdefABCDEF_")) return true;
    if ((text[1] == 'o' || text[1] == 'b') && all(digits, "01234567_")) return true;
  }
  if (all(text, "0123456789_") || all(text, "0123456789:_.")) return true;  // also 190:20:30.15
  if (text.size() >= 8 && all(text.substr(0, 4), "0123456789") && text[4] == '-') return true;
  // A float has digits, at most one point, and an exponent.
  const auto exponent = text.find_first_of("eE");
  const auto mantissa = text.substr(0, exponent);
  if (!all(mantissa, "0123456789._")) return false;
  if (exponent == std::string_view::npos) return true;
  auto power = text.substr(exponent + 1);
  if (!power.empty() && (power.front() == '+' || power.front() == '-')) power.remove_prefix(1);
  return all(power, "0123456789");
}

// Returns true for characters that only a double-quoted scalar can hold: controls, line separators
// of other kinds, the byte order mark.
bool needs_escapes(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if ((c < 0x20 && c != '\n') || c == 0x7f) return true;
    if (c == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0) {
      return true;  // U+0080..U+009F, which include next line
    }
    const auto three = text.substr(i, 3);
    if (three == "\xe2\x80\xa8" || three == "\xe2\x80\xa9" || three == "\xef\xbb\xbf") return true;
  }
  return false;
}

bool plain_allowed(std::string_view text) {
  static constexpr std::string_view indicators = ",[]{}#&*!|>'\"%@`";
  if (indicators.contains(text.front())) return false;
  if ((text.front() == '-' || text.front() == '?' || text.front() == ':') &&
      (text.size() == 1 || text[1] == ' ')) {
    return false;
  }
  if (text == "---" || text == "..." || text.starts_with("--- ") || text.starts_with("... ")) {
    return false;
  }
  if (text.front() == ' ' || text.back() == ' ' || text.back() == ':') return false;
  return text.find(": ") == std::string_view::npos && text.find(" #") == std::string_view::npos;
}

void append_double_quoted(std::string& out, std::string_view text) {
  out += '"';
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const auto three = text.substr(i, 3);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += text[i];
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c < 0x20 || c == 0x7f) {
      out += "\\x" + hex_encode(text.substr(i, 1));
    } else if (c == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0) {
      out += "\\x" + hex_encode(text.substr(++i, 1));
    } else if (three == "\xe2\x80\xa8" || three == "\xe2\x80\xa9" || three == "\xef\xbb\xbf") {
      out += three == "\xe2\x80\xa8" ? "\\u2028" : three == "\xe2\x80\xa9" ? "\\u2029" : "\\ufeff";
      i += 2;
    } else {
      out += text[i];
    }
  }
  out += '"';
}

// Returns whether a literal block keeps the text: only when the first line gives the indentation
// and no line ends in a blank (which readers and editors tend to lose).
bool literal_allowed(std::string_view text) {
  return text.front() != ' ' && text.front() != '\n' && text.front() != '\t' &&
         text.find(" \n") == std::string_view::npos && text.back() != ' ';
}

void append_literal(std::string& out, std::string_view text, std::size_t indent) {
  out += '|';
  if (!text.ends_with('\n')) {
    out += '-';
  } else if (text.ends_with("\n\n")) {
    out += '+';
  }
  out += '\n';
  while (!text.empty()) {
    const auto end = text.find('\n');
    const auto line = text.substr(0, end);
    if (!line.empty()) out.append(indent, ' ').append(line);
    out += '\n';
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  out.pop_back();  // the caller ends the line
}

enum class Place { key, value };

// Writes the scalar without a line end; `indent` is the indentation of a block's lines.
void append_string(std::string& out, std::string_view text, std::size_t indent, Place place) {
  if (text.empty()) {
    out += "\"\"";
    return;
  }
  const bool lines = text.contains('\n');
  if (needs_escapes(text) || (lines && (place == Place::key || !literal_allowed(text)))) {
    append_double_quoted(out, text);
  } else if (lines) {
    append_literal(out, text, indent);
  } else if (is_word_of_another_type(text) || looks_like_number(text)) {
    append_double_quoted(out, text);
  } else if (plain_allowed(text)) {
    out += text;
  } else {
    out += '\'';
    for (const char c : text) {
      if (c == '\'') out += '\'';
      out += c;
    }
    out += '\'';
  }
}

void append_value(std::string& out, JsonView value, std::size_t indent);

void append_object(std::string& out, JsonView object, std::size_t indent) {
  std::map<std::string_view, JsonView> sorted;
  for (const auto& [key, member] : object.members()) sorted.insert_or_assign(key, member);
  bool first = true;
  for (const auto& [key, member] : sorted) {
    if (!first) out.append(indent, ' ');
    first = false;
    if (key.size() > kMaxImplicitKey) {
      out += "? ";
      append_string(out, key, indent + 2, Place::key);
      out += '\n';
      out.append(indent, ' ');
    } else {
      append_string(out, key, indent + 2, Place::key);
    }
    out += ':';
    if (member.members().size() > 0) {
      out += '\n';
      out.append(indent + 2, ' ');
      append_value(out, member, indent + 2);
    } else if (member.items().size() > 0) {
      out += '\n';
      out.append(indent, ' ');
      append_value(out, member, indent);
    } else {
      out += ' ';
      append_value(out, member, indent + 2);
    }
  }
}

void append_array(std::string& out, JsonView array, std::size_t indent) {
  bool first = true;
  for (const auto item : array.items()) {
    if (!first) out.append(indent, ' ');
    first = false;
    out += "- ";
    append_value(out, item, indent + 2);
  }
}

// Writes the value and its line end; the current line is already indented.
void append_value(std::string& out, JsonView value, std::size_t indent) {
  if (value.members().size() > 0) return append_object(out, value, indent);
  if (value.items().size() > 0) return append_array(out, value, indent);
  if (value.is_text()) {
    append_string(out, value.text(), indent, Place::value);
  } else {
    // The value is a number, true, false, {} or [].
    out += value.exists() ? value.to_text() : "null";
  }
  out += '\n';
}

}  // namespace

Result<std::string> json_to_yaml(std::string_view json) {
  JsonParser parser;
  const auto root = parser.parse(json, "the text");
  if (!root) return std::unexpected(root.error());
  std::string out;
  append_value(out, *root, 0);
  return out;
}

}  // namespace gitops
