#include "common/graphql/lexer.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "common/core/encoding.hpp"

namespace gitops::graphql {
namespace {

constexpr bool is_digit(int c) {
  return c >= '0' && c <= '9';
}
constexpr bool is_name_start(int c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
constexpr bool is_name_part(int c) {
  return is_name_start(c) || is_digit(c);
}
constexpr bool is_scalar_value(std::uint32_t point) {
  return point < 0xd800 || (point >= 0xe000 && point <= 0x10ffff);
}
constexpr bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

std::uint32_t code_point(std::string_view text, std::size_t length) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (length == 1) return byte(0);
  std::uint32_t point = byte(0) & (0xffU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) point = point << 6U | (byte(i) & 0x3fU);
  return point;
}

void append_utf8(std::string& out, std::uint32_t point) {
  const auto put = [&](std::uint32_t value) { out += static_cast<char>(value); };
  if (point < 0x80) {
    put(point);
  } else if (point < 0x800) {
    put(0xc0U | point >> 6U), put(0x80U | (point & 0x3fU));
  } else if (point < 0x10000) {
    put(0xe0U | point >> 12U), put(0x80U | (point >> 6U & 0x3fU)), put(0x80U | (point & 0x3fU));
  } else {
    put(0xf0U | point >> 18U), put(0x80U | (point >> 12U & 0x3fU));
    put(0x80U | (point >> 6U & 0x3fU)), put(0x80U | (point & 0x3fU));
  }
}

// Returns the characters from `at` on that take `units` UTF-16 code units.
std::string_view utf16_slice(std::string_view text, std::size_t at, std::size_t units) {
  std::size_t end = at;
  while (end < text.size() && units > 0) {
    const std::size_t length = std::max<std::size_t>(utf8_length(text.substr(end)), 1);
    units -= std::min<std::size_t>(units, length == 4 ? 2 : 1);
    end += length;
  }
  return text.substr(at, end - at);
}

// Returns the value of a block string from its lines (section 2.9.4): without common indentation,
// and without blank lines at both ends.
std::string dedent(std::vector<std::string>& lines) {
  std::size_t indentation = std::string::npos;
  std::size_t first = lines.size();
  std::size_t last = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto text = std::ranges::find_if_not(lines[i], is_blank);
    if (text == lines[i].end()) continue;
    first = std::min(first, i);
    last = i + 1;
    const auto indent = static_cast<std::size_t>(text - lines[i].begin());
    if (i != 0) indentation = std::min(indentation, indent);
  }
  std::string value;
  for (std::size_t i = first; i < last; ++i) {
    if (i != first) value += '\n';
    if (i == 0) {
      value += lines[i];
    } else if (indentation < lines[i].size()) {
      value.append(lines[i], indentation);
    }
  }
  return value;
}

}  // namespace

std::string_view describe(TokenKind kind) {
  static constexpr std::array<std::string_view, 21> kNames{
      "<SOF>",   "<EOF>", "\"!\"", "\"$\"", "\"&\"", "\"(\"",  "\")\"",
      "\"...\"", "\":\"", "\"=\"", "\"@\"", "\"[\"", "\"]\"",  "\"{\"",
      "\"|\"",   "\"}\"", "Name",  "Int",   "Float", "String", "BlockString"};
  return kNames.at(static_cast<std::size_t>(kind));
}

Token Lexer::fail(std::size_t at, std::string message) {
  if (!error_) error_ = SyntaxError{std::move(message), static_cast<std::uint32_t>(at)};
  at_ = source_.size();
  const auto end = static_cast<std::uint32_t>(source_.size());
  return {.kind = TokenKind::end, .at = end, .end = end};
}

Token Lexer::token(TokenKind kind, std::size_t end) {
  const Token made{.kind = kind,
                   .at = static_cast<std::uint32_t>(at_),
                   .end = static_cast<std::uint32_t>(end),
                   .value = source_.substr(at_, end - at_)};
  at_ = end;
  return made;
}

std::string Lexer::shown(std::size_t at) const {
  if (at >= source_.size()) return "<EOF>";
  const std::size_t length = utf8_length(source_.substr(at));
  const std::uint32_t point = length == 0 ? static_cast<unsigned char>(source_[at])
                                          : code_point(source_.substr(at), length);
  if (point == '"') return "'\"'";
  if (point >= 0x20 && point <= 0x7e) return {'"', static_cast<char>(point), '"'};
  static constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string hex;
  for (std::uint32_t rest = point; rest != 0 || hex.size() < 4; rest >>= 4U) {
    hex.insert(hex.begin(), kDigits[rest & 0xfU]);
  }
  return "U+" + hex;
}

Token Lexer::next() {
  if (error_) return fail(at_, {});
  while (at_ < source_.size()) {
    const int c = byte(at_);
    switch (c) {
      case ' ':
      case '\t':
      case '\n':
      case '\r':
      case ',':
        ++at_;
        continue;
      case '#':
        at_ = std::min(source_.find_first_of("\r\n", at_), source_.size());
        continue;
      case '!':
        return token(TokenKind::bang, at_ + 1);
      case '$':
        return token(TokenKind::dollar, at_ + 1);
      case '&':
        return token(TokenKind::ampersand, at_ + 1);
      case '(':
        return token(TokenKind::open_paren, at_ + 1);
      case ')':
        return token(TokenKind::close_paren, at_ + 1);
      case ':':
        return token(TokenKind::colon, at_ + 1);
      case '=':
        return token(TokenKind::equals, at_ + 1);
      case '@':
        return token(TokenKind::at, at_ + 1);
      case '[':
        return token(TokenKind::open_bracket, at_ + 1);
      case ']':
        return token(TokenKind::close_bracket, at_ + 1);
      case '{':
        return token(TokenKind::open_brace, at_ + 1);
      case '|':
        return token(TokenKind::pipe, at_ + 1);
      case '}':
        return token(TokenKind::close_brace, at_ + 1);
      case '.':
        if (byte(at_ + 1) == '.' && byte(at_ + 2) == '.') return token(TokenKind::spread, at_ + 3);
        break;
      case '"':
        return byte(at_ + 1) == '"' && byte(at_ + 2) == '"' ? block_string() : string();
      default:
        break;
    }
    if (source_.substr(at_).starts_with("\xef\xbb\xbf")) {  // a byte order mark
      at_ += 3;
      continue;
    }
    if (is_digit(c) || c == '-') return number();
    if (is_name_start(c)) {
      std::size_t end = at_ + 1;
      while (is_name_part(byte(end))) ++end;
      return token(TokenKind::name, end);
    }
    if (c == '\'') {
      return fail(at_,
                  "Unexpected single quote character ('), did you mean to use a double quote "
                  "(\")?");
    }
    const bool valid = utf8_length(source_.substr(at_)) != 0;
    return fail(at_, (valid ? "Unexpected character: " : "Invalid character: ") + shown(at_) + ".");
  }
  const auto end = static_cast<std::uint32_t>(source_.size());
  return {.kind = TokenKind::end, .at = end, .end = end};
}

bool Lexer::digits(std::size_t& at) {
  if (!is_digit(byte(at))) {
    fail(at, "Invalid number, expected digit but got: " + shown(at) + ".");
    return false;
  }
  while (is_digit(byte(at))) ++at;
  return true;
}

Token Lexer::number() {
  std::size_t at = at_;
  bool is_floating = false;
  if (byte(at) == '-') ++at;
  if (byte(at) == '0') {
    ++at;
    if (is_digit(byte(at))) {
      return fail(at, "Invalid number, unexpected digit after 0: " + shown(at) + ".");
    }
  } else if (!digits(at)) {
    return next();
  }
  if (byte(at) == '.') {
    is_floating = true;
    if (!digits(++at)) return next();
  }
  if (byte(at) == 'e' || byte(at) == 'E') {
    is_floating = true;
    ++at;
    if (byte(at) == '+' || byte(at) == '-') ++at;
    if (!digits(at)) return next();
  }
  if (byte(at) == '.' || is_name_start(byte(at))) {
    return fail(at, "Invalid number, expected digit but got: " + shown(at) + ".");
  }
  return token(is_floating ? TokenKind::floating : TokenKind::integer, at);
}

// Decodes the escape sequence at `at`, appends the character, and advances.
bool Lexer::escape(std::size_t& at, std::string& value) {
  const auto hex_at = [&](std::size_t place) {
    const int c = byte(place);
    return c < 0 ? -1 : hex_value(static_cast<char>(c));
  };
  const auto invalid = [&](std::size_t units) {
    fail(at, "Invalid Unicode escape sequence: \"" + std::string(utf16_slice(source_, at, units)) +
                 "\".");
    return false;
  };
  if (byte(at + 1) != 'u') {
    static constexpr std::string_view kEscapes = "\"\\/bfnrt";
    static constexpr std::string_view kMeant = "\"\\/\b\f\n\r\t";
    const int c = byte(at + 1);
    const auto which = c < 0 ? std::string_view::npos : kEscapes.find(static_cast<char>(c));
    if (which == std::string_view::npos) {
      fail(at, "Invalid character escape sequence: \"" + std::string(utf16_slice(source_, at, 2)) +
                   "\".");
      return false;
    }
    value += kMeant[which];
    at += 2;
    return true;
  }
  if (byte(at + 2) == '{') {  // \u{1F600}
    std::uint32_t point = 0;
    std::size_t size = 3;
    while (size < 12) {
      const std::size_t place = at + size++;
      if (byte(place) == '}') {
        if (size < 5 || !is_scalar_value(point)) break;
        append_utf8(value, point);
        at += size;
        return true;
      }
      const int digit = hex_at(place);
      if (digit < 0 || point > 0x7ffffff) break;
      point = point << 4U | static_cast<std::uint32_t>(digit);
    }
    return invalid(size);
  }
  const auto four = [&](std::size_t place) {
    int point = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      const int digit = hex_at(place + i);
      if (digit < 0) return -1;
      point = point << 4 | digit;
    }
    return point;
  };
  const int point = four(at + 2);
  if (point >= 0 && is_scalar_value(static_cast<std::uint32_t>(point))) {
    append_utf8(value, static_cast<std::uint32_t>(point));
    at += 6;
    return true;
  }
  if (point >= 0xd800 && point < 0xdc00 && byte(at + 6) == '\\' && byte(at + 7) == 'u') {
    const int low = four(at + 8);
    if (low >= 0xdc00 && low < 0xe000) {
      append_utf8(value, 0x10000U + (static_cast<std::uint32_t>(point - 0xd800) << 10U) +
                             static_cast<std::uint32_t>(low - 0xdc00));
      at += 12;
      return true;
    }
  }
  return invalid(6);
}

Token Lexer::string() {
  const std::size_t begin = at_ + 1;
  std::size_t at = begin;
  std::string decoded;  // only used with escapes
  bool has_escapes = false;
  while (at < source_.size()) {
    const char c = source_[at];
    if (c == '"') {
      Token made = token(TokenKind::string, at + 1);
      made.value = has_escapes ? arena_->copy(decoded) : source_.substr(begin, at - begin);
      return made;
    }
    if (c == '\n' || c == '\r') break;
    if (c == '\\') {
      if (!has_escapes) decoded = source_.substr(begin, at - begin);
      has_escapes = true;
      if (!escape(at, decoded)) return next();
      continue;
    }
    const std::size_t length = utf8_length(source_.substr(at));
    if (length == 0) return fail(at, "Invalid character within String: " + shown(at) + ".");
    if (has_escapes) decoded.append(source_, at, length);
    at += length;
  }
  return fail(at, "Unterminated string.");
}

Token Lexer::block_string() {
  std::size_t at = at_ + 3;
  std::vector<std::string> lines(1);
  while (at < source_.size()) {
    const std::string_view rest = source_.substr(at);
    if (rest.starts_with("\"\"\"")) {
      Token made = token(TokenKind::block_string, at + 3);
      made.value = arena_->copy(dedent(lines));
      return made;
    }
    if (rest.starts_with("\\\"\"\"")) {
      lines.back() += "\"\"\"";
      at += 4;
    } else if (rest.front() == '\n' || rest.front() == '\r') {
      at += rest.starts_with("\r\n") ? 2 : 1;
      lines.emplace_back();
    } else {
      const std::size_t length = utf8_length(rest);
      if (length == 0) return fail(at, "Invalid character within String: " + shown(at) + ".");
      lines.back().append(rest, 0, length);
      at += length;
    }
  }
  return fail(at, "Unterminated string.");
}

}  // namespace gitops::graphql
