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

// The two protocols for GraphQL on a WebSocket, by their names as subprotocols:
// graphql-transport-ws (https://github.com/enisdenjo/graphql-ws/blob/master/PROTOCOL.md), and its
// predecessor graphql-ws
// (https://github.com/apollographql/subscriptions-transport-ws/blob/master/PROTOCOL.md).
enum class SocketProtocol { transport, legacy };
inline constexpr std::array<std::string_view, 2> kSocketProtocols{"graphql-transport-ws",
                                                                  "graphql-ws"};
// Nothing for another name.
std::optional<SocketProtocol> socket_protocol(std::string_view name);

struct SocketSessionOptions {
  std::size_t max_operations = 20;  // at the same time
  std::size_t max_id = 100;         // bytes of an operation's id
  std::size_t max_waiting =
      64UL * 1024;  // bytes of operations before the answer to connection_init
  std::chrono::milliseconds init_timeout{10'000};  // for the client's connection_init
  // Between messages that keep the connection of a legacy client busy. A transport client is pinged
  // by the WebSocket itself.
  std::chrono::milliseconds keep_alive{25'000};
};

// What the program has to do after a message.
struct SocketAction {
  enum class Kind {
    open,   // check the payload of connection_init; then accept() or refuse()
    start,  // run an operation: payload is the body of a request
    stop,   // end the operation without an answer
  };
  Kind kind = Kind::open;
  std::string id = {};
  std::string payload = {};  // JSON text; empty without one

  bool operator==(const SocketAction&) const = default;
};

// The server's end of either protocol without a connection: texts and time come in, texts to send and
// actions come out.
class SocketSession {
 public:
  SocketSession(SocketProtocol protocol, SocketSessionOptions options, Clock::time_point now);

  // Reads one text message.
  std::vector<SocketAction> receive(std::string_view text, Clock::time_point now);
  // A binary message was received, which neither protocol has.
  void receive_binary();

  // Answers connection_init. Returns the operations that a legacy client has started since: it does not
  // wait for the answer.
  std::vector<SocketAction> accept(Clock::time_point now);
  void refuse(std::string_view reason);

  // One answer of an operation, a text like {"data":…}. These do nothing for an operation that was
  // stopped.
  void next(const std::string& id, std::string_view answer);
  // The operation was not executed.
  void fail(const std::string& id, const std::vector<ResponseError>& errors);
  // The operation has ended.
  void complete(const std::string& id);

  // Ends a session whose client has not introduced itself; keeps others alive. At due() or later.
  void tick(Clock::time_point now);
  [[nodiscard]] Clock::time_point due() const;

  // Messages to send, in order; the caller takes them.
  [[nodiscard]] std::vector<std::string>& output() { return output_; }
  struct Close {
    std::uint16_t code = 1000;
    std::string reason = {};

    bool operator==(const Close&) const = default;
  };
  // Set when the WebSocket is to be closed, after output() was sent.
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
  std::vector<SocketAction> waiting_;  // for the answer to connection_init
  std::vector<std::string> output_;
  std::optional<Close> closing_;
  JsonParser parser_;
};

}  // namespace gitops::graphql
