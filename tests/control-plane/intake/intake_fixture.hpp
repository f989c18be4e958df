#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "control-plane/accounts/accounts_fixture.hpp"
#include "control-plane/accounts/user_routes.hpp"
#include "control-plane/http/served_routes.hpp"
#include "control-plane/intake/event_routes.hpp"
#include "control-plane/views/seed.hpp"

// The intake behind a server on a database of either engine, and a client of it.
namespace gitops::control_plane_server {

struct IntakeFixture {
  explicit IntakeFixture(AccountsFixture& on, std::int64_t storage_limit = 0,
                         EventRoutes::Options options = {})
      : accounts(on),
        authenticator(on.database, on.metrics, {}),
        writer(on.executor, on.database, on.metrics, {.instance = "test"}, [](std::int64_t) {}),
        storage(on.database, on.metrics, {.limit = storage_limit}),
        events(authenticator, writer, on.database, storage, on.metrics, options),
        served(on, events.routes()) {
    writer.start();
  }
  Task<> stop() {
    co_await served.stop();
    co_await writer.stop(AccountsFixture::soon());
  }

  // Posts with the token of the runtime "prod" of the account "acme", unless a header names another.
  Task<http::Response> post(std::string body, http::Headers headers = {},
                            std::string target = "/2.0/api/events") {
    if (!headers.find("Authorization")) {
      headers.add("Authorization", std::string(accounts.sample.prod_token.reveal()));
    }
    co_return co_await served.send("POST", std::move(target), std::move(headers), std::move(body));
  }
  // Returns the status, and for an error the code in its body.
  Task<std::string> answer(std::string body, http::Headers headers = {},
                           std::string target = "/2.0/api/events") {
    const auto response = co_await post(std::move(body), std::move(headers), std::move(target));
    if (response.status == 200) co_return "200";
    const auto json = nlohmann::json::parse(response.body, nullptr, false);
    co_return std::to_string(response.status) + " " + json.value("code", "?");
  }

  Task<std::int64_t> count(const std::string& table) {
    // A connection knows a statement by the address of its name.
    static std::map<std::string, std::string> texts;
    const auto& [name, sql] = *texts.emplace(table, "SELECT count(*) FROM " + table).first;
    const store::Statement statement{.name = name, .sql = sql};
    auto rows = co_await accounts.database.read(
        AccountsFixture::soon(), [statement](store::Connection& db) { return db.run(statement); });
    co_return must(std::move(rows)).number(0, 0);
  }
  Task<> run_script(std::string sql) {
    must(co_await accounts.write(
        [sql = std::move(sql)](store::Connection& db) { return db.run_script(sql); }));
  }

  AccountsFixture& accounts;
  Authenticator authenticator;
  EventWriter writer;
  StorageWatch storage;
  EventRoutes events;
  ServedRoutes served;
};

inline void with_intake(store::Engine engine, const std::function<Task<>(IntakeFixture&)>& body) {
  with_accounts(
      [&](AccountsFixture& accounts) -> Task<> {
        IntakeFixture fixture(accounts);
        co_await body(fixture);
        co_await fixture.stop();
      },
      engine);
}

// SQL that makes every write of an object of the name "poison" fail with an error that is neither its data's nor an
// outage: an index on an expression that cannot be computed for it.
inline std::string poison_script(store::Engine engine) {
  if (engine == store::Engine::sqlite) {
    return "CREATE INDEX poison ON object (abs(CASE WHEN name = 'poison' THEN "
           "-9223372036854775807 - 1 ELSE 1 END))";
  }
  return "CREATE FUNCTION poison(name text) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN "
         "IF name = 'poison' THEN RAISE EXCEPTION 'poison'; END IF; RETURN 1; END $$; "
         "CREATE INDEX poison ON object (poison(name))";
}

}  // namespace gitops::control_plane_server
