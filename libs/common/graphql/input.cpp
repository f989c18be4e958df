#include "common/graphql/input.hpp"

#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>

#include <simdjson.h>

#include "common/graphql/print.hpp"

namespace gitops::graphql {
namespace {

constexpr double kMaxInt = 2147483647;
constexpr double kMinInt = -2147483648.0;

double parse_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) {
    // Out of range: a huge number, or one close to zero.
    const bool is_small =
        text.find("e-") != std::string_view::npos || text.find("E-") != std::string_view::npos;
    value = is_small ? 0 : std::numeric_limits<double>::infinity();
    if (text.starts_with('-')) value = -value;
  }
  return value;
}

Input make_text(std::string_view text, Input::Kind kind = Input::Kind::string) {
  Input made;
  made.kind = kind;
  made.text = text;
  return made;
}
Input make_number(double number) {
  Input made;
  made.kind = Input::Kind::number;
  made.number = number;
  return made;
}
Input make_integer(std::int64_t integer) {
  Input made;
  made.kind = Input::Kind::integer;
  made.integer = integer;
  made.number = static_cast<double>(integer);
  return made;
}
Input make_boolean(bool truth) {
  Input made;
  made.kind = Input::Kind::boolean;
  made.truth = truth;
  return made;
}

std::vector<std::string_view> value_names(const NamedType& type) {
  std::vector<std::string_view> names;
  for (const EnumValue& value : type.values) names.push_back(value.name);
  return names;
}
std::string enum_hint(const NamedType& type, std::string_view shown, bool hides_names) {
  if (hides_names) return {};
  return did_you_mean(suggestions(shown, value_names(type)), "the enum value");
}

template <class T>
List<T> kept(const std::pmr::vector<T>& items) {
  return {items.data(), static_cast<std::uint32_t>(items.size())};
}

// Returns a number of a custom scalar: an integer if possible.
Input untyped_number(std::string_view text) {
  std::int64_t integer = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), integer);
  if (error == std::errc() && end == text.data() + text.size()) return make_integer(integer);
  return make_number(parse_number(text));
}

// Returns the value of a custom scalar's literal, of any kind.
std::optional<Input> untyped(const Literal& literal, const Variables* variables, Arena& arena) {
  switch (literal.kind) {
    case LiteralKind::variable: {
      const Input* value = variables ? variables->find(literal.text) : nullptr;
      return value ? std::optional(*value) : std::nullopt;
    }
    case LiteralKind::integer:
    case LiteralKind::floating:
      return untyped_number(literal.text);
    case LiteralKind::string:
    case LiteralKind::enumeration:
      return make_text(literal.text);
    case LiteralKind::boolean:
      return make_boolean(literal.truth);
    case LiteralKind::null:
      return Input{};
    case LiteralKind::list: {
      std::pmr::vector<Input> items(arena.resource());
      for (const Literal& item : literal.items) {
        items.push_back(untyped(item, variables, arena).value_or(Input{}));
      }
      Input made;
      made.kind = Input::Kind::list;
      made.items = kept(items);
      return made;
    }
    case LiteralKind::object: {
      std::pmr::vector<InputMember> members(arena.resource());
      for (const LiteralField& field : literal.fields) {
        if (const auto value = untyped(field.value, variables, arena)) {
          members.push_back({field.name.text, *value});
        }
      }
      Input made;
      made.kind = Input::Kind::object;
      made.members = kept(members);
      return made;
    }
  }
  return std::nullopt;
}

std::optional<Input> leaf(const Literal& literal, const NamedType& type, const Variables* variables,
                          Arena& arena) {
  if (type.kind == TypeKind::scalar && type.scalar == ScalarKind::custom) {
    return untyped(literal, variables, arena);
  }
  if (check_leaf_literal(literal, type, true)) return std::nullopt;
  if (type.kind == TypeKind::enumeration) {
    return make_text(literal.text, Input::Kind::enumeration);
  }
  switch (type.scalar) {
    case ScalarKind::integer:
      return make_integer(static_cast<std::int64_t>(parse_number(literal.text)));
    case ScalarKind::floating:
      return make_number(parse_number(literal.text));
    case ScalarKind::boolean:
      return make_boolean(literal.truth);
    default:
      return make_text(literal.text);
  }
}

bool is_missing(const Literal& literal, const Variables* variables) {
  return literal.kind == LiteralKind::variable && !(variables && variables->find(literal.text));
}

std::optional<Input> input_object(const Literal& literal, const NamedType& type,
                                  const Variables* variables, Arena& arena) {
  if (literal.kind != LiteralKind::object) return std::nullopt;
  std::pmr::vector<InputMember> members(arena.resource());
  for (const InputValue& field : type.inputs) {
    const LiteralField* given = nullptr;
    for (const LiteralField& one : literal.fields) {
      if (one.name.text == field.name) given = &one;
    }
    if (!given || is_missing(given->value, variables)) {
      if (field.default_value) {
        members.push_back({field.name, *field.default_value});
      } else if (field.type->is_non_null()) {
        return std::nullopt;
      }
      continue;
    }
    const auto value = coerce_literal(given->value, *field.type, variables, arena);
    if (!value) return std::nullopt;
    members.push_back({field.name, *value});
  }
  Input made;
  made.kind = Input::Kind::object;
  made.members = kept(members);
  return made;
}

// Coerces one JSON value. The path is a stack of its parts.
class JsonCoercion {
 public:
  JsonCoercion(Arena& arena, bool hides_names, const OnInputError& on_error)
      : arena_(arena), hides_names_(hides_names), on_error_(on_error) {}

  using Element = simdjson::dom::element;

  std::optional<Input> run(const Element& value, const Type& type) {
    if (type.is_non_null()) {
      if (!value.is_null()) return run(value, *type.of);
      refuse(value,
             "Expected non-nullable type \"" + std::string(type.text) + "\" not to be null.");
      return std::nullopt;
    }
    if (value.is_null()) return Input{};
    if (type.is_list()) return list(value, *type.of);
    if (type.named->kind == TypeKind::input_object) return object(value, *type.named);
    return leaf(value, *type.named);
  }

  [[nodiscard]] bool failed() const { return failed_; }

 private:
  void refuse(const Element& value, const std::string& message) {
    failed_ = true;
    if (!stopped_) stopped_ = !on_error_(path_, inspect(value), message);
  }

  Input list(const Element& value, const Type& type) {
    std::pmr::vector<Input> items(arena_.resource());
    if (value.is_array()) {
      std::size_t index = 0;
      for (const Element& item : value.get_array().value_unsafe()) {
        if (stopped_) break;
        const std::size_t length = path_.size();
        path_ += '[' + std::to_string(index++) + ']';
        items.push_back(run(item, type).value_or(Input{}));
        path_.resize(length);
      }
    } else {
      items.push_back(run(value, type).value_or(Input{}));  // a list of one item
    }
    Input made;
    made.kind = Input::Kind::list;
    made.items = kept(items);
    return made;
  }

  std::optional<Input> object(const Element& value, const NamedType& type) {
    if (!value.is_object()) {
      refuse(value, "Expected type \"" + std::string(type.name) + "\" to be an object.");
      return std::nullopt;
    }
    const simdjson::dom::object object = value.get_object().value_unsafe();
    std::pmr::vector<InputMember> members(arena_.resource());
    for (const InputValue& field : type.inputs) {
      if (stopped_) break;
      const Element* given = nullptr;
      Element found;
      for (const auto& member : object) {  // the last member of that name, as in JavaScript
        if (member.key == field.name) {
          found = member.value;
          given = &found;
        }
      }
      if (!given) {
        if (field.default_value) {
          members.push_back({field.name, *field.default_value});
        } else if (field.type->is_non_null()) {
          refuse(value, "Field \"" + std::string(field.name) + "\" of required type \"" +
                            std::string(field.type->text) + "\" was not provided.");
        }
        continue;
      }
      const std::size_t length = path_.size();
      path_ += '.';
      path_ += field.name;
      members.push_back({field.name, run(*given, *field.type).value_or(Input{})});
      path_.resize(length);
    }
    for (const auto& member : object) {
      if (stopped_) break;
      if (type.input(member.key)) continue;
      std::vector<std::string_view> names;
      for (const InputValue& field : type.inputs) names.push_back(field.name);
      refuse(value, "Field \"" + std::string(member.key) + "\" is not defined by type \"" +
                        std::string(type.name) + "\"." +
                        (hides_names_ ? "" : did_you_mean(suggestions(member.key, names))));
    }
    Input made;
    made.kind = Input::Kind::object;
    made.members = kept(members);
    return made;
  }

  Input untyped(const Element& value) {
    using Kind = simdjson::dom::element_type;
    switch (value.type()) {
      case Kind::ARRAY: {
        std::pmr::vector<Input> items(arena_.resource());
        for (const Element& item : value.get_array().value_unsafe()) {
          items.push_back(untyped(item));
        }
        Input made;
        made.kind = Input::Kind::list;
        made.items = kept(items);
        return made;
      }
      case Kind::OBJECT: {
        std::pmr::vector<InputMember> members(arena_.resource());
        for (const auto& member : value.get_object().value_unsafe()) {
          members.push_back({arena_.copy(member.key), untyped(member.value)});
        }
        Input made;
        made.kind = Input::Kind::object;
        made.members = kept(members);
        return made;
      }
      case Kind::STRING:
        return make_text(arena_.copy(value.get_string().value_unsafe()));
      case Kind::BOOL:
        return make_boolean(value.get_bool().value_unsafe());
      case Kind::INT64:
        return make_integer(value.get_int64().value_unsafe());
      case Kind::NULL_VALUE:
        return {};
      default:
        return make_number(value.get_double().value_unsafe());
    }
  }

  std::optional<Input> leaf(const Element& value, const NamedType& type) {
    const bool is_text = value.is_string();
    const bool is_number = value.is_number();
    if (type.kind == TypeKind::enumeration) {
      const std::string_view text =
          is_text ? value.get_string().value_unsafe() : std::string_view();
      if (is_text && type.value(text)) {
        return make_text(type.value(text)->name, Input::Kind::enumeration);
      }
      const std::string shown = is_text ? std::string(text) : inspect(value);
      refuse(value, (is_text ? "Value \"" + shown + "\" does not exist in \"" +
                                   std::string(type.name) + "\" enum."
                             : "Enum \"" + std::string(type.name) +
                                   "\" cannot represent non-string value: " + shown + ".") +
                        enum_hint(type, shown, hides_names_));
      return std::nullopt;
    }
    const double number = is_number ? value.get_double().value_unsafe() : 0;
    switch (type.scalar) {
      case ScalarKind::custom:
        return untyped(value);
      case ScalarKind::integer:
        if (!is_number || std::trunc(number) != number) {
          refuse(value, "Int cannot represent non-integer value: " + inspect(value));
        } else if (number > kMaxInt || number < kMinInt) {
          refuse(value, "Int cannot represent non 32-bit signed integer value: " + inspect(value));
        } else {
          return make_integer(static_cast<std::int64_t>(number));
        }
        return std::nullopt;
      case ScalarKind::floating:
        if (is_number && std::isfinite(number)) return make_number(number);
        refuse(value, "Float cannot represent non numeric value: " + inspect(value));
        return std::nullopt;
      case ScalarKind::string:
        if (is_text) return make_text(arena_.copy(value.get_string().value_unsafe()));
        refuse(value, "String cannot represent a non string value: " + inspect(value));
        return std::nullopt;
      case ScalarKind::boolean:
        if (value.is_bool()) return make_boolean(value.get_bool().value_unsafe());
        refuse(value, "Boolean cannot represent a non boolean value: " + inspect(value));
        return std::nullopt;
      case ScalarKind::id:
        if (is_text) return make_text(arena_.copy(value.get_string().value_unsafe()));
        if (is_number && std::trunc(number) == number) {
          return make_text(arena_.copy(inspect(value)));
        }
        refuse(value, "ID cannot represent value: " + inspect(value));
        return std::nullopt;
    }
    return std::nullopt;
  }

  Arena& arena_;
  bool hides_names_;
  const OnInputError& on_error_;
  std::string path_;
  bool failed_ = false;
  bool stopped_ = false;
};

}  // namespace

std::string_view InputView::text() const {
  return input_ ? input_->text : std::string_view();
}
std::int64_t InputView::integer() const {
  return input_ ? input_->integer : 0;
}
double InputView::number() const {
  return input_ ? input_->number : 0;
}

std::vector<InputView> InputView::items() const {
  std::vector<InputView> views;
  if (input_) {
    for (const Input& item : input_->items) views.emplace_back(&item);
  }
  return views;
}

std::vector<std::string> InputView::texts() const {
  std::vector<std::string> texts;
  if (input_) {
    for (const Input& item : input_->items) texts.emplace_back(item.text);
  }
  return texts;
}

InputView InputView::operator[](std::string_view name) const {
  const Input* found = nullptr;
  if (input_) {
    for (const InputMember& member : input_->members) {
      if (member.name == name) found = &member.value;
    }
  }
  return InputView(found);
}

std::string InputView::json() const {
  std::string out;
  append_json(out, input_ ? *input_ : Input{});
  return out;
}

void append_json(std::string& out, const Input& input) {
  switch (input.kind) {
    case Input::Kind::null:
      out += "null";
      return;
    case Input::Kind::boolean:
      out += input.truth ? "true" : "false";
      return;
    case Input::Kind::integer:
      out += std::to_string(input.integer);
      return;
    case Input::Kind::number:
      out += std::isfinite(input.number) ? print_number(input.number) : "null";
      return;
    case Input::Kind::string:
    case Input::Kind::enumeration:
      append_quoted(out, input.text);
      return;
    case Input::Kind::list: {
      char separator = '[';
      for (const Input& item : input.items) {
        out += separator;
        separator = ',';
        append_json(out, item);
      }
      out += input.items.empty() ? "[]" : "]";
      return;
    }
    case Input::Kind::object: {
      char separator = '{';
      for (const InputMember& member : input.members) {
        out += separator;
        separator = ',';
        append_quoted(out, member.name);
        out += ':';
        append_json(out, member.value);
      }
      out += input.members.empty() ? "{}" : "}";
      return;
    }
  }
}

std::string print(const Input& input, const Type& type) {
  const Type& inner = type.nullable();
  if (input.kind == Input::Kind::null) return "null";
  if (inner.is_list()) {
    if (input.kind != Input::Kind::list) return print(input, *inner.of);
    std::string out = "[";
    for (const Input& item : input.items) {
      if (out.size() > 1) out += ", ";
      out += print(item, *inner.of);
    }
    return out + "]";
  }
  if (inner.named->kind == TypeKind::input_object) {
    std::string out = "{";
    for (const InputMember& member : input.members) {
      const InputValue* field = inner.named->input(member.name);
      if (!field) continue;
      if (out.size() > 1) out += ", ";
      out += std::string(member.name) + ": " + print(member.value, *field->type);
    }
    return out + "}";
  }
  switch (input.kind) {
    case Input::Kind::enumeration:
      return std::string(input.text);
    case Input::Kind::string: {
      std::int64_t integer = 0;
      const auto [end, error] =
          std::from_chars(input.text.data(), input.text.data() + input.text.size(), integer);
      if (inner.named->scalar == ScalarKind::id && error == std::errc() &&
          std::to_string(integer) == input.text) {
        return std::string(input.text);
      }
      Literal literal;
      literal.kind = LiteralKind::string;
      literal.text = input.text;
      return print(literal);
    }
    default:
      return InputView(&input).json();
  }
}

const Input* Variables::find(std::string_view name) const {
  for (const auto& [known, value] : values_) {
    if (known == name) return &value;
  }
  return nullptr;
}

std::optional<InputError> check_leaf_literal(const Literal& literal, const NamedType& type,
                                             bool hides_names) {
  const auto refuse = [&](const std::string& message) { return InputError{message, &literal}; };
  const LiteralKind kind = literal.kind;
  if (type.kind == TypeKind::enumeration) {
    const std::string shown = print(literal);
    if (kind != LiteralKind::enumeration) {
      return refuse("Enum \"" + std::string(type.name) + "\" cannot represent non-enum value: " +
                    shown + "." + enum_hint(type, shown, hides_names));
    }
    if (type.value(literal.text)) return std::nullopt;
    return refuse("Value \"" + shown + "\" does not exist in \"" + std::string(type.name) +
                  "\" enum." + enum_hint(type, shown, hides_names));
  }
  switch (type.scalar) {
    case ScalarKind::custom:
      return std::nullopt;
    case ScalarKind::integer: {
      if (kind != LiteralKind::integer) {
        return refuse("Int cannot represent non-integer value: " + print(literal));
      }
      const double number = parse_number(literal.text);
      if (number <= kMaxInt && number >= kMinInt) return std::nullopt;
      return refuse("Int cannot represent non 32-bit signed integer value: " +
                    std::string(literal.text));
    }
    case ScalarKind::floating:
      if (kind == LiteralKind::integer || kind == LiteralKind::floating) return std::nullopt;
      return refuse("Float cannot represent non numeric value: " + print(literal));
    case ScalarKind::string:
      if (kind == LiteralKind::string) return std::nullopt;
      return refuse("String cannot represent a non string value: " + print(literal));
    case ScalarKind::boolean:
      if (kind == LiteralKind::boolean) return std::nullopt;
      return refuse("Boolean cannot represent a non boolean value: " + print(literal));
    case ScalarKind::id:
      if (kind == LiteralKind::string || kind == LiteralKind::integer) return std::nullopt;
      return refuse("ID cannot represent a non-string and non-integer value: " + print(literal));
  }
  return std::nullopt;
}

std::optional<Input> coerce_literal(const Literal& literal, const Type& type,
                                    const Variables* variables, Arena& arena) {
  if (literal.kind == LiteralKind::variable) {
    const Input* value = variables ? variables->find(literal.text) : nullptr;
    if (!value || (value->kind == Input::Kind::null && type.is_non_null())) return std::nullopt;
    return *value;
  }
  if (type.is_non_null()) {
    if (literal.kind == LiteralKind::null) return std::nullopt;
    return coerce_literal(literal, *type.of, variables, arena);
  }
  if (literal.kind == LiteralKind::null) return Input{};
  if (type.is_list()) {
    std::pmr::vector<Input> items(arena.resource());
    if (literal.kind == LiteralKind::list) {
      for (const Literal& item : literal.items) {
        if (is_missing(item, variables)) {
          if (type.of->is_non_null()) return std::nullopt;
          items.push_back(Input{});
          continue;
        }
        const auto value = coerce_literal(item, *type.of, variables, arena);
        if (!value) return std::nullopt;
        items.push_back(*value);
      }
    } else {
      const auto value = coerce_literal(literal, *type.of, variables, arena);
      if (!value) return std::nullopt;
      items.push_back(*value);
    }
    Input made;
    made.kind = Input::Kind::list;
    made.items = kept(items);
    return made;
  }
  if (type.named->kind == TypeKind::input_object) {
    return input_object(literal, *type.named, variables, arena);
  }
  return leaf(literal, *type.named, variables, arena);
}

std::optional<Input> coerce_json(const simdjson::dom::element& value, const Type& type,
                                 Arena& arena, bool hides_names, const OnInputError& on_error) {
  JsonCoercion coercion(arena, hides_names, on_error);
  const auto made = coercion.run(value, type);
  return coercion.failed() ? std::nullopt : made;
}

}  // namespace gitops::graphql
