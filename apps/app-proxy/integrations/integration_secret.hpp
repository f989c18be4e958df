#pragma once

#include <string>
#include <string_view>

#include "app-proxy/integrations/integration.hpp"

// Git integrations as Kubernetes Secrets. Pure. An integration is the Secret "git-NAME-ACCOUNT" with
// the labels below. Its key "integration" holds the configuration, and one key for each user the
// user's sealed token, both as JSON. Other keys, labels and annotations are kept.
namespace gitops::app_proxy {

inline constexpr const char* kIntegrationSelector = "io.codefresh.integration-type=git";

std::string secret_name(std::string_view integration, std::string_view account_id);

// `object`: the Secret's JSON. `invalid_data` for a Secret that is not in this form, such as one of
// another program with the same labels; its message quotes nothing of the Secret. A user's entry that
// cannot be read is left out.
Result<Integration> read_integration(std::string_view object);

// A new Secret.
std::string new_integration_secret(std::string_view ns, const Integration& integration);
// The Secret with the integration written into it: entries of users that it does not have any more
// go, everything else of the Secret stays.
Result<std::string> with_integration(std::string_view object, const Integration& integration);

}  // namespace gitops::app_proxy
