#include "control-plane/resolvers/table.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "common/core/log.hpp"
#include "common/graphql/response.hpp"
#include "control-plane/accounts/audit_routes.hpp"
#include "control-plane/audit/audit_log.hpp"
#include "control-plane/resolvers/access.hpp"
#include "control-plane/resolvers/application_details.hpp"
#include "control-plane/resolvers/applications.hpp"
#include "control-plane/resolvers/git_sources.hpp"
#include "control-plane/resolvers/images.hpp"
#include "control-plane/resolvers/live_events.hpp"
#include "control-plane/resolvers/promotions.hpp"
#include "control-plane/resolvers/releases.hpp"
#include "control-plane/resolvers/reports_again.hpp"
#include "control-plane/resolvers/rules.hpp"
#include "control-plane/resolvers/runtimes.hpp"
#include "control-plane/resolvers/sealing_keys.hpp"
#include "control-plane/resolvers/users.hpp"
#include "control-plane/resolvers/workflows.hpp"

namespace gitops::control_plane_server {
namespace {

using graphql::Call;

graphql::Value failure(Error error) {
  return graphql::Value(std::make_unique<Error>(std::move(error)));
}

Task<graphql::Value> resolve(const graphql::Row& row, const graphql::Root& root, Call& call) {
  if (row.later) co_return co_await row.later(&root, call);
  co_return row.now(&root, call);
}

// Returns whether a failure is internal: the log has its details, the response does not.
bool is_own_failure(ErrorCode code) {
  using enum ErrorCode;
  return code == internal || code == unavailable || code == timeout || code == invalid_data;
}

// Logs internal failures, at a limited rate for each field and code.
class FailureLog {
 public:
  void look(const graphql::Value& value, Call& call) {
    const auto* failed = value.get<graphql::Value::Failure>();
    if (!failed || !is_own_failure((*failed)->code)) return;
    const auto code = to_string((*failed)->code);
    const auto verdict =
        repeated_.check(std::string(call.field()) + " " + std::string(code), Clock::now());
    if (!verdict.pass) return;
    const auto& request = call.context<RequestContext>();
    log_.warning("a field failed", {{"field", call.field()},
                                    {"code", code},
                                    {"error", (*failed)->message},
                                    {"request_id", request.request_id},
                                    {"suppressed", verdict.suppressed}});
  }

 private:
  Log log_{"graphql"};
  RepeatFilter repeated_{std::chrono::seconds(10)};
};

// Returns the error as a refusal whose reason the response contains: permissions and scopes of fields are public.
Error public_refusal(Error error) {
  error.subcode = graphql::kPublicRefusal;
  return error;
}

std::optional<Error> access_refusal(Permission permission, const Scopes& scopes,
                                    const Caller* caller) {
  if (auto refused = refusal(permission, caller)) return refused;
  if (caller == nullptr || permission == Permission::anyone) return std::nullopt;
  auto refused = scope_refusal(*caller, scopes);
  if (refused) return public_refusal(std::move(*refused));
  return std::nullopt;
}

AuditResult audit_result(ErrorCode code) {
  using enum ErrorCode;
  if (code == unavailable || code == timeout) return AuditResult::not_known;
  return code == internal || code == invalid_data ? AuditResult::failed : AuditResult::refused;
}

graphql::InputView argument_at(const Call& call, std::string_view path) {
  auto value = call.arguments();
  while (!path.empty()) {
    const auto dot = path.find('.');
    value = value[path.substr(0, dot)];
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
  return value;
}

// Returns the arguments that name the object of a change: "name=prod".
std::string subject_of(const std::vector<std::string_view>& subject, const Call& call) {
  std::string out;
  for (const auto path : subject) {
    const auto value = argument_at(call, path);
    if (!value.exists()) continue;
    if (!out.empty()) out += ' ';
    out.append(path.substr(path.rfind('.') + 1)).append("=");
    out += value.text().empty() ? value.json() : std::string(value.text());
  }
  return out;
}

Task<> audit_change(AuditLog& audit, const std::vector<std::string_view>& subject,
                    const graphql::Value& value, Call& call) {
  const auto& request = call.context<RequestContext>();
  auto entry = audit_entry(request.caller.get(), request.peer, std::string(call.field()));
  entry.target = subject_of(subject, call);
  entry.request_id = request.request_id;
  if (const auto* failed = value.get<graphql::Value::Failure>()) {
    entry.result = audit_result((*failed)->code);
    entry.detail = (*failed)->message;
  }
  co_await audit.add(std::move(entry));
}

// Returns the row's function behind the check of its permission and scopes. A synchronous function stays synchronous.
graphql::RowOf<graphql::Root> guarded(const FieldRow& from, const std::shared_ptr<FailureLog>& log,
                                      AuditLog* audit) {
  const auto check = [permission = from.permission, scopes = from.scopes](Call& call) {
    return access_refusal(permission, scopes, call.context<RequestContext>().caller.get());
  };
  if (!from.changes || from.is_report) audit = nullptr;
  if (from.row.later || audit != nullptr) {
    return {from.field,
            [check, row = from.row, subject = from.subject, log, audit](
                const graphql::Root& root, Call& call) -> Task<graphql::Value> {
              auto refused = check(call);
              graphql::Value value =
                  refused ? failure(std::move(*refused)) : co_await resolve(row, root, call);
              log->look(value, call);
              if (audit != nullptr) co_await audit_change(*audit, subject, value, call);
              co_return value;
            }};
  }
  return {
      from.field,
      [check, run = from.row.now, log](const graphql::Root& root, Call& call) -> graphql::Value {
        auto refused = check(call);
        graphql::Value value = refused ? failure(std::move(*refused)) : run(&root, call);
        log->look(value, call);
        return value;
      }};
}

graphql::StreamRow guarded_stream(const FieldRow& from) {
  return {from.field,
          [permission = from.permission, scopes = from.scopes,
           open = from.row.stream](Call& call) -> Task<Result<graphql::Stream>> {
            auto refused =
                access_refusal(permission, scopes, call.context<RequestContext>().caller.get());
            if (refused) co_return std::unexpected(std::move(*refused));
            co_return co_await open(call);
          }};
}

}  // namespace

std::vector<FieldRow> table(Dependencies& dependencies) {
  std::vector<FieldRow> rows;
  for (auto* part : {user_rows, runtime_rows, rule_rows, access_rows, sealing_key_rows,
                     application_rows, application_detail_rows, reports_again_rows, git_source_rows,
                     workflow_rows, release_rows, image_rows, promotion_rows, live_event_rows}) {
    std::ranges::move(part(dependencies), std::back_inserter(rows));
  }
  return rows;
}

graphql::Resolvers resolvers(const std::vector<FieldRow>& rows, AuditLog* audit) {
  graphql::Resolvers to;
  const auto log = std::make_shared<FailureLog>();
  for (const FieldRow& row : rows) {
    if (row.root == RootType::subscription) {
      to.subscription({guarded_stream(row)});
    } else if (row.root == RootType::query) {
      to.query({guarded(row, log, audit)});
    } else {
      to.mutation({guarded(row, log, audit)});
    }
  }
  for (const auto type : object_types(schema_text())) to.json(std::string(type));
  return to;
}

Permission permission_of(const std::vector<FieldRow>& rows, RootType root, std::string_view field) {
  if (field == "__typename") return Permission::anyone;
  const auto found = std::ranges::find_if(
      rows, [&](const FieldRow& row) { return row.root == root && row.field == field; });
  return found == rows.end() ? Permission::member : found->permission;
}

std::optional<Error> refusal(Permission permission, const Caller* caller) {
  if (permission == Permission::anyone) return std::nullopt;
  if (caller == nullptr) {
    return Error{.code = ErrorCode::unauthenticated,
                 .message = "Unauthorized: Invalid token.",
                 .http_status = 401};
  }
  const auto forbidden = [](const char* message) {
    return public_refusal({.code = ErrorCode::forbidden, .message = message, .http_status = 403});
  };
  switch (permission) {
    case Permission::anyone:
    case Permission::member:
      return std::nullopt;
    case Permission::runtime:
      if (caller->is_runtime()) return std::nullopt;
      return forbidden("only a runtime may do this, with its token");
    case Permission::user:
    case Permission::admin:
      break;
  }
  if (caller->is_runtime()) return forbidden("only a user may do this, not a runtime");
  if (permission == Permission::admin && !caller->is_admin) {
    return forbidden("only an administrator of the account may do this");
  }
  return std::nullopt;
}

std::optional<Error> field_refusal(const std::vector<FieldRow>& rows, RootType root,
                                   std::string_view field, const Caller* caller) {
  static const Scopes kOutsideTable{kScopeRead};
  const auto found = std::ranges::find_if(
      rows, [&](const FieldRow& row) { return row.root == root && row.field == field; });
  return access_refusal(permission_of(rows, root, field),
                        found == rows.end() ? kOutsideTable : found->scopes, caller);
}

std::vector<std::string_view> object_types(std::string_view schema) {
  constexpr std::string_view kType = "\ntype ";
  std::vector<std::string_view> names;
  for (auto at = schema.find(kType); at != std::string_view::npos; at = schema.find(kType, at)) {
    at += kType.size();
    const auto name = schema.substr(at, schema.find_first_of(" {", at) - at);
    if (name != "Query" && name != "Mutation" && name != "Subscription") names.push_back(name);
  }
  return names;
}

}  // namespace gitops::control_plane_server
