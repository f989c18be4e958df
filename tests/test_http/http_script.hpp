#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/async.hpp"
#include "common/core/task_group.hpp"
#include "common/http/url.hpp"
#include "common/net/channel.hpp"
#include "common/net/listener.hpp"
#include "common/net/tls_context.hpp"

namespace gitops::test {

// One connection whose bytes the test controls. Reads never fail: they return the bytes received
// before the connection ended. Loop thread only.
class RawConnection {
 public:
  explicit RawConnection(std::unique_ptr<net::Channel> channel) : channel_(std::move(channel)) {}

  // Through the first occurrence of `mark`.
  Task<std::string> read_until(std::string_view mark);
  // A message's head, including the blank line.
  Task<std::string> read_head() { return read_until("\r\n\r\n"); }
  Task<std::string> read_exactly(std::size_t size);
  // Reads until the peer closes.
  Task<std::string> read_to_end();

  // False when the peer has closed.
  Task<bool> send(std::string_view bytes);
  // Sends pieces that the peer reads one by one.
  Task<bool> send_in_pieces(std::string_view bytes, std::size_t size);

  void close() { channel_->close(); }
  void reset() { channel_->abort(); }
  // True after a read found an orderly end of the peer; false after a reset.
  [[nodiscard]] bool ended() const { return ended_; }
  [[nodiscard]] bool was_reset() const { return was_reset_; }
  // Everything received so far.
  [[nodiscard]] const std::string& received() const { return received_; }
  // The next bytes, at least one; empty at the end.
  Task<std::string> read_some();

 private:
  Task<bool> fill();

  std::unique_ptr<net::Channel> channel_;
  std::string received_;
  std::size_t taken_ = 0;  // bytes that reads have returned
  bool ended_ = false;
  bool was_reset_ = false;
};

// Forwards bytes both ways until one side ends.
Task<> join(RawConnection& left, RawConnection right);

// Connects to a port of 127.0.0.1.
Task<RawConnection> raw_connect(std::uint16_t port);
// Connects, sends, and returns everything the server sent before it closed.
Task<std::string> raw_exchange(std::uint16_t port, std::string bytes);

// A TCP or TLS server that runs one script per connection, in order. Closes further connections at
// once. The constructor starts to listen.
class HttpScript {
 public:
  using Script = std::function<Task<>(RawConnection&)>;

  HttpScript(const Executor& executor, std::vector<Script> scripts,
             std::optional<net::TlsOptions> tls = std::nullopt);
  // Ends running scripts. Must be awaited before the destructor.
  Task<> stop();

  [[nodiscard]] std::uint16_t port() const { return port_; }
  // http or https, with the IP address.
  [[nodiscard]] http::Url url() const;
  [[nodiscard]] std::size_t connections() const { return accepted_; }
  // The bytes received on each connection that has a script.
  [[nodiscard]] std::vector<std::string> received() const;

  // Reads one request's head, sends these bytes and closes.
  static Script answer(std::string bytes);
  // Answers each of `requests` heads with the same bytes on one connection, then closes.
  static Script answer_each(std::string bytes, int requests);

 private:
  void accepted(std::unique_ptr<net::Channel> channel);
  Task<> run(std::unique_ptr<net::Channel> channel, std::size_t index);

  net::Listener listener_;
  std::vector<Script> scripts_;
  std::optional<net::TlsContext> tls_;
  std::uint16_t port_ = 0;
  std::size_t accepted_ = 0;
  std::list<RawConnection> live_;  // kept for received()
  TaskGroup tasks_;
};

}  // namespace gitops::test
