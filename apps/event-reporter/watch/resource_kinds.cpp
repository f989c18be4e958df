#include "event-reporter/watch/resource_kinds.hpp"

#include <algorithm>
#include <array>
#include <functional>

#include "common/core/encoding.hpp"
#include "common/core/json_text.hpp"

namespace gitops::reporter {
namespace {

constexpr const char* kOwners = "metadata.ownerReferences";
constexpr const char* kRevision = R"(metadata.annotations.rollout\.argoproj\.io/revision)";

// Returns the index of the record's first field of `operation`.
std::size_t first_path(const ResourceKind& kind) {
  return kind.owner.empty() ? 0 : 1;
}

std::size_t hash_fields(const k8s::Record& record, std::size_t first, std::size_t count) {
  std::string text;
  for (std::size_t i = first; i < first + count; ++i) {
    text += record.field(i).value_or("");
    text += '\n';
  }
  return std::hash<std::string>()(text);
}

}  // namespace

const std::vector<ResourceKind>& resource_kinds() {
  using Home = ResourceKind::Home;
  namespace r = k8s::resources;
  static const std::vector<ResourceKind> kinds{
      {.name = "rollouts",
       .resource = r::kRollouts,
       .home = Home::everywhere,
       .owner = {},
       .operation = {kRevision},
       .state = {"status.phase", "status.currentPodHash", "status.stableRS",
                 "status.currentStepIndex", "status.abort", "status.pauseConditions"}},
      {.name = "analysisruns",
       .resource = r::kAnalysisRuns,
       .home = Home::everywhere,
       .owner = {},
       .operation = {},
       .state = {"status.phase"}},
      {.name = "replicasets",
       .resource = r::kReplicaSets,
       .home = Home::everywhere,
       .owner = "Rollout",
       .operation = {kRevision},
       .state = {"spec.replicas", "status.availableReplicas"}},
      {.name = "workflows",
       .resource = r::kWorkflows,
       .home = Home::runtime,
       .owner = {},
       .operation = {"status.startedAt"},
       .state = {"status.phase", "spec.suspend", "spec.shutdown"}},
  };
  return kinds;
}

const ResourceKind* find_kind(std::string_view name) {
  const auto found = std::ranges::find(resource_kinds(), name, &ResourceKind::name);
  return found == resource_kinds().end() ? nullptr : &*found;
}

k8s::FieldSet fields_of(const ResourceKind& kind) {
  std::vector<std::string> paths;
  if (!kind.owner.empty()) paths.emplace_back(kOwners);
  paths.insert(paths.end(), kind.operation.begin(), kind.operation.end());
  paths.insert(paths.end(), kind.state.begin(), kind.state.end());
  return k8s::FieldSet(std::move(paths));
}

Milestone milestone_of(const ResourceKind& kind, const k8s::Record& record) {
  const auto first = first_path(kind);
  return {.operation = hash_fields(record, first, kind.operation.size()),
          .state = hash_fields(record, first, kind.operation.size() + kind.state.size())};
}

bool has_owner(const ResourceKind& kind, const k8s::Record& record) {
  if (kind.owner.empty()) return true;
  const auto owners = record.field(0);
  if (!owners) return false;
  JsonParser parser;
  const auto list = parser.parse(*owners, "owners");
  if (!list) return false;
  return std::ranges::any_of(list->items(), [&kind](JsonView owner) {
    return owner["kind"].text() == kind.owner &&
           owner["apiVersion"].text().starts_with("argoproj.io/");
  });
}

std::string ResourceKey::to_string() const {
  return percent_encode(cluster) + "/" + percent_encode(kind) + "/" + percent_encode(object.ns) +
         "/" + percent_encode(object.name);
}

ResourceKey parse_resource_key(std::string_view text) {
  std::array<std::string, 4> parts;
  for (auto& part : parts) {
    const auto end = std::min(text.find('/'), text.size());
    auto decoded = percent_decode(text.substr(0, end));
    const bool last = &part == &parts.back();
    if (!decoded || (end == text.size()) != last) return {};
    part = std::move(*decoded);
    text.remove_prefix(last ? end : end + 1);
  }
  if (find_kind(parts[1]) == nullptr) return {};
  return {.cluster = std::move(parts[0]),
          .kind = std::move(parts[1]),
          .object = {.ns = std::move(parts[2]), .name = std::move(parts[3])}};
}

}  // namespace gitops::reporter
