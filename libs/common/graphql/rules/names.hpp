#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/graphql/ast.hpp"
#include "common/graphql/schema.hpp"

// Names in messages, and checks of unique names.
namespace gitops::graphql::rules {

inline std::string quote(std::string_view name) {
  return "\"" + std::string(name) + "\"";
}

inline std::vector<std::string_view> names_of(const std::vector<InputValue>& values) {
  std::vector<std::string_view> names;
  for (const InputValue& value : values) names.push_back(value.name);
  return names;
}

struct RepeatedName {
  std::string_view text;
  std::vector<std::uint32_t> places;
};

// Returns the names that a list contains more than once, each with all of its places, in the order
// of the list.
template <class Node>
std::vector<RepeatedName> repeated_names(List<Node> nodes) {
  if (nodes.size() < 2) return {};
  std::vector<RepeatedName> groups;
  for (const Node& node : nodes) {
    const auto known = std::ranges::find(groups, node.name.text, &RepeatedName::text);
    if (known == groups.end()) {
      groups.push_back({node.name.text, {node.name.at}});
    } else {
      known->places.push_back(node.name.at);
    }
  }
  std::erase_if(groups, [](const RepeatedName& group) { return group.places.size() == 1; });
  return groups;
}

}  // namespace gitops::graphql::rules
