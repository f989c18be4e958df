#pragma once

#include <memory>
#include <string>

#include "common/http/message.hpp"
#include "common/net/channel.hpp"

namespace gitops::http {

// A connection that has switched from HTTP to another protocol (status 101).
struct Upgraded {
  std::unique_ptr<net::Channel> channel;
  std::string received;  // came behind the message that ended HTTP
  Response head = {};    // of the answer; clients only
};

}  // namespace gitops::http
