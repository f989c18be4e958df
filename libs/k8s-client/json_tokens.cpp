#include "k8s-client/json_tokens.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include <simdjson.h>

#include "common/core/encoding.hpp"
#include "common/core/json_text.hpp"

namespace gitops::k8s::json {

namespace {

constexpr std::size_t kSmallCapacity = 64 * 1024;

constexpr auto kDepthChange = [] {
  std::array<signed char, 256> change{};
  change['{'] = change['['] = 1;
  change['}'] = change[']'] = -1;
  return change;
}();

constexpr bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

int depth_change(char c) {
  return kDepthChange[static_cast<unsigned char>(c)];
}

std::size_t skip_space(std::string_view text, std::size_t at) {
  while (at < text.size() && is_space(text[at])) ++at;
  return at;
}

// Returns the offset behind the string whose opening quote is at `at`.
std::size_t end_of_string(std::string_view text, std::size_t at) {
  for (++at; at < text.size(); ++at) {
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == '"') {
      return at + 1;
    }
  }
  return std::string_view::npos;
}

// Returns the offset behind the value that begins at `at`, or npos when it is cut short.
std::size_t end_of_value(std::string_view text, std::size_t at) {
  if (at >= text.size()) return std::string_view::npos;
  if (text[at] == '"') return end_of_string(text, at);
  if (depth_change(text[at]) <= 0) {
    const auto end = text.find_first_of(",]} \t\r\n", at);
    return end == at ? std::string_view::npos : end;
  }
  for (int depth = 0; at < text.size();) {
    if (text[at] == '"') {
      at = end_of_string(text, at);
      continue;
    }
    depth += depth_change(text[at]);
    ++at;
    if (depth == 0) return at;
  }
  return std::string_view::npos;
}

// Returns the value of the four hex digits at `at`, or -1.
int hex4(std::string_view text, std::size_t at) {
  if (text.size() - at < 4) return -1;
  int value = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const int digit = hex_value(text[at + i]);
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

void append_utf8(std::string& out, std::uint32_t point) {
  const auto put = [&out](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (point < 0x80) {
    put(point);
  } else if (point < 0x800) {
    put(0xc0 | (point >> 6));
    put(0x80 | (point & 0x3f));
  } else if (point < 0x10000) {
    put(0xe0 | (point >> 12));
    put(0x80 | ((point >> 6) & 0x3f));
    put(0x80 | (point & 0x3f));
  } else {
    put(0xf0 | (point >> 18));
    put(0x80 | ((point >> 12) & 0x3f));
    put(0x80 | ((point >> 6) & 0x3f));
    put(0x80 | (point & 0x3f));
  }
}

constexpr std::uint32_t kReplacement = 0xfffd;

// Reads the digits of a \u escape at `at` (behind the u), and of a second one that completes a
// surrogate pair; moves `at` behind them.
bool append_unicode_escape(std::string& out, std::string_view inner, std::size_t& at) {
  const int first = hex4(inner, at);
  if (first < 0) return false;
  at += 4;
  auto point = static_cast<std::uint32_t>(first);
  if (point >= 0xd800 && point < 0xe000) {
    const bool another = point < 0xdc00 && inner.substr(at, 2) == "\\u";
    const int second = another ? hex4(inner, at + 2) : -1;
    if (second >= 0xdc00 && second < 0xe000) {
      at += 6;
      point = 0x10000 + ((point - 0xd800) << 10) + (static_cast<std::uint32_t>(second) - 0xdc00);
    } else {
      point = kReplacement;
    }
  }
  append_utf8(out, point);
  return true;
}

}  // namespace

struct TokenIndex::Stage1 {
  std::unique_ptr<simdjson::internal::dom_parser_implementation> parser;
  std::size_t count = 0;
};

TokenIndex::TokenIndex() : stage1_(std::make_unique<Stage1>()) {}
TokenIndex::~TokenIndex() = default;
TokenIndex::TokenIndex(TokenIndex&&) noexcept = default;
TokenIndex& TokenIndex::operator=(TokenIndex&&) noexcept = default;

std::string_view TokenIndex::build(std::string_view text) {
  auto& parser = stage1_->parser;
  stage1_->count = 0;
  if (text.size() >= simdjson::SIMDJSON_MAXSIZE_BYTES) return "too large";
  if (!parser || parser->capacity() <= text.size()) {
    const auto capacity = std::max(kSmallCapacity, std::bit_ceil(text.size() + 1));
    parser.reset();
    const auto failed = simdjson::get_active_implementation()->create_dom_parser_implementation(
        std::min(capacity, simdjson::SIMDJSON_MAXSIZE_BYTES), 1, parser);
    if (failed != simdjson::SUCCESS) return "out of memory";
  }
  switch (parser->stage1(reinterpret_cast<const std::uint8_t*>(text.data()), text.size(),
                         simdjson::stage1_mode::regular)) {
    case simdjson::SUCCESS:
      stage1_->count = parser->n_structural_indexes;
      return {};
    case simdjson::UTF8_ERROR:
      return "invalid UTF-8";
    case simdjson::UNESCAPED_CHARS:
      return "control character in a string";
    case simdjson::UNCLOSED_STRING:
      return "truncated JSON";
    case simdjson::EMPTY:
      return "empty";
    default:
      return "malformed JSON";
  }
}

std::span<const std::uint32_t> TokenIndex::tokens() const {
  if (stage1_->count == 0) return {};
  return {stage1_->parser->structural_indexes.get(), stage1_->count};
}

void TokenIndex::release() {
  stage1_->count = 0;
  if (stage1_->parser && stage1_->parser->capacity() > kSmallCapacity) stage1_->parser.reset();
}

std::string_view Walk::skip() {
  if (at_ == end_) return {};
  const std::size_t start = *at_;
  const char first = text_[start];
  if (depth_change(first) > 0) {
    const auto depth = depth_;
    enter();
    if (!leave(depth)) return {};
    return since(start);
  }
  if (depth_change(first) < 0 || first == ',' || first == ':') return {};
  ++at_;
  std::size_t stop = offset();
  while (is_space(text_[stop - 1])) --stop;
  return text_.substr(start, stop - start);
}

bool Walk::leave(unsigned depth) {
  const char* const text = text_.data();
  const std::uint32_t* at = at_;
  int open = static_cast<int>(depth_ - depth);
  int most = static_cast<int>(deepest_ - depth);
  while (open > 0) {
    if (at == end_) return false;
    open += depth_change(text[*at++]);
    most = std::max(most, open);
  }
  at_ = at;
  depth_ = depth;
  deepest_ = depth + static_cast<unsigned>(most);
  return true;
}

bool Walk::pass_key(std::string_view& key) {
  if (peek() != '"') return false;
  const std::size_t begin = *at_ + 1;
  ++at_;
  if (peek() != ':') return false;
  std::size_t stop = *at_;
  while (is_space(text_[stop - 1])) --stop;
  ++at_;
  key = text_.substr(begin, stop - 1 - begin);
  return true;
}

bool append_unescaped(std::string& out, std::string_view inner) {
  for (std::size_t at = 0; at < inner.size();) {
    const auto backslash = std::min(inner.find('\\', at), inner.size());
    out.append(inner, at, backslash - at);
    at = backslash + 1;
    if (backslash == inner.size()) break;
    if (at == inner.size()) return false;
    const char code = inner[at++];
    switch (code) {
      case '"':
      case '\\':
      case '/':
        out.push_back(code);
        break;
      case 'b':
        out.push_back('\b');
        break;
      case 'f':
        out.push_back('\f');
        break;
      case 'n':
        out.push_back('\n');
        break;
      case 'r':
        out.push_back('\r');
        break;
      case 't':
        out.push_back('\t');
        break;
      case 'u':
        if (!append_unicode_escape(out, inner, at)) return false;
        break;
      default:
        return false;
    }
  }
  return true;
}

bool is_number_or_literal(std::string_view text) {
  return text == "true" || text == "false" || text == "null" || is_json_number(text);
}

std::string_view find_member(std::string_view object, std::string_view key) {
  std::size_t at = skip_space(object, 0);
  if (at == object.size() || object[at] != '{') return {};
  for (++at;; ++at) {
    at = skip_space(object, at);
    if (at >= object.size() || object[at] != '"') return {};
    const auto key_end = end_of_string(object, at);
    if (key_end == std::string_view::npos) return {};
    const bool found = object.substr(at + 1, key_end - at - 2) == key;
    at = skip_space(object, key_end);
    if (at >= object.size() || object[at] != ':') return {};
    at = skip_space(object, at + 1);
    const auto end = end_of_value(object, at);
    if (found) return object.substr(std::min(at, object.size()), end - at);
    if (end == std::string_view::npos) return {};
    at = skip_space(object, end);
    if (at >= object.size() || object[at] != ',') return {};
  }
}

std::string loose_string(std::string_view value) {
  std::string out;
  if (value.size() < 2 || value.front() != '"' || value.back() != '"' ||
      end_of_string(value, 0) != value.size() ||
      !append_unescaped(out, value.substr(1, value.size() - 2))) {
    out.clear();
  }
  return out;
}

bool split_array(std::string_view array, std::vector<std::string_view>& elements) {
  std::size_t at = skip_space(array, 0);
  if (at == array.size() || array[at] != '[') return false;
  at = skip_space(array, at + 1);
  if (at < array.size() && array[at] == ']') return true;
  for (;;) {
    const auto end = end_of_value(array, at);
    if (end == std::string_view::npos) return false;
    elements.push_back(array.substr(at, end - at));
    at = skip_space(array, end);
    if (at >= array.size()) return false;
    if (array[at] == ']') return true;
    if (array[at] != ',') return false;
    at = skip_space(array, at + 1);
  }
}

}  // namespace gitops::k8s::json
