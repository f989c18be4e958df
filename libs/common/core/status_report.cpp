#include "common/core/status_report.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/core/json_text.hpp"
#include "common/core/text.hpp"

namespace gitops {
namespace {

constexpr std::size_t kMaxStatusName = 300;
constexpr std::size_t kMaxStatusMessage = 1000;

// Returns a text in a form that is safe for a page of lines.
std::string one_line(std::string_view text, std::size_t max_bytes) {
  auto line = shortened(text, max_bytes);
  std::ranges::replace_if(line, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
  return line;
}

std::string label_of(const StatusValue& value) {
  if (value.label) return *value.label;
  auto label = value.name;
  std::ranges::replace(label, '_', ' ');
  return label;
}

// Returns "3 of 16 under way", "5s" or "server version: 0.44".
std::string text_of(const StatusValue& value) {
  const auto label = label_of(value);
  if (const auto* text = std::get_if<std::string>(&value.value)) {
    return (label.empty() ? "" : label + ": ") + one_line(*text, kMaxStatusMessage);
  }
  const auto* duration = std::get_if<std::chrono::milliseconds>(&value.value);
  auto out = duration != nullptr ? format_duration(*duration)
                                 : std::to_string(std::get<std::uint64_t>(value.value));
  if (value.of) out += " of " + std::to_string(*value.of);
  return label.empty() ? out : out + " " + label;
}

// Returns the text behind the entry's name; empty for a heading.
std::string text_of(const StatusEntry& entry) {
  auto text = one_line(entry.message, kMaxStatusMessage);
  if (text.empty() && !entry.since && entry.values.empty()) {
    return entry.details.empty() ? std::string(to_string(entry.state)) : std::string();
  }
  const auto since = entry.since ? "since " + format_rfc3339(*entry.since) : std::string();
  const bool has_message = !text.empty();
  if (has_message && !since.empty()) text += " " + since;
  const auto append = [&text](const std::string& more) {
    if (!text.empty()) text += ", ";
    text += more;
  };
  for (const auto& value : entry.values) append(text_of(value));
  if (!has_message && !since.empty()) append(since);
  return text;
}

void append_text(std::string& out, const StatusEntry& entry, std::size_t depth) {
  const std::string indent(2 * depth, ' ');
  out += indent + one_line(entry.name, kMaxStatusName);
  if (const auto text = text_of(entry); !text.empty()) out += ": " + text;
  out += '\n';
  for (const auto& detail : entry.details) append_text(out, detail, depth + 1);
  if (entry.omitted > 0) out += indent + "  and " + std::to_string(entry.omitted) + " more\n";
}

void append_json(ObjectWriter& writer, const StatusValue& value) {
  if (const auto* text = std::get_if<std::string>(&value.value)) {
    writer.text(value.name, shortened(*text, kMaxStatusMessage));
  } else if (const auto* duration = std::get_if<std::chrono::milliseconds>(&value.value)) {
    writer.raw(value.name + "_ms", std::to_string(duration->count()));
  } else {
    writer.raw(value.name, std::to_string(std::get<std::uint64_t>(value.value)));
    if (value.of) writer.raw(value.name + "_of", std::to_string(*value.of));
  }
}

void append_json(std::string& out, const StatusReport& entries);

void append_json(std::string& out, const StatusEntry& entry) {
  ObjectWriter writer(out);
  writer.text("name", shortened(entry.name, kMaxStatusName));
  writer.text("state", to_string(entry.state));
  writer.text("message", shortened(entry.message, kMaxStatusMessage));
  if (entry.since) writer.text("since", format_rfc3339(*entry.since));
  if (!entry.values.empty()) {
    ObjectWriter values(writer.begin("values"));
    for (const auto& value : entry.values) append_json(values, value);
    values.end();
  }
  if (!entry.details.empty()) append_json(writer.begin("details"), entry.details);
  if (entry.omitted > 0) writer.raw("omitted", std::to_string(entry.omitted));
  writer.end();
}

void append_json(std::string& out, const StatusReport& entries) {
  out += '[';
  bool is_first = true;
  for (const auto& entry : entries) {
    if (!std::exchange(is_first, false)) out += ',';
    append_json(out, entry);
  }
  out += ']';
}

}  // namespace

std::string_view to_string(StatusState state) {
  switch (state) {
    case StatusState::ok:
      return "ok";
    case StatusState::pending:
      return "pending";
    case StatusState::degraded:
      return "degraded";
    case StatusState::failed:
      return "failed";
    case StatusState::standby:
      return "standby";
    case StatusState::unknown:
      return "unknown";
    case StatusState::unavailable:
      return "unavailable";
  }
  return "unknown";
}

void StatusEntry::add_count(std::string key, std::uint64_t count,
                            std::optional<std::string> label) {
  values.push_back({.name = std::move(key), .value = count, .label = std::move(label)});
}

void StatusEntry::add_count_of(std::string key, std::uint64_t count, std::uint64_t of,
                               std::optional<std::string> label) {
  values.push_back({.name = std::move(key), .value = count, .of = of, .label = std::move(label)});
}

void StatusEntry::add_duration(std::string key, std::chrono::milliseconds duration,
                               std::optional<std::string> label) {
  values.push_back({.name = std::move(key), .value = duration, .label = std::move(label)});
}

void StatusEntry::add_text(std::string key, std::string text, std::optional<std::string> label) {
  values.push_back({.name = std::move(key), .value = std::move(text), .label = std::move(label)});
}

void StatusEntry::add_detail(StatusEntry detail) {
  if (details.size() < kMaxStatusDetails) {
    details.push_back(std::move(detail));
  } else {
    ++omitted;
  }
}

StatusEntry status_count(std::string name, std::uint64_t count) {
  StatusEntry entry{.name = std::move(name)};
  entry.add_count("count", count, "");
  return entry;
}

StatusEntry status_entry(std::string name, std::string error, std::string message) {
  if (error.empty()) return {.name = std::move(name), .message = std::move(message)};
  return {.name = std::move(name), .state = StatusState::failed, .message = std::move(error)};
}

StatusReport joined(std::vector<StatusReport> parts) {
  StatusReport report;
  for (auto& part : parts) std::ranges::move(part, std::back_inserter(report));
  return report;
}

std::string status_text(const StatusReport& report) {
  std::string out;
  for (const auto& entry : report) append_text(out, entry, 0);
  return out;
}

std::string status_json(const StatusReport& report) {
  std::string out;
  append_json(out, report);
  return out;
}

}  // namespace gitops
