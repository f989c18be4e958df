#pragma once

#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "control-plane/accounts/service_accounts.hpp"
#include "control-plane/accounts/user_routes.hpp"
#include "control-plane/audit/audit_log.hpp"
#include "control-plane/http/routes.hpp"
#include "control-plane/http/served_routes.hpp"
#include "control-plane/intake/event_routes.hpp"
#include "control-plane/intake/storage_watch.hpp"
#include "control-plane/live/stream_routes.hpp"
#include "control-plane/resolvers/graphql_fixture.hpp"
#include "control-plane/runtimes/page_access.hpp"
#include "control-plane/runtimes/tunnel_plugin.hpp"
#include "control-plane/sso/sso_routes.hpp"

// The whole port of the control plane behind a server, and a client of it.
namespace gitops::control_plane_server {

class WholePort {
 public:
  explicit WholePort(GraphqlFixture& on)
      : graphql(on),
        accounts(on.accounts),
        sample(on.sample),
        authenticator(accounts.database, accounts.metrics, {.cookie = CookieForm::plain}),
        login(accounts.database, passwords, accounts.metrics, {}),
        audit(accounts.executor, accounts.database, accounts.metrics),
        writer(accounts.executor, accounts.database, accounts.metrics, {}, [](std::int64_t) {}),
        storage(accounts.database, accounts.metrics, {}),
        events(authenticator, writer, accounts.database, storage, accounts.metrics,
               {.audit = &audit}),
        plugin(authenticator, Credential::fixed(Secret(std::string("plugin token"))),
               accounts.metrics),
        live(accounts.executor, accounts.database, accounts.metrics, {}, [](const std::string&) {}),
        streams(authenticator, live, {}),
        logins(accounts.executor, names, accounts.metrics,
               {.database = accounts.database, .authenticator = authenticator, .audit = &audit},
               {}),
        engine(engine_of(on, audit)),
        gate(*engine, on.rows, authenticator, accounts.metrics, {.audit = &audit}),
        served(accounts, routes()) {
    on.dependencies.authenticator = &authenticator;
    writer.start();
    audit.start();
  }
  Task<> stop() {
    co_await served.stop();
    co_await writer.stop(AccountsFixture::soon());
    co_await audit.stop(AccountsFixture::soon());
  }

  std::vector<http::Route> routes() {
    const UserRouteContext context{.database = accounts.database,
                                   .authenticator = authenticator,
                                   .login = login,
                                   .public_url = "https://console.example",
                                   .client_of = address_of,
                                   .audit = &audit};
    return all_routes(gate,
                      {user_routes(context), page_access_routes(context), logins.routes(),
                       events.routes(), plugin.routes(), streams.routes()},
                      page_origins(context));
  }
  Task<http::Response> send(std::string method, std::string target, http::Headers headers = {},
                            std::string body = {}) {
    co_return co_await served.send(std::move(method), std::move(target), std::move(headers),
                                   std::move(body));
  }
  Task<http::Response> ask(http::Headers headers, std::string query) {
    headers.add("Content-Type", "application/json");
    co_return co_await send("POST", "/2.0/api/graphql", std::move(headers),
                            nlohmann::json{{"query", query}}.dump());
  }

  GraphqlFixture& graphql;
  AccountsFixture& accounts;
  SampleAccounts& sample;
  Authenticator authenticator;
  Passwords passwords{accounts.metrics, kCheap};
  Login login;
  AuditLog audit;
  EventWriter writer;
  StorageWatch storage;
  EventRoutes events;
  TunnelPlugin plugin;
  LiveUpdates live;
  StreamRoutes streams;
  net::Resolver names{accounts.metrics};
  sso::SsoRoutes logins;
  std::unique_ptr<graphql::Engine> engine;
  GraphqlGate gate;
  ServedRoutes served;

 private:
  static std::unique_ptr<graphql::Engine> engine_of(GraphqlFixture& on, AuditLog& audit) {
    auto made = graphql::Engine::make(std::string(schema_text()), resolvers(on.rows, &audit),
                                      {.hides_values = true});
    if (!made) throw std::logic_error(made.error().message);
    return std::move(*made);
  }
  // A test sends requests from several addresses.
  static std::string address_of(http::Exchange& exchange) {
    return std::string(exchange.request().headers.find("X-Test-Address").value_or("192.0.2.1"));
  }
};

inline void with_whole_port(const std::function<Task<>(WholePort&)>& body) {
  with_graphql([&](GraphqlFixture& graphql) -> Task<> {
    WholePort port(graphql);
    co_await body(port);
    co_await port.stop();
  });
}

// Who calls, in the order of the table in docs/reference/control-plane/api.md.
enum class CallerKind {
  nobody,
  stranger,          // a user of another account
  viewer,            // a user in no team but the built-in one
  ruled,             // a user whose team has a rule for another kind of entity
  team_member,       // a user whose team may see Applications
  service_account,   // without the admin role
  disabled_service,  // that service account when it is disabled
  admin_service,     // with the admin role
  runtime,
  admin,         // of the account
  system_admin,  // of the installation
  page_token,    // that administrator's, by a page for one runtime
};
inline constexpr std::pair<CallerKind, const char*> kCallers[] = {
    {CallerKind::nobody, "nobody"},
    {CallerKind::stranger, "user of another account"},
    {CallerKind::viewer, "user"},
    {CallerKind::ruled, "user with a rule for other entities"},
    {CallerKind::team_member, "member of a team with a rule"},
    {CallerKind::service_account, "service account"},
    {CallerKind::disabled_service, "disabled service account"},
    {CallerKind::admin_service, "admin service account"},
    {CallerKind::runtime, "runtime"},
    {CallerKind::admin, "admin"},
    {CallerKind::system_admin, "system admin"},
    {CallerKind::page_token, "page token"},
};

inline constexpr const char* kWords[] = {"anyone",
                                         "user or runtime",
                                         "user",
                                         "user, or admin service account",
                                         "user with a session",
                                         "admin",
                                         "system admin",
                                         "runtime",
                                         "tunnel server"};

// Returns whether a caller may use what is declared with this word. Throws for an unknown word.
inline bool is_allowed(std::string_view word, CallerKind caller) {
  using enum CallerKind;
  const bool is_person = caller == stranger || caller == viewer || caller == ruled ||
                         caller == team_member || caller == admin || caller == system_admin;
  const bool is_admin = caller == admin || caller == system_admin || caller == admin_service;
  const bool is_user = is_person || caller == service_account || caller == admin_service;
  if (word == "anyone") return true;
  if (word == "user or runtime") return is_user || caller == runtime;
  if (word == "user") return is_user;
  if (word == "user, or admin service account") return is_person || caller == admin_service;
  if (word == "user with a session") return is_person;
  if (word == "admin") return is_admin;
  if (word == "system admin") return caller == system_admin;
  if (word == "runtime") return caller == runtime;
  if (word == "tunnel server") return false;
  throw std::logic_error("no rule says who is allowed: " + std::string(word));
}

// The word of the documented tables for a permission.
inline std::string_view word_of(Permission permission) {
  switch (permission) {
    case Permission::anyone:
      return "anyone";
    case Permission::member:
      return "user or runtime";
    case Permission::user:
      return "user";
    case Permission::admin:
      return "admin";
    case Permission::runtime:
      return "runtime";
  }
  return {};
}

// The path of a route with this value for each parameter.
template <class ValueOf>
std::string path_with(std::string_view pattern, ValueOf value_of) {
  std::string path;
  while (!pattern.empty()) {
    const auto begin = std::min(pattern.find('{'), pattern.size());
    path += pattern.substr(0, begin);
    pattern.remove_prefix(begin);
    if (pattern.empty()) break;
    const auto end = pattern.find('}');
    path += value_of(std::string(pattern.substr(1, end - 1)));
    pattern.remove_prefix(end + 1);
  }
  return path;
}

// Returns all rows of an account, or of the whole database without one, as text: a line for each row.
inline std::string dump_of(store::Connection& db, std::int64_t account) {
  // A connection knows a statement by the address of its name.
  static std::map<std::string, std::string> texts;
  const auto run = [&db](const std::string& sql, store::Params params = {}) {
    const auto& [name, text] = *texts.emplace(sql, sql).first;
    return must(db.run({.name = name, .sql = text}, params));
  };
  std::string dump;
  const auto tables = run("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name");
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const auto table = tables.string(i, 0);
    const auto columns = run("SELECT name FROM pragma_table_info('" + table + "')");
    std::string values;
    bool has_account = false;
    for (std::size_t j = 0; j < columns.size(); ++j) {
      has_account = has_account || columns.text(j, 0) == "account";
      values += (values.empty() ? "quote(" : " || ',' || quote(") + columns.string(j, 0) + ")";
    }
    if (account != 0 && !has_account) continue;
    const auto sql = "SELECT " + values + " AS line FROM " + table;
    const auto rows = account == 0 ? run(sql + " ORDER BY line")
                                   : run(sql + " WHERE account = $1 ORDER BY line", {account});
    for (std::size_t row = 0; row < rows.size(); ++row) {
      dump += table + ": " + rows.string(row, 0) + "\n";
    }
  }
  return dump;
}

}  // namespace gitops::control_plane_server
