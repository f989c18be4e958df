#include "app-proxy/http/git_login_routes.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "app-proxy/http/git_login_pages.hpp"
#include "app-proxy/http/routes.hpp"
#include "app-proxy/resolvers/git_integrations.hpp"
#include "app-proxy/resolvers/git_sources.hpp"
#include "app-proxy/users/credential.hpp"
#include "common/core/text.hpp"
#include "common/http/url.hpp"

namespace gitops::app_proxy {
namespace {

constexpr const char* kCookie = "gitops-git-login";
constexpr auto kMaxLoginTime = std::chrono::minutes(10);  // of a login, in the browser
constexpr auto kBeginTime = std::chrono::seconds(15);
constexpr auto kFinishTime = std::chrono::seconds(40);
constexpr std::size_t kMaxForm = 16UL * 1024;
constexpr std::size_t kMaxCode = 2'048;
constexpr std::size_t kMaxShown = 200;  // of a text from a request or a host
constexpr std::string_view kNotDone = "The login did not succeed";
constexpr std::string_view kAudited = "registerToGitIntegration";

// Code for the audit stream: our subcode, else the peer's reason.
std::string_view reason_of(const Error& error) {
  return error.subcode.empty() ? std::string_view(error.reason) : error.subcode;
}

int status_of(const Error& error) {
  switch (error.code) {
    case ErrorCode::invalid_argument:
    case ErrorCode::unsupported:
      return 400;
    case ErrorCode::unauthenticated:
      return 401;
    case ErrorCode::forbidden:
      return 403;
    case ErrorCode::not_found:
      return 404;
    case ErrorCode::conflict:
      return 409;
    case ErrorCode::too_many_requests:
      return 429;
    case ErrorCode::protocol:
    case ErrorCode::too_large:
      return 502;
    case ErrorCode::timeout:
      return 504;
    default:
      return 503;
  }
}

http::Response failure_page(const Error& error) {
  auto response = login_page(status_of(error), kNotDone, error.message + ".");
  add_retry_after(response, error);
  return response;
}

http::Response unknown_provider_page() {
  return login_page(404, kNotDone,
                    "There is a login at these Git hosts: github, gitlab, bitbucket-server, gitea. "
                    "For others, make a token there and register it with the integration.");
}

// Origin of a URL in the form of browsers.
std::string origin_of(const http::Url& url) {
  return url.scheme + "://" + url.host_header();
}

// Cookie for the host and the path of the callback. An empty value deletes it.
std::string cookie_for(const http::Url& callback, const std::string& value) {
  const auto seconds =
      value.empty() ? std::chrono::seconds(0) : std::chrono::seconds(kMaxLoginTime);
  return std::string(kCookie) + "=" + value + "; Path=" + callback.path +
         "; Max-Age=" + std::to_string(seconds.count()) + "; HttpOnly; SameSite=Lax" +
         (callback.is_tls() ? "; Secure" : "");
}

// Checks whether a cookie of the request belongs to the login. There can be several of one name, of
// other paths and domains.
bool is_begun_here(const http::Headers& headers, const oauth::Login& login) {
  for (const auto& [name, value] : headers) {
    if (!http::equal_ignoring_case(name, "Cookie")) continue;
    for (std::string_view rest = value; !rest.empty();) {
      const auto pair = trimmed(rest.substr(0, rest.find(';')));
      rest.remove_prefix(
          std::min(rest.find(';') == rest.npos ? rest.size() : rest.find(';') + 1, rest.size()));
      const auto equals = pair.find('=');
      if (equals == pair.npos || pair.substr(0, equals) != kCookie) continue;
      if (oauth::is_browser(login.browser, pair.substr(equals + 1))) return true;
    }
  }
  return false;
}

bool is_form(const http::Headers& headers) {
  return http::equal_ignoring_case(http::media_type(headers), "application/x-www-form-urlencoded");
}

}  // namespace

bool GitLoginRoutes::is_from_page(const http::Request& request, ProviderKind kind) const {
  // Every browser sends this field to https:// and to localhost, and pages cannot change it.
  if (const auto site = request.headers.find("Sec-Fetch-Site")) return *site == "same-origin";
  const auto callback = dependencies_.oauth->redirect_uri(kind);
  return callback && request.headers.find("Origin") == origin_of(*callback);
}

Task<Result<GitLoginRoutes::LoginTarget>> GitLoginRoutes::login_target_of(Actor actor,
                                                                          ProviderKind kind,
                                                                          std::string integration,
                                                                          Deadline deadline) {
  const auto name = integration_name(integration);
  if (!name) co_return std::unexpected(name.error());
  auto found = co_await dependencies_.git->get(std::move(actor), *name, deadline);
  if (!found) co_return std::unexpected(shown(std::move(found.error())));
  if (!*found) co_return std::unexpected(unknown_integration(*name));
  const ApiRoot& root = (*found)->root;
  if (root.kind != kind) {
    const auto word = oauth::word_of(root.kind);
    co_return fail(ErrorCode::invalid_argument,
                   "the Git integration \"" + *name + "\" is for " +
                       std::string(display_name(root.kind)) +
                       (word.empty() ? ", where there is no login; register a token instead"
                                     : "; open /app-proxy/api/git-auth/" + std::string(word)));
  }
  auto app = co_await dependencies_.oauth->app_for(root, deadline);
  if (!app) {
    if (app.error().code == ErrorCode::not_found) co_return std::unexpected(app.error());
    co_return std::unexpected(shown(std::move(app.error())));
  }
  LoginTarget target{.integration = std::move(**found), .app = std::move(*app)};
  co_return target;
}

Task<Result<GitLoginRoutes::Begun>> GitLoginRoutes::begin(const User& user, ProviderKind kind,
                                                          Wanted wanted, Deadline deadline) {
  if (user.id.empty()) {
    co_return fail(ErrorCode::forbidden,
                   "the runtime itself cannot register a Git token; use the API key of a user");
  }
  if (!wanted.user_id.empty() && wanted.user_id != user.id) {
    co_return fail(ErrorCode::forbidden,
                   "this link is for another user than the one whose API key was given; nothing "
                   "was changed");
  }
  if (!wanted.account_id.empty() && wanted.account_id != user.account_id) {
    co_return fail(ErrorCode::forbidden,
                   "this link is for another account than the runtime's; nothing was changed");
  }
  if (dependencies_.git == nullptr) {
    co_return fail(ErrorCode::unavailable,
                   "the runtime has no access to its Kubernetes API server, where Git integrations "
                   "are stored; see its log");
  }
  const auto callback = dependencies_.oauth->redirect_uri(kind);
  if (!callback) co_return std::unexpected(callback.error());
  const auto wait = logins_.wait_of(user.id, Clock::now());
  if (wait > Clock::duration::zero()) {
    Error error{.code = ErrorCode::too_many_requests,
                .message = "too many logins of one user; try again in a minute",
                .retry_after = std::chrono::ceil<std::chrono::milliseconds>(wait)};
    co_return std::unexpected(std::move(error));
  }
  logins_.spend(user.id, Clock::now());
  Actor actor{.user_id = user.id, .account_id = user.account_id, .is_admin = user.is_admin};
  const auto target =
      co_await login_target_of(std::move(actor), kind, std::move(wanted.integration), deadline);
  if (!target) co_return std::unexpected(target.error());
  const auto browser = oauth::new_browser_value();
  const oauth::Login login{.id = {},
                           .user_id = user.id,
                           .user_name = user.name,
                           .is_admin = user.is_admin,
                           .account_id = user.account_id,
                           .integration = target->integration.name,
                           .kind = kind,
                           .verifier = oauth::new_verifier(),
                           .browser = oauth::browser_mark(browser),
                           .until = wall_now() + kMaxLoginTime};
  const auto state = oauth::seal_login(*dependencies_.seal, login);
  if (!state) co_return std::unexpected(state.error());
  Begun begun{.location = oauth::authorize_url(kind, target->app, callback->to_string(), *state,
                                               login.verifier),
              .cookie = cookie_for(*callback, browser)};
  co_return begun;
}

Task<std::optional<GitLoginRoutes::Begun>> GitLoginRoutes::begin_or_refuse(http::Exchange& exchange,
                                                                           const Caller& caller,
                                                                           ProviderKind kind,
                                                                           Wanted wanted) {
  const auto at = Clock::now();
  const std::string name = wanted.integration;
  auto begun = co_await begin(*caller.user, kind, std::move(wanted), deadline_after(kBeginTime));
  if (begun) co_return std::optional<Begun>(std::move(*begun));
  dependencies_.audit.write(
      {.caller = caller,
       .action = kAudited,
       .subject = {{"name", name}, {"login", std::string(oauth::word_of(kind))}},
       .result = to_string(begun.error().code),
       .reason = reason_of(begun.error()),
       .took = Clock::now() - at});
  (void)co_await exchange.reply(failure_page(begun.error()));
  co_return std::nullopt;
}

Task<> GitLoginRoutes::serve_start(http::Exchange& exchange, std::string provider) {
  const auto kind = oauth::provider_of(provider);
  if (!kind) {
    (void)co_await exchange.reply(unknown_provider_page());
    co_return;
  }
  const auto value = [&exchange](std::string_view name) {
    return http::query_parameter(exchange.query(), name);
  };
  Wanted wanted{.user_id = value("userId"),
                .account_id = value("accountId"),
                .integration = value("integration")};
  // A cookie is not used: a browser sends it no matter who opened this address.
  const auto credential = credential_of(exchange.request().headers);
  const bool is_asked = credential.kind == RequestCredential::Kind::none ||
                        (credential.kind == RequestCredential::Kind::cookie &&
                         !exchange.request().headers.find("Origin"));
  if (is_asked) {
    const std::string host(display_name(*kind));
    (void)co_await exchange.reply(login_form_page(200, {.host = host,
                                                        .user_id = wanted.user_id,
                                                        .account_id = wanted.account_id,
                                                        .integration = wanted.integration}));
    co_return;
  }
  const auto admission = co_await dependencies_.gate.authenticate(exchange);
  if (!admission) co_return;
  const auto begun =
      co_await begin_or_refuse(exchange, admission->caller, *kind, std::move(wanted));
  if (!begun) co_return;
  (void)co_await exchange.reply({.status = 303,
                                 .headers = {{"Location", begun->location},
                                             {"Set-Cookie", begun->cookie},
                                             {"Cache-Control", "no-store"},
                                             {"Referrer-Policy", "no-referrer"}}});
}

Task<> GitLoginRoutes::serve_form(http::Exchange& exchange, std::string provider) {
  const auto kind = oauth::provider_of(provider);
  if (!kind) {
    (void)co_await exchange.reply(unknown_provider_page());
    co_return;
  }
  if (!is_form(exchange.request().headers)) {
    (void)co_await exchange.reply(login_page(415, kNotDone, "This takes the form of its page."));
    co_return;
  }
  if (dependencies_.git == nullptr) {
    (void)co_await exchange.reply(
        login_page(503, kNotDone, "The runtime has no access to its cluster; see its log."));
    co_return;
  }
  // Otherwise a page of another site could submit its own API key, and connect the Git account of
  // its visitor to the owner of that key.
  if (!is_from_page(exchange.request(), *kind)) {
    (void)co_await exchange.reply(
        login_page(400, kNotDone,
                   "The form was not sent by the page of this runtime. Open the address again, at "
                   "the runtime's own address (INGRESS_HOST)."));
    co_return;
  }
  auto read = co_await exchange.read_body(kMaxForm);
  if (!read) {
    const int status = status_of_unread_body(read.error());
    (void)co_await exchange.reply(
        login_page(status, kNotDone,
                   status == 413 ? "The form is too long."
                                 : "The form did not arrive as a whole. Send it again."));
    co_return;
  }
  const Secret body(std::move(*read));
  const auto value = [&body](std::string_view name) {
    return http::query_parameter(body.reveal(), name);
  };
  Wanted wanted{.user_id = value("userId"),
                .account_id = value("accountId"),
                .integration = value("integration")};
  const Secret key(std::string(trimmed(value("apiKey"))));
  http::Headers as_sent;
  as_sent.add("Authorization", std::string(key.reveal()));
  const auto admission = co_await dependencies_.gate.identify(exchange, credential_of(as_sent));
  const std::string host(display_name(*kind));
  if (!admission && admission.error().code == ErrorCode::unauthenticated) {
    (void)co_await exchange.reply(
        login_form_page(401, {.host = host,
                              .user_id = wanted.user_id,
                              .account_id = wanted.account_id,
                              .integration = wanted.integration,
                              .error = "This is not the API key of a user of the runtime's "
                                       "account."}));
    co_return;
  }
  if (!admission) {
    (void)co_await exchange.reply(failure_page(admission.error()));
    co_return;
  }
  const auto begun =
      co_await begin_or_refuse(exchange, admission->caller, *kind, std::move(wanted));
  if (!begun) co_return;
  auto response = login_onward_page(host, begun->location);
  response.headers.add("Set-Cookie", begun->cookie);
  (void)co_await exchange.reply(std::move(response));
}

Task<Result<std::string>> GitLoginRoutes::finish(const oauth::Login& login, std::string code,
                                                 Deadline deadline) {
  const Actor actor{
      .user_id = login.user_id, .account_id = login.account_id, .is_admin = login.is_admin};
  auto target = co_await login_target_of(actor, login.kind, login.integration, deadline);
  if (!target) co_return std::unexpected(std::move(target.error()));
  auto grant = co_await dependencies_.oauth->exchange(login.kind, std::move(target->app),
                                                      std::move(code), login.verifier, deadline);
  if (!grant) co_return std::unexpected(std::move(grant.error()));
  GitAccess access{.token = std::move(grant->access_token),
                   .username = std::string(oauth::git_username(login.kind))};
  GitIntegrations::Renewal renewal{.refresh_token = std::move(grant->refresh_token),
                                   .lifetime = grant->lifetime};
  const auto registered = co_await dependencies_.git->register_login(
      actor, login.integration, std::move(access), std::move(renewal), deadline);
  if (!registered) co_return std::unexpected(shown(registered.error()));
  co_await prepare_config_repository(*dependencies_.git, dependencies_.committer,
                                     dependencies_.files, actor, login.integration, deadline);
  const auto* token = registered->find(login.user_id);
  co_return token == nullptr ? std::string() : token->login;
}

std::expected<oauth::Login, http::Response> GitLoginRoutes::login_of(const http::Exchange& exchange,
                                                                     ProviderKind kind) {
  const auto state = http::query_parameter(exchange.query(), "state");
  // HEAD must not use up the login.
  if (state.empty() || exchange.request().method != "GET") {
    return std::unexpected(
        login_page(400, kNotDone,
                   "This address is for the answer of a Git host to a login, which is not here."));
  }
  if (dependencies_.git == nullptr) {
    return std::unexpected(
        login_page(503, kNotDone, "The runtime has no access to its cluster; see its log."));
  }
  const auto now = wall_now();
  auto login = oauth::open_login(*dependencies_.seal, state, now);
  if (login && login->kind != kind) {
    login = fail(ErrorCode::invalid_argument,
                 "this answer is for a login at another Git host; begin again");
  }
  if (!login) return std::unexpected(failure_page(login.error()));
  if (!is_begun_here(exchange.request().headers, *login)) {
    const auto callback = dependencies_.oauth->redirect_uri(kind);
    return std::unexpected(failure_page(
        {.code = ErrorCode::forbidden,
         .message = "this login was begun in another browser, or at another address of the "
                    "runtime than " +
                    (callback ? origin_of(*callback) : std::string("its own")) +
                    "; begin again there"}));
  }
  if (auto used = used_.use(*login, now); !used) {
    return std::unexpected(failure_page(used.error()));
  }
  return std::move(*login);
}

Task<Result<std::string>> GitLoginRoutes::take_answer(const http::Exchange& exchange,
                                                      const oauth::Login& login) {
  const auto value = [&exchange](std::string_view name) {
    return http::query_parameter(exchange.query(), name);
  };
  const std::string host(display_name(login.kind));
  std::string code = value("code");
  if (const auto error = value("error"); !error.empty()) {
    const auto why = value("error_description");
    co_return fail(ErrorCode::forbidden, host +
                                             " refused the login: " + shortened(error, kMaxShown) +
                                             (why.empty() ? "" : ": " + shortened(why, kMaxShown)));
  }
  if (code.empty() || code.size() > kMaxCode) {
    co_return fail(ErrorCode::invalid_argument, host + " sent no code; begin again");
  }
  co_return co_await finish(login, std::move(code), deadline_after(kFinishTime));
}

Task<> GitLoginRoutes::serve_callback(http::Exchange& exchange, std::string provider) {
  const auto kind = oauth::provider_of(provider);
  if (!kind) {
    (void)co_await exchange.reply(unknown_provider_page());
    co_return;
  }
  const auto login = login_of(exchange, *kind);
  if (!login) {
    (void)co_await exchange.reply(login.error());
    co_return;
  }
  Caller caller = dependencies_.gate.caller_of(exchange);
  caller.user = std::make_shared<const User>(User{.id = login->user_id,
                                                  .name = login->user_name,
                                                  .account_id = login->account_id,
                                                  .is_admin = login->is_admin});
  const auto at = Clock::now();
  const auto done = co_await take_answer(exchange, *login);
  dependencies_.audit.write(
      {.caller = caller,
       .action = kAudited,
       .subject = {{"name", login->integration}, {"login", std::string(oauth::word_of(*kind))}},
       .result = done ? "ok" : to_string(done.error().code),
       .reason = done ? std::string_view() : reason_of(done.error()),
       .took = Clock::now() - at});
  if (!done) {
    log_.warning("a login at a Git host did not succeed", {{"provider", provider},
                                                           {"integration", login->integration},
                                                           {"user_id", login->user_id},
                                                           {"code", to_string(done.error().code)},
                                                           {"reason", reason_of(done.error())}});
  }
  const std::string host(display_name(*kind));
  auto response = done ? login_page(200, "Logged in at " + host,
                                    "Your account " + *done + " at " + host +
                                        " is registered with the Git integration \"" +
                                        login->integration + "\". You can close this window.")
                       : failure_page(done.error());
  if (const auto callback = dependencies_.oauth->redirect_uri(*kind)) {
    response.headers.add("Set-Cookie", cookie_for(*callback, {}));
  }
  (void)co_await exchange.reply(std::move(response));
}

}  // namespace gitops::app_proxy
