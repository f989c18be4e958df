#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/http/message.hpp"
#include "doubles/kube_types.hpp"

namespace gitops::test {

// What the Kubernetes API answers about itself at /api, /apis, /apis/GROUP and below, down to a
// group's version.
http::Response kube_discovery(const std::map<std::string, KubeType>& types,
                              const std::vector<std::string>& path);

}  // namespace gitops::test
