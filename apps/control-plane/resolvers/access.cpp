#include "control-plane/resolvers/access.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/json_value.hpp"
#include "common/graphql/response.hpp"
#include "control-plane/accounts/account_store.hpp"
#include "control-plane/accounts/service_accounts.hpp"
#include "control-plane/accounts/teams.hpp"
#include "control-plane/accounts/visibility.hpp"
#include "control-plane/resolvers/rules.hpp"
#include "control-plane/views/object_query.hpp"

namespace gitops::control_plane_server {
namespace {

using control_plane::Action;
using control_plane::Entity;
using control_plane::EntityType;
using graphql::Call;
using Json = nlohmann::json;

constexpr std::size_t kMaxUsers = 1'000;

// The account's data that decisions follow from.
struct AccessFacts {
  Entity entity;
  std::vector<AbacRule> rules;  // of the entity's type
  std::vector<Team> teams;
};

struct EntityQuestion {
  EntityType type;
  ObjectName name;
};

Result<EntityQuestion> question_of(graphql::InputView input) {
  const auto type_name = input["entityType"].text();
  const auto type = control_plane::entity_type_of(type_name);
  EntityQuestion question{.type = type.value_or(EntityType::gitops_applications),
                          .name = {.runtime = std::string(input["runtime"].text()),
                                   .object_namespace = std::string(input["namespace"].text()),
                                   .name = std::string(input["name"].text())}};
  if (type == EntityType::workflows) {
    question.name.kind = "Workflow";
  } else if (type == EntityType::workflow_templates) {
    question.name.kind = "WorkflowTemplate";
  } else if (type != EntityType::gitops_applications) {
    return fail(ErrorCode::invalid_argument,
                "entityType: " + std::string(type_name) +
                    " has no entities here; ask for gitopsApplications, workflows or "
                    "workflowTemplates");
  }
  return question;
}

Result<Entity> find_entity(store::Connection& db, std::int64_t account,
                           const EntityQuestion& question) {
  const auto found = find_object(db, account, question.name, BodyUse::read);
  if (!found) return std::unexpected(found.error());
  if (!*found) {
    return fail(ErrorCode::not_found,
                question.name.kind + " \"" + question.name.name + "\" not found");
  }
  ParsedBody body;
  body.read((*found)->body);
  const auto& state = (*found)->state;
  if (question.type == EntityType::gitops_applications) return entity_of(state, body.live());
  return control_plane::own_cluster_entity(question.type, body.live(), state.key.runtime);
}

Result<AccessFacts> read_facts(store::Connection& db, std::int64_t account,
                               const EntityQuestion& question) {
  auto entity = find_entity(db, account, question);
  if (!entity) return std::unexpected(std::move(entity.error()));
  auto rules = list_rules(db, account, to_string(question.type));
  if (rules && question.type == EntityType::gitops_applications) {
    rules = with_default_view(db, account, std::move(*rules));
  }
  if (!rules) return std::unexpected(std::move(rules.error()));
  auto teams = list_teams(db, account);
  if (!teams) return std::unexpected(std::move(teams.error()));
  return AccessFacts{
      .entity = std::move(*entity), .rules = std::move(*rules), .teams = std::move(*teams)};
}

std::vector<std::string> teams_of(const AccessFacts& facts, std::string_view user_id) {
  std::vector<std::string> ids;
  for (const auto& team : facts.teams) {
    for (const auto* members : {&team.users, &team.service_accounts}) {
      if (std::ranges::find(*members, user_id, &TeamUser::id) != members->end()) {
        ids.push_back(team.id);
      }
    }
  }
  return ids;
}

// Returns the first of these teams that the rule names, as JSON.
Json deciding_team(const AccessFacts& facts, const AbacRule& rule,
                   std::span<const std::string> teams) {
  for (const auto& id : teams) {
    if (!control_plane::names_team_of(rule, std::span(&id, 1))) continue;
    const auto team = std::ranges::find(facts.teams, id, &Team::id);
    return {{"id", id}, {"name", team->name}};
  }
  return {};
}

Json decision_json(const AccessFacts& facts, const Account& account, const Member& member,
                   Action action) {
  Json json{{"user", {{"id", member.user.id}, {"name", member.user.name}}},
            {"action", to_string(action)},
            {"allowed", false},
            {"reason", "NO_RULE"},
            {"rule", nullptr},
            {"team", nullptr}};
  if (member.user.is_disabled) {
    json["reason"] = "DISABLED";
    return json;
  }
  if (member.is_admin) {
    json["allowed"] = true;
    json["reason"] = "ADMINISTRATOR";
    return json;
  }
  const auto teams = teams_of(facts, member.user.id);
  const auto* const rule = control_plane::allowing_rule(facts.rules, teams, action, facts.entity);
  if (rule == nullptr) return json;
  json["allowed"] = true;
  json["reason"] = rule->id == kDefaultViewRule ? "DEFAULT" : "RULE";
  if (rule->id != kDefaultViewRule) json["rule"] = rule_json(*rule, account);
  json["team"] = deciding_team(facts, *rule, teams);
  return json;
}

// Returns a service account in the form of a member.
Member as_member(const ServiceAccount& from) {
  Member member;
  member.user.id = from.id;
  member.user.name = from.name;
  member.user.is_disabled = from.is_disabled;
  member.is_admin = from.is_admin;
  return member;
}

// Returns the member or the service account of this id.
Result<Member> find_caller(store::Connection& db, std::int64_t account,
                           const std::string& user_id) {
  auto member = find_member(db, account, user_id);
  if (!member) return std::unexpected(std::move(member.error()));
  if (*member) return std::move(**member);
  const auto service_account = service_account_of_id(db, account, user_id);
  if (service_account) return as_member(*service_account);
  if (service_account.error().code != ErrorCode::not_found) {
    return std::unexpected(service_account.error());
  }
  return fail(ErrorCode::not_found, "the account has no user " + user_id);
}

// Returns what a member may do. Who may not see the entity gets the error of one that does not exist.
Result<Json> decisions_of(store::Connection& db, const Account& account,
                          const EntityQuestion& question, const std::string& user_id,
                          bool asks_for_itself) {
  const auto member = find_caller(db, account.number, user_id);
  if (!member) return std::unexpected(member.error());
  const auto facts = read_facts(db, account.number, question);
  if (!facts) return std::unexpected(facts.error());
  Json list = Json::array();
  for (const auto action : control_plane::actions_on(question.type)) {
    list.push_back(decision_json(*facts, account, *member, action));
    const bool is_hidden = asks_for_itself && question.type == EntityType::gitops_applications &&
                           action == Action::view && list.back()["allowed"] == false;
    if (is_hidden) {
      return fail(ErrorCode::not_found,
                  question.name.kind + " \"" + question.name.name + "\" not found");
    }
  }
  return list;
}

Task<Result<graphql::Json>> access(store::Database& database, Call& call) {
  const auto caller = call.context<RequestContext>().caller;
  auto question = question_of(call["entity"]);
  if (!question) co_return std::unexpected(std::move(question.error()));
  std::string user_id(call["userId"].text());
  if (user_id.empty()) user_id = caller->user_id;
  if (user_id != caller->user_id && !caller->is_admin) {
    co_return std::unexpected(
        Error{.code = ErrorCode::forbidden,
              .message = "only an administrator of the account may ask for other users",
              .http_status = 403,
              .subcode = graphql::kPublicRefusal});
  }
  const auto list = co_await database.read(
      call.deadline(), [caller, question = std::move(*question), user_id](store::Connection& db) {
        return decisions_of(db, *caller->account, question, user_id, user_id == caller->user_id);
      });
  if (!list) co_return std::unexpected(list.error());
  co_return graphql::Json::trusted(to_text(*list));
}

Result<Json> users_who_may(store::Connection& db, const Account& account,
                           const EntityQuestion& question, Action action) {
  const auto facts = read_facts(db, account.number, question);
  if (!facts) return std::unexpected(facts.error());
  auto members = list_members(db, account.number);
  if (!members) return std::unexpected(members.error());
  const auto service_accounts = list_service_accounts(db, account.number);
  if (!service_accounts) return std::unexpected(service_accounts.error());
  for (const auto& one : *service_accounts) members->push_back(as_member(one));
  Json list = Json::array();
  for (const auto& member : *members) {
    auto decision = decision_json(*facts, account, member, action);
    if (decision["allowed"] == true) list.push_back(std::move(decision));
    if (list.size() == kMaxUsers) break;
  }
  return list;
}

Task<Result<graphql::Json>> users_with_access(store::Database& database, Call& call) {
  const auto account = caller_of(call).account;
  auto question = question_of(call["entity"]);
  if (!question) co_return std::unexpected(std::move(question.error()));
  const auto action = control_plane::action_of(call["action"].text());
  if (!action) co_return fail(ErrorCode::invalid_argument, "action: unknown");
  const auto list = co_await database.read(
      call.deadline(),
      [account, question = std::move(*question), action = *action](store::Connection& db) {
        return users_who_may(db, *account, question, action);
      });
  if (!list) co_return std::unexpected(list.error());
  co_return graphql::Json::trusted(to_text(*list));
}

}  // namespace

std::vector<FieldRow> access_rows(Dependencies& dependencies) {
  using enum Permission;
  auto& database = dependencies.database;
  return {
      read("access", user, [&database](Call& call) { return access(database, call); }),
      read("usersWithAccess", admin,
           [&database](Call& call) { return users_with_access(database, call); }),
  };
}

}  // namespace gitops::control_plane_server
