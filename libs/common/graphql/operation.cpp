#include "common/graphql/operation.hpp"

#include <map>

#include <simdjson.h>

#include "common/graphql/print.hpp"

namespace gitops::graphql {

namespace {

// Removes the quoted value from the end of "String cannot represent a non string value: …".
std::string without_value(const std::string& message) {
  const auto end = message.contains("cannot represent") ? message.find(": ") : std::string::npos;
  return message.substr(0, end);
}

using GivenValues = std::map<std::string_view, std::optional<simdjson::dom::element>>;

// Returns the given value of each variable of the operation. Reads the JSON object once: a request
// may have thousands of variables, and more than a hundred thousand members.
GivenValues values_given(const Operation& operation,
                         const std::optional<simdjson::dom::element>& given) {
  GivenValues values;
  for (const VariableDefinition& variable : operation.variables) {
    values.try_emplace(variable.name.text);
  }
  if (values.empty() || !given || !given->is_object()) return values;
  for (const auto& member : given->get_object().value_unsafe()) {
    const auto found = values.find(member.key);
    if (found != values.end()) found->second = member.value;
  }
  return values;
}

}  // namespace

std::expected<Variables, std::vector<ResponseError>> coerce_variables(
    const Schema& schema, const Document& document, const Operation& operation,
    const std::optional<simdjson::dom::element>& given, Arena& arena, Hides hides) {
  static constexpr std::size_t kMaxErrors = 50;
  Variables made;
  const GivenValues values = values_given(operation, given);
  std::vector<ResponseError> errors;
  bool aborted = false;
  const auto refuse = [&](std::string message, std::uint32_t at) {
    if (aborted) return false;
    if (errors.size() >= kMaxErrors) {
      errors.push_back(
          {"Too many errors processing variables, error limit reached. Execution aborted."});
      aborted = true;
      return false;
    }
    errors.push_back({std::move(message), {document.locate(at)}});
    return true;
  };
  for (const VariableDefinition& variable : operation.variables) {
    if (aborted) break;
    const std::string name(variable.name.text);
    const Type* type = schema.resolve(*variable.type, arena);
    if (!type || !type->named->is_input()) {
      refuse("Variable \"$" + name + "\" expected value of type \"" + print(*variable.type) +
                 "\" which cannot be used as an input type.",
             variable.type->at);
      continue;
    }
    const std::optional<simdjson::dom::element>& value = values.at(variable.name.text);
    if (!value) {
      if (variable.default_value) {
        if (const auto input = coerce_literal(*variable.default_value, *type, nullptr, arena)) {
          made.set(variable.name.text, *input);
        }
      } else if (type->is_non_null()) {
        refuse("Variable \"$" + name + "\" of required type \"" + std::string(type->text) +
                   "\" was not provided.",
               variable.at);
      }
      continue;
    }
    if (value->is_null() && type->is_non_null()) {
      refuse("Variable \"$" + name + "\" of non-null type \"" + std::string(type->text) +
                 "\" must not be null.",
             variable.at);
      continue;
    }
    const auto input = coerce_json(
        *value, *type, arena, hides.names,
        [&](const std::string& path, const std::string& part, const std::string& message) {
          std::string text = "Variable \"$" + name + "\" got invalid value ";
          text += hides.values ? "(hidden)" : part;
          if (!path.empty()) text += " at \"" + name + path + "\"";
          return refuse(text + "; " + (hides.values ? without_value(message) : message),
                        variable.at);
        });
    if (input) made.set(variable.name.text, *input);
  }
  if (!errors.empty()) return std::unexpected(std::move(errors));
  return made;
}

std::expected<const Operation*, ResponseError> choose_operation(const Document& document,
                                                                std::string_view name) {
  const Operation* found = nullptr;
  for (const Definition& definition : document.definitions()) {
    const Operation* operation = definition.operation;
    if (!operation) continue;
    if (name.empty()) {
      if (found) {
        return std::unexpected(
            ResponseError{"Must provide operation name if query contains multiple operations."});
      }
      found = operation;
    } else if (operation->name.text == name) {
      found = operation;
    }
  }
  if (found) return found;
  return std::unexpected(
      ResponseError{name.empty() ? "Must provide an operation."
                                 : "Unknown operation named \"" + std::string(name) + "\"."});
}

}  // namespace gitops::graphql
