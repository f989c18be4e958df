#pragma once

#include <memory>

#include "common/core/async.hpp"
#include "common/http/client.hpp"
#include "common/net/channel.hpp"
#include "common/net/resolve.hpp"
#include "common/net/tls_context.hpp"
#include "tunnel-client/config.hpp"

namespace gitops::tunnel_client {

// Connects to a tunnel server, with all layers below yamux. Reloads certificates when they change.
// Loop thread only.
class Dialer {
 public:
  // The resolver and the configuration must outlive the dialer. `proxy` is for wss and websocket;
  // tcp connects directly.
  Dialer(const Executor& executor, net::Resolver& resolver, const Config& config, Endpoint server,
         http::ProxySettings proxy);

  // Connects until the deadline. Errors name the server and contain no secret.
  Task<Result<std::unique_ptr<net::Channel>>> connect(Deadline deadline);
  // Returns whether the layers below yamux include TLS.
  [[nodiscard]] bool has_tls() const;
  // The server as "wss://host:port", for logs.
  [[nodiscard]] std::string server() const;

 private:
  Task<Result<std::unique_ptr<net::Channel>>> connect_websocket(Deadline deadline);

  const Config& config_;
  Endpoint server_;
  net::Resolver& resolver_;
  net::TlsContext tls_;
  http::Client client_;
};

}  // namespace gitops::tunnel_client
