#include "control-plane/resolvers/users.hpp"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/json_value.hpp"
#include "common/http/url.hpp"
#include "control-plane/accounts/account_store.hpp"
#include "control-plane/accounts/authenticator.hpp"
#include "control-plane/accounts/revocations.hpp"
#include "control-plane/runtimes/runtime_store.hpp"
#include "control-plane/runtimes/runtime_view.hpp"

namespace gitops::control_plane_server {
namespace {

using graphql::Call;
using Json = nlohmann::json;

constexpr std::size_t kMaxUrl = 2'000;  // bytes
// The runtimeName of a key without the scope app-proxy. No runtime may have this name (runtime_name_mistake()).
constexpr std::string_view kNoRuntime = "-";

Json text_or_nothing(std::string_view text) {
  return text.empty() ? Json() : Json(text);
}

// Returns the JSON of an account. `is_own` selects a runtime's view, which has providers that the public SDK cannot
// decode.
Json account_json(const Account& account, bool is_own) {
  const auto provider =
      is_own ? std::string_view(account.git_provider) : public_git_provider(account.git_provider);
  return {{"id", account.id},
          {"name", account.name},
          {"admins", account.admins},
          {"gitProvider", text_or_nothing(provider)},
          {"gitApiUrl", text_or_nothing(account.git_api_url)},
          {"sharedConfigRepo", text_or_nothing(account.shared_config_repo)},
          {"csdpValidated", !account.shared_config_repo.empty()},
          {"features", {{"gitopsPlanEnforcement", false}}},
          {"systemType", "GITOPS"}};
}

// A service account that administers the account is among its administrators for itself alone: they are users, and
// runtimes ask whether the caller is one of them.
std::shared_ptr<const Account> own_view(const Caller& caller) {
  if (!caller.is_service_account || !caller.is_admin) return caller.account;
  auto account = std::make_shared<Account>(*caller.account);
  account->admins.push_back(caller.user_id);
  return account;
}

Json user_of_caller(const Caller& caller) {
  return {{"id", caller.user_id},      {"name", caller.name},
          {"email", caller.email},     {"isAdmin", caller.is_system_admin},
          {"accounts", Json::array()}, {"activeAccount", account_json(*own_view(caller), false)},
          {"status", "active"},        {"isDisabled", false}};
}

struct UserFacts {
  User user;
  std::vector<Account> accounts;
};

Task<Result<graphql::Json>> me(store::Database& database, Call& call) {
  const auto caller = call.context<RequestContext>().caller;
  if (caller->is_runtime()) {
    co_return graphql::Json::trusted(
        to_text({{"runtimeName", caller->runtime},
                 {"activeAccount", account_json(*caller->account, true)}}));
  }
  auto json = user_of_caller(*caller);
  // Other runtimes refuse a page token by this name, and all runtimes a key that is not for them.
  if (!caller->page_of_runtime.empty()) {
    json["runtimeName"] = caller->page_of_runtime;
  } else if (scope_refusal(*caller, std::array{kScopeAppProxy})) {
    json["runtimeName"] = kNoRuntime;
  }
  if (caller->is_service_account || !caller->page_of_runtime.empty()) {
    json["accounts"].push_back(json["activeAccount"]);
    co_return graphql::Json::trusted(to_text(json));
  }
  if (call.selects("accounts") || call.selects("registerDate") || call.selects("lastLoginDate")) {
    const auto facts = co_await database.read(
        call.deadline(), [id = caller->user_id](store::Connection& db) -> Result<UserFacts> {
          auto user = user_of_id(db, id);
          if (!user) return std::unexpected(std::move(user.error()));
          auto accounts = accounts_of_user(db, id);
          if (!accounts) return std::unexpected(std::move(accounts.error()));
          return UserFacts{.user = std::move(*user), .accounts = std::move(*accounts)};
        });
    if (!facts) co_return std::unexpected(facts.error());
    for (const auto& account : facts->accounts) {
      json["accounts"].push_back(account_json(account, false));
    }
    const auto moment = [](Micros at) -> Json {
      if (at == 0) return {};
      return format_rfc3339_millis(WallTime(std::chrono::milliseconds(at / 1'000)));
    };
    json["registerDate"] = moment(facts->user.created_at);
    json["lastLoginDate"] = moment(facts->user.seen_at);
  }
  co_return graphql::Json::trusted(to_text(json));
}

// This installation has no plans, so there are no limits and every usage is allowed.
Task<Result<graphql::Json>> limits_status(store::Database& database, Call& call) {
  const auto usage = co_await database.read(
      call.deadline(), [account = caller_of(call).account->number](store::Connection& db) {
        return count_usage(db, account);
      });
  if (!usage) co_return std::unexpected(usage.error());
  co_return graphql::Json::trusted(
      to_text({{"planType", "GITOPS_PLAN"},
               {"usage", {{"applications", usage->applications}, {"clusters", usage->clusters}}},
               {"limits", nullptr},
               {"status", true}}));
}

// Returns why a URL of the account's settings is refused, or an empty text.
std::string settings_mistake(std::string_view name, const std::string& text) {
  if (text.size() > kMaxUrl) return std::string(name) + ": more than 2,000 bytes";
  const auto url = http::parse_url(text);
  if (!url) return std::string(name) + ": " + url.error().message;
  if (url->scheme != "http" && url->scheme != "https") {
    return std::string(name) + ": neither http nor https";
  }
  return url->userinfo.empty() ? std::string()
                               : std::string(name) + ": a user and a password are not allowed";
}

// Other processes read the account again, too, whose settings they have with its callers.
Task<Result<void>> update_csdp_settings(Dependencies& dependencies, Call& call) {
  const auto account = caller_of(call).account;
  GitSettings settings{.provider = std::string(call["gitProvider"].text()),
                       .api_url = std::string(call["gitApiUrl"].text()),
                       .shared_config_repo = std::string(call["sharedConfigRepo"].text())};
  for (const auto& [name, text] : {std::pair("gitApiUrl", settings.api_url),
                                   std::pair("sharedConfigRepo", settings.shared_config_repo)}) {
    if (auto mistake = settings_mistake(name, text); !mistake.empty()) {
      co_return fail(ErrorCode::invalid_argument, std::move(mistake));
    }
  }
  auto set = co_await dependencies.database.write(
      call.deadline(),
      [number = account->number, settings,
       now = micros_at(wall_now())](store::Connection& db) -> Result<void> {
        if (auto done = set_git_settings(db, number, settings); !done) return done;
        return add_account_change(db, number, now);
      });
  if (set && dependencies.authenticator != nullptr) dependencies.authenticator->forget(account->id);
  co_return set;
}

Task<Result<std::string>> suggest_isc_repo(Dependencies& dependencies, Call& call) {
  const auto account = caller_of(call).account;
  const std::string suggested(call["suggestedSharedConfigRepo"].text());
  if (auto mistake = settings_mistake("suggestedSharedConfigRepo", suggested); !mistake.empty()) {
    co_return fail(ErrorCode::invalid_argument, std::move(mistake));
  }
  auto repository = co_await dependencies.database.write(
      call.deadline(),
      [number = account->number, suggested,
       now = micros_at(wall_now())](store::Connection& db) -> Result<std::string> {
        const auto before = account_of_number(db, number);
        if (!before) return std::unexpected(before.error());
        if (!before->shared_config_repo.empty()) return before->shared_config_repo;
        if (auto added = add_account_change(db, number, now); !added) {
          return std::unexpected(std::move(added.error()));
        }
        return suggest_shared_config_repo(db, number, suggested);
      });
  if (repository && dependencies.authenticator != nullptr) {
    dependencies.authenticator->forget(account->id);
  }
  co_return repository;
}

}  // namespace

std::vector<FieldRow> user_rows(Dependencies& dependencies) {
  using enum Permission;
  auto& database = dependencies.database;
  return {
      // A runtime asks this with a user's key, and then acts with all permissions of the user. It refuses a key that
      // has the scope `read` alone by runtimeName.
      read("me", member, [&database](Call& call) { return me(database, call); },
           {kScopeRead, kScopeAppProxy}),
      read("plan", member, [] { return graphql::Json::trusted(R"({"segment":null})"); }),
      read("limitsStatus", member,
           [&database](Call& call) { return limits_status(database, call); }),
      // The public command line reads a file of its own releases instead.
      read("latestCliRelease", member, [] { return std::optional<std::string>(); }),
      change("updateCsdpSettings", admin, {"gitProvider", "gitApiUrl", "sharedConfigRepo"},
             [&dependencies](Call& call) { return update_csdp_settings(dependencies, call); }),
      change("suggestIscRepo", member, {"suggestedSharedConfigRepo"},
             [&dependencies](Call& call) { return suggest_isc_repo(dependencies, call); }),
  };
}

}  // namespace gitops::control_plane_server
