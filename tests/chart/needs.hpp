#pragma once

#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace gitops::test {

/// What a cluster has besides the objects of a release.
struct Given {
  std::set<std::string> images;    // every image that exists
  std::set<std::string> secrets;   // "name/key"
  std::set<std::string> accounts;  // ServiceAccounts
};

/// What the objects of a release need and nobody has, a line each: the image of a container, a
/// Secret or ConfigMap, or a key of one, that holds up a pod; a port that a probe, Service,
/// Ingress, HTTPRoute, policy or monitor names; the pods behind a selector; an account, a Role, the
/// target of a scaler. What is optional for the kubelet is no need.
std::vector<std::string> unmet_needs(const std::vector<nlohmann::json>& objects,
                                     const Given& given);

}  // namespace gitops::test
