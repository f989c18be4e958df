#include "event-reporter/event/argo_answers.hpp"

#include <algorithm>
#include <initializer_list>
#include <unordered_set>
#include <utility>

#include "event-reporter/event/manifest.hpp"
#include "event-reporter/ledger/resource_id.hpp"

namespace gitops::reporter {
namespace {

std::string_view state(JsonView value) {
  const auto text = value.text();
  return text == "null" ? std::string_view{} : text;
}

// Returns whether the response has that list, or none of its members, since Argo CD leaves empty
// lists out.
bool has_list(JsonView answer, std::string_view list, std::initializer_list<const char*> others) {
  if (answer[list].exists()) return answer[list].is_array();
  return answer.members().size() == 0 ||
         std::ranges::any_of(others, [&](const char* other) { return answer[other].exists(); });
}

}  // namespace

Result<bool> TreeView::read(std::string_view answer) {
  auto parsed = document_.parse(answer, "the answer of resource-tree");
  if (!parsed) return std::unexpected(parsed.error());
  if (!has_list(*parsed, "nodes", {"orphanedNodes", "hosts", "shardsCount"})) {
    return Result<bool>(false);
  }
  for (const auto node : (*parsed)["nodes"].items()) {
    const auto index = nodes_.size();
    nodes_.push_back(node);
    by_identity_.try_emplace(identity_of(node), index);
    for (const auto parent : node["parentRefs"].items()) {
      children_[identity_of(parent)].push_back(index);
    }
  }
  return Result<bool>(true);
}

JsonView TreeView::find(const std::string& identity) const {
  const auto found = by_identity_.find(identity);
  return found == by_identity_.end() ? JsonView{} : nodes_[found->second];
}

std::vector<JsonView> TreeView::descendants(const std::string& identity) const {
  std::vector<JsonView> out;
  std::vector<std::string> frontier{identity};
  std::unordered_set<std::string> seen{identity};
  for (std::size_t i = 0; i < frontier.size(); ++i) {
    const auto found = children_.find(frontier[i]);
    if (found == children_.end()) continue;
    for (const auto index : found->second) {
      auto below = identity_of(nodes_[index]);
      if (!seen.insert(below).second) continue;
      out.push_back(nodes_[index]);
      frontier.push_back(std::move(below));
    }
  }
  return out;
}

Result<bool> ManagedView::read(std::string_view answer) {
  auto parsed = document_.parse(answer, "the answer of managed-resources");
  if (!parsed) return std::unexpected(parsed.error());
  if (!has_list(*parsed, "items", {})) return Result<bool>(false);
  for (const auto item : (*parsed)["items"].items()) {
    const auto [added, first] = by_identity_.try_emplace(identity_of(item));
    if (!first) continue;
    auto& states = added->second;
    states = {.desired = state(item["targetState"]), .live = state(item["liveState"])};
    if (item["group"].text().empty() && item["kind"].text() == "Secret") {
      states = {.desired = masked(states.desired), .live = masked(states.live)};
    }
  }
  return Result<bool>(true);
}

std::string_view ManagedView::masked(std::string_view manifest) {
  return masked_.emplace_back(mask_secret(manifest));
}

std::optional<ManagedView::States> ManagedView::find(const std::string& identity) const {
  const auto found = by_identity_.find(identity);
  return found == by_identity_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace gitops::reporter
