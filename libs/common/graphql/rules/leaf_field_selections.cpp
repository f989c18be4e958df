#include <string>

#include "common/graphql/rules/names.hpp"
#include "common/graphql/rules/rules.hpp"

// Section 5.3.3, "Leaf Field Selections": a scalar or an enum has no selections; any other type has
// some.
namespace gitops::graphql::rules {

void leaf_field_selections(ValidationContext& context, const Selection& node, const Field* field) {
  if (!field) return;
  const bool is_leaf = field->type->named->is_leaf();
  if (is_leaf && node.selection_set) {
    context.report("Field " + quote(node.name.text) + " must not have a selection since type " +
                       quote(field->type->text) + " has no subfields.",
                   {node.selection_set->at});
  } else if (!is_leaf && !node.selection_set) {
    const std::string name(node.name.text);
    context.report("Field " + quote(name) + " of type " + quote(field->type->text) +
                       " must have a selection of subfields. Did you mean \"" + name +
                       " { ... }\"?",
                   {node.at});
  }
}

}  // namespace gitops::graphql::rules
