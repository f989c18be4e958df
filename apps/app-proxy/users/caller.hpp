#pragma once

#include <memory>
#include <string>

#include "common/core/trace.hpp"

namespace gitops::app_proxy {

// A user of the runtime's account, as the control plane describes the owner of a credential.
struct User {
  std::string id = {};
  std::string name = {};
  std::string email = {};
  std::string account_id = {};
  bool is_admin = false;  // of the account
  // The runtime itself, with its own token, which its other programs use. Has a name and no id.
  bool is_runtime = false;
};

// Caller of a request, which every resolver gets by call.context<Caller>(). Each request and each
// operation of a WebSocket has its own.
struct Caller {
  // Null: only fields for anyone are resolved. Replaced between two events of a stream, when its
  // credential is checked again; never while a resolver runs.
  std::shared_ptr<const User> user = {};
  std::string request_id = {};
  std::string peer = {};   // address
  SpanContext trace = {};  // of the request
};

}  // namespace gitops::app_proxy
