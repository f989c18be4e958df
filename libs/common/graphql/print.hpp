#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/graphql/ast.hpp"

namespace simdjson::dom {
class element;
}

// Texts within messages, in the form of the reference implementation.
namespace gitops::graphql {

// Returns a literal as GraphQL text: {name: "x", tags: [A, $b]}.
std::string print(const Literal& literal);
// Returns a type as written: [String!]!.
std::string print(const TypeNode& type);
// Returns a JSON value of a request as text: { name: "x", list: [1, 2] }. Deep parts and long lists
// are shortened.
std::string inspect(const simdjson::dom::element& value);
// Returns a number in JavaScript's form: 1, 0.1, 1e+21.
std::string print_number(double number);
// Returns a JSON string with its quotes, escaped in the way of JavaScript's JSON.stringify.
std::string in_quotes(std::string_view text);
void append_quoted(std::string& out, std::string_view text);

// Returns the options similar to `input`, closest first.
std::vector<std::string_view> suggestions(std::string_view input,
                                          const std::vector<std::string_view>& options);
// Returns ` Did you mean "a", "b", or "c"?` with up to five names; empty without names. `what`
// precedes the names: "the enum value".
std::string did_you_mean(const std::vector<std::string_view>& names, std::string_view what = {});
// Compares names; digits in them compare as numbers.
bool comes_before(std::string_view a, std::string_view b);

}  // namespace gitops::graphql
