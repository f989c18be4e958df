#include <string>

#include "common/graphql/rules/rules.hpp"

// Section 5.7.3, "Directives Are Unique Per Location": a directive stands once at a place, unless
// it is repeatable.
namespace gitops::graphql::rules {

void directives_are_unique_per_location(ValidationContext& context, List<Directive> directives) {
  if (directives.size() < 2) return;
  std::unordered_map<std::string_view, std::uint32_t> seen;
  for (const Directive& directive : directives) {
    const DirectiveDefinition* known = context.schema().directive(directive.name.text);
    if (!known || known->is_repeatable) continue;
    const auto [first, is_new] = seen.emplace(directive.name.text, directive.at);
    if (is_new) continue;
    context.report("The directive \"@" + std::string(directive.name.text) +
                       "\" can only be used once at this location.",
                   {first->second, directive.at});
  }
}

}  // namespace gitops::graphql::rules
