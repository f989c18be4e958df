#include "common/graphql/rules/names.hpp"
#include "common/graphql/rules/rules.hpp"

// Section 5.5.1.1, "Fragment Name Uniqueness": each fragment has a name of its own.
namespace gitops::graphql::rules {

void FragmentNameUniqueness::check(ValidationContext& context, const Fragment& fragment) {
  const auto [known, is_new] = names_.emplace(fragment.name.text, fragment.name.at);
  if (is_new) return;
  context.report("There can be only one fragment named " + quote(fragment.name.text) + ".",
                 {known->second, fragment.name.at});
}

}  // namespace gitops::graphql::rules
