#pragma once

#include <optional>
#include <span>

#include "common/net/channel.hpp"
#include "common/net/happy_eyeballs.hpp"

namespace gitops::net {

// Value of Error::subcode when nobody listens at an address.
inline constexpr std::string_view kConnectionRefused = "ConnectionRefused";

// A connected TCP socket.
class SocketChannel : public Channel {
 public:
  // Takes ownership of a non-blocking socket.
  SocketChannel(Reactor& reactor, int descriptor);
  ~SocketChannel() override;
  // Connects to the endpoint that accepts first; ConnectRace says when each is tried. The error is
  // that of the attempt that failed last: timeout or unavailable. `observer` may be empty.
  static Task<Result<std::unique_ptr<Channel>>> connect(std::span<const Endpoint> endpoints,
                                                        Deadline deadline,
                                                        const EndpointObserver& observer = {});

  // The system takes no further bytes while it holds so many that it has not sent (TCP_NOTSENT_LOWAT),
  // so that what is written next is not far behind what is on its way.
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
  // Begins to connect; `waker` is told when something has come of it.
  static Result<std::unique_ptr<SocketChannel>> begin_connect(Reactor& reactor,
                                                              const Endpoint& endpoint,
                                                              Waker& waker);
  // What came of it; nothing while that is not known.
  [[nodiscard]] std::optional<Result<void>> connect_result() const;

  PolledSocket socket_;
};

// Enables keep-alive probes, so that a vanished peer is noticed after 60 s, and TCP_NODELAY.
// Accepted sockets inherit the options of their listener.
void set_tcp_options(int descriptor);

}  // namespace gitops::net
