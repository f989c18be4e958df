#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace gitops::test {

// What the controller of Sealed Secrets does with a sealed value, by OpenSSL alone. None: it cannot be unsealed.
std::optional<std::string> unseal_value(const std::string& private_key, std::string_view sealed,
                                        std::string_view label);

}  // namespace gitops::test
