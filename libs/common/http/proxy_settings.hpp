#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/http/url.hpp"

namespace gitops::http {

// The forward proxy for outgoing requests, by the conventions of HTTP_PROXY, HTTPS_PROXY and
// NO_PROXY (as Go's httpproxy reads them): lower-case names win over upper-case ones; NO_PROXY
// holds host names (with their subdomains; a leading dot means subdomains only), IP addresses, CIDR
// blocks, each with an optional port, or "*"; loopback addresses and "localhost" are not proxied.
// ALL_PROXY is not read.
//
// A variable that cannot be read is an error of the requests that need it, and of no others.
struct ProxySettings {
  std::optional<Url> http = {};   // for http:// targets: an http or SOCKS URL
  std::optional<Url> https = {};  // for https:// targets, by CONNECT or by SOCKS
  // Why there is no usable proxy, where one is configured.
  std::optional<Error> http_mistake = {};
  std::optional<Error> https_mistake = {};
  std::vector<std::string> no_proxy = {};
  // Loopback targets are proxied, too: for a proxy that was configured for one server.
  bool proxies_loopback = false;

  // The proxy to use for `target`; null for a direct connection. Fails with `unavailable` when the
  // configured one cannot be used; the message names its variable, not its value.
  [[nodiscard]] Result<const Url*> proxy_for(const Url& target) const;
};

// Reads the six variables.
ProxySettings proxy_settings(const std::map<std::string, std::string>& environment);

}  // namespace gitops::http
