#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "app-proxy/users/caller.hpp"
#include "common/core/error.hpp"
#include "common/core/time.hpp"

namespace gitops::app_proxy {

// A requested change of state, carried out or refused.
struct AuditEntry {
  const Caller& caller;
  std::string_view action;  // "addGitIntegration"
  // Object of the action: names and values of arguments that are not secret.
  std::vector<std::pair<std::string_view, std::string>> subject = {};
  std::string_view result;  // "ok", an error's code, or "unknown" for an interrupted one
  std::string_view reason = {};
  Clock::duration took{};
};

// Returns the line of an entry, with its line end: {"stream":"audit","time":…,"action":…}. Pure.
std::string audit_line(const AuditEntry& entry, WallTime now);

// Output for the lines: a file, or standard error between the lines of the log, where
// "stream":"audit" marks them. Loop thread only.
class Audit {
 public:
  // Path of the file; empty: standard error. The file is created if missing, appended to, and
  // created again after it was renamed.
  explicit Audit(std::string path) : path_(std::move(path)) {}
  ~Audit();
  Audit(const Audit&) = delete;
  Audit& operator=(const Audit&) = delete;

  // Opens the file. Fails when it cannot be opened.
  Result<void> open();
  // Writes a line. A line that cannot be written to the file goes to standard error; the next one
  // tries the file again.
  void write(const AuditEntry& entry);

 private:
  void close();
  [[nodiscard]] bool was_moved() const;
  bool append(std::string_view line);

  std::string path_;
  int file_ = -1;
  ino_t inode_ = 0;  // of the open file
  dev_t device_ = 0;
  bool is_cut_ = false;  // the last line of the file has no end
};

}  // namespace gitops::app_proxy
