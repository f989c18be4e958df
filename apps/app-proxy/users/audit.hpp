#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app-proxy/users/caller.hpp"
#include "common/core/error.hpp"
#include "common/core/time.hpp"

namespace gitops::app_proxy {

// One change of state that somebody asked for, or one that was refused.
struct AuditEntry {
  const Caller& caller;
  std::string_view action;  // "addGitIntegration"
  // On what: names and values of arguments that are no secrets.
  std::vector<std::pair<std::string_view, std::string>> subject = {};
  std::string_view result;  // "ok", an error's code, or "unknown" for one that was cut off
  std::string_view reason = {};
  Clock::duration took{};
};

// The line of an entry, with its line end: {"stream":"audit","time":…,"action":…}. Pure.
std::string audit_line(const AuditEntry& entry, WallTime now);

// Where the lines go: a file, or standard error between the lines of the log, where "stream":"audit"
// tells them from these. Loop thread only.
class Audit {
 public:
  // Empty: standard error. A file is appended to, and made if it is missing; when it was renamed, a new
  // one is made.
  explicit Audit(std::string path) : path_(std::move(path)) {}
  ~Audit();
  Audit(const Audit&) = delete;
  Audit& operator=(const Audit&) = delete;

  // Errors: the file cannot be opened.
  Result<void> open();
  // A line that cannot be written to the file goes to standard error.
  void write(const AuditEntry& entry);

 private:
  void close();
  [[nodiscard]] bool was_moved() const;

  std::string path_;
  int file_ = -1;
};

}  // namespace gitops::app_proxy
