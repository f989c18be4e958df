#include "common/core/trace.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>

#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"
#include "common/core/text.hpp"

namespace gitops {
namespace {

constexpr std::size_t kMaxText = 256;  // bytes of an attribute or a message
constexpr unsigned kRatioBits = 56;    // of the trace id that decide, as W3C's level 2 has it
constexpr std::chrono::milliseconds kClockTolerance(2);
constexpr std::size_t kTraceparentSize = 55;
constexpr std::uint8_t kSampledFlag = 1;

// Reads lower-case hexadecimal digits into bytes. Returns false for anything else.
template <std::size_t size>
bool read_hex(std::string_view digits, std::array<std::uint8_t, size>& bytes) {
  const auto value = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  if (digits.size() != 2 * size) return false;
  for (std::size_t i = 0; i < size; ++i) {
    const int high = value(digits[2 * i]);
    const int low = value(digits[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    bytes[i] = static_cast<std::uint8_t>(high * 16 + low);
  }
  return true;
}

template <std::size_t size>
std::array<std::uint8_t, size> random_id() {
  std::array<std::uint8_t, size> id{};
  const auto bytes = random_bytes(size);
  std::ranges::transform(bytes, id.begin(), [](char c) { return static_cast<std::uint8_t>(c); });
  id.back() |= 1;  // all zeros is invalid
  return id;
}

}  // namespace

SpanContext SpanContext::parse(std::string_view traceparent) {
  // Later versions may append fields behind another dash; version ff is invalid.
  if (traceparent.size() < kTraceparentSize || traceparent[2] != '-' || traceparent[35] != '-' ||
      traceparent[52] != '-') {
    return {};
  }
  std::array<std::uint8_t, 1> version{};
  std::array<std::uint8_t, 1> flags{};
  SpanContext context;
  if (!read_hex(traceparent.substr(0, 2), version) || version[0] == 0xff) return {};
  if (traceparent.size() > kTraceparentSize &&
      (version[0] == 0 || traceparent[kTraceparentSize] != '-')) {
    return {};
  }
  if (!read_hex(traceparent.substr(3, 32), context.trace_id_) ||
      !read_hex(traceparent.substr(36, 16), context.span_id_) ||
      !read_hex(traceparent.substr(53, 2), flags) || context.span_id_ == SpanId{}) {
    return {};
  }
  context.is_sampled_ = (flags[0] & kSampledFlag) != 0;
  return context;
}

SpanContext SpanContext::unsampled() {
  SpanContext context;
  context.trace_id_ = random_id<16>();
  context.span_id_ = random_id<8>();
  return context;
}

std::string SpanContext::traceparent() const {
  if (empty()) return {};
  return "00-" + hex_encode(bytes_of(trace_id_)) + "-" + hex_encode(bytes_of(span_id_)) +
         (is_sampled_ ? "-01" : "-00");
}

std::string SpanContext::trace_id() const {
  return empty() ? std::string() : hex_encode(bytes_of(trace_id_));
}

Span SpanContext::start(std::string_view name, SpanKind kind) const {
  if (tracer_ != nullptr && is_sampled_) return tracer_->begin_span(*this, name, kind);
  Span span;
  span.context_ = *this;
  return span;
}

Span& Span::operator=(Span&& other) noexcept {
  if (this == &other) return *this;
  end();
  context_ = other.context_;
  record_ = std::move(other.record_);
  began_ = other.began_;
  return *this;
}

void Span::set(std::string_view name, std::string_view text) {
  if (record_) record_->texts.emplace_back(name, shortened(text, kMaxText));
}

void Span::set(std::string_view name, std::int64_t number) {
  if (record_) record_->numbers.emplace_back(name, number);
}

void Span::fail(std::string_view message) {
  if (!record_) return;
  record_->has_failed = true;
  record_->message = shortened(message, kMaxText);
}

void Span::began_at(Clock::time_point when) {
  if (!record_) return;
  record_->began -= std::chrono::duration_cast<std::chrono::nanoseconds>(began_ - when);
  began_ = when;
}

void Span::end() {
  if (!record_) return;
  record_->took = Clock::now() - began_;
  context_.tracer_->add(std::move(*record_));
  record_.reset();
}

void Tracer::record(double ratio) {
  is_recording_ = true;
  below_ = static_cast<std::uint64_t>(std::ldexp(std::clamp(ratio, 0.0, 1.0), kRatioBits));
}

Span Tracer::serve(std::string_view traceparent, std::string_view name) {
  auto parent = SpanContext::parse(traceparent);
  if (!is_recording_) {
    Span span;
    span.context_ = parent;
    return span;
  }
  if (parent.empty()) return begin(name, SpanKind::server);
  parent.tracer_ = this;
  parent.is_sampled_ =
      is_in_ratio(parent.trace_id_) || (parent.is_sampled_ && may_follow_request());
  return parent.start(name, SpanKind::server);
}

Span Tracer::begin(std::string_view name, SpanKind kind) {
  if (!is_recording_) return {};
  SpanContext root;
  root.trace_id_ = random_id<16>();
  if (!is_in_ratio(root.trace_id_)) return {};
  root.tracer_ = this;
  root.is_sampled_ = true;
  return begin_span(root, name, kind);
}

Span Tracer::begin_span(const SpanContext& parent, std::string_view name, SpanKind kind) {
  Span span;
  span.context_ = parent;
  span.context_.span_id_ = random_id<8>();
  span.began_ = Clock::now();
  span.record_ = std::make_unique<SpanRecord>();
  span.record_->trace_id = parent.trace_id_;
  span.record_->span_id = span.context_.span_id_;
  span.record_->parent = parent.span_id_;
  span.record_->kind = kind;
  span.record_->name = shortened(name, kMaxText);
  span.record_->began = fine_wall_time(span.began_);
  return span;
}

std::chrono::sys_time<std::chrono::nanoseconds> Tracer::fine_wall_time(Clock::time_point now) {
  const auto wall = wall_now();
  const std::lock_guard lock(mutex_);
  auto fine = anchor_wall_ + std::chrono::duration_cast<std::chrono::nanoseconds>(now - anchor_);
  if (fine < wall - kClockTolerance || fine > wall + kClockTolerance) {
    anchor_ = now;
    anchor_wall_ = wall;
    fine = wall;
  }
  return fine;
}

bool Tracer::is_in_ratio(const SpanContext::TraceId& id) const {
  std::uint64_t low = 0;
  for (std::size_t i = id.size() - kRatioBits / 8; i < id.size(); ++i) low = low << 8U | id[i];
  return low < below_;
}

bool Tracer::may_follow_request() {
  const auto now = Clock::now();
  const std::lock_guard lock(mutex_);
  if (now - second_ >= std::chrono::seconds(1)) {
    second_ = now;
    requested_ = 0;
  }
  return requested_++ < kMaxRequested;
}

void Tracer::add(SpanRecord record) {
  const std::lock_guard lock(mutex_);
  if (ended_.size() < kMaxSpans) {
    ended_.push_back(std::move(record));
  } else {
    ++dropped_;
  }
}

std::vector<SpanRecord> Tracer::take(std::size_t most) {
  const std::lock_guard lock(mutex_);
  if (ended_.size() <= most) return std::exchange(ended_, {});
  const auto end = ended_.begin() + static_cast<std::ptrdiff_t>(most);
  std::vector<SpanRecord> taken(std::make_move_iterator(ended_.begin()),
                                std::make_move_iterator(end));
  ended_.erase(ended_.begin(), end);
  return taken;
}

std::size_t Tracer::waiting() const {
  const std::lock_guard lock(mutex_);
  return ended_.size();
}

}  // namespace gitops
