#include <string>

#include "common/graphql/rules/names.hpp"
#include "common/graphql/rules/rules.hpp"

// Section 5.7.1, "Directives Are Defined": a directive exists.
namespace gitops::graphql::rules {

void directives_are_defined(ValidationContext& context, const Directive& node,
                            const DirectiveDefinition* directive) {
  if (directive) return;
  context.report("Unknown directive " + quote("@" + std::string(node.name.text)) + ".", {node.at});
}

}  // namespace gitops::graphql::rules
