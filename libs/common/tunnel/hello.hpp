#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/core/error.hpp"
#include "common/core/secret.hpp"
#include "common/tunnel/message.hpp"

// Opening of a control stream in frp's wire protocol v2: both sides announce their capabilities.
// The encryption keys are derived from the two messages and the token. docs/reference/tunnel/protocol.md,
// "Wire v2".
namespace gitops::tunnel {

// First message of a client. frp's client also offers a second cipher; ours offers the one that
// both have.
struct ClientHello {
  // Number of random bytes of each side.
  static constexpr std::size_t kRandomSize = 32;
  std::string payload;        // as sent
  bool is_supported = false;  // accepts JSON and AES-256-GCM

  // `transport`: "wss", "websocket" or "tcp". `tls` and `tcp_mux`: TLS and yamux are in use.
  // `random`: kRandomSize unpredictable bytes.
  static ClientHello make(std::string_view transport, bool tls, bool tcp_mux,
                          std::string_view random);
  // Parses a payload. Error: protocol, when it is not a client's hello.
  static Result<ClientHello> read(std::string payload);
};

// Response to ClientHello.
struct ServerHello {
  std::string payload;
  std::string error;  // not empty: refused

  static ServerHello make(std::string_view random);
  static ServerHello refusal(std::string_view error);
  // Parses a payload. Error: protocol, when it is not a server's hello, or selects an option that
  // was not offered.
  static Result<ServerHello> read(std::string payload);
};

// Keys of the two directions of a control stream.
struct ControlKeys {
  Secret to_server;
  Secret to_client;
};
[[nodiscard]] ControlKeys control_keys(const Secret& token, const ClientHello& client,
                                       const ServerHello& server);

// Appends the frame of a hello. A client's is preceded by the magic.
void append_hello(std::string& out, const ClientHello& hello);
void append_hello(std::string& out, const ServerHello& hello);

// Reads the opening of a stream from a client, in either wire version: the first message, and in v2
// the magic and, on a control stream, a ClientHello before it. Buffers at most one frame.
class OpeningReader {
 public:
  struct Opening {
    Wire wire = Wire::v1;
    std::optional<ClientHello> hello = {};
    Message message;
  };
  // Consumes bytes from the front of `input`, at most up to the end of the first message. Returns
  // nothing when all input was consumed and more is needed. Errors: protocol, too_large.
  Result<std::optional<Opening>> next(std::string_view& input);

 private:
  std::optional<Wire> wire_;
  std::string magic_;  // the received part
  FrameReader frames_;
  std::optional<ClientHello> hello_;
  MessageReader v1_;
};

}  // namespace gitops::tunnel
