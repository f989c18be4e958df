#include "common/graphql/validator.hpp"

#include "common/graphql/rules/context.hpp"
#include "common/graphql/rules/field_selection_merging.hpp"
#include "common/graphql/rules/rules.hpp"
#include "common/graphql/rules/typed_walk.hpp"

namespace gitops::graphql {
namespace rules {
namespace {

// Applies the rules at each node of one walk, in the order of the reference implementation.
class RuleVisitor : public NoVisits {
 public:
  explicit RuleVisitor(ValidationContext& context)
      : context_(context), merging_(context.schema(), context.document()) {}

  [[nodiscard]] bool aborted() const { return context_.aborted(); }

  void enter(const Operation& node, const NamedType* root) {
    operation_names_.check(context_, node);
    lone_anonymous_operation(context_, node);
    single_root_field(context_, node, root);
    variable_uniqueness(context_, node);
    directives_are_unique_per_location(context_, node.directives);
  }
  void leave(const Operation& node) {
    const OperationVariables variables = context_.variables_of(node);
    if (aborted()) return;
    all_variable_uses_defined(context_, node, variables);
    if (!context_.is_lenient()) all_variables_used(context_, node, variables);
    all_variable_usages_are_allowed(context_, variables);
  }

  void enter(const VariableDefinition& node, const Type* type) {
    variables_are_input_types(context_, node, type);
    directives_are_unique_per_location(context_, node.directives);
    const TypeNode* named = node.type;
    while (named->of) named = named->of;
    fragment_spread_type_existence(context_, {named->name, named->at});
  }

  void enter(const Fragment& node, const NamedType* type) {
    fragments_on_composite_types(context_, node, type);
    fragment_names_.check(context_, node);
    cycles_.check(context_, node);
    directives_are_unique_per_location(context_, node.directives);
    fragment_spread_type_existence(context_, node.type_condition);
  }

  void enter(const SelectionSet& node, const NamedType* parent) {
    merging_.check(context_, node, parent);
  }

  void enter_field(const Selection& node, const Field* field, const NamedType* parent) {
    leaf_field_selections(context_, node, field);
    field_selections(context_, node, field, parent);
    directives_are_unique_per_location(context_, node.directives);
    argument_uniqueness(context_, node.arguments);
    introspection_depth_.enter(context_, node);
  }
  void argument_of_field(const Argument& node, const InputValue* argument, const Field* field,
                         const NamedType* parent) {
    argument_names(context_, node, argument, field, parent);
  }
  void leave_field(const Selection& node, const Field* field) {
    required_arguments(context_, node, field);
    introspection_depth_.leave(node);
  }

  void enter_spread(const Selection& node, const NamedType* parent) {
    fragment_spread_target_defined(context_, node);
    fragment_spread_is_possible(context_, node, parent);
    directives_are_unique_per_location(context_, node.directives);
  }
  void enter_inline_fragment(const Selection& node, const NamedType* type,
                             const NamedType* parent) {
    fragments_on_composite_types(context_, node, type);
    fragment_spread_is_possible(context_, node, type, parent);
    directives_are_unique_per_location(context_, node.directives);
    if (node.type_condition.text.empty()) return;
    fragment_spread_type_existence(context_, node.type_condition);
  }

  void enter(const Directive& node, const DirectiveDefinition* directive,
             std::string_view location) {
    directives_are_defined(context_, node, directive);
    directives_are_in_valid_locations(context_, node, directive, location);
    argument_names(context_, node, directive);
    argument_uniqueness(context_, node.arguments);
  }
  void leave(const Directive& node, const DirectiveDefinition* directive) {
    required_arguments(context_, node, directive);
  }

  void value(const Literal& node, const Type* type) {
    values_of_correct_type(context_, node, type);
  }
  InputObjectFieldUniqueness enter_object(const Literal& node, const NamedType* object) {
    input_object_required_fields(context_, node, object);
    return {};
  }
  void enter_object_field(InputObjectFieldUniqueness& names, const LiteralField& node,
                          const NamedType* object, const InputValue* input) {
    input_object_field_names(context_, node, object, input);
    names.check(context_, node);
  }

 private:
  ValidationContext& context_;
  OperationNameUniqueness operation_names_;
  FieldSelectionMerging merging_;
  FragmentNameUniqueness fragment_names_;
  FragmentSpreadsMustNotFormCycles cycles_;
  IntrospectionDepth introspection_depth_;
};

}  // namespace
}  // namespace rules

std::vector<ResponseError> validate(const Schema& schema, const Document& document,
                                    const ValidationOptions& options) {
  rules::ValidationContext context(schema, document, options);
  rules::executable_definitions(context);
  if (context.has_errors()) return context.take_errors();
  rules::RuleVisitor visitor(context);
  rules::TypedWalk walk(schema, context.arena(), visitor);
  for (const Definition& definition : document.definitions()) {
    if (context.aborted()) break;
    if (definition.operation) walk.walk(*definition.operation);
    if (definition.fragment) walk.walk(*definition.fragment);
  }
  if (!context.aborted() && !context.is_lenient()) rules::fragments_must_be_used(context);
  return context.take_errors();
}

}  // namespace gitops::graphql
