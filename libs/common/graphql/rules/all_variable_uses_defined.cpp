#include <string>

#include "common/graphql/rules/names.hpp"
#include "common/graphql/rules/rules.hpp"

// Section 5.8.3, "All Variable Uses Defined": the operation defines each variable that it uses,
// itself or in fragments.
namespace gitops::graphql::rules {

void all_variable_uses_defined(ValidationContext& context, const Operation& operation,
                               const OperationVariables& variables) {
  for (const VariableUsage* usage : variables.usages) {
    const std::string_view name = usage->variable->text;
    if (variables.defined.contains(name)) continue;
    const std::string by =
        operation.name.text.empty() ? "" : " by operation " + quote(operation.name.text);
    context.report("Variable \"$" + std::string(name) + "\" is not defined" + by + ".",
                   {usage->variable->at, operation.at});
  }
}

}  // namespace gitops::graphql::rules
