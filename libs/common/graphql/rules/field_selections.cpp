#include <algorithm>
#include <string>

#include "common/graphql/print.hpp"
#include "common/graphql/rules/names.hpp"
#include "common/graphql/rules/rules.hpp"

// Section 5.3.1, "Field Selections": a field is one of the type that it is selected on.
namespace gitops::graphql::rules {
namespace {

// Returns types that have the field and that an object of this abstract type may have; those that
// most possible types share come first.
std::vector<std::string_view> types_with_field(const NamedType& parent, std::string_view name) {
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

}  // namespace

void field_selections(ValidationContext& context, const Selection& node, const Field* field,
                      const NamedType* parent) {
  if (field || !parent) return;
  const std::string_view name = node.name.text;
  std::string advice;
  if (!context.hides_names()) {
    advice = did_you_mean(types_with_field(*parent, name), "to use an inline fragment on");
    if (advice.empty() && parent->kind != TypeKind::union_type) {
      std::vector<std::string_view> names;
      for (const Field& one : parent->fields) names.push_back(one.name);
      advice = did_you_mean(suggestions(name, names));
    }
  }
  context.report(
      "Cannot query field " + quote(name) + " on type " + quote(parent->name) + "." + advice,
      {node.at});
}

}  // namespace gitops::graphql::rules
