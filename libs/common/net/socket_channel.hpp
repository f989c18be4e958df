#pragma once

#include <span>

#include <boost/asio/ip/tcp.hpp>

#include "common/net/channel.hpp"

namespace gitops::net {

// Value of Error::reason when nobody listens at an address.
inline constexpr std::string_view kConnectionRefused = "ConnectionRefused";

// A connected TCP socket.
class SocketChannel : public Channel {
 public:
  // Takes ownership of a non-blocking socket.
  SocketChannel(Reactor& reactor, int descriptor);
  ~SocketChannel() override;
  // Connects to the first endpoint that accepts. They are tried in turn, each for its share of the
  // time that is left. The error is that of the last one tried: timeout or unavailable.
  static Task<Result<std::unique_ptr<Channel>>> connect(
      std::span<const asio::ip::tcp::endpoint> endpoints, Deadline deadline);

  [[nodiscard]] bool is_open() const override { return socket_.fd >= 0; }
  void shutdown_send() override;
  void close() override;
  void abort() override;
  Transfer try_read(std::span<char> room) override;
  Transfer try_write(std::span<const asio::const_buffer> buffers) override;

 private:
  Transfer lost(int number);
  Task<Result<void>> finish_connect(Deadline deadline);

  PolledSocket socket_;
};

// Enables keep-alive probes, so that a vanished peer is noticed after 60 s, and TCP_NODELAY.
// Accepted sockets inherit the options of their listener.
void set_tcp_options(int descriptor);

}  // namespace gitops::net
