#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/graphql/ast.hpp"

namespace simdjson::dom {
class element;
}

// Texts inside of messages, as the reference implementation forms them.
namespace gitops::graphql {

// A literal as GraphQL text: {name: "x", tags: [A, $b]}.
std::string print(const Literal& literal);
// A type as written: [String!]!.
std::string print(const TypeNode& type);
// A JSON value of a request: { name: "x", list: [1, 2] }; deep parts and long lists are shortened.
std::string inspect(const simdjson::dom::element& value);
// A number as JavaScript prints it: 1, 0.1, 1e+21.
std::string print_number(double number);
// A JSON string with its quotes, escaped as JavaScript's JSON.stringify does.
std::string in_quotes(std::string_view text);
void append_quoted(std::string& out, std::string_view text);

// The options that somebody may have meant by `input`, closest first.
std::vector<std::string_view> suggestions(std::string_view input,
                                          const std::vector<std::string_view>& options);
// ` Did you mean "a", "b", or "c"?`, with up to five names; empty without names. `what` comes
// before the names: "the enum value".
std::string did_you_mean(const std::vector<std::string_view>& names, std::string_view what = {});
// Compares names with digits in them by the numbers that these form.
bool comes_before(std::string_view a, std::string_view b);

}  // namespace gitops::graphql
