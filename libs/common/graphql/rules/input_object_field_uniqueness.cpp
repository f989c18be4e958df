#include "common/graphql/rules/names.hpp"
#include "common/graphql/rules/rules.hpp"

// Section 5.6.3, "Input Object Field Uniqueness": a field of an input object is given once.
namespace gitops::graphql::rules {

void InputObjectFieldUniqueness::check(ValidationContext& context, const LiteralField& field) {
  const auto [known, is_new] = names_.emplace(field.name.text, field.name.at);
  if (is_new) return;
  context.report("There can be only one input field named " + quote(field.name.text) + ".",
                 {known->second, field.name.at});
}

}  // namespace gitops::graphql::rules
