#pragma once

#include <string>
#include <vector>

#include "k8s-client/resource.hpp"

namespace gitops::test {

// A resource type as the double serves it.
struct KubeType {
  k8s::Resource resource;
  bool status_subresource = false;
  bool custom = false;  // defined by a CRD: lists keep apiVersion and kind of their items

  // "configmaps", "applications.argoproj.io": the key of the type's table, and how messages name
  // it.
  [[nodiscard]] std::string id() const;
};

// The types of k8s::resources, and what else Argo CD and the tests use.
const std::vector<KubeType>& known_kube_types();

// What kubectl accepts instead of a plural.
std::vector<std::string> short_names(const std::string& plural);

}  // namespace gitops::test
