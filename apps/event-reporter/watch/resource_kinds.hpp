#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "event-reporter/watch/milestone.hpp"
#include "k8s-client/record.hpp"
#include "k8s-client/resource.hpp"

namespace gitops::reporter {

// A kind of object that mode `resource` reports.
struct ResourceKind {
  std::string name;  // in settings, keys of the ledger, metrics and events' ids
  k8s::Resource resource;
  // On the runtime's own cluster: in every namespace, or where the runtime is (and in namespaces
  // that are configured). Managed clusters have only those of every namespace.
  enum class Home { everywhere, runtime } home = Home::everywhere;
  // Only objects that one of this kind (argoproj.io) owns are reported; empty: all.
  std::string owner;
  // Paths of fields. Two states of an object with the same values in `state` are one milestone, and
  // of milestones with the same `operation` the newest counts when not all can be reported.
  std::vector<std::string> operation;
  std::vector<std::string> state;
};

// One row per kind; in the order in which they are listed for people.
const std::vector<ResourceKind>& resource_kinds();
// Null when there is no such row.
const ResourceKind* find_kind(std::string_view name);

// What a watch of the kind keeps of each object, for the functions below.
k8s::FieldSet fields_of(const ResourceKind& kind);
[[nodiscard]] Milestone milestone_of(const ResourceKind& kind, const k8s::Record& record);
// Whether the object has the owner that its kind asks for.
[[nodiscard]] bool has_owner(const ResourceKind& kind, const k8s::Record& record);

// Names one reported object among those of all clusters; its text is the ledger's key:
// <cluster>/<kind>/<namespace>/<name>, each percent-encoded, so that no two have the same.
struct ResourceKey {
  std::string cluster;  // kOwnCluster, or the URL of a managed cluster's API server
  std::string kind;     // ResourceKind::name
  k8s::ObjectKey object;

  bool operator==(const ResourceKey&) const = default;
  [[nodiscard]] std::string to_string() const;
};
inline constexpr std::string_view kOwnCluster = "in-cluster";

// A key of a kind that has no row any more, or of something else, reads as one without a kind.
ResourceKey parse_resource_key(std::string_view text);

}  // namespace gitops::reporter
