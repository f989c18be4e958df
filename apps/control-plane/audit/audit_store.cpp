#include "control-plane/audit/audit_store.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace gitops::control_plane_server {
namespace {

using store::Connection;
using store::Param;
using store::Statement;

constexpr std::int64_t kPage = 1'000;  // entries that are verified at a time

// SQLite's transactions wait for each other anyway.
constexpr Statement kLock{
    .name = "audit.lock",
    .sql = "SELECT $1",
    .postgres = "SELECT count(pg_advisory_xact_lock(4707 * 1000000000000 + $1::bigint))"};
constexpr Statement kLast{
    .name = "audit.last",
    .sql = "SELECT at, no, digest FROM audit WHERE account = $1 ORDER BY at DESC, no DESC LIMIT 1"};
constexpr Statement kAppend{
    .name = "audit.append",
    .sql =
        "INSERT INTO audit (account, at, no, caller, caller_id, peer, action, target, result, "
        "detail, request_id, digest) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, "
        "$12)"};
constexpr Statement kList{
    .name = "audit.list",
    .sql =
        "SELECT at, no, caller, caller_id, peer, action, target, result, detail, request_id, "
        "digest FROM audit WHERE account = $1 AND ($2 = 0 OR no < $2) AND at >= $3 AND "
        "($4 = 0 OR at < $4) AND ($5 = '' OR caller_id = $5) AND ($6 = '' OR action = $6) AND "
        "($7 = '' OR result = $7) ORDER BY at DESC, no DESC LIMIT $8"};
constexpr Statement kChain{
    .name = "audit.chain",
    .sql =
        "SELECT at, no, caller, caller_id, peer, action, target, result, detail, request_id, "
        "digest FROM audit WHERE account = $1 AND (at, no) > ($2, $3) ORDER BY at, no LIMIT "
        "$4"};

constexpr std::array kStatements{kLock, kLast, kAppend, kList, kChain};

AuditEntry entry_of(const store::Rows& rows, std::size_t row, std::int64_t account) {
  return {.account = account,
          .no = rows.number(row, 1),
          .at = rows.number(row, 0),
          .caller = rows.string(row, 2),
          .caller_id = rows.string(row, 3),
          .peer = rows.string(row, 4),
          .action = rows.string(row, 5),
          .target = rows.string(row, 6),
          .result = audit_result_of(rows.text(row, 7)).value_or(AuditResult::not_known),
          .detail = rows.string(row, 8),
          .request_id = rows.string(row, 9)};
}

// The end of an account's chain.
struct Chain {
  Micros at = 0;
  std::int64_t no = 0;
  std::string digest;
};

Result<Chain> end_of_chain(Connection& connection, std::int64_t account) {
  if (auto locked = connection.run(kLock, {account}); !locked) {
    return std::unexpected(std::move(locked.error()));
  }
  const auto rows = connection.run(kLast, {account});
  if (!rows) return std::unexpected(rows.error());
  if (rows->empty()) return Chain{};
  return Chain{rows->number(0, 0), rows->number(0, 1), rows->string(0, 2)};
}

}  // namespace

Result<void> append_audit(Connection& connection, std::vector<AuditEntry> entries) {
  // Locked in one order, so that two transactions do not wait for each other.
  std::map<std::int64_t, Chain> chains;
  for (const auto& entry : entries) chains.try_emplace(entry.account);
  for (auto& [account, chain] : chains) {
    auto end = end_of_chain(connection, account);
    if (!end) return std::unexpected(std::move(end.error()));
    chain = std::move(*end);
  }
  for (auto& entry : entries) {
    auto& chain = chains.at(entry.account);
    entry = cleaned(std::move(entry));
    chain.at = entry.at = std::max(entry.at, chain.at);
    entry.no = ++chain.no;
    chain.digest = audit_digest(chain.digest, entry);
    const auto added =
        connection.run(kAppend, {entry.account, entry.at, entry.no, entry.caller, entry.caller_id,
                                 entry.peer, entry.action, entry.target, to_string(entry.result),
                                 entry.detail, entry.request_id, Param::bytes(chain.digest)});
    if (!added) return std::unexpected(added.error());
  }
  return {};
}

Result<std::vector<AuditEntry>> list_audit(Connection& connection, const AuditFilter& filter,
                                           std::int64_t limit) {
  const std::string_view result = filter.result ? to_string(*filter.result) : "";
  const auto rows =
      connection.run(kList, {filter.account, filter.before_no, filter.from, filter.until,
                             filter.caller_id, filter.action, result, limit});
  if (!rows) return std::unexpected(rows.error());
  std::vector<AuditEntry> entries;
  for (std::size_t row = 0; row < rows->size(); ++row) {
    entries.push_back(entry_of(*rows, row, filter.account));
  }
  return entries;
}

Result<AuditVerdict> verify_audit(Connection& connection, std::int64_t account) {
  AuditVerdict verdict;
  Chain chain;
  while (true) {
    const auto rows = connection.run(kChain, {account, chain.at, chain.no, kPage});
    if (!rows) return std::unexpected(rows.error());
    for (std::size_t row = 0; row < rows->size(); ++row) {
      const auto entry = entry_of(*rows, row, account);
      const bool is_first = verdict.entries == 0;
      if (is_first) verdict.first_no = entry.no;
      if (!is_first && entry.no != chain.no + 1) {
        verdict.broken = "entry " + std::to_string(chain.no + 1) + " is missing";
        return verdict;
      }
      // The digest before the first entry is known only when it is the very first.
      const auto digest = rows->string(row, 10);
      if ((!is_first || entry.no == 1) && audit_digest(chain.digest, entry) != digest) {
        verdict.broken = "entry " + std::to_string(entry.no) + " was changed";
        return verdict;
      }
      chain = {entry.at, entry.no, digest};
      ++verdict.entries;
      verdict.last_no = entry.no;
    }
    if (rows->size() < static_cast<std::size_t>(kPage)) break;
  }
  verdict.digest = chain.digest;
  return verdict;
}

std::span<const Statement> audit_statements() {
  return kStatements;
}

}  // namespace gitops::control_plane_server
