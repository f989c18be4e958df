#include "control-plane/sso/sso_routes.hpp"

#include <tuple>
#include <utility>

#include <nlohmann/json.hpp>
#include <prometheus/counter.h>

#include "common/core/encoding.hpp"
#include "common/core/json_value.hpp"
#include "common/http/url.hpp"
#include "common/net/address_list.hpp"
#include "control-plane/accounts/audit_routes.hpp"
#include "control-plane/accounts/caller_routes.hpp"
#include "control-plane/accounts/sessions.hpp"
#include "control-plane/accounts/tokens.hpp"
#include "control-plane/audit/audit_log.hpp"
#include "control-plane/projection/event_text.hpp"

namespace gitops::control_plane_server::sso {
namespace {

using Json = nlohmann::json;

constexpr std::chrono::seconds kBeginLimit{15};
constexpr std::chrono::seconds kEndLimit{30};
constexpr std::chrono::seconds kEndSessionLimit{3};
constexpr std::string_view kBeginPath = "/console/api/v1/sso/";

Counter& logins(Metrics& metrics, const char* result) {
  return metrics.counter("gitops_control_plane_sso_logins_total", "Logins at identity providers",
                         {{"result", result}});
}

std::string_view browser_cookie_name(CookieForm form) {
  return form == CookieForm::secure ? "__Host-sso" : "sso";
}

// The provider sends the browser here by a link, so the cookie is Lax.
std::string browser_cookie(CookieForm form, const Secret& value) {
  return std::string(browser_cookie_name(form)) + "=" + std::string(value.reveal()) +
         "; Path=/; Max-Age=" + std::to_string(std::chrono::seconds(kLoginTime).count()) +
         "; HttpOnly; SameSite=Lax" + (form == CookieForm::secure ? "; Secure" : "");
}

http::Response redirect(std::string location) {
  return {.status = 302,
          .headers = {{"Location", std::move(location)},
                      {"Cache-Control", "no-store"},
                      {"Referrer-Policy", "no-referrer"}}};
}

http::Response no_provider() {
  return api_error(404, "There is no identity provider of this name.");
}

std::unexpected<Error> refused(std::string_view subcode, std::string why) {
  return std::unexpected(
      Error{.code = ErrorCode::forbidden, .message = std::move(why), .subcode = subcode});
}

// Returns the code for the sign-in page. An error without one is a failure of our own.
std::string_view code_of(const Error& error) {
  return error.subcode.empty() ? kLoginFailed : error.subcode;
}

AuditResult audit_result_of(const Error& error) {
  const auto code = code_of(error);
  if (code == kLoginFailed) return AuditResult::not_known;
  return code == kProviderDown || code == kProviderWrong ? AuditResult::failed
                                                         : AuditResult::refused;
}

}  // namespace

// Facts about a login besides its result, for the audit log.
struct SsoRoutes::Outcome {
  std::string subject;
  std::string return_to;
};

SsoRoutes::SsoRoutes(const Executor& executor, net::Resolver& names, Metrics& metrics,
                     Dependencies dependencies, Options options)
    : dependencies_(std::move(dependencies)),
      public_url_(std::move(options.public_url)),
      succeeded_(logins(metrics, "succeeded")),
      refused_(logins(metrics, "refused")),
      failed_(logins(metrics, "failed")) {
  while (public_url_.ends_with('/')) public_url_.pop_back();
  if (const auto url = http::parse_url(public_url_)) base_path_ = url->path;
  for (auto& settings : options.providers) {
    auto redirect_uri = public_url_ + "/api/auth/" + settings.name + "/callback";
    providers_.push_back(
        std::make_unique<Provider>(executor, names,
                                   Provider::Options{.settings = std::move(settings),
                                                     .redirect_uri = std::move(redirect_uri),
                                                     .proxy = options.proxy}));
  }
}

Provider* SsoRoutes::find(std::string_view name) {
  for (const auto& provider : providers_) {
    if (provider->settings().name == name) return provider.get();
  }
  return nullptr;
}

std::string SsoRoutes::path_of(std::string_view path) const {
  return base_path_ + std::string(path);
}

http::Response SsoRoutes::failed(std::string_view code, std::string_view to) const {
  auto page = "/sign-in?error=" + std::string(code);
  if (!to.empty() && to != "/") page += "&to=" + percent_encode(to);
  return redirect(path_of(page));
}

http::Response SsoRoutes::sign_in_methods() const {
  Json list = Json::array();
  for (const auto& provider : providers_) {
    const auto& settings = provider->settings();
    list.push_back({{"name", settings.name},
                    {"title", settings.title},
                    {"path", path_of(std::string(kBeginPath) + settings.name)}});
  }
  return json_response(Json::object({{"password", true}, {"providers", std::move(list)}}));
}

bool SsoRoutes::take_attempt(http::Exchange& exchange) {
  const auto peer = net::client_network(dependencies_.client_of ? dependencies_.client_of(exchange)
                                                                : exchange.peer_address());
  const auto now = Clock::now();
  if (attempts_.wait_of(peer, now) > Clock::duration::zero()) return false;
  attempts_.spend(peer, now);
  return true;
}

Secret SsoRoutes::browser_of(const http::Exchange& exchange) const {
  const auto header = exchange.request().headers.find("Cookie").value_or("");
  const auto value =
      cookie_value(header, browser_cookie_name(dependencies_.authenticator.cookie()));
  return value && is_token_text(*value) ? Secret(std::string(*value)) : Secret();
}

Task<http::Response> SsoRoutes::begin(http::Exchange& exchange, std::string name) {
  Provider* const provider = find(name);
  if (provider == nullptr) co_return no_provider();
  if (exchange.request().method != "GET") co_return api_error(405, "Only GET begins a login.");
  const auto to = return_path(http::query_parameter(exchange.query(), "to"));
  if (!take_attempt(exchange)) co_return failed(kTooManyLogins, to);
  const auto deadline = deadline_after(kBeginLimit);
  // Several tabs of one browser log in at the same time with one cookie.
  auto browser = browser_of(exchange);
  if (browser.empty()) browser = new_login_value();
  const auto state = new_login_value();
  auto address =
      co_await provider->authorization_address(browser, std::string(state.reveal()), deadline);
  if (!address) co_return failed(code_of(address.error()), to);
  const auto stored = co_await dependencies_.database.write(
      deadline, [state,
                 login = PendingLogin{.provider = name,
                                      .browser = login_digest(browser.reveal()),
                                      .return_to = to},
                 now = micros_at(wall_now())](store::Connection& connection) {
        return add_pending_login(connection, state.reveal(), login, now);
      });
  if (!stored) {
    log_.warning("a login could not begin", {{"error", stored.error().message}});
    const bool is_busy = stored.error().code == ErrorCode::too_many_requests;
    co_return failed(is_busy ? kTooManyLogins : kLoginFailed, to);
  }
  auto response = redirect(std::move(*address));
  response.headers.add("Set-Cookie", browser_cookie(dependencies_.authenticator.cookie(), browser));
  co_return response;
}

Task<Result<SignIn>> SsoRoutes::finish(Provider& provider, http::Exchange& exchange,
                                       Outcome& outcome) {
  if (!take_attempt(exchange)) {
    co_return refused(kTooManyLogins, "too many logins from this address");
  }
  const auto deadline = deadline_after(kEndLimit);
  auto callback = read_callback(exchange.query());
  if (!callback) co_return refused(kLoginExpired, callback.error().message);
  const auto browser = browser_of(exchange);
  const auto taken = co_await dependencies_.database.write(
      deadline, [state = callback->state, name = provider.settings().name, browser,
                 now = micros_at(wall_now())](store::Connection& connection) {
        return take_pending_login(connection, state, name, browser, now);
      });
  if (!taken) co_return std::unexpected(taken.error());
  if (!*taken) {
    co_return refused(kLoginExpired,
                      "no such login began at this provider in this browser, or it has ended");
  }
  outcome.return_to = **taken;
  auto secrets = login_secrets(browser, callback->state);
  auto claims = co_await provider.redeem(std::move(*callback), std::move(secrets), deadline);
  if (!claims) co_return std::unexpected(std::move(claims.error()));
  outcome.subject = claims->subject;
  auto done = co_await dependencies_.database.write(
      deadline,
      [settings = provider.settings(), claims = std::move(*claims), now = micros_at(wall_now())](
          store::Connection& connection) { return sign_in(connection, settings, claims, now); });
  co_return done;
}

Task<> SsoRoutes::audit(const Result<SignIn>& result, const Outcome& outcome, AuditEntry entry) {
  if (!outcome.subject.empty()) entry.target += " subject=" + outcome.subject;
  if (result) {
    succeeded_.Increment();
    entry.account = result->account;
    entry.caller = result->user_name;
    entry.caller_id = result->user_id;
    if (result->is_new_user) entry.target += " new-user=true";
    if (result->is_newly_joined) entry.target += " joined-by-email=true";
    if (result->teams_joined + result->teams_left > 0) {
      entry.target += " teams-joined=" + std::to_string(result->teams_joined) +
                      " teams-left=" + std::to_string(result->teams_left);
    }
  } else {
    entry.result = audit_result_of(result.error());
    entry.detail = std::string(code_of(result.error())) + ": " + result.error().message;
    (entry.result == AuditResult::refused ? refused_ : failed_).Increment();
  }
  if (dependencies_.audit == nullptr) co_return;
  if (entry.result == AuditResult::refused) {
    dependencies_.audit->add_refusal(std::move(entry));
  } else {
    co_await dependencies_.audit->add(std::move(entry));
  }
}

Task<http::Response> SsoRoutes::end(http::Exchange& exchange, std::string name) {
  Provider* const provider = find(name);
  if (provider == nullptr) co_return no_provider();
  if (exchange.request().method != "GET") co_return api_error(405, "Only GET ends a login.");
  Outcome outcome;
  auto result = co_await finish(*provider, exchange, outcome);
  const auto peer =
      dependencies_.client_of ? dependencies_.client_of(exchange) : exchange.peer_address();
  auto entry = audit_entry(nullptr, peer, "GET /api/auth/" + name + "/callback");
  entry.request_id = exchange.added_to_answer(kRequestIdField);
  entry.target = "provider=" + name;
  co_await audit(result, outcome, std::move(entry));
  if (!result) {
    log_.info("a login at an identity provider was refused", {{"provider", name},
                                                              {"result", code_of(result.error())},
                                                              {"error", result.error().message},
                                                              {"peer", peer}});
    co_return failed(code_of(result.error()), outcome.return_to);
  }
  if (result->changes_user()) dependencies_.authenticator.forget(result->user_id);
  log_.info("a user logged in at an identity provider",
            {{"provider", name}, {"user", result->user_id}, {"peer", peer}});
  auto response = redirect(path_of(outcome.return_to));
  response.headers.add("Set-Cookie",
                       session_cookie(dependencies_.authenticator.cookie(), result->session));
  co_return response;
}

Task<std::string> SsoRoutes::end_session_address(std::string provider) {
  Provider* const found = find(provider);
  if (found == nullptr) co_return std::string();
  co_return co_await found->end_session_address(public_url_ + "/sign-in",
                                                deadline_after(kEndSessionLimit));
}

std::vector<StatusEntry> SsoRoutes::status() const {
  std::vector<StatusEntry> entries;
  for (const auto& provider : providers_) entries.push_back(provider->status());
  return entries;
}

void SsoRoutes::close() {
  for (const auto& provider : providers_) provider->close();
}

std::vector<http::Route> SsoRoutes::routes() {
  const auto serve =
      [this](Task<http::Response> (SsoRoutes::*handler)(http::Exchange&, std::string)) {
        return [this, handler](http::Exchange& exchange,
                               const http::RouteParameters& parameters) -> Task<> {
          auto response = co_await (this->*handler)(exchange, parameters.at("name"));
          std::ignore = co_await exchange.reply(std::move(response));
        };
      };
  std::vector<http::Route> routes;
  const auto add = [&routes](std::string pattern, http::RouteHandler handler) {
    routes.push_back({.method = "GET",
                      .pattern = std::move(pattern),
                      .guard = http::open_to_all(),
                      .handler = std::move(handler)});
  };
  add("/console/api/v1/sign-in",
      http::answer_with([this](const auto&, const auto&) { return sign_in_methods(); }));
  add("/console/api/v1/sso/{name}", serve(&SsoRoutes::begin));
  add("/api/auth/{name}/callback", serve(&SsoRoutes::end));
  return routes;
}

}  // namespace gitops::control_plane_server::sso
