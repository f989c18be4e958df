#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>

namespace gitops::http {

// Buffer of received bytes that are not yet consumed, in one piece. Grows on demand, up to the size
// that the parser must see at once.
class ReadBuffer {
 public:
  [[nodiscard]] std::string_view bytes() const { return {data_.get() + begin_, end_ - begin_}; }
  // The same bytes, for decoders that work in place.
  [[nodiscard]] std::span<char> bytes_in_place() { return {data_.get() + begin_, end_ - begin_}; }
  [[nodiscard]] bool empty() const { return begin_ == end_; }

  void consume(std::size_t size) {
    begin_ += size;
    if (begin_ == end_) begin_ = end_ = 0;
  }

  // Returns free space behind the bytes: at least a quarter of the capacity, which is at least
  // `capacity`.
  std::span<char> prepare(std::size_t capacity) {
    const std::size_t used = end_ - begin_;
    capacity = std::max({capacity, capacity_, used + used / 2});
    if (capacity > capacity_) {
      auto grown = std::make_unique_for_overwrite<char[]>(capacity);
      if (used > 0) std::memcpy(grown.get(), data_.get() + begin_, used);
      data_ = std::move(grown);
      capacity_ = capacity;
      begin_ = 0;
      end_ = used;
    } else if (capacity_ - end_ < capacity_ / 4) {
      std::memmove(data_.get(), data_.get() + begin_, used);
      begin_ = 0;
      end_ = used;
    }
    return {data_.get() + end_, capacity_ - end_};
  }
  void commit(std::size_t size) { end_ += size; }

  // Releases the memory if the buffer is empty.
  void release() {
    if (!empty()) return;
    data_.reset();
    capacity_ = begin_ = end_ = 0;
  }

 private:
  std::unique_ptr<char[]> data_;
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace gitops::http
