#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "common/core/error.hpp"

// The result of `gitopsctl check` and its output forms. No I/O.
namespace gitops::ctl {

enum class Status {
  ok,
  failed,     // the check was made and did not pass
  not_known,  // the check could not be made
};

// The result of one check.
struct Row {
  std::string name;          // what was checked: "API server"
  std::string subject = {};  // distinguishes rows of one name: "get secrets argocd-token in …"
  Status status = Status::not_known;
  // Stable, for programs; empty for ok. The name of an ErrorCode, or "denied" (the response was
  // negative), "not_configured" (no address or credential was given), "skipped" (an earlier check
  // failed).
  std::string reason = {};
  std::string message = {};  // the finding or the cause, for people
  std::string hint = {};     // the remedy, for people
  std::optional<std::string> version = {};
  std::optional<std::chrono::milliseconds> latency = {};
};

// The rows of one peer.
struct Group {
  std::string id;     // stable, for programs: "kubernetes"
  std::string title;  // "Kubernetes"
  std::string about;  // such as the address; may be empty
  std::vector<Row> rows;
};

using Report = std::vector<Group>;

// The worst status of all rows: failed, then not known, then ok.
Status verdict(const Report& report);
// The exit code for a verdict: 0, 1 or 3.
int exit_code(Status verdict);

// Returns the report for people: a table for each group and a line with the totals. A group whose
// rows are all not known for the same cause is one line.
std::string to_text(const Report& report, bool colour);
// Returns the report for programs: JSON as in docs/reference/gitopsctl-checks.md, with a newline at its end.
std::string to_json(const Report& report);

// Functions that return rows for the results of calls.

Row ok(std::string name, std::string message);
// Row for a negative response.
Row denied(std::string name, std::string message, std::string hint);
Row failed(std::string name, const Error& error, std::string hint);
Row not_known(std::string name, const Error& error, std::string hint);
Row not_configured(std::string name, std::string message, std::string hint);
Row skipped(std::string name, std::string message);

}  // namespace gitops::ctl
