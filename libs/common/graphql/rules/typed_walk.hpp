#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

#include "common/graphql/ast.hpp"
#include "common/graphql/schema.hpp"

namespace gitops::graphql::rules {

// Empty visits of a TypedWalk. A visitor derives from it and hides those that it implements;
// nothing is virtual. A type is null if it is not in the schema.
struct NoVisits {
  struct ObjectState {};  // a visitor's state within one input object

  // Returns true to end the walk.
  static bool aborted() { return false; }

  static void enter(const Operation& /*node*/, const NamedType* /*root*/) {}
  static void leave(const Operation& /*node*/) {}
  static void enter(const VariableDefinition& /*node*/, const Type* /*type*/) {}
  static void enter(const Fragment& /*node*/, const NamedType* /*type*/) {}
  // Visits a selection set, except that of an inline fragment.
  static void enter(const SelectionSet& /*node*/, const NamedType* /*parent*/) {}

  static void enter_field(const Selection& /*node*/, const Field* /*field*/,
                          const NamedType* /*parent*/) {}
  static void argument_of_field(const Argument& /*node*/, const InputValue* /*argument*/,
                                const Field* /*field*/, const NamedType* /*parent*/) {}
  static void leave_field(const Selection& /*node*/, const Field* /*field*/) {}
  static void enter_spread(const Selection& /*node*/, const NamedType* /*parent*/) {}
  static void enter_inline_fragment(const Selection& /*node*/, const NamedType* /*type*/,
                                    const NamedType* /*parent*/) {}
  static void enter(const Directive& /*node*/, const DirectiveDefinition* /*directive*/,
                    std::string_view /*location*/) {}
  static void leave(const Directive& /*node*/, const DirectiveDefinition* /*directive*/) {}

  // Visits a value that is not a variable, or a list or an object where none is expected.
  static void value(const Literal& /*node*/, const Type* /*type*/) {}
  static void variable(const Literal& /*node*/, const Type* /*type*/, bool /*has_default*/) {}
  // Visits an object. `object` is null if the schema has no input object there, or the enclosing
  // value was refused.
  static ObjectState enter_object(const Literal& /*node*/, const NamedType* /*object*/) {
    return {};
  }
  static void enter_object_field(ObjectState& /*state*/, const LiteralField& /*node*/,
                                 const NamedType* /*object*/, const InputValue* /*input*/) {}
};

// Walks over a definition in the order of the reference implementation and calls a visitor for each
// node with its type. The types are on the call stack: each function receives that of its parent.
template <class Visitor>
class TypedWalk {
 public:
  // Allocates new type forms in `arena`.
  TypedWalk(const Schema& schema, Arena& arena, Visitor& visitor)
      : schema_(schema), arena_(arena), visitor_(visitor) {}

  void walk(const Operation& node) {
    visitor_.enter(node, schema_.root(node.kind));
    for (const VariableDefinition& variable : node.variables) walk(variable);
    body(node);
    visitor_.leave(node);
  }
  void walk(const Fragment& node) {
    visitor_.enter(node, schema_.find(node.type_condition.text));
    body(node);
  }

  // Walks the parts where variables may be used: directives and selections.
  void body(const Operation& node) {
    static constexpr std::array<std::string_view, 3> kLocations{"QUERY", "MUTATION",
                                                                "SUBSCRIPTION"};
    walk(node.directives, kLocations.at(static_cast<std::size_t>(node.kind)));
    walk(*node.selection_set, schema_.root(node.kind));
  }
  void body(const Fragment& node) {
    walk(node.directives, "FRAGMENT_DEFINITION");
    walk(*node.selection_set, composite(schema_.find(node.type_condition.text)));
  }

 private:
  // Report of a value to the visitor: none below a value that was refused as a whole.
  enum class Report : bool { no, yes };

  static const NamedType* composite(const NamedType* type) {
    return type && type->is_composite() ? type : nullptr;
  }

  void walk(const VariableDefinition& node) {
    const Type* type = schema_.resolve(*node.type, arena_);
    visitor_.enter(node, type);
    if (node.default_value) {
      const bool is_input = type && type->named->is_input();
      walk(*node.default_value, is_input ? type : nullptr, false, Report::yes);
    }
    walk(node.directives, "VARIABLE_DEFINITION");
  }

  void walk(const SelectionSet& node, const NamedType* parent) {
    visitor_.enter(node, parent);
    selections(node, parent);
  }

  void selections(const SelectionSet& node, const NamedType* parent) {
    for (const Selection& selection : node.selections) {
      if (visitor_.aborted()) return;
      switch (selection.kind) {
        case Selection::Kind::field:
          field(selection, parent);
          break;
        case Selection::Kind::spread:
          visitor_.enter_spread(selection, parent);
          walk(selection.directives, "FRAGMENT_SPREAD");
          break;
        case Selection::Kind::inline_fragment:
          inline_fragment(selection, parent);
          break;
      }
    }
  }

  void field(const Selection& node, const NamedType* parent) {
    const Field* field = parent ? schema_.field_of(*parent, node.name.text) : nullptr;
    const Field* const outer = std::exchange(field_, field);
    visitor_.enter_field(node, field, parent);
    for (const Argument& argument : node.arguments) {
      const InputValue* known = field ? field->argument(argument.name.text) : nullptr;
      visitor_.argument_of_field(argument, known, field, parent);
      walk(argument, known);
    }
    walk(node.directives, "FIELD");
    if (node.selection_set) {
      walk(*node.selection_set, composite(field ? field->type->named : nullptr));
    }
    visitor_.leave_field(node, field);
    field_ = outer;
  }

  void inline_fragment(const Selection& node, const NamedType* parent) {
    const std::string_view condition = node.type_condition.text;
    const NamedType* type = condition.empty() ? parent : schema_.find(condition);
    visitor_.enter_inline_fragment(node, type, parent);
    walk(node.directives, "INLINE_FRAGMENT");
    selections(*node.selection_set, composite(type));
  }

  void walk(List<Directive> directives, std::string_view location) {
    for (const Directive& node : directives) {
      const DirectiveDefinition* directive = schema_.directive(node.name.text);
      visitor_.enter(node, directive, location);
      for (const Argument& argument : node.arguments) {
        // The reference implementation looks up arguments of an unknown directive in the field.
        walk(argument, directive ? directive->argument(argument.name.text)
                       : field_  ? field_->argument(argument.name.text)
                                 : nullptr);
      }
      visitor_.leave(node, directive);
    }
  }

  void walk(const Argument& node, const InputValue* argument) {
    walk(node.value, argument ? argument->type : nullptr, argument && argument->default_value,
         Report::yes);
  }

  void walk(const Literal& node, const Type* type, bool has_default, Report report) {
    if (visitor_.aborted()) return;
    switch (node.kind) {
      case LiteralKind::variable:
        return visitor_.variable(node, type, has_default);
      case LiteralKind::list:
        return list(node, type, report);
      case LiteralKind::object:
        return object(node, type, report);
      default:
        if (report == Report::yes) visitor_.value(node, type);
    }
  }

  void list(const Literal& node, const Type* type, Report report) {
    const bool is_list = type && type->nullable().is_list();
    const Type* item = !type ? nullptr : is_list ? type->nullable().of : &type->nullable();
    if (!is_list && report == Report::yes) {
      visitor_.value(node, item);
      report = Report::no;
    }
    for (const Literal& one : node.items) walk(one, item, false, report);
  }

  void object(const Literal& node, const Type* type, Report report) {
    const NamedType* object = type ? type->named : nullptr;
    if (object && object->kind != TypeKind::input_object) object = nullptr;
    if (report == Report::yes && !object) {
      visitor_.value(node, type);
      report = Report::no;
    }
    const NamedType* const reported_object = report == Report::yes ? object : nullptr;
    auto state = visitor_.enter_object(node, reported_object);
    for (const LiteralField& field : node.fields) {
      const InputValue* input = object ? object->input(field.name.text) : nullptr;
      visitor_.enter_object_field(state, field, reported_object, input);
      walk(field.value, input ? input->type : nullptr, input && input->default_value, report);
    }
  }

  const Schema& schema_;
  Arena& arena_;
  Visitor& visitor_;
  const Field* field_ = nullptr;  // innermost enclosing field
};

}  // namespace gitops::graphql::rules
