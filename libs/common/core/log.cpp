#include "common/core/log.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <mutex>

#include <unistd.h>

#include "common/core/encoding.hpp"

namespace gitops {

namespace {

constexpr std::size_t kMaxLine = 8 * 1024;
constexpr std::size_t kMaxRepeatKeys = 1000;
constexpr std::string_view kRedacted = "[redacted]";
constexpr std::string_view kJsonTruncated = R"(,"truncated":true})";
constexpr std::string_view kTextTruncated = " truncated=true";

struct State {
  std::atomic<LogLevel> level{LogLevel::info};
  std::atomic<LogFormat> format{LogFormat::json};
  std::mutex mutex;  // of capture, and so that no line is printed within another
  std::function<void(std::string_view)> capture;
};

// Never destroyed: threads may log while the process ends.
State& state() {
  static auto* const kState = new State;
  return *kState;
}

std::string_view name_of(LogLevel level) {
  constexpr std::array<std::string_view, 5> kNames = {"debug", "info", "warning", "error", "off"};
  return kNames.at(static_cast<std::size_t>(level));
}

// Calls `append`; restores the line when it would become longer than `limit`.
template <class Append>
bool append_within(std::string& line, std::size_t limit, Append append) {
  const std::size_t before = line.size();
  append(line);
  if (line.size() <= limit) return true;
  line.resize(before);
  return false;
}

// Appends `text` in quotes, cut to the space left; returns true when nothing was cut.
bool append_string(std::string& line, std::string_view text, std::size_t limit) {
  const std::size_t room = limit > line.size() ? limit - line.size() : 0;
  if (text.size() <= room && append_within(line, limit, [&](std::string& out) {
        append_json_string(out, text, JsonEscape::minimal);
      })) {
    return true;
  }
  // The longest prefix whose quoted form fits; never ends within a character.
  std::size_t fits = 0;
  std::size_t too_long = std::min(text.size(), room) + 1;
  std::string quoted;
  while (too_long - fits > 1) {
    const std::size_t middle = fits + (too_long - fits) / 2;
    quoted.clear();
    append_json_string(quoted, text.substr(0, middle), JsonEscape::minimal);
    (quoted.size() <= room ? fits : too_long) = middle;
  }
  const auto continues = [&](std::size_t i) {
    return i < text.size() && (static_cast<unsigned char>(text[i]) & 0xC0) == 0x80;
  };
  for (int i = 0; i < 3 && fits > 0 && continues(fits); ++i) --fits;
  append_json_string(line, text.substr(0, fits), JsonEscape::minimal);
  return false;
}

void append_number(std::string& line, const Field::Value& value) {
  std::array<char, 32> digits{};
  const auto write = [&](auto number) {
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    line.append(digits.data(), end);
  };
  if (const auto* flag = std::get_if<bool>(&value)) {
    line += *flag ? "true" : "false";
  } else if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    write(*integer);
  } else if (const auto* natural = std::get_if<std::uint64_t>(&value)) {
    write(*natural);
  } else if (const auto* real = std::get_if<double>(&value)) {
    if (std::isfinite(*real)) {
      write(*real);
    } else {
      line += "null";
    }
  }
}

std::string_view text_of(const Field& field) {
  if (is_sensitive_key(field.key)) return kRedacted;
  const auto* text = std::get_if<std::string_view>(&field.value);
  return text != nullptr ? *text : std::string_view();
}

bool is_text(const Field& field) {
  return std::holds_alternative<std::string_view>(field.value) || is_sensitive_key(field.key);
}

std::string json_line(LogLevel level, const std::string& logger, std::string_view message,
                      std::initializer_list<Field> fields) {
  constexpr std::size_t kLimit = kMaxLine - kJsonTruncated.size();
  std::string line = R"({"time":")" + format_rfc3339_millis(wall_now()) + R"(","level":")";
  line += name_of(level);
  line += R"(","logger":)";
  bool complete = append_string(line, logger, kLimit / 8);
  line += R"(,"message":)";
  complete = append_string(line, message, kLimit - 2) && complete;
  for (const Field& field : fields) {
    if (!complete) break;
    complete = append_within(line, kLimit - 2, [&](std::string& out) {
      out += ',';
      append_json_string(out, field.key, JsonEscape::minimal);
      out += ':';
      if (!is_text(field)) append_number(out, field.value);
    });
    if (complete && is_text(field)) complete = append_string(line, text_of(field), kLimit);
  }
  line += complete ? "}" : kJsonTruncated;
  return line;
}

bool is_plain_word(std::string_view text) {
  if (text.empty()) return false;
  for (const char c : text) {
    if (c <= ' ' || c == '"' || c == '=' || c == '\\' || c > '~') return false;
  }
  return true;
}

// The format for terminals: no quotes around the message. Control characters stay escaped, so that
// a value cannot forge a line.
std::string text_line(LogLevel level, const std::string& logger, std::string_view message,
                      std::initializer_list<Field> fields) {
  constexpr std::size_t kLimit = kMaxLine - kTextTruncated.size();
  constexpr std::array<std::string_view, 5> kNames = {"DEBUG ", "INFO  ", "WARN  ", "ERROR ", ""};
  std::string line = format_rfc3339_millis(wall_now()) + ' ';
  line += kNames.at(static_cast<std::size_t>(level));
  line += logger.substr(0, kLimit / 8);
  line += ": ";
  std::string quoted;
  bool complete = append_string(quoted, message, kLimit - line.size());
  for (std::size_t i = 1; i + 1 < quoted.size(); ++i) {
    if (quoted[i] == '\\' && (quoted[i + 1] == '"' || quoted[i + 1] == '\\')) ++i;
    line += quoted[i];
  }
  for (const Field& field : fields) {
    if (!complete) break;
    complete = append_within(line, kLimit - 2, [&](std::string& out) {
      out += ' ';
      out += field.key;
      out += '=';
      if (!is_text(field)) append_number(out, field.value);
    });
    if (!complete || !is_text(field)) continue;
    const std::string_view text = text_of(field);
    if (text == kRedacted || (is_plain_word(text) && line.size() + text.size() <= kLimit)) {
      line += text;
    } else {
      complete = append_string(line, text, kLimit);
    }
  }
  if (!complete) line += kTextTruncated;
  return line;
}

// Writes to standard error. A line that nobody can take is lost: there is no place to report it.
void print(std::string_view text) {
  while (!text.empty()) {
    const auto written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written < 0 && errno != EINTR) return;
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void write(LogLevel level, const std::string& logger, std::string_view message,
           std::initializer_list<Field> fields) {
  State& shared = state();
  if (level < shared.level.load(std::memory_order_relaxed)) return;
  std::string line = shared.format.load(std::memory_order_relaxed) == LogFormat::json
                         ? json_line(level, logger, message, fields)
                         : text_line(level, logger, message, fields);
  const std::scoped_lock lock(shared.mutex);
  if (shared.capture) return shared.capture(line);
  line += '\n';
  print(line);
}

}  // namespace

Result<LogLevel> parse_log_level(std::string_view text) {
  if (text == "debug") return LogLevel::debug;
  if (text == "info") return LogLevel::info;
  if (text == "warn" || text == "warning") return LogLevel::warning;
  if (text == "error") return LogLevel::error;
  return fail(ErrorCode::invalid_argument, "not a log level; use debug, info, warn or error");
}

void Log::debug(std::string_view message, std::initializer_list<Field> fields) const {
  write(LogLevel::debug, name_, message, fields);
}

void Log::info(std::string_view message, std::initializer_list<Field> fields) const {
  write(LogLevel::info, name_, message, fields);
}

void Log::warning(std::string_view message, std::initializer_list<Field> fields) const {
  write(LogLevel::warning, name_, message, fields);
}

void Log::error(std::string_view message, std::initializer_list<Field> fields) const {
  write(LogLevel::error, name_, message, fields);
}

RepeatFilter::Verdict RepeatFilter::check(std::string_view key, Clock::time_point now) {
  std::string name(key);
  const auto found = entries_.find(name);
  if (found == entries_.end()) {
    if (entries_.size() >= kMaxRepeatKeys) {
      entries_.erase(order_.front());
      order_.pop_front();
    }
    entries_.emplace(name, Entry{.last = now});
    order_.push_back(std::move(name));
    return {.pass = true};
  }
  Entry& entry = found->second;
  if (now - entry.last < period_) {
    ++entry.suppressed;
    return {};
  }
  entry.last = now;
  return {.pass = true, .suppressed = std::exchange(entry.suppressed, 0)};
}

void configure_logging(LogLevel level, LogFormat format) {
  state().level = level;
  state().format = format;
}

void capture_logging(std::function<void(std::string_view line)> sink) {
  State& shared = state();
  const std::scoped_lock lock(shared.mutex);
  shared.capture = std::move(sink);
}

bool is_sensitive_key(std::string_view key) {
  std::string folded;
  for (const char c : key) {
    if (c == '-' || c == '_' || c == '.') continue;
    folded += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  for (const std::string_view end : {"name", "namespace", "file", "path"}) {
    if (folded.ends_with(end)) return false;
  }
  for (const std::string_view part : {"authorization", "token", "password", "passwd", "cookie",
                                      "secret", "apikey", "privatekey", "credential"}) {
    if (folded.contains(part)) return true;
  }
  return false;
}

}  // namespace gitops
