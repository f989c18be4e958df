#include "control-plane/live/change_cursor.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace gitops::control_plane_server {
namespace {

constexpr std::size_t kMaxInstances = 1'000;
constexpr std::size_t kMaxName = 64;
constexpr std::string_view kNone = "0";

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kMaxName && std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-';
  });
}

std::optional<std::int64_t> number_of(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 1) return std::nullopt;
  return number;
}

}  // namespace

std::string to_string(const ChangeCursor& cursor) {
  std::string text;
  for (const auto& [instance, number] : cursor.numbers) {
    if (!text.empty()) text += ',';
    text.append(instance).append(":").append(std::to_string(number));
  }
  return text.empty() ? std::string(kNone) : text;
}

std::optional<ChangeCursor> read_cursor(std::string_view text) {
  ChangeCursor cursor;
  if (text == kNone) return cursor;
  while (true) {
    const auto item = text.substr(0, text.find(','));
    const auto colon = item.find(':');
    if (colon == std::string_view::npos || !is_name(item.substr(0, colon))) return std::nullopt;
    const auto number = number_of(item.substr(colon + 1));
    if (!number || cursor.numbers.size() >= kMaxInstances) return std::nullopt;
    cursor.numbers.insert_or_assign(std::string(item.substr(0, colon)), *number);
    if (item.size() == text.size()) return cursor;
    text.remove_prefix(item.size() + 1);
  }
}

ChangeCursor cursor_at(std::span<const OutboxHead> heads) {
  ChangeCursor cursor;
  for (const auto& head : heads) cursor.numbers.emplace(head.instance, head.last);
  return cursor;
}

ReadingPlan plan_reading(const ChangeCursor& cursor, std::span<const OutboxHead> heads,
                         Vanished vanished) {
  ReadingPlan plan;
  std::size_t known = 0;
  for (const auto& head : heads) {
    const auto found = cursor.numbers.find(head.instance);
    if (found != cursor.numbers.end()) ++known;
    const auto after = found == cursor.numbers.end() ? 0 : found->second;
    plan.has_gap = plan.has_gap || after > head.last || after + 1 < head.first;
    if (after >= head.last) continue;
    plan.parts.push_back({.instance = head.instance, .after = after, .last = head.last});
    plan.changes += head.last - after;
  }
  if (vanished == Vanished::are_missed && known < cursor.numbers.size()) plan.has_gap = true;
  return plan;
}

}  // namespace gitops::control_plane_server
