#include "common/graphql/rules/names.hpp"
#include "common/graphql/rules/rules.hpp"

// Section 5.1.1, "Executable Definitions": a document for execution holds operations and fragments
// only.
namespace gitops::graphql::rules {

void executable_definitions(ValidationContext& context) {
  for (const Definition& definition : context.document().definitions()) {
    if (definition.operation || definition.fragment) continue;
    const bool is_schema = definition.kind == Definition::Kind::schema;
    context.report("The " + (is_schema ? "schema" : quote(definition.name.text)) +
                       " definition is not executable.",
                   {definition.at});
  }
}

}  // namespace gitops::graphql::rules
