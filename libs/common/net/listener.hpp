#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "common/core/async.hpp"
#include "common/core/log.hpp"
#include "common/net/channel.hpp"

namespace gitops::net {

struct ListenOptions {
  std::string address;       // "::" is IPv4 too, and IPv4 alone on a machine without IPv6
  std::uint16_t port = 0;    // 0: any free port
  bool shares_port = false;  // others that say so may listen there as well
};

// Accepts TCP connections. Loop thread only.
class Listener {
 public:
  explicit Listener(const Executor& executor) : acceptor_(executor) {}

  // Binds, and returns the port. Errors: invalid_argument when the address is none, unavailable
  // when the machine refuses; they name address and port.
  Result<std::uint16_t> listen(const ListenOptions& options);
  // Hands over each connection and the address of its peer, until close(). Whoever does not want a
  // connection destroys it. Out of descriptors or memory it waits, and says so once a minute.
  using Accepted = std::function<void(std::unique_ptr<Channel>, const asio::ip::address&)>;
  Task<> run(Accepted accepted);
  void close();

 private:
  using Acceptor = asio::basic_socket_acceptor<asio::ip::tcp, Executor>;

  Acceptor acceptor_;
  RepeatFilter repeated_{std::chrono::minutes(1)};
};

}  // namespace gitops::net
