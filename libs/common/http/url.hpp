#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/core/error.hpp"

namespace gitops::http {

// An absolute URL of scheme http, https, ws or wss, or the URL of a proxy.
struct Url {
  std::string scheme;      // lower case
  std::string host;        // lower case; IPv6 without brackets
  std::uint16_t port = 0;  // explicit or the scheme's default
  std::string path = {};   // as written; empty when there was none
  std::string query = {};  // without '?', as written
  // "user" or "user:password" as written, still percent-encoded; never part of any output.
  std::string userinfo = {};

  [[nodiscard]] bool is_tls() const { return scheme == "https" || scheme == "wss"; }
  [[nodiscard]] bool is_socks() const { return scheme == "socks5" || scheme == "socks5h"; }
  // "host", or "host:port" when the port is not the scheme's default; brackets around IPv6.
  [[nodiscard]] std::string host_header() const;
  // Scheme, host, port, path and query; without userinfo. Safe to log.
  [[nodiscard]] std::string to_string() const;
};

// Refuses control characters, spaces, backslashes, a missing or malformed host, port 0 or > 65535,
// fragments, and IPv6 zone ids. Host names are RFC 1123 names (underscore allowed), IPv4 literals
// in four decimal parts, or IPv6 in brackets.
Result<Url> parse_url(std::string_view text);
// The URL of a proxy: the scheme is http, https, socks5 or socks5h. The last two mean the same, as in
// Go's net/http: the proxy resolves the names of destinations. Host, port and what follows are read as
// by parse_url(); user name and password as curl and Go do: they end at the last '@' before the path,
// may be empty, and need not be encoded ("http://DOMAIN\me:p@ss%@proxy"). White space around the
// text is dropped. In the result they are well encoded.
Result<Url> parse_proxy_url(std::string_view text);

// `base`'s path (trailing slashes dropped) followed by `path`, which starts with '/'; `path` may
// hold a query. Gives the origin-form request target.
std::string join_target(const Url& base, std::string_view path);

// "a=1&b=x%2By": both sides percent-encoded.
std::string query_string(const std::vector<std::pair<std::string_view, std::string_view>>& pairs);

// The value of a parameter of a query, decoded; empty when it is absent or malformed.
std::string query_parameter(std::string_view query, std::string_view name);

// "host", "host:port" or "[v6]:port" -> host and port (default_port when absent).
Result<std::pair<std::string, std::uint16_t>> parse_host_port(std::string_view text,
                                                              std::uint16_t default_port);

}  // namespace gitops::http
