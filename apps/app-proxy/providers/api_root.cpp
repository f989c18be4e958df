#include "app-proxy/providers/api_root.hpp"

#include <algorithm>
#include <optional>

namespace gitops::app_proxy {
namespace {

std::optional<ProviderKind> kind_of(std::string_view provider) {
  std::string name(provider);
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == '_') c = '-';
  }
  if (name == "github") return ProviderKind::github;
  if (name == "gitlab") return ProviderKind::gitlab;
  if (name == "bitbucket") return ProviderKind::bitbucket;
  if (name == "bitbucket-server") return ProviderKind::bitbucket_server;
  if (name == "gitea") return ProviderKind::gitea;
  return std::nullopt;
}

// API root of the provider's public host; empty when it has none.
std::string_view public_root(ProviderKind kind) {
  switch (kind) {
    case ProviderKind::github:
      return "https://api.github.com";
    case ProviderKind::gitlab:
      return "https://gitlab.com/api/v4";
    case ProviderKind::bitbucket:
      return "https://api.bitbucket.org/2.0";
    case ProviderKind::bitbucket_server:
    case ProviderKind::gitea:
      return "";
  }
  return "";
}

// Path of the REST interface on a self-managed host.
std::string_view usual_path(ProviderKind kind) {
  switch (kind) {
    case ProviderKind::github:
      return "/api/v3";
    case ProviderKind::gitlab:
      return "/api/v4";
    case ProviderKind::bitbucket:
      return "/2.0";
    case ProviderKind::bitbucket_server:
      return "/rest/api/1.0";
    case ProviderKind::gitea:
      return "/api/v1";
  }
  return "";
}

constexpr std::string_view kApiHost = "api.";

// Checks for a vendor's host whose REST interface is on a separate host, "api.HOST": github.com,
// GitHub with data residency, whose hosts are one name below ghe.com
// (docs.github.com/enterprise-cloud, "About GitHub Enterprise Cloud with data residency"), and
// bitbucket.org.
bool has_api_host(std::string_view host) {
  constexpr std::string_view kResidency = ".ghe.com";
  if (host == "github.com" || host == "bitbucket.org") return true;
  if (!host.ends_with(kResidency)) return false;
  host.remove_suffix(kResidency.size());
  return !host.empty() && !host.contains('.');
}

// Returns the host of pages and clones for either host of such a vendor, and `host` itself
// otherwise.
std::string_view page_host(std::string_view host) {
  for (const std::string_view prefix : {kApiHost, std::string_view("www.")}) {
    if (host.starts_with(prefix) && has_api_host(host.substr(prefix.size()))) {
      return host.substr(prefix.size());
    }
  }
  return host;
}

// Replaces the host of pages of a public host, which users may paste, by its API host.
void name_api_host(ProviderKind kind, http::Url& url) {
  const std::string page(page_host(url.host));
  const bool is_bitbucket = page == "bitbucket.org";
  if (kind == ProviderKind::github && has_api_host(page) && !is_bitbucket) {
    url.host = std::string(kApiHost) + page;
    url.path.clear();
  } else if (kind == ProviderKind::bitbucket && is_bitbucket) {
    url.host = std::string(kApiHost) + page;
    url.path = "/2.0";
  } else if (url.path.empty()) {
    url.path = usual_path(kind);
  }
}

}  // namespace

std::string_view wire_name(ProviderKind kind) {
  switch (kind) {
    case ProviderKind::github:
    case ProviderKind::gitea:
      return "GITHUB";
    case ProviderKind::gitlab:
      return "GITLAB";
    case ProviderKind::bitbucket:
      return "BITBUCKET";
    case ProviderKind::bitbucket_server:
      return "BITBUCKET_SERVER";
  }
  return "GITHUB";
}

std::string_view display_name(ProviderKind kind) {
  switch (kind) {
    case ProviderKind::github:
      return "GitHub";
    case ProviderKind::gitlab:
      return "GitLab";
    case ProviderKind::bitbucket:
      return "Bitbucket Cloud";
    case ProviderKind::bitbucket_server:
      return "Bitbucket Server";
    case ProviderKind::gitea:
      return "Gitea";
  }
  return "Git host";
}

std::string ApiRoot::web_host() const {
  return std::string(page_host(url.host));
}

Result<ApiRoot> make_api_root(std::string_view provider, std::string_view api_url,
                              PlainHttp plain) {
  const auto kind = kind_of(provider);
  if (!kind) {
    const bool is_gerrit = provider == "GERRIT" || provider == "gerrit";
    return fail(ErrorCode::unsupported,
                std::string(is_gerrit ? "Gerrit" : "this provider") +
                    " is not supported; supported are GITHUB, GITLAB, BITBUCKET, "
                    "BITBUCKET_SERVER and GITEA");
  }
  ApiRoot root{.kind = *kind, .url = {}};
  if (api_url.empty()) api_url = public_root(*kind);
  if (api_url.empty()) {
    return fail(ErrorCode::invalid_argument,
                std::string(display_name(*kind)) + " has no public host: apiUrl is needed");
  }
  auto url = http::parse_url(api_url);
  // The text is not shown, because it may contain a password.
  if (!url) return fail(ErrorCode::invalid_argument, "apiUrl is not a URL");
  if (url->scheme != "https" && (url->scheme != "http" || plain == PlainHttp::refused)) {
    return fail(ErrorCode::invalid_argument, "apiUrl does not begin with https://");
  }
  if (!url->userinfo.empty() || !url->query.empty()) {
    return fail(ErrorCode::invalid_argument, "apiUrl holds a user or a query");
  }
  while (url->path.ends_with('/')) url->path.pop_back();
  const auto has_odd_segment = [](std::string_view path) {
    return path.contains("//") || path.contains("/.") || path.contains('%');
  };
  if (has_odd_segment(url->path)) {
    return fail(ErrorCode::invalid_argument, "the path of apiUrl is not plain");
  }
  if (root.kind == ProviderKind::github && url->path.ends_with("/api/v1")) {
    root.kind = ProviderKind::gitea;
  }
  name_api_host(root.kind, *url);
  root.url = std::move(*url);
  return root;
}

}  // namespace gitops::app_proxy
