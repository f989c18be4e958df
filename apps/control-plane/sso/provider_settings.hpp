#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/core/config_reader.hpp"

namespace gitops::control_plane_server::sso {

// The settings of one identity provider, from a YAML file of its own.
struct ProviderSettings {
  std::string name;   // part of addresses
  std::string title;  // on the sign-in page; empty: the name
  std::string issuer;
  std::string client_id;
  Secret client_secret;
  std::string client_secret_file;
  std::vector<std::string> scopes{"openid", "profile", "email"};
  std::string groups_claim = "groups";
  std::map<std::string, std::string> teams;  // group -> team
  std::string account;                       // name; empty: that of the first start
  bool creates_users = false;
  bool joins_by_email = false;
  std::string ca_file;
};

// Binds the rows of such a file. `settings` outlives the reader.
void bind_provider(ConfigReader& reader, ProviderSettings& settings);

// Reads the files, one for each provider. The error names the files and lists every mistake.
Result<std::vector<ProviderSettings>> read_providers(const std::vector<std::string>& paths);

}  // namespace gitops::control_plane_server::sso
