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

// Between a valid document and its execution (section 6.1 of the specification).
namespace gitops::graphql {

// What messages do not tell: names that the client may have meant, and values that it sent.
struct Hides {
  bool names = false;
  bool values = false;
};

// The values of an operation's variables from the request's JSON; `given` may be absent.
std::expected<Variables, std::vector<ResponseError>> coerce_variables(
    const Schema& schema, const Document& document, const Operation& operation,
    const std::optional<simdjson::dom::element>& given, Arena& arena, Hides hides);

// The operation to execute, or an error as the reference's. An empty name stands for none.
std::expected<const Operation*, ResponseError> choose_operation(const Document& document,
                                                                std::string_view name);

}  // namespace gitops::graphql
