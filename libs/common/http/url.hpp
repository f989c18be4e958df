#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/core/error.hpp"

namespace gitops::http {

// Absolute URL of scheme http, https, ws or wss, or URL of a proxy.
struct Url {
  std::string scheme;      // lower case
  std::string host;        // lower case; IPv6 without brackets
  std::uint16_t port = 0;  // explicit or the scheme's default
  std::string path = {};   // as written; may be empty
  std::string query = {};  // without '?', as written
  // "user" or "user:password" as written, percent-encoded; never part of any output.
  std::string userinfo = {};

  [[nodiscard]] bool is_tls() const { return scheme == "https" || scheme == "wss"; }
  [[nodiscard]] bool is_socks() const { return scheme == "socks5" || scheme == "socks5h"; }
  // Returns "host", or "host:port" if the port is not the scheme's default; brackets around IPv6.
  [[nodiscard]] std::string host_header() const;
  // Returns scheme, host, port, path and query, without userinfo. Safe to log.
  [[nodiscard]] std::string to_string() const;

  bool operator==(const Url&) const = default;
};

// Parses a URL. Refuses control characters, spaces, backslashes, a missing or malformed host, port
// 0 or > 65535, fragments, and IPv6 zone ids. Host names are RFC 1123 names (underscore allowed),
// IPv4 literals in four decimal parts, or IPv6 in brackets.
Result<Url> parse_url(std::string_view text);
// Parses the URL of a proxy. The scheme is http, https, socks5 or socks5h; the last two are
// equivalent, as in Go's net/http: the proxy resolves the names of destinations. Host, port and the
// rest are parsed as by parse_url(). User name and password are parsed as by curl and Go: they end
// at the last '@' before the path, may be empty, and need not be encoded
// ("http://DOMAIN\me:p@ss%@proxy"). Surrounding white space is dropped. The result is
// percent-encoded.
Result<Url> parse_proxy_url(std::string_view text);

// Returns the origin-form target: the path of `base` without trailing slashes, followed by `path`,
// which starts with '/' and may have a query.
std::string join_target(const Url& base, std::string_view path);

// Returns "a=1&b=x%2By", with both sides percent-encoded.
std::string query_string(const std::vector<std::pair<std::string_view, std::string_view>>& pairs);

// Returns the decoded value of a query parameter; empty if it is missing or malformed.
std::string query_parameter(std::string_view query, std::string_view name);

// Parses "host", "host:port" or "[v6]:port"; without a port, the result has default_port.
Result<std::pair<std::string, std::uint16_t>> parse_host_port(std::string_view text,
                                                              std::uint16_t default_port);

}  // namespace gitops::http
