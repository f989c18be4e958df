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
  std::string name;  // used in settings, keys of the ledger, metrics and event ids
  k8s::Resource resource;
  // The namespaces on the runtime's own cluster: all of them, or the runtime's and those of the
  // settings. Only kinds of `everywhere` are watched on managed clusters.
  enum class Home { everywhere, runtime } home = Home::everywhere;
  // The kind (argoproj.io) of the owner that reported objects must have; empty: all objects are
  // reported.
  std::string owner;
  // Paths of the fields that make up a Milestone.
  std::vector<std::string> operation;
  std::vector<std::string> state;
};

// Returns one row per kind, in the order of lists for people.
const std::vector<ResourceKind>& resource_kinds();
// Returns the kind; null when there is no such kind.
const ResourceKind* find_kind(std::string_view name);

// Returns the fields that a watch of the kind keeps of each object, for the functions below.
k8s::FieldSet fields_of(const ResourceKind& kind);
[[nodiscard]] Milestone milestone_of(const ResourceKind& kind, const k8s::Record& record);
// Returns whether the object has an owner of the kind's `owner`; true for kinds without one.
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

// Parses a key; the kind is empty when the text is not a key of a known kind.
ResourceKey parse_resource_key(std::string_view text);

}  // namespace gitops::reporter
