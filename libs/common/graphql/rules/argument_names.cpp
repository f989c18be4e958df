#include <string>

#include "common/graphql/rules/names.hpp"
#include "common/graphql/rules/rules.hpp"

// Section 5.4.1, "Argument Names": an argument is one that the field or the directive defines.
namespace gitops::graphql::rules {

void argument_names(ValidationContext& context, const Argument& node, const InputValue* argument,
                    const Field* field, const NamedType* parent) {
  if (argument || !field || !parent) return;
  context.report("Unknown argument " + quote(node.name.text) + " on field " +
                     quote(std::string(parent->name) + "." + std::string(field->name)) + "." +
                     context.suggestion(node.name.text, names_of(field->arguments)),
                 {node.name.at});
}

void argument_names(ValidationContext& context, const Directive& node,
                    const DirectiveDefinition* directive) {
  if (!directive) return;
  for (const Argument& argument : node.arguments) {
    if (directive->argument(argument.name.text)) continue;
    context.report("Unknown argument " + quote(argument.name.text) + " on directive " +
                       quote("@" + std::string(node.name.text)) + "." +
                       context.suggestion(argument.name.text, names_of(directive->arguments)),
                   {argument.name.at});
  }
}

}  // namespace gitops::graphql::rules
