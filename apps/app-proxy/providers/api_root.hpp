#pragma once

#include <string>
#include <string_view>

#include "common/core/error.hpp"
#include "common/http/url.hpp"

namespace gitops::app_proxy {

enum class ProviderKind { github, gitlab, bitbucket, bitbucket_server, gitea };

// "GITHUB", "GITLAB", "BITBUCKET", "BITBUCKET_SERVER": the values of the schema's GitProviders. Gitea
// has none there, and clients fail to read values that they do not know: it is shown as GITHUB, whose
// REST interface it resembles, and recognised by its API root, which ends in /api/v1.
std::string_view wire_name(ProviderKind kind);
// "GitHub", for people.
std::string_view display_name(ProviderKind kind);

// Where a host's REST interface is.
struct ApiRoot {
  ProviderKind kind = ProviderKind::github;
  http::Url url;  // no trailing slash, no query, no user

  // As it is stored and shown.
  [[nodiscard]] std::string text() const { return url.to_string(); }
  // The host of pages and clones: "github.com" for api.github.com, "acme.ghe.com" for
  // api.acme.ghe.com.
  [[nodiscard]] std::string web_host() const;
};

enum class PlainHttp { refused, insecure_allowed };

// Reads a provider's name (of the schema, or lower case with '-' as the CLI writes it; also "gitea")
// and the API URL that a user gave; an empty one stands for the provider's public host. A host
// without a path gets the provider's usual one: https://ghe.example.com is
// https://ghe.example.com/api/v3.
Result<ApiRoot> make_api_root(std::string_view provider, std::string_view api_url,
                              PlainHttp plain = PlainHttp::refused);

}  // namespace gitops::app_proxy
