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
// The command line opens the first address with a user's id and no credential. Nobody is believed to
// be that user: without a credential the answer is a form that asks for the API key, and the key must
// be that user's. A login belongs to the browser that began it, by a cookie, and comes back once; so
// a link that somebody sends neither gives his account to another user, nor him the account of one.
// The state of a login is sealed and travels with the browser: any replica ends what another began.
// Loop thread only; its dependencies outlive it.
class GitLoginRoutes {
 public:
  // The pointers are null while the runtime has no access
  // to its cluster.
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

  // `provider` is that of the path.
  Task<> serve_start(http::Exchange& exchange, std::string provider);
  Task<> serve_form(http::Exchange& exchange, std::string provider);
  Task<> serve_callback(http::Exchange& exchange, std::string provider);

 private:
  // What the address or the form names.
  struct Wanted {
    std::string user_id = {};
    std::string account_id = {};
    std::string integration = {};
  };
  // Where the browser goes, and the cookie that it keeps.
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
  // Begins a login, tells the audit stream when it is refused, and answers with a page in that case.
  Task<std::optional<Begun>> begin_or_refuse(http::Exchange& exchange, const Caller& caller,
                                             ProviderKind kind, Wanted wanted);
  // The login that a Git host's answer belongs to, used up; or the page that refuses the answer.
  std::expected<oauth::Login, http::Response> login_of(const http::Exchange& exchange,
                                                       ProviderKind kind);
  // Finishes the login with the code of the answer. The result names the user at the host.
  Task<Result<std::string>> take_answer(const http::Exchange& exchange, const oauth::Login& login);
  // Exchanges the code and registers the token. The result names the user at the host.
  Task<Result<std::string>> finish(const oauth::Login& login, std::string code, Deadline deadline);
  // Whether the form's request comes from the form's page.
  [[nodiscard]] bool is_from_page(const http::Request& request, ProviderKind kind) const;

  Dependencies dependencies_;
  Attempts logins_{{.burst = 10, .period = std::chrono::minutes(1)}};  // by user
  oauth::UsedLogins used_;
  Log log_{"git-logins"};
};

}  // namespace gitops::app_proxy
