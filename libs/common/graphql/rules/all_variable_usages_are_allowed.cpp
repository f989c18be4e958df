#include <string>

#include "common/graphql/rules/names.hpp"
#include "common/graphql/rules/rules.hpp"

// Section 5.8.5, "All Variable Usages Are Allowed": the type of a variable fits the places where it
// is used.
namespace gitops::graphql::rules {
namespace {

bool is_allowed(const ValidationContext& context, const Type& type, const Literal* default_value,
                const VariableUsage& usage) {
  if (usage.type->is_non_null() && !type.is_non_null()) {
    const bool has_value = default_value && default_value->kind != LiteralKind::null;
    if (!has_value && !usage.has_default && !context.is_lenient()) return false;
    return is_subtype(type, *usage.type->of);
  }
  return is_subtype(type, *usage.type);
}

}  // namespace

void all_variable_usages_are_allowed(ValidationContext& context,
                                     const OperationVariables& variables) {
  for (const VariableUsage* usage : variables.usages) {
    const auto found = variables.defined.find(usage->variable->text);
    if (found == variables.defined.end() || !usage->type) continue;
    const VariableDefinition& variable = *found->second;
    const Type* type = context.schema().resolve(*variable.type, context.arena());
    if (!type || is_allowed(context, *type, variable.default_value, *usage)) continue;
    context.report("Variable \"$" + std::string(variable.name.text) + "\" of type " +
                       quote(type->text) + " used in position expecting type " +
                       quote(usage->type->text) + ".",
                   {variable.at, usage->variable->at});
  }
}

}  // namespace gitops::graphql::rules
