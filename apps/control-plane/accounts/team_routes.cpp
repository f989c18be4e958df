#include "control-plane/accounts/team_routes.hpp"

#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/json_value.hpp"
#include "common/core/log.hpp"
#include "control-plane/accounts/account_store.hpp"
#include "control-plane/accounts/revocations.hpp"
#include "control-plane/accounts/teams.hpp"

namespace gitops::control_plane_server {
namespace {

using Json = nlohmann::json;

Json users_json(const std::vector<TeamUser>& users) {
  Json list = Json::array();
  for (const auto& user : users) {
    list.push_back({{"_id", user.id}, {"userName", user.name}, {"email", user.email}});
  }
  return list;
}

// Runtimes find service accounts among the users, because they evaluate rules by the members of teams.
Task<http::Response> get_teams(CallerRequest request) {
  const auto account = request.caller->account;
  const auto teams = co_await request.context.database.read(
      request.deadline, [number = account->number](store::Connection& connection) {
        return list_teams(connection, number);
      });
  if (!teams) co_return api_error(teams.error());
  Json list = Json::array();
  for (const auto& team : *teams) {
    auto users = users_json(team.users);
    auto service_accounts = users_json(team.service_accounts);
    if (request.caller->is_runtime()) {
      users.insert(users.end(), service_accounts.begin(), service_accounts.end());
    }
    list.push_back({{"_id", team.id},
                    {"name", team.name},
                    {"type", team.type},
                    {"account", account->id},
                    {"tags", Json::array()},
                    {"users", std::move(users)},
                    {"serviceAccounts", std::move(service_accounts)}});
  }
  co_return json_response(list);
}

Task<http::Response> create(CallerRequest request) {
  if (const auto error = administration_refusal(*request.caller)) co_return api_error(*error);
  const auto body = co_await body_object(request.exchange);
  if (!body) co_return body.error();
  const auto name = string_at(*body, {"name"});
  std::vector<std::string> users;
  for (const Json& user : value_at(*body, {"users"})) {
    if (!user.is_string()) co_return api_error(400, "users is a list of ids.");
    users.push_back(user.get<std::string>());
  }
  request.audit_target = "name=" + name;
  const auto account = request.caller->account;
  const auto id = co_await request.context.database.write(
      request.deadline,
      [number = account->number, name,
       users](store::Connection& connection) -> Result<std::string> {
        auto made = create_team(connection, number, name);
        if (!made) return made;
        for (const auto& user : users) {
          if (auto added = add_to_team(connection, number, *made, user); !added) {
            return std::unexpected(std::move(added.error()));
          }
        }
        return made;
      });
  if (!id) co_return api_error(id.error());
  request.audit_target += " id=" + *id;
  Log("accounts").info("a team was created", {{"team", *id}, {"by", request.caller->user_id}});
  co_return json_response(Json::object({{"_id", *id},
                                        {"name", name},
                                        {"type", "default"},
                                        {"account", account->id},
                                        {"tags", Json::array()},
                                        {"users", users}}));
}

// Runs a change of one team. Rules name teams, so open pages ask again what they may show.
Task<http::Response> change(CallerRequest& request, const char* what,
                            std::function<Result<void>(store::Connection&)> work) {
  const auto account = request.caller->account;
  const auto changed = co_await request.context.database.write(
      request.deadline, [number = account->number, work = std::move(work),
                         now = micros_at(wall_now())](store::Connection& connection) {
        auto done = work(connection);
        return done ? add_account_change(connection, number, now) : done;
      });
  if (!changed) co_return api_error(changed.error());
  request.context.authenticator.forget(account->id);
  const auto& id = request.parameters.at("id");
  Log("accounts").info(what, {{"team", id}, {"by", request.caller->user_id}});
  co_return json_response(Json::object({{"_id", id}}));
}

Task<http::Response> remove(CallerRequest request) {
  if (const auto error = administration_refusal(*request.caller)) co_return api_error(*error);
  co_return co_await change(
      request, "a team was removed",
      [account = request.caller->account->number, id = request.parameters.at("id")](
          store::Connection& connection) { return remove_team(connection, account, id); });
}

Task<http::Response> rename(CallerRequest request) {
  if (const auto error = administration_refusal(*request.caller)) co_return api_error(*error);
  const auto body = co_await body_object(request.exchange);
  if (!body) co_return body.error();
  const auto name = string_at(*body, {"name"});
  request.audit_target = "name=" + name;
  co_return co_await change(
      request, "a team was renamed",
      [account = request.caller->account->number, id = request.parameters.at("id"),
       name](store::Connection& connection) { return rename_team(connection, account, id, name); });
}

Task<http::Response> assign(CallerRequest request) {
  if (const auto error = administration_refusal(*request.caller)) co_return api_error(*error);
  co_return co_await change(
      request, "a user was put into a team",
      [account = request.caller->account->number, id = request.parameters.at("id"),
       user = request.parameters.at("user")](store::Connection& connection) {
        return add_to_team(connection, account, id, user);
      });
}

Task<http::Response> unassign(CallerRequest request) {
  if (const auto error = administration_refusal(*request.caller)) co_return api_error(*error);
  co_return co_await change(
      request, "a user was taken out of a team",
      [account = request.caller->account->number, id = request.parameters.at("id"),
       user = request.parameters.at("user")](store::Connection& connection) {
        return remove_from_team(connection, account, id, user);
      });
}

Task<http::Response> synchronize(CallerRequest request) {
  if (const auto error = administration_refusal(*request.caller)) co_return api_error(*error);
  co_return api_error(400,
                      "Teams are not synchronised with groups of an identity provider by this "
                      "request.");
}

}  // namespace

void add_team_routes(const UserContext& context, std::vector<http::Route>& routes) {
  CallerRoutes list(context, routes);
  list.add("GET", "/api/team", get_teams, {kScopeRead});
  list.add("POST", "/api/team", create);
  list.add("DELETE", "/api/team/{id}", remove);
  list.add("PUT", "/api/team/{id}/renameTeam", rename);
  list.add("PUT", "/api/team/{id}/{user}/assignUserToTeam", assign);
  list.add("PUT", "/api/team/{id}/{user}/deleteUserFromTeam", unassign);
  list.add("GET", "/api/team/group/synchronize/name/{client}/type/{type}", synchronize);
}

}  // namespace gitops::control_plane_server
