#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include <simdjson.h>

#include "common/core/error.hpp"

// Reading, changing and writing JSON as text: what is not touched stays the text that was received.
namespace gitops {

// A place in a parsed document that may not be there; null counts as absent. Borrows from the
// simdjson parser that made the document.
class JsonView {
 public:
  JsonView() = default;
  explicit JsonView(simdjson::dom::element element);

  [[nodiscard]] bool exists() const { return element_.has_value(); }
  // The member of that name; absent when this is no object.
  [[nodiscard]] JsonView operator[](std::string_view key) const;
  // The string here; empty when there is none.
  [[nodiscard]] std::string_view text() const;
  // The integer here; 0 when there is none.
  [[nodiscard]] std::int64_t number() const;
  [[nodiscard]] bool is_true() const;
  // The elements of the array here; none when it is none.
  [[nodiscard]] simdjson::dom::array items() const;
  [[nodiscard]] bool is_array() const { return element_ && element_->is_array(); }
  [[nodiscard]] bool is_object() const { return element_ && element_->is_object(); }
  // The members of the object here; none when it is none.
  [[nodiscard]] simdjson::dom::object members() const;
  [[nodiscard]] const std::optional<simdjson::dom::element>& element() const { return element_; }

 private:
  std::optional<simdjson::dom::element> element_;
};

// Parses a text that must be one JSON object; `what` names it in the error. The view borrows from
// the parser.
Result<JsonView> parse_object(simdjson::dom::parser& with, std::string_view text,
                              std::string_view what);

// Writes the members of one JSON object in the order of the calls. A key is a literal of ours and
// is not escaped.
class ObjectWriter {
 public:
  explicit ObjectWriter(std::string& out);
  void text(std::string_view key, std::string_view value);
  void raw(std::string_view key, std::string_view json);
  // Writes the key alone; the caller appends the value to what is returned.
  std::string& begin(std::string_view key);
  void end();

 private:
  std::string& out_;
  bool first_ = true;
};

// The functions below work on the text of one JSON object or array and trust it to be well-formed:
// given something else they return something useless, but never touch memory outside of it.

// Calls `visit` for each member with the key as written (without quotes, escapes kept) and the text
// of its value, until it returns false.
void for_each_member(
    std::string_view object,
    const std::function<bool(std::string_view key, std::string_view value)>& visit);

// Calls `visit` for the text of each element.
void for_each_item(std::string_view array, const std::function<void(std::string_view item)>& visit);

// The object with the value of `key` replaced by what `edit` makes of it; `edit` gets an empty text
// when there was no such member, and the new one then comes first.
std::string edit_member(std::string_view object, std::string_view key,
                        const std::function<std::string(std::string_view value)>& edit);

// The same for a member that is there; without it the object comes back unchanged.
std::string edit_present_member(std::string_view object, std::string_view key,
                                const std::function<std::string(std::string_view value)>& edit);

bool has_member(std::string_view object, std::string_view key);

// The object with only those of its members, each as it is or as `reduce` makes it.
struct KeptMember {
  std::string_view name;
  std::function<std::string(std::string_view value)> reduce;
};
std::string keep_members(std::string_view object, std::initializer_list<KeptMember> kept);

// The object, or a new one when `object` is none, with these string members set.
std::string with_strings(
    std::string_view object,
    std::initializer_list<std::pair<std::string_view, std::string_view>> members);

}  // namespace gitops
