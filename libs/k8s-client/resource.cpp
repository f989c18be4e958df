#include "k8s-client/resource.hpp"

#include "common/core/encoding.hpp"

namespace gitops::k8s {

namespace resources {
const Resource kApplications{"argoproj.io", "v1alpha1", "applications", "Application", true};
const Resource kRollouts{"argoproj.io", "v1alpha1", "rollouts", "Rollout", true};
const Resource kAnalysisRuns{"argoproj.io", "v1alpha1", "analysisruns", "AnalysisRun", true};
const Resource kWorkflows{"argoproj.io", "v1alpha1", "workflows", "Workflow", true};
const Resource kConfigMaps{"", "v1", "configmaps", "ConfigMap", true};
const Resource kSecrets{"", "v1", "secrets", "Secret", true};
const Resource kPods{"", "v1", "pods", "Pod", true};
const Resource kNamespaces{"", "v1", "namespaces", "Namespace", false};
const Resource kServiceAccounts{"", "v1", "serviceaccounts", "ServiceAccount", true};
const Resource kDeployments{"apps", "v1", "deployments", "Deployment", true};
const Resource kReplicaSets{"apps", "v1", "replicasets", "ReplicaSet", true};
const Resource kLeases{"coordination.k8s.io", "v1", "leases", "Lease", true};
const Resource kSelfSubjectAccessReviews{"authorization.k8s.io", "v1", "selfsubjectaccessreviews",
                                         "SelfSubjectAccessReview", false};
const Resource kSelfSubjectReviews{"authentication.k8s.io", "v1", "selfsubjectreviews",
                                   "SelfSubjectReview", false};
}  // namespace resources

std::string Resource::api_version() const {
  return group.empty() ? version : group + "/" + version;
}

std::string Resource::full_name() const {
  return group.empty() ? plural : plural + "." + group;
}

std::string ObjectKey::to_string() const {
  return ns.empty() ? name : ns + "/" + name;
}

std::string group_version_path(const Resource& resource) {
  return (resource.group.empty() ? "/api" : "/apis/" + percent_encode(resource.group)) + "/" +
         percent_encode(resource.version);
}

std::string collection_path(const Resource& resource, std::string_view ns) {
  std::string path = group_version_path(resource);
  if (resource.namespaced && !ns.empty()) path += "/namespaces/" + percent_encode(ns);
  return path + "/" + percent_encode(resource.plural);
}

std::string object_path(const Resource& resource, const ObjectKey& key,
                        std::string_view subresource) {
  std::string path = collection_path(resource, key.ns) + "/" + percent_encode(key.name);
  if (!subresource.empty()) path += "/" + percent_encode(subresource);
  return path;
}

}  // namespace gitops::k8s
