#pragma once

#include <string>
#include <string_view>

#include "common/core/error.hpp"

namespace gitops {

// Returns a JSON document as block-style YAML, as Kubernetes tools print it: keys sorted, two
// spaces, sequences not indented, text of several lines as a literal block, strings quoted only
// where they would otherwise be read as something else (by YAML 1.1 rules). Parsing it gives the
// same data. invalid_data when the text is not JSON.
Result<std::string> json_to_yaml(std::string_view json);

}  // namespace gitops
