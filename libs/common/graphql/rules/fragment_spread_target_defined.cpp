#include "common/graphql/rules/names.hpp"
#include "common/graphql/rules/rules.hpp"

// Section 5.5.2.1, "Fragment Spread Target Defined": a fragment that is spread exists.
namespace gitops::graphql::rules {

void fragment_spread_target_defined(ValidationContext& context, const Selection& spread) {
  if (context.fragment(spread.name.text)) return;
  context.report("Unknown fragment " + quote(spread.name.text) + ".", {spread.name.at});
}

}  // namespace gitops::graphql::rules
