#include "common/graphql/validator.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "common/core/encoding.hpp"
#include "common/graphql/field_merge.hpp"
#include "common/graphql/input.hpp"
#include "common/graphql/print.hpp"

namespace gitops::graphql {
namespace {

constexpr long kFragmentWork = 50'000;  // spreads and variables that are followed

std::string quote(std::string_view name) {
  return "\"" + std::string(name) + "\"";
}

// A place where a variable is used.
struct Usage {
  const Literal* variable = nullptr;
  const Type* type = nullptr;  // what is expected there; null when that is not known
  bool has_default = false;    // of the argument or input field
};

// Walks over a document once and applies every rule at each node, in the order of the reference
// implementation. Rules that follow fragments take what the walk `quiet_` has found before.
class Validator {
 public:
  Validator(const Schema& schema, const Document& document, const ValidationOptions& options)
      : schema_(schema), document_(document), options_(options), merge_(schema, document) {}

  std::vector<ResponseError> run() {
    if (!check_executable()) return std::move(errors_);
    for (const Definition& definition : document_.definitions()) {
      if (definition.fragment) fragments_[definition.fragment->name.text] = definition.fragment;
      if (definition.operation) ++operations_;
    }
    quiet_ = true;
    for (const Definition& definition : document_.definitions()) visit(definition);
    quiet_ = false;
    for (const Definition& definition : document_.definitions()) {
      if (aborted_) break;
      visit(definition);
    }
    if (!aborted_ && !is_lenient()) check_unused_fragments();
    return std::move(errors_);
  }

 private:
  [[nodiscard]] bool is_lenient() const { return options_.strictness == Strictness::lenient; }

  void report(std::string message, std::initializer_list<std::uint32_t> places) {
    report(std::move(message), std::vector<std::uint32_t>(places));
  }
  void report(std::string message, const std::vector<std::uint32_t>& places) {
    if (aborted_ || quiet_) return;
    if (errors_.size() >= options_.max_errors) {
      abort("Too many validation errors, error limit reached. Validation aborted.");
      return;
    }
    if (options_.max_message != 0 && message.size() > options_.max_message) {
      std::size_t end = 0;
      while (end < options_.max_message) {
        end += std::max<std::size_t>(utf8_length(std::string_view(message).substr(end)), 1);
      }
      message.resize(end);
      message += "...";
    }
    ResponseError& error = errors_.emplace_back();
    error.message = std::move(message);
    for (const std::uint32_t at : places) error.locations.push_back(document_.locate(at));
  }
  void abort(std::string message) {
    if (aborted_) return;
    aborted_ = true;
    errors_.push_back({std::move(message)});
  }
  void spend(std::size_t cost) {
    work_ -= static_cast<long>(cost);
    if (work_ < 0) abort("Validation aborted.");
  }

  bool check_executable() {
    for (const Definition& definition : document_.definitions()) {
      if (definition.operation || definition.fragment) continue;
      const bool is_schema = definition.kind == Definition::Kind::schema;
      report("The " + (is_schema ? "schema" : quote(definition.name.text)) +
                 " definition is not executable.",
             {definition.at});
    }
    return errors_.empty();
  }

  void visit(const Definition& definition) {
    usages_ = &usages_of_[definition.operation ? static_cast<const void*>(definition.operation)
                                               : definition.fragment];
    if (definition.operation) visit(*definition.operation);
    if (definition.fragment) visit(*definition.fragment);
  }

  void visit(const Operation& operation) {
    const NamedType* root = schema_.root(operation.kind);
    if (!quiet_) {
      check_operation_name(operation);
      if (operation.name.text.empty() && operations_ > 1) {
        report("This anonymous operation must be the only defined operation.", {operation.at});
      }
      if (operation.kind == OperationKind::subscription && root) {
        check_subscription(operation, *root);
      }
      check_variable_names(operation);
      check_unique_directives(operation.directives);
    }
    for (const VariableDefinition& variable : operation.variables) visit(variable);
    static constexpr std::array<std::string_view, 3> kPlaces{"QUERY", "MUTATION", "SUBSCRIPTION"};
    visit(operation.directives, kPlaces.at(static_cast<std::size_t>(operation.kind)));
    visit(*operation.selection_set, root, InlineSet::no);
    if (!quiet_) check_variables(operation);
  }

  void visit(const VariableDefinition& variable) {
    const Type* type = schema_.resolve(*variable.type, arena_);
    if (!quiet_) {
      if (type && !type->named->is_input()) {
        report("Variable \"$" + std::string(variable.name.text) + "\" cannot be non-input type " +
                   quote(print(*variable.type)) + ".",
               {variable.type->at});
      }
      check_unique_directives(variable.directives);
      const TypeNode* inner = variable.type;
      while (inner->of) inner = inner->of;
      check_type_name({inner->name, inner->at});
    }
    const bool is_input = type && type->named->is_input();
    if (variable.default_value) {
      visit(*variable.default_value, is_input ? type : nullptr, false, true);
    }
    visit(variable.directives, "VARIABLE_DEFINITION");
  }

  void visit(const Fragment& fragment) {
    const NamedType* type = schema_.find(fragment.type_condition.text);
    if (!quiet_) {
      if (type && !type->is_composite()) {
        report("Fragment " + quote(fragment.name.text) +
                   " cannot condition on non composite type " + quote(type->name) + ".",
               {fragment.type_condition.at});
      }
      const auto [known, is_new] = fragment_names_.emplace(fragment.name.text, fragment.name.at);
      if (!is_new) {
        report("There can be only one fragment named " + quote(fragment.name.text) + ".",
               {known->second, fragment.name.at});
      }
      find_cycles(fragment);
      check_unique_directives(fragment.directives);
      check_type_name(fragment.type_condition);
    }
    visit(fragment.directives, "FRAGMENT_DEFINITION");
    visit(*fragment.selection_set, type && type->is_composite() ? type : nullptr, InlineSet::no);
  }

  enum class InlineSet { no, yes };

  void visit(const SelectionSet& set, const NamedType* parent, InlineSet is_inline) {
    // The fields of an inline fragment are compared with those around it, in their set.
    if (!quiet_ && is_inline == InlineSet::no) {
      for (const FieldMerge::Conflict& conflict : merge_.check(set, parent)) {
        std::vector<std::uint32_t> places = conflict.first;
        places.insert(places.end(), conflict.second.begin(), conflict.second.end());
        report(conflict.message(), places);
      }
      if (merge_.aborted()) abort("Validation aborted.");
    }
    for (const Selection& selection : set.selections) {
      if (aborted_) return;
      switch (selection.kind) {
        case Selection::Kind::field:
          visit_field(selection, parent);
          break;
        case Selection::Kind::spread:
          visit_spread(selection, parent);
          break;
        case Selection::Kind::inline_fragment:
          visit_inline(selection, parent);
          break;
      }
    }
  }

  void visit_field(const Selection& node, const NamedType* parent) {
    const Field* field = parent ? schema_.field_of(*parent, node.name.text) : nullptr;
    const Field* const outer = std::exchange(field_, field);
    const bool was_deep = deep_introspection_;
    if (!quiet_) {
      if (field) {
        check_leaf(node, *field);
      } else if (parent) {
        report_unknown_field(node, *parent);
      }
      check_unique_directives(node.directives);
      check_unique_arguments(node.arguments);
      check_introspection_depth(node);
    }
    for (const Argument& argument : node.arguments) {
      const InputValue* definition = field ? field->argument(argument.name.text) : nullptr;
      if (!quiet_ && !definition && field && parent) {
        report("Unknown argument " + quote(argument.name.text) + " on field " +
                   quote(std::string(parent->name) + "." + std::string(field->name)) + "." +
                   hint(argument.name.text, names_of(field->arguments)),
               {argument.name.at});
      }
      visit_argument(argument, definition);
    }
    visit(node.directives, "FIELD");
    if (node.selection_set) {
      const NamedType* type = field ? field->type->named : nullptr;
      visit(*node.selection_set, type && type->is_composite() ? type : nullptr, InlineSet::no);
    }
    if (!quiet_ && field) {
      for (const InputValue& argument : field->arguments) {
        if (!argument.is_required() || has_argument(node.arguments, argument.name)) continue;
        report("Field " + quote(field->name) + " argument " + quote(argument.name) + " of type " +
                   quote(argument.type->text) + " is required, but it was not provided.",
               {node.at});
      }
    }
    deep_introspection_ = was_deep;
    field_ = outer;
  }

  void visit_spread(const Selection& node, const NamedType* parent) {
    if (!quiet_) {
      const auto found = fragments_.find(node.name.text);
      if (found == fragments_.end()) {
        report("Unknown fragment " + quote(node.name.text) + ".", {node.name.at});
      } else {
        const NamedType* type = schema_.find(found->second->type_condition.text);
        if (type && type->is_composite() && parent && !types_overlap(*type, *parent)) {
          report("Fragment " + quote(node.name.text) +
                     " cannot be spread here as objects of type " + quote(parent->name) +
                     " can never be of type " + quote(type->name) + ".",
                 {node.at});
        }
      }
      check_unique_directives(node.directives);
    }
    visit(node.directives, "FRAGMENT_SPREAD");
  }

  void visit_inline(const Selection& node, const NamedType* parent) {
    const bool has_condition = !node.type_condition.text.empty();
    const NamedType* type = has_condition ? schema_.find(node.type_condition.text) : parent;
    if (!quiet_) {
      if (has_condition && type && !type->is_composite()) {
        report("Fragment cannot condition on non composite type " + quote(type->name) + ".",
               {node.type_condition.at});
      }
      if (type && type->is_composite() && parent && !types_overlap(*type, *parent)) {
        report("Fragment cannot be spread here as objects of type " + quote(parent->name) +
                   " can never be of type " + quote(type->name) + ".",
               {node.at});
      }
      check_unique_directives(node.directives);
      if (has_condition) check_type_name(node.type_condition);
    }
    visit(node.directives, "INLINE_FRAGMENT");
    visit(*node.selection_set, type && type->is_composite() ? type : nullptr, InlineSet::yes);
  }

  void visit(List<Directive> directives, std::string_view place) {
    for (const Directive& directive : directives) {
      const std::string name = "@" + std::string(directive.name.text);
      const DirectiveDefinition* known = schema_.directive(directive.name.text);
      if (!quiet_) {
        if (!known) {
          report("Unknown directive " + quote(name) + ".", {directive.at});
        } else if (std::ranges::find(known->locations, place) == known->locations.end()) {
          report("Directive " + quote(name) + " may not be used on " + std::string(place) + ".",
                 {directive.at});
        }
        for (const Argument& argument : directive.arguments) {
          if (!known || known->argument(argument.name.text)) continue;
          report("Unknown argument " + quote(argument.name.text) + " on directive " + quote(name) +
                     "." + hint(argument.name.text, names_of(known->arguments)),
                 {argument.name.at});
        }
        check_unique_arguments(directive.arguments);
      }
      for (const Argument& argument : directive.arguments) {
        // The reference takes the arguments of an unknown directive for those of the field.
        const InputValue* definition = known    ? known->argument(argument.name.text)
                                       : field_ ? field_->argument(argument.name.text)
                                                : nullptr;
        visit_argument(argument, definition);
      }
      if (!quiet_ && known) {
        for (const InputValue& argument : known->arguments) {
          if (!argument.is_required() || has_argument(directive.arguments, argument.name)) continue;
          report("Directive " + quote(name) + " argument " + quote(argument.name) + " of type " +
                     quote(argument.type->text) + " is required, but it was not provided.",
                 {directive.at});
        }
      }
    }
  }

  void visit_argument(const Argument& argument, const InputValue* definition) {
    visit(argument.value, definition ? definition->type : nullptr,
          definition && definition->default_value, true);
  }

  // `checked`: false below a value that was refused as a whole.
  void visit(const Literal& literal, const Type* type, bool has_default, bool checked) {
    if (aborted_) return;
    switch (literal.kind) {
      case LiteralKind::variable:
        if (quiet_) usages_->push_back({&literal, type, has_default});
        return;
      case LiteralKind::null:
        if (checked && type && type->is_non_null()) {
          report("Expected value of type " + quote(type->text) + ", found null.", {literal.at});
        }
        return;
      case LiteralKind::list: {
        const bool is_list = type && type->nullable().is_list();
        const Type* item = !type ? nullptr : is_list ? type->nullable().of : &type->nullable();
        if (!is_list && checked) {
          check_value(literal, item);
          checked = false;
        }
        for (const Literal& one : literal.items) visit(one, item, false, checked);
        return;
      }
      case LiteralKind::object:
        visit_object(literal, type, checked);
        return;
      default:
        if (checked) check_value(literal, type);
        return;
    }
  }

  void visit_object(const Literal& literal, const Type* type, bool checked) {
    const NamedType* object = type ? type->named : nullptr;
    if (object && object->kind != TypeKind::input_object) object = nullptr;
    if (checked && !object) {
      check_value(literal, type);
      checked = false;
    } else if (checked) {
      for (const InputValue& input : object->inputs) {
        const bool is_given = std::ranges::any_of(literal.fields, [&](const LiteralField& field) {
          return field.name.text == input.name;
        });
        if (is_given || !input.is_required()) continue;
        report("Field " + quote(std::string(object->name) + "." + std::string(input.name)) +
                   " of required type " + quote(input.type->text) + " was not provided.",
               {literal.at});
      }
    }
    std::unordered_map<std::string_view, std::uint32_t> names;
    for (const LiteralField& field : literal.fields) {
      const InputValue* input = object ? object->input(field.name.text) : nullptr;
      if (checked && !input) {
        report("Field " + quote(field.name.text) + " is not defined by type " +
                   quote(object->name) + "." + hint(field.name.text, names_of(object->inputs)),
               {field.name.at});
      }
      const auto [known, is_new] = names.emplace(field.name.text, field.name.at);
      if (!is_new) {
        report("There can be only one input field named " + quote(field.name.text) + ".",
               {known->second, field.name.at});
      }
      visit(field.value, input ? input->type : nullptr, input && input->default_value, checked);
    }
  }

  void check_value(const Literal& literal, const Type* type) {
    if (!type || quiet_) return;
    if (!type->named->is_leaf()) {
      report("Expected value of type " + quote(type->text) + ", found " + print(literal) + ".",
             {literal.at});
    } else if (auto error = check_leaf_literal(literal, *type->named, options_.hides_names)) {
      report(std::move(error->message), {literal.at});
    }
  }

  void check_operation_name(const Operation& operation) {
    if (operation.name.text.empty()) return;
    const auto [known, is_new] = operation_names_.emplace(operation.name.text, operation.name.at);
    if (is_new) return;
    report("There can be only one operation named " + quote(operation.name.text) + ".",
           {known->second, operation.name.at});
  }

  void check_variable_names(const Operation& operation) {
    std::vector<std::pair<std::string_view, std::vector<std::uint32_t>>> groups;
    for (const VariableDefinition& variable : operation.variables) {
      add_to_group(groups, variable.name);
    }
    for (const auto& [name, places] : groups) {
      if (places.size() > 1) {
        report("There can be only one variable named \"$" + std::string(name) + "\".", places);
      }
    }
  }

  void check_unique_arguments(List<Argument> arguments) {
    std::vector<std::pair<std::string_view, std::vector<std::uint32_t>>> groups;
    for (const Argument& argument : arguments) add_to_group(groups, argument.name);
    for (const auto& [name, places] : groups) {
      if (places.size() > 1) {
        report("There can be only one argument named " + quote(name) + ".", places);
      }
    }
  }

  static void add_to_group(
      std::vector<std::pair<std::string_view, std::vector<std::uint32_t>>>& groups,
      const Name& name) {
    for (auto& [known, places] : groups) {
      if (known == name.text) return places.push_back(name.at);
    }
    groups.push_back({name.text, {name.at}});
  }

  void check_unique_directives(List<Directive> directives) {
    std::unordered_map<std::string_view, std::uint32_t> seen;
    for (const Directive& directive : directives) {
      const DirectiveDefinition* known = schema_.directive(directive.name.text);
      if (!known || known->is_repeatable) continue;
      const auto [first, is_new] = seen.emplace(directive.name.text, directive.at);
      if (is_new) continue;
      report("The directive \"@" + std::string(directive.name.text) +
                 "\" can only be used once at this location.",
             {first->second, directive.at});
    }
  }

  // The fields at the top of a subscription: one, and none of introspection.
  void check_subscription(const Operation& operation, const NamedType& root) {
    std::vector<std::pair<std::string_view, std::vector<const Selection*>>> fields;
    std::unordered_set<std::string_view> visited;
    collect_top(*operation.selection_set, root, fields, visited);
    const std::string who = operation.name.text.empty()
                                ? "Anonymous Subscription"
                                : "Subscription " + quote(operation.name.text);
    if (fields.size() > 1) {
      std::vector<std::uint32_t> places;
      for (std::size_t i = 1; i < fields.size(); ++i) {
        for (const Selection* node : fields[i].second) places.push_back(node->at);
      }
      report(who + " must select only one top level field.", places);
    }
    for (const auto& [key, nodes] : fields) {
      if (!nodes.front()->name.text.starts_with("__")) continue;
      std::vector<std::uint32_t> places;
      for (const Selection* node : nodes) places.push_back(node->at);
      report(who + " must not select an introspection top level field.", places);
    }
  }

  static bool is_left_out(List<Directive> directives) {
    for (const Directive& directive : directives) {
      const bool is_skip = directive.name.text == "skip";
      if (!is_skip && directive.name.text != "include") continue;
      for (const Argument& argument : directive.arguments) {
        if (argument.name.text == "if" && argument.value.kind == LiteralKind::boolean &&
            argument.value.truth == is_skip) {
          return true;
        }
      }
    }
    return false;
  }

  void collect_top(const SelectionSet& set, const NamedType& root,
                   std::vector<std::pair<std::string_view, std::vector<const Selection*>>>& fields,
                   std::unordered_set<std::string_view>& visited) {
    spend(set.selections.size());
    const auto applies = [&](std::string_view condition) {
      const NamedType* type = schema_.find(condition);
      return condition.empty() || (type && (type == &root || type->has_subtype(root)));
    };
    for (const Selection& node : set.selections) {
      if (is_left_out(node.directives) || aborted_) continue;
      if (node.kind == Selection::Kind::field) {
        const auto known = std::ranges::find(fields, node.response_key(),
                                             [](const auto& entry) { return entry.first; });
        if (known != fields.end()) {
          known->second.push_back(&node);
        } else {
          fields.push_back({node.response_key(), {&node}});
        }
      } else if (node.kind == Selection::Kind::inline_fragment) {
        if (applies(node.type_condition.text)) {
          collect_top(*node.selection_set, root, fields, visited);
        }
      } else if (visited.insert(node.name.text).second) {
        const auto found = fragments_.find(node.name.text);
        if (found != fragments_.end() && applies(found->second->type_condition.text)) {
          collect_top(*found->second->selection_set, root, fields, visited);
        }
      }
    }
  }

  void check_type_name(const Name& name) {
    if (schema_.find(name.text)) return;
    std::vector<std::string_view> known;
    for (const NamedType* type : schema_.types()) known.push_back(type->name);
    report("Unknown type " + quote(name.text) + "." + hint(name.text, known), {name.at});
  }

  void check_leaf(const Selection& node, const Field& field) {
    const std::string name(node.name.text);
    const std::string type = quote(field.type->text);
    if (field.type->named->is_leaf()) {
      if (node.selection_set) {
        report("Field " + quote(name) + " must not have a selection since type " + type +
                   " has no subfields.",
               {node.selection_set->at});
      }
    } else if (!node.selection_set) {
      report("Field " + quote(name) + " of type " + type +
                 " must have a selection of subfields. Did you mean \"" + name + " { ... }\"?",
             {node.at});
    }
  }

  void report_unknown_field(const Selection& node, const NamedType& parent) {
    const std::string_view name = node.name.text;
    std::string advice;
    if (!options_.hides_names) {
      advice = did_you_mean(types_with_field(parent, name), "to use an inline fragment on");
      if (advice.empty() && parent.kind != TypeKind::union_type) {
        std::vector<std::string_view> names;
        for (const Field& field : parent.fields) names.push_back(field.name);
        advice = did_you_mean(suggestions(name, names));
      }
    }
    report("Cannot query field " + quote(name) + " on type " + quote(parent.name) + "." + advice,
           {node.at});
  }

  // Types that an object of this abstract type may have and that know the field; those that most
  // possible types share come first.
  static std::vector<std::string_view> types_with_field(const NamedType& parent,
                                                        std::string_view name) {
    struct Candidate {
      const NamedType* type;
      int uses;
    };
    std::vector<Candidate> found;
    const auto count = [&](const NamedType* type) {
      for (Candidate& candidate : found) {
        if (candidate.type == type) return void(++candidate.uses);
      }
      found.push_back({type, 1});
    };
    if (!parent.is_abstract()) return {};
    for (const NamedType* type : parent.possible) {
      if (!type->field(name)) continue;
      count(type);
      for (const NamedType* interface : type->interfaces) {
        if (interface->field(name)) count(interface);
      }
    }
    std::ranges::sort(found, [](const Candidate& a, const Candidate& b) {
      if (a.uses != b.uses) return a.uses > b.uses;
      if (a.type->is_abstract() && a.type->has_subtype(*b.type)) return true;
      if (b.type->is_abstract() && b.type->has_subtype(*a.type)) return false;
      return comes_before(a.type->name, b.type->name);
    });
    std::vector<std::string_view> names;
    for (const Candidate& candidate : found) names.push_back(candidate.type->name);
    return names;
  }

  [[nodiscard]] std::string hint(std::string_view name,
                                 const std::vector<std::string_view>& known) const {
    return options_.hides_names ? "" : did_you_mean(suggestions(name, known));
  }
  static std::vector<std::string_view> names_of(const std::vector<InputValue>& values) {
    std::vector<std::string_view> names;
    for (const InputValue& value : values) names.push_back(value.name);
    return names;
  }
  static bool has_argument(List<Argument> arguments, std::string_view name) {
    return std::ranges::any_of(
        arguments, [&](const Argument& argument) { return argument.name.text == name; });
  }

  // --- Rules that follow fragments ---

  // The spreads in a selection set, without those in fragments; in the order of the reference, which
  // looks into the last nested set first.
  const std::vector<const Selection*>& spreads(const SelectionSet& set) {
    const auto [place, is_new] = spreads_.try_emplace(&set);
    if (!is_new) return place->second;
    std::vector<const SelectionSet*> open{&set};
    while (!open.empty()) {
      const SelectionSet* next = open.back();
      open.pop_back();
      for (const Selection& selection : next->selections) {
        if (selection.kind == Selection::Kind::spread) {
          place->second.push_back(&selection);
        } else if (selection.selection_set) {
          open.push_back(selection.selection_set);
        }
      }
    }
    return place->second;
  }

  // The fragments that these sets reach, themselves or through others.
  std::vector<const Fragment*> reached(const std::vector<const SelectionSet*>& sets) {
    std::vector<std::string_view> names;
    std::unordered_set<std::string_view> known;
    const auto add = [&](const SelectionSet& set) {
      for (const Selection* spread : spreads(set)) {
        if (known.insert(spread->name.text).second) names.push_back(spread->name.text);
      }
    };
    for (const SelectionSet* set : sets) add(*set);
    spend(names.size());
    std::vector<const Fragment*> fragments;
    for (std::size_t i = 0; i < names.size() && !aborted_; ++i) {
      const auto found = fragments_.find(names[i]);
      if (found == fragments_.end()) continue;
      fragments.push_back(found->second);
      spend(spreads(*found->second->selection_set).size());
      add(*found->second->selection_set);
    }
    return fragments;
  }

  void check_unused_fragments() {
    std::vector<const SelectionSet*> sets;
    for (const Definition& definition : document_.definitions()) {
      if (definition.operation) sets.push_back(definition.operation->selection_set);
    }
    std::unordered_set<std::string_view> used;
    for (const Fragment* fragment : reached(sets)) used.insert(fragment->name.text);
    for (const Definition& definition : document_.definitions()) {
      const Fragment* fragment = definition.fragment;
      if (!fragment || used.contains(fragment->name.text)) continue;
      report("Fragment " + quote(fragment->name.text) + " is never used.", {fragment->at});
    }
  }

  void find_cycles(const Fragment& fragment) {
    const std::string_view name = fragment.name.text;
    if (!searched_.insert(name).second) return;
    const auto& inside = spreads(*fragment.selection_set);
    if (inside.empty()) return;
    path_index_[name] = path_.size();
    for (const Selection* spread : inside) {
      if (aborted_) break;
      path_.push_back(spread);
      const auto open = path_index_.find(spread->name.text);
      if (open == path_index_.end()) {
        const auto found = fragments_.find(spread->name.text);
        if (found != fragments_.end()) find_cycles(*found->second);
      } else {
        std::string via;
        std::vector<std::uint32_t> places;
        for (std::size_t i = open->second; i < path_.size(); ++i) {
          places.push_back(path_[i]->at);
          if (i + 1 == path_.size()) continue;
          via += (via.empty() ? "" : ", ") + quote(path_[i]->name.text);
        }
        report("Cannot spread fragment " + quote(spread->name.text) + " within itself" +
                   (via.empty() ? "." : " via " + via + "."),
               places);
      }
      path_.pop_back();
    }
    path_index_.erase(name);
  }

  void check_variables(const Operation& operation) {
    std::vector<const Usage*> usages;
    const auto add = [&](const void* definition) {
      const auto& own = usages_of_[definition];
      spend(own.size());
      for (const Usage& usage : own) usages.push_back(&usage);
    };
    add(&operation);
    for (const Fragment* fragment : reached({operation.selection_set})) {
      if (!aborted_) add(fragment);
    }
    if (aborted_) return;
    std::unordered_map<std::string_view, const VariableDefinition*> defined;
    for (const VariableDefinition& variable : operation.variables) {
      defined[variable.name.text] = &variable;
    }
    const std::string by =
        operation.name.text.empty() ? "" : " by operation " + quote(operation.name.text);
    std::unordered_set<std::string_view> used;
    for (const Usage* usage : usages) {
      used.insert(usage->variable->text);
      if (defined.contains(usage->variable->text)) continue;
      report("Variable \"$" + std::string(usage->variable->text) + "\" is not defined" + by + ".",
             {usage->variable->at, operation.at});
    }
    if (!is_lenient()) {
      for (const VariableDefinition& variable : operation.variables) {
        if (used.contains(variable.name.text)) continue;
        report("Variable \"$" + std::string(variable.name.text) + "\" is never used" +
                   (by.empty() ? "" : " in operation " + quote(operation.name.text)) + ".",
               {variable.at});
      }
    }
    for (const Usage* usage : usages) {
      const auto found = defined.find(usage->variable->text);
      if (found == defined.end() || !usage->type) continue;
      const VariableDefinition& variable = *found->second;
      const Type* type = schema_.resolve(*variable.type, arena_);
      if (!type || may_stand(*type, variable.default_value, *usage)) continue;
      report("Variable \"$" + std::string(variable.name.text) + "\" of type " + quote(type->text) +
                 " used in position expecting type " + quote(usage->type->text) + ".",
             {variable.at, usage->variable->at});
    }
  }

  [[nodiscard]] bool may_stand(const Type& type, const Literal* default_value,
                               const Usage& usage) const {
    if (usage.type->is_non_null() && !type.is_non_null()) {
      const bool has_value = default_value && default_value->kind != LiteralKind::null;
      if (!has_value && !usage.has_default && !is_lenient()) return false;
      return is_subtype(type, *usage.type->of);
    }
    return is_subtype(type, *usage.type);
  }

  // --- Depth of introspection ---

  void check_introspection_depth(const Selection& node) {
    if (deep_introspection_ || (node.name.text != "__schema" && node.name.text != "__type")) return;
    std::unordered_map<std::string_view, int> visited;
    if (!is_too_deep(node, visited, 0)) return;
    report("Maximum introspection depth exceeded", {node.at});
    deep_introspection_ = true;  // what is inside is not looked at again
  }

  // True when more than two lists of the schema lie within each other.
  bool is_too_deep(const Selection& node, std::unordered_map<std::string_view, int>& visited,
                   int depth) {
    if (node.kind == Selection::Kind::spread) {
      const std::string_view name = node.name.text;
      const auto known = visited.find(name);
      if (known != visited.end() && known->second >= depth) return false;
      const auto found = fragments_.find(name);
      if (found == fragments_.end()) return false;
      visited[name] = depth;
      return any_too_deep(*found->second->selection_set, visited, depth);
    }
    static constexpr std::array<std::string_view, 4> kLists{"fields", "interfaces", "possibleTypes",
                                                            "inputFields"};
    static constexpr int kMaxLists = 3;
    if (node.kind == Selection::Kind::field &&
        std::ranges::find(kLists, node.name.text) != kLists.end() && ++depth >= kMaxLists) {
      return true;
    }
    return node.selection_set && any_too_deep(*node.selection_set, visited, depth);
  }
  bool any_too_deep(const SelectionSet& set, std::unordered_map<std::string_view, int>& visited,
                    int depth) {
    return std::ranges::any_of(
        set.selections, [&](const Selection& child) { return is_too_deep(child, visited, depth); });
  }

  const Schema& schema_;
  const Document& document_;
  ValidationOptions options_;
  Arena arena_{1024};
  FieldMerge merge_;
  std::vector<ResponseError> errors_;
  bool aborted_ = false;
  bool quiet_ = false;  // collects the uses of variables, reports nothing
  long work_ = kFragmentWork;

  std::unordered_map<std::string_view, const Fragment*> fragments_;
  std::size_t operations_ = 0;
  const Field* field_ = nullptr;  // the innermost one around
  bool deep_introspection_ = false;
  std::unordered_map<const void*, std::vector<Usage>> usages_of_;  // by operation or fragment
  std::vector<Usage>* usages_ = nullptr;

  std::unordered_map<std::string_view, std::uint32_t> operation_names_;
  std::unordered_map<std::string_view, std::uint32_t> fragment_names_;
  std::unordered_map<const SelectionSet*, std::vector<const Selection*>> spreads_;
  std::unordered_set<std::string_view> searched_;  // for cycles
  std::vector<const Selection*> path_;
  std::unordered_map<std::string_view, std::size_t> path_index_;
};

}  // namespace

std::vector<ResponseError> validate(const Schema& schema, const Document& document,
                                    const ValidationOptions& options) {
  return Validator(schema, document, options).run();
}

}  // namespace gitops::graphql
