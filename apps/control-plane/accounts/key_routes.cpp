#include "control-plane/accounts/key_routes.hpp"

#include <optional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/json_value.hpp"
#include "common/core/log.hpp"
#include "common/http/url.hpp"
#include "control-plane/accounts/account_store.hpp"
#include "control-plane/accounts/api_keys.hpp"
#include "control-plane/accounts/revocations.hpp"
#include "control-plane/accounts/service_accounts.hpp"

namespace gitops::control_plane_server {
namespace {

using Json = nlohmann::json;

// Subject of the tokens of runners, which belong to the CI product.
constexpr std::string_view kRunner = "runtime-environment";

http::Response no_runners() {
  return api_error(404, "This server has no runners.");
}

// The members "name" and "scopes" of a key; nothing when one of them has another type.
struct KeyFields {
  std::optional<std::string> name;
  std::optional<std::vector<std::string>> scopes;
};
std::optional<KeyFields> key_fields(const Json& body) {
  KeyFields fields;
  if (const auto name = body.find("name"); name != body.end()) {
    if (!name->is_string()) return {};
    fields.name = name->get<std::string>();
  }
  if (const auto scopes = body.find("scopes"); scopes != body.end() && !scopes->is_null()) {
    if (!scopes->is_array()) return {};
    fields.scopes.emplace();
    for (const Json& scope : *scopes) {
      if (!scope.is_string()) return {};
      fields.scopes->push_back(scope.get<std::string>());
    }
  }
  return fields;
}

Json key_json(const ApiKey& key) {
  const bool is_runtime = !key.runtime.empty();
  const char* const type = is_runtime                  ? "runtime"
                           : key.is_of_service_account ? "service-user"
                                                       : "user";
  Json json{{"_id", key.id},
            {"name", key.name},
            {"scopes", key.scopes},
            {"tokenPrefix", key.prefix},
            {"created", time_text(key.created_at)},
            {"subject", {{"type", type}, {"ref", is_runtime ? key.runtime : key.user_id}}},
            {"scopeSnapshot", Json::object()}};
  if (key.expires_at != 0) json["expires"] = time_text(key.expires_at);
  if (key.used_at != 0) json["lastUsed"] = time_text(key.used_at);
  return json;
}

// Returns the refusal of scopes that no key has.
std::optional<http::Response> unknown_scopes(const KeyFields& fields) {
  if (!fields.scopes) return std::nullopt;
  const auto mistake = scopes_mistake(*fields.scopes);
  if (mistake.empty()) return std::nullopt;
  return api_error(400, mistake);
}

// Issues a key of a user or a service account, as the body wants it.
Task<http::Response> issue_key(CallerRequest& request, std::string owner, bool is_service) {
  const auto body = co_await body_object(request.exchange);
  if (!body) co_return body.error();
  const auto fields = key_fields(*body);
  if (!fields || !fields->name) {
    co_return api_error(400, "A key has a name (a text) and scopes (a list of texts).");
  }
  if (auto refused = unknown_scopes(*fields)) co_return std::move(*refused);
  KeyRequest wanted{.name = *fields->name,
                    .scopes = fields->scopes.value_or(std::vector<std::string>())};
  if (const auto expires = string_at(*body, {"expires"}); !expires.empty()) {
    const auto at = parse_rfc3339(expires);
    if (!at || *at <= wall_now()) {
      co_return api_error(400, "expires is not an RFC 3339 time in the future.");
    }
    wanted.expires_at = micros_at(*at);
  }
  request.audit_target = "name=" + wanted.name;
  const auto issued = co_await request.context.database.write(
      request.deadline,
      [account = request.caller->account->number, owner, is_service, wanted = std::move(wanted),
       now = micros_at(wall_now())](store::Connection& connection) -> Result<IssuedKey> {
        if (is_service) {
          const auto found = service_account_of_id(connection, account, owner);
          if (!found) return std::unexpected(found.error());
        }
        return create_user_key(connection, account, owner, wanted, now);
      });
  if (!issued) co_return api_error(issued.error());
  request.audit_target += " id=" + issued->key.id;
  Log("accounts")
      .info("a key was created",
            {{"key", issued->key.id}, {"user", owner}, {"by", request.caller->user_id}});
  auto response = http::text_response(200, std::string(issued->text.reveal()));
  response.headers.add("Cache-Control", "no-store");
  co_return response;
}

Task<http::Response> create_key(CallerRequest request) {
  if (request.caller->is_runtime()) co_return no_user();
  if (const auto refused = key_change_refusal(*request.caller)) co_return api_error(*refused);
  const auto subject = http::query_parameter(request.exchange.query(), "subjectType");
  if (subject == kRunner) co_return no_runners();
  if (!subject.empty() && subject != "user") {
    co_return api_error(400, "Keys belong to users: subjectType is user, or absent.");
  }
  co_return co_await issue_key(request, request.caller->user_id,
                               request.caller->is_service_account);
}

Task<http::Response> create_service_key(CallerRequest request) {
  if (const auto error = administration_refusal(*request.caller)) co_return api_error(*error);
  co_return co_await issue_key(request, request.parameters.at("id"), true);
}

// Returns the caller's keys, or for subjectType=runtime the tokens of the account's runtimes.
Task<http::Response> get_keys(CallerRequest request) {
  if (request.caller->is_runtime()) co_return no_user();
  const auto query = request.exchange.query();
  const auto subject = http::query_parameter(query, "subjectType");
  const auto runtime = http::query_parameter(query, "subjectReference");
  if (subject == kRunner) co_return no_runners();
  const bool is_about_runtimes = subject == "runtime";
  if (!subject.empty() && subject != "user" && !is_about_runtimes) {
    co_return api_error(400, "subjectType is user or runtime, or absent.");
  }
  if (is_about_runtimes && !request.caller->is_admin) {
    co_return api_error(403, "Only an administrator of the account sees the tokens of runtimes.");
  }
  const auto owner = is_about_runtimes ? std::string() : request.caller->user_id;
  const auto keys = co_await request.context.database.read(
      request.deadline,
      [account = request.caller->account->number, owner](store::Connection& connection) {
        return list_keys(connection, account, owner);
      });
  if (!keys) co_return api_error(keys.error());
  Json list = Json::array();
  for (const auto& key : *keys) {
    if (is_about_runtimes && key.runtime.empty()) continue;
    if (is_about_runtimes && !runtime.empty() && key.runtime != runtime) continue;
    list.push_back(key_json(key));
  }
  co_return json_response(list);
}

Task<http::Response> get_service_keys(CallerRequest request) {
  if (const auto error = administration_refusal(*request.caller)) co_return api_error(*error);
  const auto keys = co_await request.context.database.read(
      request.deadline,
      [account = request.caller->account->number, id = request.parameters.at("id")](
          store::Connection& connection) -> Result<std::vector<ApiKey>> {
        const auto found = service_account_of_id(connection, account, id);
        if (!found) return std::unexpected(found.error());
        return list_keys(connection, account, id);
      });
  if (!keys) co_return api_error(keys.error());
  Json list = Json::array();
  for (const auto& key : *keys) list.push_back(key_json(key));
  co_return json_response(list);
}

// The key that a path names.
struct KeyPath {
  std::string id;
  std::string service_account;  // empty: /api/auth/key/{id}
};
KeyPath key_path(const CallerRequest& request, bool is_service) {
  if (!is_service) return {.id = request.parameters.at("id"), .service_account = {}};
  return {.id = request.parameters.at("key"), .service_account = request.parameters.at("id")};
}

// Returns a key that the caller may see: one of its own, or for an administrator any key of the account.
Result<ApiKey> visible_key(store::Connection& connection, const Caller& caller,
                           const KeyPath& path) {
  auto key = key_of_account(connection, caller.account->number, path.id);
  if (!key) return key;
  const bool is_visible = path.service_account.empty()
                              ? key->user_id == caller.user_id || caller.is_admin
                              : key->is_of_service_account && key->user_id == path.service_account;
  if (!is_visible) return fail(ErrorCode::not_found, "there is no key " + path.id);
  return key;
}

// Returns the error for a caller who may not see a key of this path, or not change it.
std::optional<http::Response> key_refusal(const Caller& caller, bool is_service, bool changes) {
  if (caller.is_runtime() && !is_service) return no_user();
  const auto refused = is_service ? administration_refusal(caller)
                       : changes  ? key_change_refusal(caller)
                                  : std::nullopt;
  if (!refused) return std::nullopt;
  return api_error(*refused);
}

Task<http::Response> get_key(CallerRequest request, bool is_service) {
  if (auto refused = key_refusal(*request.caller, is_service, false)) co_return std::move(*refused);
  const auto key = co_await request.context.database.read(
      request.deadline,
      [caller = request.caller, path = key_path(request, is_service)](
          store::Connection& connection) { return visible_key(connection, *caller, path); });
  if (!key) co_return api_error(key.error());
  co_return json_response(key_json(*key));
}

Task<http::Response> update_one_key(CallerRequest request, bool is_service) {
  if (auto refused = key_refusal(*request.caller, is_service, true)) co_return std::move(*refused);
  const auto body = co_await body_object(request.exchange);
  if (!body) co_return body.error();
  const auto fields = key_fields(*body);
  if (!fields) {
    co_return api_error(400, "A key has a name (a text) and scopes (a list of texts).");
  }
  if (auto refused = unknown_scopes(*fields)) co_return std::move(*refused);
  const auto key = co_await request.context.database.write(
      request.deadline,
      [caller = request.caller, path = key_path(request, is_service), fields = *fields,
       now = micros_at(wall_now())](store::Connection& connection) -> Result<ApiKey> {
        auto known = visible_key(connection, *caller, path);
        if (!known) return known;
        if (fields.name) known->name = *fields.name;
        if (fields.scopes) known->scopes = *fields.scopes;
        if (auto updated =
                update_key(connection, known->account, known->id, known->name, known->scopes);
            !updated) {
          return std::unexpected(std::move(updated.error()));
        }
        // Other processes read the scopes again, too.
        if (auto added = add_revocation(
                connection, {.account = known->account, .subject = known->id, .runtime = {}}, now);
            !added) {
          return std::unexpected(std::move(added.error()));
        }
        return known;
      });
  if (!key) co_return api_error(key.error());
  request.context.authenticator.forget(key->id);
  co_return json_response(key_json(*key));
}

Task<http::Response> delete_key(CallerRequest request, bool is_service) {
  if (auto refused = key_refusal(*request.caller, is_service, true)) co_return std::move(*refused);
  const auto key = co_await request.context.database.write(
      request.deadline,
      [caller = request.caller, path = key_path(request, is_service),
       now = micros_at(wall_now())](store::Connection& connection) -> Result<ApiKey> {
        auto known = visible_key(connection, *caller, path);
        if (!known) return known;
        if (auto revoked = revoke_key(connection, known->account, known->id); !revoked) {
          return std::unexpected(std::move(revoked.error()));
        }
        const Revocation revocation{
            .account = known->account, .subject = known->id, .runtime = known->runtime};
        if (auto added = add_revocation(connection, revocation, now); !added) {
          return std::unexpected(std::move(added.error()));
        }
        return known;
      });
  if (!key) co_return api_error(key.error());
  request.context.authenticator.forget(key->id);
  if (!key->runtime.empty() && request.context.runtime_revoked) request.context.runtime_revoked();
  Log("accounts")
      .info("a key was revoked",
            {{"key", key->id}, {"runtime", key->runtime}, {"by", request.caller->user_id}});
  co_return json_response(key_json(*key));
}

// A handler of the keys below one of the two paths.
CallerHandler below(Task<http::Response> (*handler)(CallerRequest, bool), bool is_service) {
  return [handler, is_service](CallerRequest request) {
    return handler(std::move(request), is_service);
  };
}

}  // namespace

void add_key_routes(const UserContext& context, std::vector<http::Route>& routes) {
  CallerRoutes list(context, routes);
  list.add("POST", "/api/auth/key", create_key);
  list.add("GET", "/api/auth/keys", get_keys, {kScopeRead});
  list.add("POST", "/api/auth/key/service-user/{id}", create_service_key);
  list.add("GET", "/api/auth/key/service-user/{id}", get_service_keys);
  for (const bool is_service : {false, true}) {
    const std::string path =
        is_service ? "/api/auth/key/service-user/{id}/{key}" : "/api/auth/key/{id}";
    list.add("GET", path, below(get_key, is_service), {kScopeRead});
    list.add("PATCH", path, below(update_one_key, is_service));
    list.add("DELETE", path, below(delete_key, is_service));
  }
}

}  // namespace gitops::control_plane_server
