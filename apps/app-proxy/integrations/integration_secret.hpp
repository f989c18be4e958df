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

// Reads the Secret's JSON. `invalid_data` for a Secret in another form, such as one of another
// program with the same labels; the message contains nothing of the Secret. An unreadable entry of
// a user is left out.
Result<Integration> read_integration(std::string_view object);

// Returns whether the Secret has entries of users, readable or not.
bool has_users(std::string_view object);

// Returns a new Secret as JSON.
std::string new_integration_secret(std::string_view ns, const Integration& integration);
// Returns the Secret with the integration written into it. Entries of removed users are removed;
// all other contents are kept.
Result<std::string> with_integration(std::string_view object, const Integration& integration);

}  // namespace gitops::app_proxy
