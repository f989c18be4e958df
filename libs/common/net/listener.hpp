#pragma once

#include <cstdint>
#include <string>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "common/core/async.hpp"

namespace gitops::net {

using Acceptor = asio::basic_socket_acceptor<asio::ip::tcp, Executor>;

struct ListenOptions {
  std::string address;       // "::" is IPv4 too, and IPv4 alone on a machine without IPv6
  std::uint16_t port = 0;    // 0: any free port
  bool shares_port = false;  // others that say so may listen there as well
};

// Makes the acceptor listen and returns its port. Errors: invalid_argument when the address is
// none, unavailable when the machine refuses.
Result<std::uint16_t> listen_on(Acceptor& acceptor, const ListenOptions& options);

}  // namespace gitops::net
