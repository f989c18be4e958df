#include "common/graphql/rules/names.hpp"
#include "common/graphql/rules/rules.hpp"

// Section 5.5.1.2, "Fragment Spread Type Existence": the type of a fragment exists, and that of a
// variable.
namespace gitops::graphql::rules {

void fragment_spread_type_existence(ValidationContext& context, const Name& type) {
  if (context.schema().find(type.text)) return;
  std::vector<std::string_view> known;
  for (const NamedType* one : context.schema().types()) known.push_back(one->name);
  context.report("Unknown type " + quote(type.text) + "." + context.suggestion(type.text, known),
                 {type.at});
}

}  // namespace gitops::graphql::rules
