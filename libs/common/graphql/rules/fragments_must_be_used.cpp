#include "common/graphql/rules/names.hpp"
#include "common/graphql/rules/rules.hpp"

// Section 5.5.1.4, "Fragments Must Be Used": an operation spreads each fragment, itself or through
// others.
namespace gitops::graphql::rules {

void fragments_must_be_used(ValidationContext& context) {
  const List<Definition> definitions = context.document().definitions();
  std::vector<const SelectionSet*> sets;
  for (const Definition& definition : definitions) {
    if (definition.operation) sets.push_back(definition.operation->selection_set);
  }
  std::unordered_set<std::string_view> used;
  for (const Fragment* fragment : context.reached(sets)) used.insert(fragment->name.text);
  for (const Definition& definition : definitions) {
    const Fragment* fragment = definition.fragment;
    if (!fragment || used.contains(fragment->name.text)) continue;
    context.report("Fragment " + quote(fragment->name.text) + " is never used.", {fragment->at});
  }
}

}  // namespace gitops::graphql::rules
