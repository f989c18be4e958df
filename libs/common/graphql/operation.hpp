#pragma once

#include <expected>
#include <optional>
#include <string_view>
#include <vector>

#include "common/graphql/ast.hpp"
#include "common/graphql/input.hpp"
#include "common/graphql/response.hpp"
#include "common/graphql/schema.hpp"

namespace simdjson::dom {
class element;
}

// Preparation of a valid document for its execution (section 6.1 of the specification).
namespace gitops::graphql {

// Data omitted from messages: names suggested to the client, and values that it sent.
struct Hides {
  bool names = false;
  bool values = false;
};

// Coerces an operation's variables from the request's JSON; `given` may be absent.
std::expected<Variables, std::vector<ResponseError>> coerce_variables(
    const Schema& schema, const Document& document, const Operation& operation,
    const std::optional<simdjson::dom::element>& given, Arena& arena, Hides hides);

// Selects the operation to execute. Errors have the reference implementation's messages. An empty
// name means that none was given.
std::expected<const Operation*, ResponseError> choose_operation(const Document& document,
                                                                std::string_view name);

}  // namespace gitops::graphql
