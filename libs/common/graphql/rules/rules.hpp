#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "common/graphql/ast.hpp"
#include "common/graphql/rules/context.hpp"
#include "common/graphql/schema.hpp"

// The rules of section 5 of the specification
// (https://spec.graphql.org/October2021/#sec-Validation) by their names and numbers; 5.3.2 is
// field_selection_merging.hpp. Each is a file of that name. A rule looks at one node and reports
// its errors; a class keeps what it has seen. validator.cpp calls them in the order of the
// reference implementation. Types and definitions are null when the schema does not know them.
namespace gitops::graphql::rules {

// --- 5.1 Documents ---

// 5.1.1 Executable Definitions
void executable_definitions(ValidationContext& context);

// --- 5.2 Operations ---

// 5.2.1.1 Operation Name Uniqueness
class OperationNameUniqueness {
 public:
  void check(ValidationContext& context, const Operation& operation);

 private:
  std::unordered_map<std::string_view, std::uint32_t> names_;  // and their places
};

// 5.2.2.1 Lone Anonymous Operation
void lone_anonymous_operation(ValidationContext& context, const Operation& operation);

// 5.2.3.1 Single Root Field
void single_root_field(ValidationContext& context, const Operation& operation,
                       const NamedType* root);

// --- 5.3 Fields ---

// 5.3.1 Field Selections
void field_selections(ValidationContext& context, const Selection& node, const Field* field,
                      const NamedType* parent);

// 5.3.3 Leaf Field Selections
void leaf_field_selections(ValidationContext& context, const Selection& node, const Field* field);

// --- 5.4 Arguments ---

// 5.4.1 Argument Names
void argument_names(ValidationContext& context, const Argument& node, const InputValue* argument,
                    const Field* field, const NamedType* parent);
void argument_names(ValidationContext& context, const Directive& node,
                    const DirectiveDefinition* directive);

// 5.4.2 Argument Uniqueness
void argument_uniqueness(ValidationContext& context, List<Argument> arguments);

// 5.4.2.1 Required Arguments
void required_arguments(ValidationContext& context, const Selection& node, const Field* field);
void required_arguments(ValidationContext& context, const Directive& node,
                        const DirectiveDefinition* directive);

// --- 5.5 Fragments ---

// 5.5.1.1 Fragment Name Uniqueness
class FragmentNameUniqueness {
 public:
  void check(ValidationContext& context, const Fragment& fragment);

 private:
  std::unordered_map<std::string_view, std::uint32_t> names_;  // and their places
};

// 5.5.1.2 Fragment Spread Type Existence, also of the types of variables.
void fragment_spread_type_existence(ValidationContext& context, const Name& type);

// 5.5.1.3 Fragments On Composite Types
void fragments_on_composite_types(ValidationContext& context, const Fragment& fragment,
                                  const NamedType* type);
void fragments_on_composite_types(ValidationContext& context, const Selection& inline_fragment,
                                  const NamedType* type);

// 5.5.1.4 Fragments Must Be Used
void fragments_must_be_used(ValidationContext& context);

// 5.5.2.1 Fragment Spread Target Defined
void fragment_spread_target_defined(ValidationContext& context, const Selection& spread);

// 5.5.2.2 Fragment Spreads Must Not Form Cycles
class FragmentSpreadsMustNotFormCycles {
 public:
  // Searches from this fragment; each fragment is searched once.
  void check(ValidationContext& context, const Fragment& fragment);

 private:
  void report(ValidationContext& context, std::size_t first);

  std::unordered_set<std::string_view> searched_;
  std::vector<const Selection*> path_;
  std::unordered_map<std::string_view, std::size_t> path_index_;
};

// 5.5.2.3 Fragment Spread Is Possible
void fragment_spread_is_possible(ValidationContext& context, const Selection& node,
                                 const NamedType* parent);
void fragment_spread_is_possible(ValidationContext& context, const Selection& node,
                                 const NamedType* type, const NamedType* parent);

// --- 5.6 Values ---

// 5.6.1 Values of Correct Type
void values_of_correct_type(ValidationContext& context, const Literal& literal, const Type* type);

// 5.6.2 Input Object Field Names
void input_object_field_names(ValidationContext& context, const LiteralField& field,
                              const NamedType* object, const InputValue* input);

// 5.6.3 Input Object Field Uniqueness, for one object
class InputObjectFieldUniqueness {
 public:
  void check(ValidationContext& context, const LiteralField& field);

 private:
  std::unordered_map<std::string_view, std::uint32_t> names_;  // and their places
};

// 5.6.4 Input Object Required Fields
void input_object_required_fields(ValidationContext& context, const Literal& literal,
                                  const NamedType* object);

// --- 5.7 Directives ---

// 5.7.1 Directives Are Defined
void directives_are_defined(ValidationContext& context, const Directive& node,
                            const DirectiveDefinition* directive);

// 5.7.2 Directives Are In Valid Locations
void directives_are_in_valid_locations(ValidationContext& context, const Directive& node,
                                       const DirectiveDefinition* directive,
                                       std::string_view location);

// 5.7.3 Directives Are Unique Per Location
void directives_are_unique_per_location(ValidationContext& context, List<Directive> directives);

// --- 5.8 Variables ---

// 5.8.1 Variable Uniqueness
void variable_uniqueness(ValidationContext& context, const Operation& operation);

// 5.8.2 Variables Are Input Types
void variables_are_input_types(ValidationContext& context, const VariableDefinition& variable,
                               const Type* type);

// 5.8.3 All Variable Uses Defined
void all_variable_uses_defined(ValidationContext& context, const Operation& operation,
                               const OperationVariables& variables);

// 5.8.4 All Variables Used
void all_variables_used(ValidationContext& context, const Operation& operation,
                        const OperationVariables& variables);

// 5.8.5 All Variable Usages Are Allowed
void all_variable_usages_are_allowed(ValidationContext& context,
                                     const OperationVariables& variables);

// --- A rule of the reference implementation that the specification does not have ---

// Maximum depth of nested lists of the schema in an introspection query.
class IntrospectionDepth {
 public:
  void enter(ValidationContext& context, const Selection& field);
  void leave(const Selection& field);

 private:
  const Selection* reported_ = nullptr;  // enclosing field that was reported
};

}  // namespace gitops::graphql::rules
