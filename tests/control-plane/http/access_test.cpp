// Who may do what: every route and every field for every kind of caller, at the real port. What is expected follows from
// the declared permission, so a new route or field is tested without a line here.
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <string>
#include <tuple>

#include <gmock/gmock.h>

#include "control-plane/accounts/page_tokens.hpp"
#include "control-plane/accounts/rules.hpp"
#include "control-plane/accounts/teams.hpp"
#include "control-plane/http/schema_documents.hpp"
#include "control-plane/http/whole_port.hpp"
#include "support/docs_part.hpp"

namespace gitops::control_plane_server {
namespace {

using Json = nlohmann::json;

// A credential of each kind of caller. People have sessions, programs have keys.
using Credentials = std::map<CallerKind, http::Headers>;

Result<std::string> person(store::Connection& db, std::int64_t account, const std::string& name,
                           bool is_admin, Micros now) {
  const auto user = create_user(db, account, {.name = name, .is_admin = is_admin}, now);
  if (!user) return std::unexpected(user.error());
  return user->id;
}

http::Headers session_of(store::Connection& db, const std::string& user, Micros now) {
  return authorization(must(create_session(db, user, now)));
}

http::Headers service_of(store::Connection& db, std::int64_t account, const std::string& name,
                         bool is_admin, bool is_disabled, Micros now) {
  const auto made =
      must(create_service_account(db, account, {.name = name, .is_admin = is_admin}, now));
  must(set_service_account_disabled(db, account, made.id, is_disabled));
  return authorization(must(create_user_key(db, account, made.id, {.name = "key"}, now)).text);
}

Credentials make_credentials(store::Connection& db, const SampleAccounts& sample) {
  const auto now = micros_at(wall_now());
  const auto acme = sample.acme.number;
  Credentials all;
  all[CallerKind::nobody] = {};
  all[CallerKind::stranger] = session_of(db, sample.eve.id, now);
  all[CallerKind::viewer] = session_of(db, sample.bob.id, now);
  for (const auto& [kind, name, entity] :
       {std::tuple(CallerKind::ruled, "ruth", "workflows"),
        std::tuple(CallerKind::team_member, "tess", "gitopsApplications")}) {
    const auto user = must(person(db, acme, name, false, now));
    const auto team = must(create_team(db, acme, name));
    must(add_to_team(db, acme, team, user));
    must(create_rule(db, acme,
                     {.id = {},
                      .entity_type = entity,
                      .teams = {team},
                      .tags = {},
                      .actions = {"VIEW"},
                      .attributes = {}},
                     now));
    all[kind] = session_of(db, user, now);
  }
  all[CallerKind::service_account] = service_of(db, acme, "ci", false, false, now);
  all[CallerKind::disabled_service] = service_of(db, acme, "old", true, true, now);
  all[CallerKind::admin_service] = service_of(db, acme, "terraform", true, false, now);
  all[CallerKind::runtime] = authorization(sample.prod_token);
  all[CallerKind::admin] = session_of(db, must(person(db, acme, "adam", true, now)), now);
  const auto session = must(create_session(db, sample.ann.id, now));
  all[CallerKind::system_admin] = authorization(session);
  all[CallerKind::page_token] =
      authorization(must(create_page_token(db, acme, session_hash(session), "prod", now)));
  return all;
}

Task<Credentials> credentials(WholePort& port) {
  auto made = co_await port.accounts.write([&port](store::Connection& db) -> Result<Credentials> {
    return make_credentials(db, port.sample);
  });
  co_return must(std::move(made));
}

// The path of a route with ids that exist nowhere.
std::string path_of(std::string_view pattern) {
  return path_with(pattern, [](const std::string&) { return std::string(24, '0'); });
}

std::string yes(bool is) {
  return is ? "allowed" : "refused";
}

bool was_allowed(const http::Response& response) {
  // Whoever may change its password is told that the present one is wrong.
  return response.body.contains("present password is wrong") ||
         (response.status != 401 && response.status != 403);
}

// The routes in the order of their test: a logout ends the sessions of the callers.
std::vector<ListedRoute> routes_by_test() {
  std::vector<ListedRoute> routes;
  for (const bool is_last : {false, true}) {
    std::ranges::copy_if(route_list(), std::back_inserter(routes), [is_last](const auto& route) {
      return route.pattern.ends_with("logout") == is_last;
    });
  }
  return routes;
}

TEST(Access, AC_56_EveryRouteIsForTheCallersThatItIsDeclaredFor) {
  with_whole_port([](WholePort& port) -> Task<> {
    const auto callers = co_await credentials(port);
    std::size_t checked = 0;
    for (const auto& route : routes_by_test()) {
      if (route.callers == "by field") continue;
      for (const auto& [kind, name] : kCallers) {
        // Each caller is at the address of all the others. Without the type of JSON, what is for anyone does nothing.
        const auto response = co_await port.send(std::string(route.method), path_of(route.pattern),
                                                 callers.at(kind), "{}");
        EXPECT_EQ(yes(was_allowed(response)), yes(is_allowed(route.callers, kind)))
            << route.method << ' ' << route.pattern << " for " << name << ": " << response.status
            << ' ' << response.body;
        EXPECT_TRUE(response.headers.find("X-Request-Id")) << route.method << ' ' << route.pattern;
        ++checked;
      }
    }
    const auto by_caller = std::ranges::count_if(
        route_list(), [](const auto& route) { return route.callers != "by field"; });
    EXPECT_EQ(checked, static_cast<std::size_t>(by_caller) * std::size(kCallers));
  });
}

TEST(Access, TheAuditLogHasTheIdsThatAnswersTell) {
  with_whole_port([](WholePort& port) -> Task<> {
    const auto bob = authorization(port.sample.bob_key);
    const auto made = co_await port.send("POST", "/api/auth/key", bob, R"({"name":"ci"})");
    EXPECT_EQ(made.status, 200) << made.body;
    const auto refused = co_await port.send("POST", "/2.0/api/events", bob, "{}");
    EXPECT_EQ(refused.status, 403) << refused.body;
    co_await port.audit.idle(AccountsFixture::soon());
    const auto response =
        co_await port.send("GET", "/console/api/v1/audit", authorization(port.sample.ann_key));
    const auto list = Json::parse(response.body);
    std::map<std::string, std::string> ids;
    for (const auto& entry : list["entries"]) {
      ids[entry["action"].get<std::string>()] = entry["requestId"].get<std::string>();
    }
    const auto told = [](const http::Response& response) {
      return std::string(response.headers.find("X-Request-Id").value_or("none"));
    };
    EXPECT_EQ(ids["POST /api/auth/key"], told(made));
    EXPECT_EQ(ids["POST /2.0/api/events"], told(refused));
  });
}

TEST(Access, AC_56_EveryFieldIsForTheCallersThatItIsDeclaredFor) {
  with_whole_port([](WholePort& port) -> Task<> {
    const auto callers = co_await credentials(port);
    const SchemaDocuments documents;
    for (const auto& row : port.graphql.rows) {
      const auto document =
          documents.document(row, false, [](const std::string&) { return std::string("none"); });
      for (const auto& [kind, name] : kCallers) {
        const auto response = co_await port.ask(callers.at(kind), document);
        const bool is_me = kind == CallerKind::page_token && row.field == "me";
        EXPECT_EQ(yes(was_allowed(response)),
                  yes(is_me || is_allowed(word_of(row.permission), kind)))
            << document << " for " << name << ": " << response.status << ' ' << response.body;
        // A document that is not valid would be refused for everybody.
        const int answered = row.root == RootType::subscription ? 400 : 200;  // needs a WebSocket
        if (was_allowed(response))
          EXPECT_EQ(response.status, answered) << document << response.body;
      }
    }
  });
}

TEST(Access, TheDocumentedTableIsTheOneThatIsTested) {
  std::string text = "| Who may |";
  std::string line = "|---|";
  for (const auto& [kind, name] : kCallers) {
    text += " " + std::string(name) + " |";
    line += "---|";
  }
  text += "\n" + line + "\n";
  for (const auto* word : kWords) {
    text += "| " + std::string(word) + " |";
    for (const auto& [kind, name] : kCallers) text += is_allowed(word, kind) ? " yes |" : " – |";
    text += "\n";
  }
  text += "\nA page token is for the query `me` besides.\n";
  test::expect_docs_part(
      std::filesystem::path(GITOPS_SOURCE_DIR) / "docs" / "reference" / "control-plane" / "api.md",
      "access", text);
}

}  // namespace
}  // namespace gitops::control_plane_server
