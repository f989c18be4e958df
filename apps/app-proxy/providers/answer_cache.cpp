#include "app-proxy/providers/answer_cache.hpp"

#include <iterator>
#include <utility>

namespace gitops::app_proxy {
namespace {

constexpr std::size_t kOverhead = 256;  // of an entry, roughly

std::string key_of(std::string_view owner, std::string_view url) {
  std::string key(owner);
  key += '\n';
  key += url;
  return key;
}

}  // namespace

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
  if (bytes > limits_.bytes_of_answer || bytes > limits_.bytes_of_owner || bytes > limits_.bytes) {
    return;
  }
  auto& of_owner = bytes_of_owner_[std::string(owner)];
  for (auto at = order_.end(); of_owner + bytes > limits_.bytes_of_owner && at != order_.begin();) {
    const auto oldest = std::prev(at);
    if (oldest->owner == owner) {
      // The count of this owner stays: it is about to grow again.
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
