#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/core/config_reader.hpp"
#include "common/http/url.hpp"
#include "common/net/address_list.hpp"
#include "request-router/signature.hpp"

namespace gitops::router {

// Routes and their limits: the part of the configuration that can change while the router runs (see
// routes_file.hpp).
struct RouteSettings {
  http::Url app_proxy{.scheme = "http", .host = "cap-app-proxy", .port = 3017};
  std::string app_proxy_ca_file;
  std::vector<std::string> cors_origins = {"https://g.codefresh.io"};
  std::optional<http::Url> workflows;  // unset: no such route
  std::string workflows_ca_file;
  bool workflows_insecure = false;
  std::vector<std::string> webhook_namespaces;  // empty: the router's own
  std::int64_t webhook_port = 80;
  std::vector<SignatureRule> webhook_signatures;
  std::int64_t webhook_rate = 100;        // per event source and second; 0: no limit
  std::int64_t webhook_concurrency = 64;  // per event source; 0: no limit
  std::string cluster_domain = "cluster.local";
  std::string own_namespace;
  net::AddressList trusted_proxies;
  std::vector<std::string> trusted_proxy_names;
  net::AddressList allowed_addresses;
  std::int64_t app_proxy_max_body = 100 * 1024 * 1024;  // bytes; 0: no limit
  std::int64_t webhook_max_body = 25 * 1024 * 1024;
  std::chrono::milliseconds connect_timeout{5'000};
  std::chrono::milliseconds answer_timeout{60'000};
  std::chrono::milliseconds body_timeout{60'000};
  std::chrono::milliseconds body_deadline{900'000};
  std::chrono::milliseconds upstream_idle_timeout{4'000};
  std::chrono::milliseconds stream_timeout{3'600'000};
  bool gzip = true;

  bool operator==(const RouteSettings&) const = default;
};

// The router's configuration in addition to that of every daemon.
struct Config {
  RouteSettings routes;
  std::string routes_file;
  std::string listen_address = "::";
  std::int64_t port = 8080;
  std::int64_t max_connections = 20'000;
  std::int64_t loops = 1;
  std::chrono::milliseconds head_timeout{10'000};
  std::chrono::milliseconds idle_timeout{65'000};
  std::string tls_certificate_file;
  std::string tls_key_file;
  std::string webhook_journal;  // a folder; empty: no journal
  bool access_log = true;
};

// Adds the rows of RouteSettings, for the daemon's configuration and for the routes file.
void bind_routes(ConfigReader& reader, RouteSettings& settings);
void bind(ConfigReader& reader, Config& config);

}  // namespace gitops::router
