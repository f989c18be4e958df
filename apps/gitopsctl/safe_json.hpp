#pragma once

#include <string>

namespace gitops::ctl {

// Returns a JSON text with the control characters escaped that JSON allows and a terminal obeys: DEL, and U+0080 to U+009F.
std::string safe_json(const std::string& text);

}  // namespace gitops::ctl
