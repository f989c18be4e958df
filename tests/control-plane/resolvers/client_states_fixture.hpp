#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "common/core/json_value.hpp"
#include "contract/client_rules.hpp"
#include "control-plane/resolvers/graphql_fixture.hpp"
#include "control-plane/resolvers/random_state.hpp"

namespace gitops::control_plane_server {

inline constexpr int kEventsBetweenStates = 12;

// What app-proxy and a step of a pipeline send, besides the requests of the SDK and the command line.
inline constexpr const char* kApplications =
    "query($filters: ApplicationsFilterArgs, $pagination: SlicePaginationArgs) { applications("
    "filters: $filters, pagination: $pagination) { edges { node { metadata { name namespace "
    "runtime account } syncStatus healthStatus errors { title level lastSeen } status { revision "
    "historyId } } } pageInfo { startCursor endCursor hasNextPage hasPrevPage } } }";

struct ClientQuery {
  std::string name;
  std::string root_field;
  std::string document;
  nlohmann::json variables;
};

// Returns the queries of the file of requests, or its mutations.
inline std::vector<ClientQuery> requests_of_file(bool are_mutations) {
  std::vector<ClientQuery> queries;
  for (const auto& request : test::client_requests()) {
    const auto body = nlohmann::json::parse(request.body);
    const auto document = body["query"].get<std::string>();
    if (document.contains("mutation ") != are_mutations) continue;
    queries.push_back(
        {.name = request.name,
         .root_field = root_field_of(request),
         .document = document,
         // The HTTP endpoint takes null for an empty object.
         .variables = body["variables"].is_null() ? nlohmann::json::object() : body["variables"]});
  }
  return queries;
}

inline std::vector<ClientQuery> client_queries() {
  auto queries = requests_of_file(false);
  const auto add = [&](const char* root_field, const char* document) {
    queries.push_back({.name = root_field,
                       .root_field = root_field,
                       .document = document,
                       .variables = nlohmann::json::object()});
  };
  add("applications", kApplications);
  add("gitopsReleases", kReleases);
  return queries;
}

// Replaces the names in the variables by random ones.
inline void vary_names(nlohmann::json& variables, RandomState& random) {
  if (!variables.is_object()) return;
  if (variables.contains("uid")) variables["uid"] = "uid-" + random.name();
  if (variables.contains("runtime") && !variables["runtime"].empty()) {
    variables["runtime"] = random.runtime();
  }
  if (variables.contains("name")) {
    variables["name"] = variables.contains("runtime") ? random.name() : random.runtime();
  }
  if (variables.contains("applicationMetadata")) {
    variables["applicationMetadata"]["name"] = random.name();
    if (random.one_in(2)) {
      variables["applicationMetadata"]["labels"] = {{{"key", "team"}, {"value", random.word()}}};
    }
  }
}

// Replaces texts in the variables by random ones.
inline void vary_texts(nlohmann::json& variables, RandomState& random) {
  if (variables.is_structured()) {
    for (auto& member : variables) vary_texts(member, random);
  } else if (variables.is_string() && random.one_in(3)) {
    variables = random.word();
  }
}

class StatesFixture {
 public:
  StatesFixture(GraphqlFixture& graphql, store::Engine engine, std::mt19937& random)
      : graphql_(graphql),
        random_(random),
        events_(make_event_store(engine, hex_encode(random_bytes(6)))) {}

  Task<> change_state() {
    auto stored = co_await graphql_.accounts.database.with_writer(
        AccountsFixture::soon(),
        [this](store::Connection& db) -> Result<std::size_t> { return store_events(db); });
    must(std::move(stored));
    must(co_await graphql_.accounts.write(
        [this](store::Connection& db) -> Result<bool> { return change_runtime(db); }));
  }
  // Asks one query, and returns the number of values that were checked.
  Task<std::size_t> look(const ClientQuery& query) {
    auto variables = query.variables;
    vary_names(variables, random_);
    const auto response = co_await graphql_.ask(graphql_.sample.bob_key, query.document, variables);
    const auto check = test::check_response(query.root_field, response.dump());
    EXPECT_TRUE(check.findings.empty())
        << query.name << ": " << testing::PrintToString(check.findings) << variables;
    co_return check.values;
  }
  // Sends one mutation with random texts. Returns whether it succeeded; else the response says why.
  Task<bool> change(const ClientQuery& mutation) {
    auto variables = mutation.variables;
    vary_texts(variables, random_);
    const bool is_of_runtime = mutation.root_field == "reportRuntimeErrors";
    const auto& token = is_of_runtime ? graphql_.sample.prod_token : graphql_.sample.ann_key;
    const auto response = co_await graphql_.ask(token, mutation.document, variables);
    if (!response.contains("errors")) {
      const auto check = test::check_response(mutation.root_field, response.dump());
      EXPECT_TRUE(check.findings.empty())
          << mutation.name << ": " << testing::PrintToString(check.findings) << variables;
      if (mutation.root_field == "createRuntime") keep_token(response["data"]["createRuntime"]);
      co_return true;
    }
    EXPECT_TRUE(response["errors"].is_array() && !response["errors"].empty());
    for (const auto& error : response["errors"]) {
      EXPECT_FALSE(error["message"].get<std::string>().empty());
      // A document that is not valid has no code.
      const auto code = string_at(error, {"extensions", "code"});
      EXPECT_TRUE(code.empty() || code == "INVALID_ARGUMENT" || code == "NOT_FOUND")
          << variables << response;
    }
    co_return false;
  }

 private:
  // A registration under an existing name revokes the older tokens.
  void keep_token(const nlohmann::json& created) {
    if (created["name"] != "prod") return;
    graphql_.sample.prod_token = Secret(created["newAccessToken"].get<std::string>());
  }

  Result<std::size_t> store_events(store::Connection& db) {
    std::vector<Incoming> batch;
    JsonParser parser;
    for (int i = 0; i < kEventsBetweenStates; ++i) {
      auto event = read_event(parser, random_.event(),
                              {.event_id = "e" + std::to_string(sequence_),
                               .sequence = ++sequence_,
                               .runtime = random_.runtime(),
                               .arrived_at = kSeedTime + sequence_});
      if (!event) continue;  // the intake refuses it
      const bool is_application = event->state.key.origin == Origin::application;
      batch.push_back({.account = graphql_.sample.acme.number,
                       .reporter = is_application ? "application" : "resource",
                       .event = std::move(*event)});
    }
    const auto outcome = events_->store(db, batch);
    if (!outcome) return std::unexpected(outcome.error());
    return batch.size();
  }

  Result<bool> change_runtime(store::Connection& db) {
    const auto account = graphql_.sample.acme.number;
    const auto name = random_.runtime();
    if (random_.one_in(12)) {
      static_cast<void>(delete_runtime(db, account, name));  // which may be absent
      return true;
    }
    const auto made = create_runtime(db, account,
                                     {.name = name,
                                      .runtime_namespace = random_.one_in(3) ? "" : "gitops",
                                      .cluster = random_.one_in(3) ? "" : "https://k",
                                      .arguments = random_.registration()},
                                     kSeedTime);
    if (!made) return std::unexpected(made.error());
    if (auto set = set_runtime_status(db, account, name, random_.status()); !set) {
      return std::unexpected(set.error());
    }
    if (auto set = set_runtime_errors(db, account, name, random_.reported_errors()); !set) {
      return std::unexpected(set.error());
    }
    if (auto set = apply_cluster_report(db, account, name, random_.clusters(name), kSeedTime);
        !set) {
      return std::unexpected(set.error());
    }
    if (auto set = set_git_settings(
            db, account,
            {.provider = random_.one_in(2) ? "GITEA" : "GITLAB",
             .api_url = "https://git.example",
             .shared_config_repo = random_.one_in(2) ? "" : "https://git.example/r"});
        !set) {
      return std::unexpected(set.error());
    }
    static_cast<void>(set_git_source_permissions(db, account, name, "argocd", random_.name(),
                                                 random_.permissions(), kSeedTime));
    return true;
  }

  GraphqlFixture& graphql_;
  RandomState random_;
  std::unique_ptr<EventStore> events_;
  std::int64_t sequence_ = 0;
};

}  // namespace gitops::control_plane_server
