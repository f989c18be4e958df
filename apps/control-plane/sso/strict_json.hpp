#pragma once

#include <cstddef>
#include <string_view>

#include <nlohmann/json.hpp>

#include "common/core/error.hpp"

namespace gitops::control_plane_server::sso {

// Parses a JSON object of an identity provider. invalid_data: no JSON object, a name that stands twice in one object, or
// more than 16 levels. Two parsers may read different values of a name that stands twice, so none is believed (RFC 8725,
// section 2.4). `what` names the text in the message, which quotes nothing of it.
Result<nlohmann::json> parse_strict_object(std::string_view text, std::string_view what);

}  // namespace gitops::control_plane_server::sso
