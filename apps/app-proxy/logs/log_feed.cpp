#include "app-proxy/logs/log_feed.hpp"

#include <optional>
#include <utility>

#include "common/core/json_text.hpp"

namespace gitops::app_proxy {
namespace {

constexpr std::size_t kMaxTextLine = 64 * 1024;
constexpr std::size_t kMaxJsonLine = 1024 * 1024;
constexpr std::size_t kMaxRefusal = 64 * 1024;

// Returns the message of a response with a status other than 200: {"message"}, or
// {"error":{"message"}} of a stream.
std::string refusal_of(int status, std::string_view body) {
  JsonParser parser;
  const auto root = parser.parse_object(body, "answer");
  std::string_view message;
  if (root) {
    message = (*root)["message"].text();
    if (message.empty()) message = (*root)["error"]["message"].text();
    if (message.empty()) message = (*root)["error"].text();
  }
  return "the server answered " + std::to_string(status) +
         (message.empty() ? std::string() : ": " + std::string(message.substr(0, 500)));
}

}  // namespace

struct LogFeed::State : std::enable_shared_from_this<State> {
  State(const Executor& executor, Options given)
      : options(std::move(given)), changed(executor), readers(executor) {
    for (auto& text : options.errors) waiting.push_back(error_event(std::move(text)));
  }

  // Passes events on after the previous ones were taken.
  Task<> give(std::deque<LogEvent> events) {
    while (!waiting.empty()) co_await changed.wait();
    waiting = std::move(events);
    changed.notify_all();
  }

  Task<> read(LogSource source) {
    auto failed = source.needs_head ? co_await begin(source) : std::nullopt;
    const bool is_text = source.format == LogFormat::kubernetes;
    LineSplitter splitter(is_text ? kMaxTextLine : kMaxJsonLine,
                          is_text ? LineSplitter::Long::cut : LineSplitter::Long::drop);
    source.exchange.set_deadline(kNever);
    std::size_t dropped = 0;
    for (bool is_over = false; !failed && !is_over;) {
      auto piece = co_await source.exchange.read_some();
      if (!piece) {
        failed = "the stream broke off: " + piece.error().message;
        break;
      }
      is_over = piece->empty();
      std::deque<LogEvent> events;
      for (const auto& text : is_over ? splitter.finish() : splitter.feed(*piece)) {
        auto line = parse_log_line(source.format, text);
        if (!line) {
          failed = line.error().message;
          break;
        }
        if (!*line) continue;
        if ((*line)->pod.empty()) (*line)->pod = source.pod;
        if ((*line)->container.empty()) (*line)->container = source.container;
        if (!options.filter.passes(**line)) continue;
        events.push_back({.kind = LogEvent::Kind::line, .line = std::move(**line)});
      }
      if (splitter.dropped() > dropped) {
        dropped = splitter.dropped();
        events.push_back(error_event("a line of more than 1 MiB was left out"));
      }
      if (!events.empty()) co_await give(std::move(events));
    }
    if (failed) {
      const auto prefix = source.pod.empty() ? std::string() : source.pod + ": ";
      std::deque<LogEvent> last;
      last.push_back(error_event(prefix + *failed));
      co_await give(std::move(last));
    }
  }

  static LogEvent error_event(std::string text) {
    return {.kind = LogEvent::Kind::error, .error = std::move(text)};
  }

  // Starts a stream. Returns the error when there is none.
  static Task<std::optional<std::string>> begin(LogSource& source) {
    source.exchange.set_deadline(kNever);
    auto head = co_await source.exchange.read_head();
    if (!head) co_return "there is no answer: " + head.error().message;
    if (head->status == 200) co_return std::nullopt;
    std::string body;
    source.exchange.set_deadline(deadline_after(std::chrono::seconds(10)));
    while (body.size() < kMaxRefusal) {
      auto piece = co_await source.exchange.read_some();
      if (!piece || piece->empty()) break;
      body += *piece;
    }
    co_return refusal_of(head->status, body);
  }

  Options options;
  std::deque<LogEvent> waiting;
  std::size_t open = 0;  // number of open streams
  Clock::time_point checked = Clock::now();
  bool has_ended = false;
  Event changed;
  TaskGroup readers;
};

LogFeed::LogFeed(TaskGroup& ending, const Executor& executor, std::vector<LogSource> sources,
                 Options options)
    : state_(std::make_shared<State>(executor, std::move(options))), ending_(ending) {
  state_->open = sources.size();
  for (auto& source : sources) {
    auto kept = std::make_shared<LogSource>(std::move(source));
    state_->readers.spawn("log", [state = state_.get(), kept]() -> Task<> {
      co_await state->read(std::move(*kept));
      --state->open;
      state->changed.notify_all();
    });
  }
}

LogFeed::~LogFeed() {
  state_->readers.cancel();
  // The readers end later, in this group.
  ending_.spawn("end of a log",
                [state = std::move(state_)]() -> Task<> { co_await state->readers.join(); });
}

bool LogFeed::has_more() const {
  return !state_->waiting.empty();
}

Task<LogEvent> LogFeed::next(Deadline until) {
  State& state = *state_;
  if (state.has_ended) co_return LogEvent{};
  while (state.waiting.empty()) {
    if (state.open == 0) {
      state.has_ended = true;
      co_return LogEvent{};
    }
    if (!co_await state.changed.wait(until)) {
      co_return LogEvent{.kind = LogEvent::Kind::nothing_yet};
    }
  }
  if (state.options.is_allowed && Clock::now() - state.checked >= state.options.check_period) {
    if (!state.options.is_allowed()) {
      state.has_ended = true;
      state.readers.cancel();
      co_return State::error_event("Forbidden");
    }
    state.checked = Clock::now();
  }
  LogEvent event = std::move(state.waiting.front());
  state.waiting.pop_front();
  if (state.waiting.empty()) state.changed.notify_all();
  co_return event;
}

}  // namespace gitops::app_proxy
