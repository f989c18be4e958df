#include "common/core/json_text.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <new>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include <simdjson.h>

#include "common/core/encoding.hpp"

namespace gitops {
namespace {

constexpr bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::size_t skip_blanks(std::string_view text, std::size_t at) {
  while (at < text.size() && is_blank(text[at])) ++at;
  return at;
}

// `at` is the opening quote; returns the position after the closing one.
std::size_t skip_string(std::string_view text, std::size_t at) {
  while ((at = text.find('"', at + 1)) != std::string_view::npos) {
    // A quote behind an odd number of backslashes is part of the string. The opening quote, or one
    // that was seen before, ends the count.
    auto first = at;
    while (text[first - 1] == '\\') --first;
    if ((at - first) % 2 == 0) return at + 1;
  }
  return text.size();
}

// `at` is the first character of a value; returns the position after its last one.
std::size_t skip_value(std::string_view text, std::size_t at) {
  std::size_t depth = 0;
  while (at < text.size()) {
    switch (text[at]) {
      case '"':
        at = skip_string(text, at);
        if (depth == 0) return at;
        break;
      case '{':
      case '[':
        ++depth;
        ++at;
        break;
      case '}':
      case ']':
        if (depth == 0) return at;
        ++at;
        if (--depth == 0) return at;
        break;
      case ',':
        if (depth == 0) return at;
        ++at;
        break;
      default:
        if (depth == 0 && is_blank(text[at])) return at;
        ++at;
    }
  }
  return text.size();
}

// Elements and iterators of simdjson hold one tape_ref and nothing else.
using simdjson::internal::tape_ref;
static_assert(offsetof(tape_ref, doc) == offsetof(JsonPlace, document));
static_assert(offsetof(tape_ref, json_index) == offsetof(JsonPlace, index));

template <class T>
concept IsPlace = sizeof(T) == sizeof(JsonPlace) && sizeof(T) == sizeof(tape_ref) &&
                  std::is_trivially_copyable_v<T>;

template <IsPlace T>
JsonPlace place_of(const T& of) {
  return std::bit_cast<JsonPlace>(of);
}

template <IsPlace T>
T at_place(const JsonPlace& place) {
  return std::bit_cast<T>(place);
}

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

// -- numbers beyond 64 bits --

// A text in which such numbers are strings, and the indices of these strings, keys included.
struct WithoutNumbers {
  std::string text;
  std::vector<std::size_t> strings;  // indices from 0, ascending
};

bool fits_64_bits(std::string_view number) {
  const auto reads_as = [number](auto value) {
    const auto* const end = number.data() + number.size();
    const auto read = std::from_chars(number.data(), end, value);
    return read.ec == std::errc() && read.ptr == end;
  };
  return reads_as(std::int64_t{}) || reads_as(std::uint64_t{});
}

WithoutNumbers without_large_numbers(std::string_view text) {
  WithoutNumbers out;
  out.text.reserve(text.size() + 64);
  std::size_t strings = 0;
  std::size_t copied = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '"') {
      at = skip_string(text, at);
      ++strings;
      continue;
    }
    if (text[at] != '-' && !is_digit(text[at])) {
      ++at;
      continue;
    }
    const auto end = std::min(text.find_first_not_of("0123456789+-.eE", at), text.size());
    const auto number = text.substr(at, end - at);
    const auto next = skip_blanks(text, end);
    const bool is_key = next < text.size() && text[next] == ':';  // only a string may be a key
    if (is_json_number(number) && !fits_64_bits(number) && !is_key) {
      out.text.append(text, copied, at - copied).append("\"").append(number).append("\"");
      out.strings.push_back(strings++);
      copied = end;
    }
    at = end;
  }
  out.text.append(text, copied);
  return out;
}

// Gives the words of these strings the kind kNumberText, which simdjson passes over. A word of its
// tape (its doc/tape.md) has its kind in the highest byte; three kinds of numbers take two words.
// The first one counts all.
void mark_numbers(simdjson::dom::document& document, const std::vector<std::size_t>& strings) {
  constexpr unsigned kKindAt = 56;
  constexpr std::uint64_t kRest = (std::uint64_t{1} << kKindAt) - 1;
  const auto words = static_cast<std::size_t>(document.tape[0] & kRest);
  auto next = strings.begin();
  std::size_t seen = 0;
  for (std::size_t i = 1; i < words && next != strings.end(); ++i) {
    auto& word = document.tape[i];
    const auto kind = static_cast<char>(word >> kKindAt);
    if (kind == 'l' || kind == 'u' || kind == 'd') ++i;
    if (kind != '"' || seen++ != *next) continue;
    word = (word & kRest) | (static_cast<std::uint64_t>(kNumberText) << kKindAt);
    ++next;
  }
}

// Parses a text with numbers of any size. simdjson refuses a text with a number beyond 64 bits.
simdjson::error_code parse_any_number(simdjson::dom::parser& parser, std::string_view text,
                                      element& root) {
  if (text.empty()) return simdjson::EMPTY;  // an empty text may have no address
  const auto error = parser.parse(text.data(), text.size()).get(root);
  if (error != simdjson::NUMBER_ERROR) return error;
  const auto readable = without_large_numbers(text);
  if (readable.strings.empty()) return error;
  const auto again = parser.parse(readable.text.data(), readable.text.size()).get(root);
  if (again == simdjson::SUCCESS) mark_numbers(parser.doc, readable.strings);
  return again;
}

bool is_number_text(const element& value) {
  return static_cast<char>(at_place<tape_ref>(place_of(value)).tape_ref_type()) == kNumberText;
}

void append_json(std::string& out, const element& value) {
  if (is_number_text(value)) {
    out += at_place<tape_ref>(place_of(value)).get_string_view();
  } else if (value.is_object()) {
    out += '{';
    const auto members = value.get_object().value_unsafe();
    for (const auto [key, member] : members) {
      if (out.back() != '{') out += ',';
      append_json_string(out, key, JsonEscape::minimal);
      out += ':';
      append_json(out, member);
    }
    out += '}';
  } else if (value.is_array()) {
    out += '[';
    const auto items = value.get_array().value_unsafe();
    for (const auto item : items) {
      if (out.back() != '[') out += ',';
      append_json(out, item);
    }
    out += ']';
  } else if (value.is_string()) {
    append_json_string(out, value.get_string().value_unsafe(), JsonEscape::minimal);
  } else {
    out += simdjson::minify(value);
  }
}

Result<JsonView> parse_with(simdjson::dom::parser& parser, std::string_view text,
                            std::string_view what, bool wants_object) {
  element root;
  const auto error = parse_any_number(parser, text, root);
  if (error == simdjson::SUCCESS && (root.is_object() || !wants_object)) {
    return JsonView(root);
  }
  const std::string reason =
      error == simdjson::SUCCESS ? "not an object" : simdjson::error_message(error);
  return fail(ErrorCode::invalid_data, std::string(what) + " is not usable JSON: " + reason);
}

}  // namespace

JsonView::JsonView(const element& from) {
  if (!from.is_null()) place_ = place_of(from);
}

JsonView JsonView::operator[](std::string_view key) const {
  element found;
  if (!is_object() || at_place<element>(place_).at_key(key).get(found) != simdjson::SUCCESS) {
    return {};
  }
  return JsonView(found);
}

std::string_view JsonView::text() const {
  std::string_view value;
  if (!exists() || at_place<element>(place_).get_string().get(value) != simdjson::SUCCESS) {
    return {};
  }
  return value;
}

bool JsonView::is_text() const {
  return exists() && at_place<element>(place_).is_string();
}

std::int64_t JsonView::number() const {
  std::int64_t value = 0;
  if (!exists() || at_place<element>(place_).get_int64().get(value) != simdjson::SUCCESS) return 0;
  return value;
}

bool JsonView::is_integer() const {
  return exists() && at_place<element>(place_).is_int64();
}

bool JsonView::is_true() const {
  bool value = false;
  return exists() && at_place<element>(place_).get_bool().get(value) == simdjson::SUCCESS && value;
}

bool JsonView::is_array() const {
  return exists() && at_place<element>(place_).is_array();
}

bool JsonView::is_object() const {
  return exists() && at_place<element>(place_).is_object();
}

JsonItems JsonView::items() const {
  array value;
  if (!exists() || at_place<element>(place_).get_array().get(value) != simdjson::SUCCESS) return {};
  return {place_of(value.begin()), place_of(value.end()), value.size()};
}

JsonMembers JsonView::members() const {
  object value;
  if (!exists() || at_place<element>(place_).get_object().get(value) != simdjson::SUCCESS) {
    return {};
  }
  return {place_of(value.begin()), place_of(value.end()), value.size()};
}

std::string JsonView::to_text() const {
  std::string out;
  if (exists()) append_json(out, at_place<element>(place_));
  return out;
}

template <>
JsonView JsonItems::Iterator::operator*() const {
  return JsonView(*at_place<array::iterator>(at_));
}

template <>
JsonItems::Iterator& JsonItems::Iterator::operator++() {
  at_ = place_of(++at_place<array::iterator>(at_));
  return *this;
}

template <>
JsonMember JsonMembers::Iterator::operator*() const {
  const auto at = at_place<object::iterator>(at_);
  return {.key = at.key(), .value = JsonView(at.value())};
}

template <>
JsonMembers::Iterator& JsonMembers::Iterator::operator++() {
  at_ = place_of(++at_place<object::iterator>(at_));
  return *this;
}

JsonParser::JsonParser() : parser_(std::make_unique<simdjson::dom::parser>()) {}

JsonParser::JsonParser(std::size_t max_depth) : JsonParser() {
  // The parser grows with its texts and keeps its first depth.
  static constexpr std::size_t kFirstCapacity = 64;
  if (parser_->allocate(kFirstCapacity, max_depth) != simdjson::SUCCESS) throw std::bad_alloc();
}

JsonParser::~JsonParser() = default;
JsonParser::JsonParser(JsonParser&&) noexcept = default;
JsonParser& JsonParser::operator=(JsonParser&&) noexcept = default;

Result<JsonView> JsonParser::parse(std::string_view text, std::string_view what) {
  return parse_with(*parser_, text, what, false);
}

Result<JsonView> JsonParser::parse_object(std::string_view text, std::string_view what) {
  return gitops::parse_object(*parser_, text, what);
}

Result<JsonView> parse_object(simdjson::dom::parser& with, std::string_view text,
                              std::string_view what) {
  return parse_with(with, text, what, true);
}

bool is_json_number(std::string_view text) {
  std::size_t at = 0;
  const auto digits = [&] {
    const auto begin = at;
    while (at < text.size() && is_digit(text[at])) ++at;
    return at - begin;
  };
  const auto pass = [&](std::string_view any_of) {
    if (at >= text.size() || !any_of.contains(text[at])) return false;
    ++at;
    return true;
  };
  pass("-");
  const bool leading_zero = at < text.size() && text[at] == '0';
  const auto whole = digits();
  if (whole == 0 || (leading_zero && whole > 1)) return false;
  if (pass(".") && digits() == 0) return false;
  if (pass("eE")) {
    pass("+-");
    if (digits() == 0) return false;
  }
  return at == text.size();
}

ObjectWriter::ObjectWriter(std::string& out) : out_(out) {
  out_ += '{';
}

void ObjectWriter::text(std::string_view key, std::string_view value) {
  append_json_string(begin(key), value);
}

void ObjectWriter::raw(std::string_view key, std::string_view json) {
  begin(key) += json;
}

std::string& ObjectWriter::begin(std::string_view key) {
  if (!first_) out_ += ',';
  first_ = false;
  out_ += '"';
  out_ += key;
  out_ += "\":";
  return out_;
}

void ObjectWriter::end() {
  out_ += '}';
}

void for_each_member(
    std::string_view object,
    const std::function<bool(std::string_view key, std::string_view value)>& visit) {
  auto at = skip_blanks(object, 0);
  if (at >= object.size() || object[at] != '{') return;
  ++at;
  while (true) {
    at = skip_blanks(object, at);
    if (at >= object.size() || object[at] != '"') return;
    const auto key_end = skip_string(object, at);
    const auto key = object.substr(at + 1, key_end - at > 2 ? key_end - at - 2 : 0);
    at = skip_blanks(object, key_end);
    if (at >= object.size() || object[at] != ':') return;
    const auto begin = skip_blanks(object, at + 1);
    const auto end = skip_value(object, begin);
    if (!visit(key, object.substr(begin, end - begin))) return;
    at = skip_blanks(object, end);
    if (at >= object.size() || object[at] != ',') return;
    ++at;
  }
}

void for_each_item(std::string_view array,
                   const std::function<void(std::string_view item)>& visit) {
  auto at = skip_blanks(array, 0);
  if (at >= array.size() || array[at] != '[') return;
  while (true) {
    const auto begin = skip_blanks(array, at + 1);
    const auto end = skip_value(array, begin);
    if (begin == end) return;
    visit(array.substr(begin, end - begin));
    at = skip_blanks(array, end);
    if (at >= array.size() || array[at] != ',') return;
  }
}

std::string edit_member(std::string_view object, std::string_view key,
                        const std::function<std::string(std::string_view value)>& edit) {
  std::string_view value;
  for_each_member(object, [&](std::string_view name, std::string_view text) {
    if (name != key) return true;
    value = text;
    return false;
  });
  std::string out;
  if (value.data() != nullptr) {
    const auto begin = static_cast<std::size_t>(value.data() - object.data());
    const auto replacement = edit(value);
    out.reserve(object.size() + replacement.size());
    out.append(object.substr(0, begin)).append(replacement);
    out.append(object.substr(begin + value.size()));
    return out;
  }
  const auto open = object.find('{');
  if (open == std::string_view::npos) return std::string(object);
  const auto inside = skip_blanks(object, open + 1);
  out.append(object.substr(0, open + 1));
  append_json_string(out, key);
  out.append(":").append(edit({}));
  if (inside < object.size() && object[inside] != '}') out.append(",");
  out.append(object.substr(open + 1));
  return out;
}

std::string edit_present_member(std::string_view object, std::string_view key,
                                const std::function<std::string(std::string_view value)>& edit) {
  return has_member(object, key) ? edit_member(object, key, edit) : std::string(object);
}

bool has_member(std::string_view object, std::string_view key) {
  bool found = false;
  for_each_member(object, [&](std::string_view name, std::string_view) {
    found = found || name == key;
    return !found;
  });
  return found;
}

std::string_view member_text(std::string_view object, std::string_view key) {
  std::string_view found;
  for_each_member(object, [&](std::string_view name, std::string_view value) {
    if (name == key) found = value;
    return name != key;
  });
  return found == "null" ? std::string_view() : found;
}

std::string member_string(std::string_view object, std::string_view key) {
  const auto text = member_text(object, key);
  if (text.size() < 2 || text.front() != '"') return {};
  const auto inside = text.substr(1, text.size() - 2);
  if (!inside.contains('\\')) return std::string(inside);
  JsonParser parser;
  const auto value = parser.parse(text, key);
  return value ? std::string(value->text()) : std::string();
}

std::string keep_members(std::string_view object, std::initializer_list<KeptMember> kept) {
  std::string out;
  ObjectWriter writer(out);
  for_each_member(object, [&](std::string_view key, std::string_view value) {
    for (const auto& [name, reduce] : kept) {
      if (key == name) writer.raw(name, reduce ? reduce(value) : std::string(value));
    }
    return true;
  });
  writer.end();
  return out;
}

std::string with_strings(
    std::string_view object,
    std::initializer_list<std::pair<std::string_view, std::string_view>> members) {
  std::string out(object.starts_with('{') ? object : "{}");
  for (const auto& [key, value] : members) {
    out = edit_member(out, key, [&value](std::string_view) { return json_string(value); });
  }
  return out;
}

}  // namespace gitops
