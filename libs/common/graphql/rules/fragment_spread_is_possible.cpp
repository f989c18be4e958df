#include "common/graphql/rules/names.hpp"
#include "common/graphql/rules/rules.hpp"

// Section 5.5.2.3, "Fragment Spread Is Possible": an object may have the type of the fragment and
// that of its surroundings.
namespace gitops::graphql::rules {

void fragment_spread_is_possible(ValidationContext& context, const Selection& node,
                                 const NamedType* parent) {
  const Fragment* fragment = context.fragment(node.name.text);
  if (!fragment || !parent) return;
  const NamedType* type = context.schema().find(fragment->type_condition.text);
  if (!type || !type->is_composite() || types_overlap(*type, *parent)) return;
  context.report("Fragment " + quote(node.name.text) +
                     " cannot be spread here as objects of type " + quote(parent->name) +
                     " can never be of type " + quote(type->name) + ".",
                 {node.at});
}

void fragment_spread_is_possible(ValidationContext& context, const Selection& node,
                                 const NamedType* type, const NamedType* parent) {
  if (!type || !type->is_composite() || !parent || types_overlap(*type, *parent)) return;
  context.report("Fragment cannot be spread here as objects of type " + quote(parent->name) +
                     " can never be of type " + quote(type->name) + ".",
                 {node.at});
}

}  // namespace gitops::graphql::rules
