#pragma once

#include <string>
#include <string_view>

#include "app-proxy/users/permissions.hpp"

// Objects of Argo as the account's rules see them. Pure. `object` is the JSON of the object; of what is not
// in it, nothing is known.
namespace gitops::app_proxy {

// CLUSTER is the destination, NAMESPACE that of the Application, GIT_SOURCE the Application that it is
// part of, PRODUCT_NAME the annotation codefresh.io/product or else the label of that name.
Entity application_entity(std::string_view object, std::string_view runtime);

// CLUSTER is the runtime's own, by the name that Argo CD has for it.
Entity workflow_entity(std::string_view object, std::string_view runtime);
Entity workflow_template_entity(std::string_view object, std::string_view runtime);

// The URL by which Argo CD names the cluster that it runs in.
inline constexpr std::string_view kInCluster = "https://kubernetes.default.svc";

}  // namespace gitops::app_proxy
