#pragma once

#include "common/core/credential.hpp"
#include "common/http/router.hpp"
#include "common/http/server.hpp"
#include "tunnel-server/client_registry.hpp"

namespace gitops::tunnel_server {

// HTTP API with which operators list and disconnect clients; docs/reference/tunnel/server.md, "API". Every
// request needs the token. Loop thread only.
class Api {
 public:
  struct Options {
    std::string address;
    std::uint16_t port = 0;
    Secret token = {};
    std::string token_file = {};  // takes precedence; reloaded when it changes
  };
  // The registry and the table must outlive the API.
  Api(const Executor& executor, ClientRegistry& clients, const HostTable& table, Options options);

  // Starts listening. Errors: an unreadable or missing token, an unavailable port.
  Result<void> listen();
  [[nodiscard]] std::uint16_t port() const { return server_.port(); }
  Task<> stop(Deadline deadline) { return server_.stop(deadline); }

 private:
  Task<Result<void>> admit(http::Exchange& exchange);
  [[nodiscard]] std::vector<http::Route> routes();
  [[nodiscard]] http::Response list_clients() const;
  [[nodiscard]] http::Response disconnect(const std::string& id);
  [[nodiscard]] http::Response list_bans();
  Task<> put_ban(http::Exchange& exchange, const std::string& name);
  [[nodiscard]] http::Response delete_ban(const std::string& name);

  ClientRegistry& clients_;
  const HostTable& table_;
  Credential token_;
  http::Router router_;
  http::Server server_;
};

}  // namespace gitops::tunnel_server
