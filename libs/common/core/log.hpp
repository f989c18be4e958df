#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <variant>

#include "common/core/time.hpp"

namespace gitops {

enum class LogLevel { debug, info, warning, error, off };

// Parses "debug", "info", "warn"/"warning", "error"; anything else is an Error.
Result<LogLevel> parse_log_level(std::string_view text);

// One field of a log line. Keys are short snake_case literals. Values are borrowed: a field lives
// for the duration of one call only.
struct Field {
  using Value = std::variant<std::string_view, std::int64_t, std::uint64_t, double, bool>;
  std::string_view key;
  Value value;
  // T is one of Value's types or converts to one; durations are given as a number.
  template <class T>
  Field(std::string_view k, const T& v) : key(k), value(to_value(v)) {}

 private:
  template <class T>
  static Value to_value(const T& v) {
    if constexpr (std::is_same_v<T, bool>) {
      return v;
    } else if constexpr (std::is_floating_point_v<T>) {
      return static_cast<double>(v);
    } else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
      return std::int64_t{v};
    } else if constexpr (std::is_integral_v<T>) {
      return std::uint64_t{v};
    } else {
      return std::string_view(v);
    }
  }
};

// A named logger. Each line is one JSON object on standard error:
//   {"time":"2026-03-04T09:15:27.412Z","level":"info","logger":"reporter","message":"…", fields…}
// Invalid UTF-8 is replaced, a line is cut at 8 KiB (and says "truncated":true), and values under
// keys that name a secret (see is_sensitive_key) are written as "[redacted]". Log where an error is
// handled, not where it passes. Loggers are cheap to copy and usable from any thread.
//
// No call waits for the reader of standard error. Lines pass through a queue of 512 lines, at most 4 MiB, and
// a thread of its own writes them (docs/adr/0015-log-lines-by-spdlog.md). When the queue is full, the
// oldest line is lost; log_lines_dropped() counts it, and a line reports how many are missing.
class Log {
 public:
  explicit Log(std::string name) : name_(std::move(name)) {}

  void debug(std::string_view message, std::initializer_list<Field> fields = {}) const;
  void info(std::string_view message, std::initializer_list<Field> fields = {}) const;
  void warning(std::string_view message, std::initializer_list<Field> fields = {}) const;
  void error(std::string_view message, std::initializer_list<Field> fields = {}) const;

 private:
  std::string name_;
};

// Lets a line through once per `period` and key; the next line that passes holds the number of
// suppressed ones. Use it for failures that repeat with every attempt. Loop thread only.
class RepeatFilter {
 public:
  explicit RepeatFilter(Clock::duration period) : period_(period) {}
  struct Verdict {
    bool pass = false;
    std::uint64_t suppressed = 0;  // since the last line that passed
  };
  // Decides about a line. Remembers at most 1,000 keys and evicts the oldest.
  Verdict check(std::string_view key, Clock::time_point now);

 private:
  struct Entry {
    Clock::time_point last;  // time of the last line that passed
    std::uint64_t suppressed = 0;
  };
  Clock::duration period_;
  std::unordered_map<std::string, Entry> entries_;
  std::deque<std::string> order_;  // keys of entries_, oldest first
};

// Writes a finished line, given without its line end, at any level: for a stream with a format of
// its own. The caller keeps it below 8 KiB.
void log_raw_line(std::string_view line);

// Number of lines of this process that standard error did not accept.
std::uint64_t log_lines_dropped();

// Waits until the lines so far are written, at most a second. Called at the end of a process, also
// by end_process() of process.hpp.
void flush_logging();

enum class LogFormat { json, text };

// Process-wide set-up, called once by the daemon frame before any thread starts.
void configure_logging(LogLevel level, LogFormat format);
// Sends finished lines to `sink` instead of standard error; an empty function restores it. The old
// sink is not called any more afterwards; a sink must not log. For tests.
void capture_logging(std::function<void(std::string_view line)> sink);

// Returns true when the key names a secret: it holds "authorization", "token", "password",
// "cookie", "secret", "apikey", "privatekey" or "credential", in any case and with any '-', '_' or
// '.' in it. Keys that end in "name", "namespace", "file" or "path" only refer to a secret. Also
// used for HTTP header names.
bool is_sensitive_key(std::string_view key);

}  // namespace gitops
