#pragma once

#include <memory>
#include <string>

#include "common/http/message.hpp"
#include "common/net/channel.hpp"

namespace gitops::http {

// Connection that has switched from HTTP to another protocol (status 101).
struct Upgraded {
  std::unique_ptr<net::Channel> channel;
  std::string received;  // bytes received after the last HTTP message
  Response head = {};    // of the response; clients only
};

}  // namespace gitops::http
