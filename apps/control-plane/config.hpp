#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "common/core/config_reader.hpp"
#include "common/net/address_list.hpp"
#include "common/store/connection.hpp"
#include "control-plane/sso/provider_settings.hpp"

namespace gitops::control_plane_server {

// The control plane's configuration in addition to that of every daemon.
struct Config {
  std::string listen_address = "::";
  std::int64_t port = 8080;
  std::string certificate_file;
  std::string key_file;
  std::string public_url;  // empty: not known
  net::AddressList trusted_proxies;
  std::int64_t max_connections = 10'000;
  std::int64_t max_operations_per_caller = 100;

  store::Location database;
  std::int64_t database_readers = 4;
  std::int64_t storage_limit = 0;  // in bytes; 0: none
  Secret master_key;               // empty: sealing keys are refused

  // Settings of the first start.
  std::string account = "default";
  std::string administrator = "admin";
  std::string administrator_email;
  Secret administrator_password;
  std::string administrator_password_output;  // empty: standard output

  std::vector<sso::ProviderSettings> providers;  // of identities

  std::string tunnel_domain;
  Secret tunnel_plugin_token;
  std::string tunnel_plugin_token_file;
  std::vector<std::string> tunnel_api_urls;
  Secret tunnel_api_token;
  std::string tunnel_api_token_file;
  std::string tunnel_api_ca_file;
};

void bind(ConfigReader& reader, Config& config);
// Binds the settings of the database's location, for the daemon and the commands. The default is the file
// /var/lib/control-plane/control-plane.db.
void bind_database(ConfigReader& reader, store::Location& location);

}  // namespace gitops::control_plane_server
