#include "common/graphql/rules/names.hpp"
#include "common/graphql/rules/rules.hpp"

// Section 5.2.1.1, "Operation Name Uniqueness": each named operation has a name of its own.
namespace gitops::graphql::rules {

void OperationNameUniqueness::check(ValidationContext& context, const Operation& operation) {
  if (operation.name.text.empty()) return;
  const auto [known, is_new] = names_.emplace(operation.name.text, operation.name.at);
  if (is_new) return;
  context.report("There can be only one operation named " + quote(operation.name.text) + ".",
                 {known->second, operation.name.at});
}

}  // namespace gitops::graphql::rules
