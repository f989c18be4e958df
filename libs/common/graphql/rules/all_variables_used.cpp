#include <string>

#include "common/graphql/rules/names.hpp"
#include "common/graphql/rules/rules.hpp"

// Section 5.8.4, "All Variables Used": the operation uses each variable that it defines.
namespace gitops::graphql::rules {

void all_variables_used(ValidationContext& context, const Operation& operation,
                        const OperationVariables& variables) {
  std::unordered_set<std::string_view> used;
  for (const VariableUsage* usage : variables.usages) used.insert(usage->variable->text);
  for (const VariableDefinition& variable : operation.variables) {
    if (used.contains(variable.name.text)) continue;
    const std::string in =
        operation.name.text.empty() ? "" : " in operation " + quote(operation.name.text);
    context.report("Variable \"$" + std::string(variable.name.text) + "\" is never used" + in + ".",
                   {variable.at});
  }
}

}  // namespace gitops::graphql::rules
