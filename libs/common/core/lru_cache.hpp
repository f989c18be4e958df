#pragma once

#include <cstddef>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace gitops {

// A cache of values by key, limited in bytes; it evicts the least recently used. One thread.
template <class V>
class LruCache {
 public:
  explicit LruCache(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  // Returns the value; null when there is none. Valid until the next put() or erase().
  V* find(std::string_view key) {
    const auto found = index_.find(key);
    if (found == index_.end()) return nullptr;
    order_.splice(order_.begin(), order_, found->second);
    return &found->second->value;
  }
  // Stores a value. `bytes` is its size without the key. A value larger than the whole cache is not
  // kept.
  void put(std::string key, V value, std::size_t bytes) {
    erase(key);
    bytes += kOverhead + key.size();
    if (bytes > max_bytes_) return;
    order_.push_front({std::move(key), std::move(value), bytes});
    index_.emplace(order_.front().key, order_.begin());
    bytes_ += bytes;
    while (bytes_ > max_bytes_) erase(order_.back().key);
  }
  void erase(std::string_view key) {
    const auto found = index_.find(key);
    if (found == index_.end()) return;
    const auto entry = found->second;
    bytes_ -= entry->bytes;
    index_.erase(found);
    order_.erase(entry);
  }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] std::size_t size() const { return order_.size(); }

 private:
  static constexpr std::size_t kOverhead = 192;  // overhead of an entry, roughly
  struct Entry {
    std::string key;
    V value;
    std::size_t bytes = 0;
  };
  std::size_t max_bytes_;
  std::size_t bytes_ = 0;
  std::list<Entry> order_;  // most recently used first
  std::unordered_map<std::string_view, typename std::list<Entry>::iterator>
      index_;  // by Entry::key
};

}  // namespace gitops
