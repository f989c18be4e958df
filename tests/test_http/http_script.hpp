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

// One connection whose bytes a test decides. Reads never fail: they return what came before the end
// of the connection. Loop thread only.
class RawConnection {
 public:
  explicit RawConnection(std::unique_ptr<net::Channel> channel) : channel_(std::move(channel)) {}

  // Through the first occurrence of `mark`.
  Task<std::string> read_until(std::string_view mark);
  // A message's head, blank line included.
  Task<std::string> read_head() { return read_until("\r\n\r\n"); }
  Task<std::string> read_exactly(std::size_t size);
  // Until the other side has closed.
  Task<std::string> read_to_end();

  // False when the other side is gone.
  Task<bool> send(std::string_view bytes);
  // In pieces that the other side gets to see one by one.
  Task<bool> send_in_pieces(std::string_view bytes, std::size_t size);

  void close() { channel_->close(); }
  void reset() { channel_->abort(); }
  // True after a read that found the other side's orderly end; false after a reset.
  [[nodiscard]] bool ended() const { return ended_; }
  [[nodiscard]] bool was_reset() const { return was_reset_; }
  // Everything received so far.
  [[nodiscard]] const std::string& received() const { return received_; }
  // Whatever comes next, at least a byte; empty at the end.
  Task<std::string> read_some();

 private:
  Task<bool> fill();

  std::unique_ptr<net::Channel> channel_;
  std::string received_;
  std::size_t taken_ = 0;  // what reads have returned of it
  bool ended_ = false;
  bool was_reset_ = false;
};

// Passes on what each sends to the other until one of them ends.
Task<> join(RawConnection& left, RawConnection right);

// Connects to a port of this machine.
Task<RawConnection> raw_connect(std::uint16_t port);
// Connects, sends, and returns what came back until the server closed.
Task<std::string> raw_exchange(std::uint16_t port, std::string bytes);

// A TCP (or TLS) server that does what its scripts say: the first for the first connection, and so
// on. Further connections are accepted and closed at once. Listens from its construction on.
class HttpScript {
 public:
  using Script = std::function<Task<>(RawConnection&)>;

  HttpScript(const Executor& executor, std::vector<Script> scripts,
             std::optional<net::TlsOptions> tls = std::nullopt);
  // Ends what still runs. Must be awaited before the object is destroyed.
  Task<> stop();

  [[nodiscard]] std::uint16_t port() const { return port_; }
  // http or https, by address.
  [[nodiscard]] http::Url url() const;
  [[nodiscard]] std::size_t connections() const { return accepted_; }
  // What was received on each connection that has a script.
  [[nodiscard]] std::vector<std::string> received() const;

  // Reads one request's head and answers with these bytes, then closes.
  static Script answer(std::string bytes);
  // Answers each of `requests` heads with the same bytes and keeps the connection open until then.
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
