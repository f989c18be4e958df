#include <algorithm>
#include <string>

#include "common/graphql/rules/names.hpp"
#include "common/graphql/rules/rules.hpp"

// Section 5.4.2.1, "Required Arguments": a non-null argument without a default is given.
namespace gitops::graphql::rules {
namespace {

bool has_argument(List<Argument> arguments, std::string_view name) {
  return std::ranges::any_of(arguments,
                             [&](const Argument& argument) { return argument.name.text == name; });
}

}  // namespace

void required_arguments(ValidationContext& context, const Selection& node, const Field* field) {
  if (!field) return;
  for (const InputValue& argument : field->arguments) {
    if (!argument.is_required() || has_argument(node.arguments, argument.name)) continue;
    context.report("Field " + quote(field->name) + " argument " + quote(argument.name) +
                       " of type " + quote(argument.type->text) +
                       " is required, but it was not provided.",
                   {node.at});
  }
}

void required_arguments(ValidationContext& context, const Directive& node,
                        const DirectiveDefinition* directive) {
  if (!directive) return;
  for (const InputValue& argument : directive->arguments) {
    if (!argument.is_required() || has_argument(node.arguments, argument.name)) continue;
    context.report("Directive " + quote("@" + std::string(node.name.text)) + " argument " +
                       quote(argument.name) + " of type " + quote(argument.type->text) +
                       " is required, but it was not provided.",
                   {node.at});
  }
}

}  // namespace gitops::graphql::rules
