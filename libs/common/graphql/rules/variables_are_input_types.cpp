#include <string>

#include "common/graphql/print.hpp"
#include "common/graphql/rules/names.hpp"
#include "common/graphql/rules/rules.hpp"

// Section 5.8.2, "Variables Are Input Types": a variable is a scalar, an enum, an input object, or
// lists of these.
namespace gitops::graphql::rules {

void variables_are_input_types(ValidationContext& context, const VariableDefinition& variable,
                               const Type* type) {
  if (!type || type->named->is_input()) return;
  context.report("Variable \"$" + std::string(variable.name.text) + "\" cannot be non-input type " +
                     quote(print(*variable.type)) + ".",
                 {variable.type->at});
}

}  // namespace gitops::graphql::rules
