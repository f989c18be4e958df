#pragma once

#include <string>

#include "common/core/secret.hpp"

namespace gitops::net {

// Trusted and presented certificates for one peer. A server with a CA requires a client certificate
// signed by it. Files take precedence over inline PEM, and are reloaded when they change
// (rotation), at most once per second. Empty fields mean the default.
struct TlsOptions {
  std::string ca_file = {};  // PEM bundle that replaces the system's roots
  std::string ca_pem = {};
  std::string extra_ca_file = {};  // PEM file, or folder of them, beside these roots; may be empty
  std::string certificate_file = {};  // client (or server) certificate chain, PEM
  std::string certificate_pem = {};
  std::string key_file = {};
  Secret key_pem = {};
  std::string server_name = {};  // SNI and name to verify, if not the host of the URL
  bool insecure_skip_verify = false;
};

}  // namespace gitops::net
