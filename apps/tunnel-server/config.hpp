#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/core/config_reader.hpp"
#include "common/http/url.hpp"
#include "common/net/address_list.hpp"
#include "common/tunnel/authentication.hpp"

namespace gitops::tunnel_server {

// The server's configuration in addition to that of every daemon.
struct Config {
  // Clients of the tunnel.
  std::string tunnel_address = "::";
  std::int64_t tunnel_port = 7000;
  std::string tunnel_certificate_file;
  std::string tunnel_key_file;
  std::string tunnel_client_ca_file;
  bool tunnel_requires_tls = false;
  std::chrono::milliseconds heartbeat_timeout{14'000};
  std::int64_t max_clients = 10'000;
  std::int64_t max_unauthenticated = 2'000;
  std::int64_t max_unauthenticated_per_address = 0;  // 0: same as max_unauthenticated
  std::int64_t max_streams = 4'096;
  std::int64_t max_pool = 5;
  std::int64_t links = 2;
  std::vector<std::string> servers;          // "host:port"
  std::int64_t stream_window = 1024 * 1024;  // bytes

  // Authorization of clients.
  Secret token;
  std::string token_file;
  tunnel::AuthScopes auth_scopes;
  std::string runtimes_file;
  std::optional<http::Url> plugin_url;
  std::string plugin_ca_file;
  std::vector<std::string> plugin_operations = {"Login", "NewProxy"};
  std::chrono::milliseconds plugin_timeout{5'000};
  bool any_client = false;

  // Users.
  std::string listen_address = "::";
  std::int64_t port = 8080;
  std::string certificate_file;
  std::string key_file;
  std::string subdomain_host;
  net::AddressList trusted_proxies;
  std::int64_t max_connections = 20'000;
  std::int64_t max_requests_per_host = 1'024;
  std::int64_t max_body = 0;  // bytes; 0: no limit
  std::chrono::milliseconds connect_timeout{10'000};
  std::chrono::milliseconds answer_timeout{60'000};
  std::chrono::milliseconds stream_timeout{3'600'000};
  std::chrono::milliseconds idle_timeout{65'000};

  // The API.
  std::string api_address = "127.0.0.1";
  std::int64_t api_port = 0;
  Secret api_token;
  std::string api_token_file;
};

void bind(ConfigReader& reader, Config& config);

}  // namespace gitops::tunnel_server
