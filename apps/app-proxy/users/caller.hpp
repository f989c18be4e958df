#pragma once

#include <memory>
#include <string>

namespace gitops::app_proxy {

// A user of the runtime's account, as the control plane describes the owner of a credential.
struct User {
  std::string id = {};
  std::string name = {};
  std::string email = {};
  std::string account_id = {};
  bool is_admin = false;  // of the account
  // The runtime itself asks, with its own token: its other programs do. Has a name and no id.
  bool is_runtime = false;
};

// Who asks: what every resolver finds in call.context<Caller>(). Lives as long as the request, or as
// the WebSocket.
struct Caller {
  std::shared_ptr<const User> user = {};  // null: only fields that anyone may ask for are run
  std::string request_id = {};
  std::string peer = {};  // address
};

}  // namespace gitops::app_proxy
