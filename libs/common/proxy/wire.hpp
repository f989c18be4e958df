#pragma once

#include <memory>
#include <span>
#include <string>

#include <boost/asio/buffer.hpp>
#include <boost/asio/ssl/context.hpp>

#include "common/net/poller.hpp"
#include "common/net/stream.hpp"
#include "common/net/timer_wheel.hpp"
#include "common/proxy/buffer.hpp"

namespace gitops::proxy {

// What an attempt to read gave.
struct WireRead {
  enum What {
    data,
    nothing,  // yet
    end,      // of the connection, or of the room in the buffer
    timeout,
    lost,  // or closed here
  };
  What what = lost;
  std::size_t size = 0;  // of the data, in bytes
};

// A connection as the proxy uses it: waits until the socket is ready and then reads or writes at
// once, so that no buffer is held while nothing comes; each direction has a deadline on the wheel.
// Plain TCP, or TLS when a handshake was done. Stream is for everybody else.
//
// One reader and one writer at a time. Errors of writing and handshakes as Stream: timeout,
// unavailable, tls. Loop thread
// only.
class Wire {
 public:
  // Takes over a socket that does not block.
  Wire(int descriptor, net::Poller& poller, net::TimerWheel& wheel);
  ~Wire();
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  // Go over to TLS; `name` as Stream::handshake_client. Both deadlines hold.
  Task<Result<void>> handshake_server(std::shared_ptr<boost::asio::ssl::context> context);
  Task<Result<void>> handshake_client(std::shared_ptr<boost::asio::ssl::context> context,
                                      const std::string& name);

  // Appends what is there to `buffer`, which takes its block only then. When there is nothing:
  // await readable() and look again.
  WireRead read_now(ProxyBuffer& buffer);
  // To be awaited at once: something has happened. `user`: what the caller will work on then.
  auto readable(const void* user = nullptr) {
    socket_.user = user;
    return poller_.wait(socket_.read);
  }
  // Both together, never `nothing`. Where each request waits, this coroutine's frame would cost
  // more than the read.
  Task<WireRead> read_into(ProxyBuffer& buffer);
  // Appends what is there already, without waiting.
  void take_what_is_there(ProxyBuffer& buffer);
  // What can be written without waiting; `written` tells how much. False: write() is needed, for
  // the rest or for the error.
  bool write_now(std::span<const asio::const_buffer> buffers, std::size_t& written);
  // All of it, behind the first `written` bytes when that is given; it then tells how much went
  // out even if it failed.
  Task<Result<void>> write(std::span<const asio::const_buffer> buffers,
                           std::size_t* written = nullptr);

  // For a socket whose connect() goes on: waits for its end or the deadline for writing.
  Task<Result<void>> finish_connect();

  void set_read_deadline(Deadline deadline);
  void set_write_deadline(Deadline deadline);

  // True when the peer closed, or sent something while nothing was expected, as far as the loop has
  // seen.
  [[nodiscard]] bool is_stale();
  // True when the peer closed its side or the connection broke, as far as the loop has seen.
  [[nodiscard]] bool peer_closed() const { return socket_.fd < 0 || socket_.hung_up; }
  // Makes a pending read and every later one fail, until resume_reading().
  void stop_reading();
  void resume_reading() { stopped_ = false; }
  // For a connection that may be silent for long: TCP asks whether the peer is still there.
  void find_dead_peer();
  void shutdown_send();
  void close();
  // Closes with a TCP reset: the peer cannot take what it got for complete.
  void abort();
  // Ends the sending side, then reads and drops what still comes, for two seconds or 1 MiB.
  Task<> close_gracefully();
  [[nodiscard]] bool is_open() const { return socket_.fd >= 0; }

 private:
  struct Tls;
  struct Direction {
    Direction(net::TimerWheel& wheel, Wire& wire)
        : timer(wheel, [this, &wire] {
            expired = true;
            wire.wake();
          }) {}
    net::WheelTimer timer;
    bool expired = false;
  };

  Task<Result<void>> wait(const Direction& direction, net::Readiness& readiness);
  void wake();
  Task<Result<void>> handshake();
  // What a TLS operation waits for before it is repeated; else its error.
  Result<net::Readiness*> tls_wants(int returned);
  WireRead try_read(std::span<char> room);
  [[nodiscard]] std::size_t write_at_once(std::span<const asio::const_buffer> buffers, bool& again,
                                          Error& error);

  net::Poller& poller_;
  net::PolledSocket socket_;
  std::unique_ptr<Tls> tls_;
  Direction reading_;
  Direction writing_;
  bool stopped_ = false;
};

}  // namespace gitops::proxy
