#pragma once

#include <memory>
#include <string>

#include "common/core/secret.hpp"
#include "common/net/channel.hpp"

namespace gitops::tunnel {

// Coding of a proxy's work connections, from its NewProxy.
struct WorkCoding {
  bool encryption = false;
  bool compression = false;
};

// Returns the channel of the user's bytes on a work connection after StartWorkConn: compressed
// first and then encrypted, as both sides of frp do. `received`: bytes already read after
// StartWorkConn. `token`: frp's; may be empty.
[[nodiscard]] std::unique_ptr<net::Channel> work_channel(std::unique_ptr<net::Channel> connection,
                                                         WorkCoding coding, const Secret& token,
                                                         std::string received);

}  // namespace gitops::tunnel
