#include "event-reporter/delivery/journal.hpp"

#include <algorithm>
#include <charconv>
#include <functional>

#include "common/core/encoding.hpp"
#include "common/http/url.hpp"

namespace gitops::reporter {
namespace {

constexpr std::size_t kDefaultLimit = 100;
// Estimated overhead of containers and allocator for a subject and an entry.
constexpr std::size_t kSubjectCost = 200;
constexpr std::size_t kEntryCost = 32;

std::size_t cost_of(const std::string& subject) {
  return kSubjectCost + subject.size();
}

std::size_t cost_of(const Journal::Entry& entry) {
  return kEntryCost + sizeof(entry) + entry.part.size() + entry.event_id.size();
}

void text_field(std::string& out, std::string_view name, std::string_view value) {
  out.append(out.back() == '{' ? "\"" : ",\"").append(name).append("\":");
  append_json_string(out, value);
}

void number_field(std::string& out, std::string_view name, std::int64_t value) {
  out.append(",\"").append(name).append("\":").append(std::to_string(value));
}

}  // namespace

void Journal::add(const std::string& subject, Entry entry) {
  auto found = subjects_.find(subject);
  if (found == subjects_.end()) {
    found = subjects_.emplace(subject, Subject{}).first;
    found->second.place = order_.insert(order_.end(), &found->first);
    bytes_ += cost_of(subject);
  } else {
    order_.splice(order_.end(), order_, found->second.place);
  }
  auto& entries = found->second.entries;
  if (entries.size() >= std::max<std::size_t>(options_.per_object, 1)) {
    bytes_ -= cost_of(entries.front().entry);
    entries.erase(entries.begin());
  }
  bytes_ += cost_of(entry);
  entries.reserve(entries.size() + 1);  // without spare capacity, to save memory
  entries.push_back({.entry = std::move(entry), .number = ++added_});
  while (bytes_ > options_.max_bytes && !order_.empty()) forget(*order_.front());
}

void Journal::forget(const std::string& subject) {
  const auto found = subjects_.find(subject);
  for (const auto& kept : found->second.entries) bytes_ -= cost_of(kept.entry);
  bytes_ -= cost_of(found->first);
  order_.erase(found->second.place);
  subjects_.erase(found);
}

std::string Journal::json(std::string_view object, std::string_view refused) const {
  Found found;
  for (auto at = subjects_.lower_bound(object); at != subjects_.end(); ++at) {
    // An application's resources follow it: no name holds a space or a character that sorts before it.
    const auto rest = std::string_view(at->first).substr(std::min(object.size(), at->first.size()));
    if (!at->first.starts_with(object) || (!rest.empty() && rest.front() != ' ')) break;
    for (const auto& kept : at->second.entries) found.emplace_back(&at->first, &kept);
  }
  return write(std::move(found), refused);
}

std::string Journal::json_all(std::size_t limit, std::string_view refused) const {
  Found found;
  for (auto at = order_.rbegin(); at != order_.rend() && limit > 0; ++at, --limit) {
    const auto& [subject, record] = *subjects_.find(**at);
    for (const auto& kept : record.entries) found.emplace_back(&subject, &kept);
  }
  return write(std::move(found), refused);
}

std::string Journal::answer(std::string_view query, const Refused& refused) const {
  const auto object = http::query_parameter(query, "object");
  const auto marks = refused ? refused(object) : std::string();
  if (!object.empty()) return json(object, marks);
  const auto text = http::query_parameter(query, "limit");
  std::size_t limit = kDefaultLimit;
  std::from_chars(text.data(), text.data() + text.size(), limit);
  return json_all(limit, marks);
}

std::string Journal::write(Found found, std::string_view refused) {
  std::ranges::sort(found, std::greater(), [](const auto& pair) { return pair.second->number; });
  std::string out = "{\"deliveries\":[";
  for (const auto& [subject, kept] : found) {
    const auto& entry = kept->entry;
    out += out.back() == '[' ? "\n{" : ",\n{";
    text_field(out, "subject", *subject);
    text_field(out, "time", format_rfc3339_millis(entry.time));
    text_field(out, "part", entry.part);
    text_field(out, "event_id", entry.event_id);
    number_field(out, "attempt", entry.attempt);
    text_field(out, "result", entry.result);
    number_field(out, "http_status", entry.http_status);
    number_field(out, "bytes", static_cast<std::int64_t>(entry.bytes));
    number_field(out, "milliseconds", entry.took.count());
    out += '}';
  }
  out += "\n]";
  if (!refused.empty()) out.append(",\"refused\":").append(refused);
  out += "}\n";
  return out;
}

}  // namespace gitops::reporter
