#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/graphql/ast.hpp"
#include "common/graphql/schema.hpp"

namespace simdjson::dom {
class element;
}

// Input values of clients, validated against the schema.
namespace gitops::graphql {

struct InputMember;

// Value after coercion (section 3 of the specification, "Input Coercion"). Lies in an arena.
struct Input {
  enum class Kind : std::uint8_t {
    null,
    boolean,
    integer,
    number,
    string,
    enumeration,
    list,
    object
  };
  Kind kind = Kind::null;
  bool truth = false;
  std::int64_t integer = 0;
  double number = 0;
  std::string_view text = {};  // of strings and enum values
  List<Input> items = {};
  List<InputMember> members = {};
};
struct InputMember {
  std::string_view name;
  Input value;
};

// View of an input value that may be absent. Reading it as another kind returns an empty value.
// Borrows from the operation.
class InputView {
 public:
  InputView() = default;
  explicit InputView(const Input* input) : input_(input) {}

  // Returns whether a value or a default exists; null does not count as a value.
  [[nodiscard]] bool exists() const { return input_ && input_->kind != Input::Kind::null; }
  // Returns whether null was given.
  [[nodiscard]] bool is_null() const { return input_ && input_->kind == Input::Kind::null; }
  // The string or enum value; empty for other kinds.
  [[nodiscard]] std::string_view text() const;
  [[nodiscard]] std::string_view text_or(std::string_view otherwise) const {
    return exists() ? text() : otherwise;
  }
  [[nodiscard]] std::int64_t integer() const;
  [[nodiscard]] double number() const;
  [[nodiscard]] bool is_true() const { return input_ && input_->truth; }
  // The elements of the list.
  [[nodiscard]] std::vector<InputView> items() const;
  [[nodiscard]] std::vector<std::string> texts() const;
  // Returns the member of the object; absent if there is none.
  [[nodiscard]] InputView operator[](std::string_view name) const;
  // JSON text of the value, for custom scalars; "null" if it is absent.
  [[nodiscard]] std::string json() const;
  [[nodiscard]] const Input* input() const { return input_; }

 private:
  const Input* input_ = nullptr;
};

void append_json(std::string& out, const Input& input);
// Returns the value as GraphQL text, in the form of introspection's default values.
std::string print(const Input& input, const Type& type);

// Values of an operation's variables, by name. A variable without a value has no entry.
class Variables {
 public:
  [[nodiscard]] const Input* find(std::string_view name) const;
  void set(std::string_view name, const Input& value) { values_.emplace_back(name, value); }

 private:
  std::vector<std::pair<std::string_view, Input>> values_;
};

// Error of an input value; `literal` is its place if the value stands in the document.
struct InputError {
  std::string message;
  const Literal* literal = nullptr;
};

// Validates a literal for a scalar or an enum. Returns an error with the reference implementation's
// message, or nothing. `hides_names` omits suggestions.
std::optional<InputError> check_leaf_literal(const Literal& literal, const NamedType& type,
                                             bool hides_names);

// Coerces a literal to `type`; returns nothing if it does not fit. `variables` may be null for
// constants.
std::optional<Input> coerce_literal(const Literal& literal, const Type& type,
                                    const Variables* variables, Arena& arena);

// Coerces a JSON value to `type`. `on_error` receives the path within the value (".name[3]"), the
// refused part as shown in messages, and the message; it returns false to stop.
using OnInputError = std::function<bool(const std::string& path, const std::string& shown,
                                        const std::string& message)>;
std::optional<Input> coerce_json(const simdjson::dom::element& value, const Type& type,
                                 Arena& arena, bool hides_names, const OnInputError& on_error);

}  // namespace gitops::graphql
