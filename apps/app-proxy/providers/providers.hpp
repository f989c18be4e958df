#pragma once

#include <memory>
#include <string_view>

#include "app-proxy/providers/git_host_client.hpp"
#include "app-proxy/providers/git_provider.hpp"

namespace gitops::app_proxy {

// Creates the provider for a host. `client` outlives it.
std::unique_ptr<GitProvider> make_provider(GitHostClient& client, ApiRoot root);

}  // namespace gitops::app_proxy
