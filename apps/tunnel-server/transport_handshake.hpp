#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "common/core/async.hpp"
#include "common/net/channel.hpp"
#include "common/net/tls_context.hpp"

namespace gitops::tunnel_server {

// Removes the transport layers that a client has put below yamux, or below frp's messages: any of
// TLS, WebSocket, and TLS inside WebSocket. Detects them by their first byte as frp's server does
// (docs/reference/tunnel/protocol.md). WebSocket inside TLS (wss) is supported as well. Loop thread only.
class TransportHandshake {
 public:
  struct Options {
    // Server certificate; without one, TLS is refused.
    net::TlsOptions tls = {};
    // Clients without TLS are refused if set.
    bool require_tls = false;
  };
  explicit TransportHandshake(Options options);

  // Reads the certificate. The error names the file.
  Result<void> check();

  struct Transport {
    std::unique_ptr<net::Channel> channel;
    // The channel carries yamux; otherwise it is one stream of messages (frp's tcpMux = false).
    bool has_mux = true;
  };
  // Performs the handshake on an accepted channel. Errors: timeout, protocol, tls, forbidden (TLS
  // is required), unavailable; the connection is closed then. A WebSocket request that is not frp's
  // receives an HTTP response.
  Task<Result<Transport>> perform(std::unique_ptr<net::Channel> channel, Deadline deadline);

 private:
  using Added = Result<std::unique_ptr<net::Channel>>;
  Task<Added> add_tls(std::unique_ptr<net::Channel> channel, std::string received,
                      Deadline deadline);
  static Task<Added> add_websocket(std::unique_ptr<net::Channel> channel, std::string received);

  Options options_;
  net::TlsContext tls_;
};

}  // namespace gitops::tunnel_server
