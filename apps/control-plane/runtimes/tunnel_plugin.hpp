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

// Answers tunnel servers, which ask by the protocol of frp's server plugins whether a client may offer a host.
namespace gitops::control_plane_server {

// What a tunnel server asks.
struct TunnelQuestion {
  std::string operation;  // "Login", "NewProxy"
  Secret token;           // of the runtime; empty: none was sent
  std::string proxy_type;
  std::string subdomain;
  std::vector<std::string> custom_domains;
};
// invalid_data: the body is no question of this protocol.
Result<TunnelQuestion> read_tunnel_question(std::string_view body);

// The name that a runtime's tunnel has below the tunnel domain.
std::string tunnel_subdomain(const Account& account, std::string_view runtime);

// Why a client with this token may not offer what it asks for; empty: it may. A null caller: the token is not valid.
std::string tunnel_refusal(const TunnelQuestion& question, const Caller* caller);
// Whether the question is about a host, so that its token counts. A login is accepted from anyone.
bool is_about_host(const TunnelQuestion& question);

// The response's body: accepted unchanged when the reason is empty.
std::string tunnel_verdict(std::string_view refusal);

// POST /tunnel-plugin with "Authorization: Bearer TOKEN", and POST /tunnel-plugin/TOKEN for frp's own server, which sends
// no header. Without a token that is configured nothing is answered. Loop thread only; outlives its requests.
class TunnelPlugin {
 public:
  TunnelPlugin(Authenticator& authenticator, Credential token, Metrics& metrics);

  [[nodiscard]] std::vector<http::Route> routes();

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
