#include "gitopsctl/report.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/cli/command.hpp"
#include "common/cli/table.hpp"
#include "gitopsctl/hints.hpp"
#include "gitopsctl/safe_json.hpp"

namespace gitops::ctl {

namespace {

using cli::Tone;
using Json = nlohmann::ordered_json;

constexpr std::array kStatuses = {Status::ok, Status::failed, Status::not_known};

// Returns the status for text output; id_of() returns it for JSON.
std::string_view text_of(Status status) {
  switch (status) {
    case Status::ok:
      return "ok";
    case Status::failed:
      return "failed";
    case Status::not_known:
      return "not known";
  }
  std::unreachable();
}

std::string_view id_of(Status status) {
  return status == Status::not_known ? "not_known" : text_of(status);
}

Tone tone_of(Status status) {
  switch (status) {
    case Status::ok:
      return Tone::good;
    case Status::failed:
      return Tone::bad;
    case Status::not_known:
      return Tone::doubtful;
  }
  std::unreachable();
}

// Pads a status to the widest one, so that the columns of all groups line up.
std::string padded(std::string_view status) {
  std::string text(status);
  text.resize(text_of(Status::not_known).size(), ' ');
  return text;
}

std::size_t count(const Report& report, Status status) {
  std::size_t n = 0;
  for (const Group& group : report) {
    n += static_cast<std::size_t>(std::ranges::count(group.rows, status, &Row::status));
  }
  return n;
}

// True when no check of the group was possible, all for the same cause.
bool is_one_line(const Group& group) {
  const auto same = [&](const Row& row) {
    return row.status == Status::not_known && row.message == group.rows.front().message;
  };
  return group.rows.size() > 1 && std::ranges::all_of(group.rows, same);
}

std::string found(const Row& row) {
  if (row.subject.empty()) return row.message;
  return row.subject + (row.message.empty() ? "" : ": " + row.message);
}

// Returns the remedy, and for a failure the section of the documents about it.
std::string hint_of(const Group& group, const Row& row) {
  auto hint = cli::printable(row.hint);
  const auto help = help_for(group.id, row.name);
  if (row.status != Status::failed || help.empty()) return hint;
  return hint + (hint.empty() ? "see " : "; see ") + help;
}

std::string group_text(const Group& group, bool colour) {
  std::vector<Row> rows = group.rows;
  if (is_one_line(group)) {
    rows.resize(1);
    rows[0].name = "all " + std::to_string(group.rows.size());
    rows[0].subject.clear();
  }
  cli::Table table;
  for (const Row& row : rows) {
    table.add({{padded(text_of(row.status)), tone_of(row.status)},
               {cli::printable(row.name)},
               {cli::printable(found(row))}});
    const auto hint = hint_of(group, row);
    if (!hint.empty()) table.add({{padded("")}, {"hint: " + hint, Tone::faint}});
  }
  std::string out = cli::painted(group.title, Tone::strong, colour);
  if (!group.about.empty()) {
    out += "  " + cli::painted(cli::printable(group.about), Tone::faint, colour);
  }
  return out + '\n' + table.text(2, colour);
}

Row row_of(std::string name, Status status, const Error& error, std::string hint) {
  return {.name = std::move(name),
          .status = status,
          .reason = std::string(to_string(error.code)),
          .message = error.message,
          .hint = std::move(hint)};
}

}  // namespace

Status verdict(const Report& report) {
  if (count(report, Status::failed) > 0) return Status::failed;
  return count(report, Status::not_known) > 0 ? Status::not_known : Status::ok;
}

int exit_code(Status verdict) {
  switch (verdict) {
    case Status::ok:
      return cli::kDone;
    case Status::failed:
      return cli::kFailed;
    case Status::not_known:
      return cli::kNotKnown;
  }
  std::unreachable();
}

std::string to_text(const Report& report, bool colour) {
  std::string out;
  for (const Group& group : report) out += group_text(group, colour) + '\n';
  std::string totals;
  for (const Status status : kStatuses) {
    const std::size_t n = count(report, status);
    if (n == 0) continue;
    if (!totals.empty()) totals += ", ";
    totals += cli::painted(std::to_string(n) + " " + std::string(text_of(status)), tone_of(status),
                           colour);
  }
  return out + totals + '\n';
}

std::string to_json(const Report& report) {
  Json rows = Json::array();
  for (const Group& group : report) {
    for (const Row& row : group.rows) {
      Json json{{"group", group.id}, {"name", row.name}};
      if (!row.subject.empty()) json["subject"] = row.subject;
      json["status"] = id_of(row.status);
      if (!row.reason.empty()) json["reason"] = row.reason;
      if (!row.message.empty()) json["message"] = row.message;
      if (!row.hint.empty()) json["hint"] = row.hint;
      const auto help = help_for(group.id, row.name);
      if (row.status != Status::ok && !help.empty()) json["help"] = help;
      if (row.version) json["version"] = *row.version;
      if (row.latency) json["latencyMilliseconds"] = row.latency->count();
      rows.push_back(std::move(json));
    }
  }
  Json totals;
  for (const Status status : kStatuses) totals[std::string(id_of(status))] = count(report, status);
  const Json json{{"schema", "gitopsctl/check/v1"},
                  {"status", id_of(verdict(report))},
                  {"totals", std::move(totals)},
                  {"rows", std::move(rows)}};
  return safe_json(json.dump(2, ' ', false, Json::error_handler_t::replace)) + '\n';
}

Row ok(std::string name, std::string message) {
  return {.name = std::move(name), .status = Status::ok, .message = std::move(message)};
}

Row denied(std::string name, std::string message, std::string hint) {
  return {.name = std::move(name),
          .status = Status::failed,
          .reason = "denied",
          .message = std::move(message),
          .hint = std::move(hint)};
}

Row failed(std::string name, const Error& error, std::string hint) {
  return row_of(std::move(name), Status::failed, error, std::move(hint));
}

Row not_known(std::string name, const Error& error, std::string hint) {
  return row_of(std::move(name), Status::not_known, error, std::move(hint));
}

Row not_configured(std::string name, std::string message, std::string hint) {
  return {.name = std::move(name),
          .status = Status::not_known,
          .reason = "not_configured",
          .message = std::move(message),
          .hint = std::move(hint)};
}

Row skipped(std::string name, std::string message) {
  return {.name = std::move(name),
          .status = Status::not_known,
          .reason = "skipped",
          .message = std::move(message)};
}

}  // namespace gitops::ctl
