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
  std::string address;       // "::" includes IPv4; on a machine without IPv6 it means IPv4
  std::uint16_t port = 0;    // 0: any free port
  bool shares_port = false;  // SO_REUSEPORT: several listeners share the port
};

// Accepts TCP connections. Loop thread only.
class Listener {
 public:
  explicit Listener(const Executor& executor) : acceptor_(executor) {}

  // Binds, listens and returns the port. Errors name the address and the port: invalid_argument
  // (not an IP address), unavailable (refused by the system).
  Result<std::uint16_t> listen(const ListenOptions& options);
  // Passes each connection and its peer's address to the callback until close(). The callback
  // refuses a connection by destroying it. If descriptors or memory run out, run() pauses and logs
  // once a minute.
  using Accepted = std::function<void(std::unique_ptr<Channel>, const asio::ip::address&)>;
  Task<> run(Accepted accepted);
  // Passes connections that the system has already accepted, so that close() does not reset them.
  void accept_waiting(const Accepted& accepted);
  void close();

 private:
  enum class Outcome { accepted, none, failed };  // accepted: there may be more
  Outcome accept_one(const Accepted& accepted);

  using Acceptor = asio::basic_socket_acceptor<asio::ip::tcp, Executor>;

  Acceptor acceptor_;
  RepeatFilter repeated_{std::chrono::minutes(1)};
};

}  // namespace gitops::net
