#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/core/credential.hpp"
#include "common/core/error.hpp"
#include "common/core/log.hpp"
#include "common/core/metrics.hpp"
#include "common/core/secret.hpp"
#include "common/http/router.hpp"
#include "control-plane/accounts/authenticator.hpp"
#include "control-plane/accounts/identity.hpp"

// The plugin of tunnel servers, by the protocol of frp's server plugins: decides whether a client may offer a host.
namespace gitops::control_plane_server {

// A request of a tunnel server.
struct TunnelQuestion {
  std::string operation;  // "Login", "NewProxy"
  Secret token;           // of the runtime; empty: none was sent
  std::string proxy_type;
  std::string subdomain;
  std::vector<std::string> custom_domains;
};
// Reads a request. invalid_data: the body is not a request of this protocol.
Result<TunnelQuestion> read_tunnel_question(std::string_view body);

// Returns the name of a runtime's tunnel below the tunnel domain.
std::string tunnel_subdomain(std::string_view account_id, std::string_view runtime);
std::string tunnel_subdomain(const Account& account, std::string_view runtime);

// Returns why a client with this token may not offer the host; empty: it may. A null caller: the token is not valid.
std::string tunnel_refusal(const TunnelQuestion& question, const Caller* caller);
// Returns whether the request is about a host and so needs a valid token. A login is accepted from any client.
bool is_about_host(const TunnelQuestion& question);

// Returns the response's body: accepted unchanged when the reason is empty.
std::string tunnel_verdict(std::string_view refusal);

// Serves POST /tunnel-plugin with "Authorization: Bearer TOKEN", and POST /tunnel-plugin/TOKEN for frp's own server,
// which sends no header. Refuses all requests when no token is configured. Loop thread only; outlives its requests.
class TunnelPlugin {
 public:
  TunnelPlugin(Authenticator& authenticator, Credential token, Metrics& metrics);

  [[nodiscard]] std::vector<http::Route> routes();
  // Returns whether a token is configured, so that tunnel servers can ask.
  [[nodiscard]] bool has_token() { return !token_.current().empty(); }

 private:
  Task<> serve(http::Exchange& exchange, Secret sent);
  [[nodiscard]] bool is_token(const Secret& sent);

  Authenticator& authenticator_;
  Credential token_;
  Log log_{"tunnels"};
  RepeatFilter repeated_{std::chrono::minutes(1)};
  Counter& accepted_;
  Counter& refused_;
  Counter& unknown_;
};

}  // namespace gitops::control_plane_server
