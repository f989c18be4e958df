#include <string>

#include "common/graphql/rules/names.hpp"
#include "common/graphql/rules/rules.hpp"

// Section 5.8.1, "Variable Uniqueness": each variable of an operation has a name of its own.
namespace gitops::graphql::rules {

void variable_uniqueness(ValidationContext& context, const Operation& operation) {
  for (const RepeatedName& name : repeated_names(operation.variables)) {
    context.report("There can be only one variable named \"$" + std::string(name.text) + "\".",
                   name.places);
  }
}

}  // namespace gitops::graphql::rules
