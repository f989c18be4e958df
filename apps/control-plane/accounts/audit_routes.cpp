#include "control-plane/accounts/audit_routes.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/json_value.hpp"
#include "common/http/url.hpp"
#include "control-plane/accounts/account_store.hpp"
#include "control-plane/audit/audit_log.hpp"
#include "control-plane/audit/audit_store.hpp"

namespace gitops::control_plane_server {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kPage = 100;
constexpr std::int64_t kMaxPage = 1'000;
constexpr std::int64_t kMaxCsv = 50'000;  // entries

AuditResult result_of(int status) {
  if (status < 400) return AuditResult::done;
  if (status < 500) return AuditResult::refused;
  return status == 503 || status == 504 ? AuditResult::not_known : AuditResult::failed;
}

Json entry_json(const AuditEntry& entry) {
  return {{"no", entry.no},         {"time", time_text(entry.at)},
          {"caller", entry.caller}, {"callerId", entry.caller_id},
          {"address", entry.peer},  {"action", entry.action},
          {"target", entry.target}, {"result", to_string(entry.result)},
          {"detail", entry.detail}, {"requestId", entry.request_id}};
}

// Reads the parameters of a list. An error names the wrong one.
class ParameterReader {
 public:
  explicit ParameterReader(std::string_view query) : query_(query) {}

  [[nodiscard]] std::string text(std::string_view name) const {
    return http::query_parameter(query_, name);
  }
  Micros time(std::string_view name) {
    const auto given = text(name);
    if (given.empty()) return 0;
    const auto at = parse_rfc3339(given);
    if (!at) mistake_ = std::string(name) + " is not an RFC 3339 time.";
    return at ? micros_at(*at) : 0;
  }
  std::int64_t number(std::string_view name, std::int64_t otherwise, std::int64_t most) {
    const auto given = text(name);
    if (given.empty()) return otherwise;
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), number);
    if (error != std::errc() || end != given.data() + given.size() || number < 1) {
      mistake_ = std::string(name) + " is not a positive number.";
    }
    return std::min(number, most);
  }
  std::optional<AuditResult> result(std::string_view name) {
    const auto given = text(name);
    const auto result = audit_result_of(given);
    if (!result && !given.empty()) {
      mistake_ = std::string(name) + " is done, refused, failed or \"not known\".";
    }
    return result;
  }
  [[nodiscard]] const std::string& mistake() const { return mistake_; }

 private:
  std::string_view query_;
  std::string mistake_;
};

Task<http::Response> get_audit(CallerRequest request) {
  const auto& caller = *request.caller;
  if (caller.is_runtime()) co_return no_user();
  if (!caller.is_admin && !caller.is_system_admin) {
    co_return api_error(403, "Only an administrator of the account sees the audit log.");
  }
  ParameterReader reader(request.exchange.query());
  const bool is_csv = reader.text("format") == "csv";
  const bool is_of_nobody = reader.text("nobody") == "true";
  if (is_of_nobody && !caller.is_system_admin) {
    co_return api_error(403, "Only an administrator of the installation sees these requests.");
  }
  AuditFilter filter{
      .account = is_of_nobody ? 0 : caller.account->number,
      .before_no = reader.number("before", 0, std::numeric_limits<std::int64_t>::max()),
      .from = reader.time("from"),
      .until = reader.time("until"),
      .caller_id = reader.text("callerId"),
      .action = reader.text("action"),
      .result = reader.result("result")};
  const auto limit = reader.number("limit", is_csv ? kMaxCsv : kPage, is_csv ? kMaxCsv : kMaxPage);
  if (!reader.mistake().empty()) co_return api_error(400, reader.mistake());
  // One more shows that a file is cut.
  auto entries = co_await request.context.database.read(
      request.deadline,
      [filter = std::move(filter), most = is_csv ? limit + 1 : limit](
          store::Connection& connection) { return list_audit(connection, filter, most); });
  if (!entries) co_return api_error(entries.error());
  if (is_csv) {
    const bool is_cut = entries->size() > static_cast<std::size_t>(limit);
    if (is_cut) entries->pop_back();
    const std::string name = is_cut ? "audit-newest-" + std::to_string(limit) : "audit";
    co_return http::Response{
        .headers = {{"Content-Type", "text/csv; charset=utf-8"},
                    {"Content-Disposition", "attachment; filename=\"" + name + ".csv\""},
                    {"Cache-Control", "no-store"}},
        .body = audit_csv(*entries)};
  }
  Json list = Json::array();
  for (const auto& entry : *entries) list.push_back(entry_json(entry));
  co_return json_response(Json::object({{"entries", std::move(list)}}));
}

}  // namespace

AuditEntry audit_entry(const Caller* caller, std::string peer, std::string action) {
  AuditEntry entry{.peer = std::move(peer), .action = std::move(action)};
  if (caller == nullptr) return entry;
  entry.account = caller->account->number;
  entry.caller = caller->is_runtime()         ? "runtime " + caller->runtime
                 : caller->is_service_account ? "service account " + caller->name
                                              : caller->name;
  entry.caller_id = caller->is_runtime() ? caller->runtime : caller->user_id;
  return entry;
}

Task<> audit_response(const UserRouteContext& context, const http::Exchange& exchange,
                      const http::Response& response, AuditEntry entry) {
  if (context.audit == nullptr) co_return;
  entry.request_id = exchange.added_to_answer(kRequestIdField);
  entry.result = result_of(response.status);
  const auto& method = exchange.request().method;
  const bool is_change = method != "GET" && method != "HEAD";
  if (entry.result != AuditResult::done) {
    entry.detail = string_at(parse_json_object(response.body), {"message"});
  }
  if (entry.result == AuditResult::refused) {
    context.audit->add_refusal(std::move(entry));
  } else if (is_change) {
    co_await context.audit->add(std::move(entry));
  }
}

void add_audit_routes(const UserContext& context, std::vector<http::Route>& routes) {
  routes.push_back({.method = "GET",
                    .pattern = "/console/api/v1/audit",
                    .guard = http::open_to_all(),
                    .handler = for_callers(context, get_audit, {kScopeRead})});
}

}  // namespace gitops::control_plane_server
