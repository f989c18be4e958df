#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/stream.hpp>

#include "common/core/async.hpp"

namespace gitops::net {

using Socket = asio::basic_stream_socket<asio::ip::tcp, Executor>;

// One connection, plain TCP or TLS over it, with a single deadline for whatever happens on it next.
// The deadline is a value behind one lazily re-armed timer: moving it costs nothing per operation.
// When it passes, the pending operation is cancelled and returns ErrorCode::timeout, and so does
// every later one until the deadline is moved. Other errors: unavailable (lost, reset, closed) and
// tls; messages do not name the peer, callers add it.
//
// One reader and one writer at a time, and the object outlives their awaits. Loop thread only.
class Stream {
 public:
  explicit Stream(Socket socket);
  Stream(Socket socket, std::shared_ptr<asio::ssl::context> context);  // keeps the context alive
  ~Stream();
  Stream(Stream&&) noexcept;
  Stream& operator=(Stream&&) noexcept;

  // Goes over to TLS on a plain connection that has nothing pending; the handshake comes next.
  void start_tls(std::shared_ptr<asio::ssl::context> context);
  // TLS only; for a client, `verify_name` is checked against the certificate and sent as SNI (not
  // for IP addresses), unless it is empty or the context does not verify.
  Task<Result<void>> handshake_client(const std::string& verify_name);
  Task<Result<void>> handshake_server();

  // At least one byte, or 0 at the end of the stream. TLS that ends without close_notify is an
  // error, since anybody could have ended it.
  Task<Result<std::size_t>> read_some(std::span<char> buffer);
  // Writes all of it, as one packet or record when it is small.
  Task<Result<void>> write(std::span<const asio::const_buffer> buffers);
  Task<Result<void>> write(std::string_view bytes);

  void set_deadline(Deadline deadline);
  // True when the peer closed or sent something while the connection was idle; does not block.
  [[nodiscard]] bool is_stale();
  // Sends TLS close_notify when that is possible without waiting, and closes. A pending operation
  // returns an error.
  void close();
  // Closes with a TCP reset.
  void abort();
  // Ends the sending side and reads on until the peer has closed too, for at most `limit` bytes and
  // until the deadline: otherwise unread input would turn into a reset that can destroy what was
  // sent. Then closes.
  Task<> close_gracefully(std::size_t limit);
  [[nodiscard]] bool is_open() const;
  [[nodiscard]] asio::ip::tcp::endpoint remote() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// Sets TCP_NODELAY, and probes and a limit for unacknowledged data, so that a peer that vanished is
// noticed after 60 s.
void set_tcp_options(int descriptor);

// Tries the endpoints in turn until one accepts, each for its share of the time left, and sets its
// options. The error is that of the last one tried.
Task<Result<Socket>> connect_any(std::span<const asio::ip::tcp::endpoint> endpoints,
                                 Deadline deadline);

}  // namespace gitops::net
