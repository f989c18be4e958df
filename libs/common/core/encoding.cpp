#include "common/core/encoding.hpp"

#include <algorithm>
#include <array>

namespace gitops {

namespace {

constexpr std::string_view kBase64 =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view kHexLower = "0123456789abcdef";
constexpr std::string_view kHexUpper = "0123456789ABCDEF";

constexpr std::uint8_t byte_of(char c) {
  return static_cast<std::uint8_t>(c);
}

constexpr std::array<std::int8_t, 256> make_base64_values() {
  std::array<std::int8_t, 256> values{};
  values.fill(-1);
  for (std::size_t i = 0; i < kBase64.size(); ++i) {
    values[byte_of(kBase64[i])] = static_cast<std::int8_t>(i);
  }
  return values;
}
constexpr auto kBase64Values = make_base64_values();

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool is_unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

// Classes of bytes in JSON: 0 keep, 1 escape always, 2 escape for JsonEscape::like_go, 4 the first
// byte of a longer sequence.
constexpr std::array<std::uint8_t, 256> make_json_classes() {
  std::array<std::uint8_t, 256> classes{};
  for (std::size_t i = 0; i < 0x20; ++i) classes[i] = 1;
  classes['"'] = classes['\\'] = 1;
  classes['<'] = classes['>'] = classes['&'] = 2;
  for (std::size_t i = 0x80; i < classes.size(); ++i) classes[i] = 4;
  return classes;
}
constexpr auto kJsonClasses = make_json_classes();

void append_escaped_ascii(std::string& out, char c) {
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\b':
      out += "\\b";
      return;
    case '\f':
      out += "\\f";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      out += "\\u00";
      out += kHexLower[byte_of(c) >> 4];
      out += kHexLower[byte_of(c) & 15];
  }
}

// Decodes whole groups of four digits up to the first other character, and returns the number of characters read.
std::size_t decode_groups(std::string_view text, std::string& out) {
  std::size_t read = 0;
  out.resize_and_overwrite(text.size() / 4 * 3, [&](char* to, std::size_t) {
    char* end = to;
    for (; read + 4 <= text.size(); read += 4) {
      const int a = kBase64Values[byte_of(text[read])];
      const int b = kBase64Values[byte_of(text[read + 1])];
      const int c = kBase64Values[byte_of(text[read + 2])];
      const int d = kBase64Values[byte_of(text[read + 3])];
      if ((a | b | c | d) < 0) break;
      const auto bits = static_cast<std::uint32_t>(a << 18 | b << 12 | c << 6 | d);
      *end++ = static_cast<char>(bits >> 16 & 255);
      *end++ = static_cast<char>(bits >> 8 & 255);
      *end++ = static_cast<char>(bits & 255);
    }
    return end - to;
  });
  return read;
}

}  // namespace

std::string base64_encode(std::string_view bytes) {
  std::string out((bytes.size() + 2) / 3 * 4, '=');
  char* to = out.data();
  const auto digit = [&to](std::uint32_t value) { *to++ = kBase64[value & 63]; };
  std::size_t i = 0;
  for (; i + 3 <= bytes.size(); i += 3) {
    const std::uint32_t group = std::uint32_t{byte_of(bytes[i])} << 16 |
                                std::uint32_t{byte_of(bytes[i + 1])} << 8 | byte_of(bytes[i + 2]);
    digit(group >> 18);
    digit(group >> 12);
    digit(group >> 6);
    digit(group);
  }
  const std::size_t left = bytes.size() - i;
  if (left == 1) {
    const std::uint32_t group = byte_of(bytes[i]);
    digit(group >> 2);
    digit(group << 4);
  } else if (left == 2) {
    const std::uint32_t group =
        std::uint32_t{byte_of(bytes[i])} << 8 | std::uint32_t{byte_of(bytes[i + 1])};
    digit(group >> 10);
    digit(group >> 4);
    digit(group << 2);
  }
  return out;
}

Result<std::string> base64_decode(std::string_view text) {
  std::string out;
  text.remove_prefix(decode_groups(text, out));
  std::uint32_t bits = 0;
  unsigned digits = 0;   // digits of the current group of four
  unsigned padding = 0;  // number of '=' so far
  for (const char c : text) {
    if (is_blank(c)) continue;
    if (c == '=') {
      if (digits + ++padding > 4 || digits < 2) {
        return fail(ErrorCode::invalid_data, "base64: misplaced padding");
      }
      continue;
    }
    const int value = kBase64Values[byte_of(c)];
    if (value < 0) return fail(ErrorCode::invalid_data, "base64: character out of the alphabet");
    if (padding > 0) return fail(ErrorCode::invalid_data, "base64: text after the padding");
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    if (++digits == 4) {
      out += static_cast<char>(bits >> 16 & 255);
      out += static_cast<char>(bits >> 8 & 255);
      out += static_cast<char>(bits & 255);
      bits = 0;
      digits = 0;
    }
  }
  if (digits == 0) return out;
  if (digits == 1) return fail(ErrorCode::invalid_data, "base64: ends within a byte");
  if (padding > 0 && digits + padding != 4) {
    return fail(ErrorCode::invalid_data, "base64: incomplete padding");
  }
  const std::uint32_t unused = digits == 2 ? bits & 15 : bits & 3;
  if (unused != 0) return fail(ErrorCode::invalid_data, "base64: stray bits at the end");
  if (digits == 2) {
    out += static_cast<char>(bits >> 4 & 255);
  } else {
    out += static_cast<char>(bits >> 10 & 255);
    out += static_cast<char>(bits >> 2 & 255);
  }
  return out;
}

std::string base64url_encode(std::string_view bytes) {
  std::string text = base64_encode(bytes);
  while (text.ends_with('=')) text.pop_back();
  std::ranges::replace(text, '+', '-');
  std::ranges::replace(text, '/', '_');
  return text;
}

Result<std::string> base64url_decode(std::string_view text) {
  if (text.find_first_of("+/= \t\r\n") != text.npos) {
    return fail(ErrorCode::invalid_data, "base64url: character out of the alphabet");
  }
  std::string plain(text);
  std::ranges::replace(plain, '-', '+');
  std::ranges::replace(plain, '_', '/');
  return base64_decode(plain);
}

std::string hex_encode(std::string_view bytes) {
  std::string out;
  out.reserve(2 * bytes.size());
  for (const char c : bytes) {
    out += kHexLower[byte_of(c) >> 4];
    out += kHexLower[byte_of(c) & 15];
  }
  return out;
}

std::string percent_encode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (is_unreserved(c)) {
      out += c;
    } else {
      out += '%';
      out += kHexUpper[byte_of(c) >> 4];
      out += kHexUpper[byte_of(c) & 15];
    }
  }
  return out;
}

Result<std::string> percent_decode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? hex_value(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex_value(text[i + 2]) : -1;
    if (high < 0 || low < 0) {
      return fail(ErrorCode::invalid_data, "percent-encoding: '%' without two hex digits");
    }
    out += static_cast<char>(high << 4 | low);
    i += 2;
  }
  return out;
}

std::size_t utf8_length(std::string_view text) {
  if (text.empty()) return 0;
  const std::uint8_t lead = byte_of(text[0]);
  if (lead < 0x80) return 1;
  const auto continues = [&](std::size_t i, std::uint8_t low = 0x80, std::uint8_t high = 0xBF) {
    return i < text.size() && byte_of(text[i]) >= low && byte_of(text[i]) <= high;
  };
  if (lead >= 0xC2 && lead <= 0xDF) return continues(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const std::uint8_t low = lead == 0xE0 ? 0xA0 : 0x80;
    const std::uint8_t high = lead == 0xED ? 0x9F : 0xBF;
    return continues(1, low, high) && continues(2) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const std::uint8_t low = lead == 0xF0 ? 0x90 : 0x80;
    const std::uint8_t high = lead == 0xF4 ? 0x8F : 0xBF;
    return continues(1, low, high) && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

void append_json_string(std::string& out, std::string_view text, JsonEscape escape) {
  const unsigned special = escape == JsonEscape::like_go ? 1 | 2 | 4 : 1 | 4;
  out += '"';
  std::size_t start = 0;  // begin of the part that is not copied yet
  std::size_t i = 0;
  const auto flush = [&] { out.append(text, start, i - start); };
  while (true) {
    while (i < text.size() && (kJsonClasses[byte_of(text[i])] & special) == 0) ++i;
    if (i >= text.size()) break;
    if (byte_of(text[i]) < 0x80) {
      flush();
      append_escaped_ascii(out, text[i]);
      start = ++i;
      continue;
    }
    const std::size_t length = utf8_length(text.substr(i));
    if (length == 0) {
      flush();
      out += "\\ufffd";
      start = ++i;
      continue;
    }
    const std::string_view rune = text.substr(i, length);
    if (rune == "\u2028" || rune == "\u2029") {
      flush();
      out += rune == "\u2028" ? "\\u2028" : "\\u2029";
      start = i + length;
    }
    i += length;
  }
  flush();
  out += '"';
}

std::string json_string(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 2);
  append_json_string(out, text);
  return out;
}

std::uint32_t fnv1a_32(std::string_view bytes) {
  std::uint32_t hash = 2166136261U;
  for (const char c : bytes) {
    hash ^= byte_of(c);
    hash *= 16777619U;
  }
  return hash;
}

}  // namespace gitops
