#pragma once

#include <memory>
#include <string>
#include <vector>

namespace gitops::app_proxy {

// A user of the control plane, as it describes the owner of a credential.
struct User {
  std::string id;
  std::string name;
  std::string email;
  std::string account_id;
  bool is_admin = false;           // of the account
  std::vector<std::string> teams;  // ids, for rules
};

// Who asks: what every resolver finds in call.context<Caller>(). Lives as long as the request, or as
// the WebSocket.
struct Caller {
  std::shared_ptr<const User> user = {};  // null: only fields that anyone may ask for are run
  std::string request_id = {};
  std::string peer = {};  // address
};

}  // namespace gitops::app_proxy
