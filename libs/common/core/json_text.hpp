#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "common/core/error.hpp"

namespace simdjson::dom {
class element;
class parser;
}  // namespace simdjson::dom

// Reads, changes and writes JSON as text: untouched parts stay as they were received.
namespace gitops {

class JsonView;
struct JsonMember;
template <class T>
class JsonRange;
// The elements of an array; the members of an object in the order of the text.
using JsonItems = JsonRange<JsonView>;
using JsonMembers = JsonRange<JsonMember>;

// The position of a value in simdjson's memory: its elements and iterators consist of these two
// words.
struct JsonPlace {
  const void* document = nullptr;
  std::size_t index = 0;
  bool operator==(const JsonPlace&) const = default;
};

// The kind of a number beyond 64 bits on simdjson's tape, which has none for it. Its word is
// otherwise that of a string. Only for sources that use simdjson themselves.
inline constexpr char kNumberText = 'Z';

// A place in a parsed document that may not be there; null counts as absent. Borrows from the
// parser that made the document. Neither it nor the ranges that it returns allocate memory.
class JsonView {
 public:
  JsonView() = default;
  // Makes a view of an element; only for sources that use simdjson themselves.
  explicit JsonView(const simdjson::dom::element& element);

  [[nodiscard]] bool exists() const { return place_.document != nullptr; }
  // Returns the member of that name; absent when this is no object.
  [[nodiscard]] JsonView operator[](std::string_view key) const;
  // Returns the string here; empty when there is none.
  [[nodiscard]] std::string_view text() const;
  [[nodiscard]] bool is_text() const;
  // Returns the integer here; 0 when there is none. A number of another size or form is kept as its
  // text, which to_text() returns.
  [[nodiscard]] std::int64_t number() const;
  // Returns false for numbers that number() cannot return.
  [[nodiscard]] bool is_integer() const;
  [[nodiscard]] bool is_true() const;
  // Returns the elements of the array here; an empty range when it is no array.
  [[nodiscard]] JsonItems items() const;
  [[nodiscard]] bool is_array() const;
  [[nodiscard]] bool is_object() const;
  // Returns the members of the object here; an empty range when it is no object.
  [[nodiscard]] JsonMembers members() const;
  // Returns the value here as JSON text without blanks; empty when it is absent.
  [[nodiscard]] std::string to_text() const;

 private:
  JsonPlace place_;
};

struct JsonMember {
  std::string_view key;
  JsonView value;
};

template <class T>
class JsonRange {
 public:
  class Iterator {
   public:
    using iterator_concept = std::forward_iterator_tag;
    using iterator_category = std::input_iterator_tag;  // it returns values, not references
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using reference = T;
    using pointer = void;

    Iterator() = default;
    explicit Iterator(JsonPlace at) : at_(at) {}
    T operator*() const;
    Iterator& operator++();
    Iterator operator++(int) {
      const Iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Iterator&) const = default;

   private:
    JsonPlace at_;
  };

  JsonRange() = default;
  JsonRange(JsonPlace begin, JsonPlace end, std::size_t size)
      : begin_(begin), end_(end), size_(size) {}
  [[nodiscard]] Iterator begin() const { return begin_; }
  [[nodiscard]] Iterator end() const { return end_; }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  Iterator begin_;
  Iterator end_;
  std::size_t size_ = 0;
};

template <>
JsonView JsonItems::Iterator::operator*() const;
template <>
JsonItems::Iterator& JsonItems::Iterator::operator++();
template <>
JsonMember JsonMembers::Iterator::operator*() const;
template <>
JsonMembers::Iterator& JsonMembers::Iterator::operator++();

// Parses JSON texts one after another in the same memory. Numbers may have any size, as in JSON and
// from API servers; a text with one beyond 64 bits is parsed twice. Can be moved but not copied;
// views stay valid when it moves, and end with the next text.
class JsonParser {
 public:
  JsonParser();
  // Makes a parser that refuses a text nested more than max_depth levels deep.
  explicit JsonParser(std::size_t max_depth);
  ~JsonParser();
  JsonParser(JsonParser&&) noexcept;
  JsonParser& operator=(JsonParser&&) noexcept;

  // Parses a text that may be any JSON value; `what` names it in the error, which is invalid_data.
  Result<JsonView> parse(std::string_view text, std::string_view what);
  // Parses a text that must be one JSON object.
  Result<JsonView> parse_object(std::string_view text, std::string_view what);

 private:
  std::unique_ptr<simdjson::dom::parser> parser_;
};

// Does the work of JsonParser::parse_object() for sources that use simdjson themselves.
Result<JsonView> parse_object(simdjson::dom::parser& with, std::string_view text,
                              std::string_view what);

// Writes the members of one JSON object in the order of the calls. A key is a literal of ours and
// is not escaped.
class ObjectWriter {
 public:
  explicit ObjectWriter(std::string& out);
  void text(std::string_view key, std::string_view value);
  void raw(std::string_view key, std::string_view json);
  // Writes the key alone and returns the text, to which the caller appends the value.
  std::string& begin(std::string_view key);
  void end();

 private:
  std::string& out_;
  bool first_ = true;
};

// Returns whether the text is a number by JSON's grammar, of any size.
[[nodiscard]] bool is_json_number(std::string_view text);

// The functions below work on the text of one JSON object or array and trust it to be well-formed:
// for other texts their result is undefined, but they never touch memory outside of the text.

// Calls `visit` for each member with the key as written (without quotes, escapes kept) and the text
// of its value, until it returns false.
void for_each_member(
    std::string_view object,
    const std::function<bool(std::string_view key, std::string_view value)>& visit);

// Calls `visit` for the text of each element.
void for_each_item(std::string_view array, const std::function<void(std::string_view item)>& visit);

// Returns the object with the value of `key` replaced by the result of `edit`; `edit` gets an empty
// text when there was no such member, and the new one then comes first.
std::string edit_member(std::string_view object, std::string_view key,
                        const std::function<std::string(std::string_view value)>& edit);

// Does the same for an existing member; returns the object unchanged when there is none.
std::string edit_present_member(std::string_view object, std::string_view key,
                                const std::function<std::string(std::string_view value)>& edit);

bool has_member(std::string_view object, std::string_view key);

// Returns the text of a member's value; empty when it is absent or null.
std::string_view member_text(std::string_view object, std::string_view key);
// Returns the string that a member is, without its escapes; empty when it is none.
std::string member_string(std::string_view object, std::string_view key);

// A member that keep_members() keeps, as it is or as `reduce` returns it.
struct KeptMember {
  std::string_view name;
  std::function<std::string(std::string_view value)> reduce;
};
std::string keep_members(std::string_view object, std::initializer_list<KeptMember> kept);

// Returns the object, or a new one when `object` is no object, with these string members set.
std::string with_strings(
    std::string_view object,
    std::initializer_list<std::pair<std::string_view, std::string_view>> members);

}  // namespace gitops
