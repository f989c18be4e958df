#include <utility>

#include "common/graphql/input.hpp"
#include "common/graphql/print.hpp"
#include "common/graphql/rules/names.hpp"
#include "common/graphql/rules/rules.hpp"

// Section 5.6.1, "Values of Correct Type": a value can be coerced to the type of its place.
namespace gitops::graphql::rules {

void values_of_correct_type(ValidationContext& context, const Literal& literal, const Type* type) {
  if (!type) return;
  if (literal.kind == LiteralKind::null) {
    if (!type->is_non_null()) return;
    context.report("Expected value of type " + quote(type->text) + ", found null.", {literal.at});
  } else if (!type->named->is_leaf()) {
    context.report(
        "Expected value of type " + quote(type->text) + ", found " + print(literal) + ".",
        {literal.at});
  } else if (auto error = check_leaf_literal(literal, *type->named, context.hides_names())) {
    context.report(std::move(error->message), {literal.at});
  }
}

}  // namespace gitops::graphql::rules
