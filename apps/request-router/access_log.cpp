#include "request-router/access_log.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>

#include <poll.h>
#include <prometheus/counter.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/core/encoding.hpp"

namespace gitops::router {
namespace {

constexpr std::size_t kWriteAt = 16 * 1024;
constexpr std::size_t kMaxPath = 1024;
constexpr std::size_t kMaxKept = 256 * 1024;

void append_number(std::string& out, std::int64_t number) {
  std::array<char, 24> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  out.append(digits.data(), end);
}

void append_text(std::string& out, std::string_view key, std::string_view value) {
  out.append(key);
  append_json_string(out, value, JsonEscape::minimal);
}

bool is_file(int descriptor) {
  struct stat about{};
  return ::fstat(descriptor, &about) == 0 && S_ISREG(about.st_mode);
}

}  // namespace

void append_access_line(std::string& out, const proxy::TransactionRecord& record,
                        std::string_view client, std::string_view time) {
  out.append(R"({"time":")").append(time).append(R"(","logger":"access","status":)");
  append_number(out, record.status);
  if (record.head != nullptr) {
    append_text(out, R"(,"method":)", record.head->method);
    append_text(out, R"(,"path":)", record.head->path.substr(0, kMaxPath));
  }
  out.append(R"(,"route":")").append(record.route == nullptr ? "none" : record.route->name);
  out.append(R"(","duration_us":)");
  append_number(out, std::chrono::duration_cast<std::chrono::microseconds>(record.took).count());
  out.append(R"(,"bytes_in":)");
  append_number(out, static_cast<std::int64_t>(record.bytes_in));
  out.append(R"(,"bytes_out":)");
  append_number(out, static_cast<std::int64_t>(record.bytes_out));
  append_text(out, R"(,"client":)", client);
  append_text(out, R"(,"request_id":)", record.request_id);
  if (!record.traceparent.empty()) {
    append_text(out, R"(,"traceparent":)", record.traceparent.substr(0, 64));
  }
  if (record.failure != proxy::Failure::none) {
    out.append(R"(,"failure":")").append(to_string(record.failure)).append("\"");
    append_text(out, R"(,"detail":)", record.detail);
  }
  out.append("}\n");
}

void AccessLog::add(const proxy::TransactionRecord& record, std::string_view client, WallTime now) {
  const auto millis = now.time_since_epoch().count();
  if (millis / 1000 != second_) {
    second_ = millis / 1000;
    time_ = format_rfc3339_millis(now);
  }
  const auto part = static_cast<int>(millis % 1000);
  time_[20] = static_cast<char>('0' + part / 100);
  time_[21] = static_cast<char>('0' + part / 10 % 10);
  time_[22] = static_cast<char>('0' + part % 10);
  append_access_line(lines_, record, client, time_);
  if (lines_.size() >= kWriteAt) flush();
}

void AccessLog::flush() {
  writer_.write(lines_);
  lines_.clear();
}

LineWriter::LineWriter(int descriptor, Counter& dropped)
    : descriptor_(descriptor), never_waits_(is_file(descriptor)), dropped_(dropped) {}

void LineWriter::write(std::string_view lines) {
  const std::lock_guard lock(mutex_);
  write_kept();
  if (kept_.empty()) lines.remove_prefix(write_now(lines));
  if (kept_.size() + lines.size() <= kMaxKept) {
    kept_.append(lines);
  } else {
    dropped_.Increment(static_cast<double>(std::ranges::count(lines, '\n')));
  }
}

bool LineWriter::flush() {
  const std::lock_guard lock(mutex_);
  write_kept();
  return kept_.empty();
}

void LineWriter::write_kept() {
  if (!kept_.empty()) kept_.erase(0, write_now(kept_));
}

// Writes without waiting and returns the number of bytes. A writable pipe accepts PIPE_BUF bytes
// without waiting. O_NONBLOCK is not used, since it would also apply to other holders of the pipe.
std::size_t LineWriter::write_now(std::string_view text) const {
  std::size_t done = 0;
  while (done < text.size()) {
    auto piece = text.substr(done);
    if (!never_waits_) {
      pollfd state{.fd = descriptor_, .events = POLLOUT, .revents = 0};
      if (::poll(&state, 1, 0) != 1) break;
      if (piece.size() > PIPE_BUF) {
        const auto line_end = piece.rfind('\n', PIPE_BUF - 1);
        piece = piece.substr(0, line_end == std::string_view::npos ? PIPE_BUF : line_end + 1);
      }
    }
    const auto written = ::write(descriptor_, piece.data(), piece.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    done += static_cast<std::size_t>(written);
  }
  return done;
}

}  // namespace gitops::router
