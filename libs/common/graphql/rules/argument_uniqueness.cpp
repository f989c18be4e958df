#include "common/graphql/rules/names.hpp"
#include "common/graphql/rules/rules.hpp"

// Section 5.4.2, "Argument Uniqueness": an argument is given once.
namespace gitops::graphql::rules {

void argument_uniqueness(ValidationContext& context, List<Argument> arguments) {
  for (const RepeatedName& name : repeated_names(arguments)) {
    context.report("There can be only one argument named " + quote(name.text) + ".", name.places);
  }
}

}  // namespace gitops::graphql::rules
