#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/core/time.hpp"

// Distributed traces: W3C Trace Context on the wire, and the spans of this process. The spans are
// sent by TraceExporter (common/daemon). docs/adr/0026-traces.md.
namespace gitops {

class Span;
class Tracer;

// Kind of work that a span describes. The values are those of OTLP.
enum class SpanKind : std::uint8_t { internal = 1, server = 2, client = 3 };

// The position of a piece of work in a trace: the parent of its spans. It is passed down as a value,
// like a Deadline, and is empty for work that belongs to no trace. Cheap to copy; any thread.
class SpanContext {
 public:
  using TraceId = std::array<std::uint8_t, 16>;
  using SpanId = std::array<std::uint8_t, 8>;

  SpanContext() = default;
  // Reads the value of a traceparent field (https://www.w3.org/TR/trace-context-1/, section 3.2).
  // Returns an empty context for an invalid value, which W3C tells receivers to ignore.
  static SpanContext parse(std::string_view traceparent);
  // Returns the context of a new trace that nobody has chosen to record, for a client without spans.
  static SpanContext unsampled();

  [[nodiscard]] bool empty() const { return trace_id_ == TraceId{}; }
  // The spans of this trace are recorded.
  [[nodiscard]] bool is_sampled() const { return is_sampled_; }
  // The value of the traceparent field of requests that are part of this work; empty without a trace.
  [[nodiscard]] std::string traceparent() const;
  // 32 hexadecimal digits; empty without a trace.
  [[nodiscard]] std::string trace_id() const;
  // Begins a span below this one. It does nothing in a trace that is not recorded here.
  [[nodiscard]] Span start(std::string_view name, SpanKind kind = SpanKind::internal) const;

 private:
  friend class Tracer;
  friend class Span;
  TraceId trace_id_{};
  SpanId span_id_{};
  bool is_sampled_ = false;
  Tracer* tracer_ = nullptr;  // null: nothing is recorded here
};

// A span that has ended. It holds no header, no query and no body.
struct SpanRecord {
  SpanContext::TraceId trace_id{};
  SpanContext::SpanId span_id{};
  SpanContext::SpanId parent{};  // zeros: the first span of the trace
  SpanKind kind = SpanKind::internal;
  std::string name;
  std::chrono::sys_time<std::chrono::nanoseconds> began{};
  Clock::duration took{};
  std::vector<std::pair<std::string, std::string>> texts;     // attributes
  std::vector<std::pair<std::string, std::int64_t>> numbers;  // attributes
  bool has_failed = false;
  std::string message;  // of the failure
};

// A piece of work that is measured, from the construction to end() or the destruction. An empty one
// costs nothing. Its Tracer outlives it.
class Span {
 public:
  Span() = default;
  Span(Span&& other) noexcept = default;
  Span& operator=(Span&& other) noexcept;
  ~Span() { end(); }

  [[nodiscard]] const SpanContext& context() const { return context_; }
  [[nodiscard]] bool is_recorded() const { return record_ != nullptr; }
  // Add attributes, by OpenTelemetry's names where it has one. Texts are cut at 256 bytes.
  void set(std::string_view name, std::string_view text);
  void set(std::string_view name, std::int64_t number);
  // Marks the work as failed.
  void fail(std::string_view message);
  // Sets an earlier beginning, for work that had to wait before its span could be made.
  void began_at(Clock::time_point when);
  void end();

 private:
  friend class SpanContext;
  friend class Tracer;
  SpanContext context_;
  std::unique_ptr<SpanRecord> record_;
  Clock::time_point began_;
};

// Decides which traces are recorded, and collects the spans of this process until they are sent.
// Any thread.
//
// A trace is recorded when its id falls into the ratio, so that all programs with the same ratio
// decide alike, or when the caller says that it records it. Callers may be strangers: of the latter
// at most kMaxRequested a second are recorded.
class Tracer {
 public:
  static constexpr std::size_t kMaxSpans = 4'096;  // that wait; more are dropped
  static constexpr unsigned kMaxRequested = 20;

  // Records nothing, and passes contexts on.
  Tracer() = default;
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;
  // Begins to record this part of all traces, from 0 to 1. Called once, before any span.
  void record(double ratio);
  [[nodiscard]] bool is_recording() const { return is_recording_; }

  // Begins the span of a request, in the trace of its traceparent field, or in a new one. The
  // context of the span is for further requests; when nothing is recorded it is the caller's.
  [[nodiscard]] Span serve(std::string_view traceparent, std::string_view name);
  // Begins a new trace for work that nobody requested.
  [[nodiscard]] Span begin(std::string_view name, SpanKind kind = SpanKind::internal);

  // Returns up to `most` spans that have ended, the oldest first.
  [[nodiscard]] std::vector<SpanRecord> take(std::size_t most);
  [[nodiscard]] std::size_t waiting() const;
  // Number of spans that were dropped because too many waited.
  [[nodiscard]] std::uint64_t dropped() const { return dropped_; }

 private:
  friend class Span;
  friend class SpanContext;
  [[nodiscard]] Span begin_span(const SpanContext& parent, std::string_view name, SpanKind kind);
  [[nodiscard]] bool is_in_ratio(const SpanContext::TraceId& id) const;
  [[nodiscard]] bool may_follow_request();
  void add(SpanRecord record);
  // Returns the time of day with the resolution of Clock.
  [[nodiscard]] std::chrono::sys_time<std::chrono::nanoseconds> fine_wall_time(
      Clock::time_point now);

  bool is_recording_ = false;
  std::uint64_t below_ = 0;  // ids whose last 56 bits are below it are recorded
  mutable std::mutex mutex_;
  std::vector<SpanRecord> ended_;
  // A moment by both clocks; set again when they have moved apart.
  Clock::time_point anchor_;
  WallTime anchor_wall_{};
  Clock::time_point second_;  // in which requested_ traces were recorded
  unsigned requested_ = 0;
  std::atomic<std::uint64_t> dropped_ = 0;
};

}  // namespace gitops
