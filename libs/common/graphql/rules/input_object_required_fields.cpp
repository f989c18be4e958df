#include <algorithm>
#include <string>

#include "common/graphql/rules/names.hpp"
#include "common/graphql/rules/rules.hpp"

// Section 5.6.4, "Input Object Required Fields": a non-null field of an input object without a
// default is given.
namespace gitops::graphql::rules {

void input_object_required_fields(ValidationContext& context, const Literal& literal,
                                  const NamedType* object) {
  if (!object) return;
  for (const InputValue& input : object->inputs) {
    const bool is_given = std::ranges::any_of(
        literal.fields, [&](const LiteralField& field) { return field.name.text == input.name; });
    if (is_given || !input.is_required()) continue;
    context.report("Field " + quote(std::string(object->name) + "." + std::string(input.name)) +
                       " of required type " + quote(input.type->text) + " was not provided.",
                   {literal.at});
  }
}

}  // namespace gitops::graphql::rules
