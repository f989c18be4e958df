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

// Values that clients send, checked against the schema.
namespace gitops::graphql {

struct InputMember;

// A value after coercion (section 3 of the specification, "Input Coercion"). Lies in an arena.
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

// A place in an input that may not be there. Reading something of another kind gives an empty value.
// Borrows from the operation.
class InputView {
 public:
  InputView() = default;
  explicit InputView(const Input* input) : input_(input) {}

  // False when nothing was given and there is no default; null does not count as given.
  [[nodiscard]] bool exists() const { return input_ && input_->kind != Input::Kind::null; }
  // True when null was given.
  [[nodiscard]] bool is_null() const { return input_ && input_->kind == Input::Kind::null; }
  // The string or enum value here.
  [[nodiscard]] std::string_view text() const;
  [[nodiscard]] std::string_view text_or(std::string_view otherwise) const {
    return exists() ? text() : otherwise;
  }
  [[nodiscard]] std::int64_t integer() const;
  [[nodiscard]] double number() const;
  [[nodiscard]] bool is_true() const { return input_ && input_->truth; }
  // The elements of the list here.
  [[nodiscard]] std::vector<InputView> items() const;
  [[nodiscard]] std::vector<std::string> texts() const;
  // The member of the object here.
  [[nodiscard]] InputView operator[](std::string_view name) const;
  // As JSON text; "null" when there is nothing. What custom scalars are read with.
  [[nodiscard]] std::string json() const;
  [[nodiscard]] const Input* input() const { return input_; }

 private:
  const Input* input_ = nullptr;
};

void append_json(std::string& out, const Input& input);
// As GraphQL text, in the way that introspection shows default values.
std::string print(const Input& input, const Type& type);

// The values of an operation's variables, by name. A variable without a value has no entry.
class Variables {
 public:
  [[nodiscard]] const Input* find(std::string_view name) const;
  void set(std::string_view name, const Input& value) { values_.emplace_back(name, value); }

 private:
  std::vector<std::pair<std::string_view, Input>> values_;
};

// What is wrong with a value; `literal` is where, if it stands in the document.
struct InputError {
  std::string message;
  const Literal* literal = nullptr;
};

// The value of a literal of a scalar or an enum; an error has the reference's words. `hides_names`
// leaves out suggestions.
std::optional<InputError> check_leaf_literal(const Literal& literal, const NamedType& type,
                                             bool hides_names);

// The value of a literal where `type` is expected; nothing when it does not fit. `variables` may be
// null for constants.
std::optional<Input> coerce_literal(const Literal& literal, const Type& type,
                                    const Variables* variables, Arena& arena);

// The value of a JSON value where `type` is expected. `on_error` receives the path within the value
// (".name[3]"), the refused part as messages show it, and what is wrong; false from it ends the
// work.
using OnInputError = std::function<bool(const std::string& path, const std::string& shown,
                                        const std::string& message)>;
std::optional<Input> coerce_json(const simdjson::dom::element& value, const Type& type,
                                 Arena& arena, bool hides_names, const OnInputError& on_error);

}  // namespace gitops::graphql
