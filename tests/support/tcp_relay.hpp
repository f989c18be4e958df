#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/ip/tcp.hpp>

#include "common/core/async.hpp"
#include "common/core/task_group.hpp"

namespace gitops::test {

// A TCP port on 127.0.0.1 that forwards connections to another address until the test cuts or
// closes it. Stands for the network between a client and a running server. Loop thread; call
// stop() before the destructor.
class TcpRelay {
 public:
  TcpRelay(const Executor& executor, const std::string& address, std::uint16_t port);

  [[nodiscard]] std::uint16_t port() const { return port_; }
  // Forwards new connections to this port of the same address.
  void forward_to(std::uint16_t port) { target_.port(port); }
  // Ends every connection; forwards new ones.
  void cut();
  // Ends every connection, and new ones when they are accepted, until open().
  void close();
  // Ends close(), answer_with() and delay().
  void open();
  // Does close() once clients have sent so many more bytes; those before are forwarded.
  void close_after(std::size_t bytes) { close_after_ = bytes; }
  [[nodiscard]] bool is_closed() const { return closed_; }
  // Connections that came while it was closed.
  [[nodiscard]] std::size_t refused() const { return refused_; }
  // Keeps connections and accepts new ones, but forwards nothing until release().
  void hold() { held_ = true; }
  void release();
  // Forwards each part of a stream after this time.
  void delay(Clock::duration time) { delay_ = time; }
  // Ends every connection, and answers the first request of each new one with this HTTP message, as a
  // proxy before the server would. Not for TLS.
  void answer_with(std::string message);
  [[nodiscard]] std::size_t connections() const { return links_.size(); }
  Task<> stop();

 private:
  using Socket = asio::basic_stream_socket<asio::ip::tcp, Executor>;
  using Acceptor = asio::basic_socket_acceptor<asio::ip::tcp, Executor>;
  struct Link {
    Socket client;
    Socket server;
    void close();
  };
  Task<> accept();
  Task<> serve(std::shared_ptr<Link> link);
  Task<> pump(Link& link, Socket& from, Socket& to);
  Task<> answer(Link& link);

  Executor executor_;
  asio::ip::tcp::endpoint target_;
  Acceptor acceptor_;
  std::uint16_t port_ = 0;
  bool closed_ = false;
  bool held_ = false;
  Clock::duration delay_ = {};
  std::string answer_;  // empty: forward
  std::optional<std::size_t> close_after_;
  std::size_t refused_ = 0;
  Event released_;
  std::list<std::shared_ptr<Link>> links_;
  TaskGroup tasks_;
};

}  // namespace gitops::test
