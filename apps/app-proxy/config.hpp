#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "common/core/config_reader.hpp"

namespace gitops::app_proxy {

// The daemon's configuration in addition to that of every daemon.
struct Config {
  std::string listen_address = "::";
  std::int64_t port = 8080;
  std::vector<std::string> cors_origins = {"https://g.codefresh.io"};
  bool playground = false;
  std::int64_t max_connections = 2'000;

  std::string control_plane_url = "https://g.codefresh.io";
  Secret runtime_token;
  std::string runtime_token_file;
  std::string ca_file;  // in addition to nothing: replaces the system's authorities
  bool control_plane_insecure = false;

  std::string runtime_name;
  std::string own_namespace;
};

void bind(ConfigReader& reader, Config& config);

}  // namespace gitops::app_proxy
