#include "control-plane/accounts/service_account_routes.hpp"

#include <optional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/json_value.hpp"
#include "common/core/log.hpp"
#include "control-plane/accounts/account_store.hpp"
#include "control-plane/accounts/revocations.hpp"
#include "control-plane/accounts/service_accounts.hpp"

namespace gitops::control_plane_server {
namespace {

using Json = nlohmann::json;

Json service_account_json(const ServiceAccount& from) {
  Json teams = Json::array();
  for (const auto& team : from.teams) teams.push_back({{"_id", team}});
  Json roles = Json::array({"User"});
  if (from.is_admin) roles.push_back("Admin");
  return {{"_id", from.id},
          {"userName", from.name},
          {"teams", std::move(teams)},
          {"roles", std::move(roles)},
          {"enabled", !from.is_disabled},
          {"created", time_text(from.created_at)}};
}

// A change of a service account: of all its values, of whether it is enabled, or of both.
struct Change {
  std::optional<ServiceAccountRequest> values;
  std::optional<bool> is_enabled;
};
// Nothing when a member has another type, or when there is nothing to change.
std::optional<Change> change_of(const Json& body) {
  Change change;
  if (const auto& enabled = value_at(body, {"enabled"}); enabled.is_boolean()) {
    change.is_enabled = enabled.get<bool>();
  } else if (!enabled.is_null()) {
    return {};
  }
  const auto& name = value_at(body, {"userName"});
  if (name.is_null()) {
    const bool is_only_enabled = !body.contains("teamIds") && !body.contains("assignAdminRole");
    if (!is_only_enabled || !change.is_enabled) return {};
    return change;
  }
  if (!name.is_string()) return {};
  ServiceAccountRequest values{.name = name.get<std::string>()};
  const auto& role = value_at(body, {"assignAdminRole"});
  if (!role.is_null() && !role.is_boolean()) return {};
  values.is_admin = role.is_boolean() && role.get<bool>();
  const auto& teams = value_at(body, {"teamIds"});
  if (!teams.is_null() && !teams.is_array()) return {};
  for (const Json& team : teams) {
    if (!team.is_string()) return {};
    values.teams.push_back(team.get<std::string>());
  }
  change.values = std::move(values);
  return change;
}

constexpr const char* kWanted =
    "A service account has userName (a text), teamIds (a list of texts) and assignAdminRole (true "
    "or false), or only enabled (true or false).";

Task<http::Response> get_all(CallerRequest request) {
  if (const auto error = administration_refusal(*request.caller)) co_return api_error(*error);
  const auto found = co_await request.context.database.read(
      request.deadline, [account = request.caller->account->number](store::Connection& connection) {
        return list_service_accounts(connection, account);
      });
  if (!found) co_return api_error(found.error());
  Json list = Json::array();
  for (const auto& one : *found) list.push_back(service_account_json(one));
  co_return json_response(list);
}

Task<http::Response> get_one(CallerRequest request) {
  if (const auto error = administration_refusal(*request.caller)) co_return api_error(*error);
  const auto found = co_await request.context.database.read(
      request.deadline, [account = request.caller->account->number,
                         id = request.parameters.at("id")](store::Connection& connection) {
        return service_account_of_id(connection, account, id);
      });
  if (!found) co_return api_error(found.error());
  co_return json_response(service_account_json(*found));
}

Task<http::Response> create(CallerRequest request) {
  if (const auto error = administration_refusal(*request.caller)) co_return api_error(*error);
  const auto body = co_await body_object(request.exchange);
  if (!body) co_return body.error();
  const auto change = change_of(*body);
  if (!change || !change->values) co_return api_error(400, kWanted);
  request.audit_target = "name=" + change->values->name;
  const auto made = co_await request.context.database.write(
      request.deadline,
      [account = request.caller->account->number, change = *change,
       now = micros_at(wall_now())](store::Connection& connection) -> Result<ServiceAccount> {
        auto created = create_service_account(connection, account, *change.values, now);
        if (!created || change.is_enabled.value_or(true)) return created;
        created->is_disabled = true;
        if (auto set = set_service_account_disabled(connection, account, created->id, true); !set) {
          return std::unexpected(std::move(set.error()));
        }
        return created;
      });
  if (!made) co_return api_error(made.error());
  request.audit_target += " id=" + made->id;
  Log("accounts")
      .info("a service account was created",
            {{"service_account", made->id}, {"by", request.caller->user_id}});
  co_return json_response(service_account_json(*made));
}

// Changes a service account within a transaction and lets every process read its keys again.
Result<ServiceAccount> apply(store::Connection& connection, std::int64_t account,
                             const std::string& id, const Change& change, Micros now) {
  if (change.values) {
    auto updated = update_service_account(connection, account, id, *change.values);
    if (!updated) return updated;
  }
  if (change.is_enabled) {
    if (auto set = set_service_account_disabled(connection, account, id, !*change.is_enabled);
        !set) {
      return std::unexpected(std::move(set.error()));
    }
  }
  if (auto added =
          add_revocation(connection, {.account = account, .subject = id, .runtime = {}}, now);
      !added) {
    return std::unexpected(std::move(added.error()));
  }
  return service_account_of_id(connection, account, id);
}

Task<http::Response> update(CallerRequest request) {
  if (const auto error = administration_refusal(*request.caller)) co_return api_error(*error);
  const auto body = co_await body_object(request.exchange);
  if (!body) co_return body.error();
  const auto change = change_of(*body);
  if (!change) co_return api_error(400, kWanted);
  if (change->is_enabled) {
    request.audit_target = *change->is_enabled ? "enabled=true" : "enabled=false";
  }
  if (change->values) {
    request.audit_target = "name=" + change->values->name +
                           (change->values->is_admin ? " admin=true" : " admin=false") +
                           (request.audit_target.empty() ? "" : " ") + request.audit_target;
  }
  const auto id = request.parameters.at("id");
  const auto updated = co_await request.context.database.write(
      request.deadline, [account = request.caller->account->number, id, change = *change,
                         now = micros_at(wall_now())](store::Connection& connection) {
        return apply(connection, account, id, change, now);
      });
  if (!updated) co_return api_error(updated.error());
  request.context.authenticator.forget(id);
  Log("accounts")
      .info("a service account was changed",
            {{"service_account", id}, {"by", request.caller->user_id}});
  co_return json_response(service_account_json(*updated));
}

Task<http::Response> remove(CallerRequest request) {
  if (const auto error = administration_refusal(*request.caller)) co_return api_error(*error);
  const auto id = request.parameters.at("id");
  const auto removed = co_await request.context.database.write(
      request.deadline,
      [account = request.caller->account->number, id,
       now = micros_at(wall_now())](store::Connection& connection) -> Result<ServiceAccount> {
        auto found = service_account_of_id(connection, account, id);
        if (!found) return found;
        if (auto gone = remove_service_account(connection, account, id); !gone) {
          return std::unexpected(std::move(gone.error()));
        }
        if (auto added =
                add_revocation(connection, {.account = account, .subject = id, .runtime = {}}, now);
            !added) {
          return std::unexpected(std::move(added.error()));
        }
        return found;
      });
  if (!removed) co_return api_error(removed.error());
  request.audit_target = "name=" + removed->name;
  request.context.authenticator.forget(id);
  Log("accounts")
      .info("a service account was removed",
            {{"service_account", id}, {"by", request.caller->user_id}});
  co_return json_response(service_account_json(*removed));
}

}  // namespace

void add_service_account_routes(const UserContext& context, std::vector<http::Route>& routes) {
  CallerRoutes list(context, routes);
  list.add("GET", "/api/service-users", get_all);
  list.add("POST", "/api/service-users", create);
  list.add("GET", "/api/service-users/{id}", get_one);
  list.add("PATCH", "/api/service-users/{id}", update);
  list.add("DELETE", "/api/service-users/{id}", remove);
}

}  // namespace gitops::control_plane_server
