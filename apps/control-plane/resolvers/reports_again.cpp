#include "control-plane/resolvers/reports_again.hpp"

#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/json_value.hpp"
#include "common/graphql/response.hpp"
#include "control-plane/accounts/rules.hpp"
#include "control-plane/accounts/teams.hpp"
#include "control-plane/projection/event_text.hpp"
#include "control-plane/resolvers/visible.hpp"
#include "control-plane/storage/report_request_store.hpp"

namespace gitops::control_plane_server {
namespace {

using control_plane::Action;
using graphql::Call;
using Json = nlohmann::json;

constexpr std::string_view kWhatHappens =
    " with its next contact, which is at most its heartbeat away (9 minutes unless it is set "
    "otherwise). A receiver then sees the present state of the Application and of each of its "
    "resources once more, although nothing changed, with new ids and higher sequences. Earlier "
    "states and acknowledged deletions do not come again.";

Result<void> check_refresh(store::Connection& db, const Caller& caller, const ObjectRow& row) {
  if (caller.is_admin) return {};
  const auto account = caller.account->number;
  const auto rules = list_rules(db, account, kApplicationEntity);
  if (!rules) return std::unexpected(rules.error());
  const auto teams = team_ids_of(db, account, caller.user_id);
  if (!teams) return std::unexpected(teams.error());
  ParsedBody body;
  body.read(row.body);
  const auto entity = entity_of(row.state, body.live());
  if (control_plane::allowing_rule(*rules, *teams, Action::refresh, entity) != nullptr) return {};
  return std::unexpected(
      Error{.code = ErrorCode::forbidden,
            .message = "no rule of the account allows " + std::string(to_string(Action::refresh)),
            .http_status = 403,
            .subcode = graphql::kPublicRefusal});
}

Result<ReportRequestOutcome> request(store::Connection& db, const Caller& caller,
                                     const ObjectName& name, Micros now) {
  const auto account = caller.account->number;
  const auto visibility = visibility_of(db, caller);
  if (!visibility) return std::unexpected(visibility.error());
  const auto row = find_visible(db, account, name, *visibility);
  if (!row) return std::unexpected(row.error());
  if (!*row) return fail(ErrorCode::not_found, "Application \"" + name.name + "\" not found");
  if (auto allowed = check_refresh(db, caller, **row); !allowed) {
    return std::unexpected(std::move(allowed.error()));
  }
  return request_report(db, account, (*row)->state, now);
}

Json outcome_json(const ReportRequestOutcome& outcome) {
  const std::string begin =
      outcome.is_new ? "Requested: the reporter hears of it"
                     : "Requested before, and no event has arrived since: the reporter hears of it";
  return {{"state", outcome.is_new ? "REQUESTED" : "ALREADY_REQUESTED"},
          {"requestedAt", time_text(outcome.at)},
          {"expiresAt", time_text(outcome.at + kReportRequestLife)},
          {"message", begin + std::string(kWhatHappens)}};
}

Task<Result<graphql::Json>> report_application_again(store::Database& database, Call& call) {
  ObjectName name{.runtime = std::string(call["runtime"].text()),
                  .object_namespace = std::string(call["namespace"].text()),
                  .name = std::string(call["name"].text()),
                  .origin = Origin::application};
  const auto outcome = co_await database.write(
      call.deadline(), [who = call.context<RequestContext>().caller, name = std::move(name),
                        now = micros_at(wall_now())](store::Connection& db) {
        return request(db, *who, name, now);
      });
  if (!outcome) co_return std::unexpected(outcome.error());
  co_return graphql::Json::trusted(to_text(outcome_json(*outcome)));
}

}  // namespace

std::vector<FieldRow> reports_again_rows(Dependencies& dependencies) {
  auto& database = dependencies.database;
  return {change("reportApplicationAgain", Permission::user, {"runtime", "namespace", "name"},
                 [&database](Call& call) { return report_application_again(database, call); })};
}

}  // namespace gitops::control_plane_server
