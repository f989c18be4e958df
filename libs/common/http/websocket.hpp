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
  websocket::SessionOptions session = {};  // run() and the functions below set its role
  std::size_t max_queued = 1024 * 1024;    // bytes to send; send() waits for room
  std::size_t max_received = 16;           // messages waiting for receive(); then reading pauses
  std::chrono::milliseconds write_timeout{60'000};  // for a peer that does not read
};

// Open WebSocket. One reader, any number of senders. Loop thread only.
class WebSocket {
 public:
  // Returns the next message; nothing at the end, see ending(). Messages received before the end
  // are returned first.
  Task<std::optional<websocket::Message>> receive();
  // Queues a message; waits while more than max_queued bytes are queued before it. Error:
  // unavailable, once the WebSocket is closed or closing.
  Task<Result<void>> send(std::string_view text);
  Task<Result<void>> send_binary(std::string_view bytes);
  // Begins to close after the queued messages. receive() ends with the peer's close frame.
  void close(std::uint16_t code, std::string_view reason);

  // Negotiated subprotocol; may be empty.
  [[nodiscard]] const std::string& protocol() const { return protocol_; }
  [[nodiscard]] const std::optional<websocket::Ending>& ending() const { return session_.ending(); }

  // Coroutine that uses an open WebSocket. The WebSocket is closed with 1000 when it returns, and
  // with 1011 when it throws. If the WebSocket ends first, the coroutine has half a second to end,
  // and is then cancelled.
  using Body = std::function<Task<>(WebSocket&)>;

  // Runs `body` on a connection that has switched, and returns when both have ended. Closes the
  // WebSocket with 1001 when `draining` returns, if it is given.
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
  std::string writing_;  // being written; session_.output() follows
  std::deque<websocket::Message> messages_;
  bool reading_ = true;  // false while reading is paused
  bool writer_ended_ = true;
  bool body_ended_ = false;
  bool body_failed_ = false;
  Event changed_;  // set on any change of the above
  TaskGroup io_tasks_;
  TaskGroup body_task_;
};

// Accepts a request to open a WebSocket and runs `body` on it; refuses any other request. Selects
// the first of the client's subprotocols that is in `protocols`, or none. A draining server closes
// the WebSocket with 1001.
Task<> serve_websocket(Exchange& exchange, std::span<const std::string_view> protocols,
                       WebSocketOptions options, WebSocket::Body body);

// Opens a WebSocket at `url` (ws, wss, http or https) and runs `body` on it. `request` contains the
// target and further fields. Returns the ending of the WebSocket, or the error of opening it until
// the deadline.
Task<Result<websocket::Ending>> connect_websocket(Client& client, const Url& url, Request request,
                                                  std::span<const std::string_view> protocols,
                                                  WebSocketOptions options, Deadline deadline,
                                                  WebSocket::Body body);

}  // namespace gitops::http
