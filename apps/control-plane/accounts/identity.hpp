#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "control-plane/projection/object.hpp"

namespace gitops::control_plane_server {

// An account, the tenant. The keys of all tenant data begin with its number.
struct Account {
  std::int64_t number = 0;
  std::string id;  // 24 hexadecimal digits
  std::string name;
  std::vector<std::string> admins;  // ids of users
  std::string git_provider;         // "GITHUB"; empty: not set
  std::string git_api_url;
  std::string shared_config_repo;
};

// The owner of a credential: a user, a service account or a runtime. Requests share it and never change it; a change of the account or the
// user creates another object.
struct Caller {
  std::shared_ptr<const Account> account;
  // Set when the caller is a user or a service account.
  std::string user_id;
  std::string name;
  std::string email;                // empty for a service account
  bool is_admin = false;            // of the account
  bool is_system_admin = false;     // of this installation
  bool is_service_account = false;  // it has keys, but neither a password nor sessions
  // Name of the runtime when the caller is one.
  std::string runtime;
  std::string credential_id;             // of the key or the session
  std::vector<std::string> scopes = {};  // of the API key; empty: all (accounts/scopes.hpp)
  Micros valid_until = 0;                // expiry of the key or the session; 0: none
  bool is_of_session = false;            // the credential is a session, not a key
  // The only runtime that takes this credential, a page token (accounts/page_tokens.hpp); empty: it is another one.
  std::string page_of_runtime = {};

  [[nodiscard]] bool is_runtime() const { return !runtime.empty(); }
};
using CallerPtr = std::shared_ptr<const Caller>;

}  // namespace gitops::control_plane_server
