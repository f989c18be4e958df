#pragma once

#include <memory>
#include <string>

#include "common/core/secret.hpp"
#include "common/net/channel.hpp"

namespace gitops::tunnel {

// What NewProxy asks for on its work connections.
struct WorkCoding {
  bool encryption = false;
  bool compression = false;
};

// The user's bytes on a work connection, behind StartWorkConn: compressed first and then encrypted, as
// both sides of frp do. `received`: came behind StartWorkConn. `token`: frp's, may be empty.
[[nodiscard]] std::unique_ptr<net::Channel> work_channel(std::unique_ptr<net::Channel> connection,
                                                         WorkCoding coding, const Secret& token,
                                                         std::string received);

}  // namespace gitops::tunnel
