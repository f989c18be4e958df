#include "control-plane/storage/report_request_store.hpp"

#include <array>
#include <optional>
#include <utility>

#include "common/control_plane/report_requests.hpp"

namespace gitops::control_plane_server {
namespace {

using store::Connection;
using store::Rows;
using store::Statement;

constexpr Statement kFind{.name = "storage.find_report_request",
                          .sql =
                              "SELECT number, sequence FROM report_request WHERE account = $1 AND "
                              "runtime = $2 AND uid = $3 AND closed = 0 AND number > $4"};
constexpr Statement kCount{
    .name = "storage.count_report_requests",
    .sql =
        "SELECT count(*) FROM report_request WHERE account = $1 AND uid = application AND "
        "closed = 0 AND number > $2 AND uid <> $3"};
constexpr Statement kPut{
    .name = "storage.put_report_request",
    .sql =
        "INSERT INTO report_request (account, runtime, uid, application, number, sequence, closed) "
        "VALUES ($1, $2, $3, $4, $5, $6, 0) ON CONFLICT (account, runtime, uid) DO UPDATE SET "
        "application = excluded.application, number = CASE WHEN report_request.number >= "
        "excluded.number THEN report_request.number + 1 ELSE excluded.number END, "
        "sequence = excluded.sequence, closed = 0 RETURNING number"};
// The objects of mode `resource` that an Application has as resources, and what these own.
constexpr Statement kObjects{
    .name = "storage.requested_objects",
    .sql =
        "SELECT o.uid, max(o.sequence) FROM object r JOIN object o ON o.account = $1 AND "
        "o.uid = r.uid WHERE r.account = $1 AND r.runtime = $2 AND r.origin = 0 AND "
        "r.owner_uid = $3 AND r.presence <> 1 AND r.uid <> '' AND o.runtime = $2 AND o.origin = 1 "
        "AND o.presence <> 1 GROUP BY o.uid ORDER BY o.uid LIMIT $4"};
constexpr Statement kOwned{
    .name = "storage.requested_owned_objects",
    .sql =
        "SELECT o.uid, max(o.sequence) FROM object r JOIN object o ON o.account = $1 AND "
        "o.runtime = $2 AND o.manager_namespace = r.namespace AND o.manager_name = r.name AND "
        "o.manager_uid = r.uid WHERE r.account = $1 AND r.runtime = $2 AND r.origin = 0 AND "
        "r.owner_uid = $3 AND r.presence <> 1 AND r.uid <> '' AND o.origin = 1 AND o.uid <> '' "
        "AND o.presence <> 1 GROUP BY o.uid ORDER BY o.uid LIMIT $4"};
constexpr Statement kOpen{
    .name = "storage.open_report_requests",
    .sql =
        "SELECT runtime, uid, application, number, sequence FROM report_request WHERE "
        "account = $1 AND closed = 0 AND number > $2 ORDER BY number, uid"};
constexpr Statement kClose{.name = "storage.close_report_request",
                           .sql =
                               "UPDATE report_request SET closed = 1 WHERE account = $1 AND "
                               "runtime = $2 AND uid = $3 AND number = $4"};

constexpr std::array kReportRequestStatements{kFind, kCount, kPut, kObjects, kOwned, kOpen, kClose};

Result<std::int64_t> put(Connection& connection, std::int64_t account,
                         const ReportRequestRow& request) {
  const auto rows = connection.run(kPut, {account, request.runtime, request.uid,
                                          request.application, request.number, request.sequence});
  if (!rows) return std::unexpected(rows.error());
  return rows->number(0, 0);
}

// Asks for the objects of mode `resource`. Those that a head cannot name are left out.
Result<void> request_objects(Connection& connection, std::int64_t account,
                             const ReportRequestRow& application) {
  auto left = kMaxRequestedObjects;
  for (const auto* statement : {&kObjects, &kOwned}) {
    const auto rows =
        connection.run(*statement, {account, application.runtime, application.uid, left});
    if (!rows) return std::unexpected(rows.error());
    for (std::size_t row = 0; row < rows->size(); ++row) {
      auto request = application;
      request.uid = rows->string(row, 0);
      request.sequence = rows->number(row, 1);
      if (!control_plane::is_requestable(request.uid) || request.uid == application.uid) continue;
      if (auto stored = put(connection, account, request); !stored) {
        return std::unexpected(std::move(stored.error()));
      }
      --left;
    }
  }
  return {};
}

}  // namespace

Result<ReportRequestOutcome> request_report(Connection& connection, std::int64_t account,
                                            const ObjectState& application, Micros now) {
  ReportRequestRow request{.runtime = application.key.runtime,
                           .uid = application.uid,
                           .application = application.uid,
                           .number = now,
                           .sequence = application.sequence};
  if (!control_plane::is_requestable(request.uid)) {
    return fail(ErrorCode::unsupported, "the uid of the Application cannot be asked for");
  }
  const auto since = now - kReportRequestLife;
  const auto before = connection.run(kFind, {account, request.runtime, request.uid, since});
  if (!before) return std::unexpected(before.error());
  if (!before->empty() && before->number(0, 1) >= request.sequence) {
    return ReportRequestOutcome{.at = before->number(0, 0), .is_new = false};
  }
  const auto others = connection.run(kCount, {account, since, request.uid});
  if (!others) return std::unexpected(others.error());
  if (others->number(0, 0) >= kMaxReportRequests) {
    return fail(ErrorCode::too_many_requests,
                "the events of " + std::to_string(kMaxReportRequests) +
                    " Applications of the account are asked for already; a request ends when an "
                    "event arrives, at the latest after 10 minutes");
  }
  const auto number = put(connection, account, request);
  if (!number) return std::unexpected(number.error());
  request.number = *number;
  if (auto stored = request_objects(connection, account, request); !stored) {
    return std::unexpected(std::move(stored.error()));
  }
  return ReportRequestOutcome{.at = *number, .is_new = true};
}

Result<std::vector<ReportRequestRow>> open_report_requests(Connection& connection,
                                                           std::int64_t account, Micros now) {
  const auto rows = connection.run(kOpen, {account, now - kReportRequestLife});
  if (!rows) return std::unexpected(rows.error());
  std::vector<ReportRequestRow> open;
  open.reserve(rows->size());
  for (std::size_t row = 0; row < rows->size(); ++row) {
    open.push_back({.runtime = rows->string(row, 0),
                    .uid = rows->string(row, 1),
                    .application = rows->string(row, 2),
                    .number = rows->number(row, 3),
                    .sequence = rows->number(row, 4)});
  }
  return open;
}

Result<void> close_report_request(Connection& connection, std::int64_t account,
                                  const ReportRequestRow& request) {
  return connection.execute(kClose, {account, request.runtime, request.uid, request.number});
}

std::span<const Statement> report_request_statements() {
  return kReportRequestStatements;
}

}  // namespace gitops::control_plane_server
