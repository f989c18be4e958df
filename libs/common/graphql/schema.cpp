#include "common/graphql/schema.hpp"

#include <algorithm>

namespace gitops::graphql {
namespace {

template <class T>
const T* named(const std::vector<T>& items, std::string_view name) {
  for (const T& item : items) {
    if (item.name == name) return &item;
  }
  return nullptr;
}

}  // namespace

const InputValue* Field::argument(std::string_view wanted) const {
  return named(arguments, wanted);
}
const InputValue* DirectiveDefinition::argument(std::string_view wanted) const {
  return named(arguments, wanted);
}
const Field* NamedType::field(std::string_view field_name) const {
  const auto found = field_index.find(field_name);
  return found == field_index.end() ? nullptr : &fields[found->second];
}
const InputValue* NamedType::input(std::string_view input_name) const {
  return named(inputs, input_name);
}
const EnumValue* NamedType::value(std::string_view value_name) const {
  return named(values, value_name);
}
bool NamedType::has_subtype(const NamedType& other) const {
  return std::ranges::find(subtypes, &other) != subtypes.end();
}

bool same_type(const Type& a, const Type& b) {
  if (a.wrap != b.wrap) return false;
  return a.wrap == Type::Wrap::named ? a.named == b.named : same_type(*a.of, *b.of);
}

bool is_subtype(const Type& type, const Type& expected) {
  if (expected.is_non_null()) return type.is_non_null() && is_subtype(*type.of, *expected.of);
  if (type.is_non_null()) return is_subtype(*type.of, expected);
  if (expected.is_list()) return type.is_list() && is_subtype(*type.of, *expected.of);
  if (type.is_list()) return false;
  return type.named == expected.named ||
         (expected.named->is_abstract() && expected.named->has_subtype(*type.named));
}

bool types_overlap(const NamedType& a, const NamedType& b) {
  if (&a == &b) return true;
  if (a.is_abstract() && b.is_abstract()) {
    return std::ranges::any_of(a.possible,
                               [&](const NamedType* type) { return b.has_subtype(*type); });
  }
  if (a.is_abstract()) return a.has_subtype(b);
  return b.is_abstract() && b.has_subtype(a);
}

const NamedType* Schema::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

const DirectiveDefinition* Schema::directive(std::string_view name) const {
  return named(directives_, name);
}

const NamedType* Schema::root(OperationKind kind) const {
  return kind == OperationKind::query      ? query_
         : kind == OperationKind::mutation ? mutation_
                                           : subscription_;
}

const Field* Schema::field_of(const NamedType& parent, std::string_view name) const {
  if (name.starts_with("__")) {
    if (&parent == query_ && name == "__schema") return &schema_field_;
    if (&parent == query_ && name == "__type") return &type_field_;
    if (parent.is_composite() && name == "__typename") return &typename_field_;
  }
  return parent.field(name);
}

const Type* Schema::resolve(const TypeNode& node, Arena& arena) const {
  if (node.form == TypeNode::Form::named) {
    const NamedType* type = find(node.name);
    return type ? &type->self : nullptr;
  }
  const Type* of = resolve(*node.of, arena);
  if (!of) return nullptr;
  const bool is_list = node.form == TypeNode::Form::list;
  std::string text;
  if (is_list) text += '[';
  text += of->text;
  text += is_list ? ']' : '!';
  return arena.make(Type{.wrap = is_list ? Type::Wrap::list : Type::Wrap::non_null,
                         .named = of->named,
                         .of = of,
                         .text = arena.copy(text)});
}

}  // namespace gitops::graphql
