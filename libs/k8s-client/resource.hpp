#pragma once

#include <compare>
#include <string>
#include <string_view>

namespace gitops::k8s {

// A resource type as the API names it.
struct Resource {
  std::string group;  // empty for the core group
  std::string version;
  std::string plural;
  std::string kind;
  bool namespaced = true;

  [[nodiscard]] std::string api_version() const;  // "apps/v1", "v1"
  [[nodiscard]] std::string full_name() const;    // "deployments.apps", "pods"; for messages
};

// The resource types that this project uses.
namespace resources {
extern const Resource kApplications;  // argoproj.io/v1alpha1
extern const Resource kRollouts;
extern const Resource kAnalysisRuns;
extern const Resource kWorkflows;
extern const Resource kConfigMaps;
extern const Resource kSecrets;
extern const Resource kPods;
extern const Resource kNamespaces;
extern const Resource kServiceAccounts;
extern const Resource kDeployments;
extern const Resource kReplicaSets;
extern const Resource kLeases;
extern const Resource kSelfSubjectAccessReviews;
extern const Resource kSelfSubjectReviews;  // Kubernetes 1.28+
}  // namespace resources

// Names one object; namespace is empty for cluster-scoped ones.
struct ObjectKey {
  std::string ns;
  std::string name;

  auto operator<=>(const ObjectKey&) const = default;
  // Returns "namespace/name", or "name".
  [[nodiscard]] std::string to_string() const;
};

// Returns "/apis/apps/v1" or "/api/v1".
std::string group_version_path(const Resource& resource);
// Returns "/apis/apps/v1/namespaces/shop/deployments"; an empty namespace means all of them.
// Segments are percent-encoded.
std::string collection_path(const Resource& resource, std::string_view ns);
std::string object_path(const Resource& resource, const ObjectKey& key,
                        std::string_view subresource = {});

}  // namespace gitops::k8s
