#include "tunnel-server/api.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/json_value.hpp"

namespace gitops::tunnel_server {
namespace {

constexpr std::size_t kMaxBody = 4 * 1024;
constexpr std::size_t kMaxReason = 200;
constexpr std::string_view kScheme = "Bearer ";

const Log& log() {
  static const Log kLog("api");
  return kLog;
}

http::Response answer(int status, const nlohmann::json& body) {
  return {.status = status,
          .headers = {{"Content-Type", "application/json"}, {"Cache-Control", "no-store"}},
          .body = to_text(body) + "\n"};
}

http::Response mistake(int status, std::string_view message) {
  auto response = answer(status, {{"message", message}});
  if (status == 401) response.headers.add("WWW-Authenticate", "Bearer");
  return response;
}

http::Response done() {
  return {.status = 204};
}

}  // namespace

Api::Api(const Executor& executor, ClientRegistry& clients, const HostTable& table, Options options)
    : clients_(clients),
      table_(table),
      token_(options.token_file.empty() ? Credential::fixed(options.token)
                                        : Credential::file(options.token_file)),
      router_(routes(), mistake),
      server_(executor,
              {.address = options.address,
               .port = options.port,
               .max_connections = 100,
               .max_head = 16 * 1024},
              [this](http::Exchange& exchange) { return router_.serve(exchange); }) {}

Result<void> Api::listen() {
  const auto token = token_.current();
  if (!token_.last_error().empty()) return fail(ErrorCode::unavailable, token_.last_error());
  if (token.empty()) return fail(ErrorCode::invalid_argument, "the API's token is empty");
  return server_.listen();
}

Task<Result<void>> Api::admit(http::Exchange& exchange) {
  const auto field = exchange.request().headers.find("Authorization");
  const auto token = token_.current();
  if (!field || !field->starts_with(kScheme) || token.empty() ||
      Secret(std::string(field->substr(kScheme.size()))) != token) {
    co_return std::unexpected(Error{.code = ErrorCode::unauthenticated,
                                    .message = "the API asks for its token",
                                    .http_status = 401});
  }
  co_return Result<void>{};
}

std::vector<http::Route> Api::routes() {
  const http::Guard guard = [this](http::Exchange& exchange) { return admit(exchange); };
  const auto named = [](auto handler) {
    return http::answer_with(
        [handler](const http::Exchange&, const http::RouteParameters& parameters) {
          return handler(parameters);
        });
  };
  return {
      {"GET", "/v1/clients", guard, named([this](const auto&) { return list_clients(); })},
      {"POST", "/v1/clients/{id}/disconnect", guard,
       named([this](const auto& parameters) { return disconnect(parameters.at("id")); })},
      {"GET", "/v1/bans", guard, named([this](const auto&) { return list_bans(); })},
      {"PUT", "/v1/bans/{host}", guard,
       [this](http::Exchange& exchange, const http::RouteParameters& parameters) {
         return put_ban(exchange, parameters.at("host"));
       },
       kMaxBody},
      {"DELETE", "/v1/bans/{host}", guard,
       named([this](const auto& parameters) { return delete_ban(parameters.at("host")); })},
  };
}

http::Response Api::list_clients() const {
  auto list = nlohmann::json::array();
  for (const auto& session : clients_.sessions()) {
    const auto domains = table_.domains_of(session->id());
    auto hosts = nlohmann::json::array();
    for (const auto& domain : domains) {
      hosts.push_back({{"host", domain.name}, {"serving", domain.is_serving}});
    }
    const auto& login = session->login();
    // Omits the run id, which authenticates a returning client.
    list.push_back({{"id", session->id()},
                    {"state", to_string(state_of(*session, domains))},
                    {"address", session->client()},
                    {"since", format_rfc3339(session->since())},
                    {"version", login.version},
                    {"hostname", login.hostname},
                    {"user", login.user},
                    {"hosts", std::move(hosts)},
                    {"waiting", session->waiting()},
                    {"carrying", session->carrying()}});
  }
  return answer(200, {{"clients", std::move(list)}});
}

http::Response Api::disconnect(const std::string& id) {
  SessionId number = 0;
  const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), number);
  if (error != std::errc{} || end != id.data() + id.size()) return mistake(404, "no such client");
  const auto session = clients_.session(number);
  if (!session) return mistake(404, "no such client");
  log().info("a client is disconnected", {{"id", number}, {"client", session->client()}});
  session->end({.code = ErrorCode::forbidden, .message = "disconnected by the API"});
  return done();
}

http::Response Api::list_bans() {
  auto list = nlohmann::json::array();
  for (const auto& [host, ban] : clients_.bans()) {
    list.push_back({{"host", host}, {"until", format_rfc3339(ban.until)}, {"reason", ban.reason}});
  }
  return answer(200, {{"bans", std::move(list)}});
}

Task<> Api::put_ban(http::Exchange& exchange, const std::string& name) {
  const auto host = canonical_host(name);
  const auto body = co_await exchange.read_body();
  if (!body) {
    // Too large, malformed, or not there in time.
    const int status = body.error().http_status == 0 ? 408 : body.error().http_status;
    (void)co_await exchange.reply(mistake(status, body.error().message));
    co_return;
  }
  const auto json = parse_json_object(*body);
  const auto until = parse_rfc3339(string_at(json, {"until"}));
  auto reason = string_at(json, {"reason"});
  if (host.empty() || json.is_null() || !until || reason.size() > kMaxReason) {
    (void)co_await exchange.reply(mistake(
        400, R"(expected a host, and {"until": RFC 3339, "reason": at most 200 characters})"));
    co_return;
  }
  log().info("a host is banned", {{"host", host}, {"until", format_rfc3339(*until)}});
  clients_.ban(host, {.until = *until, .reason = std::move(reason)});
  (void)co_await exchange.reply(done());
}

http::Response Api::delete_ban(const std::string& name) {
  if (!clients_.unban(canonical_host(name))) return mistake(404, "no such ban");
  log().info("a ban is lifted", {{"host", name}});
  return done();
}

}  // namespace gitops::tunnel_server
