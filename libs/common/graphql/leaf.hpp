#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/graphql/schema.hpp"
#include "common/graphql/value.hpp"

// Writing single values (section 3 of the specification, "Result Coercion").
namespace gitops::graphql {

// Writes a scalar or an enum value; what is wrong with it, or nothing.
std::string write_leaf(std::string& out, const NamedType& type, const Value& value);

// What a JSON text is, as a value: strings without escapes and numbers become such, null becomes
// null, all else stays text.
Value plain(std::string_view text);
// The members of a JSON object, found in one pass; none for other values. Borrows from its text.
class Members {
 public:
  explicit Members(const Value& object);
  // Null when there is none of that name; the last one if there are several.
  [[nodiscard]] Value find(std::string_view name) const;

 private:
  std::vector<std::pair<std::string_view, std::string_view>> members_;
};
// A value as messages show it.
std::string shown(const Value& value);

}  // namespace gitops::graphql
