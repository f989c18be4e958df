#pragma once

#include <string>

#include "common/core/secret.hpp"

namespace gitops::net {

// Which certificates to trust and which to present, for one peer. A server with a CA demands a
// client certificate signed by it. Files win over inline PEM, and are read again when they change
// (rotation), at most once per second. Every empty field means "default".
struct TlsOptions {
  std::string ca_file = {};  // PEM bundle that replaces the system's roots
  std::string ca_pem = {};
  std::string extra_ca_file = {};  // PEM file, or folder of them, beside these roots; may be empty
  std::string certificate_file = {};  // client (or server) certificate chain, PEM
  std::string certificate_pem = {};
  std::string key_file = {};
  Secret key_pem = {};
  std::string server_name = {};  // SNI and the name to verify, when not the host of the URL
  bool insecure_skip_verify = false;
};

}  // namespace gitops::net
