#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/json_text.hpp"
#include "common/core/time.hpp"
#include "common/graphql/response.hpp"

namespace gitops::graphql {

// The two protocols of GraphQL over WebSocket, by their subprotocol names: graphql-transport-ws
// (https://github.com/enisdenjo/graphql-ws/blob/master/PROTOCOL.md), and its predecessor graphql-ws
// (https://github.com/apollographql/subscriptions-transport-ws/blob/master/PROTOCOL.md).
enum class SocketProtocol { transport, legacy };
inline constexpr std::array<std::string_view, 2> kSocketProtocols{"graphql-transport-ws",
                                                                  "graphql-ws"};
// Returns the protocol of that name; nothing if it is unknown.
std::optional<SocketProtocol> socket_protocol(std::string_view name);

struct SocketSessionOptions {
  std::size_t max_operations = 20;  // at a time
  std::size_t max_id = 100;         // bytes of an operation's id
  std::size_t max_waiting =
      64UL * 1024;  // bytes of operations before the response to connection_init
  std::chrono::milliseconds init_timeout{10'000};  // for the client's connection_init
  // Interval of messages that keep a legacy client's connection alive. The WebSocket itself pings a
  // transport client.
  std::chrono::milliseconds keep_alive{25'000};
};

// Action for the program after a message.
struct SocketAction {
  enum class Kind {
    open,   // authorize the payload of connection_init; then accept() or refuse()
    start,  // run an operation: payload is the body of a request
    stop,   // end the operation without a response
  };
  Kind kind = Kind::open;
  std::string id = {};
  std::string payload = {};  // JSON text; empty without a payload

  bool operator==(const SocketAction&) const = default;
};

// Server side of either protocol, without I/O. Takes texts and time; returns texts to send and
// actions.
class SocketSession {
 public:
  SocketSession(SocketProtocol protocol, SocketSessionOptions options, Clock::time_point now);

  // Processes one text message.
  std::vector<SocketAction> receive(std::string_view text, Clock::time_point now);
  // Processes a binary message, which neither protocol allows.
  void receive_binary();

  // Acknowledges connection_init. Returns the operations that a legacy client has started since,
  // because it does not wait for the acknowledgement.
  std::vector<SocketAction> accept(Clock::time_point now);
  void refuse(std::string_view reason);

  // Sends one response of an operation, a text like {"data":…}. Does nothing for a stopped operation,
  // as fail() and complete().
  void next(const std::string& id, std::string_view answer);
  // Sends the errors of an operation that was not executed.
  void fail(const std::string& id, const std::vector<ResponseError>& errors);
  // Completes an operation.
  void complete(const std::string& id);

  // Ends a session without connection_init; sends keep-alive messages on others. Call it at due()
  // or later.
  void tick(Clock::time_point now);
  [[nodiscard]] Clock::time_point due() const;

  // Messages to send, in order; the caller removes them.
  [[nodiscard]] std::vector<std::string>& output() { return output_; }
  struct Close {
    std::uint16_t code = 1000;
    std::string reason = {};

    bool operator==(const Close&) const = default;
  };
  // Set when the WebSocket must be closed after sending output().
  [[nodiscard]] const std::optional<Close>& closing() const { return closing_; }
  [[nodiscard]] std::size_t operations() const { return operations_.size(); }

 private:
  enum class State { waiting, opening, open };

  void close(std::uint16_t code, std::string reason);
  void invalid(std::string reason);
  [[nodiscard]] std::size_t waiting_bytes() const;
  void start(std::string id, std::string payload, std::vector<SocketAction>& actions);
  void stop(const std::string& id, std::vector<SocketAction>& actions);
  void send(std::string_view type, std::string_view id = {}, std::string_view payload = {});

  SocketProtocol protocol_;
  SocketSessionOptions options_;
  State state_ = State::waiting;
  Clock::time_point due_;
  std::set<std::string, std::less<>> operations_;
  std::vector<SocketAction> waiting_;  // for accept() or refuse()
  std::vector<std::string> output_;
  std::optional<Close> closing_;
  JsonParser parser_;
};

}  // namespace gitops::graphql
