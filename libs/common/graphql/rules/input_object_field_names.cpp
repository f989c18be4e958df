#include "common/graphql/rules/names.hpp"
#include "common/graphql/rules/rules.hpp"

// Section 5.6.2, "Input Object Field Names": a field of an input object is one that its type
// defines.
namespace gitops::graphql::rules {

void input_object_field_names(ValidationContext& context, const LiteralField& field,
                              const NamedType* object, const InputValue* input) {
  if (!object || input) return;
  context.report("Field " + quote(field.name.text) + " is not defined by type " +
                     quote(object->name) + "." +
                     context.suggestion(field.name.text, names_of(object->inputs)),
                 {field.name.at});
}

}  // namespace gitops::graphql::rules
