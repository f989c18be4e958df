#include <algorithm>
#include <array>

#include "common/graphql/rules/rules.hpp"

// MaxIntrospectionDepthRule of the reference implementation: limits nested lists of the schema to
// two levels.
namespace gitops::graphql::rules {
namespace {

constexpr int kMaxLists = 3;

// Search below one field. `visited` maps fragments to the depth at which they were entered.
class DepthSearch {
 public:
  explicit DepthSearch(const ValidationContext& context) : context_(context) {}

  // Returns whether kMaxLists lists of the schema are nested.
  bool is_too_deep(const Selection& node, int depth) {
    if (node.kind == Selection::Kind::spread) {
      const std::string_view name = node.name.text;
      const auto known = visited_.find(name);
      if (known != visited_.end() && known->second >= depth) return false;
      const Fragment* fragment = context_.fragment(name);
      if (!fragment) return false;
      visited_[name] = depth;
      return any_too_deep(*fragment->selection_set, depth);
    }
    static constexpr std::array<std::string_view, 4> kLists{"fields", "interfaces", "possibleTypes",
                                                            "inputFields"};
    if (node.kind == Selection::Kind::field &&
        std::ranges::find(kLists, node.name.text) != kLists.end() && ++depth >= kMaxLists) {
      return true;
    }
    return node.selection_set && any_too_deep(*node.selection_set, depth);
  }

 private:
  bool any_too_deep(const SelectionSet& set, int depth) {
    return std::ranges::any_of(set.selections,
                               [&](const Selection& child) { return is_too_deep(child, depth); });
  }

  const ValidationContext& context_;
  std::unordered_map<std::string_view, int> visited_;
};

}  // namespace

void IntrospectionDepth::enter(ValidationContext& context, const Selection& field) {
  if (reported_ || (field.name.text != "__schema" && field.name.text != "__type")) return;
  if (!DepthSearch(context).is_too_deep(field, 0)) return;
  context.report("Maximum introspection depth exceeded", {field.at});
  reported_ = &field;
}

void IntrospectionDepth::leave(const Selection& field) {
  if (reported_ == &field) reported_ = nullptr;
}

}  // namespace gitops::graphql::rules
