#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/core/error.hpp"

namespace gitops {

// Standard alphabet with padding. Decoding is strict, except that it accepts missing padding and
// ASCII white space.
std::string base64_encode(std::string_view bytes);
Result<std::string> base64_decode(std::string_view text);

// The alphabet that is safe in URLs, without padding (RFC 4648 section 5). Decoding refuses texts
// that the encoding cannot produce.
std::string base64url_encode(std::string_view bytes);
Result<std::string> base64url_decode(std::string_view text);

// Lower-case hex, two digits a byte.
std::string hex_encode(std::string_view bytes);
// Returns the value of a hex digit of either case; -1 for any other character.
constexpr int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Percent-encodes all but the unreserved characters of RFC 3986: safe as a path segment and as a
// query value.
std::string percent_encode(std::string_view text);
// Decodes percent-encoding. '+' is left alone; a '%' without two hex digits is an error.
Result<std::string> percent_decode(std::string_view text);

enum class JsonEscape {
  like_go,  // <, >, & as \uXXXX too, as Go's encoder does
  minimal,  // the escapes that JSON requires; for logs
};

// Appends `text` as a JSON string with its quotes. Control characters, U+2028 and U+2029 are
// escaped; each byte of invalid UTF-8 becomes \ufffd.
void append_json_string(std::string& out, std::string_view text,
                        JsonEscape escape = JsonEscape::like_go);
std::string json_string(std::string_view text);

// Returns the length (1 to 4) of the valid UTF-8 sequence at the beginning of `text`, or 0 when
// there is none: overlong forms, surrogates and values above U+10FFFF are invalid.
std::size_t utf8_length(std::string_view text);
// Returns whether the whole text is valid UTF-8.
bool is_utf8(std::string_view text);

// FNV-1a, 32 bits (http://www.isthe.com/chongo/tech/comp/fnv): the hash of the shard function.
std::uint32_t fnv1a_32(std::string_view bytes);

}  // namespace gitops
