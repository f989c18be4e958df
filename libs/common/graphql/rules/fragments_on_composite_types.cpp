#include "common/graphql/rules/names.hpp"
#include "common/graphql/rules/rules.hpp"

// Section 5.5.1.3, "Fragments On Composite Types": a fragment stands on an object, an interface or
// a union.
namespace gitops::graphql::rules {

void fragments_on_composite_types(ValidationContext& context, const Fragment& fragment,
                                  const NamedType* type) {
  if (!type || type->is_composite()) return;
  context.report("Fragment " + quote(fragment.name.text) +
                     " cannot condition on non composite type " + quote(type->name) + ".",
                 {fragment.type_condition.at});
}

void fragments_on_composite_types(ValidationContext& context, const Selection& inline_fragment,
                                  const NamedType* type) {
  if (inline_fragment.type_condition.text.empty() || !type || type->is_composite()) return;
  context.report("Fragment cannot condition on non composite type " + quote(type->name) + ".",
                 {inline_fragment.type_condition.at});
}

}  // namespace gitops::graphql::rules
