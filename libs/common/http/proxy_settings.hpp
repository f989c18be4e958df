#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/http/url.hpp"

namespace gitops::http {

// Forward proxy for outgoing requests, by the conventions of HTTP_PROXY, HTTPS_PROXY and NO_PROXY
// as implemented by Go's httpproxy. Lower-case names take precedence over upper-case ones. NO_PROXY
// lists host names (with their subdomains; a leading dot means subdomains only), IP addresses, CIDR
// blocks, each with an optional port, or "*". Loopback addresses and "localhost" are not proxied.
// ALL_PROXY is ignored.
//
// A malformed variable fails only the requests that need it.
struct ProxySettings {
  std::optional<Url> http = {};   // for http:// targets: an http or SOCKS URL
  std::optional<Url> https = {};  // for https:// targets, by CONNECT or by SOCKS
  // Errors of proxies that are configured but unusable.
  std::optional<Error> http_mistake = {};
  std::optional<Error> https_mistake = {};
  std::vector<std::string> no_proxy = {};
  // Proxies loopback targets, too: for a proxy configured for one server.
  bool proxies_loopback = false;

  // Returns the proxy for `target`; null for a direct connection. Error: `unavailable`, if the
  // configured one is unusable; the message names its variable, not its value.
  [[nodiscard]] Result<const Url*> proxy_for(const Url& target) const;
};

// Reads the settings from the six variables.
ProxySettings proxy_settings(const std::map<std::string, std::string>& environment);

}  // namespace gitops::http
