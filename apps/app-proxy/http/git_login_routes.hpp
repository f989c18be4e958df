#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "app-proxy/entities/config_repository.hpp"
#include "app-proxy/git/committer.hpp"
#include "app-proxy/http/request_gate.hpp"
#include "app-proxy/integrations/git_integrations.hpp"
#include "app-proxy/integrations/oauth_client.hpp"
#include "app-proxy/users/audit.hpp"
#include "common/core/attempts.hpp"
#include "common/core/log.hpp"
#include "common/http/server.hpp"

namespace gitops::app_proxy {

// The login of a user at a Git host, in a browser: GET and POST /api/git-auth/{provider}, and the
// callback that the host sends the browser to. At its end the token is registered as by the mutation
// registerToGitIntegration.
//
// The command line opens the first address with a user's id and no credential. The id alone is not
// trusted: a request without a credential gets a form that asks for the API key, and the key must
// belong to that user. A cookie binds a login to the browser that started it, and a login can be
// completed once. A forwarded link therefore cannot connect one user's account at the host with
// another user. The state of a login is sealed and travels with the browser, so any replica can
// complete it. Loop thread only; its dependencies outlive it.
class GitLoginRoutes {
 public:
  // Dependencies. The pointers are null while the runtime has no access to its cluster.
  struct Dependencies {
    RequestGate& gate;
    Audit& audit;
    GitIntegrations* git = nullptr;
    OauthClient* oauth = nullptr;
    const TokenSeal* seal = nullptr;
    Committer* committer = nullptr;  // null, too: there is no folder for clones
    RuntimeFiles files = {};
  };
  explicit GitLoginRoutes(Dependencies dependencies) : dependencies_(std::move(dependencies)) {}

  // `provider` is the segment of the path.
  Task<> serve_start(http::Exchange& exchange, std::string provider);
  Task<> serve_form(http::Exchange& exchange, std::string provider);
  Task<> serve_callback(http::Exchange& exchange, std::string provider);

 private:
  // Values of the address or the form.
  struct Wanted {
    std::string user_id = {};
    std::string account_id = {};
    std::string integration = {};
  };
  // Target URL of the browser, and its cookie.
  struct Begun {
    std::string location;
    std::string cookie;
  };
  // An integration and the OAuth application of its host.
  struct LoginTarget {
    Integration integration;
    oauth::OauthApp app;
  };
  Task<Result<LoginTarget>> login_target_of(Actor actor, ProviderKind kind, std::string integration,
                                            Deadline deadline);
  Task<Result<Begun>> begin(const User& user, ProviderKind kind, Wanted wanted, Deadline deadline);
  // Begins a login. A refusal goes to the audit stream and to the browser as a page; then returns
  // nullopt.
  Task<std::optional<Begun>> begin_or_refuse(http::Exchange& exchange, const Caller& caller,
                                             ProviderKind kind, Wanted wanted);
  // Returns the login of a Git host's response and marks it as used, or the page that refuses it.
  std::expected<oauth::Login, http::Response> login_of(const http::Exchange& exchange,
                                                       ProviderKind kind);
  // Completes the login with the code of the response. Returns the name of the user at the host.
  Task<Result<std::string>> take_answer(const http::Exchange& exchange, const oauth::Login& login);
  // Exchanges the code and registers the token. Returns the name of the user at the host.
  Task<Result<std::string>> finish(const oauth::Login& login, std::string code, Deadline deadline);
  // Checks whether the form's request comes from the form's page.
  [[nodiscard]] bool is_from_page(const http::Request& request, ProviderKind kind) const;

  Dependencies dependencies_;
  Attempts logins_{{.burst = 10, .period = std::chrono::minutes(1)}};  // by user
  oauth::UsedLogins used_;
  Log log_{"git-logins"};
};

}  // namespace gitops::app_proxy
