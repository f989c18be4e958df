#include "common/core/log.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cmath>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <pthread.h>

#include <poll.h>
#include <unistd.h>

// Headers only, without the unused parts: their shared libraries would add 0.66 MB to each image.
#define FMT_HEADER_ONLY
#define SPDLOG_NO_EXCEPTIONS
#define SPDLOG_NO_THREAD_ID
#include <spdlog/async_logger.h>
#include <spdlog/details/thread_pool.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/sink.h>

#include "common/core/encoding.hpp"

namespace gitops {

namespace {

constexpr std::size_t kMaxLine = 8 * 1024;
constexpr std::size_t kMaxQueued = 512;  // lines; spdlog keeps 400 bytes for each, used or not
constexpr auto kMaxFlush = std::chrono::seconds(1);
constexpr std::size_t kMaxRepeatKeys = 1000;
constexpr std::string_view kRedacted = "[redacted]";
constexpr std::string_view kJsonTruncated = R"(,"truncated":true})";
constexpr std::string_view kTextTruncated = " truncated=true";

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
  // Length of the longest prefix whose quoted form fits; never ends within a character.
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

std::string format_line(LogFormat format, LogLevel level, const std::string& logger,
                        std::string_view message, std::initializer_list<Field> fields) {
  return format == LogFormat::json ? json_line(level, logger, message, fields)
                                   : text_line(level, logger, message, fields);
}

// A sink of finished lines, which need no pattern.
class Sink final : public spdlog::sinks::sink {
 public:
  using Take = std::function<void(const spdlog::details::log_msg&)>;
  explicit Sink(Take take) : take_(std::move(take)) {}
  void log(const spdlog::details::log_msg& message) override { take_(message); }
  void flush() override {}
  void set_pattern(const std::string&) override {}
  void set_formatter(std::unique_ptr<spdlog::formatter>) override {}

 private:
  Take take_;
};

// The lines that wait for standard error: spdlog's queue, and spdlog's thread, which writes them.
// When the queue is full, a new line replaces the oldest one. Any thread. Never destroyed: the
// thread may be in a write that does not end.
class Queue {
 public:
  explicit Queue(const std::atomic<LogFormat>& format)
      : format_(format),
        writer_(std::make_shared<spdlog::async_logger>(
            "", std::make_shared<Sink>([this](const auto& message) { take(message.payload); }),
            pool_, kPolicy)) {}

  void add(const spdlog::details::log_msg& message) {
    ++added_;
    pool_->post_log(std::shared_ptr(writer_), message, kPolicy);
  }

  [[nodiscard]] std::uint64_t dropped() const { return refused_ + pool_->overrun_counter(); }

  void flush() {
    const std::uint64_t until = added_;
    std::unique_lock lock(mutex_);
    taken_more_.wait_for(lock, kMaxFlush,
                         [&] { return taken_ + pool_->overrun_counter() >= until; });
  }

 private:
  static constexpr auto kPolicy = spdlog::async_overflow_policy::overrun_oldest;

  // Collects lines, so that a burst of them is one write. A pipe takes PIPE_BUF bytes as a whole,
  // so no text of another process is written inside a line.
  void take(spdlog::string_view_t line) {
    if (lines_ > 0 && text_.size() + line.size() >= PIPE_BUF) write();
    if (lines_ == 0) begin();
    text_.append(line.data(), line.size()) += '\n';
    ++lines_;
    if (pool_->queue_size() == 0) write();
  }

  // Begins a write with the notice of the lines that were lost since the last write began.
  void begin() {
    text_.clear();
    reporting_ = dropped();
    if (reporting_ > reported_) {
      text_ = format_line(format_, LogLevel::warning, "log",
                          "log lines are lost; standard error did not take them",
                          {{"lines", reporting_ - reported_}}) +
              '\n';
    }
    notice_ = text_.size();
  }

  // Writes all lines, without a time limit.
  void write() {
    std::string_view rest = text_;
    bool refused = false;
    while (!rest.empty() && !refused) {
      const auto written = ::write(STDERR_FILENO, rest.data(), rest.size());
      if (written > 0) {
        rest.remove_prefix(static_cast<std::size_t>(written));
      } else if (written < 0 && errno == EAGAIN) {
        // O_NONBLOCK belongs to the open file, so another process may have set it.
        pollfd state{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
        ::poll(&state, 1, -1);
      } else {
        refused = written < 0 && errno != EINTR;
      }
    }
    const bool notice_written = text_.size() - rest.size() >= notice_;
    if (notice_written) reported_ = reporting_;
    refused_ += static_cast<std::uint64_t>(std::ranges::count(rest, '\n')) - !notice_written;
    const std::scoped_lock lock(mutex_);
    taken_ += std::exchange(lines_, 0);
    taken_more_.notify_all();
  }

  const std::atomic<LogFormat>& format_;  // format of the notices
  std::atomic<std::uint64_t> added_ = 0;
  std::atomic<std::uint64_t> refused_ = 0;  // lines that standard error refused
  std::mutex mutex_;
  std::condition_variable taken_more_;
  std::uint64_t taken_ = 0;  // lines that the thread has written or refused
  // The members below belong to the thread.
  std::string text_;  // a notice and `lines_` lines, not written yet
  std::uint64_t lines_ = 0;
  std::size_t notice_ = 0;       // bytes of the notice
  std::uint64_t reporting_ = 0;  // lost lines with a notice, this one included
  std::uint64_t reported_ = 0;   // lost lines with a written notice
  std::shared_ptr<spdlog::details::thread_pool> pool_ =
      std::make_shared<spdlog::details::thread_pool>(
          kMaxQueued, 1, [] { ::pthread_setname_np(::pthread_self(), "log"); });
  std::shared_ptr<spdlog::async_logger> writer_;
};

struct State {
  std::atomic<LogFormat> format{LogFormat::json};
  // Holds the level.
  spdlog::logger logger{"",
                        std::make_shared<Sink>([this](const auto& message) { dispatch(message); })};
  std::mutex mutex;  // guards capture and the start of the queue
  std::function<void(std::string_view)> capture;
  std::atomic<Queue*> queue = nullptr;  // set by the first line

  void dispatch(const spdlog::details::log_msg& message) {
    const std::scoped_lock lock(mutex);
    if (capture) return capture({message.payload.data(), message.payload.size()});
    if (queue == nullptr) queue = new Queue(format);
    queue.load()->add(message);
  }
};

// Never destroyed: threads may log while the process ends.
State& state() {
  static auto* const kState = new State;
  return *kState;
}

// The destructor runs after nearly all others at the end of the process.
const struct FlushAtExit {
  FlushAtExit() = default;
  FlushAtExit(const FlushAtExit&) = delete;
  FlushAtExit& operator=(const FlushAtExit&) = delete;
  ~FlushAtExit() { flush_logging(); }
} kFlushAtExit;

spdlog::level::level_enum spdlog_level(LogLevel level) {
  using enum spdlog::level::level_enum;
  constexpr std::array<spdlog::level::level_enum, 5> kLevels = {debug, info, warn, err, off};
  return kLevels.at(static_cast<std::size_t>(level));
}

void write(LogLevel level, const std::string& logger, std::string_view message,
           std::initializer_list<Field> fields) {
  State& shared = state();
  const auto of_spdlog = spdlog_level(level);
  if (!shared.logger.should_log(of_spdlog)) return;
  const std::string line =
      format_line(shared.format.load(std::memory_order_relaxed), level, logger, message, fields);
  shared.logger.log(of_spdlog, spdlog::string_view_t(line.data(), line.size()));
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
  state().logger.set_level(spdlog_level(level));
  state().format = format;
}

void log_raw_line(std::string_view line) {
  // The level `off` passes every filter, since no level is above it.
  state().logger.log(spdlog::level::off, spdlog::string_view_t(line.data(), line.size()));
}

std::uint64_t log_lines_dropped() {
  const Queue* queue = state().queue;
  return queue == nullptr ? 0 : queue->dropped();
}

void flush_logging() {
  if (Queue* queue = state().queue) queue->flush();
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
