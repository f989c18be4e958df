#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/core/async.hpp"
#include "common/core/task_group.hpp"
#include "common/http/buffer.hpp"
#include "common/http/client.hpp"
#include "common/http/server.hpp"
#include "common/http/upgraded.hpp"
#include "common/http/websocket_session.hpp"

namespace gitops::http {

struct WebSocketOptions {
  websocket::SessionOptions session = {};  // its role is set here
  std::size_t max_queued = 1024 * 1024;    // bytes to send; send() waits for room
  std::size_t max_received = 16;           // messages that wait for receive(); then no more is read
  std::chrono::milliseconds write_timeout{60'000};  // for a peer that reads nothing
};

// An open WebSocket. One reader, any number of senders; loop thread only.
class WebSocket {
 public:
  // The next message; nothing at the end, see ending(). Messages that came before the end are still
  // given.
  Task<std::optional<websocket::Message>> receive();
  // Queues a message and waits while more than max_queued bytes are ahead of it. Unavailable once
  // the WebSocket is closed or closing.
  Task<Result<void>> send(std::string_view text);
  Task<Result<void>> send_binary(std::string_view bytes);
  // Begins to close; messages that were queued go first. receive() ends with the peer's answer.
  void close(std::uint16_t code, std::string_view reason);

  // The subprotocol that both sides agreed on; may be empty.
  [[nodiscard]] const std::string& protocol() const { return protocol_; }
  [[nodiscard]] const std::optional<websocket::Ending>& ending() const { return session_.ending(); }

  // What runs on an open WebSocket. It is closed with 1000 when this returns, and with 1011 when it
  // throws. When the WebSocket ends first, this has half a second to notice, and is then cancelled.
  using Body = std::function<Task<>(WebSocket&)>;

  // Runs `body` on a connection that has switched, and returns when both are done. The WebSocket is
  // closed with 1001 when `draining` returns, if it is given.
  static Task<websocket::Ending> run(Upgraded connection, std::string protocol,
                                     WebSocketOptions options, Body body,
                                     std::function<Task<>()> draining = {});

 private:
  WebSocket(const Executor& executor, Upgraded connection, std::string protocol,
            WebSocketOptions options);

  Task<Result<void>> queue(websocket::Opcode opcode, std::string_view payload);
  [[nodiscard]] std::size_t queued() const { return writing_.size() + session_.output().size(); }
  [[nodiscard]] bool may_read() const;
  Task<> supervise(Body body, std::function<Task<>()> draining);
  Task<> read_loop();
  Task<> write_loop();
  Task<> clock_loop();

  WebSocketOptions options_;
  std::unique_ptr<net::Channel> channel_;
  std::string protocol_;
  websocket::Session session_;
  ReadBuffer in_;
  std::string writing_;  // on its way; session_.output() comes next
  std::deque<websocket::Message> messages_;
  bool reading_ = true;  // false while nobody takes messages
  bool writer_ended_ = true;
  bool body_ended_ = false;
  bool body_failed_ = false;
  Event changed_;  // any of the above
  TaskGroup io_tasks_;
  TaskGroup body_task_;
};

// Answers a request to open a WebSocket and runs `body` on it; any other request is refused. Agrees
// on the first of the client's subprotocols that is in `protocols`, or on none. A draining server
// closes the WebSocket with 1001.
Task<> serve_websocket(Exchange& exchange, std::span<const std::string_view> protocols,
                       WebSocketOptions options, WebSocket::Body body);

// Opens a WebSocket at `url` (ws, wss, http or https) and runs `body` on it. `request` holds the
// target and further fields. Returns how the WebSocket ended, or why it could not be opened by the
// deadline.
Task<Result<websocket::Ending>> connect_websocket(Client& client, const Url& url, Request request,
                                                  std::span<const std::string_view> protocols,
                                                  WebSocketOptions options, Deadline deadline,
                                                  WebSocket::Body body);

}  // namespace gitops::http
