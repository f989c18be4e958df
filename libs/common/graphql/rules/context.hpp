#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/graphql/ast.hpp"
#include "common/graphql/response.hpp"
#include "common/graphql/schema.hpp"
#include "common/graphql/validator.hpp"

namespace gitops::graphql::rules {

// Use of a variable.
struct VariableUsage {
  const Literal* variable = nullptr;
  const Type* type = nullptr;  // expected type; null if unknown
  bool has_default = false;    // of the argument or the input field
};

// Variables of an operation: their definitions by name, and their uses in the operation and in the
// fragments that it reaches.
struct OperationVariables {
  std::unordered_map<std::string_view, const VariableDefinition*> defined = {};
  std::vector<const VariableUsage*> usages = {};
};

// Shared data of one validation's rules: the schema, the document, the errors so far, and results
// that several rules need. Borrows the schema and the document.
class ValidationContext {
 public:
  ValidationContext(const Schema& schema, const Document& document,
                    const ValidationOptions& options);

  [[nodiscard]] const Schema& schema() const { return schema_; }
  [[nodiscard]] const Document& document() const { return document_; }
  [[nodiscard]] bool is_lenient() const { return options_.strictness == Strictness::lenient; }
  [[nodiscard]] bool hides_names() const { return options_.hides_names; }
  // Memory for types that only the document contains.
  [[nodiscard]] Arena& arena() { return arena_; }

  // Adds an error; `places` are offsets in the source. Ends the validation at the limit of errors.
  // Does nothing after the end.
  void report(std::string message, std::initializer_list<std::uint32_t> places);
  void report(std::string message, const std::vector<std::uint32_t>& places);
  // Ends the validation with an error without a location.
  void abort(std::string message);
  [[nodiscard]] bool aborted() const { return aborted_; }
  // Counts work that grows faster than the document. Ends the validation when the budget is used
  // up.
  void spend(std::size_t cost);
  [[nodiscard]] bool has_errors() const { return !errors_.empty(); }
  [[nodiscard]] std::vector<ResponseError> take_errors() { return std::move(errors_); }

  // Returns ` Did you mean "a"?` with the known names that are similar to `name`; empty if there
  // are none or names are hidden.
  [[nodiscard]] std::string suggestion(std::string_view name,
                                       const std::vector<std::string_view>& known) const;

  [[nodiscard]] std::size_t operation_count() const { return operations_; }
  // Returns the last fragment of that name; null if there is none.
  [[nodiscard]] const Fragment* fragment(std::string_view name) const;
  // Returns the spreads in a selection set, without those in fragments, in the order of the
  // reference implementation, which visits the last nested set first.
  const std::vector<const Selection*>& spreads(const SelectionSet& set);
  // Returns the fragments that these sets spread, directly or through others; each once.
  std::vector<const Fragment*> reached(const std::vector<const SelectionSet*>& sets);
  OperationVariables variables_of(const Operation& operation);

 private:
  const std::vector<VariableUsage>& usages(const Operation& operation);
  const std::vector<VariableUsage>& usages(const Fragment& fragment);

  const Schema& schema_;
  const Document& document_;
  ValidationOptions options_;
  Arena arena_{1024};
  std::vector<ResponseError> errors_;
  bool aborted_ = false;
  long budget_;
  std::unordered_map<std::string_view, const Fragment*> fragments_;
  std::size_t operations_ = 0;
  std::unordered_map<const SelectionSet*, std::vector<const Selection*>> spreads_;
  std::unordered_map<const void*, std::vector<VariableUsage>> usages_;  // by operation or fragment
};

}  // namespace gitops::graphql::rules
