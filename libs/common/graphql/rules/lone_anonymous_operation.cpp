#include "common/graphql/rules/rules.hpp"

// Section 5.2.2.1, "Lone Anonymous Operation": an operation without a name is the only one of its
// document.
namespace gitops::graphql::rules {

void lone_anonymous_operation(ValidationContext& context, const Operation& operation) {
  if (!operation.name.text.empty() || context.operation_count() < 2) return;
  context.report("This anonymous operation must be the only defined operation.", {operation.at});
}

}  // namespace gitops::graphql::rules
