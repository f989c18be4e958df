#include <algorithm>
#include <string>

#include "common/graphql/rules/names.hpp"
#include "common/graphql/rules/rules.hpp"

// Section 5.7.2, "Directives Are In Valid Locations": a directive stands where its definition
// allows it.
namespace gitops::graphql::rules {

void directives_are_in_valid_locations(ValidationContext& context, const Directive& node,
                                       const DirectiveDefinition* directive,
                                       std::string_view location) {
  if (!directive) return;
  const auto& known = directive->locations;
  if (std::ranges::find(known, location) != known.end()) return;
  context.report("Directive " + quote("@" + std::string(node.name.text)) + " may not be used on " +
                     std::string(location) + ".",
                 {node.at});
}

}  // namespace gitops::graphql::rules
