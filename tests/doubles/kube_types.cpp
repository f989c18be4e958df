#include "doubles/kube_types.hpp"

#include <map>

namespace gitops::test {

std::string KubeType::id() const {
  return resource.group.empty() ? resource.plural : resource.plural + "." + resource.group;
}

const std::vector<KubeType>& known_kube_types() {
  using k8s::Resource;
  namespace r = k8s::resources;
  static const std::vector<KubeType> types{
      {r::kNamespaces, true, false},
      {r::kConfigMaps, false, false},
      {r::kSecrets, false, false},
      {r::kServiceAccounts, false, false},
      {r::kPods, true, false},
      {Resource{"", "v1", "events", "Event", true}, false, false},
      {Resource{"", "v1", "services", "Service", true}, true, false},
      {r::kDeployments, true, false},
      {Resource{"apps", "v1", "statefulsets", "StatefulSet", true}, true, false},
      {r::kReplicaSets, true, false},
      {Resource{"batch", "v1", "jobs", "Job", true}, true, false},
      {r::kLeases, false, false},
      {Resource{"apiextensions.k8s.io", "v1", "customresourcedefinitions",
                "CustomResourceDefinition", false},
       true, false},
      {r::kApplications, false, true},
      {Resource{"argoproj.io", "v1alpha1", "appprojects", "AppProject", true}, false, true},
  };
  return types;
}

std::vector<std::string> short_names(const std::string& plural) {
  static const std::map<std::string, std::string> names{
      {"namespaces", "ns"},    {"configmaps", "cm"},       {"serviceaccounts", "sa"},
      {"pods", "po"},          {"services", "svc"},        {"deployments", "deploy"},
      {"statefulsets", "sts"}, {"replicasets", "rs"},      {"customresourcedefinitions", "crd"},
      {"applications", "app"}, {"appprojects", "appproj"}, {"events", "ev"}};
  const auto found = names.find(plural);
  if (found == names.end()) return {};
  return {found->second};
}

}  // namespace gitops::test
