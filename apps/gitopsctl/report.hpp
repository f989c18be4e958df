#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "common/core/error.hpp"

// What `gitopsctl check` found out, and how it is shown. No I/O.
namespace gitops::ctl {

enum class Status {
  ok,
  failed,     // found out: it is not as it should be
  not_known,  // it could not be found out
};

// One thing that was checked.
struct Row {
  std::string name;  // what was checked: "API server"
  std::string subject =
      {};  // of several rows with one name, which: "get secrets argocd-token in …"
  Status status = Status::not_known;
  // Stable, for programs; empty for ok. The name of an ErrorCode, or "denied" (the answer was no),
  // "not_configured" (no address or credential was given), "skipped" (what it needs failed).
  std::string reason = {};
  std::string message = {};  // what was found, or why it failed, for people
  std::string hint = {};     // what to do about it
  std::optional<std::string> version = {};
  std::optional<std::chrono::milliseconds> latency = {};
};

// What belongs to one peer.
struct Group {
  std::string id;     // stable, for programs: "kubernetes"
  std::string title;  // "Kubernetes"
  std::string about;  // address or the like; may be empty
  std::vector<Row> rows;
};

using Report = std::vector<Group>;

// Failed when any row failed, otherwise not known when any row is, otherwise ok.
Status verdict(const Report& report);
// The exit code for it: 0, 1 or 3.
int exit_code(Status verdict);

// For people: a table per group and a line with the totals. Rows of a group that are not known for
// one reason become one line.
std::string to_text(const Report& report, bool colour);
// For programs; docs/gitopsctl.md has the schema. Ends with a line end.
std::string to_json(const Report& report);

// Rows from what a call returned.

Row ok(std::string name, std::string message);
// An answer that says no.
Row denied(std::string name, std::string message, std::string hint);
Row failed(std::string name, const Error& error, std::string hint);
Row not_known(std::string name, const Error& error, std::string hint);
Row not_configured(std::string name, std::string message, std::string hint);
Row skipped(std::string name, std::string message);

}  // namespace gitops::ctl
