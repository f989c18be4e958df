#include "app-proxy/providers/answer_cache.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include "common/core/text.hpp"

namespace gitops::app_proxy {
namespace {

constexpr std::size_t kOverhead = 256;  // of an entry, approximate
constexpr std::int64_t kMaxFresh = 60;  // seconds

std::optional<std::int64_t> seconds_of(std::string_view text) {
  text = trimmed(text);
  if (text.size() > 2 && text.starts_with('"') && text.ends_with('"')) {
    text = text.substr(1, text.size() - 2);
  }
  std::int64_t seconds = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size() || seconds < 0) {
    return std::nullopt;
  }
  return seconds;
}

std::string key_of(std::string_view owner, std::string_view url) {
  std::string key(owner);
  key += '\n';
  key += url;
  return key;
}

}  // namespace

std::chrono::seconds fresh_for(const http::Headers& headers) {
  std::optional<std::int64_t> age;
  for (const auto& [field, value] : headers) {
    if (!http::equal_ignoring_case(field, "Cache-Control")) continue;
    std::string_view rest = value;
    while (!rest.empty()) {
      const auto comma = rest.find(',');
      const auto directive = trimmed(rest.substr(0, comma));
      rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
      const auto equals = directive.find('=');
      const auto name = trimmed(directive.substr(0, equals));
      const bool forbids = http::equal_ignoring_case(name, "no-store") ||
                           http::equal_ignoring_case(name, "no-cache");
      if (forbids) return {};
      if (!http::equal_ignoring_case(name, "max-age")) continue;
      const auto given = equals == std::string_view::npos
                             ? std::nullopt
                             : seconds_of(directive.substr(equals + 1));
      if (!given) return {};
      age = std::min(age.value_or(*given), *given);
    }
  }
  if (!age) return {};
  if (const auto spent = headers.find("Age")) {
    const auto seconds = seconds_of(*spent);
    if (!seconds || *seconds >= *age) return {};
    *age -= *seconds;
  }
  return std::chrono::seconds(std::min(*age, kMaxFresh));
}

const AnswerCache::Entry* AnswerCache::find(std::string_view owner, std::string_view url) {
  const auto found = entries_.find(key_of(owner, url));
  if (found == entries_.end()) return nullptr;
  order_.splice(order_.begin(), order_, found->second);
  return &found->second->entry;
}

void AnswerCache::put(std::string_view owner, std::string_view url, Entry entry) {
  forget(owner, url);
  auto key = key_of(owner, url);
  std::size_t bytes = kOverhead + key.size() + entry.etag.size() + entry.body.size();
  for (const auto& [name, value] : entry.headers) bytes += name.size() + value.size();
  if (entry.page) bytes += memory_of(*entry.page);
  if (bytes > limits_.bytes_of_answer || bytes > limits_.bytes_of_owner || bytes > limits_.bytes) {
    return;
  }
  auto& of_owner = bytes_of_owner_[std::string(owner)];
  for (auto at = order_.end(); of_owner + bytes > limits_.bytes_of_owner && at != order_.begin();) {
    const auto oldest = std::prev(at);
    if (oldest->owner == owner) {
      // The owner's count is kept, since it is about to grow again.
      of_owner -= oldest->bytes;
      bytes_ -= oldest->bytes;
      entries_.erase(oldest->key);
      at = order_.erase(oldest);
    } else {
      at = oldest;
    }
  }
  of_owner += bytes;
  bytes_ += bytes;
  order_.push_front({std::string(owner), std::move(key), std::move(entry), bytes});
  entries_.emplace(order_.front().key, order_.begin());
  while (bytes_ > limits_.bytes) erase(std::prev(order_.end()));
}

void AnswerCache::renew(std::string_view owner, std::string_view url,
                        Clock::time_point fresh_until) {
  const auto found = entries_.find(key_of(owner, url));
  if (found != entries_.end()) found->second->entry.fresh_until = fresh_until;
}

void AnswerCache::expire(std::string_view owner) {
  for (auto& kept : order_) {
    if (kept.owner == owner) kept.entry.fresh_until = {};
  }
}

void AnswerCache::forget(std::string_view owner, std::string_view url) {
  const auto found = entries_.find(key_of(owner, url));
  if (found != entries_.end()) erase(found->second);
}

void AnswerCache::forget(std::string_view owner) {
  for (auto at = order_.begin(); at != order_.end();) {
    const auto entry = at++;
    if (entry->owner == owner) erase(entry);
  }
}

void AnswerCache::erase(Order::iterator entry) {
  bytes_ -= entry->bytes;
  const auto of_owner = bytes_of_owner_.find(entry->owner);
  of_owner->second -= entry->bytes;
  if (of_owner->second == 0) bytes_of_owner_.erase(of_owner);
  entries_.erase(entry->key);
  order_.erase(entry);
}

}  // namespace gitops::app_proxy
