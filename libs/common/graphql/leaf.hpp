#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/graphql/schema.hpp"
#include "common/graphql/value.hpp"

// Serialization of single values (section 3 of the specification, "Result Coercion").
namespace gitops::graphql {

// Appends a scalar or an enum value. Returns the error message; empty on success.
std::string write_leaf(std::string& out, const NamedType& type, const Value& value);

// Returns a JSON text as a value: strings without escapes, numbers and null are decoded; anything
// else remains text.
Value plain(std::string_view text);
// Members of a JSON object, indexed in one pass; empty for other values. Borrows the object's text.
class Members {
 public:
  explicit Members(const Value& object);
  // Returns the last member of that name; null if there is none.
  [[nodiscard]] Value find(std::string_view name) const;

 private:
  std::vector<std::pair<std::string_view, std::string_view>> members_;
};
// Returns a value as shown in messages.
std::string shown(const Value& value);

}  // namespace gitops::graphql
