#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/core/error.hpp"

namespace gitops {

// Standard alphabet with padding. Decoding is strict but for missing padding and ASCII white space.
std::string base64_encode(std::string_view bytes);
Result<std::string> base64_decode(std::string_view text);

// Percent-encodes everything but RFC 3986 unreserved characters: safe as a path segment and as a
// query value.
std::string percent_encode(std::string_view text);
// '+' is left alone; a '%' without two hex digits is an error.
Result<std::string> percent_decode(std::string_view text);

// Appends `text` as a JSON string with its quotes. Like Go's encoder it escapes <, >, & and U+2028,
// U+2029 as \uXXXX; invalid UTF-8 becomes U+FFFD.
void append_json_string(std::string& out, std::string_view text);
std::string json_string(std::string_view text);

// FNV-1a, 32 bits (http://www.isthe.com/chongo/tech/comp/fnv): the shard function's hash.
std::uint32_t fnv1a_32(std::string_view bytes);

}  // namespace gitops
