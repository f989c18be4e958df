#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace gitops::control_plane_server {

// An account: what belongs together. All tenant data begins with its number.
struct Account {
  std::int64_t number = 0;
  std::string id;  // 24 hexadecimal digits
  std::string name;
  std::vector<std::string> admins;  // ids of users
  std::string git_provider;         // "GITHUB"; empty: not set
  std::string git_api_url;
  std::string shared_config_repo;
};

// Who a credential belongs to: a user, or a runtime. Shared by requests, never changed; a change of the account or the
// user makes a new one.
struct Caller {
  std::shared_ptr<const Account> account;
  // A user.
  std::string user_id;
  std::string name;
  std::string email;
  bool is_admin = false;         // of the account
  bool is_system_admin = false;  // of this installation
  // Or a runtime, whose token it is.
  std::string runtime;
  std::string credential_id;  // of the key or the session

  [[nodiscard]] bool is_runtime() const { return !runtime.empty(); }
};
using CallerPtr = std::shared_ptr<const Caller>;

}  // namespace gitops::control_plane_server
