#pragma once

#include <optional>
#include <span>

#include "common/net/channel.hpp"
#include "common/net/happy_eyeballs.hpp"

namespace gitops::net {

// Value of Error::subcode if no program listens at an address.
inline constexpr std::string_view kConnectionRefused = "ConnectionRefused";

// Connected TCP socket.
class SocketChannel : public Channel {
 public:
  // Takes ownership of a non-blocking socket.
  SocketChannel(Reactor& reactor, int descriptor);
  ~SocketChannel() override;
  // Connects to the endpoint that accepts first; ConnectRace schedules the attempts. The error is
  // that of the last failed attempt: timeout or unavailable. `observer` may be empty.
  static Task<Result<std::unique_ptr<Channel>>> connect(std::span<const Endpoint> endpoints,
                                                        Deadline deadline,
                                                        const EndpointObserver& observer = {});

  // Limits the unsent bytes in the system's buffer (TCP_NOTSENT_LOWAT), so that later writes are
  // not far behind the bytes in transit.
  void limit_unsent(int bytes);

  [[nodiscard]] bool is_open() const override { return socket_.fd >= 0; }
  void shutdown_send() override;
  void close() override;
  void abort() override;
  Transfer try_read(std::span<char> room) override;
  Transfer try_write(std::span<const asio::const_buffer> buffers) override;

 private:
  class Attempts;

  Transfer lost(int number);
  // Begins to connect. Wakes `waker` when the outcome is known.
  static Result<std::unique_ptr<SocketChannel>> begin_connect(Reactor& reactor,
                                                              const Endpoint& endpoint,
                                                              Waker& waker);
  // Returns the outcome; nothing while it is unknown.
  [[nodiscard]] std::optional<Result<void>> connect_result() const;

  PolledSocket socket_;
};

// Sets TCP_NODELAY and keep-alive probes, which detect a vanished peer after 60 s. Accepted sockets
// inherit the options of their listener.
void set_tcp_options(int descriptor);

}  // namespace gitops::net
