#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <memory>
#include <span>
#include <string>
#include <variant>

#include "common/core/async.hpp"

namespace gitops::http {

using Socket = asio::basic_stream_socket<asio::ip::tcp, Executor>;

// One connection, plain TCP or TLS over it, with a single deadline for whatever happens on it next.
// The deadline is a value behind one lazily re-armed timer: moving it costs nothing per operation.
// When it passes, the socket is closed and the pending operation returns ErrorCode::timeout.
// One reader and one writer at a time. Loop thread only.
class Stream {
 public:
  explicit Stream(Socket socket);
  Stream(Socket socket, std::shared_ptr<asio::ssl::context> context);  // keeps the context alive
  ~Stream();
  Stream(Stream&&) noexcept;
  Stream& operator=(Stream&&) noexcept;

  // TLS only; for a client, `verify_name` is checked against the certificate and sent as SNI (not
  // for IP addresses), unless it is empty or the context does not verify.
  Task<Result<void>> handshake_client(const std::string& verify_name);
  Task<Result<void>> handshake_server();

  // At least one byte, or 0 at the end of the stream.
  Task<Result<std::size_t>> read_some(std::span<char> buffer);
  // Writes all of it.
  Task<Result<void>> write(std::span<const asio::const_buffer> buffers);
  Task<Result<void>> write(std::string_view bytes);

  void set_deadline(Deadline deadline);
  // True when the peer closed or sent something while the connection was idle; does not block.
  [[nodiscard]] bool is_stale();
  // Sends TLS close_notify when that is possible without waiting, and closes.
  void close();
  [[nodiscard]] bool is_open() const;
  [[nodiscard]] asio::ip::tcp::endpoint remote() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// Tries the endpoints in turn until one accepts; sets TCP_NODELAY and keep-alive probes
// (half-open peers are noticed after 60 s).
Task<Result<Socket>> connect_any(std::span<const asio::ip::tcp::endpoint> endpoints,
                                 Deadline deadline);

}  // namespace gitops::http
