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
  std::string name;  // in settings, keys of the ledger, metrics and event ids
  k8s::Resource resource;
  // The namespaces on the runtime's own cluster: all of them, or the runtime's and those of the
  // settings. On managed clusters only kinds of `everywhere` are watched.
  enum class Home { everywhere, runtime } home = Home::everywhere;
  // Only objects with an owner of this kind (argoproj.io) are reported; empty: all objects.
  std::string owner;
  // Paths of the fields that make up a Milestone.
  std::vector<std::string> operation;
  std::vector<std::string> state;
};

// One row per kind, in the order of lists for people.
const std::vector<ResourceKind>& resource_kinds();
// Null when there is no such kind.
const ResourceKind* find_kind(std::string_view name);

// The fields that a watch of the kind keeps of each object, for the functions below.
k8s::FieldSet fields_of(const ResourceKind& kind);
[[nodiscard]] Milestone milestone_of(const ResourceKind& kind, const k8s::Record& record);
// Whether the object has an owner of the kind's `owner`; true for kinds without one.
[[nodiscard]] bool has_owner(const ResourceKind& kind, const k8s::Record& record);

// Identifies one reported object among all clusters. Its text is the key in the ledger:
// <cluster>/<kind>/<namespace>/<name>, each part percent-encoded.
struct ResourceKey {
  std::string cluster;  // kOwnCluster, or the URL of a managed cluster's API server
  std::string kind;     // ResourceKind::name
  k8s::ObjectKey object;

  bool operator==(const ResourceKey&) const = default;
  [[nodiscard]] std::string to_string() const;
};
inline constexpr std::string_view kOwnCluster = "in-cluster";

// The kind is empty when the text is not a key of a known kind.
ResourceKey parse_resource_key(std::string_view text);

}  // namespace gitops::reporter
