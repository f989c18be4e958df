#pragma once

#include <string>
#include <string_view>

#include "common/core/error.hpp"
#include "common/http/url.hpp"

namespace gitops::app_proxy {

enum class ProviderKind { github, gitlab, bitbucket, bitbucket_server, gitea };

// Name of a provider in the schema's GitProviders: "GITHUB", "GITLAB", "BITBUCKET",
// "BITBUCKET_SERVER". GitProviders lacks Gitea, and clients cannot parse unknown values, so Gitea
// is reported as GITHUB, whose REST interface it resembles. Its API root, which ends in /api/v1,
// identifies it.
std::string_view wire_name(ProviderKind kind);
// Name of a provider for people: "GitHub".
std::string_view display_name(ProviderKind kind);

// Root URL of a host's REST interface.
struct ApiRoot {
  ProviderKind kind = ProviderKind::github;
  http::Url url;  // no trailing slash, no query, no user

  // The URL as stored and shown.
  [[nodiscard]] std::string text() const { return url.to_string(); }
  // Host of pages and clones: "github.com" for api.github.com, "acme.ghe.com" for api.acme.ghe.com.
  [[nodiscard]] std::string web_host() const;
};

enum class PlainHttp { refused, insecure_allowed };

// Parses a provider's name (from the schema, or lower case with '-' as the CLI writes it; also
// "gitea") and the API URL that a user gave. An empty URL means the provider's public host. A host
// without a path gets the provider's usual one: https://ghe.example.com becomes
// https://ghe.example.com/api/v3.
Result<ApiRoot> make_api_root(std::string_view provider, std::string_view api_url,
                              PlainHttp plain = PlainHttp::refused);

}  // namespace gitops::app_proxy
