#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/core/attempts.hpp"
#include "common/core/log.hpp"
#include "common/core/metrics.hpp"
#include "common/http/router.hpp"
#include "control-plane/accounts/user_routes.hpp"
#include "control-plane/audit/audit_entry.hpp"
#include "control-plane/sso/login_store.hpp"
#include "control-plane/sso/provider.hpp"

namespace gitops::control_plane_server::sso {

// Single sign-on: which ways to log in there are, the way to an identity provider, and the way back.
//
//   GET /console/api/v1/sign-in          {"password":true,"providers":[{"name","title","path"}]}
//   GET /console/api/v1/sso/{name}?to=   302 to the provider
//   GET /api/auth/{name}/callback        302 to the path in `to` with a session, or to /sign-in?error=CODE with a code of
//                                        login_store.hpp
//
// A cookie binds a login to the browser in which it began, and a login ends once. Attempts are limited by address. Every
// outcome goes to the audit log. Without providers the first route tells so, and the others respond with 404. Loop
// thread only; its dependencies outlive it.
class SsoRoutes {
 public:
  struct Dependencies {
    store::Database& database;
    Authenticator& authenticator;
    AuditLog* audit = nullptr;                                   // null: nothing is audited
    std::function<std::string(http::Exchange&)> client_of = {};  // as in UserRouteContext
  };
  struct Options {
    std::vector<ProviderSettings> providers;
    std::string public_url;  // of this server, for browsers
    http::ProxySettings proxy = {};
  };
  // `names` and `metrics` outlive it.
  SsoRoutes(const Executor& executor, net::Resolver& names, Metrics& metrics,
            Dependencies dependencies, Options options);

  [[nodiscard]] std::vector<http::Route> routes();
  // Returns the address that ends a session at this provider; empty when there is none.
  Task<std::string> end_session_address(std::string provider);
  [[nodiscard]] std::vector<StatusEntry> status() const;
  // Closes idle connections to providers.
  void close();

 private:
  struct Outcome;
  [[nodiscard]] Provider* find(std::string_view name);
  [[nodiscard]] http::Response sign_in_methods() const;
  Task<http::Response> begin(http::Exchange& exchange, std::string name);
  Task<http::Response> end(http::Exchange& exchange, std::string name);
  Task<Result<SignIn>> finish(Provider& provider, http::Exchange& exchange, Outcome& outcome);
  Task<> audit(const Result<SignIn>& result, const Outcome& outcome, AuditEntry entry);
  [[nodiscard]] bool take_attempt(http::Exchange& exchange);
  [[nodiscard]] Secret browser_of(const http::Exchange& exchange) const;
  // Redirects to the sign-in page, which leads on to `to` after another attempt.
  [[nodiscard]] http::Response failed(std::string_view code, std::string_view to = {}) const;
  // Returns the path of this server as browsers see it.
  [[nodiscard]] std::string path_of(std::string_view path) const;

  Dependencies dependencies_;
  std::string public_url_;  // without a slash at its end
  std::string base_path_;   // of public_url_
  std::vector<std::unique_ptr<Provider>> providers_;
  Attempts attempts_{{.burst = 30, .period = std::chrono::seconds(3)}};
  Counter& succeeded_;
  Counter& refused_;
  Counter& failed_;
  Log log_{"sso"};
};

}  // namespace gitops::control_plane_server::sso
