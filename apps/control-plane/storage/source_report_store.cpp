#include "control-plane/storage/source_report_store.hpp"

#include <array>
#include <utility>

#include "control-plane/storage/body_codec.hpp"
#include "control-plane/storage/body_row.hpp"

namespace gitops::control_plane_server {
namespace {

using store::Connection;
using store::Param;
using store::Statement;

constexpr Statement kPutPayload{
    .name = "storage.put_event_payload",
    .sql =
        "INSERT INTO event_payload (account, runtime, source, id, at, type, subject, "
        "repository, initiator, codec, size, packed) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, "
        "$9, $10, $11, $12) ON CONFLICT DO NOTHING"};
constexpr Statement kTrimPayloads{
    .name = "storage.trim_event_payloads",
    .sql =
        "DELETE FROM event_payload WHERE account = $1 AND runtime = $2 AND at < (SELECT at FROM "
        "event_payload WHERE account = $1 AND runtime = $2 ORDER BY at DESC LIMIT 1 OFFSET $3)"};
constexpr Statement kListPayloads{
    .name = "storage.list_event_payloads",
    .sql =
        "SELECT source, id, at, type, subject, repository, initiator, codec, size, packed FROM "
        "event_payload WHERE account = $1 AND runtime = $2 ORDER BY at DESC, source, id "
        "LIMIT $3"};
constexpr Statement kPutError{
    .name = "storage.put_source_error",
    .sql =
        "INSERT INTO source_error (account, runtime, api_group, kind, namespace, name, version, "
        "at, message) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (account, "
        "runtime, api_group, kind, namespace, name) DO UPDATE SET version = excluded.version, "
        "at = excluded.at, message = excluded.message"};
constexpr Statement kTrimErrors{
    .name = "storage.trim_source_errors",
    .sql =
        "DELETE FROM source_error WHERE account = $1 AND runtime = $2 AND at < (SELECT at FROM "
        "source_error WHERE account = $1 AND runtime = $2 ORDER BY at DESC LIMIT 1 OFFSET $3)"};
constexpr Statement kListErrors{
    .name = "storage.list_source_errors",
    .sql =
        "SELECT api_group, kind, namespace, name, version, at, message FROM source_error WHERE "
        "account = $1 AND runtime = $2 ORDER BY at DESC, kind, name LIMIT $3"};

constexpr std::array kSourceReportStatements{kPutPayload, kTrimPayloads, kListPayloads,
                                             kPutError,   kTrimErrors,   kListErrors};

Result<void> without_rows(Result<store::Rows> outcome) {
  if (!outcome) return std::unexpected(std::move(outcome.error()));
  return {};
}

}  // namespace

Result<void> put_event_payload(Connection& connection, std::int64_t account,
                               std::string_view runtime, const EventPayload& payload) {
  const auto packed = pack_body({.live = payload.data});
  const auto put = connection.run(
      kPutPayload, {account, runtime, payload.source, payload.id, payload.at, payload.type,
                    payload.subject, payload.repository, payload.initiator,
                    static_cast<int>(packed.codec), packed.size, Param::bytes(packed.bytes)});
  if (!put) return std::unexpected(put.error());
  return without_rows(connection.run(kTrimPayloads, {account, runtime, kMaxSourceReports - 1}));
}

Result<std::vector<EventPayload>> list_event_payloads(Connection& connection, std::int64_t account,
                                                      std::string_view runtime,
                                                      std::int64_t limit) {
  const auto rows = connection.run(kListPayloads, {account, runtime, limit});
  if (!rows) return std::unexpected(rows.error());
  std::vector<EventPayload> payloads;
  for (std::size_t row = 0; row < rows->size(); ++row) {
    auto body = body_of_row(*rows, row, 7);
    if (!body) return std::unexpected(std::move(body.error()));
    payloads.push_back({.id = rows->string(row, 1),
                        .source = rows->string(row, 0),
                        .type = rows->string(row, 3),
                        .subject = rows->string(row, 4),
                        .at = rows->number(row, 2),
                        .repository = rows->string(row, 5),
                        .initiator = rows->string(row, 6),
                        .data = std::move((*body)->live)});
  }
  return payloads;
}

Result<void> put_source_error(Connection& connection, std::int64_t account,
                              std::string_view runtime, const SourceError& error, Micros at) {
  const auto put =
      connection.run(kPutError, {account, runtime, error.group, error.kind, error.object_namespace,
                                 error.name, error.version, at, error.message});
  if (!put) return std::unexpected(put.error());
  return without_rows(connection.run(kTrimErrors, {account, runtime, kMaxSourceReports - 1}));
}

Result<std::vector<DatedSourceError>> list_source_errors(Connection& connection,
                                                         std::int64_t account,
                                                         std::string_view runtime,
                                                         std::int64_t limit) {
  const auto rows = connection.run(kListErrors, {account, runtime, limit});
  if (!rows) return std::unexpected(rows.error());
  std::vector<DatedSourceError> errors;
  for (std::size_t row = 0; row < rows->size(); ++row) {
    errors.push_back({.error = {.group = rows->string(row, 0),
                                .version = rows->string(row, 4),
                                .kind = rows->string(row, 1),
                                .object_namespace = rows->string(row, 2),
                                .name = rows->string(row, 3),
                                .message = rows->string(row, 6)},
                      .at = rows->number(row, 5)});
  }
  return errors;
}

std::span<const Statement> source_report_statements() {
  return kSourceReportStatements;
}

}  // namespace gitops::control_plane_server
