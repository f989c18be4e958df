#include "common/core/time.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

namespace gitops {

namespace {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

void append_padded(std::string& out, std::int64_t value, int width) {
  const std::string digits = std::to_string(value < 0 ? -value : value);
  if (value < 0) out += '-';
  for (int i = static_cast<int>(digits.size()); i < width; ++i) out += '0';
  out += digits;
}

// Returns "2026-03-04T09:15:27", without fraction and offset.
std::string format_seconds(WallTime time) {
  const auto day = std::chrono::floor<days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  std::string out;
  append_padded(out, static_cast<int>(date.year()), 4);
  out += '-';
  append_padded(out, static_cast<unsigned>(date.month()), 2);
  out += '-';
  append_padded(out, static_cast<unsigned>(date.day()), 2);
  out += 'T';
  append_padded(out, clock.hours().count(), 2);
  out += ':';
  append_padded(out, clock.minutes().count(), 2);
  out += ':';
  append_padded(out, clock.seconds().count(), 2);
  return out;
}

std::int64_t millisecond_of(WallTime time) {
  return (time - std::chrono::floor<seconds>(time)).count();
}

// Consumes fixed parts from the front of a text. After the first mismatch every further call fails.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  int number(std::size_t width) {
    int value = 0;
    if (rest_.size() < width) return give_up();
    for (std::size_t i = 0; i < width; ++i) {
      if (!is_digit(rest_[i])) return give_up();
      value = value * 10 + (rest_[i] - '0');
    }
    rest_.remove_prefix(width);
    return value;
  }
  void expect(std::string_view literal) {
    if (!rest_.starts_with(literal)) {
      give_up();
    } else {
      rest_.remove_prefix(literal.size());
    }
  }
  // Takes one of `characters`; returns 0 when there is none.
  char take(std::string_view characters) {
    if (rest_.empty() || !characters.contains(rest_[0])) return 0;
    const char c = rest_[0];
    rest_.remove_prefix(1);
    return c;
  }
  char digit() { return take("0123456789"); }
  int give_up() {
    ok_ = false;
    return 0;
  }
  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] bool at_end() const { return ok_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

// Combines a date and a time of day; returns false when they do not exist. A leap second counts as
// the next second.
bool combine(int year, int month, int day, int hour, int minute, int second, WallTime& out) {
  const std::chrono::year_month_day date(std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day)));
  if (!date.ok() || hour > 23 || minute > 59 || second > 60) return false;
  out = std::chrono::sys_days(date) + hours(hour) + minutes(minute) + seconds(second);
  return true;
}

// Parses "Sun, 06 Nov 1994 08:49:37 GMT", the form that RFC 9110 requires of senders.
bool parse_http_date(std::string_view text, WallTime& out) {
  constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                        "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::size_t comma = text.find(", ");
  if (comma != 3 || text.size() != 29) return false;
  const auto* month = std::ranges::find(kMonths, text.substr(8, 3));
  if (month == kMonths.end()) return false;
  Scanner scan(text.substr(5));
  const int day = scan.number(2);
  scan.expect(" ");
  scan.expect(*month);
  scan.expect(" ");
  const int year = scan.number(4);
  scan.expect(" ");
  const int hour = scan.number(2);
  scan.expect(":");
  const int minute = scan.number(2);
  scan.expect(":");
  const int second = scan.number(2);
  scan.expect(" GMT");
  return scan.at_end() && combine(year, static_cast<int>(month - kMonths.begin()) + 1, day, hour,
                                  minute, second, out);
}

}  // namespace

Deadline deadline_after(Clock::duration wait) {
  const Clock::time_point now = Clock::now();
  return wait > kNever - now ? kNever : now + wait;
}

std::atomic<milliseconds::rep> Clock::wall_ahead_ = 0;

void Clock::stop_at(time_point when) {
  if (stopped_at_ == kRunning) {
    const auto wall = std::chrono::system_clock::now().time_since_epoch();
    const auto steady = std::chrono::steady_clock::now().time_since_epoch();
    wall_ahead_ = std::chrono::floor<milliseconds>(wall - steady).count();
  }
  stopped_at_ = when.time_since_epoch().count();
}

void Clock::run() {
  stopped_at_ = kRunning;
}

WallTime wall_now() {
  const auto at = Clock::stopped_at_.load(std::memory_order_relaxed);
  if (at == Clock::kRunning) {
    return std::chrono::floor<milliseconds>(std::chrono::system_clock::now());
  }
  return WallTime(std::chrono::floor<milliseconds>(Clock::duration(at)) +
                  milliseconds(Clock::wall_ahead_.load(std::memory_order_relaxed)));
}

std::string format_rfc3339(WallTime time) {
  return format_seconds(time) + 'Z';
}

std::string format_rfc3339_millis(WallTime time) {
  std::string out = format_seconds(time) + '.';
  append_padded(out, millisecond_of(time), 3);
  return out + 'Z';
}

std::string format_rfc3339_micros(WallTime time) {
  std::string out = format_seconds(time) + '.';
  append_padded(out, millisecond_of(time), 3);
  return out + "000Z";
}

Result<WallTime> parse_rfc3339(std::string_view text) {
  const auto wrong = [] { return fail(ErrorCode::invalid_data, "not an RFC 3339 time"); };
  Scanner scan(text);
  const int year = scan.number(4);
  scan.expect("-");
  const int month = scan.number(2);
  scan.expect("-");
  const int day = scan.number(2);
  if (scan.take("Tt ") == 0) return wrong();
  const int hour = scan.number(2);
  scan.expect(":");
  const int minute = scan.number(2);
  scan.expect(":");
  const int second = scan.number(2);
  std::int64_t millis = 0;
  if (scan.take(".") != 0) {
    int digits = 0;
    while (const char c = scan.digit()) {
      if (++digits <= 3) millis = millis * 10 + (c - '0');
    }
    if (digits == 0) return wrong();
    for (; digits < 3; ++digits) millis *= 10;
  }
  minutes offset{0};
  if (const char sign = scan.take("+-"); sign != 0) {
    const int offset_hours = scan.number(2);
    scan.expect(":");
    const int offset_minutes = scan.number(2);
    if (offset_hours > 23 || offset_minutes > 59) return wrong();
    offset = hours(offset_hours) + minutes(offset_minutes);
    if (sign == '-') offset = -offset;
  } else if (scan.take("Zz") == 0) {
    return wrong();
  }
  WallTime time;
  if (!scan.at_end() || !combine(year, month, day, hour, minute, second, time)) return wrong();
  return time + milliseconds(millis) - offset;
}

Result<milliseconds> parse_duration(std::string_view text) {
  const auto wrong = [&](std::string_view why) {
    return fail(ErrorCode::invalid_argument,
                std::string(why) + "; write it as 300ms, 10s, 1m30s or 24h");
  };
  constexpr double kLimit = 3.1536e12;  // 100 years: adding it to a clock never overflows
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  if (text.empty()) return wrong("empty duration");
  double total = 0;
  bool with_unit = false;
  while (!text.empty()) {
    double number = 0;
    double scale = 1;
    std::size_t digits = 0;
    std::size_t i = 0;
    bool fraction = false;
    for (; i < text.size() && (is_digit(text[i]) || (text[i] == '.' && !fraction)); ++i) {
      if (text[i] == '.') {
        fraction = true;
        continue;
      }
      ++digits;
      number = number * 10 + (text[i] - '0');
      if (fraction) scale *= 10;
    }
    if (digits == 0) return wrong("not a duration");
    number /= scale;
    text.remove_prefix(i);
    double unit = 0;
    if (text.empty() && !with_unit) {
      unit = 1000;
    } else if (text.starts_with("ms")) {
      unit = 1;
      text.remove_prefix(2);
    } else if (text.starts_with("us") || text.starts_with("ns")) {
      unit = text[0] == 'u' ? 1e-3 : 1e-6;
      text.remove_prefix(2);
    } else if (text.starts_with("\u00b5s")) {
      unit = 1e-3;
      text.remove_prefix(3);
    } else if (text.starts_with('s')) {
      unit = 1000;
      text.remove_prefix(1);
    } else if (text.starts_with('m')) {
      unit = 60'000;
      text.remove_prefix(1);
    } else if (text.starts_with('h')) {
      unit = 3'600'000;
      text.remove_prefix(1);
    } else {
      return wrong("a duration without a known unit");
    }
    with_unit = true;
    total += number * unit;
    if (!(total <= kLimit)) return wrong("a duration of more than 100 years");
  }
  const auto rounded = static_cast<std::int64_t>(total + 0.5);
  return milliseconds(negative ? -rounded : rounded);
}

std::string format_duration(milliseconds duration) {
  if (duration == milliseconds::zero()) return "0s";
  std::string out = duration < milliseconds::zero() ? "-" : "";
  std::uint64_t left = duration < milliseconds::zero()
                           ? std::uint64_t{0} - static_cast<std::uint64_t>(duration.count())
                           : static_cast<std::uint64_t>(duration.count());
  const auto part = [&](std::uint64_t unit, std::string_view name) {
    if (left < unit) return;
    out += std::to_string(left / unit);
    out += name;
    left %= unit;
  };
  part(3'600'000, "h");
  part(60'000, "m");
  part(1000, "s");
  part(1, "ms");
  return out;
}

milliseconds parse_retry_after(std::string_view value, WallTime now) {
  constexpr milliseconds kCap = minutes(5);
  if (value.empty()) return milliseconds::zero();
  if (std::ranges::all_of(value, is_digit)) {
    if (value.size() > 9) return kCap;
    std::int64_t wait = 0;
    for (const char c : value) wait = wait * 10 + (c - '0');
    return std::min(kCap, milliseconds(seconds(wait)));
  }
  WallTime when;
  if (!parse_http_date(value, when)) return milliseconds::zero();
  return std::clamp(when - now, milliseconds::zero(), kCap);
}

}  // namespace gitops
