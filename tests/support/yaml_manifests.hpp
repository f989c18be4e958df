#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "common/core/error.hpp"

namespace gitops::test {

// The documents of a YAML file as JSON, without empty ones. Plain scalars become null, booleans
// and numbers by YAML's core schema; quoted ones stay strings. A key that stands twice is an error,
// as it is for kustomize and Flux.
Result<std::vector<nlohmann::json>> parse_manifests(const std::string& yaml);

}  // namespace gitops::test
