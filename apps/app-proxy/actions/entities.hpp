#pragma once

#include <string>
#include <string_view>

#include "app-proxy/users/permissions.hpp"

// Converts objects of Argo to entities of the account's rules. Pure. `object` is the JSON of the
// object; attributes that it lacks stay unset.
namespace gitops::app_proxy {

// Entity of an Application. CLUSTER is its destination, NAMESPACE its own namespace, GIT_SOURCE the
// Application that it is part of, PRODUCT_NAME the annotation codefresh.io/product or else the
// label of that name.
Entity application_entity(std::string_view object, std::string_view runtime);

// Entity of a Workflow. CLUSTER is the runtime's own cluster, by the name that Argo CD has for it.
Entity workflow_entity(std::string_view object, std::string_view runtime);
Entity workflow_template_entity(std::string_view object, std::string_view runtime);

// URL by which Argo CD names the cluster that it runs in.
inline constexpr std::string_view kInCluster = "https://kubernetes.default.svc";

}  // namespace gitops::app_proxy
