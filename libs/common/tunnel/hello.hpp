#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/core/error.hpp"
#include "common/core/secret.hpp"
#include "common/tunnel/message.hpp"

// How a control stream of frp's wire protocol v2 begins: both sides say what they can do, and the keys
// of its encryption follow from that and from the token. docs/tunnel-protocol.md, "Wire v2".
namespace gitops::tunnel {

// What a client says first. frp's knows a second cipher, too; ours is the one that both have.
struct ClientHello {
  // Random bytes of each side.
  static constexpr std::size_t kRandomSize = 32;
  std::string payload;        // as it was sent
  bool is_supported = false;  // it takes JSON and AES-256-GCM

  // "wss", "websocket" or "tcp"; whether there is TLS and yamux below. `random`: kRandomSize
  // unpredictable bytes.
  static ClientHello make(std::string_view transport, bool tls, bool tcp_mux,
                          std::string_view random);
  // Reads a payload. Protocol when it is not what a client sends.
  static Result<ClientHello> read(std::string payload);
};

// The answer to it.
struct ServerHello {
  std::string payload;
  std::string error;  // not empty: refused

  static ServerHello make(std::string_view random);
  static ServerHello refusal(std::string_view error);
  // Reads a payload. Protocol when it is not what a server sends, or chooses what was not offered.
  static Result<ServerHello> read(std::string payload);
};

// The keys of a control stream's two directions.
struct ControlKeys {
  Secret to_server;
  Secret to_client;
};
[[nodiscard]] ControlKeys control_keys(const Secret& token, const ClientHello& client,
                                       const ServerHello& server);

// Appends a hello with its frame. A client's has the magic before it.
void append_hello(std::string& out, const ClientHello& hello);
void append_hello(std::string& out, const ServerHello& hello);

// Reads how a stream begins that a client has opened, of either wire: its first message, and in v2 the
// magic before it and, on a control stream, a ClientHello. Holds at most one frame.
class OpeningReader {
 public:
  struct Opening {
    Wire wire = Wire::v1;
    std::optional<ClientHello> hello = {};
    Message message;
  };
  // Takes bytes from the front of `input`, up to the end of the first message at most. Nothing: all was
  // taken, and more is needed. Errors: protocol, too_large.
  Result<std::optional<Opening>> next(std::string_view& input);

 private:
  std::optional<Wire> wire_;
  std::string magic_;  // as far as it was received
  FrameReader frames_;
  std::optional<ClientHello> hello_;
  MessageReader v1_;
};

}  // namespace gitops::tunnel
