#include "app-proxy/users/audit.hpp"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/core/encoding.hpp"
#include "common/core/log.hpp"
#include "common/core/text.hpp"

namespace gitops::app_proxy {
namespace {

constexpr std::size_t kMaxValue = 200;  // of a value, in bytes
constexpr std::size_t kUsualLine = 512;

void append_member(std::string& out, std::string_view name, std::string_view value) {
  if (out.back() != '{') out += ',';
  append_json_string(out, name, JsonEscape::minimal);
  out += ':';
  if (value.size() <= kMaxValue) return append_json_string(out, value, JsonEscape::minimal);
  append_json_string(out, shortened(value, kMaxValue), JsonEscape::minimal);
}

// Returns the number of bytes that were written; fewer than all after an error.
std::size_t write_all(int file, std::string_view text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const auto written = ::write(file, text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    done += static_cast<std::size_t>(written);
  }
  return done;
}

}  // namespace

std::string audit_line(const AuditEntry& entry, WallTime now) {
  std::string out = "{";
  out.reserve(kUsualLine);
  append_member(out, "stream", "audit");
  append_member(out, "time", format_rfc3339(now));
  append_member(out, "action", entry.action);
  append_member(out, "result", entry.result);
  if (!entry.reason.empty()) append_member(out, "reason", entry.reason);
  if (const auto& user = entry.caller.user) {
    append_member(out, "user", user->is_runtime ? "runtime" : user->id);
    append_member(out, "userName", user->name);
    append_member(out, "account", user->account_id);
  }
  append_member(out, "peer", entry.caller.peer);
  append_member(out, "requestId", entry.caller.request_id);
  out += ",\"subject\":{";
  for (const auto& [name, value] : entry.subject) append_member(out, name, value);
  out += "},\"milliseconds\":";
  out += std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(entry.took).count());
  out += "}\n";
  return out;
}

Audit::~Audit() {
  close();
}

void Audit::close() {
  if (file_ >= 0) ::close(file_);
  file_ = -1;
}

Result<void> Audit::open() {
  if (path_.empty()) return {};
  close();
  file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
  if (file_ < 0) {
    return fail(ErrorCode::unavailable,
                "the audit file " + path_ + " cannot be opened: " + std::strerror(errno));
  }
  is_cut_ = false;
  struct stat opened{};
  if (::fstat(file_, &opened) == 0) {
    inode_ = opened.st_ino;
    device_ = opened.st_dev;
  }
  return {};
}

bool Audit::was_moved() const {
  struct stat there{};
  return ::stat(path_.c_str(), &there) != 0 || there.st_ino != inode_ || there.st_dev != device_;
}

// Appends a line. One that was cut off, as by a full disk, is ended first: readers would take both
// for one.
bool Audit::append(std::string_view line) {
  if (is_cut_ && write_all(file_, "\n") == 0) return false;
  const auto written = write_all(file_, line);
  is_cut_ = written > 0 && written < line.size();
  return written == line.size();
}

void Audit::write(const AuditEntry& entry) {
  const std::string line = audit_line(entry, wall_now());
  if (!path_.empty() && (file_ < 0 || was_moved())) (void)open();
  if (file_ >= 0 && append(line)) return;
  log_raw_line(std::string_view(line).substr(0, line.size() - 1));
}

}  // namespace gitops::app_proxy
