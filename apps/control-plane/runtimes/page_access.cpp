#include "control-plane/runtimes/page_access.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/json_value.hpp"
#include "common/http/url.hpp"
#include "control-plane/accounts/caller_routes.hpp"
#include "control-plane/accounts/page_tokens.hpp"
#include "control-plane/accounts/sessions.hpp"
#include "control-plane/projection/event_text.hpp"

namespace gitops::control_plane_server {
namespace {

using Json = nlohmann::json;

constexpr std::chrono::seconds kOriginsLimit{2};

bool allows_http(const UserRouteContext& context) {
  return context.authenticator.cookie() == CookieForm::plain;
}

std::string registered_address(const RuntimeRow& runtime) {
  return string_at(parse_json_object(runtime.arguments), {"ingressHost"});
}

std::string no_address(const std::string& name, const std::string& address) {
  const std::string is_needed =
      " Its app-proxy registers the setting ingress-host, which has to be an https URL without a "
      "path.";
  return address.empty() ? "The runtime " + name + " has registered no address." + is_needed
                         : "The runtime " + name +
                               " has registered an address that browsers do "
                               "not use from here." +
                               is_needed;
}

Task<http::Response> make_page_token(CallerRequest request) {
  if (request.caller->is_runtime()) co_return no_user();
  const auto sent =
      sent_token(request.exchange.request().headers, request.context.authenticator.cookie());
  if (!request.caller->is_of_session) {
    co_return api_error(403, "A key goes to the runtime by itself: only a session gets a token.");
  }
  const std::string name = request.parameters.at("name");
  const auto account = request.caller->account->number;
  struct PageAccess {
    std::string address;
    std::string origin;
    std::optional<Secret> token;
  };
  const auto made = co_await request.context.database.write(
      request.deadline,
      [name, account, hash = session_hash(sent.token), is_http = allows_http(request.context),
       now = micros_at(wall_now())](store::Connection& connection) -> Result<PageAccess> {
        const auto runtime = find_runtime(connection, account, name);
        if (!runtime) return std::unexpected(runtime.error());
        if (!*runtime) {
          return fail(ErrorCode::not_found, "runtime " + name + " does not exist");
        }
        PageAccess result{.address = registered_address(**runtime), .origin = {}, .token = {}};
        result.origin = browser_origin(result.address, is_http);
        if (result.origin.empty()) return result;
        auto token = create_page_token(connection, account, hash, name, now);
        if (!token) return std::unexpected(std::move(token.error()));
        result.token = std::move(*token);
        return result;
      });
  if (!made) co_return api_error(made.error());
  if (!made->token) co_return api_error(409, no_address(name, made->address));
  co_return json_response(Json{{"token", made->token->reveal()},
                               {"expiresIn", kPageTokenLife / 1'000'000},
                               {"address", made->origin}});
}

}  // namespace

std::string browser_origin(std::string_view ingress_host, bool allows_http) {
  const auto url = http::parse_url(ingress_host);
  const bool is_plain = url && url->userinfo.empty() && url->query.empty() &&
                        (url->path.empty() || url->path == "/") && !ingress_host.contains('?');
  if (!is_plain || (url->scheme != "https" && !(allows_http && url->scheme == "http"))) return {};
  return url->scheme + "://" + url->host_header();
}

std::vector<std::string> browser_origins(const std::vector<RuntimeRow>& runtimes,
                                         std::string_view first, bool allows_http) {
  std::vector<std::string> origins;
  std::size_t bytes = 0;
  for (const bool is_first : {true, false}) {
    for (const auto& runtime : runtimes) {
      if ((runtime.name == first) != is_first) continue;
      auto origin = browser_origin(registered_address(runtime), allows_http);
      if (origin.empty() || std::ranges::find(origins, origin) != origins.end()) continue;
      bytes += origin.size() + 1;
      if (bytes > kMaxPageOrigins) return origins;
      origins.push_back(std::move(origin));
    }
  }
  return origins;
}

std::string_view runtime_of_page(std::string_view path) {
  for (const std::string_view page : {"/applications/", "/runtimes/"}) {
    if (!path.starts_with(page)) continue;
    path.remove_prefix(page.size());
    return path.substr(0, path.find('/'));
  }
  return {};
}

std::function<Task<std::vector<std::string>>(http::Exchange&)> page_origins(
    UserRouteContext given) {
  const auto context = std::make_shared<const UserRouteContext>(std::move(given));
  return [context](http::Exchange& exchange) -> Task<std::vector<std::string>> {
    const auto cookie = exchange.request().headers.find("Cookie");
    if (!cookie) co_return std::vector<std::string>();
    const auto deadline = deadline_after(kOriginsLimit);
    const auto caller = co_await context->authenticator.authenticate(
        {{"Cookie", std::string(*cookie)}}, client_of(*context, exchange), deadline);
    if (!caller || (*caller)->is_runtime()) co_return std::vector<std::string>();
    const auto runtimes = co_await context->database.read(
        deadline, [account = (*caller)->account->number](store::Connection& connection) {
          return list_runtimes(connection, account);
        });
    if (!runtimes) co_return std::vector<std::string>();
    co_return browser_origins(*runtimes, runtime_of_page(exchange.path()), allows_http(*context));
  };
}

std::vector<http::Route> page_access_routes(UserRouteContext given) {
  std::vector<http::Route> routes;
  CallerRoutes list(std::make_shared<const UserRouteContext>(std::move(given)), routes);
  list.add("POST", "/console/api/v1/runtimes/{name}/token", make_page_token);
  return routes;
}

}  // namespace gitops::control_plane_server
