#include <algorithm>
#include <string>
#include <utility>

#include "common/graphql/rules/names.hpp"
#include "common/graphql/rules/rules.hpp"

// Section 5.2.3.1, "Single Root Field": a subscription selects one field at the top, and none of
// introspection.
namespace gitops::graphql::rules {
namespace {

// Collects the top-level fields of a subscription by response key, in order.
class RootFields {
 public:
  RootFields(ValidationContext& context, const NamedType& root) : context_(context), root_(root) {}

  void collect(const SelectionSet& set) {
    context_.spend(set.selections.size());
    for (const Selection& node : set.selections) {
      if (is_left_out(node.directives) || context_.aborted()) continue;
      if (node.kind == Selection::Kind::field) {
        add(node);
      } else if (node.kind == Selection::Kind::inline_fragment) {
        if (applies(node.type_condition.text)) collect(*node.selection_set);
      } else if (visited_.insert(node.name.text).second) {
        const Fragment* fragment = context_.fragment(node.name.text);
        if (fragment && applies(fragment->type_condition.text)) collect(*fragment->selection_set);
      }
    }
  }

  [[nodiscard]] const auto& groups() const { return groups_; }

 private:
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

  [[nodiscard]] bool applies(std::string_view condition) const {
    const NamedType* type = context_.schema().find(condition);
    return condition.empty() || (type && (type == &root_ || type->has_subtype(root_)));
  }

  void add(const Selection& node) {
    const auto known = std::ranges::find(groups_, node.response_key(),
                                         [](const auto& group) { return group.first; });
    if (known != groups_.end()) {
      known->second.push_back(&node);
    } else {
      groups_.push_back({node.response_key(), {&node}});
    }
  }

  ValidationContext& context_;
  const NamedType& root_;
  std::vector<std::pair<std::string_view, std::vector<const Selection*>>> groups_;
  std::unordered_set<std::string_view> visited_;  // fragments
};

}  // namespace

void single_root_field(ValidationContext& context, const Operation& operation,
                       const NamedType* root) {
  if (operation.kind != OperationKind::subscription || !root) return;
  RootFields fields(context, *root);
  fields.collect(*operation.selection_set);
  const std::string who = operation.name.text.empty()
                              ? "Anonymous Subscription"
                              : "Subscription " + quote(operation.name.text);
  const auto& groups = fields.groups();
  if (groups.size() > 1) {
    std::vector<std::uint32_t> places;
    for (std::size_t i = 1; i < groups.size(); ++i) {
      for (const Selection* node : groups[i].second) places.push_back(node->at);
    }
    context.report(who + " must select only one top level field.", places);
  }
  for (const auto& [key, nodes] : groups) {
    if (!nodes.front()->name.text.starts_with("__")) continue;
    std::vector<std::uint32_t> places;
    for (const Selection* node : nodes) places.push_back(node->at);
    context.report(who + " must not select an introspection top level field.", places);
  }
}

}  // namespace gitops::graphql::rules
