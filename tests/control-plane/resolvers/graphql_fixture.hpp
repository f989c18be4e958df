#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/graphql/engine.hpp"
#include "control-plane/accounts/accounts_fixture.hpp"
#include "control-plane/accounts/identification.hpp"
#include "control-plane/accounts/rules.hpp"
#include "control-plane/accounts/teams.hpp"
#include "control-plane/resolvers/table.hpp"
#include "control-plane/runtimes/secrets.hpp"

namespace gitops::control_plane_server {

// Document of the list of releases, as clients send it.
inline constexpr const char* kReleases =
    "query($filters: GitopsReleaseFilterArgs, $sort: GitopsReleaseSortArg) { gitopsReleases("
    "filters: $filters, sort: $sort, pagination: {first: 20}) { edges { node { current "
    "argoHistoryId applicationMetadata { name } toState { services { name images { image tag } } "
    "rollouts { name phase isComplete } } transition { services { name } } application { status { "
    "syncStatus healthStatus } issues { key } committers { userName } } } } pageInfo { endCursor "
    "hasNextPage } } }";

// The whole GraphQL API on the sample accounts, without HTTP.
struct GraphqlFixture {
  explicit GraphqlFixture(AccountsFixture& on)
      : accounts(on),
        authenticator(on.database, on.metrics, {}),
        secrets(must(SecretStore::make(Secret(std::string(64, 'a'))))),
        dependencies{.database = on.database,
                     .authenticator = &authenticator,
                     .secrets = &secrets,
                     .tunnel_domain = "tunnels.example"},
        rows(table(dependencies)) {
    auto made = graphql::Engine::make(std::string(schema_text()), resolvers(rows));
    if (!made) throw std::logic_error(made.error().message);
    engine = std::move(*made);
  }

  // Returns the response to a document for the owner of this token. The account is read again each time.
  Task<nlohmann::json> ask(const Secret& token, std::string query,
                           nlohmann::json variables = nlohmann::json::object()) {
    auto found = co_await accounts.write(
        [token](store::Connection& db) { return identify(db, token, micros_at(wall_now())); });
    RequestContext context{.caller = must(std::move(found)).caller};
    const auto text = variables.dump();
    auto prepared = engine->prepare({.query = query, .variables = text}, graphql::Context(context),
                                    AccountsFixture::soon());
    if (!prepared) co_return nlohmann::json::parse(prepared.error().body());
    co_return nlohmann::json::parse(co_await (*prepared)->run());
  }

  AccountsFixture& accounts;
  SampleAccounts& sample = accounts.sample;
  Authenticator authenticator;
  SecretStore secrets;
  Dependencies dependencies;
  std::vector<FieldRow> rows;
  std::unique_ptr<graphql::Engine> engine;
};

// Returns the id of a built-in team of acme.
inline Task<std::string> team_id(GraphqlFixture& graphql, std::string team) {
  auto found = co_await graphql.accounts.write(
      [number = graphql.sample.acme.number, team](store::Connection& db) -> Result<std::string> {
        for (const auto& one : must(list_teams(db, number))) {
          if (one.name == team) return one.id;
        }
        return fail(ErrorCode::not_found, team);
      });
  co_return must(std::move(found));
}

// Adds a rule about Applications for a built-in team of acme, and returns its id.
inline Task<std::string> add_rule(GraphqlFixture& graphql, std::vector<std::string> actions,
                                  std::vector<AbacRule::Attribute> attributes, std::string team) {
  auto added =
      co_await graphql.accounts.write([number = graphql.sample.acme.number, actions, team,
                                       attributes](store::Connection& db) -> Result<AbacRule> {
        AbacRule rule{.id = {},
                      .entity_type = "gitopsApplications",
                      .teams = {},
                      .tags = {},
                      .actions = actions,
                      .attributes = attributes};
        for (const auto& one : must(list_teams(db, number))) {
          if (one.name == team) rule.teams.push_back(one.id);
        }
        return create_rule(db, number, std::move(rule), kNow);
      });
  co_return must(std::move(added)).id;
}

inline void with_graphql(const std::function<Task<>(GraphqlFixture&)>& body,
                         store::Engine engine = store::Engine::sqlite) {
  with_accounts(
      [&](AccountsFixture& accounts) -> Task<> {
        GraphqlFixture fixture(accounts);
        co_await body(fixture);
      },
      engine);
}

}  // namespace gitops::control_plane_server
